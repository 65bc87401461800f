"""What a person asks of a line or a run, by hand, hold, resume and stop, each rule by itself."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

from labharness.core.vocabulary import Cause, Ending
from labharness.core.vocabulary.texts import Text
from labharness.journal import JournalFailed
from labharness.line import NoReply, NotArmed
from labharness.safety.kernel import Mode
from labharness.work.admission.approval import NotApproved
from labharness.work.desk import by_hand as hands
from labharness.work.desk.admitting import Admitting
from labharness.work.desk.by_hand import ByHand, Nobody, _after
from labharness.work.desk.desk import Desk
from labharness.work.desk.progress_reporter import ProgressReporter

READS_MAX, TEXT_MAX = 8, 500  # as promised, not as imported

NAN = float("nan")


class HandLine:
    """What a person's request meets of a line: tracks, values, a journal and a trip."""

    def __init__(self) -> None:
        self.warned: list[str] = []
        self.tripped: list[tuple[Any, bool]] = []
        self.noted: list[Any] = []
        self.reading = asyncio.Event()
        self.values = {"furnace.temperature": 21.04, "relay.estop": 1.0, "relay.bits": 7.0}
        specs = {
            "furnace": {"temperature": "degC", "setpoint": "degC"},
            "relay": {"estop": "", "bits": ""},
        }
        self.instruments = {
            name: SimpleNamespace(
                driver=SimpleNamespace(
                    channels={each: SimpleNamespace(unit=unit) for each, unit in units.items()}
                )
            )
            for name, units in specs.items()
        }
        tracks = {
            "furnace.temperature": SimpleNamespace(at_s=97.96),
            "furnace.setpoint": SimpleNamespace(at_s=float("-inf")),  # never read
            "relay.estop": SimpleNamespace(at_s=100.0),
            "relay.bits": SimpleNamespace(at_s=100.0),  # no unit, not shown, not watched
        }
        self.memory = SimpleNamespace(
            tracks=tracks,
            mode=Mode.RUNNING,
            trip=None,
            envelope=SimpleNamespace(procedure_of={Cause.COMMUNICATION: "silence"}),
        )
        self.envelope = SimpleNamespace(watches={"relay.estop": None})
        self.events = SimpleNamespace(on_warning=self.warned.append)
        self.journal = SimpleNamespace(append=lambda *said: self.noted.append(said))
        self.trip_response = SimpleNamespace(
            trip=lambda trip, disarmed: self.tripped.append((trip, disarmed))
        )
        self.clock = SimpleNamespace(now_s=lambda: 100.0, answered=self.answered)

    @contextmanager
    def answered(self) -> Iterator[None]:
        yield

    def latest(self, channel: str) -> float:
        return self.values.get(channel, NAN)

    async def read(self, channel: str, *, patient: bool) -> float:
        assert patient, "what the line asks itself comes first"
        await self.reading.wait()
        return self.latest(channel)


class Aborted:
    """A run that writes down why it was aborted."""

    def __init__(self) -> None:
        self.reasons: list[str] = []

    def abort(self, reason: str) -> None:
        self.reasons.append(reason)


def by_hand() -> tuple[Any, Any, ByHand]:
    line: Any = HandLine()
    run: Any = Aborted()
    return line, run, ByHand(line, run)


def test_a_person_sees_the_channels_that_have_a_unit_a_known_name_or_a_watch() -> None:
    line, _, hand = by_hand()
    assert hand._readings() == {
        "furnace.temperature": [21.04, "degC", 2.0],
        "relay.estop": [1.0, "", 0.0],
    }
    line.values.clear()
    assert hand._readings()["furnace.temperature"] == [None, "degC", 2.0], "unknown, not a number"


def test_so_many_readings_wait_and_the_next_is_refused_until_one_has_come() -> None:
    async def main() -> None:
        line, _, hand = by_hand()
        ask = {"do": "read", "channel": "furnace.temperature"}
        waits = [asyncio.ensure_future(hand.answer(ask)) for _ in range(READS_MAX)]
        await asyncio.sleep(0)
        refused = await hand.answer(ask)
        assert (refused["ok"], str(READS_MAX) in refused["error"]) == (False, True)
        line.reading.set()
        told = {"ok": True, "channel": "furnace.temperature", "value": 21.04, "unit": "degC"}
        assert await asyncio.gather(*waits) == [told] * READS_MAX
        line.values.clear()
        assert await hand.answer(ask) == {**told, "value": None}

    asyncio.run(main())


