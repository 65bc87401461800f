"""The doctor finds what stands in the way of a run, on real things, and names a remedy for each."""

import json
import os
import shlex
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from commands import ROOT, edited_lab, say, wrote
from examined import APPROVAL, NODE, NOON, STEADY, alert, findings, serial_lab, the_finding, well
from labharness.core.operations import operations
from labharness.core.vocabulary import Cause, Trip
from labharness.faces.cli.parser import parse
from labharness.lab import Lab, LabPlan, read_lab
from labharness.lab.config.hazards import HazardRow, HazardTable
from labharness.lab.config.lock import LineLock
from labharness.lab.doctor.findings import ClockFacts, FolderFacts, SerialFacts, examine
from labharness.lab.doctor.latch import LatchFacts, OwnerFacts
from labharness.lab.doctor.machine import look
from labharness.safety.guard import Latch
from labharness.work.admission.approval import read_approval
from rig import EXAMPLE, SHORT_LINE

pytestmark = pytest.mark.skipif(os.name != "posix", reason="pseudo-terminals and permission bits")


# ---- a machine where all is well, and one thing that is not


def test_where_all_is_well_nothing_is_found(short_plan: LabPlan) -> None:
    assert findings(short_plan, well()) == []


@pytest.mark.parametrize(
    ("changes", "about", "said", "fix"),
    [
        ({"missing": ("scipy",)}, "python", "lacks scipy", "pip install scipy"),
        ({"missing": ("simpy",)}, "python", "lacks simpy", "pip install simpy"),
        ({"callers": "callers file: no TOML"}, "callers", "no TOML", "callers.toml"),
        ({"callers": 0}, "callers", "names nobody", "name one"),
        ({"owner": OwnerFacts(False, trouble="/s/line.lock: no")}, "owner", "no", "chown"),
        ({"latch": LatchFacts(trouble="torn")}, "latch", "torn", "remove the file by hand"),
        (
            {"approvals": {"a.toml": "gone"}},
            "approvals",
            "gone",
            "labharness.lab.wiring.approve_sim",
        ),
        ({"clock": ClockFacts(NOON, 0.05, 0.0, True)}, "clock", "0.00 s", "host"),
        ({"clock": ClockFacts(NOON, 60.0, 0.05, True)}, "clock", "went 60.00 s", "host"),
        ({"clock": ClockFacts(NOON, 0.05, 0.05, False)}, "clock", "no time server", "set-ntp"),
    ],
)
def test_one_thing_that_is_wrong_is_one_finding(
    short_plan: LabPlan, changes: dict[str, object], about: str, said: str, fix: str
) -> None:
    found = the_finding(short_plan, well(**changes))
    assert found.about == about
    assert said in found.said
    assert fix in found.fix


@pytest.mark.parametrize(
    ("now", "wrong"),
    [
        (datetime(1970, 1, 1, tzinfo=UTC), True),
        (NOON - timedelta(days=1), True),  # before a file of the state directory
        (NOON - timedelta(seconds=30), False),
        (NOON + timedelta(days=1), False),
    ],
)
def test_a_clock_that_went_back_is_found(short_plan: LabPlan, now: datetime, wrong: bool) -> None:
    clock = ClockFacts(now, 0.05, 0.05, True)
    found = findings(short_plan, well(clock=clock))
    found = [each for each in found if each.about != "proof tests"]  # of a day to come
    assert [each.about for each in found] == ["clock"] * wrong
    found = findings(short_plan, well(clock=clock, state=replace(well().state, newest=None)))
    found = [each for each in found if each.about != "proof tests"]
    assert [each.about for each in found] == ["clock"] * (now.year < 2026)


def test_what_this_system_does_not_say_is_no_finding(short_plan: LabPlan) -> None:
    seen = well(clock=ClockFacts(NOON, 0.05, 0.05, None))
    assert findings(short_plan, seen) == []
    assert "unknown" in {each.state for each in examine(short_plan, seen)}


