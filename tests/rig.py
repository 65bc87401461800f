"""What tests share: messages to submit, labs with approvals of their own, and what breaks."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from labharness.faces.testing.bench import Ran, as_submit
from labharness.faces.testing.faults import Injection, simulated_of
from labharness.lab import Lab, LabPlan, read_lab
from labharness.lab.config.lab_facts import repository_key
from labharness.line import Tripped
from labharness.protocols.hcp.codec import HcpMessage
from labharness.protocols.hcp.messages import TaskSubmit
from labharness.work.admission.approval import StandingApproval, sign, write_approval

__all__ = ["Injection", "Ran", "as_submit"]  # passed on

HERE = Path(__file__).parent
EXAMPLE = HERE.parent / "examples" / "mos2-monolayer.json"
SHORT_LINE = HERE / "short_line.toml"
SHIPPED_ENVELOPE = HERE.parent / "envelopes" / "labharness_envelopes" / "lines" / "cvd_mos2.toml"
LABS = HERE.parent / "envelopes" / "labharness_envelopes" / "labs"
SHIPPED, IV, ANNEALING_LAB = (
    LABS / name / "lab.toml" for name in ("cvd_mos2", "iv_bench", "annealing_furnace")
)
ON_SHORT = ("--lab", SHORT_LINE)
RAMAN = HERE / "data" / "raman"
Run = Callable[..., Ran]
SETTINGS: dict[str, dict[str, Any]] = {  # where a lab file must say more than the kind
    "alicat_mc": {"unit": "A", "gas": "Ar", "full_scale_sccm": 100.0},
    "eurotherm_2400": {"program": 1},
}
SAFE_TABLE = "immediate_shutdown"
"""The procedure that makes the shipped line, and those based on it, safe before and after a run."""

SOON = ("arming", 1.0)
"""When to stop a task that is accepted and need not be grown as well."""


def submission(*, max_duration: str | None = None, **inputs: Any) -> tuple[HcpMessage, TaskSubmit]:
    """The example's message, with other inputs."""
    body = json.loads(EXAMPLE.read_text("utf-8"))
    if max_duration is not None:
        body["payload"]["constraints"]["max_duration"] = max_duration
    body["payload"]["inputs"].update(inputs)
    return as_submit(body)


def task_submit(payload: object, message_id: str = "m") -> dict[str, Any]:
    """The message around a payload, as its caller writes it."""
    return {
        "hcp_version": "1.0",
        "message_id": message_id,
        "timestamp": "2026-01-01T00:00:00Z",
        "session_id": None,
        "type": "task_submit",
        "payload": payload,
    }


def line_texts() -> dict[str, str]:
    """The files of the short line by name, as they stand in a folder of their own.

    Its envelope is a few changes of the shipped one, whose text is among them.
    """
    own = (HERE / "short_line_envelope.toml").read_text("utf-8")
    assert 'based_on = "cvd_mos2"\n' in own
    lab = SHORT_LINE.read_text("utf-8")
    return {
        "lab.toml": lab.replace('"../', f'"{HERE.parent.as_posix()}/'),
        "short_line_envelope.toml": own.replace('"cvd_mos2"\n', '"cvd_mos2.toml"\n'),
        "cvd_mos2.toml": SHIPPED_ENVELOPE.read_text("utf-8"),
    }


def approved_copy(
    folder: Path,
    *,
    temperature_c_max: float = 799.0,
    gases: tuple[str, ...] = ("argon", "nitrogen"),
    edit: Callable[[str], str] = str,
) -> LabPlan:
    """The short line in a folder of its own, each file edited, with a test approval up to R4."""
    for name, text in line_texts().items():
        (folder / name).write_text(edit(text), "utf-8")
    plan = read_lab(folder / "lab.toml")
    approval = StandingApproval(
        id="test",
        capability="cvd-material-synthesis",
        risk_max="R4",
        input_limits={"temperature_c_max": temperature_c_max},
        gases_allowed=gases,
        envelope_digest=plan.envelope_digest,
        lab_digest=plan.lab_digest,
        given_by="the tests",
        reason="simulated",
        until="2036-01-01T00:00:00Z",
        links="loopback",
    )
    text = write_approval(sign(approval, repository_key()))
    (folder / "short_line_approval.toml").write_text(text, "utf-8")
    return plan


def accepted(ran: Ran) -> Mapping[str, Any]:
    """Return what was said when a task was accepted, once."""
    (body,) = [data for kind, data in ran.events if kind == "task_accepted"]
    return body


def plant_fault(name: str, value: object = True) -> Callable[[Lab], None]:
    """Break something in the simulated lab."""

    def act(lab: Lab) -> None:
        setattr(simulated_of(lab).plant.faults, name, value)

    return act


def cut(port: str) -> Callable[[Lab], None]:
    """Cut the wires of one port."""

    def act(lab: Lab) -> None:
        simulated_of(lab).buses[port].faults.cut = True

    return act


def lab_with(done: Callable[[Lab], None]) -> type[Lab]:
    """Every lab as usual, with something done to it as soon as it is there."""

    class Done(Lab):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            done(self)

    return Done


async def until_tripped(lab: Lab, within_s: float) -> str:
    """Wait for a trip; return its words, or none."""
    end_s = lab.clock.now_s() + within_s
    try:
        while lab.clock.now_s() < end_s:
            await lab.line.next_tick()
    except Tripped as why:
        return why.trip.detail
    return ""


def part(plant: Any, name: str) -> Any:
    """Return a part of a plant, of whichever kind it is."""
    return plant.parts[name]


def heat_is_off(ran: Ran, *, inert: bool = True) -> bool:
    """By the plant's own account: no mains, no hydrogen, the inert open (or shut with all gas)."""
    coils = simulated_of(ran.lab).plant.parts["relays"].coils
    return not (coils[6] or coils[7] or coils[2]) and coils[0] is inert and coils[1] is not inert


def stick_argon(lab: Lab) -> None:
    """Leave the argon controller on its analog input: serial setpoints are silently ignored."""
    simulated_of(lab).faces["argon"].setpoint_source = "A"


def deafen_argon(lab: Lab) -> None:
    """Leave the argon controller at 50 sccm, deaf to the serial line: no end can be verified."""
    face = simulated_of(lab).faces["argon"]
    face._setpoint_sccm = face._part.setpoint_sccm = 50.0
    stick_argon(lab)
