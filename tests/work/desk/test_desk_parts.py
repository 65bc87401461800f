"""Each small rule of a desk by itself: persons' requests, limits of a report, ends of a run."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from labharness.core.clock import VIRTUAL_EPOCH, utc_text
from labharness.core.vocabulary import Cause, Command, Ending
from labharness.core.vocabulary.durations import format_duration
from labharness.core.vocabulary.texts import Text, several
from labharness.instruments.link import LinkLost
from labharness.journal import JournalFailed
from labharness.line import NoReply, NotArmed
from labharness.protocols.hcp.messages import ResumeFrom
from labharness.protocols.hcp.terms import Rejected
from labharness.safety.kernel import Mode
from labharness.work.admission.approval import Approved
from labharness.work.capability import Answer, NoAnswer
from labharness.work.desk import by_hand as hands
from labharness.work.desk import desk as desks
from labharness.work.desk import null_line
from labharness.work.desk.admitting import Admitting
from labharness.work.desk.by_hand import READS_MAX, TEXT_MAX, ByHand, Nobody, _after
from labharness.work.desk.closing import Closing
from labharness.work.desk.desk import Desk
from labharness.work.desk.explained import GateFound, _approval
from labharness.work.desk.left_behind import OF_A_TRIP, _step, _summary
from labharness.work.desk.making_safe import Cooled
from labharness.work.desk.progress_reporter import ProgressReporter
from labharness.work.desk.redaction import referred_in
from labharness.work.desk.results import ROWS_TOLD_MAX, SHORT_CHARACTERS, in_short
from labharness.work.desk.resuming import NotResumable, Resumption, _class_of
from labharness.work.desk.rules_record import Bar, RecordedRules, read_rules
from labharness.work.plan.executor import Status
from labharness.work.plan.instructions import ResumePoint

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


def by_hand() -> tuple[HandLine, Aborted, ByHand]:
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


def test_the_limits_of_a_run_are_read_as_bars_on_both_sides() -> None:
    trip = {"name": "hot", "channel": "f.t", "unit": "degC", "source": "s"}
    warns = {"name": "low", "channel": "m.p", "unit": "Pa", "source": "t"}
    limit = {"channel": "f.sp", "readback": "f.rb", "unit": "degC", "high": 9.0, "source": "u"}
    plain = {**limit, "channel": "m.sp", "readback": "", "unit": "sccm"}
    found = read_rules(
        {
            "watched": {"f.t": "degC"},
            "trips": [
                {**trip, "low": None, "high": 800.0, "warns_only": False},
                {**warns, "low": 0.0, "high": 5.0, "warns_only": True},
            ],
            "limits": [limit, plain],
        }
    )
    assert found == RecordedRules(
        units={"f.t": "degC"},
        setpoints={"f.sp": "f.rb", "m.sp": "m.sp"},
        bars=(
            Bar(**trip, value=800.0, trips=True, below=False),
            Bar(**warns, value=0.0, trips=False, below=True),
            Bar(**warns, value=5.0, trips=False, below=False),
            Bar(
                name="f.sp",
                channel="f.sp",
                unit="degC",
                value=9.0,
                trips=False,
                below=False,
                source="u",
            ),
            Bar(
                name="m.sp",
                channel="m.sp",
                unit="sccm",
                value=9.0,
                trips=False,
                below=False,
                source="u",
            ),
        ),
    )
    assert read_rules({}) == RecordedRules({}, {}, ())


@pytest.mark.parametrize("warm", ["", "the furnace"])
@pytest.mark.parametrize("unverified", [(), ("valve",)])
@pytest.mark.parametrize("tripped", ["", "leak"])
def test_the_end_of_a_watch_is_safe_if_it_is_cold_and_verified_and_is_read_back(
    warm: str, unverified: tuple[str, ...], tripped: str
) -> None:
    end = Cooled(warm, unverified, tripped, 9.0, "below 60")
    assert end.safe is (not warm and not unverified)
    assert end.to_json()["cold"] is (not warm)
    assert Cooled.of(end.to_json()) == end
    older = {name: value for name, value in end.to_json().items() if name != "below"}
    assert Cooled.of(older).below == ""
    for part in (warm, *unverified, tripped):
        assert part in end.text


@pytest.mark.parametrize(
    ("outputs", "found"),
    [
        ({"a": "hcp://s/r#/a", "b~/": "hcp://s/r#/b~0~1"}, "hcp://s/r"),
        ({"a": "hcp://s/r#/a", "b": 7}, ""),
        ({"a": "hcp://s/r#/a", "b": "hcp://s/other#/b"}, ""),
        ({"a": "http://s/r#/a"}, ""),
        ({"a": "hcp://s/r#/b"}, ""),
        ({"a": 7}, ""),
        ({}, ""),
    ],
)
def test_outputs_are_referred_to_where_each_stands_in_one_artifact(
    outputs: Mapping[str, Any], found: str
) -> None:
    assert referred_in(outputs) == found


@pytest.mark.parametrize(
    ("before", "place"),
    [
        ({}, 1),
        ({"constraints": None}, 1),
        ({"constraints": {}}, 1),
        ({"constraints": {"data_classification": "T1"}}, 0),
        ({"constraints": {"data_classification": "T4"}}, 3),
    ],
)
def test_an_earlier_run_that_declared_no_class_has_that_of_undeclared_data(
    before: Mapping[str, Any], place: int
) -> None:
    assert _class_of(before) == place


@pytest.mark.parametrize("ask", ["abort", "time_out"])
@pytest.mark.parametrize("running", [False, True])
@pytest.mark.parametrize("ends", [False, True])
def test_a_run_is_ended_once_and_only_while_it_runs(ask: str, *, running: bool, ends: bool) -> None:
    cancelled: list[str] = []
    task = SimpleNamespace(cancel=lambda: cancelled.append(ask)) if running else None
    desk: Any = SimpleNamespace(_running=task, _ends=lambda: ends, _abort_reason="", _silence=None)
    getattr(Desk, ask)(desk, "enough")
    taken = running and not ends
    assert cancelled == ([ask] if taken else [])
    assert desk._abort_reason == ("enough" if taken and ask == "abort" else "")
    assert str(desk._silence) == ("enough" if taken and ask == "time_out" else "None")


@pytest.mark.parametrize("why", [LinkLost("no port"), NoReply("silent"), NotArmed("read-only")])
def test_a_line_that_does_not_open_rejects_its_task_with_what_helps(why: Exception) -> None:
    desk: Any = SimpleNamespace(_resumption=None, facts=SimpleNamespace(lab_option=" --lab x"))

    async def open_line() -> None:
        raise why

    desk.line = SimpleNamespace(open=open_line)
    payload: Any = SimpleNamespace(resume_from=None)
    weighed: Any = SimpleNamespace(risk=SimpleNamespace(level="R3"))
    found: Any = asyncio.run(Desk._unfit(desk, payload, weighed))
    assert (found.reason_code, found.assessed_risk_level) == ("resource_unavailable", "R3")
    assert found.reason_message == Text("line.unusable", why=str(why))
    assert found.suggestion == Text("advice.which_instrument", lab=" --lab x")


@pytest.mark.parametrize("wrong", ["", "layers is missing"])
@pytest.mark.parametrize("found", [Answer, NoAnswer])
def test_an_answer_without_what_was_asked_for_is_none_and_a_failure_keeps_its_own_reason(
    monkeypatch: pytest.MonkeyPatch, found: type, wrong: str
) -> None:
    monkeypatch.setattr("labharness.work.desk.closing.as_asked", lambda submission, answer: answer)
    monkeypatch.setattr("labharness.work.desk.closing.unfit", lambda submission, outputs: wrong)
    answer = NoAnswer("no film", {"n": 1}, (), "grow longer")
    if found is Answer:
        answer = SimpleNamespace(outputs={"n": 1}, artifacts=("map",))  # type: ignore[assignment]
        monkeypatch.setattr("labharness.work.desk.closing.Answer", SimpleNamespace)
    kept: list[object] = []
    closing: Any = SimpleNamespace(
        keep=kept.append,
        completed=lambda answer, summary: ("completed", answer),
        failed=lambda why, records, answer, summary: ("failed", str(why), answer),
    )
    capability = SimpleNamespace(answer=lambda records, constraints: answer)
    screened = SimpleNamespace(submission=SimpleNamespace(intent="i"), confidence_threshold=0.5)
    weighed: Any = SimpleNamespace(screened=screened, capability=capability)
    said: Any = Closing.answered(closing, weighed, (), None, {})
    assert kept == [answer.artifacts]
    if found is NoAnswer:
        assert said[0] == "failed"
        assert "no film" in said[1]
        assert said[2] is answer
    elif wrong:
        told = NoAnswer(wrong, {"n": 1}, ("map",), Text("advice.outputs"))  # type: ignore[arg-type]
        assert said[0] == "failed"
        assert wrong in said[1]
        assert said[2] == told
    else:
        assert said == ("completed", answer)


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


def test_a_result_is_kept_first_and_then_told_in_short_with_its_record() -> None:
    told: list[tuple[str, Any]] = []
    kept: list[Any] = []

    async def keep(*result: object) -> int:
        kept.append(result)
        return 12

    reporter: Any = SimpleNamespace(
        step=SimpleNamespace(instruction_id="map"),
        _results=SimpleNamespace(keep=keep),
        _session=SimpleNamespace(event=lambda kind, data: told.append((kind, data))),
    )
    asyncio.run(ProgressReporter.measured(reporter, "raman", "power", {"x": 1}, 3.5))
    reporter.step = None
    asyncio.run(ProgressReporter.measured(reporter, "raman", "power", {"x": 1}, 3.5))
    assert kept == [(step, "raman", "power", {"x": 1}, 3.5) for step in ("map", "")]
    data = {"instrument": "raman", "record": 12, "about": {"x": 1}, "result": 3.5}
    assert told == [
        (
            "intermediate_result",
            {"result_type": "power", "data": {"step": step, **data}, "is_partial": True},
        )
        for step in ("map", "")
    ]


def test_a_line_without_instruments_does_nothing_and_knows_nothing() -> None:
    clock: Any = SimpleNamespace(now_s=lambda: 0.0)
    line: Any = null_line.NullLine(clock)
    command = Command("furnace.setpoint", 1.0, "degC")
    refused = asyncio.run(line.perform(command))
    assert (refused.command, refused.ending) == (command, Ending.REFUSED)
    assert refused.detail == Text("no_line.perform")
    for ask in (line.read("furnace.temperature"), line.query("raman", "power")):
        with pytest.raises(ConnectionError) as none:
            asyncio.run(ask)
        assert none.value.args[0] == Text("no_line.perform")
    absent: Any = null_line.Absent()
    for ask in (line.by_hand("load", None), absent.confirm("load", "Load", {})):
        with pytest.raises(PermissionError) as nobody:
            asyncio.run(ask)
        assert nobody.value.args[0] == Text("no_line.perform")
    assert line.latest("furnace.temperature") != line.latest("furnace.temperature"), "NaN"
    assert (line.latched(), line.unguarded()) == ("", ())
    request: Any = SimpleNamespace(why="who", risk_level="R4")
    rejected: Any = asyncio.run(absent.decide(request))
    told = (rejected.reason_code, rejected.reason_message, rejected.assessed_risk_level)
    assert told == ("approval_expired", "who", "R4")


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
    line, run, _ = by_hand()
    hand = ByHand(line, run if owned else Nobody())  # type: ignore[arg-type]  # stand in
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
    line.guard = SimpleNamespace(latch=SimpleNamespace(trip="latched"))  # type: ignore[attr-defined]
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


@dataclass(frozen=True)
class Spot:
    x: float


def test_a_result_of_any_kind_is_told_in_short() -> None:
    long = "x" * (SHORT_CHARACTERS + 9)
    assert in_short(long) == '"' + long[: SHORT_CHARACTERS - 1]
    fits = "x" * (SHORT_CHARACTERS - 2)  # with its quotes
    assert in_short(fits) == fits
    assert in_short(Spot(1.5)) == {"x": 1.5}
    assert in_short(Spot) == repr(Spot)
    assert in_short([NAN, 1.0]) == ["NaN", 1.0]
    assert in_short([]) == []
    points = {"points": 2, "lowest": 1, "highest": 4}
    assert in_short([[4, 1]]) == {"rows": 1, "told": [points]}
    assert in_short([[4, 1], []]) == {"rows": 2, "told": [points, {"points": 0}]}
    odd = [[4, 1], [1.0, float("inf")], ["a"]]
    assert in_short(odd)["told"] == [points, {"points": 2}, {"points": 1}]  # type: ignore[index]
    short_axis = in_short([[7], [1, 4]])
    assert short_axis["told"][1] == points, "no place of the peak"  # type: ignore[index]
    many = in_short([[1, 4]] * (ROWS_TOLD_MAX + 1))
    assert many == {"rows": ROWS_TOLD_MAX + 1, "told": [points] * ROWS_TOLD_MAX}


def resumption(holds: Mapping[str, Any], *, declared: bool = True) -> Resumption:
    point = ResumePoint(description="cold", holds=holds, again=("flush",)) if declared else None
    steps: Any = [
        SimpleNamespace(instruction_id=name, checkpoint=point if name == "grow" else None)
        for name in ("flush", "grow", "look", "tell")
    ]
    done = {"status": "COMPLETED", "started_s": 10.0, "ended_s": 20.0, "result": {"n": 1}}
    checkpoint: Any = SimpleNamespace(
        description="grown",
        at_s=50.0,
        readings={"f.t": 20.0},
        steps=(done, {**done, "ended_s": None}),
    )
    plan: Any = SimpleNamespace(instructions=tuple(steps))
    asked = ResumeFrom(session_id="s", checkpoint_id="c")
    return Resumption(asked, checkpoint, "head", plan)


def test_a_later_run_carries_out_what_is_left_and_what_its_checkpoint_asks_for_again() -> None:
    found = resumption({})
    assert found.count == 2
    assert found.remaining() == {"flush", "look", "tell"}
    first, second = found.done(130.0)
    assert (first.instruction.instruction_id, second.instruction.instruction_id) == (
        "flush",
        "grow",
    )
    assert (first.status, first.result) == (Status.COMPLETED, {"n": 1})
    assert [(each.started_s, each.ended_s) for each in (first, second)] == [
        (90.0, 100.0),
        (90.0, None),
    ]
    assert found.to_json() == {"session_id": "s", "checkpoint_id": "c", "head": "head"}
    plain = resumption({}, declared=False)
    assert plain.point == ResumePoint(description="grown")
    assert plain.remaining() == {"look", "tell"}


def test_a_line_that_is_not_as_its_checkpoint_needs_it_is_told_by_each_difference() -> None:
    bounds = {"f.t": (None, 60.0), "m.p": (10.0, None), "m.f": (1.0, 2.0), "v.open": (0.0, 0.0)}
    found = resumption(bounds)
    found.compare({"f.t": 60.0, "m.p": 10.0, "m.f": 2.0, "v.open": 0.0})
    with pytest.raises(NotResumable) as refused:
        found.compare({"f.t": 61.0, "m.p": 9.0, "m.f": 3.0})
    allowed = [
        ("f.t", 61.0, 20.0, Text("at_most", value=60.0)),
        ("m.p", 9.0, None, Text("at_least", value=10.0)),
        ("m.f", 3.0, None, Text("resume.between", low=1.0, high=2.0)),
        ("v.open", None, None, Text("resume.between", low=0.0, high=0.0)),
    ]
    texts = [
        Text("resume.differs", channel=channel, now=now, then=then, allowed=bound)
        for channel, now, then, bound in allowed
    ]
    told = Text("resume.changed", name="c", why=several(*texts))
    assert refused.value.args[0] == told


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


@pytest.mark.parametrize(
    ("step", "holdable"),
    [
        (None, False),
        (SimpleNamespace(holdable=False), False),
        (SimpleNamespace(holdable=True), True),
    ],
)
def test_only_a_step_that_says_so_can_stand_still(step: Any, *, holdable: bool) -> None:
    desk: Any = SimpleNamespace(_reporter=SimpleNamespace(step=step))
    assert Desk._holdable(desk) is holdable


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
        _holdable=None,
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


@pytest.mark.parametrize("found", ["refused", "changed", "as it was"])
def test_a_task_that_goes_on_opens_its_line_only_with_a_checkpoint_that_holds(
    monkeypatch: pytest.MonkeyPatch, found: str
) -> None:
    done: list[Any] = []
    refused = Rejected("invalid_input", "no such checkpoint")

    def compare(readings: object) -> None:
        done.append(readings)
        if found == "changed":
            raise NotResumable("resume.changed", name="c", why="hot")

    resumption = SimpleNamespace(to_json=lambda: {"head": "h"}, compare=compare)

    async def open_line() -> None:
        done.append("open")

    looked = refused if found == "refused" else resumption
    monkeypatch.setattr(desks, "look_up", lambda *said: looked)
    monkeypatch.setattr(desks, "must_begin", lambda *said: done.append(said[2]))
    monkeypatch.setattr(desks, "readings_of", lambda line: "readings")
    desk: Any = SimpleNamespace(
        _resumption=None,
        earlier=None,
        facts=SimpleNamespace(safe_procedure="safe", lab_option=""),
        line=SimpleNamespace(open=open_line),
        session=SimpleNamespace(record=lambda *said: done.append(said)),
    )
    weighed: Any = SimpleNamespace(
        planned=SimpleNamespace(instructions=None), risk=SimpleNamespace(level="R3")
    )
    payload: Any = SimpleNamespace(resume_from="c")
    said: Any = asyncio.run(Desk._unfit(desk, payload, weighed))
    if found == "refused":
        assert (said, done, desk._resumption) == (refused, [], None)
        return
    assert done == [("resumed", {"head": "h"}), "open", "safe", "readings"]
    assert desk._resumption is resumption
    why = Text("resume.changed", name="c", why="hot")
    changed = Rejected("resource_unavailable", why, "R3")
    assert said == (None if found == "as it was" else changed)


@pytest.mark.parametrize(
    ("verdict", "text"),
    [
        (None, Text("cli.no_approval")),
        (Approved(("Ann", "Bo"), "seen"), Text("cli.approved", by="Ann, Bo")),
        (SimpleNamespace(reason="R4"), Text("cli.person_approves", why="R4")),
    ],
)
def test_who_agreed_or_must_agree_is_explained(verdict: object, text: Text) -> None:
    asked: list[object] = []

    def approve(weighed: object, requester: str) -> object:
        asked.append(requester)
        return verdict

    admitting: Any = SimpleNamespace(approve=approve)
    weighed: Any = None
    assert _approval(admitting, weighed, "ana") == GateFound("approval", text, passed=True)
    assert asked == ["ana"]


@pytest.mark.parametrize("stated", [(), ("heat",)])
@pytest.mark.parametrize("action", ["wait", "ask_operator"])
@pytest.mark.parametrize("later", [None, VIRTUAL_EPOCH])
@pytest.mark.parametrize("hazards", [(), ("laser",)])
def test_a_plan_with_a_command_or_a_manual_step_is_physical(
    stated: tuple[str, ...], action: str, later: Any, hazards: tuple[str, ...]
) -> None:
    step = SimpleNamespace(action=action)
    planned = SimpleNamespace(
        duration_s=60.0,
        temperature_c_max=700.0,
        process_gases=("argon",),
        instructions=SimpleNamespace(instructions=(step,)),
    )
    attended = SimpleNamespace(next_start=lambda *said: later, cover=lambda *said: True)
    facts = SimpleNamespace(
        attended=attended, shared=False, safeguards_missing=lambda hazards, day: (hazards, day)
    )
    admitting: Any = SimpleNamespace(facts=facts, _stays_energised=lambda commands: commands)
    task: Any = SimpleNamespace(
        planned=planned, stated=stated, undeclared=("silane",), commands=("c",)
    )
    found = Admitting._risk_context(admitting, task, hazards, VIRTUAL_EPOCH)
    assert found.physical is (bool(stated) or action == "ask_operator")
    assert found.hazardous is bool(hazards)
    assert found.attended_at == ("" if later is None else utc_text(later))
    assert (found.attended, found.shared_instrument) == (True, False)
    assert str(found.safeguards_missing) == str((hazards, VIRTUAL_EPOCH.date()))
    assert (found.stays_energised, found.undeclared_gases) == (("c",), ("silane",))
    assert (found.process_gases, found.temperature_c_max) == (("argon",), 700.0)


def noted(kind: str, at_s: float, **body: Any) -> Any:
    return SimpleNamespace(kind=kind, at_s=at_s, body=body)


def event(kind: str, at_s: float, **data: Any) -> Any:
    return noted("event", at_s, event_type=kind, data=data)


def test_a_killed_run_is_summed_up_from_what_its_journal_has() -> None:
    records = [
        event("state_changed", 1.0, to_state="CREATED"),
        event("state_changed", 5.0, to_state="RUNNING"),
        event("state_changed", 9.0, to_state="PAUSED"),
        event("state_changed", 12.0, to_state="RUNNING"),
        event("warning", 13.0, message="slow"),
        event("checkpoint_created", 14.0),
        noted("step", 15.0, status="COMPLETED"),
        noted("step", 16.0, status="FAILED"),
        noted("trip", 65.0, **dict.fromkeys(OF_A_TRIP.values(), "x")),
    ]
    assert _summary(records) == {
        "duration": "PT1M",
        "steps_executed": 1,
        "checkpoints_created": 1,
        "risk_events": [dict.fromkeys(OF_A_TRIP, "x")],
        "warnings": ["slow"],
    }
    assert _summary(records[:1])["duration"] == format_duration(0.0)


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ({}, Status.SKIPPED),
        ({"status": "RUNNING", "started_s": 1.0}, Status.FAILED),
        ({"status": "COMPLETED", "started_s": 1.0, "ended_s": 2.0, "result": {}}, Status.COMPLETED),
    ],
)
def test_a_step_at_which_a_run_was_killed_has_failed(said: dict[str, Any], status: Status) -> None:
    told = {
        "instructionId": "heat",
        "action": "ramp",
        "parameters": {"to": 700},
        "dependencies": ["load"],
        "timeout": 60.0,
        "metadata": {"stage": "ramp", "description": "Heat"},
    }
    found = _step(told, said)
    assert (found.status, found.started_s, found.ended_s, found.result) == (
        status,
        said.get("started_s"),
        said.get("ended_s"),
        said.get("result"),
    )
    step = found.instruction
    assert (step.instruction_id, step.action, step.parameters) == ("heat", "ramp", {"to": 700})
    assert (step.dependencies, step.timeout_s) == (("load",), 60.0)
    assert (step.stage, step.description) == ("ramp", "Heat")
