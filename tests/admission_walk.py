"""Walks over what a desk decides before any instrument is opened, and their transcript.

Each line has a task of a lab that is asked otherwise, in a lab that is otherwise, after a flight
that went otherwise; and a digest of all that was decided: weighed, flown, approved, requested,
weighed again, advised. To write the transcript anew, and read which lines have changed:

    python tests/admission_walk.py
"""

import asyncio
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from commands import ROOT
from desk_walk import LABS, OTHERWISE, SHORT, rounded
from labharness.core.clock import VIRTUAL_EPOCH
from labharness.core.vocabulary.hours import read_hours
from labharness.lab import read_lab
from labharness.lab.config.lab_facts import lab_facts_of
from labharness.protocols.hcp.messages import TaskAccepted
from labharness.protocols.hcp.terms import RISK_LEVELS, Rejected
from labharness.work.admission.approval import NotApproved
from labharness.work.desk.admitting import Admitting, Weighed, as_accepted
from labharness.work.desk.facts import LabFacts
from labharness.work.plan.prediction import PredictedViolation, Prediction
from rig import SHORT_LINE, as_submit
from task_walk import line

TRANSCRIPT = Path(__file__).parent / "data" / "admission_walk.txt"
TASKS: Mapping[str, tuple[Path, Mapping[str, Any]]] = {
    "annealing": (LABS / "annealing_furnace" / "lab.toml", {"inputs": SHORT}),
    "mos2-monolayer": (SHORT_LINE, {}),
    "raman-map": (LABS / "cvd_mos2" / "lab.toml", {}),
    "iv-curve": (LABS / "iv_bench" / "lab.toml", {}),
}
ASKED: tuple[Mapping[str, Any], ...] = (
    {},
    *OTHERWISE,
    {"inputs": {"temperature_c": 120, "duration_s": 10**5}},
    {"inputs": {"recipe": {"growth_temperature_c": 799, "hydrogen_sccm": 10}}},
    {"inputs": {"recipe": {"growth_temperature_c": 860}}},
    {"constraints": {"max_duration": "PT4H"}},
)
NOT_NOW = Rejected("resource_unavailable", "nobody may begin")
LATE_H = (0.0, 9.0, 24.0 * 3)
FLIGHTS: Mapping[str, Mapping[str, Any] | None] = {
    "no flight": None,
    "as planned": {},
    "long": {"duration_s": 1e6},
    "some hours more": {"duration_s": 5 * 3600.5},
    "hydrogen": {"gas_used_cm3": {"hydrogen": 12.0}},
    "a trace": {"gas_used_cm3": {"hydrogen": 0.5}},
    "hot": {"highest": {"furnace.temperature": 899.0}},
    "beyond": {
        "violation": PredictedViolation(
            instruction_id="heat", stage="ramp", channel="x.y", predicted=9.0, detail="9 passes 5"
        )
    },
}


def labs(facts: LabFacts) -> Iterator[tuple[str, LabFacts]]:
    """Return the facts of a lab as it is, and as it might be."""
    yield "as it is", facts
    yield "refused", replace(facts, refused=NOT_NOW)
    yield "of anybody", replace(facts, callers=None)
    yield "shared", replace(facts, shared=True)
    yield "by day", replace(facts, attended=read_hours("Mon-Fri 08:00-18:00 UTC"))
    yield "held at a loss", replace(facts, on_comm_loss=dict.fromkeys(facts.on_comm_loss, "hold"))
    yield (
        "safe at a loss",
        replace(facts, on_comm_loss=dict.fromkeys(facts.on_comm_loss, "safe(1)")),
    )
    yield "unproven", replace(facts, safeguards_missing=lambda hazards, day: tuple(hazards))
    yield "of no source", replace(facts, sources=())
    yield "not approved", replace(facts, approvals=())
    yield "edited", replace(facts, lab_digest="0" * 64)
    lapsed = tuple(replace(each, until="2025-01-01T00:00:00Z") for each in facts.approvals)
    yield "lapsed", replace(facts, approvals=lapsed)
    yield "lapsed twice", replace(facts, approvals=lapsed * 2)
    yield "real", replace(facts, link_kinds=("serial",))
    callers = {
        name: replace(each, risk_max="R1", data_class_max="T1")
        for name, each in (facts.callers or {}).items()
    }
    yield "of few rights", replace(facts, callers=callers)


