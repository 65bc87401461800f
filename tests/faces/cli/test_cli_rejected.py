"""How a rejection leaves the command line: who may what, in words or as JSON, read or not."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from commands import COMMAND, TIMEOUT_S, Said, edited_lab, example, payload, say, submit, wrote
from labharness.core.vocabulary.durations import format_duration
from labharness.lab import Lab
from rig import SHORT_LINE

RANGE = ("inputs", "temperature_range")


def test_a_caller_without_the_capability_is_forbidden_and_told_what_it_may_invoke(
    tmp_path: Path, wires: list[Lab]
) -> None:
    callers = '[callers.visitor]\ncapabilities = []\nrisk_max = "R4"\ndata_class_max = "T2"\n'
    (tmp_path / "callers.toml").write_text(callers, "utf-8")
    lab = edited_lab(tmp_path, "callers = ", 'callers = "callers.toml" # ')
    said = submit(tmp_path, payload("visitor", "caller_id"), "--lab", lab)
    assert said.code == 2
    assert said.answer["payload"]["reason_code"] == "forbidden"
    assert "may not invoke cvd-material-synthesis" in said.answer["payload"]["reason_message"]
    assert said.answer["payload"]["suggestion"] == "Ask for access to a capability"
    assert wrote(wires) == []


def test_an_edit_of_the_lab_file_voids_its_standing_approval(
    tmp_path: Path, wires: list[Lab]
) -> None:
    lab = edited_lab(tmp_path, "delay_s = 5", "delay_s = 6")
    approval = SHORT_LINE.with_name("short_line_approval.toml")
    (tmp_path / approval.name).write_bytes(approval.read_bytes())
    said = submit(tmp_path, example(), "--lab", lab)
    assert said.code == 2
    assert said.answer["payload"]["reason_code"] == "approval_expired"
    assert said.answer["payload"]["suggestion"].endswith(
        f"then sign again: python -m labharness.lab.wiring.approve_sim {lab}"
    )
    assert wrote(wires) == []


def test_a_risk_that_nobody_approved_names_a_person_and_the_lab(tmp_path: Path) -> None:
    here = tmp_path / "a lab"
    here.mkdir()
    lab = edited_lab(here, "delay_s = 5", "delay_s = 6")
    approval = SHORT_LINE.with_name("short_line_approval.toml")
    (here / approval.name).write_bytes(approval.read_bytes())
    suggestion = submit(tmp_path, payload({"min": 840, "max": 850}, *RANGE), "--lab", lab).answer[
        "payload"
    ]["suggestion"]
    assert re.search(rf"approvals show [0-9a-f]+ --lab '{lab}'\)", suggestion)
    assert f"--reason WHY --lab '{lab}')" in suggestion
    assert "approve_sim" not in suggestion


def test_a_rejection_in_words_gives_reason_and_suggestion(tmp_path: Path) -> None:
    path = tmp_path / "task.json"
    path.write_text(json.dumps(payload(1250, *RANGE, "max")), "utf-8")
    said = say("run", path, "--lab", SHORT_LINE, "--out", tmp_path / "run")
    assert said.code == 2
    first, second, *_, last = said.out.splitlines()
    assert first.startswith("rejected (safety_violation): temperature_range.max: 1250 degC")
    assert second.startswith("suggestion: keep temperature_range.max within 0 to 950 degC")
    assert last == f"open {tmp_path / 'run' / 'report.html'}"


@pytest.mark.thorough
def test_a_rejection_that_nobody_reads_still_exits_2(tmp_path: Path) -> None:
    path = tmp_path / "task.json"
    path.write_text(json.dumps(payload(1250, *RANGE, "max")), "utf-8")
    command: list[str | Path] = [*COMMAND, "run", path, "--lab", SHORT_LINE]
    run = subprocess.Popen(
        [*command, "--out", tmp_path / "run"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert run.stdout is not None
    assert run.stderr is not None
    run.stdout.close()
    with run.stderr as errors:
        assert b"Traceback" not in errors.read()
    assert run.wait(TIMEOUT_S) == 2


def test_a_misspelt_or_misplaced_key_is_named_and_not_dropped(
    tmp_path: Path, wires: list[Lab]
) -> None:
    takes = "; it takes target_material, substrate, temperature_range, recipe"
    for where, key, said in (
        ("inputs", "temprature_range", f"not an input (did you mean temperature_range?){takes}"),
        ("inputs", "dwell_s", f"not an input (did you mean recipe.dwell_s?){takes}"),
        ("inputs", "colour", f"not an input{takes}"),
        ("constraints", "confidence_treshold", "not known (did you mean confidence_threshold?)"),
        ("expected_output", "formt", "not known (did you mean format?); it takes format,"),
    ):
        rejected = submit(tmp_path, payload(1, where, key)).answer["payload"]
        assert rejected["reason_code"] == "invalid_input"
        assert rejected["reason_message"].startswith(f"{where}: {key!r} is {said}")
        assert rejected["suggestion"].startswith(f"Leave out of {where}: {key}")
    assert wrote(wires) == []


def test_a_misspelt_key_comes_before_the_one_that_is_missing(tmp_path: Path) -> None:
    body = payload("SiO2/Si", "inputs", "substrat")
    del body["payload"]["inputs"]["substrate"]
    rejected = submit(tmp_path, body).answer["payload"]
    assert "did you mean substrate?" in rejected["reason_message"]


def test_a_stranger_is_told_who_may_ask(tmp_path: Path) -> None:
    rejected = submit(tmp_path, payload("nobody", "caller_id")).answer["payload"]
    assert rejected["reason_code"] == "unauthorized"
    assert rejected["suggestion"].startswith("caller_id must be one of harness-alpha-001")


def test_a_range_in_kelvin_is_repeated_as_it_was_written(tmp_path: Path) -> None:
    rejected = submit(tmp_path, payload("kelvin", *RANGE, "unit")).answer["payload"]
    assert rejected["reason_message"].endswith("(you wrote 700 to 750 kelvin)")


def test_a_file_that_is_no_message_is_told_where_one_is(tmp_path: Path) -> None:
    path = tmp_path / "README.md"
    path.write_text("# labharness\n", "utf-8")
    said = say("run", path, "--lab", SHORT_LINE)
    said.is_one_plain_error(
        "README.md is not an HCP message", "examples/mos2-monolayer.json is a task"
    )


# ---- how long it takes


def test_what_plan_prints_is_what_max_duration_is_held_against(tmp_path: Path) -> None:
    def planned(max_duration: str) -> Said:
        path = tmp_path / f"{max_duration}.json"
        path.write_text(json.dumps(payload(max_duration, "constraints", "max_duration")), "utf-8")
        return say("plan", path, "--lab", SHORT_LINE)

    takes = re.match(r"takes (\d+):(\d\d):(\d\d) ", planned("PT72H").out)
    assert takes is not None
    seconds = int(takes[1]) * 3600 + int(takes[2]) * 60 + int(takes[3])
    assert planned(f"PT{seconds}S").code == 0
    short = planned(f"PT{seconds - 1}S")
    assert short.code == 2
    needed = format_duration(seconds)
    assert f"The plan takes {needed}, max_duration is" in short.out
    assert f"Set constraints.max_duration to {needed} or more" in short.out
