"""Admits a task: checks caller, inputs, plan, limits and risk, and runs the pre-flight.

It also finds the approval that a task needs, and suggests other inputs for a task that is rejected.
Decisions are made by admission, the capability and the kernel; this file gives their order.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Protocol

from labharness.core.clock import utc_text
from labharness.core.vocabulary import Command
from labharness.core.vocabulary.channels import owner_of
from labharness.core.vocabulary.comm_loss import comm_loss_text
from labharness.core.vocabulary.durations import format_duration
from labharness.core.vocabulary.texts import Text, several
from labharness.line import Line, NotArmed
from labharness.line.effects import idle_steps
from labharness.line.hindrances import begins
from labharness.protocols.hcp.codec import submission_of
from labharness.protocols.hcp.messages import TaskSubmit
from labharness.protocols.hcp.terms import Rejected
from labharness.safety.kernel import Envelope
from labharness.work.admission import approval as approvals
from labharness.work.admission.approval import ApprovalRequest
from labharness.work.admission.audit import Admitted, Screened, screen, weigh
from labharness.work.admission.callers import Caller, anybody
from labharness.work.admission.policy import refused_by_policy
from labharness.work.admission.risk import (
    UNKNOWN,
    RiskContext,
    categories_of_gas,
    common_name,
    safe_in_time,
)
from labharness.work.capability import CannotDo, Capability, Planned, form_of
from labharness.work.desk.energised import BadPlan, energised, least_duration_s, stated
from labharness.work.desk.facts import LabFacts
from labharness.work.plan import Prediction

ADVISED = frozenset({"safety_violation", "risk_too_high", "approval_denied", "approval_expired"})
WAYS_MAX = 6  # changes of inputs that are tried, each by a whole admission


@dataclass(frozen=True, slots=True)
class Weighed:
    """A submission that may run, as far as is known without instruments.

    Attributes:
        planned: The plan. Its gases, temperature and duration are the more severe of the
            capability's declaration and of the plan's commands, and later of its pre-flight.
        stated: The commands that the plan states, each with its step.
        hazards: Hazard categories, declared and derived.
        undeclared: Gases that it lets in and that the capability did not declare.
    """

    admitted: Admitted
    planned: Planned
    capability: Capability
    stated: tuple[tuple[str, Command], ...]
    hazards: tuple[str, ...]
    undeclared: tuple[str, ...]

    @property
    def commands(self) -> tuple[Command, ...]:
        """The commands that the plan states."""
        return tuple(command for _, command in self.stated)


class BoundedLine(Protocol):
    """The part of a line that admission looks at; a house has no more of it."""

    @property
    def envelope(self) -> Envelope:
        """Its limits and interlocks."""
        ...

    def latched(self) -> str:
        """Return the cause of its latch; ``""`` while it is open."""
        ...

    def unguarded(self) -> tuple[str, ...]:
        """Return which links may not energise, and why not."""
        ...


@dataclass(frozen=True, slots=True)
class LineOnFile:
    """A line as its files state it: open, whatever its latch is when the task's turn comes."""

    envelope: Envelope

    def latched(self) -> str:
        """Return that it is open."""
        return ""

    def unguarded(self) -> tuple[str, ...]:
        """Return no link: which ones may energise is seen when they are opened."""
        return ()


def must_begin(line: Line, weighed: Weighed, table: str) -> None:
    """Refuse a plan that cannot begin from what stands in the instruments of an opened line.

    Args:
        line: The line; arming will bring it to its safe table and ``prepare``.
        weighed: The plan.
        table: Its safe table.

    Raises:
        NotArmed: Names each hindrance, and each step that would do nothing.
    """

    def rests(channel: str) -> float:
        rows = (rule.row for rule in line.memory.guarding.get(channel, ()))
        return min((row.above for row in rows if row.on_loss), default=0.0)

    if not line.instruments:
        return
    first = begins(line.memory, line.instruments, table)
    idle = idle_steps(weighed.stated, first, line.instruments, line.latest, rests)
    if found := (*line.hindrances(table), *idle):
        raise NotArmed(several(*found))


