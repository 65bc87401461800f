"""Loads the inputs that a task on a line names by an address (`inputs_uri`)."""

from pathlib import Path

from labharness.core.vocabulary.texts import Text
from labharness.lab.config.kinds import capabilities
from labharness.lab.config.lab_plan import LabPlan
from labharness.protocols.hcp.messages import TaskSubmit
from labharness.protocols.hcp.terms import DATA_CLASSES, Rejected
from labharness.work.admission.audit import UNDECLARED
from labharness.work.admission.confidential import declared_class
from labharness.work.capability import (
    CannotDo,
    Settings,
    Surroundings,
    form_of,
    needs_no_line,
)
from labharness.work.capability.stored import inputs_of, refers
from labharness.work.desk.folder import ARTIFACTS_NAME, SUBMIT_NAME


def surroundings_of(
    plan: LabPlan, payload: TaskSubmit, runs: Path, settings: Settings
) -> Surroundings:
    """Return the facts for the verbs of a task, beside its inputs.

    Args:
        plan: The lab's files.
        payload: The submission.
        runs: Where the folders of the runs are.
        settings: The lab's table for its capability.
    """
    declared = declared_class(payload) or UNDECLARED
    return Surroundings(
        settings=settings,
        lab_folder=plan.path.resolve().parent,
        runs=runs,
        artifacts=ARTIFACTS_NAME,
        submit=SUBMIT_NAME,
        caller_id=payload.caller_id,
        data_classification=next((each for each in DATA_CLASSES if each == declared), UNDECLARED),
    )


def referred(plan: LabPlan, payload: TaskSubmit, runs: Path) -> TaskSubmit | Rejected:
    """Return a submission with its inputs, wherever they stood, or why they cannot be had.

    Args:
        plan: The lab's files.
        payload: The submission.
        runs: Where the folders of the runs are.
    """
    if not refers(payload.inputs):
        return payload
    around = surroundings_of(plan, payload, runs, Settings())
    found = inputs_of(payload.inputs, around, plan.input_folders)
    if isinstance(found, CannotDo):
        return Rejected(found.reason_code, found.message, None, found.suggestion)
    known = capabilities().get(payload.capability)
    if known is not None and needs_no_line(form_of(known, found)):
        return Rejected("invalid_input", Text("reference.no_line"), None, Text("reference.itself"))
    return payload.model_copy(update={"inputs": dict(found)})