@pytest.mark.parametrize(
    ("facts", "said", "fix"),
    [
        (SerialFacts(exists=False, present=("/dev/ttyUSB7",)), "there is no", "/dev/ttyUSB7"),
        (SerialFacts(exists=True), "is not a device", "lab file"),
        (
            SerialFacts(exists=True, is_device=True, group="dialout"),
            "ada may not read and write",
            "sudo usermod -aG dialout ada",
        ),
        (
            SerialFacts(exists=True, is_device=True, group="dialout", joined=True),
            "may not",
            "log out and in again",
        ),
        (SerialFacts(exists=True, is_device=True), "may not", "udev"),
        (
            SerialFacts(exists=True, is_device=True, allowed=True, held_by="process 7 (cu)"),
            "is open in process 7 (cu)",
            f"fuser -v {NODE}",
        ),
        (
            SerialFacts(exists=True, is_device=True, allowed=True, trouble="Input/output error"),
            "does not open: Input/output error",
            "pull its plug",
        ),
        (
            SerialFacts(exists=True, is_device=True, allowed=True, by_id=STEADY),
            "whichever was plugged in first",
            f'path = "{STEADY}"',
        ),
    ],
)
def test_a_serial_port_says_what_it_lacks(
    tmp_path: Path, facts: SerialFacts, said: str, fix: str
) -> None:
    plan = serial_lab(tmp_path, NODE)
    found = [each for each in findings(plan, well(serial={NODE: facts})) if "port" in each.about]
    assert [each.about for each in found] == ["port heat"]
    assert said in found[0].said
    assert fix in found[0].fix


@pytest.mark.promise(69)
def test_an_approver_that_is_only_a_name_is_told_where_instruments_are_real(
    tmp_path: Path, short_plan: LabPlan
) -> None:
    def said(plan: LabPlan) -> list[str]:
        return [each.said for each in examine(plan, well()) if each.about == "approvers"]

    plan = serial_lab(tmp_path, NODE)
    (told,) = said(plan)
    assert "by a name alone" in told
    assert "by a name alone" in say("lab", "check", "--lab", plan.path).out
    assert said(short_plan) == []
    assert "by a name alone" not in say("lab", "check", "--lab", SHORT_LINE).out
    file = plan.file.model_copy(
        update={"lab": plan.file.lab.model_copy(update={"approvers": "approvers.toml"})}
    )
    assert said(replace(plan, file=file)) == []


def test_who_simulates_the_instruments_is_not_to_be_ended(tmp_path: Path) -> None:
    plan = serial_lab(tmp_path, NODE)
    plan.file.operator.__dict__["kind"] = "served"
    held = well(serial={NODE: SerialFacts(exists=True, is_device=True, allowed=True, held_by="7")})
    assert "port heat" not in [each.about for each in findings(plan, held)]


def test_a_real_port_belongs_to_the_guard_process(tmp_path: Path) -> None:
    plan = serial_lab(tmp_path, NODE)
    found = {each.about: each for each in findings(plan, well(approvals={}))}
    assert set(found) == {"drivers"}  # the driver was never on hardware
    said = {each.about: each for each in examine(plan, well(approvals={}))}
    assert said["guard"].said == "the guard process holds heat; run starts it"


def test_a_standing_approval_is_void_on_a_real_lab_and_after_an_edit(
    tmp_path: Path, short_plan: LabPlan
) -> None:
    real = [each for each in findings(serial_lab(tmp_path, NODE), well()) if "appr" in each.about]
    assert "all loopback" in real[0].said
    assert "a person approves" in real[0].fix
    edited = replace(short_plan, lab_digest="sha256:other")
    assert "the lab file is sha256:other" in the_finding(edited, well()).said
    approval = read_approval(APPROVAL.read_text("utf-8"))
    forged = replace(approval, given_by="Mallory")
    assert "signature" in the_finding(short_plan, well(approvals={"a": forged})).said


@pytest.mark.parametrize(
    ("kind", "what"), [("nfs4", "another computer"), ("tmpfs", "memory"), ("ext4", "")]
)
def test_a_real_lab_keeps_its_latch_on_a_disk_of_its_own(
    tmp_path: Path, short_plan: LabPlan, kind: str, what: str
) -> None:
    seen = well(state=replace(well().state, filesystem=kind))
    found = [each for each in findings(serial_lab(tmp_path, NODE), seen) if each.about == "state"]
    assert bool(found) == bool(what)
    assert all(what in each.said for each in found)
    assert findings(short_plan, seen) == []