class Admitting:
    """Decides whether a submission may run.

    It changes nothing, so that suggestions can be tried with it.

    Args:
        facts: The lab.
        line: Its line, of which only limits and latch are used.
        utc: Returns the calendar's time.
    """

    def __init__(self, *, facts: LabFacts, line: BoundedLine, utc: Callable[[], datetime]) -> None:
        self._facts = facts
        self._line = line
        self._utc = utc

    def weigh(self, payload: TaskSubmit) -> Weighed | Rejected:
        """Check all that needs no instrument: caller, inputs, plan, its limits and its risk."""
        facts = self._facts
        submission = submission_of(payload)
        offered = {name: form_of(each, payload.inputs) for name, each in facts.capabilities.items()}
        screened = screen(
            submission,
            caller=self._caller(payload.caller_id),
            declarations=[each.declaration for each in offered.values()],
            formats=[name for each in offered.values() for name in each.formats],
            callers=facts.callers or {},
            encrypts=facts.encrypts,
        )
        if facts.refused is not None and not _of_rights(screened):
            return facts.refused
        if isinstance(screened, Rejected):
            return screened
        capability = offered[screened.declaration.name]
        constraints = {"confidence_threshold": screened.confidence_threshold}
        try:
            planned = capability.plan(
                screened.submission.inputs, constraints, facts.line_facts[screened.declaration.name]
            )
        except ValueError as why:  # the lab file states something impossible for this capability
            return Rejected("resource_unavailable", Text("lab.wrong", why=str(why)))
        if isinstance(planned, CannotDo):
            way_out = planned.suggestion or None
            return Rejected(planned.reason_code, planned.message, suggestion=way_out)
        highest = {name: each.high for name, each in self._line.envelope.limits.items()}
        try:
            commands = stated(planned.instructions, highest)
        except BadPlan as why:
            return Rejected("resource_unavailable", Text("plan.wrong", why=str(why)))
        least_s = least_duration_s(planned.instructions)
        planned = replace(planned, duration_s=max(planned.duration_s, least_s))
        longest_s = screened.max_duration_s
        if self._facts.predict is not None:  # the pre-flight alone decides how long it takes
            longest_s = screened.declaration.max_duration_s
        return (
            self._too_long(screened, planned.duration_s, longest_s)
            or self._beyond_limits(commands)
            or self._weighed(screened, planned, capability, commands, (), None)
        )

    def _caller(self, name: str) -> Caller | None:
        known = self._facts.callers
        return anybody(name, tuple(self._facts.capabilities)) if known is None else known.get(name)

    def _weighed(
        self,
        screened: Screened,
        planned: Planned,
        capability: Capability,
        commands: tuple[tuple[str, Command], ...],
        undeclared: tuple[str, ...],
        prediction: Prediction | None,
    ) -> Weighed | Rejected:
        """Weigh a plan by its declaration or by its commands, whichever is more severe."""
        shown = energised([each for _, each in commands], self._facts.sources, prediction)
        said = tuple(map(common_name, planned.process_gases))
        undeclared = (*undeclared, *(gas for gas in shown.gases if gas not in said))
        hottest_c = [
            each
            for each in (planned.temperature_c_max, shown.temperature_c_max)
            if each is not None
        ]
        planned = replace(
            planned,
            process_gases=tuple(dict.fromkeys((*said, *shown.gases))),
            temperature_c_max=max(hottest_c, default=None),
        )
        declared = capability.declaration.safety.hazard_categories
        by_gas = [name for gas in planned.process_gases for name in categories_of_gas(gas)]
        hazards = tuple(dict.fromkeys((*declared, *shown.categories, *by_gas)))
        context = self._risk_context(planned, commands, hazards, undeclared)
        admitted = weigh(screened, context)
        if isinstance(admitted, Rejected):
            return admitted
        refused = refused_by_policy(
            screened.caller,
            now_utc=self._utc(),
            duration_s=planned.duration_s,
            instruments={owner_of(command.channel) for _, command in commands},
        )
        if refused is not None:
            return replace(refused, assessed_risk_level=admitted.risk.level)
        return self._unusable(admitted) or Weighed(
            admitted, planned, capability, commands, hazards, undeclared
        )

    async def predict(
        self, weighed: Weighed, readings: Mapping[str, float]
    ) -> tuple[Weighed, Prediction | None] | Rejected:
        """Fly the plan on the nominal plant, and weigh it again by the results.

        Returns:
            The plan, weighed again, and the prediction; ``None`` where the lab has no plant.
        """
        if self._facts.predict is None:
            return weighed, None
        prediction = await self._facts.predict(weighed.planned.instructions, readings)
        screened = weighed.admitted.screened
        violation = prediction.violation
        if violation is not None:
            step, stage, why = violation.instruction_id, violation.stage, violation.detail
            text = Text("preflight.violation", step=step, stage=stage, why=why)
            return Rejected("safety_violation", text, weighed.admitted.risk.level)
        too_long = self._too_long(screened, prediction.duration_s, screened.max_duration_s)
        if too_long is not None:
            return too_long
        planned = replace(weighed.planned, duration_s=prediction.duration_s)
        again = self._weighed(
            screened, planned, weighed.capability, weighed.stated, weighed.undeclared, prediction
        )
        return again if isinstance(again, Rejected) else (again, prediction)

    def again(self, weighed: Weighed, prediction: Prediction | None) -> Rejected | None:
        """Weigh a plan once more, now that persons have agreed; ``None`` where it may begin.

        Hours may have passed: a run that would have been attended might no longer be.
        """
        agreed, screened = weighed.admitted.risk, weighed.admitted.screened
        now = self._weighed(
            screened,
            weighed.planned,
            weighed.capability,
            weighed.stated,
            weighed.undeclared,
            prediction,
        )
        if isinstance(now, Rejected):
            return now
        risk = now.admitted.risk
        if risk.points <= agreed.points:
            return None
        reasons = Text("parts", parts=risk.reasons)
        return Rejected(
            "risk_too_high",
            Text("policy.later", level=risk.level, reasons=reasons, agreed=agreed.level),
            risk.level,
            Text("policy.submit_again", level=risk.level),
        )

    def _unusable(self, admitted: Admitted) -> Rejected | None:
        if latched := self._line.latched():
            return Rejected(
                "resource_unavailable",
                Text("line.latched", why=latched),
                admitted.risk.level,
                Text("advice.reset_it", lab=self._facts.lab_option),
            )
        if unguarded := self._line.unguarded():
            way_out = Text("advice.loopback")
            return Rejected("resource_unavailable", unguarded[0], admitted.risk.level, way_out)
        return None

    def _too_long(self, screened: Screened, duration_s: float, allowed_s: float) -> Rejected | None:
        needed_s = math.ceil(
            duration_s
        )  # rounded as `plan` prints it, so that exactly that may be asked for
        if needed_s <= allowed_s:
            return None
        asked, needed = format_duration(screened.max_duration_s), format_duration(needed_s)
        longest_s = screened.declaration.max_duration_s
        way_out = Text("duration.set", needed=needed)
        if needed_s > longest_s:
            longest = format_duration(longest_s)
            way_out = Text(
                "duration.shorten", capability=screened.declaration.name, longest=longest
            )
        text = Text("duration.too_long", needed=needed, asked=asked)
        return Rejected("invalid_input", text, suggestion=way_out)

    def _beyond_limits(self, commands: Sequence[tuple[str, Command]]) -> Rejected | None:
        """Compare every value that the plan states with the envelope's hard limits."""
        limits = self._line.envelope.limits
        for name, command in commands:
            limit = limits.get(command.channel)
            if limit is None:
                why = Text("plan.cannot_set", channel=command.channel)
            elif command.unit != limit.unit or not limit.low <= command.value <= limit.high:
                why = Text(
                    "plan.beyond",
                    channel=command.channel,
                    value=command.value,
                    unit=command.unit,
                    low=limit.low,
                    high=limit.high,
                    limit_unit=limit.unit,
                    source=limit.source,
                )
            else:
                continue
            return Rejected(
                "safety_violation",
                Text("plan.step", step=name, why=str(why)),
                suggestion=Text("plan.change", channel=command.channel),
            )
        return None

    def _risk_context(
        self,
        planned: Planned,
        commands: Sequence[tuple[str, Command]],
        hazards: Sequence[str],
        undeclared: tuple[str, ...],
    ) -> RiskContext:
        facts, now = self._facts, self._utc()
        later = facts.attended.next_start(now, planned.duration_s)
        by_hand = any(each.action == "ask_operator" for each in planned.instructions.instructions)
        return RiskContext(
            process_gases=planned.process_gases,
            undeclared_gases=undeclared,
            temperature_c_max=planned.temperature_c_max,
            physical=bool(commands) or by_hand,
            hazardous=bool(hazards),
            attended=facts.attended.cover(now, planned.duration_s),
            attended_at="" if later is None else utc_text(later),
            shared_instrument=facts.shared,
            safeguards_missing=facts.safeguards_missing(hazards, now.date()),
            stays_energised=self._stays_energised(commands),
        )

    def _stays_energised(self, commands: Sequence[tuple[str, Command]]) -> tuple[str, ...]:
        """Return the energised channels that would stay so if every program on the line died.

        A channel is energised by a value above an interlock whose loss under power runs a
        procedure (heat, flammable gas, the laser).
        """
        found: dict[str, str] = {}
        for _, command in commands:
            does = self._facts.on_comm_loss.get(command.channel, UNKNOWN)
            if not safe_in_time(does) and any(
                row.on_loss and command.channel in row.guards and command.value > row.above
                for row in self._line.envelope.interlocks
            ):
                found[command.channel] = Text(
                    "pair", what=command.channel, why=comm_loss_text(does)
                )
        return tuple(found.values())

    def approve(
        self, weighed: Weighed, requester: str
    ) -> approvals.Approved | approvals.NotApproved | None:
        """Find the standing approval that covers a plan; ``None`` where it needs none."""
        admitted, planned = weighed.admitted, weighed.planned
        if not admitted.needs_approval:
            return None
        facts = self._facts
        asked = approvals.RequestFacts(
            requester=requester,
            capability=admitted.screened.declaration.name,
            risk_level=admitted.risk.level,
            quantities={"temperature_c_max": planned.temperature_c_max or 0.0},
            gases=planned.process_gases,
            envelope_digest=facts.envelope_digest,
            lab_digest=facts.lab_digest,
            link_kinds=facts.link_kinds,
        )
        reasons = []
        expired = edited = False
        meant = [each for each in facts.approvals if each.capability == asked.capability]
        for standing in meant or facts.approvals:
            verdict = approvals.verify(standing, asked, facts.approval_key, self._utc())
            if isinstance(verdict, approvals.Approved):
                return verdict
            expired |= verdict.expired
            edited |= verdict.edited
            reasons.append(verdict.reason)
        return approvals.NotApproved(
            Text("parts", parts=reasons) if reasons else Text("approval.none"),
            expired=expired and len(reasons) == 1,
            edited=edited,
        )

    def request(
        self,
        payload: TaskSubmit,
        weighed: Weighed,
        prediction: Prediction | None,
        refused: approvals.NotApproved,
        *,
        session_id: str,
    ) -> ApprovalRequest:
        """Return a plan as it is shown to the persons who may agree to it."""
        risk, planned = weighed.admitted.risk, weighed.planned
        return ApprovalRequest(
            session_id=session_id,
            requester=payload.caller_id,
            capability=weighed.admitted.screened.declaration.name,
            risk_level=risk.level,
            risk_reasons=tuple(risk.reasons),
            intent=payload.intent,
            inputs=payload.inputs,
            instructions=planned.instructions.to_json(),
            duration_s=planned.duration_s if prediction is None else prediction.duration_s,
            prediction=None if prediction is None else prediction.to_json(),
            envelope_digest=self._facts.envelope_digest,
            lab_digest=self._facts.lab_digest,
            why=refused.reason,
            expired=refused.expired,
            edited=refused.edited,
            hazards=weighed.hazards,
        )

    async def advise(self, payload: TaskSubmit, rejected: Rejected) -> Rejected:
        """Add to a rejection a change of inputs that was tried, and would be accepted.

        Without a capability, or without such a change, the suggestion stays, or says that no change
        was found.
        """
        capability = self._facts.capabilities.get(payload.capability)
        if capability is None or rejected.reason_code not in ADVISED:
            return rejected
        facts = self._facts.line_facts[payload.capability]
        ways = tuple(islice(capability.ways_out(payload.inputs, facts), WAYS_MAX))
        for inputs in ways:
            if await self._would_pass(payload.model_copy(update={"inputs": dict(inputs)})):
                changed = {k: v for k, v in inputs.items() if v != payload.inputs.get(k)}
                gone = [k for k in payload.inputs if k not in inputs]
                how = json.dumps(changed, ensure_ascii=False)
                if gone:
                    how = Text("tried.without", changed=how, names=gone)
                text = Text("tried.accepted", how=how)
                if not changed:
                    text = Text("tried.dropped", names=gone)
                if rejected.suggestion:
                    text = Text("sentences", parts=(rejected.suggestion, text))
                return replace(rejected, suggestion=text)
        if rejected.suggestion or not ways:
            return rejected
        return replace(rejected, suggestion=Text("tried.none", count=len(ways)))

    async def _would_pass(self, payload: TaskSubmit) -> bool:
        def refused(weighed: Weighed | Rejected) -> bool:
            return isinstance(weighed, Rejected) or isinstance(
                self.approve(weighed, payload.caller_id), approvals.NotApproved
            )

        weighed = self.weigh(payload)
        if isinstance(weighed, Rejected) or refused(weighed):
            return False
        flown = await self.predict(weighed, {})
        return not (isinstance(flown, Rejected) or refused(flown[0]))


def _of_rights(screened: Screened | Rejected) -> bool:
    """Return whether a caller may not ask at all; it is told nothing of the inputs then."""
    return isinstance(screened, Rejected) and screened.reason_code in ("unauthorized", "forbidden")
