"""Unattended work: refused before anything is sent when hardware or an instrument falls short."""

import json
import sys
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from commands import say, spawn_on_full_disk
from labharness.core.clock import wall_clock_utc
from labharness.lab import BadLabFile, Lab, read_lab
from labharness.lab.config.hazards import Proof, read_hazards, record_proof
from labharness.work.admission.risk import safe_in_time
from left_alone import HAZARDS, hazards, is_refused, on_their_own, unattended
from rig import SOON, Run, accepted

TODAY = date(2026, 1, 1)  # the day of every virtual run
OVER_HEAT = "independent over-temperature limiter on its own thermocouple, opens the mains"


def test_unattended_work_runs_where_everything_holds(tmp_path: Path, run_task: Run) -> None:
    ran = run_task(on_their_own(unattended(tmp_path), "safe(5)"), abort=SOON)
    assert any("nobody attends" in each for each in accepted(ran)["risk_reasons"])


@pytest.mark.promise(3)
@pytest.mark.parametrize("does", ["hold", "unknown", "safe(20)"])
def test_unattended_heating_is_refused_when_an_instrument_would_stay_as_it_is(
    tmp_path: Path, run_task: Run, wires: list[Lab], does: str
) -> None:
    ran = run_task(on_their_own(unattended(tmp_path), does))
    is_refused(
        ran,
        wires,
        "within 5 s when nobody talks to them",
        f"furnace.setpoint: {does}",
        f"box.furnace_contactor: {does}",
        "attended hours",
    )
    assert "argon" not in ran.body["reason_message"], "inert gas energises nothing"


@pytest.mark.promise(35)
@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (f'safeguard = "{OVER_HEAT}"', 'safeguard = ""', "over-temperature: no hardware safeguard"),
        (
            f'safeguard = "{OVER_HEAT}"',
            'safeguard = "  "',
            "over-temperature: no hardware safeguard",
        ),
        ("2025-12-15", "2015-12-15", f"proof test of {OVER_HEAT} is 20 d late"),
        (
            "proof_tested = 2025-12-15\n",
            "",
            f"over-temperature: {OVER_HEAT} was never proof-tested",
        ),
        ("2025-12-15", "2026-01-02", f"{OVER_HEAT} was never proof-tested"),
        ("2025-12-15", "2199-01-01", f"proof test of {OVER_HEAT} is dated 2199-01-01"),
        ('["high_temperature"]', "[]", ""),
    ],
    ids=["empty", "blank", "overdue", "never", "yet to come", "dated to come", "no row"],
)
def test_unattended_work_is_refused_without_hardware_that_was_tested(
    tmp_path: Path, run_task: Run, wires: list[Lab], old: str, new: str, says: str
) -> None:
    text = HAZARDS.replace(old, new, 1)
    if not says:  # two rows guard against heat: take both out of that category
        text = text.replace('"high_temperature", ', "")
        says = "high_temperature: no row in the hazard table"
    ran = run_task(on_their_own(unattended(tmp_path, text), "safe(5)"))
    is_refused(ran, wires, says, "labharness hazards proof")


@pytest.mark.thorough
def test_attended_work_with_an_overdue_test_is_one_level_riskier(
    tmp_path: Path, run_task: Run
) -> None:
    text = HAZARDS.replace("2025-12-15", "2015-12-15", 1)
    ran = run_task(unattended(tmp_path, text, attended="always"), abort=SOON)
    assert accepted(ran)["risk_level"] == "R4"
    assert any("past its proof test" in each for each in accepted(ran)["risk_reasons"])


@pytest.mark.promise(3)
@pytest.mark.parametrize(
    ("does", "good"),
    [("safe(0)", True), ("safe(5)", True), ("safe(5.01)", False), ("hold", False), ("", False)],
)
def test_safe_is_safe_within_five_seconds(does: str, good: bool) -> None:
    assert safe_in_time(does) is good


