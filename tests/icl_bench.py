"""A simulated ICL and its driver on one wire, with optics that count and a clock the test moves."""

import json
import random
from typing import Any

from faced import exchange
from hand_clock import Clock
from labharness.core.vocabulary import Request
from labharness.instruments.simulation import LoopEnvironment
from labharness_drivers.horiba_icl import HoribaIcl
from labharness_simulators.horiba_icl import Simulator

PLACEHOLDER = 1_000_000_000  # the id that a frame carries until the port fills in its own


class Optics:
    """A spectrometer of eight pixels that counts how often it was exposed."""

    def __init__(self, pixels: int = 8) -> None:
        self.pixels, self.centre_nm, self.moving = pixels, 545.0, False
        self.grating_lines_per_mm = 1800
        self.chip_temperature_c = -60.0
        self.exposures: list[tuple[float, int]] = []

    def wavelengths_nm(self) -> list[float]:
        return [self.centre_nm + 0.018 * (at - self.pixels / 2) for at in range(self.pixels)]

    def exposure(self, exposure_s: float, averages: int) -> list[int]:
        self.exposures.append((exposure_s, averages))
        return [100 * len(self.exposures) + at for at in range(self.pixels)]


class Bench:
    """An ICL, its optics and a clock that the test moves."""

    def __init__(self, pixels: int = 8) -> None:
        clock: Any = Clock()
        self.clock = clock
        self.env = LoopEnvironment(clock)
        self.optics = Optics(pixels)
        part: Any = self.optics
        self.face = Simulator(self.env, part, random.Random(1), chip_width=pixels)
        self.driver = HoribaIcl(chip_width=pixels)

    def exchange(self, request: Request) -> bytes:
        self.env.sync()
        return exchange(request, self.face, PLACEHOLDER)

    def read(self, name: str) -> float:
        scan = next(each for each in self.driver.scans() if each.name == name)
        (value,) = scan.decode(self.exchange(scan.request))
        return value

    def set(self, channel: str, value: float) -> None:
        for request in self.driver.write(channel, value):
            self.driver.accept(channel, self.exchange(request))

    def spectrum(self) -> Any:
        (query,) = self.driver.queries()
        return query.decode(self.exchange(query.request))

    def say(self, command: str, **parameters: object) -> dict[str, Any]:
        self.env.sync()
        asked = {"id": 7, "command": command, "parameters": parameters}
        reply = self.face.receive(json.dumps(asked).encode())
        assert reply is not None
        answer: dict[str, Any] = json.loads(reply)
        return answer

    def wait(self, seconds: float) -> None:
        self.clock.now_s += seconds

    def prepare(self, exposure_ms: float = 500) -> "Bench":
        self.set("mono_open", 1)
        self.set("mono_home", 1)
        self.wait(10)
        self.set("ccd_open", 1)
        self.set("roi", self.optics.pixels)
        self.set("exposure", exposure_ms)
        self.set("wavelength", 545.0)
        return self


def reply_of(results: object, command: str = "ccd_getAcquisitionData") -> bytes:
    body = {"id": PLACEHOLDER, "command": command, "results": results, "errors": []}
    return json.dumps(body).encode()
