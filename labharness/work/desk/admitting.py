"""Before anything physical: screen, plan, hold against the limits, weigh, and ask for approval.

Every decision is admission's, the capability's or the kernel's; what stands here is their order.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from labharness.core.clock import Clock
from labharness.core.vocabulary import Command
from labharness.core.vocabulary.comm_loss import comm_loss_text
from labharness.core.vocabulary.durations import format_duration
from labharness.core.vocabulary.texts import Text
from labharness.line import Line
from labharness.protocols.hcp.codec import submission_of
from labharness.protocols.hcp.messages import TaskSubmit
from labharness.protocols.hcp.terms import Rejected
from labharness.work.admission import approval as approvals
from labharness.work.admission.audit import Admitted, Screened, screen, weigh
from labharness.work.admission.callers import Caller, anybody
from labharness.work.admission.risk import (
    UNKNOWN,
    RiskContext,
    categories_of_gas,
    common_name,
    safe_in_time,
)
from labharness.work.capability import CannotDo, Capability, Planned
from labharness.work.desk.energised import BadPlan, energised, least_duration_s, stated
from labharness.work.desk.facts import LabFacts
from labharness.work.plan import Prediction

__all__ = ["Admitting", "Weighed"]


ADVISED = frozenset({"safety_violation", "risk_too_high", "approval_denied"})
WAYS_MAX = 6  # ways out of a rejection that are tried, each by a whole admission


@dataclass(frozen=True, slots=True)
class Weighed:
    """A submission that may run as far as paper goes.

    Attributes:
        planned: The plan. Its gases, temperature and duration are the graver of what the capability
            says and what the plan's commands, and later its pre-flight, show.
        stated: The commands that the plan states, each with its step.
        hazards: Hazard categories, declared and derived.
        undeclared: Gases that it lets in and the capability did not say.
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