@pytest.mark.parametrize("disk", ["whole", "full"])
@pytest.mark.parametrize("mode", [Mode.RUNNING, Mode.DISARMED])
def test_a_line_that_no_person_can_reach_is_made_safe_and_a_run_that_would_arm_it_ends(
    mode: Mode, disk: str
) -> None:
    line, run, hand = by_hand()
    line.memory.mode = mode
    if disk == "full":
        line.events.on_warning = raising(JournalFailed("full"))
    hand.lose_door("the socket is gone")
    ((trip, disarmed),) = line.tripped
    assert (trip.cause, trip.procedure, trip.channel) == (
        Cause.COMMUNICATION,
        "silence",
        "state_dir",
    )
    assert (trip.at_s, trip.detail, disarmed) == (100.0, "the socket is gone", True)
    assert run.reasons == (["the socket is gone"] if mode is Mode.DISARMED else [])
    assert line.warned == ([] if disk == "full" else ["the socket is gone"])


def raising(why: Exception) -> Any:
    def fail(*said: object) -> None:
        raise why

    return fail


@pytest.mark.parametrize(
    ("channel", "named"),
    [(None, "channel"), (7, "channel"), (" ", "channel"), ("x" * (TEXT_MAX + 1), "channel")],
)
def test_a_request_with_a_name_that_is_none_is_refused_by_it(channel: object, named: str) -> None:
    _, _, hand = by_hand()
    refused = asyncio.run(hand.answer({"do": "read", "channel": channel}))
    assert not refused["ok"]
    assert named in refused["error"]
    assert str(TEXT_MAX) in refused["error"]


@pytest.mark.parametrize("do", ["abort", "hold", "resume"])
def test_where_nothing_runs_no_person_may_think_that_it_was_stopped(do: str) -> None:
    async def ask() -> None:
        found = getattr(Nobody(), do)("now")
        await found

    with pytest.raises(NotArmed) as refused:
        asyncio.run(ask())
    code = "by_hand.nobody_stop" if do == "abort" else "by_hand.nobody"
    assert refused.value.args[0] == Text(code)


def test_a_request_to_a_person_names_its_step_until_somebody_has_done_it() -> None:
    told: list[tuple[str, Any]] = []
    reporter: Any = SimpleNamespace(
        step=SimpleNamespace(instruction_id="load"),
        asked_step="",
        _session=SimpleNamespace(event=lambda kind, data: told.append((kind, data))),
        _line=SimpleNamespace(events=SimpleNamespace(warnings=[])),
    )
    ProgressReporter.asked(reporter, "Load it", {"boat": 2})
    assert reporter.asked_step == "load"
    ProgressReporter.confirmed(reporter, "Ann")
    assert reporter.asked_step == ""
    reporter.step = None
    ProgressReporter.asked(reporter, "Close it", {})
    ProgressReporter.warned(reporter, "slow")
    assert reporter.asked_step == ""
    assert reporter._line.events.warnings == ["slow"]

    def asked(message: str, action: str, about: object) -> tuple[str, Any]:
        details = {"required_action": action, "about": about}
        return "log", {"level": "info", "message": message, "details": details}

    done = {"level": "info", "message": Text("operator.done", by="Ann")}
    assert told == [
        asked("Load it", "confirm:load", {"boat": 2}),
        ("log", {**done, "details": {"confirmed_by": "Ann"}}),
        asked("Close it", "confirm:", {}),
        ("warning", {"code": "line", "message": "slow", "details": {}}),
    ]


@pytest.mark.parametrize("tripped", [False, True])
def test_a_stop_reaches_the_run_first_and_says_what_is_in_force(*, tripped: bool) -> None:
    line, run, hand = by_hand()
    repeated: list[str] = []
    line.trip_response.repeat = lambda: repeated.append("again")
    if tripped:
        line.memory.trip = SimpleNamespace(procedure="purge", detail="a leak")
    asked = {"do": "stop", "by": "Ann", "reason": "smoke"}
    said = asyncio.run(hand.answer(asked))
    text = Text("by_hand", what=Text("by_hand.stop"), by="Ann", reason=_after("smoke"))
    assert (run.reasons, line.warned, repeated) == ([text], [text], ["again"])
    assert line.noted == [("by_hand", {"text": text}, 100.0)]
    again = Text("stop.again", procedure="purge")
    stands = Text("stop.tripped", why="a leak", again=again)
    assert said == {"ok": True, "said": stands if tripped else Text("stop.requested")}


