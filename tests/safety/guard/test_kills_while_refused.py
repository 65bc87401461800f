"""Real harnesses killed while one frame is lost or refused: both ways of each hazard end off.

The plant is the short line's, served by a process of its own, and is asked what is really so. A
guard once took a refusal for obedience, and the mains stayed on for ever.
"""

import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

from commands import COMMAND, say
from guard_rig import Caller
from labharness.lab import read_lab
from platforms import unix
from rig import HERE
from served import Served

OFF_S_MAX = 3.0  # after the kill; a guard sends again each second
BEFORE_S_MAX = 10.0  # for a line to be energised, or a socket to come
LOOK_S = 0.01
FAULTS = ("write_lost", "write_refused")
PORTS = ("relays", "heat", "hydrogen")
WAYS = (
    *("furnace_mains", "sulfur_mains", "furnace_power", "sulfur_power"),
    *("hydrogen_valve", "hydrogen_setpoint_sccm"),
)

pytestmark = [pytest.mark.serial, unix]


class Line:
    """A served line and the guard of its ports."""

    def __init__(self, served: Served) -> None:
        self.served = served
        self.state_dir = read_lab(served.lab_file).state_dir
        assert say("arm", served.lab_file).code == 0
        self.guard = subprocess.Popen([*COMMAND, "guard", str(served.lab_file)])

    def end(self) -> None:
        """End the guard."""
        self.guard.terminate()
        self.guard.wait(BEFORE_S_MAX)

    def on(self) -> list[str]:
        """Name the ways that are on at the plant."""
        truth = self.served.truth()
        return [way for way in WAYS if truth[way]]

    def until(self, wanted: list[str], within_s: float) -> float:
        """Wait until just these ways are on; return how long it took."""
        began_s = time.monotonic()
        while (found := self.on()) != wanted:
            took_s = time.monotonic() - began_s
            assert took_s < within_s, f"after {took_s:.2f} s on: {found}, wanted: {wanted}"
            time.sleep(LOOK_S)
        return time.monotonic() - began_s

    def fault(self, port: str, **faults: Any) -> dict[str, Any]:
        """Set faults of one port's wires; give them as they are."""
        found: dict[str, Any] = self.served.ask("bus", port=port, set=faults)["bus"][port]
        return found

    def kill_while(self, port: str, fault: str, wait_s: float) -> float:
        """Kill a heating harness as one frame is about to be lost; return the seconds until off."""
        command = (sys.executable, HERE / "energising_harness.py", self.served.lab_file)
        harness = subprocess.Popen(command, stdout=subprocess.PIPE)
        try:
            assert harness.stdout is not None
            said = harness.stdout.readline()
            assert said == b"energised\n", f"the guard's exit code: {self.guard.poll()}"
            self.until(list(WAYS), BEFORE_S_MAX)
            time.sleep(wait_s)
            self.fault(port, **{fault: 1})
            harness.send_signal(signal.SIGKILL)
            took_s = self.until([], OFF_S_MAX)
        finally:
            harness.kill()
            harness.communicate()
        assert self.fault(port)[fault] == 0, "the fault met no frame"
        caretaker = Caller(self.state_dir)
        assert caretaker.welcome["latched"] is True
        caretaker.say(do="imported")
        caretaker.leave(reset=True)
        assert self.on() == [], "on again after a reset"
        return took_s


@pytest.fixture(scope="module")
def line(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Line]:
    with Served(tmp_path_factory.mktemp("served")) as served:
        made = Line(served)
        try:
            yield made
        finally:
            made.end()


@pytest.mark.promise(1)
@pytest.mark.parametrize(
    ("port", "fault"),  # the long proof takes each in turn
    [("relays", "write_refused"), ("heat", "write_lost"), ("hydrogen", "write_refused")],
)
def test_after_a_kill_with_one_frame_lost_or_refused_every_way_is_off(
    line: Line, port: str, fault: str
) -> None:
    line.kill_while(port, fault, 0.0)


@pytest.mark.promise(1)
@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_after_two_hundred_kills_with_one_frame_lost_or_refused_every_way_was_off(
    line: Line,
) -> None:
    chance = random.Random(7)
    each = list(product(PORTS, FAULTS))
    took_s = sorted(
        line.kill_while(*each[number % len(each)], chance.uniform(0.0, 1.0))
        for number in range(200)
    )
    print(  # noqa: T201 - the figures are what the long run is for
        f"\n200 kills: all off after {took_s[100]:.2f} s at the median, {took_s[-1]:.2f} s at most"
    )
