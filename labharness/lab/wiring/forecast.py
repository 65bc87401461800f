"""Predicts a task for `labharness plan`, by a run on the nominal plant.

Nothing is submitted, and no port is opened.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from labharness.core.clock import Chance, Clock, VirtualLoop, wall_clock_utc
from labharness.core.clock import run as run_on
from labharness.core.vocabulary.texts import Text
from labharness.journal import SqliteJournal
from labharness.lab.config.lab_facts import lab_facts_of
from labharness.lab.config.lab_file import BadLabFile
from labharness.lab.config.lab_plan import LabPlan
from labharness.lab.wiring.lab import Lab
from labharness.lab.wiring.operators import TerminalOperator
from labharness.lab.wiring.preflight import flights
from labharness.lab.wiring.referring import referred
from labharness.lab.wiring.runs import SIMULATED_SEED
from labharness.protocols.hcp.messages import TaskSubmit
from labharness.protocols.hcp.terms import Rejected
from labharness.work.admission.approval import Approved, NotApproved
from labharness.work.desk.admitting import Admitting
from labharness.work.desk.folder import JOURNAL_NAME
from labharness.work.plan import Prediction


@dataclass(frozen=True, slots=True)
class Forecast:
    """The forecast of a task.

    Attributes:
        asks: Why it would wait for a person's approval; ``""`` where it would not.
        risk_level: The level that admission gave it.
        risk_reasons: Why.
        approved: The standing approval; ``""`` where there is none, or none is needed.
        unknown: The facts that could not be read; ``""`` for none.
    """

    prediction: Prediction
    asks: str
    risk_level: str
    risk_reasons: tuple[str, ...]
    approved: str
    unknown: str


def forecast(plan: LabPlan, payload: TaskSubmit) -> Forecast | Rejected:
    """Return the forecast of a task, or the reason that it would be rejected.

    Raises:
        BadLabFile: The lab has no simulated plant to fly on.
        LatchUnreadable: The line counts as latched.
    """
    if not plan.file.has_a_plant:
        raise BadLabFile(Text("forecast.no_plant", path=str(plan.path)))
    found = referred(plan, payload, Path("runs").absolute())
    if isinstance(found, Rejected):
        return found
    payload = found
    loop = VirtualLoop()
    facts = replace(lab_facts_of(plan), predict=flights(plan, loop))
    unknown = _hidden(plan)
    has_state = not unknown and plan.state_dir.is_dir()

    async def main(folder: Path) -> Forecast | Rejected:
        clock = Clock(loop)
        with SqliteJournal(folder / JOURNAL_NAME) as journal:
            lab = Lab(
                plan if has_state else replace(plan, state_dir=folder),  # a flight makes none
                clock=clock,
                chance=Chance(SIMULATED_SEED),
                journal=journal,
                operator=TerminalOperator(lambda prompt: ""),
            )
            admitting = Admitting(
                facts=facts, envelope=lab.line.envelope, utc=wall_clock_utc, line=lab.line
            )
            weighed = admitting.weigh(payload)
            if isinstance(weighed, Rejected):
                return await admitting.advise(payload, weighed)
            flown = await admitting.predict(weighed, {})
            if isinstance(flown, Rejected):
                return await admitting.advise(payload, flown)
            weighed, found = flown
            if found is None:
                raise BadLabFile(Text("forecast.nothing", path=str(plan.path)))
            approved = admitting.approve(weighed, payload.caller_id)
            return Forecast(
                found,
                asks=approved.reason if isinstance(approved, NotApproved) else "",
                risk_level=weighed.risk.level,
                risk_reasons=tuple(weighed.risk.reasons),
                approved=", ".join(approved.by) if isinstance(approved, Approved) else "",
                unknown=unknown,
            )

    with TemporaryDirectory() as folder:
        return run_on(main(Path(folder)), loop)


def _hidden(plan: LabPlan) -> str:
    """Return why the latch cannot be seen, such as by an account that may not enter its folder."""
    try:
        (plan.state_dir / "latch.json").exists()
    except OSError as why:
        return Text("forecast.hidden", folder=str(plan.state_dir), why=why.strerror)
    return ""