@pytest.mark.parametrize("mode", [Mode.DISARMED, Mode.RUNNING])
@pytest.mark.parametrize("owned", [False, True])
@pytest.mark.parametrize("trips", [False, True])
def test_a_request_to_make_safe_runs_the_procedure_ends_what_would_arm_and_says_what_is_open(
    monkeypatch: pytest.MonkeyPatch, mode: Mode, *, owned: bool, trips: bool
) -> None:
    line: Any
    line, run, _ = by_hand()
    active: Any = run if owned else Nobody()
    hand = ByHand(line, active)
    monkeypatch.setattr(hands, "stop_procedure", lambda memory, latched, now_s: "purge")
    verification = SimpleNamespace(procedure="purge", unverified=lambda: ("valve",))
    done: list[str] = []

    def trip(found: Any, disarmed: bool) -> None:
        line.tripped.append((found, disarmed))
        line.memory.trip = found if trips else None

    async def make_safe(procedure: str) -> Any:
        done.append(f"make safe {procedure}")
        return verification

    async def hot(procedure: str) -> tuple[str, ...]:
        done.append(f"hot {procedure}")
        return ("furnace",)

    async def verified() -> None:
        done.append("verified")

    line.memory.mode = mode
    line.guard = SimpleNamespace(latch=SimpleNamespace(trip="latched"))
    line.trip_response = SimpleNamespace(
        trip=trip,
        repeat=lambda: done.append("repeat"),
        make_safe=make_safe,
        hot=hot,
        verified=verified,
        verifications=[verification],
    )
    said = asyncio.run(hand.answer({"do": "safe", "by": "Ann", "reason": ""}))
    ((found, disarmed),) = line.tripped
    why = Text("by_hand", what=Text("by_hand.safe"), by="Ann", reason="")
    assert (found.cause, found.procedure, found.channel) == (
        Cause.STOP_REQUEST,
        "purge",
        "by_hand",
    )
    assert (found.at_s, found.detail, disarmed) == (100.0, why, owned)
    after = ["hot purge", "verified"] if trips else ["make safe purge", "hot purge"]
    assert done == ["repeat", *after]
    ends = owned and mode is Mode.DISARMED
    assert run.reasons == ([why] if ends else [])
    assert said == {
        "ok": True,
        "hot": ["furnace"],
        "procedure": "purge",
        "unverified": ["valve"],
        "latched": True,
        "ended": ends,
    }


@pytest.mark.parametrize("executing", [False, True])
@pytest.mark.parametrize("state", ["RUNNING", "PAUSED"])
@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("on", [False, True])
def test_a_run_is_held_once_at_a_step_that_can_stand_still(
    state: str, *, executing: bool, waits: bool, on: bool
) -> None:
    held: list[str] = []

    async def hold(reason: str) -> None:
        held.append(reason)

    async def main() -> str:
        loop = asyncio.get_running_loop()
        desk: Any = SimpleNamespace(
            _executing=executing,
            _holding=SimpleNamespace() if waits else None,
            session=SimpleNamespace(state=state),
            _hold=hold,
            _clock=SimpleNamespace(loop=loop),
            line=SimpleNamespace(holding=SimpleNamespace(on=on, said=lambda: "held now")),
            _reporter=SimpleNamespace(doing="purging"),
        )
        return await Desk.hold(desk, "a look")

    if executing and state == "RUNNING" and not waits:
        said = asyncio.run(main())
        assert said == ("held now" if on else Text("hold.soon", doing="purging"))
        assert held == ["a look"]
    else:
        with pytest.raises(NotArmed) as refused:
            asyncio.run(main())
        assert refused.value.args[0] == Text("hold.nothing")
        assert held == []


@pytest.mark.promise(9)
@pytest.mark.parametrize(
    ("last", "running", "holdable"),
    [
        (None, (), False),
        (False, (), False),
        (True, (), True),
        (True, (True, True), True),
        (True, (False, True), False),
        (True, (True, False), False),
    ],
)
def test_only_steps_that_all_say_so_can_stand_still(
    last: bool | None, running: Sequence[bool], *, holdable: bool
) -> None:
    steps = [SimpleNamespace(holdable=each) for each in running]
    step = None if last is None else SimpleNamespace(holdable=last)
    reporter: Any = SimpleNamespace(step=step, _running=dict(enumerate(steps)))
    asked: Any = ProgressReporter.holdable
    assert asked.fget(reporter) is holdable


