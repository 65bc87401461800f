"""The checks of drivers and simulators find what they are for, each by one thing made wrong."""

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from labharness.core.vocabulary import DeviceFault, Exactly, Request, Until
from labharness.faces.testing.conformance import (
    check_driver,
    check_envelope,
    check_obedience,
    check_simulator,
    check_write,
)
from labharness.faces.testing.pairs import transaction_of
from labharness.instruments.driver import Adds, Channel, Driver, Identity, Off, Query, Scan
from labharness.instruments.simulation import LineFace
from labharness_drivers.honeywell_midas import HoneywellMidas
from labharness_drivers.horiba_icl import HoribaIcl
from labharness_drivers.waveshare_relay import WaveshareRelay


def ask(text: str) -> Request:
    return Request(text.encode() + b"\r", Until(b"\r"), timeout_s=0.5)


def order(text: str) -> Request:
    return replace(ask(text), obeyed=b"ok\r")


def numbers(reply: bytes) -> tuple[float, ...]:
    return tuple(float(each) for each in reply.split())


class Pump(Driver):
    """A pump that has nothing wrong."""

    channels: Mapping[str, Channel] = {
        "speed": Channel(
            unit="rpm", doc="Control the speed.", source="p. 1", settable=True, readback="turns"
        ),
        "turns": Channel(unit="rpm", doc="Measure the speed.", source="p. 2"),
    }
    off = ()
    write_grammar = (rb"S[^\r]*\r",)
    all_scans: tuple[Scan, ...] = (Scan("turns", ask("T"), ("turns",), numbers),)

    def scans(self) -> tuple[Scan, ...]:
        return self.all_scans

    def identify(self) -> Query:
        return Query("identity", ask("?"), lambda reply: Identity(reply.decode().strip()))

    def expects(self, identity: Identity) -> str:
        return "" if identity.model == "pump" else f"it is a {identity.model}"

    def write(self, channel: str, value: float) -> tuple[Request, ...]:
        self.settable(channel)
        return (order(f"S{value:g}"),)

    def shown(self, channel: str, value: float) -> Request | None:
        return replace(ask("T"), obeyed=f"{value:g}\r".encode())


class PumpFace(LineFace):
    """Its simulator."""

    replies: Mapping[str, str] = {"?": "pump\r"}
    writes = re.compile("S.*")
    refused = "no\r"
    speed = 12.5

    def answer(self, line: str) -> str | None:
        if line in self.replies:
            return self.replies[line]
        if line.startswith("S"):
            return self.set(float(line[1:]))
        return f"{self.speed:4.1f}\r" if line == "T" else None

    def set(self, speed: float) -> str:
        self.speed = speed
        return "ok\r"


ENVELOPE: dict[str, Any] = {
    "limits": {"speed": {"unit": "rpm", "low": 0, "high": 90, "source": "p. 1"}}
}


def made(**changes: object) -> Pump:
    pump: Pump = type("Made", (Pump,), changes)()
    return pump


def channel(name: str, **changes: Any) -> dict[str, Channel]:
    return {**Pump.channels, name: replace(Pump.channels[name], **changes)}


def stops(channel: str, source: str = "p. 3") -> Off:
    return Off(adds=Adds.HEAT, steps=((channel, 0.0),), source=source)


def with_scans(*scans: Scan) -> Pump:
    return made(all_scans=scans)


def answering(**replies: str | None) -> PumpFace:
    names = {"identity": "?", "turns": "T"}
    face = PumpFace()
    face.replies = {
        **PumpFace.replies,
        **{names[name]: reply for name, reply in replies.items() if reply is not None},
    }
    for name, reply in replies.items():
        if reply is None:
            del face.replies[names[name]]
    return face


TURNS = Pump.all_scans[0]
COIL_ON = WaveshareRelay().write("relay_7", 1.0)[0]


def test_a_pump_with_nothing_wrong_has_no_findings() -> None:
    assert check_driver(Pump()) == ()
    assert check_envelope(Pump(), ENVELOPE) == ()
    assert check_simulator(Pump(), PumpFace()) == ()