def plain(decided: Any) -> Any:
    """Return a decision as a transcript can hold it."""
    if isinstance(decided, Weighed):
        planned, weight = decided.planned, decided.risk
        return [
            [planned.duration_s, planned.process_gases, planned.temperature_c_max],
            planned.instructions.to_json(),
            [weight.level, weight.points, weight.reasons, weight.needs_approval],
            [finding.remedy for _, finding in weight.applied],
            [[name, asdict(each)] for name, each in decided.stated],
            [decided.hazards, decided.undeclared],
        ]
    said = None if decided is None else asdict(decided)
    if said and not said.get("proposed_inputs", True):
        del said["proposed_inputs"]  # a request that proposes nothing is what it always was
    return said


class Decisions:
    """All that is decided of one task in one lab."""

    def __init__(self, facts: LabFacts, envelope: Any, payload: Any, bounded: Any = None) -> None:
        self.facts, self.envelope, self.payload, self.line = facts, envelope, payload, bounded

    def admitting(self, hours: float = 0.0, flight: str = "no flight") -> Admitting:
        async def flown(*asked: object) -> Prediction:
            given = {"duration_s": 60.0, "gas_used_cm3": {}, **(FLIGHTS[flight] or {})}
            return Prediction(steps=(), trajectory={}, units={}, **given)

        now = VIRTUAL_EPOCH + timedelta(hours=hours)
        facts = replace(self.facts, predict=None if FLIGHTS[flight] is None else flown)
        return Admitting(facts=facts, envelope=self.envelope, utc=lambda: now, line=self.line)

    def advised(self, admitting: Admitting, rejected: Rejected) -> Any:
        return plain(asyncio.run(admitting.advise(self.payload, rejected)))

    def made(self) -> Iterator[Any]:
        """Return each decision."""
        weighed = self.admitting().weigh(self.payload)
        yield plain(weighed)
        if isinstance(weighed, Rejected):
            yield self.advised(self.admitting(), weighed)
            return
        for flight in FLIGHTS:
            yield flight
            yield from self.flown(self.admitting(flight=flight), flight)

    def flown(self, admitting: Admitting, flight: str) -> Iterator[Any]:
        weighed = admitting.weigh(self.payload)
        if isinstance(weighed, Rejected):
            yield plain(weighed)
            return
        found = asyncio.run(admitting.predict(weighed, {}))
        if isinstance(found, Rejected):
            yield plain(found)
            yield self.advised(admitting, found)
            return
        weighed, prediction = found
        yield plain(weighed)
        for level in RISK_LEVELS:
            told: Any = SimpleNamespace(payload=TaskAccepted.model_construct(risk_level=level))
            yield plain(as_accepted(weighed, told))
        approved = admitting.approve(weighed, self.payload.caller_id)
        yield plain(approved)
        if isinstance(approved, NotApproved):
            asked = admitting.request(self.payload, weighed, prediction, approved, session_id="s")
            yield plain(asked)
        for hours in LATE_H:
            yield plain(self.admitting(hours, flight).again(weighed, prediction))


def transcript(task: str) -> Iterator[tuple[str, list[Any]]]:
    """Return the lines of a task, each with all that its digest is of."""
    path, more = TASKS[task]
    plan, example = read_lab(path), json.loads((ROOT / "examples" / f"{task}.json").read_text())
    facts = replace(lab_facts_of(plan), predict=None)
    lines = {
        "latched": SimpleNamespace(latched=lambda: "hot", unguarded=tuple),
        "unguarded": SimpleNamespace(latched=str, unguarded=lambda: ("heat is real", "gas")),
    }
    for number, changes in enumerate(ASKED):
        _, payload = as_submit({**example, "payload": changed(example["payload"], more, changes)})
        for name, each in labs(facts) if number == 0 else [("as it is", facts)]:
            made = [*Decisions(each, plan.envelope, payload).made()]
            yield line(f"{task} {number} {name}", rounded(made), ROOT)
    for name, bounded in lines.items():
        _, payload = as_submit({**example, "payload": changed(example["payload"], more)})
        made = [*Decisions(facts, plan.envelope, payload, bounded).made()]
        yield line(f"{task} {name}", rounded(made), ROOT)


def changed(payload: Mapping[str, Any], *changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a payload with other values."""
    found = dict(payload)
    for name, value in (item for each in changes for item in each.items()):
        merged = isinstance(value, Mapping) and name != "resume_from"
        found[name] = {**found.get(name, {}), **value} if merged else value
    return found


if __name__ == "__main__":
    lines = [each for task in TASKS for each, _ in transcript(task)]
    TRANSCRIPT.write_text("\n".join(lines) + "\n", "utf-8")
    sys.stdout.write(f"{len(lines)} lines\n")