@pytest.mark.parametrize(
    ("fault", "ends", "told"),
    [
        (None, False, "PAUSED a look"),
        (None, True, Text("hold.too_late")),
        (NotArmed("read-only"), False, Text("hold.not", why="read-only")),
    ],
)
def test_a_hold_waits_for_its_step_and_says_where_it_comes_too_late(
    fault: Exception | None, told: object, *, ends: bool
) -> None:
    said: list[object] = []
    ticks: list[int] = []

    async def hold(holdable: object) -> bool:
        if fault is not None:
            raise fault
        return len(ticks) == 2

    async def next_tick() -> None:
        ticks.append(1)
        desk._executing = not ends

    desk: Any = SimpleNamespace(
        _executing=True,
        _holding="waits",
        line=SimpleNamespace(hold=hold, next_tick=next_tick),
        session=SimpleNamespace(become=lambda state, reason: said.append(f"{state} {reason}")),
        _reporter=SimpleNamespace(warned=said.append),
    )
    asyncio.run(Desk._hold(desk, "a look"))
    assert (said, desk._holding) == ([told], None)
    assert len(ticks) == (0 if fault else 1 if ends else 2)


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("state", ["RUNNING", "PAUSED"])
@pytest.mark.parametrize("executing", [False, True])
@pytest.mark.parametrize("tripped", [False, True])
def test_a_run_goes_on_only_from_a_hold_on_a_line_that_has_not_tripped(
    state: str, *, waits: bool, executing: bool, tripped: bool
) -> None:
    done: list[str] = []
    desk: Any = SimpleNamespace(
        _holding=SimpleNamespace(cancel=lambda: done.append("withdrawn")) if waits else None,
        _executing=executing,
        session=SimpleNamespace(
            state=state, become=lambda state, reason: done.append(f"{state} {reason}")
        ),
        line=SimpleNamespace(
            check=raising(NotArmed("tripped")) if tripped else lambda: None,
            start=lambda: done.append("start"),
        ),
    )
    goes_on = state == "PAUSED" and executing and not tripped
    if waits or goes_on:
        asyncio.run(Desk.resume(desk, "seen"))
        assert done == (["withdrawn"] if waits else ["RUNNING seen", "start"])
        return
    with pytest.raises(NotArmed) as refused:
        asyncio.run(Desk.resume(desk, "seen"))
    told = "tripped" if tripped else Text("hold.not_held", state=state)
    assert (refused.value.args[0], done) == (told, [])


@pytest.mark.parametrize("act", ["start", "hold", "reset", "upload", "play", 7])
def test_a_program_of_an_instrument_is_stored_or_started_by_a_named_person(
    monkeypatch: pytest.MonkeyPatch, act: Any
) -> None:
    line, _, hand = by_hand()
    asked: list[object] = []

    def of(name: str) -> Any:
        async def do(instrument: str) -> Any:
            asked.append(f"{name} {instrument}")
            return SimpleNamespace(ending=Ending.CONFIRMED, detail="")

        return do

    async def upload(instrument: str, program: object) -> Any:
        asked.append((instrument, program))
        return SimpleNamespace(ending=Ending.MISMATCH, detail="segment 2", written=3)

    line.check = lambda: asked.append("check")
    line.programs = SimpleNamespace(upload=upload, **{n: of(n) for n in ("start", "hold", "reset")})
    program = SimpleNamespace(segments=("up", "down"))
    monkeypatch.setattr(hands, "read_program", lambda found: program)
    hand = ByHand(line, hand._active)
    said = asyncio.run(
        hand.answer({"do": "program", "instrument": "furnace", "act": act, "by": "Ann"})
    )
    if act in ("play", 7):
        why = Text("by_hand.program_act", acts="start, hold, reset", act=act)
        assert said == {"ok": False, "error": str(why)}
        assert (asked, line.noted, line.warned) == (["check"], [], [])
        return
    stored = act == "upload"
    ending = Ending.MISMATCH if stored else Ending.CONFIRMED
    more = {"written": 3} if stored else {}
    told = {"instrument": "furnace", "act": act, "ending": ending.value, **more}
    assert said == {"ok": True, **told, "detail": "segment 2" if stored else ""}
    assert asked == ["check", ("furnace", program) if stored else f"{act} furnace"]
    wished = Text("by_hand.program", act=str(act), instrument="furnace")
    if stored:
        wished = Text("by_hand.upload", count=2, instrument="furnace")
    text = Text("by_hand", what=wished, by="Ann", reason="")
    assert line.noted == [("by_hand", {"text": text}, 100.0)]
    (ended,) = line.warned
    shown = "MISMATCH" if stored else "confirmed"
    assert (ended.code, ended.params["ending"]) == ("by_hand.ended", shown)
    assert ("segment 2" in ended) is stored


