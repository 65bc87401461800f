"""What no task and no alarm could use is found before there is one, by ``lab check`` and doctor."""

import json
import shutil
from pathlib import Path

import pytest

from commands import edited_lab, say
from examined import APPROVAL, alert
from labharness.lab import read_lab

NONSENSE = alert("mail").replace("json://127.0.0.1:9/", "nonsense")
USELESS = {
    "a value that no growth takes": (
        "dwell_s = 9",
        "dwel_s = 9",
        "cvd-material-synthesis: growth.dwel_s: no growth takes it; there are temperature_c,",
    ),
    "a growth backwards": (
        "dwell_s = 9",
        "dwell_s = -9",
        "cvd-material-synthesis: growth.dwell_s is -900.0, allowed is above 0",
    ),
    "an address that nothing knows": (
        "\n[operator]",
        f"\n{NONSENSE}[operator]",
        "alert 'mail': apprise does not know an address like its url",
    ),
    "another gas": (
        'gas = "Ar"',
        'gas = "He"',
        "instrument 'argon': its settings say gas 'He', and argon of the plant has 'Ar'",
    ),
}


@pytest.mark.parametrize("name", USELESS)
def test_what_no_task_and_no_alarm_could_use_is_one_finding(tmp_path: Path, name: str) -> None:
    old, new, words = USELESS[name]
    lab = edited_lab(tmp_path, old, new)
    shutil.copy(APPROVAL, tmp_path)
    said = say("lab", "check", "--lab", lab)
    *_, finding, count = said.out.splitlines()
    assert finding.startswith(f"finding: {words}")
    assert (said.code, count) == (1, "1 finding")
    rows = json.loads(say("doctor", "--lab", lab, "--json").out)
    (row,) = [each for each in rows if each["about"] == "lab file" and each["state"] == "finding"]
    assert row["said"].startswith(words)
    assert row["fix"] == f"mend it in {lab}"


def test_an_approval_that_is_not_there_is_found_with_what_makes_one(tmp_path: Path) -> None:
    lab = edited_lab(tmp_path, "approvals = ", 'approvals = ["nope.toml"] # ')
    said = say("lab", "check", "--lab", lab)
    gone = f"{tmp_path / 'nope.toml'} is not there"
    assert said.out.endswith(f"finding: approvals: {gone}\n1 finding\n")
    assert said.code == 1
    rows = json.loads(say("doctor", "--lab", lab, "--json").out)
    (row,) = [each for each in rows if each["about"] == "approvals"]
    assert row["said"] == gone
    assert row["fix"].startswith(f"sign it: {read_lab(lab).sign_again}; or take it out of {lab}")
