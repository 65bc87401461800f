"""A run looks at what stands in the instruments before a person is asked to approve it."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from commands import ROOT, say
from labharness.faces.testing.faults import simulated_of
from labharness.lab import Lab, read_lab
from labharness.protocols.hcp.codec import HcpMessage
from labharness.protocols.hcp.messages import TaskSubmit
from rig import Ran, as_submit

LABS = ROOT / "envelopes" / "labharness_envelopes"
MANUAL = 'prepare = [["mode", 0]] }'
GAS = ', ["gas.setpoint", 50]'


def furnace(folder: Path, *edits: tuple[str, str]) -> Path:
    """Write the annealing lab with edits of its two files; return the lab file."""
    shutil.copytree(LABS / "labs" / "annealing_furnace", folder, dirs_exist_ok=True)
    lab, line = folder / "lab.toml", folder / "line.toml"
    shutil.copy(LABS / "lines" / "annealing_furnace.toml", line)
    edits = (('line = "annealing_furnace"\nattended', 'line = "line.toml"\nattended'), *edits)
    for old, new in edits:
        texts = {path: path.read_text("utf-8") for path in (lab, line)}
        assert sum(old in text for text in texts.values()) == 1, old
        for path, text in texts.items():
            path.write_text(text.replace(old, new), "utf-8")
    return lab


def task() -> tuple[HcpMessage, TaskSubmit]:
    body = json.loads((ROOT / "examples" / "annealing.json").read_text("utf-8"))
    body["payload"]["inputs"].update(temperature_c=150)
    return as_submit(body)


def left(values: dict[str, float]) -> Callable[[Lab], None]:
    """Let values stand in the simulated instruments from before."""

    def stand(lab: Lab) -> None:
        for channel, value in values.items():
            name, _, own = channel.partition(".")
            for request in lab.plan.by_name[name].driver.write(own, value):
                simulated_of(lab).faces[name].receive(request.frame)

    return stand


@pytest.mark.promise(9)
def test_a_setpoint_left_over_is_refused_before_approval_and_never_trips(
    tmp_path: Path, run_task: Callable[..., Ran]
) -> None:
    plan = read_lab(furnace(tmp_path / "lab", (GAS, "")))
    ran = run_task(plan, task(), prepare=left({"furnace.setpoint": 150.0}))
    assert (ran.type, ran.body["reason_code"]) == ("task_rejected", "resource_unavailable")
    said = ran.body["reason_message"]
    assert "heat only in flowing argon" in said
    assert "furnace.setpoint (it reads 150)" in said
    assert "prepare" in said
    assert ran.lab.line.memory.trip is None
    assert ran.lab.guard.latch.trip is None


@pytest.mark.promise(9)
def test_a_controller_that_stays_in_manual_is_refused_before_approval_with_the_cure(
    tmp_path: Path, run_task: Callable[..., Ran]
) -> None:
    lab = furnace(tmp_path / "lab", (f", {MANUAL}", " }"))
    ran = run_task(read_lab(lab), task())
    assert (ran.type, ran.body["reason_code"]) == ("task_rejected", "resource_unavailable")
    said = ran.body["reason_message"]
    assert "the controller is in manual" in said
    assert "furnace.mode" in said
    checked = say("lab", "check", "--lab", lab)
    assert checked.code == 1
    assert "furnace.mode" in checked.out
    assert 'prepare = [["mode", 0]]' in checked.out


def test_what_arming_brings_to_its_start_hinders_no_run(
    tmp_path: Path, run_task: Callable[..., Ran]
) -> None:
    lab = furnace(tmp_path / "lab", (GAS, f'{GAS}, ["furnace.setpoint", 0]'))
    stand = left({"furnace.setpoint": 150.0, "furnace.mode": 1.0})
    ran = run_task(read_lab(lab), task(), prepare=stand)
    assert ran.type != "task_rejected" or "approval" in ran.body["reason_code"], ran.body
    assert say("lab", "check", "--lab", lab).code == 0