@pytest.mark.parametrize("takes", [False, True])
@pytest.mark.parametrize("step", ["load", "close"])
@pytest.mark.parametrize("waits", ["load", ""])
@pytest.mark.parametrize("held", [False, True])
def test_a_manual_step_is_confirmed_by_its_own_name_on_a_line_that_is_not_held(
    step: str, waits: str, *, takes: bool, held: bool
) -> None:
    line, run, _ = by_hand()
    line.check = lambda: None
    line.holding = SimpleNamespace(on=held)
    done: list[str] = []
    run.about = lambda: {"asked_step": waits}
    active: Any = run
    hand = ByHand(line, active, done.append if takes else None)
    said = asyncio.run(hand.answer({"do": "confirm", "by": "Ann", "step": step}))
    wrong = (
        Text("by_hand.confirms_there")
        if not takes
        else Text("by_hand.other_step", step=step, waits=waits or "-")
        if step != waits
        else Text("by_hand.held")
        if held
        else None
    )
    assert said == ({"ok": False, "error": str(wrong)} if wrong else {"ok": True, "said": step})
    assert done == ([] if wrong else ["Ann"])
    text = Text("by_hand", what=Text("by_hand.confirm", step=step), by="Ann", reason="")
    assert line.noted == ([] if wrong else [("by_hand", {"text": text}, 100.0)])


def test_a_command_by_hand_that_fails_is_told_with_its_end_to_all_that_watch() -> None:
    line, _, hand = by_hand()

    async def perform(command: object) -> None:
        raise NoReply("the furnace is silent")

    line.check, line.perform = lambda: None, perform
    asked = {"do": "set", "channel": "furnace.setpoint", "value": 60, "unit": "degC", "by": "Ann"}
    said = asyncio.run(hand.answer(asked))
    assert said["error"] == "the furnace is silent"
    (told,) = line.warned
    assert (told.params["ending"], told.params["detail"]) == ("FAILED", _after(said["error"]))


def test_a_tick_tells_each_setpoint_above_zero_beside_what_is_measured() -> None:
    def instrument(*channels: str) -> object:
        rows = {each: SimpleNamespace(readback=f"{each}_shown") for each in channels}
        return SimpleNamespace(driver=SimpleNamespace(channels=rows))

    latest = {
        "furnace.setpoint_shown": 700.0,
        "furnace.temperature": 690.5,
        "argon.setpoint_shown": 100.0,
        "argon.flow": 99.0,
        "vent.setpoint_shown": 0.0,
    }
    line = SimpleNamespace(
        instruments={
            "furnace": instrument("setpoint", "temperature"),
            "argon": instrument("setpoint", "flow"),
            "vent": instrument("setpoint", "flow"),
            "box": instrument("flow"),
        },
        latest=latest.__getitem__,
    )
    told: list[Any] = []
    reporter: Any = SimpleNamespace(
        _line=line,
        _session=SimpleNamespace(tell=lambda *said: told.append(said)),
        _now_s=lambda: 60.0,
        _told_s=0.0,
        left_s=5.0,
    )
    reporter._values = lambda: ProgressReporter._values(reporter)
    ProgressReporter.ticked(reporter)
    values = {"furnace.temperature": (700.0, 690.5), "argon.flow": (100.0, 99.0)}
    assert told == [("tick", {"values": values, "left_s": 5.0})]
    ProgressReporter.ticked(reporter)
    assert len(told) == 1, "once a minute"


@pytest.mark.parametrize(("standing", "expired"), [("late", True), ("late other", False)])
def test_an_approval_has_expired_where_nothing_else_lacks(
    standing: str, monkeypatch: pytest.MonkeyPatch, *, expired: bool
) -> None:
    def verify(one: Any, *asked: object) -> NotApproved:
        return NotApproved(Text("approval.none"), expired=one.id == "late")

    monkeypatch.setattr("labharness.work.admission.approval.verify", verify)
    admitting: Any = MagicMock()
    ids = standing.split()
    admitting.facts.approvals = [SimpleNamespace(capability="grow", id=each) for each in ids]
    weighed: Any = MagicMock(needs_approval=True)
    weighed.screened.declaration.name = "grow"
    found = Admitting.approve(admitting, weighed, "ana")
    assert isinstance(found, NotApproved)
    assert found.expired is expired
