"""A stand that only measures takes one lab file: no envelope, no procedure."""

from pathlib import Path

import pytest

from commands import say

STAND = """
[lab]
id = "gauge-stand"
title = "One gauge"
attended = "always"

[operator]
kind = "simulated"

[plant]
kind = "cvd_tube"

[[port]]
name = "vacuum"
link = "loopback"
baud = 9600

[[instrument]]
name = "it"
port = "vacuum"
"""
GAUGE = 'kind = "mks_910"\npart = "gauge"\nsettings = {address = 253}\n'
FLOW = """kind = "alicat_mc"
part = "argon"
settings = {unit = "A", gas = "Ar", full_scale_sccm = 500.0}
"""


def test_a_stand_is_one_file_and_is_checked_and_read(tmp_path: Path) -> None:
    lab = tmp_path / "lab.toml"
    lab.write_text(STAND + GAUGE, "utf-8")
    checked = say("lab", "check", "--connect", "--lab", lab)
    assert checked.code == 0, checked.err
    assert "no findings" in checked.out
    said = say("read", "it.pressure", "--lab", lab)
    assert said.code == 0, said.err
    assert said.out.startswith("it.pressure 7")


@pytest.mark.promise(9)
def test_what_can_be_set_is_no_part_of_such_a_stand(tmp_path: Path) -> None:
    lab = tmp_path / "lab.toml"
    lab.write_text(STAND + FLOW, "utf-8")
    said = say("lab", "check", "--lab", lab)
    assert said.code == 64
    assert "it.setpoint can be set and has no limit" in said.err
