"""Whoever writes a lab's files is told all that is wrong in them at once, not one thing a round."""

from pathlib import Path

import pytest

from commands import say
from small_lab import EXAMPLE, written


def edited(folder: Path, file: str, *changes: tuple[str, str]) -> Path:
    lab = written(folder)
    path = folder / file
    text = path.read_text("utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    path.write_text(text, "utf-8")
    return lab


def test_the_small_lab_has_no_findings(tmp_path: Path) -> None:
    said = say("lab", "check", "--lab", written(tmp_path))
    assert (said.code, said.out.splitlines()[-1]) == (0, "no findings"), said


def test_every_key_that_is_wrong_in_a_lab_file_is_named(tmp_path: Path) -> None:
    lab = edited(
        tmp_path,
        "lab.toml",
        ('title = "Annealing in argon"', 'titel = "Annealing in argon"'),
        ('attended = "always"', 'attended = "sometimes"'),
        ("volume_cm3 = 1000", 'volume_cm3 = "1 L"'),
        ('link = "serial"', 'link = "usb"'),
    )
    said = say("lab", "check", "--lab", lab)
    said.is_one_plain_error(
        "lab.titel: there is no such key (did you mean title?)",
        "lab.title: it is missing",
        "lab.attended: 'sometimes' states no hours of a week; write always, never, or",
        "tube.volume_cm3: '1 L'",
        "port 'heat'.link: 'usb' is none of",
    )


def test_instruments_and_envelope_are_told_of_together(tmp_path: Path) -> None:
    lab = edited(
        tmp_path,
        "lab.toml",
        ("unit = 1", "unit = 1, decimals = 7"),
        ('kind = "alicat_mc"', 'kind = "alicat"'),
    )
    envelope = tmp_path / "envelope.toml"
    text = envelope.read_text("utf-8").replace("stale_s = 3.5", "stale = 3.5", 1)
    envelope.write_text(text.replace("[purge]", "[purges]"), "utf-8")
    said = say("lab", "check", "--lab", lab)
    said.is_one_plain_error(
        "instrument 'furnace' (eurotherm_2400), settings: decimals 7",
        "instrument 'mfc': no driver for kind 'alicat'",
        "watch 'furnace.temperature'.stale: there is no such key",
        "purges: there is no such key (did you mean purge?)",
    )


def test_rows_that_do_not_agree_with_the_instruments_are_told_of_together(tmp_path: Path) -> None:
    lab = edited(
        tmp_path,
        "envelope.toml",
        ('channel = "furnace.output_high"', 'channel = "mfc.setpoint"'),
        ('["furnace.mode", 1]', '["furnace.mod", 1], ["oven.mode", 1]'),
        ("high = 850", "high = 8500"),
    )
    said = say("lab", "check", "--lab", lab)
    said.is_one_plain_error(
        "furnace.output_high can be set and has no limit; give it a [[limit]], in one line of "
        'limit = [ ]: { channel = "furnace.output_high", unit = "%", low = 0, high = 100, source',
        "procedure 'make_safe' sets 'furnace.mod': furnace (eurotherm_2400) has no",
        "procedure 'make_safe' sets 'oven.mode': no instrument 'oven'",
        "limit furnace.setpoint: 0 to 8500 degC is not within",
        "a channel has two limits: mfc.setpoint",
    )


@pytest.mark.promise(54)
def test_rows_on_what_is_not_read_are_told_of_together(tmp_path: Path) -> None:
    lab = edited(
        tmp_path,
        "envelope.toml",
        ('[[watch]]\nchannel = "mfc.flow"', '[[watch]]\nchannel = "mfc.flw"'),
        ('unit = "degC"\nsource = "its plate, and', 'unit = "K"\nsource = "its plate, and'),
    )
    said = say("lab", "check", "--lab", lab)
    said.is_one_plain_error(
        "mfc.flow has no [[watch]], though rules rest on it; add it, in one line of watch = [ ]: "
        '{ channel = "mfc.flow", stale_s = 2 }',
        "interlock 'heat only in flowing gas' relies on 'mfc.flow'",
        "the purge proof counts 'mfc.flow'",
        "a contaminant is seen by 'mfc.flow', which this envelope does not have",
    )
    lab = edited(
        tmp_path,
        "envelope.toml",
        ("[[interlock]]", '[[watch]]\nchannel = "mfc.flw"\nstale_s = 3.5\n\n[[interlock]]'),
        ('unit = "degC"\nsource = "its plate, and', 'unit = "K"\nsource = "its plate, and'),
    )
    said = say("lab", "check", "--lab", lab)
    said.is_one_plain_error(
        "watch mfc.flw: no instrument on this line reads it",
        "trip 'furnace far too hot': furnace.temperature is in 'degC', not 'K'",
    )


def test_the_smallest_lab_of_the_documents_is_whole_as_it_stands() -> None:
    said = say("lab", "check", "--lab", EXAMPLE / "lab.toml")
    assert (said.code, said.err) == (0, "")
    assert said.out.endswith("no findings\n")


def test_a_lab_that_may_harm_states_its_hardware_and_who_may_ask(tmp_path: Path) -> None:
    lab = edited(
        tmp_path,
        "lab.toml",
        ('callers = "callers.toml"\n', ""),
        ('hazards = "hazards.toml"\n', ""),
    )
    said = say("lab", "check", "--lab", lab)
    said.is_one_plain_error(
        'furnace may harm: name the hardware that stands before it, in [lab]: hazards = "haz',
        'furnace may harm: say who may ask for what, in [lab]: callers = "callers.toml"',
    )
