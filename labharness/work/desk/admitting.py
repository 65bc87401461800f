"""Admits a task: checks caller, inputs, plan, limits and risk, flies it, and accepts it.

It also finds the approval that a task needs, and suggests other inputs for a task that is rejected.
Decisions are made by admission, the capability and the kernel; this file gives their order. Upon
acceptance the session gets a token, and its caller the enforced envelope.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Any

from labharness.core.clock import Chance, utc_text, wall_clock_utc
from labharness.core.vocabulary import Command
from labharness.core.vocabulary.channels import owner_of
from labharness.core.vocabulary.durations import format_duration
from labharness.core.vocabulary.texts import Text
from labharness.line import Line
from labharness.protocols.hcp import answers
from labharness.protocols.hcp.codec import HcpMessage, submission_of
from labharness.protocols.hcp.messages import TaskAccepted, TaskSubmit
from labharness.protocols.hcp.terms import RISK_LEVELS, Rejected
from labharness.safety.kernel import Envelope
from labharness.work.admission import approval as approvals
from labharness.work.admission.approval import ApprovalRequest
from labharness.work.admission.audit import Screened, screen
from labharness.work.admission.callers import anybody, refused_by_policy
from labharness.work.admission.risk import (
    RiskAssessment,
    RiskContext,
    categories_of_gas,
    common_name,
    weigh,
)
from labharness.work.admission.token import Scope, issue, new_token
from labharness.work.capability import CannotDo, Capability, Planned, form_of
from labharness.work.desk.energised import (
    BadPlan,
    energised,
    least_duration_s,
    stated,
    stays_energised,
)
from labharness.work.desk.facts import LabFacts
from labharness.work.desk.making_safe import ABORT_S_MAX
from labharness.work.desk.null_line import NO_CHANNEL
from labharness.work.desk.session import Session
from labharness.work.plan import Prediction
from labharness.work.plan.actions import ActionSchema
from labharness.work.plan.branches import unflown

ADVISED = frozenset({"safety_violation", "risk_too_high", "approval_denied", "approval_expired"})
LONGEST_S = 1e9  # of a plan that a message tells of
WAYS_MAX = 6  # changes of inputs that are tried, each by a whole admission


@dataclass(frozen=True, slots=True)
class PlannedTask:
    """A screened submission with its plan.

    Attributes:
        planned: The plan. Its gases, temperature and duration are the more severe of the
            capability's declaration and of the plan's commands, and later of its pre-flight.
        stated: The commands that the plan states, each with its step.
        undeclared: Gases that it lets in and that the capability did not declare.
    """

    screened: Screened
    planned: Planned
    capability: Capability
    stated: tuple[tuple[str, Command], ...]
    undeclared: tuple[str, ...] = ()

    @property
    def commands(self) -> tuple[Command, ...]:
        """The commands that the plan states."""
        return tuple(command for _, command in self.stated)

    @property
    def actions(self) -> Mapping[str, ActionSchema] | None:
        """The actions of a set with branches, which a `SetRunner` carries out; of others none."""
        found: Mapping[str, ActionSchema] | None = getattr(self.capability, "actions", None)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed(PlannedTask):
    """A submission that may run, as far as is known without instruments.

    Attributes:
        hazards: Hazard categories, declared and derived.
    """

    risk: RiskAssessment
    hazards: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitting:
    """Decides whether a submission may run.

    It changes nothing, so that suggestions can be tried with it.

    Attributes:
        facts: The lab.
        envelope: The limits and interlocks of its line.
        utc: Returns the calendar's time.
        line: The line itself; ``None`` where its files alone are known: it then counts as open,
            whatever its latch and its links are when the task's turn comes.
    """

    facts: LabFacts
    envelope: Envelope
    utc: Callable[[], datetime]
    line: Line | None = None

    def weigh(self, payload: TaskSubmit) -> Weighed | Rejected:
        """Check all that needs no instrument: caller, inputs, plan, its limits and its risk."""
        facts = self.facts
        offered = {name: form_of(each, payload.inputs) for name, each in facts.capabilities.items()}
        screened = screen(
            submission_of(payload),
            caller=anybody(payload.caller_id, tuple(offered))
            if facts.callers is None
            else facts.callers.get(payload.caller_id),
            declarations=[each.declaration for each in offered.values()],
            formats=[name for each in offered.values() for name in each.formats],
            callers=facts.callers or {},
            encrypts=facts.encrypts,
        )
        refused = isinstance(screened, Rejected) and screened.reason_code
        if facts.refused is not None and refused not in ("unauthorized", "forbidden"):
            return facts.refused  # who may not ask at all is told nothing of the inputs
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
        highest = {name: each.high for name, each in self.envelope.limits.items()}
        try:
            commands = stated(planned.instructions, highest)
        except BadPlan as why:
            return Rejected("resource_unavailable", Text("plan.wrong", why=str(why)))
        least_s = least_duration_s(planned.instructions.instructions)
        planned = replace(planned, duration_s=max(planned.duration_s, least_s))
        return self._weighed(PlannedTask(screened, planned, capability, commands), None)

    def _weighed(self, task: PlannedTask, prediction: Prediction | None) -> Weighed | Rejected:
        """Hold a plan to its limits, and weigh it by its declaration or by its commands.

        Whichever is more severe counts. Of a plan that will be flown the flight alone says whether
        it takes longer than its caller allows.
        """
        now = self.utc()
        planned = task.planned
        screened = task.screened
        allowed_s = screened.max_duration_s
        if prediction is None and self.facts.predict is not None:
            allowed_s = screened.declaration.max_duration_s
        beyond = self._beyond_limits(task.stated)
        if (found := _too_long(screened, planned.duration_s, allowed_s) or beyond) is not None:
            return found
        shown = energised(task.commands, self.facts.sources, prediction)
        stays = stays_energised(task.commands, self.facts.on_comm_loss, self.envelope.interlocks)
        said = tuple(map(common_name, planned.process_gases))
        undeclared = (*task.undeclared, *(gas for gas in shown.gases if gas not in said))
        both_c = (planned.temperature_c_max, shown.temperature_c_max)
        planned = replace(
            planned,
            process_gases=tuple(dict.fromkeys((*said, *shown.gases))),
            temperature_c_max=max((each for each in both_c if each is not None), default=None),
        )
        declared = task.capability.declaration.safety.hazard_categories
        by_gas = [name for gas in planned.process_gases for name in categories_of_gas(gas)]
        hazards = tuple(dict.fromkeys((*declared, *shown.categories, *by_gas)))
        task = replace(task, planned=planned, undeclared=undeclared)
        risk = weigh(screened, self._risk_context(task, hazards, stays, now))
        if isinstance(risk, Rejected):
            return risk
        refused = refused_by_policy(
            screened.caller,
            now_utc=now,
            duration_s=planned.duration_s,
            instruments={owner_of(command.channel) for command in task.commands},
        )
        if refused is not None:
            return replace(refused, assessed_risk_level=risk.level)
        return self._unusable(risk) or Weighed(
            screened, planned, task.capability, task.stated, undeclared, risk=risk, hazards=hazards
        )

    async def predict(
        self, weighed: Weighed, readings: Mapping[str, float]
    ) -> tuple[Weighed, Prediction | None] | Rejected:
        """Fly the plan on the nominal plant, and weigh it again by the results.

        Returns:
            The plan, weighed again, and the prediction; ``None`` where the lab has no plant.
        """
        if self.facts.predict is None:
            shown = unflown(weighed.planned.instructions, ())
            return self._unattended(weighed, shown) or (weighed, None)
        prediction = await self.facts.predict(weighed.planned.instructions, readings)
        if (violation := prediction.violation) is not None:
            step, stage, why = violation.instruction_id, violation.stage, violation.detail
            text = Text("preflight.violation", step=step, stage=stage, why=why)
            return Rejected("safety_violation", text, weighed.risk.level)
        planned = replace(weighed.planned, duration_s=prediction.duration_s)
        again = self._weighed(replace(weighed, planned=planned), prediction)
        if isinstance(again, Rejected):
            return again
        return self._unattended(again, prediction.unflown) or (again, prediction)

    def _unattended(self, weighed: Weighed, branches: Sequence[str]) -> Rejected | None:
        """Refuse branches that no flight has shown, where a person is not there for all of it.

        One who leaves later makes it riskier than what was agreed to.
        """
        if not branches or self.facts.attended.cover(self.utc(), weighed.planned.duration_s):
            return None
        text, way_out = Text("preflight.unflown", steps=tuple(branches)), Text("advice.attend")
        return Rejected("safety_violation", text, weighed.risk.level, way_out)

    def again(self, weighed: Weighed, prediction: Prediction | None) -> Rejected | None:
        """Weigh a plan once more, now that persons have agreed; ``None`` where it may begin.

        Hours may have passed: a run that would have been attended might no longer be.
        """
        agreed, now = weighed.risk, self._weighed(weighed, prediction)
        if isinstance(now, Rejected):
            return now
        risk = now.risk
        if risk.points <= agreed.points:
            return None
        return _riskier(risk, agreed.level, Text("policy.submit_again", level=risk.level))

    def _unusable(self, risk: RiskAssessment) -> Rejected | None:
        if self.line is None:
            return None
        if latched := self.line.latched():
            way_out = Text("advice.reset_it", lab=self.facts.lab_option)
            why = Text("line.latched", why=latched)
            return Rejected("resource_unavailable", why, risk.level, way_out)
        if unguarded := self.line.unguarded():
            way_out = Text("advice.loopback")
            return Rejected("resource_unavailable", unguarded[0], risk.level, way_out)
        return None

    def _beyond_limits(self, commands: Sequence[tuple[str, Command]]) -> Rejected | None:
        """Compare every value that the plan states with the envelope's hard limits."""
        limits = self.envelope.limits
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
        self, task: PlannedTask, hazards: Sequence[str], stays: tuple[str, ...], now: datetime
    ) -> RiskContext:
        facts, planned = self.facts, task.planned
        later = facts.attended.next_start(now, planned.duration_s)
        ways = (way for each in planned.instructions.instructions for way in each.ways())
        by_hand = any(action == "ask_operator" for action, _ in ways)
        return RiskContext(
            process_gases=planned.process_gases,
            undeclared_gases=task.undeclared,
            temperature_c_max=planned.temperature_c_max,
            physical=bool(task.stated) or by_hand,
            hazardous=bool(hazards),
            attended=facts.attended.cover(now, planned.duration_s),
            attended_at="" if later is None else utc_text(later),
            shared_instrument=facts.shared,
            safeguards_missing=facts.safeguards_missing(hazards, now.date()),
            stays_energised=stays,
        )

    def approve(
        self, weighed: Weighed, requester: str
    ) -> approvals.Approved | approvals.NotApproved | None:
        """Find the standing approval that covers a plan; ``None`` where it needs none."""
        planned = weighed.planned
        if not weighed.risk.needs_approval:
            return None
        facts = self.facts
        asked = approvals.RequestFacts(
            requester=requester,
            capability=weighed.screened.declaration.name,
            risk_level=weighed.risk.level,
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
            verdict = approvals.verify(standing, asked, facts.approval_key, self.utc())
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
        risk, planned, reading = weighed.risk, weighed.planned, weighed.screened.reading
        return ApprovalRequest(
            session_id=session_id,
            requester=payload.caller_id,
            capability=weighed.screened.declaration.name,
            risk_level=risk.level,
            risk_reasons=tuple(risk.reasons),
            intent=payload.intent,
            inputs=payload.inputs,
            instructions=planned.instructions.to_json(),
            duration_s=planned.duration_s if prediction is None else prediction.duration_s,
            prediction=None if prediction is None else prediction.to_json(),
            envelope_digest=self.facts.envelope_digest,
            lab_digest=self.facts.lab_digest,
            why=refused.reason,
            expired=refused.expired,
            edited=refused.edited,
            hazards=weighed.hazards,
            proposed_inputs={} if reading is None else reading.proposed_inputs,
        )

    async def advise(self, payload: TaskSubmit, rejected: Rejected) -> Rejected:
        """Add to a rejection a change of inputs that was tried, and would be accepted.

        Without a capability, or without such a change, the suggestion stays, or says that no change
        was found.
        """
        capability = self.facts.capabilities.get(payload.capability)
        if capability is None or rejected.reason_code not in ADVISED:
            return rejected
        facts = self.facts.line_facts[payload.capability]
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
        weighed = self.weigh(payload)
        if isinstance(weighed, Rejected):
            return False
        flown = await self.predict(weighed, {})
        if isinstance(flown, Rejected):
            return False
        return not isinstance(self.approve(flown[0], payload.caller_id), approvals.NotApproved)


def _too_long(screened: Screened, duration_s: float, allowed_s: float) -> Rejected | None:
    # rounded as `plan` prints it, so that exactly that may be asked for
    needed_s = math.ceil(min(duration_s, LONGEST_S))
    if needed_s <= allowed_s:
        return None
    asked, needed = format_duration(screened.max_duration_s), format_duration(needed_s)
    longest_s = screened.declaration.max_duration_s
    way_out = Text("duration.set", needed=needed)
    if needed_s > longest_s:
        longest = format_duration(longest_s)
        way_out = Text("duration.shorten", capability=screened.declaration.name, longest=longest)
    text = Text("duration.too_long", needed=needed, asked=asked)
    return Rejected("invalid_input", text, suggestion=way_out)


def _riskier(risk: RiskAssessment, agreed: str, way_out: str | None = None) -> Rejected:
    """Refuse a task whose risk is higher by now than the one that was agreed to."""
    reasons = Text("parts", parts=risk.reasons)
    text = Text("policy.later", level=risk.level, reasons=reasons, agreed=agreed)
    return Rejected("risk_too_high", text, risk.level, way_out)


def acceptance(
    session_id: str,
    in_reply_to: str,
    weighed: Weighed,
    facts: LabFacts,
    token: str,
    message_id: str,
    now_utc: datetime,
) -> HcpMessage:
    """Return the message that tells a caller of the acceptance of its task.

    Args:
        session_id: Of the task.
        in_reply_to: ``message_id`` of the submission.
        weighed: The task.
        facts: The lab.
        token: Of the session.
        message_id: Of this message.
        now_utc: Its time.
    """
    screened = weighed.screened
    return answers.task_accepted(
        message_id=message_id,
        timestamp=utc_text(now_utc),
        session_id=session_id,
        in_reply_to=in_reply_to,
        session_token=token,
        risk_level=weighed.risk.level,
        data_classification=screened.data_classification,
        safety_envelope=facts.safety_envelope,
        max_duration=format_duration(screened.max_duration_s),
        abort_timeout=format_duration(ABORT_S_MAX),
    )


def accept(
    session: Session,
    weighed: Weighed,
    facts: LabFacts,
    chance: Chance,
    keep: Callable[[HcpMessage], None],
    told: HcpMessage | None = None,
) -> dict[str, Any]:
    """Issue a session's token; return the record of its acceptance, which does not hold it.

    Args:
        session: Gets the token's record, whose time begins now, and its scope.
        weighed: The task.
        facts: The lab.
        chance: Of token and message id.
        keep: Keeps the message for its caller, before the record of the acceptance is written.
        told: The acceptance that the caller got on receipt; its token is the session's.
    """
    screened, clock = weighed.screened, session.clock
    session.scope = Scope(
        session_id=session.session_id,
        risk_level=weighed.risk.level,
        data_classification=screened.data_classification,
        envelope_digest=facts.envelope_digest,
        instruments=screened.caller.instruments,
    )
    token, session.token = issue(
        chance.entropy,
        session.scope,
        running_at=clock.utc(),
        max_duration_s=screened.max_duration_s,
    )
    message = told
    if message is None:
        asked = session.metadata["source_message_id"]
        message = acceptance(
            session.session_id, asked, weighed, facts, token, chance.uuid4(), clock.utc()
        )
        message = replace(message, unknown=clock.metadata())
        keep(message)
    body = message.payload.stated()
    body["session_token"] = None  # it goes to the caller and nowhere else
    body["risk_reasons"] = list(weighed.risk.reasons)
    body["hazard_categories"] = list(weighed.hazards)
    return body


def as_accepted(weighed: Weighed | Rejected, told: HcpMessage | None) -> Weighed | Rejected:
    """Return a task as it is weighed now, or why it is more than what was accepted on receipt."""
    accepted = getattr(told, "payload", None)
    if isinstance(weighed, Rejected) or not isinstance(accepted, TaskAccepted):
        return weighed
    risk, agreed = weighed.risk, accepted.risk_level
    within = RISK_LEVELS.index(risk.level) <= RISK_LEVELS.index(agreed)
    return weighed if within else _riskier(risk, agreed)


def received_without_line(
    facts: LabFacts, message_id: str, payload: TaskSubmit, session_id: str, chance: Chance
) -> Rejected | HcpMessage | None:
    """Return the answer to a task on its receipt: its acceptance, where it only waits for its turn.

    Args:
        facts: The lab without its line (`facts_without_line`).
        message_id: Of the submission.
        payload: Its payload.
        session_id: Of the task.
        chance: Of token and message id.

    Returns:
        The rejection of a task that can never run, or the acceptance; ``None`` for one that goes on
        from a checkpoint, or that a person would have to agree to.
    """
    admitting = Admitting(facts=facts, envelope=NO_CHANNEL, utc=wall_clock_utc)
    weighed = admitting.weigh(payload)
    if isinstance(weighed, Rejected):
        return weighed
    approved = admitting.approve(weighed, payload.caller_id)
    if payload.resume_from is not None or isinstance(approved, approvals.NotApproved):
        return None
    token = new_token(chance.entropy)
    return acceptance(
        session_id, message_id, weighed, facts, token, chance.uuid4(), wall_clock_utc()
    )
