"""Before anything physical: screen, plan, hold against the limits, weigh, and ask for approval.

Every decision is admission's, the capability's or the kernel's; what stands here is their order.
"""

from collections.abc import Callable

from labharness.admission import approval as approvals
from labharness.admission.audit import Admitted, Rejected, Screened, screen, weigh
from labharness.admission.risk import RiskContext
from labharness.capability import CannotDo, Capability, Planned
from labharness.clock import Clock
from labharness.desk.facts import HouseFacts
from labharness.hcp.codec import submission_of
from labharness.hcp.messages import TaskSubmit
from labharness.journal import Journal
from labharness.line import Line
from labharness.plan import stated_commands
from labharness.vocabulary.durations import format_duration

__all__ = ["Admitting"]


class Admitting:
    """Takes a submission to the door of the line, or back.

    Args:
        facts: The lab.
        line: Its line, not opened: it is asked for its limits and its latch only.
        clock: Time.
        journal: Where an approval is recorded.
        wait: Called before an approval is looked for.
    """

    def __init__(
        self,
        *,
        facts: HouseFacts,
        line: Line,
        clock: Clock,
        journal: Journal,
        wait: Callable[[], None],
    ) -> None:
        self._facts = facts
        self._line = line
        self._clock = clock
        self._journal = journal
        self._wait = wait

    def admit(self, payload: TaskSubmit) -> tuple[Admitted, Planned, Capability] | Rejected:
        """Give what may run and how, or why not and what would do."""
        facts = self._facts
        submission = submission_of(payload)
        screened = screen(
            submission,
            caller=facts.callers.get(payload.caller_id),
            declarations=[each.declaration for each in facts.capabilities.values()],
            formats=[name for each in facts.capabilities.values() for name in each.formats],
        )
        if isinstance(screened, Rejected):
            return screened
        capability = facts.capabilities[screened.declaration.name]
        constraints = {"confidence_threshold": screened.confidence_threshold}
        planned = capability.plan(submission.inputs, constraints, facts.line_facts)
        if isinstance(planned, CannotDo):
            return Rejected(
                planned.reason_code, planned.message, suggestion=planned.suggestion or None
            )
        rejected = self._too_long(screened, planned) or self._beyond_limits(planned)
        if rejected is not None:
            return rejected
        weighed = weigh(screened, self._risk_context(planned, capability))
        if isinstance(weighed, Rejected):
            return weighed
        latched = self._line.guard.latch.trip
        if latched is not None:
            return Rejected(
                "resource_unavailable",
                f"The line is latched: {latched.detail}",
                weighed.risk.level,
                "Clear the cause; then a person resets it: labharness reset --name --reason",
            )
        unguarded = self._line.unguarded()
        if unguarded:
            return Rejected(
                "resource_unavailable",
                unguarded[0],
                weighed.risk.level,
                "Run it on a lab whose links are all loopback",
            )
        refused = self._approve(weighed, planned, payload.caller_id)
        return refused if refused is not None else (weighed, planned, capability)

    def _too_long(self, screened: Screened, planned: Planned) -> Rejected | None:
        if planned.duration_s <= screened.max_duration_s:
            return None
        asked = format_duration(screened.max_duration_s)
        needed = format_duration(-(-planned.duration_s // 60) * 60)
        return Rejected(
            "invalid_input",
            f"The plan takes about {needed}, max_duration is {asked}",
            suggestion=f"Set constraints.max_duration to {needed} or more",
        )

    def _beyond_limits(self, planned: Planned) -> Rejected | None:
        """Hold every value that the plan states against the envelope's hard limits."""
        limits = self._line.envelope.limits
        stated = [
            (each.instruction_id, command)
            for each in planned.instructions.instructions
            for command in stated_commands(each.action, each.parameters)
        ]
        for name, command in stated:
            limit = limits.get(command.channel)
            if limit is None:
                why = f"{command.channel} cannot be set on this line"
            elif command.unit != limit.unit or not limit.low <= command.value <= limit.high:
                why = (
                    f"{command.channel} = {command.value:g} {command.unit}, allowed "
                    f"{limit.low:g} to {limit.high:g} {limit.unit} ({limit.source})"
                )
            else:
                continue
            return Rejected(
                "safety_violation",
                f"Step {name}: {why}",
                suggestion=f"Change what leads to {command.channel}, to within the limit",
            )
        return None

    def _risk_context(self, planned: Planned, capability: Capability) -> RiskContext:
        facts = self._facts
        hazards = capability.declaration.safety.hazard_categories
        if any(gas.lower() in ("h2", "hydrogen") for gas in planned.process_gases):
            hazards = (*hazards, "flammable_gas")
        return RiskContext(
            process_gases=planned.process_gases,
            temperature_c_max=planned.temperature_c_max,
            attended=facts.attended,
            shared_instrument=facts.shared,
            safeguards_missing=facts.safeguards_missing(hazards, self._clock.utc().date()),
        )

    def _approve(self, admitted: Admitted, planned: Planned, requester: str) -> Rejected | None:
        if not admitted.needs_approval:
            return None
        self._wait()
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
        expired = False
        for standing in facts.approvals:
            verdict = approvals.verify(standing, asked, facts.approval_key, self._clock.utc())
            if isinstance(verdict, approvals.Approved):
                body = {"approval": standing.id, "by": list(verdict.by), "reason": verdict.reason}
                self._journal.append("approved", body, self._clock.now_s())
                return None
            expired |= verdict.expired
            reasons.append(verdict.reason)
        return Rejected(
            "approval_expired" if expired and len(reasons) == 1 else "approval_denied",
            "No approval covers this task: " + ("; ".join(reasons) or "there is none"),
            admitted.risk.level,
            "A person other than the requester approves it; for the simulated lab, after an edit "
            "of its files: make approve-sim",
        )
