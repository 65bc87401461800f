"""The guard's core: which bytes may leave, and when."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faced import rtu
from guarded import READ, SAFE, SHUT, WRITE, armed, refused, whole
from labharness.core.vocabulary import Nothing, Request, Rtu, Until, disobeyed
from labharness.safety.guard import (
    Finished,
    GuardCore,
    NotPermitted,
    Permit,
    PortState,
    SafeFrame,
    Source,
)
from labharness.safety.guard.core import PERMIT_S_MAX, PERMITS_MAX
from labharness.safety.guard.duty import Duty


@pytest.fixture
def core() -> GuardCore:
    return armed()


# ---- permits


def test_a_permit_lets_its_frame_pass_once(core: GuardCore) -> None:
    permit = core.permit("heat", WRITE.frame, 10.0)
    assert core.send("heat", WRITE, 10.0, permit) == WRITE.frame
    core.ports["heat"].feed(b"A ok\r", 10.1)
    refused(core, lambda: core.send("heat", WRITE, 10.1, permit))
    assert core.log is not None
    assert [(sent.port, sent.frame, sent.source) for sent in core.log] == [
        ("heat", WRITE.frame, Source.PERMIT)
    ]


@pytest.mark.promise(5)
@pytest.mark.parametrize(("late_s", "passes"), [(0.0, True), (1e-6, False), (1e9, False)])
def test_a_permit_ends_when_it_says(core: GuardCore, late_s: float, passes: bool) -> None:
    permit = core.permit("heat", WRITE.frame, 0.0)
    if passes:
        assert core.send("heat", WRITE, PERMIT_S_MAX + late_s, permit)
    else:
        refused(core, lambda: core.send("heat", WRITE, PERMIT_S_MAX + late_s, permit))


def test_a_permit_is_of_no_use_when_the_time_is_not_known(core: GuardCore) -> None:
    permit = core.permit("heat", WRITE.frame, 0.0)
    refused(core, lambda: core.send("heat", WRITE, float("nan"), permit))


def test_a_permit_is_for_its_port_and_for_its_frame(core: GuardCore) -> None:
    permit = core.permit("heat", WRITE.frame, 0.0)
    refused(core, lambda: core.send("gas", WRITE, 0.0, permit))
    permit = core.permit("heat", WRITE.frame, 0.0)
    refused(core, lambda: core.send("heat", replace(WRITE, frame=b"AS9.0\r"), 0.0, permit))


@pytest.mark.parametrize(
    "change",
    [
        lambda p: replace(p, number=p.number + 1),
        lambda p: replace(p, port="gas"),
        lambda p: replace(p, frame=b"AS99\r"),
        lambda p: replace(p, epoch=p.epoch + 1),
        lambda p: replace(p, expires_s=p.expires_s + 60.0),
    ],
    ids=["number", "port", "frame", "epoch", "expires_s"],
)
def test_a_forged_permit_lets_nothing_pass(change: Callable[[Permit], Permit]) -> None:
    core = armed()
    forged = change(core.permit("heat", WRITE.frame, 0.0))
    refused(core, lambda: core.send(forged.port, replace(WRITE, frame=forged.frame), 1.0, forged))
    refused(core, lambda: core.send("heat", WRITE, 1.0, forged))


@pytest.mark.promise(5)
@pytest.mark.parametrize("move", ["new_epoch", "arm", "disarm", "reset"])
def test_whatever_moves_the_epoch_voids_every_permit(core: GuardCore, move: str) -> None:
    permits = [core.permit("heat", WRITE.frame, 0.0) for _ in range(3)]
    epoch = core.epoch
    getattr(core, move)()
    assert core.epoch == epoch + 1, "a harness far away counts with it"
    for permit in permits:
        refused(core, lambda permit=permit: core.send("heat", WRITE, 0.0, permit))  # type: ignore[misc]  # mypy cannot type a default of a lambda


def test_a_permit_of_another_epoch_is_refused_even_if_it_was_kept(core: GuardCore) -> None:
    permit = core.permit("heat", WRITE.frame, 0.0)
    core.epoch += 1  # as if new_epoch had forgotten to clear
    refused(core, lambda: core.send("heat", WRITE, 0.0, permit))


def test_no_permit_is_made_unless_armed_and_unlatched(core: GuardCore) -> None:
    core.disarm()
    with pytest.raises(NotPermitted, match="not armed"):
        core.permit("heat", WRITE.frame, 0.0)
    core.arm()
    core.trip("stop")
    with pytest.raises(NotPermitted, match="latched"):
        core.permit("heat", WRITE.frame, 0.0)
    with pytest.raises(NotPermitted, match="named person"):
        core.arm()
    core.reset()
    with pytest.raises(NotPermitted, match="not armed"):  # a reset is no start
        core.permit("heat", WRITE.frame, 0.0)
    core.arm()
    assert core.permit("heat", WRITE.frame, 0.0).epoch == core.epoch


def test_permits_outstanding_are_bounded(core: GuardCore) -> None:
    for _ in range(PERMITS_MAX):
        core.permit("heat", WRITE.frame, 0.0)
    with pytest.raises(NotPermitted, match="outstanding"):
        core.permit("heat", WRITE.frame, PERMIT_S_MAX)
    assert core.permit("heat", WRITE.frame, PERMIT_S_MAX + 0.1), "those that expired do not count"
    for _ in range(2):
        core.new_epoch()
        for _ in range(PERMITS_MAX):
            core.permit("heat", WRITE.frame, 0.0)


# ---- permits that were made elsewhere


def test_a_permit_made_elsewhere_passes_once_and_in_order(core: GuardCore) -> None:
    permit = Permit(5, "heat", WRITE.frame, core.epoch, 11.0)
    core.admit(permit, 10.0)
    assert core.send("heat", WRITE, 10.0, permit) == WRITE.frame
    for number in (5, 4, 0):
        with pytest.raises(NotPermitted, match="seen before"):
            core.admit(replace(permit, number=number), 10.0)
    core.admit(replace(permit, number=6), 10.0)
    made_here = core.permit("heat", WRITE.frame, 10.0)
    assert made_here.number == 7
    with pytest.raises(NotPermitted, match="seen before"):
        core.admit(made_here, 10.0)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda core: core.disarm(), "not armed"),
        (lambda core: core.trip("stop"), "latched"),
    ],
)
def test_no_permit_is_taken_unless_armed_and_unlatched(
    core: GuardCore, change: Callable[[GuardCore], object], says: str
) -> None:
    change(core)
    with pytest.raises(NotPermitted, match=says):
        core.admit(Permit(1, "heat", WRITE.frame, core.epoch, 11.0), 10.0)


@pytest.mark.parametrize("late_s", [1e-6, 60.0, float("nan")])
def test_a_permit_that_is_to_live_too_long_is_not_taken(core: GuardCore, late_s: float) -> None:
    last_s = 10.0 + PERMIT_S_MAX
    core.admit(Permit(1, "heat", WRITE.frame, core.epoch, last_s), 10.0)
    with pytest.raises(NotPermitted, match="live longer"):
        core.admit(Permit(2, "heat", WRITE.frame, core.epoch, last_s + late_s), 10.0)


# ---- reads


def test_a_frame_that_reads_needs_no_permit_even_while_latched(core: GuardCore) -> None:
    core.trip("nothing")
    assert core.send("heat", READ, 0.0, None) == READ.frame
    assert core.log is not None
    assert core.log[-1].source is Source.READ


@pytest.mark.promise(4)
@given(data=st.data())
@settings(deadline=None, max_examples=100)
def test_a_read_with_any_byte_changed_added_or_left_out_is_refused(data: st.DataObject) -> None:
    frame = rtu(1, 3, 0, 1, 0, 5)
    core = GuardCore({"p": {frame}}, {})
    core.log = []
    at = data.draw(st.integers(0, len(frame) - 1))
    other = data.draw(
        st.sampled_from([frame[:at] + frame[at + 1 :], frame[:at] + b"\0" + frame[at:], b""])
        | st.integers(1, 255).map(
            lambda mask: frame[:at] + bytes([frame[at] ^ mask]) + frame[at + 1 :]
        )
    )
    refused(core, lambda: core.send("p", Request(other, Rtu(1, 3, 10), 0.3), 0.0, None))


def test_a_read_of_one_port_is_no_read_of_another() -> None:
    core = GuardCore({"a": {b"A\r"}, "b": {b"B\r"}}, {})
    refused(core, lambda: core.send("b", READ, 0.0, None))


def test_a_port_has_one_exchange_at_a_time(core: GuardCore) -> None:
    core.send("heat", READ, 0.0, None)
    refused(core, lambda: core.send("heat", READ, 0.1, None))
    assert core.send("gas", READ, 0.1, None) == READ.frame


# ---- procedures


@pytest.mark.parametrize("state", ["idle", "sent", "drain", "latched", "disarmed", "tripped"])
def test_a_procedure_is_never_refused_and_leaves_in_order_of_hazard(state: str) -> None:
    core = armed()
    if state == "sent":
        core.send("heat", READ, 0.0, None)
    if state == "drain":
        core.send("heat", READ, -1.0, None)
        core.ports["heat"].expire(0.0)
        assert core.ports["heat"].state is PortState.DRAIN
    if state == "latched":
        core.latched = True
    if state == "disarmed":
        core.disarm()
    if state == "tripped":
        core.trip("vent")
    assert core.log is not None
    core.log.clear()
    permitless_epoch = core.epoch
    assert core.trip("stop") == ("heat", "gas")
    assert core.latched
    assert core.epoch > permitless_epoch
    now = 0.0
    for _ in range(20):
        for name, port in core.ports.items():
            if core.send_safe(name, now) is not None:
                assert port.feed(b"ok\r", now) is not None
            port.expire(now)
        now += 0.1
    sent = [(each.port, each.frame) for each in core.log if each.source is Source.PROCEDURE]
    for name in ("heat", "gas"):
        wanted = [each.request.frame for each in SAFE if each.port == name]
        assert [frame for port, frame in sent if port == name] == wanted


def test_a_procedure_waits_for_the_exchange_on_the_wire_and_for_no_quiet(core: GuardCore) -> None:
    core.send("heat", READ, 0.0, None)
    core.trip("stop")
    assert core.send_safe("heat", 0.1) is None
    assert core.send_safe("gas", 0.1) == SHUT[1].frame
    core.ports["heat"].expire(0.3)
    assert core.ports["heat"].state is PortState.DRAIN
    assert core.send_safe("heat", 0.3) == SHUT[0].frame
    finished = core.ports["heat"].feed(b"ok\r", 0.35)
    assert finished is not None
    assert finished.safe == SAFE[0]


def test_half_a_reply_and_then_silence_is_not_called_none() -> None:
    for came, said in [
        (b"A +", "bad reply: short, 3 bytes within 0.3 s (41 20 2b)"),
        (b"", "no reply within 0.3 s"),
    ]:
        core = armed()
        core.send("heat", READ, 0.0, None)
        port = core.ports["heat"]
        assert port.feed(came, 0.1) is None
        assert whole(port.expire(0.3)) == (None, said)
        assert port.state is PortState.DRAIN


def test_no_user_sends_while_a_procedure_waits(core: GuardCore) -> None:
    core.trip("stop")
    refused(core, lambda: core.send("heat", READ, 0.0, None))
    refused(core, lambda: core.send("gas", READ, 0.0, None))


def test_a_procedure_that_follows_replaces_what_still_waits_on_its_ports(core: GuardCore) -> None:
    core.trip("stop")
    assert core.trip("vent") == ("gas",)
    assert [each.request.frame for each in core.ports["gas"].safe] == [SHUT[1].frame]
    assert len(core.ports["heat"].safe) == 2


def test_an_unknown_procedure_still_latches_and_voids(core: GuardCore) -> None:
    permit = core.permit("heat", WRITE.frame, 0.0)
    with pytest.raises(KeyError):
        core.trip("no such thing")
    assert core.latched
    refused(core, lambda: core.send("heat", WRITE, 0.0, permit))


def test_a_procedure_leaves_in_order_of_hazard_however_it_was_written() -> None:
    core = GuardCore({"heat": (), "gas": ()}, {"stop": tuple(reversed(SAFE))})
    assert core.procedures == {"stop": tuple(reversed(SAFE))}
    assert core.trip("stop") == ("heat", "gas")
    assert [list(port.safe) for port in core.ports.values()] == [
        [SAFE[0], SAFE[2]],
        [SAFE[1], SAFE[3]],
    ]
    core.send_safe("heat", 0.0)
    assert core.trip("stop") == ("heat", "gas")
    assert list(core.ports["heat"].safe) == [SAFE[0], SAFE[2]], "whole each time"


def test_steps_sent_again_leave_in_order_of_hazard_without_a_trip(core: GuardCore) -> None:
    epoch = core.epoch
    core.ports["gas"].safe.append(SAFE[3])
    assert core.queue([SAFE[2], SAFE[1], SAFE[0]]) == ("heat", "gas")
    waiting = {name: list(port.safe) for name, port in core.ports.items()}
    assert waiting == {"heat": [SAFE[0], SAFE[2]], "gas": [SAFE[1]]}, "they replace what waited"
    assert (core.latched, core.epoch) == (False, epoch)
    assert core.queue([SAFE[1]]) == ("gas",)
    assert list(core.ports["heat"].safe) == [SAFE[0], SAFE[2]], "the other port keeps its own"


def test_nothing_to_send_is_nothing_sent(core: GuardCore) -> None:
    assert core.send_safe("heat", 0.0) is None
    assert core.trip("nothing") == ()


def test_a_guard_without_a_log_sends_the_same(core: GuardCore) -> None:
    core.log = None
    assert core.send("gas", READ, 0.0, None) == READ.frame
    core.trip("stop")
    assert core.send_safe("heat", 0.0) == SHUT[0].frame


def test_a_port_cannot_end_what_it_never_began() -> None:
    with pytest.raises(RuntimeError, match="never began"):
        armed().ports["heat"]._end(b"", "", 0.0, drain_s=0.0)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["read", "write", "bare", "old", "feed", "late", "trip", "reset", "arm", "disarm"]
        ),
        st.sampled_from(["heat", "gas"]),
        st.floats(0.0, 1.0),
    ),
    max_size=60,
)


@pytest.mark.promise(4)
@given(steps=STEPS)
@settings(deadline=None, max_examples=150)
def test_whatever_is_tried_only_reads_permitted_frames_and_procedures_leave(
    steps: list[tuple[str, str, float]],
) -> None:
    core = armed()
    assert core.log is not None
    now = 0.0
    old: list[Permit] = []
    for what, name, wait_s in steps:
        now += wait_s
        port = core.ports[name]
        sent = len(core.log)
        source = None
        try:
            if what == "read":
                source = Source.READ
                core.send(name, READ, now, None)
            elif what == "write":
                source = Source.PERMIT
                permit = core.permit(name, WRITE.frame, now)
                old.append(permit)
                assert core.armed
                assert not core.latched
                core.send(name, WRITE, now, permit)
                old.append(permit)
            elif what == "bare":
                core.send(name, WRITE, now, None)
            elif what == "old" and old:
                stale = replace(old[-1], port=name)
                core.new_epoch()
                core.send(name, WRITE, now, stale)
            elif what == "feed":
                port.feed(b"A\r", now)
            elif what == "late":
                port.expire(now)
            elif what == "trip":
                source = Source.PROCEDURE
                core.trip("stop")
                core.send_safe(name, now)
            elif what in ("reset", "arm", "disarm"):
                getattr(core, what)()
        except NotPermitted:
            assert len(core.log) == sent
            continue
        new = core.log[sent:]
        assert all(each.source is source for each in new)
        assert len(new) <= 1


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
    said, error = whole(core.ports["relays"].feed(reply, 0.1))
    assert (said, error == "") == (reply, done)
    assert done or reply.hex(" ") in error, "logged with its bytes"


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
