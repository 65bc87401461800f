"""An envelope names its own procedures, and needs no purge where no rule asks for one."""

import re
from pathlib import Path

from commands import say
from labharness.core.vocabulary import Cause
from labharness.lab import read_lab
from small_lab import OFF, written

SECOND = f"""
[procedures.hold_still]
wire_s_max = 5
verify_s_max = 10
steps = [{OFF}]
"""


def edited(path: Path, pattern: str, new: str) -> None:
    text, count = re.subn(pattern, new, path.read_text("utf-8"), count=1, flags=re.DOTALL)
    assert count == 1, pattern
    path.write_text(text, "utf-8")


def test_the_only_procedure_answers_every_cause_and_begins_and_ends_every_run(
    tmp_path: Path,
) -> None:
    plan = read_lab(written(tmp_path))
    assert plan.safe_procedure == "make_safe"
    assert plan.envelope.procedure_of == dict.fromkeys(Cause, "make_safe")
    told = plan.safety_envelope["emergency_procedures"]
    assert told == {cause.value: "make_safe" for cause in Cause}


def test_of_two_procedures_the_envelope_says_which_answers_and_which_is_safe(
    tmp_path: Path,
) -> None:
    lab = written(tmp_path, more=SECOND)
    said = say("lab", "check", "--lab", lab)
    said.is_one_plain_error(
        "emergency_procedures has no procedure for ",
        "'over_temperature', ",
        "safe_procedure is missing: which of make_safe, hold_still makes the line safe",
        'write safe_procedure = "make_safe"',
        "for make_safe write ",
        'over_temperature = "make_safe"',
    )
    answers = "\n".join(f'{cause.value} = "make_safe"' for cause in Cause)
    contract = f"[safety_envelope.emergency_procedures]\n{answers}\n\n[quantities]"
    edited(tmp_path / "envelope.toml", r"\[quantities\]", contract)
    edited(tmp_path / "envelope.toml", "description", 'safe_procedure = "hold_still"\ndescription')
    plan = read_lab(lab)
    assert plan.safe_procedure == "hold_still"
    assert set(plan.envelope.procedure_of.values()) == {"make_safe"}


def test_a_line_that_asks_for_no_purge_has_none_and_its_lab_no_tube(tmp_path: Path) -> None:
    lab = written(tmp_path)
    edited(lab, r"\[tube\].*?\n\n", "")
    said = say("lab", "check", "--lab", lab)
    said.is_one_plain_error(
        "the [purge] counts volumes of the tube, and the lab file has no [tube]"
    )
    edited(tmp_path / "envelope.toml", r"\[purge\].*", "")
    said = say("lab", "check", "--lab", lab)
    assert (said.code, said.out.splitlines()[-1]) == (0, "no findings"), said
    assert "purge" not in say("envelope", "show", "--lab", lab).out


def test_an_interlock_that_asks_for_a_purge_takes_one(tmp_path: Path) -> None:
    lab = written(tmp_path)
    edited(tmp_path / "envelope.toml", r"\[purge\].*", "")
    asked = 'require = [{ purged_of = "air", volumes = 5 }, '
    edited(tmp_path / "envelope.toml", r"require = \[", asked)
    said = say("lab", "check", "--lab", lab)
    said.is_one_plain_error("interlock 'heat only in flowing gas' asks 'air'")
