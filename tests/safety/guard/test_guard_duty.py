"""What a guard owes of a procedure: sent again in order until every instrument did it, and seen."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labharness.core.vocabulary import Nothing, Request, Until, disobeyed
from labharness.safety.guard import Finished, GuardCore, SafeFrame
from labharness.safety.guard.duty import Duty

PASSES_MAX = 40


def order(step: int, port: str, text: str) -> SafeFrame:
    """Make a frame that is obeyed with ``ok``, and the read that shows it."""
    line = Until(b"\r")
    request = Request(text.encode(), line, 0.3, obeyed=b"ok\r")
    shown = Request(text.split("=")[0].encode() + b"?", line, 0.3, obeyed=text.encode() + b"\r")
    return SafeFrame(step, port, request, text, 0.0, "", shown)


MANUAL, OUTPUT, SETPOINT = (
    order(1, "heat", "manual=1"),
    order(2, "heat", "output=0"),
    order(4, "heat", "setpoint=0"),
)
CONTACTOR = order(0, "relays", "contactor=0")
VALVE = order(3, "relays", "valve=0")
STOP = (CONTACTOR, MANUAL, OUTPUT, VALVE, SETPOINT)


@dataclass
class Controller:
    """A controller that takes an output in manual only, and keeps the one it had on the way there.

    Attributes:
        faults: What becomes of each exchange, first to last; afterwards all is well.
    """

    faults: Iterator[str]
    manual: int = 0
    output: int = 22
    setpoint: int = 700
    contactor: int = 1
    valve: int = 1

    def exchange(self, frame: SafeFrame) -> Finished:
        """Take one frame."""
        request, fault = frame.request, next(self.faults, "")
        if fault == "lost":
            return Finished(request, None, "no reply within 0.3 s", frame)
        reply = b"busy\r" if fault == "refused" else self.answer(request.frame.decode())
        if fault == "brown-out":
            self.manual, self.output = 0, 22
        if fault == "unheard":
            return Finished(request, None, "no reply within 0.3 s", frame)
        return Finished(request, reply, disobeyed(request, reply), frame)

    def answer(self, line: str) -> bytes:
        name, _, value = line.rstrip("?").partition("=")
        if line.endswith("?"):
            return f"{name}={getattr(self, name)}\r".encode()
        if name == "output" and not self.manual:
            return b"busy\r"
        setattr(self, name, int(value))
        return b"ok\r"

    @property
    def is_off(self) -> bool:
        heat = (self.manual, self.output, self.setpoint)
        return heat == (1, 0, 0) and not (self.contactor or self.valve)


FAULTS = st.lists(st.sampled_from(["", "lost", "unheard", "refused", "brown-out"]), max_size=60)


@pytest.mark.promise(12)
@given(faults=FAULTS)
@settings(deadline=None, max_examples=300, derandomize=True)
def test_whatever_is_lost_or_refused_on_the_way_all_is_off_when_nothing_is_left_to_do(
    faults: list[str],
) -> None:
    plant = Controller(iter(faults))
    duty = Duty()
    duty.begin(STOP)
    for frame in STOP:
        duty.ended(plant.exchange(frame))
    for _ in range(PASSES_MAX):
        again = duty.due((), reading=True)
        for frame in again:
            duty.ended(plant.exchange(frame))
        if not duty.left(reading=True):
            break
    assert not duty.left(reading=True), "it ends once all is well"
    assert plant.is_off, "and what it ends with is so"


@pytest.mark.promise(12)
def test_a_port_is_sent_its_frames_from_the_first_that_failed_and_in_their_order() -> None:
    duty = Duty()
    duty.begin(STOP)
    for frame in (CONTACTOR, OUTPUT, VALVE, SETPOINT):
        duty.ended(Finished(frame.request, b"ok\r", "", frame))
    duty.ended(Finished(MANUAL.request, b"busy\r", "refused", MANUAL))
    assert duty.open() == [MANUAL]
    assert duty.due((), reading=False) == [MANUAL, OUTPUT, SETPOINT]
    duty.ended(Finished(MANUAL.request, b"ok\r", "", MANUAL))
    assert duty.due((), reading=False) == [OUTPUT, SETPOINT], "all of them in one pass"
    assert duty.due({"heat"}, reading=True)[0].port == "relays", "one port holds up no other"


def test_what_a_reading_belies_is_open_again_and_a_reading_that_is_lost_says_nothing() -> None:
    duty = Duty()
    duty.begin([CONTACTOR])
    duty.ended(Finished(CONTACTOR.request, b"ok\r", "", CONTACTOR))
    assert not duty.left(reading=False)
    assert duty.left(reading=True)
    (reading,) = duty.due((), reading=True)
    assert reading.request is CONTACTOR.shown
    duty.ended(Finished(reading.request, None, "no reply within 0.3 s", reading))
    assert duty.due((), reading=True) == [reading], "asked again, and nothing is sent"
    told = duty.ended(Finished(reading.request, b"contactor=1\r", "answered 63", reading))
    assert told == "read back: answered 63"
    assert duty.due((), reading=True) == [CONTACTOR, reading]
    duty.ended(Finished(CONTACTOR.request, b"ok\r", "", CONTACTOR))
    assert duty.ended(Finished(reading.request, b"contactor=0\r", "", reading)) == ""
    assert not duty.left(reading=True)


def test_a_frame_that_nothing_shows_is_done_when_it_was_obeyed() -> None:
    blind = replace(CONTACTOR, shown=None)
    duty = Duty()
    duty.begin([blind])
    duty.ended(Finished(blind.request, b"ok\r", "", blind))
    assert not duty.left(reading=True)
    assert duty.due((), reading=True) == []
    assert duty.ended(Finished(blind.request, b"ok\r", "", replace(blind, port="gas"))) == ""


def test_what_ended_after_a_reset_is_nobodys_duty() -> None:
    duty = Duty()
    duty.begin(STOP)
    (reading, *_) = duty.due((), reading=True)[-1:]
    duty.end()
    assert not duty.left(reading=True)
    assert duty.ended(Finished(reading.request, b"valve=1\r", "answered 76", reading))
    assert not duty.left(reading=True)


@pytest.mark.parametrize(
    ("reply", "done"), [(b"ok\r", True), (b"?\r", False), (b"ok \r", False), (b"no ok\r", False)]
)
def test_only_the_stated_reply_of_a_safe_frame_is_obedience(reply: bytes, done: bool) -> None:
    core = GuardCore({"relays": ()}, {"stop": (CONTACTOR,)})
    core.trip("stop")
    assert core.send_safe("relays", 0.0) == CONTACTOR.request.frame
    finished = core.ports["relays"].feed(reply, 0.1)
    assert finished is not None
    assert (finished.error == "") is done
    assert finished.reply == reply
    assert done or reply.hex(" ") in finished.error, "logged with its bytes"


def test_a_frame_without_a_reply_is_taken_for_sent_and_its_reading_decides() -> None:
    mute = replace(CONTACTOR, request=Request(b"contactor=0", Nothing(), 0.0, settle_s=0.1))
    core = GuardCore({"relays": ()}, {"stop": (mute,)})
    core.trip("stop")
    core.send_safe("relays", 0.0)
    finished = core.ports["relays"].expire(0.2)
    assert finished is not None
    duty = Duty()
    duty.begin([mute])
    assert duty.ended(finished) == ""
    assert [each.request for each in duty.due((), reading=True)] == [mute.shown]