class Admitting:
    """Takes a submission to the door of the line, or back.

    It changes nothing, so that a suggestion can be tried on it.

    Args:
        facts: The lab.
        line: Its line, which is asked for its limits and its latch only.
        clock: Time.
    """

    def __init__(self, *, facts: LabFacts, line: Line, clock: Clock) -> None:
        self._facts = facts
        self._line = line
        self._clock = clock

    def weigh(self, payload: TaskSubmit) -> Weighed | Rejected:
        """Settle all that takes no instrument: who, what, which plan, its limits and its risk."""
        facts = self._facts
        submission = submission_of(payload)
        screened = screen(
            submission,
            caller=self._caller(payload.caller_id),
            declarations=[each.declaration for each in facts.capabilities.values()],
            formats=[name for each in facts.capabilities.values() for name in each.formats],
            callers=facts.callers or {},
        )
        if isinstance(screened, Rejected):
            return screened
        capability = facts.capabilities[screened.declaration.name]
        constraints = {"confidence_threshold": screened.confidence_threshold}
        try:
            planned = capability.plan(
                submission.inputs, constraints, facts.line_facts[screened.declaration.name]
            )
        except ValueError as why:  # what the lab file says of this capability cannot be
            return Rejected("resource_unavailable", Text("lab.wrong", why=str(why)))
        if isinstance(planned, CannotDo):
            return Rejected(
                planned.reason_code, planned.message, suggestion=planned.suggestion or None
            )
        highest = {name: each.high for name, each in self._line.envelope.limits.items()}
        try:
            commands = stated(planned.instructions, highest)
        except BadPlan as why:
            return Rejected("resource_unavailable", Text("plan.wrong", why=str(why)))
        least_s = least_duration_s(planned.instructions)
        planned = replace(planned, duration_s=max(planned.duration_s, least_s))
        longest_s = screened.max_duration_s
        if self._facts.predict is not None:  # the flight says how long it takes, and nothing else
            longest_s = screened.declaration.max_duration_s
        too_long = self._too_long(screened, planned.duration_s, longest_s)
        rejected = too_long or self._beyond_limits(commands)
        if rejected is not None:
            return rejected
        return self._weighed(screened, planned, capability, commands, (), None)

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
        """Weigh a plan by the graver of what was said of it and what it shows."""
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
        return self._unusable(admitted) or Weighed(
            admitted, planned, capability, commands, hazards, undeclared
        )

    async def predict(
        self, weighed: Weighed, readings: Mapping[str, float]
    ) -> tuple[Weighed, Prediction | None] | Rejected:
        """Fly the plan on the nominal plant, and weigh it again by what was seen there.

        Returns:
            The plan as it then weighs, and the prediction; ``None`` where the lab has no plant.
        """
        if self._facts.predict is None:
            return weighed, None
        prediction = await self._facts.predict(weighed.planned.instructions, readings)
        screened = weighed.admitted.screened
        violation = prediction.violation
        if violation is not None:
            return Rejected(
                "safety_violation",
                Text(
                    "preflight.violation",
                    step=violation.instruction_id,
                    stage=violation.stage,
                    why=violation.detail,
                ),
                weighed.admitted.risk.level,
            )
        too_long = self._too_long(screened, prediction.duration_s, screened.max_duration_s)
        if too_long is not None:
            return too_long
        planned = replace(weighed.planned, duration_s=prediction.duration_s)
        again = self._weighed(
            screened, planned, weighed.capability, weighed.stated, weighed.undeclared, prediction
        )
        return again if isinstance(again, Rejected) else (again, prediction)

    def _unusable(self, admitted: Admitted) -> Rejected | None:
        latched = self._line.guard.latch.trip
        if latched is not None:
            return Rejected(
                "resource_unavailable",
                Text("line.latched", why=latched.detail),
                admitted.risk.level,
                Text("advice.reset_it", lab=self._facts.lab_option),
            )
        unguarded = self._line.unguarded()
        if unguarded:
            return Rejected(
                "resource_unavailable",
                unguarded[0],
                admitted.risk.level,
                Text("advice.loopback"),
            )
        return None

    def _too_long(self, screened: Screened, duration_s: float, allowed_s: float) -> Rejected | None:
        needed_s = math.ceil(duration_s)  # as `plan` prints it, who asks for exactly that may run
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
        return Rejected(
            "invalid_input",
            Text("duration.too_long", needed=needed, asked=asked),
            suggestion=way_out,
        )

    def _beyond_limits(self, commands: Sequence[tuple[str, Command]]) -> Rejected | None:
        """Hold every value that the plan states against the envelope's hard limits."""
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
        facts = self._facts
        by_hand = any(each.action == "ask_operator" for each in planned.instructions.instructions)
        return RiskContext(
            process_gases=planned.process_gases,
            undeclared_gases=undeclared,
            temperature_c_max=planned.temperature_c_max,
            physical=bool(commands) or by_hand,
            hazardous=bool(hazards),
            attended=facts.attended,
            shared_instrument=facts.shared,
            safeguards_missing=facts.safeguards_missing(hazards, self._clock.utc().date()),
            stays_energised=self._stays_energised(commands),
        )

    def _stays_energised(self, commands: Sequence[tuple[str, Command]]) -> tuple[str, ...]:
        """Name what the plan energises and what would stay so if all that talks to it died.

        What energises is the envelope's to say: a value above an interlock whose loss under power
        runs a procedure (heat, flammable gas, the laser).
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
        for standing in facts.approvals:
            verdict = approvals.verify(standing, asked, facts.approval_key, self._clock.utc())
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

    async def advise(self, payload: TaskSubmit, rejected: Rejected) -> Rejected:
        """Name a change of inputs that was itself tried, and would be accepted.

        Where no capability is at stake, or no way out of it is found, the suggestion stays, or says
        that none was found.
        """
        capability = self._facts.capabilities.get(payload.capability)
        if capability is None or rejected.reason_code not in ADVISED:
            return rejected
        tried = 0
        for inputs in capability.ways_out(
            payload.inputs, self._facts.line_facts[payload.capability]
        ):
            if tried == WAYS_MAX:
                break
            tried += 1
            if await self._would_pass(payload.model_copy(update={"inputs": dict(inputs)})):
                changed = {k: v for k, v in inputs.items() if v != payload.inputs.get(k)}
                gone = [k for k in payload.inputs if k not in inputs]
                how = json.dumps(changed, ensure_ascii=False)
                if gone:
                    how = Text("tried.without", changed=how, names=gone)
                text = Text("tried.accepted", how=how)
                return replace(rejected, suggestion=_joined(rejected.suggestion, text))
        if rejected.suggestion or not tried:
            return rejected
        text = Text("tried.none", count=tried)
        return replace(rejected, suggestion=text)

    async def _would_pass(self, payload: TaskSubmit) -> bool:
        weighed = self.weigh(payload)
        if isinstance(weighed, Rejected):
            return False
        if isinstance(self.approve(weighed, payload.caller_id), approvals.NotApproved):
            return False
        flown = await self.predict(weighed, {})
        if isinstance(flown, Rejected):
            return False
        return not isinstance(self.approve(flown[0], payload.caller_id), approvals.NotApproved)


def _joined(first: str | None, second: str) -> str:
    return Text("sentences", parts=(first, second)) if first else second
