"""What a task would do: weighed and flown on the nominal plant; nothing is opened or submitted."""

from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from labharness.admission.approval import Approved, NotApproved
from labharness.admission.audit import Rejected
from labharness.clock import Chance, Clock, VirtualLoop
from labharness.clock import run as run_on
from labharness.desk import Admitting
from labharness.desk.folder import JOURNAL_NAME
from labharness.hcp.messages import TaskSubmit
from labharness.journal import SqliteJournal
from labharness.lab.files import BadLabFile
from labharness.lab.house import house_facts
from labharness.lab.lab import Lab
from labharness.lab.operators import TerminalOperator
from labharness.lab.preflight import flights
from labharness.lab.reading import LabPlan
from labharness.lab.runs import SIMULATED_SEED
from labharness.plan import Prediction

__all__ = ["Forecast", "forecast"]


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a task would do.

    Attributes:
        asks: Why it would wait for a person's approval; ``""`` where it would not.
        risk_level: What admission weighed it at.
        approved: Who approved it beforehand; ``""`` where nobody has, or need.
    """

    prediction: Prediction
    asks: str
    risk_level: str
    approved: str


def forecast(plan: LabPlan, payload: TaskSubmit) -> Forecast | Rejected:
    """Say what a task would do, or why it would be rejected.

    Raises:
        BadLabFile: The lab has no simulated plant to fly on.
    """
    if not plan.file.has_a_plant:
        raise BadLabFile(f"{plan.path}: without a [plant] nothing can be predicted")
    loop = VirtualLoop()
    facts = replace(house_facts(plan), predict=flights(plan, loop))

    async def main(folder: Path) -> Forecast | Rejected:
        clock = Clock(loop)
        with SqliteJournal(folder / JOURNAL_NAME) as journal:
            lab = Lab(
                plan,
                clock=clock,
                chance=Chance(SIMULATED_SEED),
                journal=journal,
                operator=TerminalOperator(lambda prompt: ""),
            )
            admitting = Admitting(facts=facts, line=lab.line, clock=clock)
            weighed = admitting.weigh(payload)
            if isinstance(weighed, Rejected):
                return await admitting.advise(payload, weighed)
            found = await admitting.predict(weighed, {})
            if isinstance(found, Rejected):
                return await admitting.advise(payload, found)
            if found is None:
                raise BadLabFile(f"{plan.path}: nothing can be predicted")
            approved = admitting.approve(weighed, payload.caller_id)
            return Forecast(
                found,
                asks=approved.reason if isinstance(approved, NotApproved) else "",
                risk_level=weighed.admitted.risk.level,
                approved=", ".join(approved.by) if isinstance(approved, Approved) else "",
            )

    with TemporaryDirectory() as folder:
        return run_on(main(Path(folder)), loop)
