"""Requests for unattended work, and how each is refused."""

import re
from dataclasses import replace
from pathlib import Path

from commands import ROOT, Said, say, wrote
from labharness.lab import Lab, LabPlan
from labharness.line import Instrument
from rig import Ran, approved_copy

SHIPPED = ROOT / "envelopes/labharness_envelopes/labs/cvd_mos2/hazards.toml"
DAYS = re.compile(r"^proof_days = \d+$", re.MULTILINE)
HAZARDS = DAYS.sub(
    "proof_tested = 2025-12-15\nproof_days = 3650",
    SHIPPED.read_text("utf-8").replace('proof = "simulated"\n', ""),
)
"""The shipped table with dated proof tests, as a real lab's: they count for ten years."""


def unattended(folder: Path, hazards: str | None = None, attended: str = "never") -> LabPlan:
    """The short line with nobody there, its hazard table in a folder of its own."""
    (folder / "hazards.toml").write_text(hazards or HAZARDS, "utf-8")

    def edit(text: str) -> str:
        text = text.replace('attended = "always"', f'attended = "{attended}"')
        table = f"{ROOT}/tests/short_line_hazards.toml"
        return text.replace(table, "hazards.toml")

    plan = approved_copy(folder, edit=edit)
    assert plan.file.lab.hazards == "hazards.toml"
    return plan


def on_their_own(plan: LabPlan, does: str) -> LabPlan:
    """Return every channel of every instrument one behaviour when nobody talks to it."""

    def changed(instrument: Instrument) -> Instrument:
        driver = instrument.driver
        channels = {
            name: replace(spec, on_comm_loss=does) for name, spec in driver.channels.items()
        }
        driver.channels = channels
        return instrument

    return replace(plan, instruments=tuple(map(changed, plan.instruments)))


def is_refused(ran: Ran, labs: list[Lab], *words: str) -> None:
    assert ran.type == "task_rejected", ran.body
    assert ran.body["reason_code"] == "safety_violation"
    for word in words:
        assert word in ran.body["reason_message"] + ran.body["suggestion"], ran.body
    assert wrote(labs) == [], "nothing was sent"
    assert [each.guard.core.log for each in labs if not each.nominal] == [[]]


def hazards(plan: LabPlan, *arguments: str) -> Said:
    return say("hazards", *arguments, "--lab", plan.path)
