"""Whoever reads a lab in Chinese is told in Chinese throughout: errors, findings and remedies."""

import re
from pathlib import Path

import pytest

from commands import Said, say
from small_lab import written

ENGLISH = re.compile(r"\b[a-z]{2,}(?: [a-z]{2,}){2,}")
COMMAND = re.compile(r"(?:labharness|sudo|pip install|python -m|make) [^；。]*|'[^']*'")
DRIVERS_WORDS = "未经核实"
EDITS = {
    "keys": (
        ("lab.toml", 'title = "Annealing in argon"', 'titel = "Annealing in argon"'),
        ("lab.toml", 'attended = "always"', 'attended = "sometimes"'),
        ("lab.toml", "volume_cm3 = 1000", 'volume_cm3 = "1 L"'),
        ("lab.toml", "baud = 19200", "baud = -1"),
    ),
    "rows": (
        ("lab.toml", "[tube]\nvolume_cm3 = 1000", ""),
        ("lab.toml", 'port = "gas"', 'port = "gass"'),
    ),
    "drivers": (
        ("lab.toml", "unit = 1", "unit = 1, decimals = 7"),
        ("lab.toml", 'kind = "alicat_mc"', 'kind = "alicat"'),
    ),
    "limits": (
        ("envelope.toml", 'channel = "furnace.output_high"', 'channel = "mfc.setpoint"'),
        ("envelope.toml", '["furnace.mode", 1]', '["furnace.mod", 1], ["oven.mode", 1]'),
        ("envelope.toml", "high = 850", "high = 8500"),
    ),
    "watches": (
        ("envelope.toml", '[[watch]]\nchannel = "mfc.flow"', '[[watch]]\nchannel = "mfc.flw"'),
    ),
    "procedure": (
        ("envelope.toml", '    ["furnace.mode", 1],\n    ["furnace.output", 0],\n', ""),
        ("envelope.toml", "stale_s = 3.5", "stale_s = 0.1"),
    ),
    "harm": (
        ("lab.toml", 'callers = "callers.toml"\n', ""),
        ("lab.toml", 'hazards = "hazards.toml"\n', ""),
    ),
    "toml": (("lab.toml", "[lab]", "[lab"),),
    "callers": (("callers.toml", "[callers", "[caller"),),
}


def english(said: Said) -> list[str]:
    """Return the prose in what was printed that is not Chinese."""
    lines = [each for each in (said.out + said.err).splitlines() if DRIVERS_WORDS not in each]
    return [line for line in lines if ENGLISH.search(COMMAND.sub("", line))]


@pytest.mark.promise(53)
@pytest.mark.parametrize("edits", EDITS.values(), ids=EDITS)
@pytest.mark.parametrize("command", [("lab", "check"), ("doctor",)], ids=["check", "doctor"])
def test_a_lab_is_checked_in_chinese(
    tmp_path: Path, command: tuple[str, ...], edits: tuple[tuple[str, str, str], ...]
) -> None:
    lab = written(tmp_path)
    for file, old, new in edits:
        path = tmp_path / file
        text = path.read_text("utf-8")
        assert old in text, old
        path.write_text(text.replace(old, new), "utf-8")
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
