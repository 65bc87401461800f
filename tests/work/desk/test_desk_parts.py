"""Each small rule of a desk by itself: limits of a report, ends of a run."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from labharness.core.clock import VIRTUAL_EPOCH, utc_text
from labharness.core.vocabulary import Command, Ending
from labharness.core.vocabulary.durations import format_duration
from labharness.core.vocabulary.hours import ALWAYS
from labharness.core.vocabulary.texts import Text, several
from labharness.instruments.link import LinkLost
from labharness.line import NoReply, NotArmed
from labharness.protocols.hcp.messages import ResumeFrom
from labharness.protocols.hcp.terms import Rejected
from labharness.safety.kernel import Mode
from labharness.work.admission.approval import Approved
from labharness.work.capability import Answer, NoAnswer
from labharness.work.desk import desk as desks
from labharness.work.desk import left_behind as behind
from labharness.work.desk import null_line
from labharness.work.desk.admitting import Admitting
from labharness.work.desk.checkpoint import Checkpoints
from labharness.work.desk.closing import Closing
from labharness.work.desk.desk import Desk
from labharness.work.desk.explained import GateFound, _approval, _bounds, _rights
from labharness.work.desk.left_behind import OF_A_TRIP, _step, _summary
from labharness.work.desk.making_safe import Cooled
from labharness.work.desk.progress_reporter import ProgressReporter
from labharness.work.desk.redaction import referred_in
from labharness.work.desk.results import in_short
from labharness.work.desk.resuming import NotResumable, Resumption, _class_of
from labharness.work.desk.rules_record import Bar, RecordedRules, read_rules
from labharness.work.plan import Status, StepRecord
from labharness.work.plan.instructions import ResumePoint
from rig import submission

ROWS_TOLD_MAX, SHORT_CHARACTERS = 8, 2000  # as promised, not as imported

NAN = float("nan")


def test_the_limits_of_a_run_are_read_as_bars_on_both_sides() -> None:
    trip = {"name": "hot", "channel": "f.t", "unit": "degC", "source": "s"}
    warns = {"name": "low", "channel": "m.p", "unit": "Pa", "source": "t"}
    limit = {"channel": "f.sp", "readback": "f.rb", "unit": "degC", "high": 9.0, "source": "u"}
    plain = {**limit, "channel": "m.sp", "readback": "", "unit": "sccm"}
    most: Any = {"value": 9.0, "trips": False, "below": False, "source": "u"}
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
            Bar(name="f.sp", channel="f.sp", unit="degC", **most),
            Bar(name="m.sp", channel="m.sp", unit="sccm", **most),
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


def test_a_run_that_is_cancelled_by_nobody_it_knows_ends_as_cancelled() -> None:
    async def cancelled(payload: object) -> None:
        raise asyncio.CancelledError

    desk: Any = SimpleNamespace(_begin=str, _admit=cancelled, _abort_reason="", _silence=None)

    async def take() -> None:
        desk._clock = SimpleNamespace(loop=asyncio.get_running_loop())
        await Desk._taken(desk, submission()[1])

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(take())


@pytest.mark.parametrize("safe_at_s", [None, 7.0])
@pytest.mark.parametrize("mode", [Mode.DISARMED, Mode.RUNNING])
@pytest.mark.parametrize("fails", [False, True])
def test_a_line_is_left_safe_after_an_error_of_ours_or_else_closed_once(
    safe_at_s: float | None, mode: Mode, fails: bool, caplog: pytest.LogCaptureFixture
) -> None:
    did: list[object] = []

    async def leave_safe(failure: BaseException) -> None:
        did.append(failure)
        if fails:
            raise ZeroDivisionError("ours too")

    async def close() -> None:
        did.append("closed")

    line = SimpleNamespace(memory=SimpleNamespace(mode=mode), close=close)
    desk: Any = SimpleNamespace(
        line=line, watches=True, _safe_at_s=safe_at_s, _leave_safe=leave_safe
    )
    failure = ValueError("ours")
    asyncio.run(Desk._close_safe(desk, failure))
    left = safe_at_s is None and mode is Mode.RUNNING
    closed = safe_at_s is None and (mode is Mode.DISARMED or fails)
    assert did == [failure] * left + ["closed"] * closed
    assert desk.watches is not closed
    assert len(caplog.records) == (left and fails)


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
    answer: Any = NoAnswer("no film", {"n": 1}, (), "grow longer")
    if found is Answer:
        answer = SimpleNamespace(outputs={"n": 1}, artifacts=("map",))
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
        artifacts: Any = ("map",)
        told = NoAnswer(wrong, {"n": 1}, artifacts, Text("advice.outputs"))
        assert said[0] == "failed"
        assert wrong in said[1]
        assert said[2] == told
    else:
        assert said == ("completed", answer)


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
    told: Any = in_short(odd)
    assert told["told"] == [points, {"points": 2}, {"points": 1}]
    told = in_short([[7], [1, 4]])
    assert told["told"][1] == points, "no place of the peak"
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
        planned=SimpleNamespace(instructions=None),
        risk=SimpleNamespace(level="R3"),
        actions=None,
        stated=(),
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


@pytest.mark.parametrize("may", [(), ("grow",)])
@pytest.mark.parametrize("asked", ["T1", "T2", "T3", "T9", ""])
def test_capability_and_class_of_data_are_explained_beside_what_a_caller_may_use(
    asked: str, may: tuple[str, ...]
) -> None:
    payload: Any = SimpleNamespace(
        capability="grow", constraints=SimpleNamespace(data_classification=asked)
    )
    caller: Any = SimpleNamespace(capabilities=may, data_class_max="T2")
    offered, found = _rights(payload, caller)
    named = Text("policy.of", asked="grow", allowed=list(may) or "-")
    assert offered == GateFound("capability", named, passed=bool(may))
    text = Text("policy.up_to", asked=asked or "T2", most="T2")
    assert found == GateFound("data", text, passed=asked in ("T1", "T2", ""))


@pytest.mark.parametrize("used", [(), ("mfc.flow", "furnace.setpoint")])
@pytest.mark.parametrize("known", [None, ("furnace",), ("furnace", "mfc")])
def test_which_instruments_a_task_uses_is_explained_beside_what_its_caller_may_use(
    used: tuple[str, ...], known: tuple[str, ...] | None
) -> None:
    risk = SimpleNamespace(points=1, level="R1")
    commands = [SimpleNamespace(channel=each) for each in used]
    weighed: Any = SimpleNamespace(risk=risk, commands=commands)
    caller: Any = SimpleNamespace(risk_max="R1", hours=ALWAYS, instruments=known)
    *_, found = _bounds(weighed, caller, VIRTUAL_EPOCH)
    asked = ["furnace", "mfc"] if used else "-"
    allowed = Text("policy.all") if known is None else list(known)
    passed = not used or known != ("furnace",)
    text = Text("policy.of", asked=asked, allowed=allowed)
    assert found == GateFound("instruments", text, passed)


@pytest.mark.parametrize("state", ["PENDING", "RUNNING"])
def test_a_task_that_is_aborted_before_it_is_accepted_is_rejected(state: str) -> None:
    did: list[Any] = []

    async def leave_safe(why: BaseException) -> None:
        did.append(repr(why))

    desk: Any = SimpleNamespace(
        _abort_reason="enough",
        session=SimpleNamespace(state=state, become=lambda *to: did.append(to)),
        _rejected=lambda rejected: rejected,
        _leave_safe=leave_safe,
        _making_safe=SimpleNamespace(unverified=lambda: ["valve"]),
        _closing=SimpleNamespace(aborted=lambda *said: said),
        _records=tuple,
    )
    said: Any = asyncio.run(Desk._aborted(desk))
    if state == "PENDING":
        assert (said, did) == (Rejected("aborted", "enough"), [])
        return
    assert said == ("enough", ["valve"], ())
    assert did == [("ABORTING", "enough"), "CancelledError('enough')", ("ABORTED", "enough")]


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
    step = SimpleNamespace(ways=lambda: (("wait", {}), (action, {})))
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
    admitting: Any = SimpleNamespace(facts=facts)
    task: Any = SimpleNamespace(planned=planned, stated=stated, undeclared=("silane",))
    found = Admitting._risk_context(admitting, task, hazards, ("c",), VIRTUAL_EPOCH)
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


@pytest.mark.parametrize("declared", [False, True])
@pytest.mark.parametrize("hot", [False, True])
@pytest.mark.parametrize("result", [{"n": 1}, {"n": object()}])
def test_a_checkpoint_is_told_when_it_is_on_the_disk_and_says_whether_it_may_be_gone_on_from(
    result: dict[str, object], *, declared: bool, hot: bool
) -> None:
    done: list[Any] = []
    point = ResumePoint(description="cold", holds={"f.t": (None, 60.0)})
    last: Any = SimpleNamespace(instruction_id="cool", checkpoint=point if declared else None)
    first: Any = SimpleNamespace(instruction_id="heat", checkpoint=None)
    records = [
        StepRecord(first, Status.COMPLETED, 1.0, 2.0, None),
        StepRecord(last, Status.COMPLETED, 2.0, 3.0, result),
    ]

    def append_block(kind: str, body: object, block: bytes, at_s: float) -> int:
        done.append((kind, body, json.loads(block), at_s))
        return 7

    async def durable(number: int) -> None:
        done.append(("on the disk", number))

    session: Any = SimpleNamespace(
        event=lambda *said: done.append(said),
        clock=SimpleNamespace(now_s=lambda: 9.0, utc=lambda: VIRTUAL_EPOCH),
        journal=SimpleNamespace(append_block=append_block, durable=durable),
    )
    now = {"f.t": 61.0 if hot else 20.0, "m.p": NAN}
    line: Any = SimpleNamespace(latest=now.get, memory=SimpleNamespace(tracks=now))
    facts: Any = SimpleNamespace(lab_digest="lab", envelope_digest="env")
    made = Checkpoints(session, line, facts)
    made.plan_digest = "plan"
    asyncio.run(made.make(records))
    if not declared:
        assert (done, made.made, made.last) == ([], 0, None)
        return
    if result != {"n": 1}:
        ((kind, told),) = done
        assert (kind, told["code"], told["details"]) == ("warning", "checkpoint", {})
        assert told["message"].params["step"] == "cool"
        assert (made.made, made.last) == (0, None)
        return
    about = {"checkpoint_id": "ckpt-001", "description": "cold", "resumable": not hot}
    body = {
        **about,
        "after": "cool",
        "plan_digest": "plan",
        "lab_digest": "lab",
        "envelope_digest": "env",
        "readings": {"f.t": now["f.t"]},
    }
    steps = [
        {
            "instruction": name,
            "status": "COMPLETED",
            "started_s": at,
            "ended_s": at + 1,
            "result": r,
        }
        for name, at, r in (("heat", 1.0, None), ("cool", 2.0, result))
    ]
    assert done == [
        ("checkpoint", body, {"steps": steps}, 9.0),
        ("on the disk", 7),
        ("checkpoint_created", {**about, "created_at": utc_text(VIRTUAL_EPOCH)}),
    ]
    asyncio.run(made.make(records))
    assert (made.made, made.last) == (2, "ckpt-002")


def test_the_steps_of_a_killed_run_are_those_of_its_plan_with_what_was_noted_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    about = {"stage": "s", "description": "d"}
    plan: list[dict[str, Any]] = [
        {
            "instructionId": name,
            "action": "wait",
            "parameters": {},
            "dependencies": [],
            "timeout": 1.0,
            "metadata": about,
        }
        for name in ("heat", "grow", "cool", "look")
    ]
    records = [
        noted("submitted", 0.0),
        noted("planned", 1.0, instructions={"instructions": plan}),
        noted("step", 2.0, instruction="heat", status="RUNNING"),
        noted("step", 3.0, instruction="heat", status="COMPLETED"),
        noted("step", 4.0, instruction="grow", status="RUNNING"),
        noted("step", 5.0, instruction="cool", status="FAILED"),
    ]
    kept = {"instruction": "heat", "status": "COMPLETED", "started_s": 2.5, "ended_s": 3.0}
    point = SimpleNamespace(steps=({**kept, "result": {"n": 1}},))
    monkeypatch.setattr(behind, "checkpoints", lambda journal: [point])
    found = behind._steps(Path(), records)
    assert [
        (each.instruction.instruction_id, each.status, each.started_s, each.ended_s, each.result)
        for each in found
    ] == [
        ("heat", Status.COMPLETED, 2.5, 3.0, {"n": 1}),
        ("grow", Status.FAILED, 4.0, None, None),
        ("cool", Status.FAILED, None, 5.0, None),
        ("look", Status.SKIPPED, None, None, None),
    ]
