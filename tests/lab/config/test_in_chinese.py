"""Whoever reads a lab in Chinese is told in Chinese throughout: errors, findings and remedies."""

import re
from pathlib import Path

import pytest

from commands import Said, say
from small_lab import EDITS, Edits, edited, written

ENGLISH = re.compile(r"\b[a-z]{2,}(?: [a-z]{2,}){2,}")
COMMAND = re.compile(r"(?:labharness|sudo|pip install|python -m|make) [^；。]*|'[^']*'")
DRIVERS_WORDS = "未经核实"


def english(said: Said) -> list[str]:
    """Return the prose in what was printed that is not Chinese."""
    lines = [each for each in (said.out + said.err).splitlines() if DRIVERS_WORDS not in each]
    return [line for line in lines if ENGLISH.search(COMMAND.sub("", line))]


@pytest.mark.promise(53)
@pytest.mark.parametrize("edits", EDITS.values(), ids=EDITS)
@pytest.mark.parametrize("command", [("lab", "check"), ("doctor",)], ids=["check", "doctor"])
def test_a_lab_is_checked_in_chinese(
    tmp_path: Path, command: tuple[str, ...], edits: Edits
) -> None:
    lab = edited(tmp_path, edits)
    plain = say(*command, "--lab", lab)
    told = say(*command, "--lab", lab, "--lang", "zh")
    assert told.code == plain.code
    assert re.search("[\u4e00-\u9fff]", told.out + told.err)
    assert english(told) == []


REFUSED = {
    "no instrument": ("set", "oven.setpoint", "20", "degC"),
    "has no channel": ("set", "furnace.setpont", "20", "degC"),
    "name a channel": ("set", "furnace", "20", "degC"),
    "is read only": ("set", "furnace.temperature", "20", "degC"),
    "is in degC": ("set", "furnace.setpoint", "20", "K"),
    "no unit": ("set", "furnace.setpoint", "20"),
    "there is no alarm": ("alarms", "ack", "oven", "--name", "Ada", "--reason", "seen"),
}


@pytest.mark.promise(53)
@pytest.mark.parametrize(("phrase", "command"), REFUSED.items(), ids=REFUSED)
def test_what_is_asked_of_a_lab_in_vain_is_refused_in_chinese(
    tmp_path: Path, phrase: str, command: tuple[str, ...]
) -> None:
    lab = written(tmp_path)
    plain = say(*command, "--lab", lab)
    told = say(*command, "--lab", lab, "--lang", "zh")
    assert told.code == plain.code != 0
    assert phrase in plain.err
    assert phrase not in told.err
    assert re.search("[\u4e00-\u9fff]", told.err)
