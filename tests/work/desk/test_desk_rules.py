"""What a desk says of a task that it does not take, and in which order it begins one."""

import asyncio
import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from labharness.core.clock import VIRTUAL_EPOCH
from labharness.core.vocabulary import Command
from labharness.core.vocabulary.texts import Text
from labharness.instruments.driver import Adds
from labharness.journal import JournalFailed
from labharness.lab import read_lab
from labharness.lab.config.lab_facts import lab_facts_of
from labharness.line import NotArmed
from labharness.protocols.hcp.terms import Rejected
from labharness.work.capability import CannotDo, NoAnswer
from labharness.work.desk.admitting import ADVISED, Admitting, _too_long
from labharness.work.desk.desk import Desk
from labharness.work.desk.energised import BadPlan, EnergySource, scope, stated
from labharness.work.desk.redaction import failure
from labharness.work.desk.resuming import NotResumable
from labharness.work.plan import Instruction, InstructionSet
from rig import SHORT_LINE, submission

WAYS_MAX = 6  # as promised, not as imported

NO = Rejected("safety_violation", "too hot")


@pytest.mark.parametrize("code", ["safety_violation", "risk_too_high", "invalid_input"])
@pytest.mark.parametrize("own", [None, "Stay cooler"])
@pytest.mark.parametrize(
    ("passes", "says"),
    [
        ({"hot": 0, "long": 2}, '{"hot": 0}'),
        ({"long": 2}, "Without hot among its inputs"),
        (None, str(WAYS_MAX)),
    ],
)
def test_a_change_is_advised_only_if_it_was_tried_and_would_be_accepted(
    passes: Any, says: str, own: str | None, code: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[Any] = []

    async def would_pass(desk: Admitting, payload: Any) -> bool:
        tried.append(payload.inputs)
        return bool(payload.inputs == passes)

    monkeypatch.setattr(Admitting, "_would_pass", would_pass)
    ways = [{"hot": 7}, *([passes] if passes else []), *({"hot": n} for n in range(20, 40))]
    offered = SimpleNamespace(ways_out=lambda inputs, facts: iter(ways))
    facts: Any = SimpleNamespace(capabilities={"anneal": offered}, line_facts={"anneal": None})
    envelope: Any = None
    desk = Admitting(facts=facts, envelope=envelope, utc=lambda: VIRTUAL_EPOCH)
    asked = {"capability": "anneal", "inputs": {"hot": 1, "long": 2}}
    given = replace(NO, reason_code=code, suggestion=own)
    found = asyncio.run(desk.advise(submission()[1].model_copy(update=asked), given))
    assert tried == ([] if code not in ADVISED else ways[: 2 if passes else WAYS_MAX])
    assert replace(found, suggestion=own) == given, "nothing but its suggestion changes"
    if not tried or (own and passes is None):
        assert found == given
    else:
        assert str(found.suggestion).startswith(own or "")
        assert says in str(found.suggestion)


def test_what_a_planner_cannot_do_is_told_in_its_words_and_after_what_comes_before_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan, (_, payload) = read_lab(SHORT_LINE), submission()
    facts = lab_facts_of(plan)
    away = Rejected("resource_unavailable", "nobody may begin")

    def weighed(said: object, refused: Rejected | None = None, **changes: Any) -> Any:
        monkeypatch.setattr(type(facts.capabilities[payload.capability]), "plan", lambda *_: said)
        now = replace(facts, refused=refused)
        desk = Admitting(facts=now, envelope=plan.envelope, utc=lambda: VIRTUAL_EPOCH)
        return desk.weigh(payload.model_copy(update=changes))

    for helps in ("Use argon", ""):
        told = weighed(CannotDo("safety_violation", "no oxygen here", helps))
        assert told == Rejected("safety_violation", "no oxygen here", suggestion=helps or None)
        assert weighed(CannotDo("safety_violation", "no oxygen", helps), away) == away
    assert weighed(None, away, inputs={}) == away, "before its inputs count"
    assert weighed(None, away, caller_id="nobody").reason_code == "unauthorized", "and no more"


@pytest.mark.parametrize("fault", [None, TimeoutError(), JournalFailed("full"), ValueError("ours")])
@pytest.mark.parametrize("fails", ["arm", "run"])
def test_a_plan_runs_only_on_an_armed_line_and_each_of_its_ends_is_returned(
    fault: Exception | None, fails: str
) -> None:
    done: list[str] = []
    desk: Any = SimpleNamespace(_executing=False, _resumption=None)

    async def do(what: str) -> None:
        done.append(f"{what} {desk._executing}")
        if fault is not None and what == fails:
            raise fault

    desk._reporter = SimpleNamespace(of_line=lambda *told: done.append(told[0]))
    desk.line = SimpleNamespace(arm=lambda _: do("arm"), start=lambda: done.append("start"))
    desk.line.monitor = SimpleNamespace(lose_journal=done.append)
    desk.facts = SimpleNamespace(safe_procedure="safe")
    executor: Any = SimpleNamespace(run=lambda: do("run"))
    assert asyncio.run(Desk._execute(desk, executor, 9.0)) is fault
    ran = [] if fault is not None and fails == "arm" else ["start", "run True"]
    lost = ["full"] if isinstance(fault, JournalFailed) else []
    assert done == ["arming", "arm False", *ran, *lost]
    assert not desk._executing


def test_why_a_confidential_task_failed_stands_in_an_artifact_with_what_would_help() -> None:
    for answer, helps in ((None, ""), (NoAnswer("w", {"x": 1}, (), "grow longer"), "grow longer")):
        found = failure("no film", answer)
        assert (found.name, found.media_type) == ("failure", "application/json")
        assert json.loads(found.content) == {"error_message": "no film", "suggestion": helps}


@pytest.mark.parametrize(
    ("channel", "value", "unit", "code"),
    [
        ("f.sp", 10.0, "degC", ""),
        ("f.sp", 900.0, "degC", ""),
        ("f.sp", 9.9, "degC", "plan.beyond"),
        ("f.sp", 900.1, "degC", "plan.beyond"),
        ("f.sp", float("nan"), "degC", "plan.beyond"),
        ("f.sp", 500.0, "K", "plan.beyond"),
        ("f.pid", 500.0, "degC", "plan.cannot_set"),
    ],
)
def test_each_value_of_a_plan_is_held_against_the_hard_limit_of_its_channel(
    channel: str, value: float, unit: str, code: str
) -> None:
    limit = SimpleNamespace(low=10.0, high=900.0, unit="degC", source="manual")
    envelope: Any = SimpleNamespace(limits={"f.sp": limit})
    facts: Any = None
    desk = Admitting(facts=facts, envelope=envelope, utc=lambda: VIRTUAL_EPOCH)
    good = ("first", Command("f.sp", 20.0, "degC"))
    found = desk._beyond_limits([good, ("heat", Command(channel, value, unit))])
    if not code:
        assert found is None
        return
    assert found is not None
    assert found.reason_code == "safety_violation"
    assert found.reason_message.startswith("Step heat: ")
    assert channel in found.reason_message
    assert found.suggestion == Text("plan.change", channel=channel)


def test_a_task_whose_plan_is_beyond_a_limit_is_not_weighed_any_further(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan, (_, payload) = read_lab(SHORT_LINE), submission()
    monkeypatch.setattr(Admitting, "_beyond_limits", lambda desk, commands: NO)
    desk = Admitting(facts=lab_facts_of(plan), envelope=plan.envelope, utc=lambda: VIRTUAL_EPOCH)
    assert desk.weigh(payload) == NO


@pytest.mark.parametrize("holds", [True, False])
def test_a_resumed_plan_runs_only_where_its_checkpoint_holds_once_the_line_is_armed(
    *, holds: bool
) -> None:
    done: list[Any] = []
    changed = NotResumable("resume.changed", name="c", why="hot")

    async def do(what: str, *about: object) -> None:
        done.append((what, *about))

    def compare(readings: object) -> None:
        done.append(readings)
        if not holds:
            raise changed

    desk: Any = SimpleNamespace(
        _executing=False,
        _resumption=SimpleNamespace(compare=compare, count=2),
        _reporter=SimpleNamespace(of_line=lambda *told: None),
        _checkpoints=SimpleNamespace(make=lambda records: do("checkpoint", *records)),
        facts=SimpleNamespace(safe_procedure="safe"),
    )
    desk.line = SimpleNamespace(
        arm=lambda procedure: do("arm", procedure),
        next_tick=lambda: do("tick"),
        start=lambda: done.append("start"),
    )
    executor: Any = SimpleNamespace(run=lambda: do("run"), records=lambda: ("a", "b", "c"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("labharness.work.desk.desk.readings_of", lambda line: "readings")
        found = asyncio.run(Desk._execute(desk, executor, 9.0))
    after = [("checkpoint", "a", "b"), "start", ("run",)] if holds else []
    assert done == [("arm", "safe"), ("tick",), "readings", *after]
    assert found is (None if holds else changed)


@pytest.mark.parametrize(
    ("duration_s", "told", "text"),
    [
        (59.2, None, None),
        (60.0, None, None),
        (60.1, "duration.set", {"needed": "PT1M1S"}),
        (120.0, "duration.set", {"needed": "PT2M"}),
        (120.1, "duration.shorten", {"capability": "grow", "longest": "PT2M"}),
    ],
)
def test_a_plan_that_takes_too_long_is_refused_with_what_would_be_accepted(
    duration_s: float, told: str | None, text: dict[str, Any] | None
) -> None:
    declared = SimpleNamespace(name="grow", max_duration_s=120.0)
    screened: Any = SimpleNamespace(max_duration_s=60.0, declaration=declared)
    found = _too_long(screened, duration_s, 60.0)
    if told is None:
        assert found is None
        return
    assert found is not None
    said, why = found.suggestion, found.reason_message
    assert isinstance(said, Text)
    assert isinstance(why, Text)
    assert (found.reason_code, said.code, said.params) == ("invalid_input", told, text)
    assert why.code == "duration.too_long"


@pytest.mark.parametrize("held", [True, False])
def test_a_request_for_a_hold_is_answered_when_the_line_is_held_or_after_its_time(
    held: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    holding = SimpleNamespace(on=False, said=lambda: "it is held")
    reporter = SimpleNamespace(doing="ramp")
    desk: Any = SimpleNamespace(
        _executing=True, _holding=None, line=SimpleNamespace(holding=holding), _reporter=reporter
    )
    desk.session = SimpleNamespace(state="RUNNING")
    monkeypatch.setattr("labharness.work.desk.desk.HOLD_ANSWER_S", 5.0 if held else 0.01)

    async def hold(reason: str) -> None:
        await asyncio.sleep(0.0 if held else 9.0)
        holding.on = True

    async def ask() -> str:
        desk._clock, desk._hold = SimpleNamespace(loop=asyncio.get_running_loop()), hold
        return await Desk.hold(desk, "a look")

    assert asyncio.run(ask()) == ("it is held" if held else Text("hold.soon", doing="ramp"))
    with pytest.raises(NotArmed):
        asyncio.run(ask())


@pytest.mark.parametrize(
    ("source", "free"),
    [
        ({"adds": Adds.GAS, "gas": "argon"}, True),
        ({"adds": Adds.GAS, "gas": "hydrogen"}, False),
        ({"adds": Adds.HEAT}, False),
        ({"adds": Adds.HEAT, "harmless": True}, True),
    ],
)
def test_what_harms_nobody_need_not_be_stated(source: dict[str, Any], free: bool) -> None:
    of_relay = EnergySource(name="box", switches={"box.valve": 0.0}, **source)
    why_not = scope((), [of_relay])
    assert (why_not(Command("box.valve", 1.0, "")) == "") is free
    assert why_not(Command("box.valve", 0.0, "")) == ""


def test_a_step_that_does_not_name_the_channel_that_it_sets_is_a_bad_plan() -> None:
    asked = {"channel": 7, "value": 1.0, "unit": "sccm"}
    step = Instruction(instruction_id="flow", action="set", timeout_s=1.0, parameters=asked)
    with pytest.raises(BadPlan, match="step flow"):
        stated(InstructionSet((step,)), {})