@pytest.mark.parametrize(
    ("folder", "said"),
    [
        (FolderFacts(path="/s", exists=True, is_folder=False), "is not a folder"),
        (FolderFacts(path="/s", exists=True, writable=False), "nothing can be written"),
        (FolderFacts(path="/etc", exists=False, writable=False), "written in /etc"),
        (FolderFacts(path="/s", exists=True, ours=False), "belongs to another user"),
        (FolderFacts(path="/s", exists=True, mode=0o770), "open to other users (0770)"),
        (FolderFacts(path="/s", exists=True, sync_trouble="No space left"), "No space left"),
    ],
)
def test_a_state_directory_that_keeps_no_latch_is_found(
    short_plan: LabPlan, folder: FolderFacts, said: str
) -> None:
    found = the_finding(short_plan, well(state=replace(folder, free_bytes=10**12)))
    assert found.about == "state"
    assert said in found.said
    assert "chown" not in found.fix or folder.exists  # never what lies above the folder


def test_a_disk_without_room_for_a_day_is_found(short_plan: LabPlan) -> None:
    needs = 2 * 24 * 11 * 600_000
    for free, wrong in ((needs - 1, True), (needs, False)):
        found = findings(short_plan, well(runs=replace(well().runs, free_bytes=free)))
        assert [each.about for each in found] == ["disk"] * wrong


@pytest.mark.parametrize(
    ("tested", "safeguard", "said"),
    [
        (date(2025, 12, 30), "a relief valve", ""),
        (date(2025, 10, 30), "a relief valve", "due in 27 d"),
        (date(2025, 9, 1), "a relief valve", "32 d late"),
        (None, "a relief valve", "never proof-tested"),
        (date(2025, 12, 30), " ", "no hardware safeguard"),
    ],
)
def test_each_hazard_says_when_its_safeguard_must_be_tested(
    short_plan: LabPlan, tested: date | None, safeguard: str, said: str
) -> None:
    row = HazardRow(
        name="burst",
        hazard="the tube bursts",
        safeguard=safeguard,
        proof_tested=tested,
        proof_days=90,
        categories=("high_temperature",),
    )
    clock = ClockFacts(datetime(2026, 1, 1, tzinfo=UTC), 0.05, 0.05, True)
    plan = replace(short_plan, hazards=HazardTable(hazard=(row,)))
    found = findings(plan, well(clock=clock, state=replace(well().state, newest=None)))
    assert [said in each.said for each in found] == [True] * bool(said)


def test_the_command_that_records_a_proof_test_can_be_given_as_it_is_told(
    short_plan: LabPlan,
) -> None:
    row = HazardRow(
        name="hydrogen leak",
        hazard="hydrogen leaks",
        safeguard="a detector",
        proof_days=90,
        categories=(),
    )
    (found,) = findings(replace(short_plan, hazards=HazardTable(hazard=(row,))), well())
    told = found.fix.removeprefix("test it, then: ")
    assert told == (
        "labharness hazards proof 'hydrogen leak' --name NAME --reason HOW"
        f" --lab {shlex.quote(str(SHORT_LINE))}"
    )
    assert parse(operations(), shlex.split(told)[1:]).hazard == "hydrogen leak"


@pytest.mark.parametrize(
    ("alerts", "said"),
    [
        ("", "a trip is told to nobody"),
        (alert("mail"), "told at once on mail alone"),
        (alert("mail") + alert("boss", "level = 1"), "told at once on mail alone"),
        (alert("mail") + alert("chat", 'severities = ["fault"]'), "told at once on mail alone"),
        (alert("mail") + alert("chat"), ""),
    ],
)
def test_a_real_line_of_which_not_two_channels_tell_at_once_is_found(
    tmp_path: Path, alerts: str, said: str
) -> None:
    plan = serial_lab(tmp_path, NODE, alerts)
    found = [each for each in findings(plan, well(approvals={})) if each.about == "alerts"]
    assert [said in each.said for each in found] == [True] * bool(said)
    assert all("labharness alarms test" in each.fix for each in found)


