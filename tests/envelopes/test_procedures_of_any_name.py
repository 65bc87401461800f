"""An envelope names its own procedures, and needs no purge where no rule asks for one."""

import re
from importlib.resources import files
from pathlib import Path
from shutil import copytree

from commands import say
from labharness.core.vocabulary import Cause
from labharness.lab import default_lab_path, read_lab
from small_lab import OFF, written

SECOND = f"""
[procedures.hold_still]
wire_s_max = 5
verify_s_max = 10
steps = [{OFF}]
"""


EXAMPLE_OF_LAYER_3 = """
[safety_envelope]
prohibited_actions = ["simultaneous_gas_mixing_without_purge"]

[safety_envelope.parameters]
temperature = { max = 1000, unit = "celsius", hard_limit = true }
pressure = { max = 5, unit = "atm", hard_limit = true }
gas_flow_rate = { max = 200, unit = "sccm", hard_limit = true }

[safety_envelope.emergency_procedures]
over_temperature = "immediate_shutdown"
gas_leak_detected = "close_all_valves_and_alert"

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


def test_the_example_of_layer_3_loads_as_it_stands_on_the_shipped_line(tmp_path: Path) -> None:
    shipped = files("labharness_envelopes").joinpath("lines", "cvd_mos2.toml").read_text("utf-8")
    own = re.compile(r"^\[safety_envelope\].*?(?=^\[(?!safety_envelope))", re.MULTILINE | re.DOTALL)
    text, count = own.subn(EXAMPLE_OF_LAYER_3, shipped)
    assert count == 1
    copytree(default_lab_path().parent, tmp_path / "lab")
    (tmp_path / "lab" / "line.toml").write_text(text, "utf-8")
    lab = tmp_path / "lab" / "lab.toml"
    edited(lab, 'line = "cvd_mos2"', 'line = "line.toml"')
    answers = read_lab(lab).envelope.procedure_of
    assert answers[Cause("gas_leak_detected")] == "close_all_valves_and_alert"
    others = {answers[cause] for cause in Cause if cause is not Cause("gas_leak_detected")}
    assert others == {"immediate_shutdown"}, "the default procedure of the line"
