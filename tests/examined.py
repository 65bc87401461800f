"""What the tests of the doctor share: a machine where all is well, and what is found on another."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from commands import ROOT, edited_lab
from labharness.lab import LabPlan, read_lab
from labharness.lab.doctor.findings import (
    Check,
    ClockFacts,
    FolderFacts,
    MachineFacts,
    SerialFacts,
    examine,
)
from labharness.lab.doctor.latch import LatchFacts, OwnerFacts
from labharness.work.admission.approval import read_approval

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
NODE = "/dev/ttyUSB0"
STEADY = "/dev/serial/by-id/usb-FTDI_A1"
APPROVAL = ROOT / "tests" / "short_line_approval.toml"


def well(**changes: Any) -> MachineFacts:
    """What a machine says on which nothing is wrong, but for what is named."""
    disk = FolderFacts(path="/s", exists=True, free_bytes=10**12, filesystem="ext4", newest=NOON)
    seen = MachineFacts(
        python="3.11.7",
        missing=(),
        modules=frozenset({"serial", "pyvisa", "wsproto", "apprise"}),
        serial={NODE: SerialFacts(exists=True, is_device=True, allowed=True)},
        unreached={"vacuum": ""},
        state=disk,
        runs=replace(disk, path="/r"),
        clock=ClockFacts(NOON, 0.05, 0.05, True),
        owner=OwnerFacts(held=False),
        latch=LatchFacts(),
        callers=2,
        approvals={APPROVAL.name: read_approval(APPROVAL.read_text("utf-8"))},
        user="ada",
    )
    return replace(seen, **changes)


def findings(plan: LabPlan, seen: MachineFacts) -> list[Check]:
    found = [each for each in examine(plan, seen) if each.state == "finding"]
    assert all(each.said and each.fix for each in found)
    return found


def the_finding(plan: LabPlan, seen: MachineFacts) -> Check:
    (found,) = findings(plan, seen)
    return found


def alert(name: str, more: str = "") -> str:
    return f'[[alert]]\nname = "{name}"\nurl = "json://127.0.0.1:9/"\n{more}\n'


def serial_lab(folder: Path, path: str, alerts: str = alert("mail") + alert("chat")) -> LabPlan:
    """The short line with its heaters on a serial port, and people who are told."""
    old = 'name = "heat"\nlink = "loopback"'
    new = f'name = "heat"\nlink = "serial"\npath = "{path}"'
    lab = edited_lab(folder, old, new)
    text = lab.read_text("utf-8").replace("\n[operator]", f"\n{alerts}[operator]", 1)
    lab.write_text(text, "utf-8")
    return read_lab(lab)