def test_alerts_that_nothing_can_send_are_found(tmp_path: Path) -> None:
    plan = serial_lab(tmp_path, NODE)
    seen = well(approvals={}, modules=well().modules - {"apprise"})
    (found,) = [each for each in findings(plan, seen) if each.about == "alerts"]
    assert "apprise is missing" in found.said
    assert "labharness[alert]" in found.fix


# ---- the command


def test_a_simulated_lab_that_is_well_exits_0_and_touches_no_wire(wires: list[Lab]) -> None:
    said = say("doctor", "--lab", SHORT_LINE)
    found = [line for line in said.out.splitlines() if line.startswith("finding")]
    # a computer that tests run on may have a clock or a disk of its own
    assert [line for line in found if line.split()[1] not in ("clock", "disk")] == []
    assert said.code == (1 if found else 0)
    assert said.out.endswith("no findings\n") or found
    assert "port heat" in said.out
    assert wrote(wires) == []


def test_a_latch_a_folder_open_to_all_and_an_overdue_test_are_told_with_their_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "proof_tested = 2025-12-15\nproof_days = 3650"
    hazards = ROOT / "tests/short_line_hazards.toml"
    old_text = hazards.read_text("utf-8")
    assert text in old_text
    late = old_text.replace(text, "proof_tested = 2024-12-15\nproof_days = 180")
    (tmp_path / "hazards.toml").write_text(late, "utf-8")
    lab = edited_lab(tmp_path, "hazards = ", 'hazards = "hazards.toml" # ')
    state_dir = read_lab(lab).state_dir
    state_dir.mkdir(parents=True)
    state_dir.chmod(0o777)
    trip = Trip(
        cause=Cause.STOP_REQUEST,
        procedure="immediate_shutdown",
        channel="",
        value=None,
        at_s=1.0,
        detail="somebody asked to stop",
    )
    Latch(state_dir / "latch.json").close(trip)
    said = say("doctor", "--lab", lab, "--json")
    assert said.code == 1
    rows = {row["about"]: row for row in json.loads(said.out) if row["state"] == "finding"}
    assert "chmod 700" in rows["state"]["fix"]
    assert "somebody asked to stop" in rows["latch"]["said"]
    assert "latched since 20" in rows["latch"]["said"]
    assert f"labharness reset --name NAME --reason REASON --lab {lab}" in rows["latch"]["fix"]
    assert " d late" in rows["proof tests"]["said"]
    assert (
        f"labharness.lab.wiring.approve_sim {lab}" in rows["approvals"]["fix"]
    )  # the lab file was edited
    state_dir.chmod(0o700)
    (state_dir / "latch.json").write_text("garbage", "utf-8")
    said = say("doctor", "--lab", lab)
    assert said.code == 1
    assert "the line stays latched" in said.out


def test_a_line_that_was_left_armed_is_told_as_latched_and_one_that_is_in_use_is_not() -> None:
    state_dir = read_lab(SHORT_LINE).state_dir
    state_dir.mkdir(parents=True)
    Latch(state_dir / "latch.json").set_marker("")
    with LineLock(state_dir):
        assert "left armed" not in say("doctor", "--lab", SHORT_LINE).out
    said = say("doctor", "--lab", SHORT_LINE)
    assert said.code == 1
    assert "latched since 20" in said.out
    assert "the line was left armed" in said.out


def test_a_bad_lab_file_exits_64(tmp_path: Path) -> None:
    say("doctor", "--lab", tmp_path / "gone.toml").is_one_plain_error("gone.toml")


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="takes a folder nobody can write in")
def test_a_state_directory_that_cannot_be_made_is_found_by_trying(
    short_plan: LabPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever may do anything (root) is told by the system only when it is tried."""
    monkeypatch.setenv("LABHARNESS_STATE", "/proc/labharness-state")
    seen = look(read_lab(SHORT_LINE), tmp_path)
    assert [each for each in findings(short_plan, seen) if each.about == "state"]
    said = say("run", EXAMPLE, "--lab", SHORT_LINE, "--out", tmp_path / "run")
    said.is_one_plain_error("state directory /proc/labharness-state")
    assert not (tmp_path / "run").exists()
