"""The task message of a scenario, and the approval that admits it."""

import json

from labharness.chaos.scenario import Scenario
from labharness.lab.config.lab_facts import repository_key
from labharness.lab.config.lab_file import read_text
from labharness.lab.config.lab_plan import LabPlan
from labharness.protocols.hcp.codec import HcpMessage, decode
from labharness.protocols.hcp.messages import TaskSubmit
from labharness.work.admission.approval import StandingApproval, sign
from labharness.work.admission.callers import read_callers

__all__ = ["approval", "submission"]

CAPABILITY = "cvd-material-synthesis"
DURATION_MAX = "PT36H"


def submission(plan: LabPlan, scenario: Scenario) -> tuple[HcpMessage, TaskSubmit]:
    """Return the task message of a scenario."""
    named = plan.file.lab.callers
    callers = {} if named is None else read_callers(read_text(plan.beside(named)))
    body = {
        "hcp_version": "1.0",
        "message_id": scenario.name.replace("/", "-"),
        "timestamp": "2026-01-01T08:00:00.000Z",
        "session_id": None,
        "type": "task_submit",
        "payload": {
            "capability": CAPABILITY,
            "capability_version": "1.x",
            "caller_id": next(iter(callers), "chaos"),
            "intent": "Grow while things go wrong",
            "inputs": {
                "target_material": "MoS2",
                "substrate": "SiO2/Si",
                "recipe": dict(scenario.recipe),
            },
            "constraints": {
                "max_duration": DURATION_MAX,
                "confidence_threshold": 0.95,
                "data_classification": "T2",
            },
            "expected_output": {"format": "raman_spectrum_analysis"},
        },
    }
    message = decode(json.dumps(body).encode())
    if not isinstance(message.payload, TaskSubmit):
        raise TypeError("a submission is no submission")
    return message, message.payload


def approval(plan: LabPlan) -> StandingApproval:
    """Return an approval for every growth of the search, which tests the envelope alone."""
    return sign(
        StandingApproval(
            id="fault-search",
            capability=CAPABILITY,
            risk_max="R4",
            input_limits={"temperature_c_max": 2000.0},
            gases_allowed=("argon", "nitrogen", "hydrogen", "hydrogen sulfide"),
            envelope_digest=plan.envelope_digest,
            lab_digest=plan.lab_digest,
            given_by="labharness chaos",
            reason="simulated instruments only: nothing can be harmed",
            until="2036-01-01T00:00:00Z",
            links="loopback",
        ),
        repository_key(),
    )