@pytest.mark.thorough
def test_a_recorded_proof_test_lifts_the_refusal_and_voids_no_approval(
    tmp_path: Path, run_task: Run
) -> None:
    text = HAZARDS.replace("2025-12-15", "2015-12-15", 1)
    plan = unattended(tmp_path, text)
    before = (plan.lab_digest, plan.envelope_digest)
    assert run_task(on_their_own(plan, "safe(5)")).type == "task_rejected"
    words = ("--name", "Ada Lovelace", "--reason", "heated to 1010 C, mains opened")
    said = hazards(plan, "proof", "over-temperature", "--date", "2025-12-30", *words)
    assert said.out == "over-temperature: passed on 2025-12-30, Ada Lovelace\n"
    again = unattended(tmp_path, text)
    assert (again.lab_digest, again.envelope_digest) == before
    assert accepted(run_task(on_their_own(again, "safe(5)"), abort=SOON))
    log = (tmp_path / "hazards.proofs.jsonl").read_text("utf-8")
    for word in ("Ada Lovelace", "heated to 1010 C", "2025-12-30"):
        assert word in log


def test_a_failed_proof_test_counts_against_the_safeguard(tmp_path: Path) -> None:
    path = tmp_path / "hazards.toml"
    path.write_text(HAZARDS, "utf-8")
    proof = Proof(hazard="laser", day=TODAY, by="Ada", reason="did not open", passed=False)
    record_proof(read_hazards(path), proof, TODAY)
    (why,) = read_hazards(path).missing(["laser"], TODAY)
    assert "failed its proof test on 2026-01-01" in why
    record_proof(read_hazards(path), replace(proof, passed=True), TODAY)
    assert read_hazards(path).missing(["laser"], TODAY) == ()


@pytest.mark.promise(35)
def test_simulated_hardware_is_never_overdue_and_stands_before_no_real_port(tmp_path: Path) -> None:
    """The shipped tables say so; that hardware failed a test counts with them too."""
    simulated = 'proof = "simulated"\n\n' + HAZARDS.replace("proof_tested = 2025-12-15\n", "")
    plan = unattended(tmp_path, simulated)
    for day in (TODAY, date(2026, 12, 16), date(2099, 1, 1)):
        assert plan.hazards.missing(["high_temperature", "flammable_gas", "laser"], day) == ()
    listed = hazards(plan, "list")
    assert (listed.code, listed.out.count("simulated, with the hardware\n")) == (0, 6)
    assert "virtual time" not in listed.out
    words = ("--name", "Ada", "--reason", "it stuck", "--failed")
    assert hazards(plan, "proof", "laser", *words).code == 0
    (why,) = unattended(tmp_path, simulated).hazards.missing(["laser"], wall_clock_utc().date())
    assert "failed its proof test" in why
    lab = plan.path.read_text("utf-8")
    real = lab.replace('link = "loopback"', 'link = "tcp"\nhost = "127.0.0.1"\nport = 9', 1)
    assert real != lab
    plan.path.write_text(real.replace("[lab]\n", f'[lab]\nstate_dir = "{tmp_path}"\n'), "utf-8")
    with pytest.raises(BadLabFile, match="leads to a real instrument: take that line out"):
        read_lab(plan.path)


def test_a_clock_that_went_back_proves_nothing_and_is_said_by_all_who_look(tmp_path: Path) -> None:
    """Tests of years to come, as a log shows them whose computer has lost its calendar since."""
    plan = unattended(tmp_path)
    line = {"hazard": "laser", "day": "2199-01-01", "by": "A", "reason": "B", "passed": True}
    (tmp_path / "hazards.proofs.jsonl").write_text(json.dumps(line) + "\n", "utf-8")
    row = next(row for row in read_hazards(tmp_path / "hazards.toml").hazard if row.name == "laser")
    known = row.last_proof(TODAY)
    assert getattr(known, "day", None) == date(2025, 12, 15), "the one before is known"
    assert "set the clock right" in row.missing(TODAY)
    listed = hazards(plan, "list")
    doctor = say("doctor", "--lab", plan.path)
    tested = hazards(plan, "proof", "laser", "--name", "Ada", "--reason", "tried")
    for said in (listed, doctor, tested):
        assert said.code == 1
        assert "is dated 2199-01-01, and today is " in said.out


