"""What files say of programs: a lab that may run one, and segments on the command line."""

from pathlib import Path

import pytest

from commands import say
from labharness.lab import BadLabFile, Lab
from programmed import block, programmed


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (block("procedure"), "", "procedure 'immediate_shutdown' does not reset them: add"),
        (
            '_status"\nstale_s = 3.5\n',
            '_status"\nstale_s = 3.5\ntrips = false\n',
            "nothing watches",
        ),
        (
            'on_loss = "immediate_shutdown"\nsource = "what the furnace',
            'source = "what the furnace',
            "no [[interlock]] with on_loss guards furnace.program_status above 1",
        ),
        ("above = -1\n", "", "requires furnace.program_status at_most 1"),
    ],
)
def test_an_envelope_under_which_a_program_could_go_on_is_refused(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    with pytest.raises(BadLabFile, match="furnace runs programs, and ") as why:
        programmed(tmp_path, lambda text: text.replace(old, new))
    assert said in str(why.value)


@pytest.fixture
def anneal(tmp_path: Path) -> tuple[Path, Path]:
    """A lab file, and the program of the how-to."""
    programmed(tmp_path)
    path = tmp_path / "anneal.toml"
    path.write_text(block("program"), "utf-8")
    return tmp_path / "lab.toml", path


def test_the_page_shows_a_program_that_can_be_and_what_it_takes(
    anneal: tuple[Path, Path], wires: list[Lab]
) -> None:
    lab, path = anneal
    said = say("program", "check", "furnace", path, "--lab", lab)
    assert said.code == 0, said
    lines = said.out.splitlines()
    assert lines[0] == "  1  ramp to 750 degC at 15 degC/min"
    assert lines[-1].endswith("from 20 degC, if it never waits")
    assert wires == []


def test_what_can_never_be_is_told_before_anybody_is_asked(anneal: tuple[Path, Path]) -> None:
    lab, path = anneal
    path.write_text("[[segment]]\nramp_to_c = 951\nat_c_per_min = 61\n", "utf-8")
    for verb in ("check", "upload"):
        said = say("program", verb, "furnace", path, "--lab", lab)
        assert said.code == 2
        assert "furnace.setpoint 951 degC, allowed 0 to 950 degC" in said.err
        assert "furnace.setpoint_rate 61 degC/min, allowed 0.1 to 60 degC/min" in said.err


def test_a_program_with_nobody_to_run_it_says_who_could(anneal: tuple[Path, Path]) -> None:
    lab, path = anneal
    said = say("program", "upload", "furnace", path, "--lab", lab)
    assert said.code == 1
    assert "nothing runs on lab short-line; one terminal drives the line" in said.err


@pytest.mark.parametrize(
    ("instrument", "text", "words"),
    [
        ("furnace", "[[segment]", ("is not TOML",)),
        ("furnace", "[[segment]]\nramp_to_c = 5\n", ("segment 1", "takes at_c_per_min")),
        ("furnace", "", ("1 to 200",)),
        ("furnace", "titel = 'x'\n", ("no 'titel' here (did you mean title?); there are title",)),
        ("furnce", "", ("no instrument 'furnce' (did you mean furnace?); on this line",)),
        ("argon", "", ("argon runs no programs; on this line these run programs: furnace",)),
    ],
)
def test_a_bad_file_or_name_is_one_plain_error(
    anneal: tuple[Path, Path], instrument: str, text: str, words: tuple[str, ...]
) -> None:
    lab, path = anneal
    path.write_text(text, "utf-8")
    here = say("program", "check", instrument, path, "--lab", lab)
    here.is_one_plain_error(*words)
    gone = say("program", "check", "furnace", path.with_name("gone.toml"), "--lab", lab)
    gone.is_one_plain_error("gone.toml")
