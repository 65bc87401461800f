"""The task message of a scenario, and the approval that admits it."""

import json

from labharness.chaos.scenario import Scenario
from labharness.chaos.table import FaultTable
from labharness.lab.config.lab_facts import repository_key
from labharness.lab.config.lab_file import read_text
from labharness.lab.config.lab_plan import LabPlan
from labharness.protocols.hcp.codec import HcpMessage, decode
from labharness.protocols.hcp.messages import TaskSubmit
from labharness.work.admission.approval import StandingApproval, sign
from labharness.work.admission.callers import read_callers


def submission(
    plan: LabPlan, table: FaultTable, scenario: Scenario
) -> tuple[HcpMessage, TaskSubmit]:
    """Return the task message of a scenario."""
    named = plan.file.lab.callers
    callers = {} if named is None else read_callers(read_text(plan.beside(named)))
    asked = table.request
    recipe = dict(scenario.recipe)
    payload = {
        "capability": asked.capability,
        "capability_version": asked.capability_version,
        "caller_id": next(iter(callers), "chaos"),
        "intent": asked.intent,
        "inputs": asked.inputs | (recipe if asked.recipe_in is None else {asked.recipe_in: recipe}),
        "constraints": asked.constraints,
    }
    if asked.expected_output is not None:
        payload["expected_output"] = asked.expected_output
    body = {
        "hcp_version": "1.0",
        "message_id": scenario.name.replace("/", "-"),
        "timestamp": "2026-01-01T08:00:00.000Z",
        "session_id": None,
        "type": "task_submit",
        "payload": payload,
    }
    message = decode(json.dumps(body).encode())
    if not isinstance(message.payload, TaskSubmit):
        raise TypeError("the message is not a submission")
    return message, message.payload


def approval(plan: LabPlan, table: FaultTable) -> StandingApproval:
    """Return an approval for every run of the search, which tests the envelope alone."""
    return sign(
        StandingApproval(
            id="fault-search",
            capability=table.request.capability,
            risk_max="R4",
            input_limits=table.request.input_limits,
            gases_allowed=table.request.gases_allowed,
            envelope_digest=plan.envelope_digest,
            lab_digest=plan.lab_digest,
            given_by="labharness chaos",
            reason="simulated instruments only: nothing can be harmed",
            until="2036-01-01T00:00:00Z",
            links="loopback",
        ),
        repository_key(),
    )
