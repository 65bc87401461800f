"""A task of a caller whose rights end: refused before a byte leaves, whatever it waited for."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from shutil import copytree
from types import SimpleNamespace
from typing import Any, cast

import pytest

from commands import ROOT, say, wrote
from labharness.core.clock import VIRTUAL_EPOCH
from labharness.core.vocabulary import Cause, Command, Ending, Outcome, Trip
from labharness.core.vocabulary.texts import texts_in
from labharness.instruments.driver import Adds
from labharness.lab import Lab, LabPlan, read_lab
from labharness.lab.config.lab_facts import lab_facts_of
from labharness.line import Line, Tripped
from labharness.protocols.hcp.codec import HcpMessage
from labharness.protocols.hcp.messages import TaskSubmit
from labharness.protocols.hcp.terms import Rejected
from labharness.work.desk.admitting import ADVISED, Admitting, Weighed
from labharness.work.desk.energised import EnergySource, scope, stays_energised
from labharness.work.desk.explained import explained
from labharness.work.desk.operations import LineOperations, OutOfScope
from labharness.work.plan import Operator
from labharness.work.plan.prediction import Prediction
from rig import Run, as_submit

WAYS_MAX = 6  # as promised, not as imported

SHIPPED = ROOT / "envelopes" / "labharness_envelopes" / "labs" / "annealing_furnace"
EXAMPLE = ROOT / "examples" / "annealing.json"
OWN = 'hours = "{hours}"\ninstruments = {instruments}\n'
EVERY = '["furnace", "gas"]'
HOT_C = 900.0


def lab(
    folder: Path,
    hours: str = "always",
    instruments: str = EVERY,
    attended: str = "always",
    risk_max: str = "R3",
) -> LabPlan:
    """Return the annealing furnace with one caller whose rights are these."""
    copytree(SHIPPED, folder / "lab")
    rights = f'[callers.operator]\ncapabilities = ["annealing"]\nrisk_max = "{risk_max}"\n'
    own = OWN.format(hours=hours, instruments=instruments)
    (folder / "lab" / "callers.toml").write_text(f'{rights}data_class_max = "T2"\n{own}')
    path = folder / "lab" / "lab.toml"
    text = path.read_text("utf-8")
    path.write_text(text.replace('attended = "always"', f'attended = "{attended}"'), "utf-8")
    return read_lab(path)


def task() -> tuple[HcpMessage, TaskSubmit]:
    return as_submit(json.loads(EXAMPLE.read_text("utf-8")))


@pytest.mark.promise(68)
@pytest.mark.parametrize(
    ("rights", "says"),
    [
        ({"hours": "Thu 08:00-08:30 UTC"}, "may have work done at Thu 08:00-08:30 UTC"),
        ({"hours": "never"}, "may have work done at never"),
        ({"instruments": '["gas"]'}, "may not use furnace"),
    ],
)
def test_a_task_beyond_its_callers_rights_sets_nothing(
    tmp_path: Path, run_task: Run, rights: dict[str, str], says: str
) -> None:
    ran = run_task(lab(tmp_path, **rights), task())
    assert ran.type == "task_rejected", ran.body
    assert ran.body["reason_code"] == "forbidden"
    assert says in ran.body["reason_message"]


def admitting(plan: LabPlan, now: datetime) -> Admitting:
    return Admitting(facts=lab_facts_of(plan), envelope=plan.envelope, utc=lambda: now)


@pytest.mark.promise(68)
def test_hours_that_passed_while_a_person_was_asked_count(tmp_path: Path) -> None:
    plan, (_, payload) = lab(tmp_path, attended="Thu 08:00-18:00 UTC"), task()
    weighed = admitting(plan, VIRTUAL_EPOCH).weigh(payload)
    assert not isinstance(weighed, Rejected), weighed
    assert admitting(plan, VIRTUAL_EPOCH).again(weighed, None) is None
    late = admitting(plan, VIRTUAL_EPOCH + timedelta(hours=9)).again(weighed, None)
    assert late is not None, "nobody is there for the end of the run, and it was agreed to with one"


@pytest.mark.promise(68)
def test_a_risk_that_rose_while_a_person_was_asked_is_refused_and_one_that_fell_is_not(
    tmp_path: Path,
) -> None:
    plan, (_, payload) = lab(tmp_path, attended="Thu 08:00-18:00 UTC", risk_max="R5"), task()
    facts = lab_facts_of(plan)
    facts = replace(facts, on_comm_loss=dict.fromkeys(facts.on_comm_loss, "safe(1)"))

    def at(hours: float) -> Admitting:
        now = VIRTUAL_EPOCH + timedelta(hours=hours)
        return Admitting(facts=facts, envelope=plan.envelope, utc=lambda: now)

    day, night = at(0.0), at(9.0)
    agreed, at_night = day.weigh(payload), night.weigh(payload)
    assert isinstance(agreed, Weighed)
    assert isinstance(at_night, Weighed), at_night
    assert agreed.risk.points < at_night.risk.points
    late = night.again(agreed, None)
    assert late is not None, "it was agreed to while somebody would be there"
    level = at_night.risk.level
    assert (late.reason_code, late.assessed_risk_level) == ("risk_too_high", level)
    assert f"it became {level}" in late.reason_message
    assert day.again(at_night, None) is None


@pytest.mark.promise(68)
def test_what_is_found_after_the_agreement_keeps_the_run_from_beginning(
    run_task: Run, wires: list[Lab], monkeypatch: pytest.MonkeyPatch
) -> None:
    rose = Rejected("risk_too_high", "while it waited, it became R5", "R5")
    monkeypatch.setattr(Admitting, "again", lambda *weighed: rose)
    ran = run_task()
    assert (ran.type, ran.body["reason_code"]) == ("task_rejected", "risk_too_high"), ran.body
    assert wrote(wires) == []


@pytest.mark.promise(44)
def test_what_the_pre_flight_finds_is_weighed_before_a_person_is_asked(tmp_path: Path) -> None:
    async def flown(*asked: object) -> Prediction:
        return Prediction(
            duration_s=60.0,
            steps=(),
            trajectory={},
            units={},
            gas_used_cm3={},
            highest={"furnace.temperature": HOT_C},
        )

    plan, (_, payload) = lab(tmp_path, risk_max="R5"), task()
    facts = replace(lab_facts_of(plan), predict=flown)
    weighs = Admitting(facts=facts, envelope=plan.envelope, utc=lambda: VIRTUAL_EPOCH)
    weighed = weighs.weigh(payload)
    assert isinstance(weighed, Weighed), weighed
    found = asyncio.run(weighs.predict(weighed, {}))
    assert not isinstance(found, Rejected), found
    assert found[0].planned.temperature_c_max == HOT_C, "hotter than any command of the plan"
    assert found[0].risk.points > weighed.risk.points


@pytest.mark.promise(35)
def test_each_channel_of_each_interlock_counts_as_one_that_stays_energised(
    short_plan: LabPlan,
) -> None:
    facts = lab_facts_of(short_plan)
    safe = dict.fromkeys(facts.on_comm_loss, "safe(1)")
    rows = [row for row in short_plan.envelope.interlocks if row.on_loss and row.guards]
    assert max(len(row.guards) for row in rows) > 1
    for row in rows:
        for channel in row.guards:
            least = min(each.above for each in rows if channel in each.guards)
            stays = partial(
                stays_energised,
                on_comm_loss={**safe, channel: "hold"},
                interlocks=short_plan.envelope.interlocks,
            )
            assert stays([Command(channel, least, "")]) == ()
            (said,) = stays([Command(channel, least + 1.0, "")])
            assert channel in said


@pytest.mark.promise(68)
@pytest.mark.parametrize(("hours", "refused"), [(9.9, False), (10.1, True)])
def test_the_duration_that_the_pre_flight_shows_lies_within_the_hours(
    tmp_path: Path, hours: float, refused: bool
) -> None:
    async def flown(*asked: object) -> Prediction:
        return Prediction(
            duration_s=hours * 3600.0, steps=(), trajectory={}, units={}, gas_used_cm3={}
        )

    plan, (_, payload) = lab(tmp_path, hours="Thu 08:00-18:00 UTC"), task()
    facts = replace(lab_facts_of(plan), predict=flown)
    weighs = Admitting(facts=facts, envelope=plan.envelope, utc=lambda: VIRTUAL_EPOCH)
    weighed = weighs.weigh(payload)
    assert not isinstance(weighed, Rejected), weighed
    assert weighed.planned.duration_s < 9 * 3600.0
    found = asyncio.run(weighs.predict(weighed, {}))
    assert isinstance(found, Rejected) is refused, found
    assert not isinstance(found, Rejected) or "Thu 08:00-18:00 UTC" in found.reason_message


def test_an_unattended_run_is_told_when_it_would_be_attended(tmp_path: Path) -> None:
    plan, (_, payload) = lab(tmp_path, attended="Mon-Fri 09:00-18:00 UTC"), task()
    sunday = datetime(2026, 1, 4, 12, 0, tzinfo=UTC)
    refused = admitting(plan, sunday).weigh(payload)
    assert isinstance(refused, Rejected)
    assert "attended hours (from 2026-01-05T09:00:00.000Z on)" in str(refused.suggestion)


@pytest.mark.promise(68)
def test_an_operation_that_the_token_does_not_cover_never_reaches_the_line() -> None:
    class NoLine:
        holding = SimpleNamespace(total_s=float)
        clock = SimpleNamespace(now_s=float, utc=float)
        latest = volumes_purged = check = staticmethod(lambda *asked: None)

    never: Any = None

    token: Any = SimpleNamespace(beyond=lambda instrument: f"no {instrument}")
    operations = LineOperations(cast("Line", NoLine()), never, token, never, lambda command: "")
    outcome = asyncio.run(operations.perform(Command("laser.emission", 1.0, "")))
    assert (outcome.ending, outcome.detail) == (Ending.REFUSED, "no laser")
    with pytest.raises(OutOfScope, match="no stage"):
        asyncio.run(operations.read("stage.x"))
    with pytest.raises(OutOfScope, match="no camera"):
        asyncio.run(operations.query("camera", "spectrum"))


@pytest.mark.parametrize(
    ("held", "tries"), [((), 1), ((False,), 1), ((True, False), 2), ((True, True, False), 3)]
)
def test_what_was_refused_because_of_a_hold_goes_later_and_any_other_refusal_stands(
    held: tuple[bool, ...], tries: int
) -> None:
    asked: list[Command] = []
    holds = iter(held)
    ending = Ending.REFUSED if held else Ending.CONFIRMED

    class Holding:
        total_s = float
        on = property(lambda self: next(holds))

    class RefusingLine:
        holding = Holding()
        clock = SimpleNamespace(now_s=float, utc=float)
        latest = volumes_purged = check = staticmethod(lambda *asked: None)

        async def released(self) -> None:
            assert len(asked) < 9, "asked for ever"

        async def perform(self, command: Command) -> Outcome:
            asked.append(command)
            return Outcome(command, ending)

    never: Any = None
    line, free = cast("Line", RefusingLine()), lambda named: ""
    token: Any = SimpleNamespace(authorises=lambda now_utc: True, beyond=free)
    operations = LineOperations(line, never, token, never, free)
    outcome = asyncio.run(operations.perform(Command("laser.emission", 1.0, "")))
    assert (outcome.ending, len(asked)) == (ending, tries)


@pytest.mark.parametrize("trips", ["before", "meanwhile"])
def test_a_command_on_a_line_that_trips_ends_with_its_trip(trips: str) -> None:
    asked: list[Command] = []
    trip = Trip(Cause.STOP_REQUEST, "cool", "", None, 1.0, "somebody")

    class TrippingLine:
        holding = SimpleNamespace(total_s=float)
        clock = SimpleNamespace(now_s=float, utc=float)
        latest = volumes_purged = staticmethod(lambda *asked: None)

        def check(self) -> None:
            if trips == "before" or asked:
                raise Tripped(trip)

        async def released(self) -> None:
            pass

        async def perform(self, command: Command) -> Outcome:
            asked.append(command)
            return Outcome(command, Ending.REFUSED)

    never: Any = None
    line, free = cast("Line", TrippingLine()), lambda named: ""
    token: Any = SimpleNamespace(authorises=lambda now_utc: True, beyond=free)
    unweighed = (lambda command: "not weighed") if trips == "before" else free
    operations = LineOperations(line, never, token, never, cast("Any", unweighed))
    with pytest.raises(Tripped):
        asyncio.run(operations.perform(Command("laser.emission", 1.0, "")))
    assert len(asked) == (trips == "meanwhile")


def test_a_person_is_asked_for_a_manual_step_when_the_line_is_no_longer_held() -> None:
    said: list[str] = []

    class HeldLine:
        holding = SimpleNamespace(total_s=float)
        clock = SimpleNamespace(now_s=float, utc=float)
        latest = volumes_purged = check = staticmethod(lambda *asked: None)

        async def released(self) -> None:
            said.append("released")

        async def by_hand(self, action: str, ask: Callable[[], Awaitable[str]]) -> str:
            return await ask()

    class Person:
        async def confirm(self, *asked: object) -> str:
            said.append("asked")
            return "Ada"

    never: Any = None
    reporter: Any = SimpleNamespace(asked=lambda *step: None, confirmed=lambda by: None)
    line, person = cast("Line", HeldLine()), cast("Operator", Person())
    operations = LineOperations(line, person, never, reporter, lambda command: "")
    assert asyncio.run(operations.confirm("load", "load the boat", {})) == "Ada"
    assert said == ["released", "asked"]


def test_a_heat_source_has_no_gas_and_may_be_turned_up_only_as_it_was_weighed() -> None:
    furnace = EnergySource(name="furnace", adds=Adds.HEAT, targets={"furnace.setpoint": 950.0})
    argon = EnergySource(name="argon", adds=Adds.GAS, gas="Ar", switches={"argon.setpoint": 0.0})
    why_not = scope([Command("furnace.setpoint", 300.0, "degC")], (furnace, argon))
    assert why_not(Command("furnace.setpoint", 300.0, "degC")) == ""
    assert "furnace" in why_not(Command("furnace.setpoint", 301.0, "degC"))
    assert why_not(Command("argon.setpoint", 400.0, "sccm")) == ""


class WithWays:
    """A capability as it is, but for the other inputs that it proposes."""

    def __init__(self, real: Any, ways: list[dict[str, Any]]) -> None:
        self._real, self._ways = real, ways

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def ways_out(self, *asked: object) -> list[dict[str, Any]]:
        return self._ways


ASKED = task()[1].inputs
HOT, COOL = {**ASKED, "temperature_c": 5000}, {**ASKED, "temperature_c": 300}
LESS = {name: value for name, value in ASKED.items() if name != "ramp_c_per_min"}


@pytest.mark.parametrize(
    ("ways", "said"),
    [
        ([], None),
        ([HOT], ("tried.none", {"count": 1})),
        ([HOT] * WAYS_MAX + [COOL], ("tried.none", {"count": WAYS_MAX})),
        ([HOT, COOL], ("tried.accepted", {"how": '{"temperature_c": 300}'})),
        ([LESS, COOL], ("tried.dropped", {"names": ["ramp_c_per_min"]})),
        (
            [{**LESS, "temperature_c": 300}],
            (
                "tried.without",
                {"changed": '{"temperature_c": 300}', "names": ["ramp_c_per_min"]},
            ),
        ),
    ],
)
@pytest.mark.parametrize("code", [*sorted(ADVISED), "forbidden", "unauthorized", "invalid_input"])
def test_the_first_other_inputs_that_would_pass_are_told_where_inputs_can_mend_it(
    ways: list[dict[str, Any]], said: tuple[str, object] | None, code: str
) -> None:
    plan, (_, payload) = read_lab(SHIPPED / "lab.toml"), task()
    facts = lab_facts_of(plan)
    named = {"annealing": WithWays(facts.capabilities["annealing"], ways)}
    facts = replace(facts, capabilities=cast("Any", named), predict=None)
    desk = Admitting(facts=facts, envelope=plan.envelope, utc=lambda: VIRTUAL_EPOCH)
    for before in ("", "Ask a person"):
        rejected = Rejected(cast("Any", code), "why", suggestion=before)
        found = asyncio.run(desk.advise(payload, rejected)).suggestion
        texts = {each.code: dict(each.params) for each in texts_in(found)}
        if code not in ADVISED or said is None or (before and said[0] == "tried.none"):
            assert found == before
        else:
            assert texts[said[0]] == said[1]
            assert str(found).startswith(before)
    stranger = payload.model_copy(update={"capability": "brewing"})
    assert asyncio.run(desk.advise(stranger, rejected)) is rejected


def gates(plan: LabPlan, caller: str = "operator") -> dict[str, bool]:
    _, payload = task()
    payload = payload.model_copy(update={"caller_id": caller})
    found = explained(payload, lab_facts_of(plan), plan.envelope, lambda: VIRTUAL_EPOCH)
    assert (found.verdict is None) is all(gate.passed for gate in found.gates)
    return {gate.name: gate.passed for gate in found.gates}


@pytest.mark.parametrize(
    ("rights", "stopped"),
    [
        ({}, []),
        ({"hours": "never"}, ["hours"]),
        ({"instruments": '["gas"]'}, ["instruments"]),
        ({"hours": "never", "instruments": "[]"}, ["hours", "instruments"]),
    ],
)
def test_each_gate_is_explained_by_itself(
    tmp_path: Path, rights: dict[str, str], stopped: list[str]
) -> None:
    found = gates(lab(tmp_path, **rights))
    assert [name for name, passed in found.items() if not passed] == stopped
    assert list(found)[:4] == ["caller", "capability", "data", "risk"]


def test_a_stranger_is_told_nothing_but_that(tmp_path: Path) -> None:
    assert gates(lab(tmp_path), "somebody") == {"caller": False}


def test_where_anybody_may_ask_no_right_is_a_gate(tmp_path: Path) -> None:
    plan = lab(tmp_path)
    facts = replace(lab_facts_of(plan), callers=None)
    found = explained(task()[1], facts, plan.envelope, lambda: VIRTUAL_EPOCH)
    assert [gate.name for gate in found.gates] == ["caller", "approval"]


def test_rights_without_effect_are_named(tmp_path: Path) -> None:
    plan = lab(tmp_path, instruments='["furnaces"]', hours="never")
    said = say("policy", "check", "--lab", plan.path)
    assert said.code == 1
    assert "[callers.operator].instruments: there is no 'furnaces' here" in said.out
    assert "did you mean furnace" in said.out
    assert "[callers.operator].hours: never" in said.out


def test_a_decision_is_explained_rule_by_rule(tmp_path: Path) -> None:
    plan = lab(tmp_path)
    said = say("policy", "explain", EXAMPLE, "--lab", plan.path)
    assert said.code == 0, said
    assert "physical resources: at least R3" in said.out
    assert "unattended: does not apply" in said.out
    refused = say("policy", "explain", EXAMPLE, "--lab", plan.path, "--caller", "x", "--json")
    body: dict[str, Any] = json.loads(refused.out)
    assert (refused.code, body["verdict"]["reason_code"]) == (2, "unauthorized")