@pytest.mark.parametrize(
    ("pump", "finding"),
    [
        (lambda: made(channels={}, all_scans=()), "it has no channel"),
        (lambda: made(channels=channel("turns", doc="Control the speed.")), "starts with Measure"),
        (lambda: made(channels=channel("turns", doc="Measure the speed")), "is not a sentence"),
        (lambda: made(channels=channel("turns", source=" ")), "where that is written"),
        (lambda: made(channels=channel("turns", on_comm_loss="safe")), "on_comm_loss is hold"),
        (lambda: made(scans=lambda self: (*self.all_scans,)), "new scans"),
        (lambda: made(all_scans=("T",)), "is not a Scan"),
        (lambda: with_scans(TURNS, replace(TURNS, name="again")), "turns is scanned twice"),
        (lambda: with_scans(replace(TURNS, channels=("turns", "oil"))), "oil is scanned and no"),
        (lambda: with_scans(), "turns can be neither read nor set"),
        (lambda: made(off=None), "does not say what of that adds energy"),
        (lambda: made(off=(stops("turns"),)), "off (heat): turns = 0 cannot be sent: 'turns'"),
        (lambda: made(off=(stops("speed", source=" "),)), "does not say where that is written"),
        (lambda: with_scans(), "read-back 'turns' is not scanned"),
        (lambda: made(write_grammar=()), "states no write_grammar"),
        (
            lambda: with_scans(replace(TURNS, request=ask("S0"))),
            "scan 'turns': 'S0\\r' is not a read",
        ),
        (lambda: with_scans(replace(TURNS, request=COIL_ON)), "function 5 (write single coil)"),
        (
            lambda: made(write=lambda self, channel, value: (ask("S"),)),
            "'turns' cannot be set, and",
        ),
    ],
)
def test_each_thing_wrong_in_a_driver_is_found(pump: Callable[[], Pump], finding: str) -> None:
    assert any(finding in each for each in check_driver(pump())), check_driver(pump())


@pytest.mark.parametrize(
    ("write", "finding"),
    [
        (lambda self, channel, value: (), "has no frame"),
        (lambda self, channel, value: (order("T"),), "among those that read"),
        (lambda self, channel, value: (order("?"),), "among those that read"),
        (lambda self, channel, value: (order("V1"),), "'V1\\r' is not in its write_grammar"),
        (lambda self, channel, value: (order(f"S{random.Random().random()}"),), "a driver is pure"),
        (lambda self, channel, value: (ask("S1"),), "which reply means obedience"),
    ],
)
def test_each_thing_wrong_in_a_command_is_found(write: object, finding: str) -> None:
    (found,) = check_write(made(write=write), "speed", 12.0)
    assert finding in found
    assert any(finding in each for each in check_envelope(made(write=write), ENVELOPE))


@pytest.mark.parametrize(
    ("obeyed", "shown", "finding"),
    [
        (b"ok\r", b"12.5\r", ""),
        (b".*\r", b"12.5\r", "passes for obedience"),
        (b"yes\r", b"12.5\r", "does not pass for obedience"),
        (b"ok\r", b"0\r", "answered with something else"),
    ],
)
def test_a_driver_that_cannot_tell_obedience_from_refusal_is_found(
    obeyed: bytes, shown: bytes, finding: str
) -> None:
    pump = made(
        write=lambda self, channel, value: (replace(ask(f"S{value:g}"), obeyed=obeyed),),
        shown=lambda self, channel, value: replace(ask("T"), obeyed=shown),
    )
    found = check_obedience(pump, PumpFace(), "speed", 12.5)
    assert [finding in each for each in found] == [True] * bool(finding)


@pytest.mark.parametrize(
    ("row", "finding"),
    [
        (None, "speed can be set and has no limit"),
        ({"unit": "1/s"}, "speed is in 'rpm' and its limit in '1/s'"),
        ({"low": 91}, "low 91 is above high 90"),
        ({"source": ""}, "its limit has no source"),
    ],
)
def test_each_thing_wrong_in_an_envelope_is_found(
    row: dict[str, object] | None, finding: str
) -> None:
    limits = {} if row is None else {"speed": {**ENVELOPE["limits"]["speed"], **row}}
    (found,) = check_envelope(Pump(), {"limits": limits})
    assert finding in found


def test_a_limit_of_what_cannot_be_set_is_found() -> None:
    limits = {**ENVELOPE["limits"], "turns": ENVELOPE["limits"]["speed"]}
    (found,) = check_envelope(Pump(), {"limits": limits})
    assert found == "turns has a limit and cannot be set"


