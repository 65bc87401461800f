"""How a rejection leaves the command line: who may what, in words or as JSON, read or not."""

import json
import subprocess
from pathlib import Path

from commands import COMMAND, TIMEOUT_S, edited_lab, example, payload, say, submit, wrote
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
    assert said.answer["payload"]["reason_code"] == "approval_denied"
    assert "make approve-sim" in said.answer["payload"]["suggestion"]
    assert wrote(wires) == []


def test_a_rejection_in_words_gives_reason_and_suggestion(tmp_path: Path) -> None:
    path = tmp_path / "task.json"
    path.write_text(json.dumps(payload(1250, *RANGE, "max")), "utf-8")
    said = say("run", path, "--lab", SHORT_LINE, "--out", tmp_path / "run")
    assert said.code == 2
    first, second, _ = said.out.splitlines()
    assert first.startswith("rejected (safety_violation): temperature_range.max: 1250 degC")
    assert second.startswith("suggestion: keep temperature_range.max within 0 to 950 degC")


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