def test_a_test_between_the_day_of_a_simulated_run_and_today_does_not_count_yet(
    tmp_path: Path,
) -> None:
    path = tmp_path / "hazards.toml"
    path.write_text(HAZARDS, "utf-8")
    today = wall_clock_utc().date()
    line = {"hazard": "laser", "day": today.isoformat(), "by": "A", "reason": "B", "passed": False}
    path.with_suffix(".proofs.jsonl").write_text(json.dumps(line) + "\n", "utf-8")
    table = read_hazards(path)
    assert table.missing(["laser"], TODAY) == ()
    assert "failed its proof test" in table.missing(["laser"], today)[0]


def test_hazards_list_names_each_safeguard_and_what_is_missing(tmp_path: Path) -> None:
    text = HAZARDS.replace("2025-12-15", "2010-01-01", 1)
    said = hazards(unattended(tmp_path, text), "list")
    assert said.code == 1
    assert "  MISSING    over-temperature: proof test of" in said.out
    assert said.out.count("  safeguard  ") == 6


@pytest.mark.promise(35)
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ("proof", "lasr", "--name", "A", "--reason", "B"),
            "no hazard 'lasr' (did you mean laser?)",
        ),
        (("proof", "fire", "--name", "A", "--reason", "B"), "no hazard 'fire'; the table has"),
        (("proof", "laser", "--name", " ", "--reason", "B"), "--name"),
        (
            ("proof", "laser", "--name", "A", "--reason", "B", "--date", "soon"),
            "not a day written as",
        ),
        (
            ("proof", "laser", "--name", "A", "--reason", "B", "--date", "2199-01-01"),
            "2199-01-01 is yet to come",
        ),
        (
            ("proof", "laser", "--name", "A", "--reason", "B", "--date", "1800-01-01"),
            "1800-01-01 is before 2000-01-01",
        ),
    ],
)
def test_a_proof_test_that_cannot_be_is_one_plain_error(
    tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    hazards(unattended(tmp_path), *arguments).is_one_plain_error(words)
    assert not (tmp_path / "hazards.proofs.jsonl").exists()


def test_the_list_of_a_simulated_lab_says_what_counts_in_virtual_time(tmp_path: Path) -> None:
    plan = unattended(tmp_path, HAZARDS.replace("2025-12-15", "2000-01-01", 1))
    late = "in virtual time it is 2026-01-01: over-temperature is missing or late"
    assert hazards(plan, "list").out.splitlines()[-1] == late
    path = tmp_path / "hazards.toml"
    path.write_text(HAZARDS, "utf-8")
    assert hazards(plan, "list").out.splitlines()[-1] == (
        "in virtual time it is 2026-01-01: nothing is missing or late"
    )


@pytest.mark.skipif(sys.platform == "win32", reason="file size limits are Unix's")
def test_a_proof_test_that_a_full_disk_does_not_take_leaves_no_half_of_a_line(
    tmp_path: Path,
) -> None:
    lab = unattended(tmp_path).path
    words = ["hazards", "proof", "laser", "--lab", str(lab), "--name", "Ada", "--reason", "x" * 99]
    assert say(*words).code == 0
    log = tmp_path / "hazards.proofs.jsonl"
    before = log.read_bytes()
    spawn_on_full_disk(len(before) + 40, *words).is_one_plain_error(f"{log}: ")
    assert log.read_bytes() == before
    assert say(*words).code == 0
    assert len(read_hazards(tmp_path / "hazards.toml").hazard) == 6


def test_a_log_that_cannot_be_read_proves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "hazards.toml"
    path.write_text(HAZARDS, "utf-8")
    (tmp_path / "hazards.proofs.jsonl").write_text('{"hazard": "laser"}\n', "utf-8")
    with pytest.raises(BadLabFile, match="line 1: no record of a proof test"):
        read_hazards(path)