@pytest.mark.parametrize(
    ("face", "finding"),
    [
        (answering(identity=None), "identity: b'?\\r' is met with silence"),
        (answering(identity="fan\r"), "identity: it is a fan"),
        (answering(turns="12.5\r3"), "scan turns: b'T\\r': of the reply"),
        (answering(turns="1 2\r"), "scan turns: 2 values for 1 channels"),
    ],
)
def test_each_thing_wrong_in_a_simulator_is_found(face: PumpFace, finding: str) -> None:
    (found,) = check_simulator(Pump(), face)
    assert finding in found


class Deaf(PumpFace):
    """A simulator that says that it obeys, and does not."""

    def set(self, speed: float) -> str:
        return "ok\r"


class Slow(PumpFace):
    """One that gets there in its own time."""

    def set(self, speed: float) -> str:
        self.wanted = speed
        return "ok\r"


class Stubborn(PumpFace):
    """One that refuses whatever it is told."""

    def set(self, speed: float) -> str:
        return "no\r"


class Picky(Pump):
    """A pump whose driver takes a refusal for one."""

    def accept(self, channel: str, reply: bytes) -> None:
        if reply != b"ok\r":
            raise DeviceFault(f"{channel}: it answered {reply!r}")


@pytest.mark.parametrize(
    ("driver", "face", "finding"),
    [
        (Pump(), Deaf(), "setting speed to 1: turns shows 12.5"),
        (Picky(), Stubborn(), "setting speed: it takes no value that was tried"),
        (made(write=lambda *_: ()), PumpFace(), "setting speed: the driver takes none of 1.0, 0.0"),
    ],
)
def test_a_simulator_that_does_not_take_what_can_be_set_is_found(
    driver: Pump, face: PumpFace, finding: str
) -> None:
    (found,) = check_simulator(driver, face)
    assert finding in found


def test_a_setting_that_takes_time_is_read_back_when_the_time_has_passed() -> None:
    face = Slow()
    slow = made(channels=channel("speed", settle_s=3.0))
    waited: list[float] = []

    def wait(seconds: float) -> None:
        waited.append(seconds)
        face.speed = face.wanted

    assert check_simulator(slow, Deaf()) == ()  # nobody lets its time pass
    assert check_simulator(slow, face, wait=wait) == ()
    assert waited == [3.0, 3.0]  # there and back
    assert face.speed == 12.5
    assert check_simulator(slow, Deaf(), wait=waited.append) == (
        "setting speed to 1: turns shows 12.5",
    )


def test_what_is_refused_is_tried_again_when_something_else_was_set() -> None:
    class Valved(PumpFace):
        valve = 0.0

        def answer(self, line: str) -> str | None:
            if line.startswith("V") and line != "V?":
                self.valve = float(line[1:])
                return "ok\r"
            if line == "V?":
                return f"{self.valve:g}\r"
            return super().answer(line)

        def set(self, speed: float) -> str:
            return super().set(speed) if self.valve else "no\r"

    valve = Channel(unit="", doc="Control.", source="p. 1", settable=True, readback="valve")

    def write(self: Pump, name: str, value: float) -> tuple[Request, ...]:
        return (order(f"{name[0].upper()}{value:g}"),)

    kind = type(
        "Valved",
        (Picky,),
        {
            "channels": {**Pump.channels, "valve": valve},
            "all_scans": (TURNS, Scan("valve", ask("V?"), ("valve",), numbers)),
            "write": write,
        },
    )
    face = Valved()
    assert check_simulator(kind(), face) == ()
    assert (face.speed, face.valve) == (12.5, 0.0)


def test_a_reply_that_passes_for_whole_while_it_is_cut_is_found() -> None:
    class Hasty:
        def take(self, buffer: bytes, transaction: int) -> int:
            return len(buffer)

    hasty = Request(b"T\r", Hasty(), timeout_s=0.5)
    (found,) = check_simulator(with_scans(replace(TURNS, request=hasty)), PumpFace())
    assert "cut after 1 bytes is taken for whole" in found
    exact = Request(b"T\r", Exactly(5), timeout_s=0.5)
    assert check_simulator(with_scans(replace(TURNS, request=exact)), PumpFace()) == ()


def test_a_transaction_id_is_read_where_the_frame_has_it() -> None:
    assert transaction_of(HoneywellMidas().scans()[0].request) == 0
    assert transaction_of(HoribaIcl().identify().request) == 1_000_000_000
    assert transaction_of(ask("T")) == 0
