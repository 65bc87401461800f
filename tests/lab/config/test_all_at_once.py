"""Whoever writes a lab's files is told all that is wrong in them at once, not one thing a round."""

from pathlib import Path

import pytest

from commands import say
from small_lab import EDITS, EXAMPLE, edited, written

TOLD = {
    "keys": (
        "lab.titel: there is no such key (did you mean title?)",
        "lab.title: it is missing",
        "lab.attended: 'sometimes' states no hours of a week; write always, never, or",
        "tube.volume_cm3: '1 L'",
        "port 'heat'.link: 'usb' is none of",
    ),
    "instruments and envelope": (
        "instrument 'furnace' (eurotherm_2400), settings: decimals 7",
        "instrument 'mfc': no driver for kind 'alicat'",
        "watch 'furnace.temperature'.stale: there is no such key",
        "purges: there is no such key (did you mean purge?)",
    ),
    "limits": (
        "furnace.output_high can be set and has no limit; give it a [[limit]], in one line of "
        'limit = [ ]: { channel = "furnace.output_high", unit = "%", low = 0, high = 100, source',
        "procedure 'make_safe' sets 'furnace.mod': furnace (eurotherm_2400) has no",
        "procedure 'make_safe' sets 'oven.mode': no instrument 'oven'",
        "limit furnace.setpoint: 0 to 8500 degC is not within",
        "a channel has two limits: mfc.setpoint",
    ),
    "watches": (
        "mfc.flow has no [[watch]], though rules rest on it; add it, in one line of watch = [ ]: "
        '{ channel = "mfc.flow", stale_s = 2 }',
        "interlock 'heat only in flowing gas' relies on 'mfc.flow'",
        "the purge proof counts 'mfc.flow'",
        "a contaminant is seen by 'mfc.flow', which this envelope does not have",
    ),
    "a watch more": (
        "watch mfc.flw: no instrument on this line reads it",
        "trip 'furnace far too hot': furnace.temperature is in 'degC', not 'K'",
    ),
    "harm": (
        'furnace may harm: name the hardware that stands before it, in [lab]: hazards = "haz',
        'furnace may harm: say who may ask for what, in [lab]: callers = "callers.toml"',
    ),
}


def test_the_small_lab_has_no_findings(tmp_path: Path) -> None:
    said = say("lab", "check", "--lab", written(tmp_path))
    assert (said.code, said.out.splitlines()[-1]) == (0, "no findings"), said


@pytest.mark.promise(54)
@pytest.mark.parametrize(("name", "words"), TOLD.items(), ids=TOLD)
def test_all_that_is_wrong_is_told_of_together(
    tmp_path: Path, name: str, words: tuple[str, ...]
) -> None:
    said = say("lab", "check", "--lab", edited(tmp_path, EDITS[name]))
    said.is_one_plain_error(*words)


def test_the_smallest_lab_of_the_documents_is_whole_as_it_stands() -> None:
    said = say("lab", "check", "--lab", EXAMPLE / "lab.toml")
    assert (said.code, said.err) == (0, "")
    assert said.out.endswith("no findings\n")
