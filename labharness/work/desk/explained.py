"""The findings of each check of admission for one task: the report of `labharness policy explain`.

Nothing is submitted.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from labharness.core.vocabulary.channels import owner_of
from labharness.core.vocabulary.hours import ALWAYS
from labharness.core.vocabulary.texts import Text
from labharness.protocols.hcp.messages import TaskSubmit
from labharness.protocols.hcp.terms import DATA_CLASSES, RISK_LEVELS, Rejected
from labharness.safety.kernel import Envelope
from labharness.work.admission.approval import Approved
from labharness.work.admission.callers import Caller
from labharness.work.admission.risk import RULES, points_of
from labharness.work.desk.admitting import Admitting, Weighed
from labharness.work.desk.facts import LabFacts


@dataclass(frozen=True, slots=True)
class GateFound:
    """One gate: what it is about, what it found, and whether the task passes it."""

    name: str
    found: str
    passed: bool


@dataclass(frozen=True, slots=True)
class Explained:
    """All gates that a task comes to, in their order.

    Attributes:
        rules: Each rule of risk that was asked: its name, and why it applies or ``""``.
        verdict: Why it would be rejected; ``None`` where it would not.
    """

    gates: tuple[GateFound, ...]
    rules: tuple[tuple[str, str], ...]
    verdict: Rejected | None


def explained(
    payload: TaskSubmit, facts: LabFacts, envelope: Envelope, utc: Callable[[], datetime]
) -> Explained:
    """Ask each gate of admission about a task; the plan is weighed, and not flown.

    The gates behind the first one that a caller does not pass are asked too, as if it had passed.
    """
    verdict = Admitting(facts=facts, envelope=envelope, utc=utc).weigh(payload)
    rejected = verdict if isinstance(verdict, Rejected) else None
    caller = (facts.callers or {}).get(payload.caller_id)
    if facts.callers is not None and caller is None:
        found = Text("caller.unknown", caller=payload.caller_id)
        return Explained((GateFound("caller", found, passed=False),), (), rejected)
    gates = [GateFound("caller", Text("policy.known", caller=payload.caller_id), passed=True)]
    free = replace(facts, callers=None)
    if caller is not None:
        gates += _rights(payload, caller)
        may_all = Caller(caller.id, tuple(facts.capabilities), RISK_LEVELS[-1], DATA_CLASSES[-1])
        free = replace(facts, callers={caller.id: may_all})
    admitting = Admitting(facts=free, envelope=envelope, utc=utc)
    weighed = admitting.weigh(payload)
    if isinstance(weighed, Rejected):
        gates.append(GateFound("task", weighed.reason_message, passed=False))
        return Explained(tuple(gates), (), rejected)
    if caller is not None:
        gates += _bounds(weighed, caller, utc())
    gates.append(_approval(admitting, weighed, payload.caller_id))
    return Explained(tuple(gates), _rules(weighed), rejected)


def _rights(payload: TaskSubmit, caller: Caller) -> Iterator[GateFound]:
    may = payload.capability in caller.capabilities
    allowed = list(caller.capabilities) or "-"
    yield GateFound("capability", Text("policy.of", asked=payload.capability, allowed=allowed), may)
    asked = (payload.constraints and payload.constraints.data_classification) or "T2"
    most = caller.data_class_max
    within = asked in DATA_CLASSES and DATA_CLASSES.index(asked) <= DATA_CLASSES.index(most)
    yield GateFound("data", Text("policy.up_to", asked=asked, most=most), within)


def _bounds(weighed: Weighed, caller: Caller, now_utc: datetime) -> Iterator[GateFound]:
    risk = weighed.risk
    within = risk.points <= points_of(caller.risk_max)
    yield GateFound("risk", Text("policy.up_to", asked=risk.level, most=caller.risk_max), within)
    covered = caller.hours == ALWAYS or caller.hours.cover(now_utc, weighed.planned.duration_s)
    yield GateFound("hours", caller.hours.text, covered)
    used = sorted({owner_of(command.channel) for command in weighed.commands})
    known = caller.instruments
    allowed = Text("policy.all") if known is None else list(known)
    yield GateFound(
        "instruments",
        Text("policy.of", asked=used or "-", allowed=allowed),
        known is None or set(used) <= set(known),
    )


def _approval(admitting: Admitting, weighed: Weighed, requester: str) -> GateFound:
    verdict = admitting.approve(weighed, requester)
    if verdict is None:
        return GateFound("approval", Text("cli.no_approval"), passed=True)
    if isinstance(verdict, Approved):
        return GateFound("approval", Text("cli.approved", by=", ".join(verdict.by)), passed=True)
    return GateFound("approval", Text("cli.person_approves", why=verdict.reason), passed=True)


def _rules(weighed: Weighed) -> tuple[tuple[str, str], ...]:
    applied = weighed.risk.reason_of
    return tuple((rule.name, applied.get(rule.name, "")) for rule in RULES)
