"""``lab check --connect`` holds each instrument against the lab file: all that differs, at once."""

import os
import tty
from collections.abc import Iterator
from pathlib import Path

import pytest

from commands import Said, say, stated, wrote
from labharness.core.vocabulary.requests import Exactly, unfinished
from labharness.lab import Lab, read_lab
from labharness.lab.operate.idle_line import remedied
from platforms import has_terminals
from rig import SHORT_LINE, line_texts
from small_lab import written


def changed(folder: Path, *changes: tuple[str, str]) -> Path:
    """Write the short line with some texts of its lab file changed."""
    texts = line_texts()
    for old, new in changes:
        assert old in texts["lab.toml"], old
        texts["lab.toml"] = texts["lab.toml"].replace(old, new, 1)
    for name, text in texts.items():
        (folder / name).write_text(stated(text), "utf-8")
    return folder / "lab.toml"


def findings(said: Said) -> list[str]:
    """Return what was found of instruments; a changed copy of the line has no approval."""
    found = (line.partition("finding: ")[2] for line in said.out.splitlines())
    return [each for each in found if each and not each.startswith("approvals: ")]


def connected(lab: Path) -> Said:
    return say("lab", "check", "--connect", "--lab", lab)


ARGON = 'settings = { unit = "A", gas = "Ar", full_scale_sccm = 500 }'
HYDROGEN = "settings = { unit = 1, gas = 6, full_scale_sccm = 100, watchdog_ms = 5000 }"


def test_a_line_that_is_as_its_lab_file_says_has_no_finding(wires: list[Lab]) -> None:
    said = connected(SHORT_LINE)
    assert (said.code, findings(said)) == (0, [])
    (argon,) = (line for line in said.out.splitlines() if line.startswith("argon "))
    assert "MC" in argon
    assert ", serial number " in said.out
    assert wrote(wires) == []


def test_another_gas_and_another_full_scale_are_found_on_either_kind_of_controller(
    tmp_path: Path,
) -> None:
    lab = changed(
        tmp_path,
        (ARGON, ARGON.replace('"Ar"', '"He"')),
        (HYDROGEN, HYDROGEN.replace("gas = 6", "gas = 7").replace("= 100", "= 90")),
    )
    found = findings(connected(lab))
    for words in (
        "argon: unit A is set to gas Ar, the lab file says He",
        "hydrogen: gas: the instrument answered 6 (H2); the lab file says 7 (He)",
        "full_scale: the instrument answered 100 sccm; the lab file says 90 sccm",
    ):
        assert [one for one in found if words in one], (words, found)


def test_firmware_and_serial_number_that_the_lab_file_states_must_be_told(tmp_path: Path) -> None:
    lab = changed(
        tmp_path,
        (ARGON, f'{ARGON}\nfirmware = "9v99"'),
        (HYDROGEN, f'{HYDROGEN}\nfirmware = "2.1.3"\nserial = "another one"'),
    )
    said = connected(lab)
    argon, hydrogen = findings(said)
    assert argon.startswith("argon: argon (alicat_mc): it tells firmware '")
    assert argon.endswith("', the lab file says '9v99'")
    assert hydrogen.startswith("hydrogen: hydrogen (alicat_basis2): it tells serial number '")
    assert hydrogen.endswith("', the lab file says 'another one'")


def test_a_stated_identity_is_asked_for_by_every_run_not_by_the_check_alone(tmp_path: Path) -> None:
    lab = changed(tmp_path, (ARGON, f'{ARGON}\nserial = "another one"'))
    said = say("read", "argon.flow", "--lab", lab)
    assert said.code != 0
    assert "the lab file says 'another one'" in said.out + said.err


# ---- silence

BROKEN = unfinished(Exactly(7), bytes((1, 3, 4)), 0.5)


@pytest.fixture
def ports() -> Iterator[list[str]]:
    """Two serial ports at which nobody answers."""
    pairs = [os.openpty() for _ in range(2)]
    for _, slave in pairs:
        tty.setraw(slave)
    yield [os.ttyname(slave) for _, slave in pairs]
    for pair in pairs:
        for end in pair:
            os.close(end)


@has_terminals
def test_every_silent_instrument_is_named_with_power_address_speed_and_wires(
    tmp_path: Path, ports: list[str]
) -> None:
    lab = written(tmp_path)
    text = lab.read_text("utf-8")
    for name, path in zip(("heat", "gas"), ports, strict=True):
        text = text.replace(f"/dev/serial/by-id/usb-{name}", path)
    lab.write_text(text, "utf-8")
    furnace, mfc = findings(connected(lab))
    for found, name, address, path, factory in (
        (furnace, "furnace (eurotherm_2400)", "address is 1,", ports[0], "leaves the factory with"),
        (mfc, "mfc (alicat_mc)", "address is A,", ports[1], "set to 19200 baud, parity N"),
    ):
        for words in (name, "no reply within", "that it is on", address, "19200 baud", path):
            assert words in found
        assert factory in found
        assert "the wires from" in found


def test_a_silent_instrument_beside_one_that_answers_is_not_blamed_on_the_port(
    tmp_path: Path,
) -> None:
    plan = read_lab(written(tmp_path))
    said = remedied(plan, plan.by_name["mfc"], unfinished(Exactly(7), b"", 0.5), heard=True)
    assert said.startswith("mfc (alicat_mc): no reply within 0.5 s; see that it is on,")
    assert said.endswith("others on port 'gas' answer, so the port itself works")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            'link = "serial"\npath = "/dev/serial/by-id/usb-gas"\nbaud = 19200',
            'link = "tcp"\nhost = "10.0.0.7"\nport = 4001\nexclusive = true',
            "that 10.0.0.7:4001 is its address and no other machine's",
        ),
        (
            'link = "serial"\npath = "/dev/serial/by-id/usb-gas"\nbaud = 19200',
            'link = "visa"\nresource = "GPIB0::7::INSTR"',
            "that GPIB0::7::INSTR is its address, and that no other program holds it",
        ),
    ],
)
def test_the_link_says_what_else_to_look_at(tmp_path: Path, old: str, new: str, words: str) -> None:
    lab = written(tmp_path)
    lab.write_text(lab.read_text("utf-8").replace(old, new), "utf-8")
    plan = read_lab(lab)
    assert words in remedied(plan, plan.by_name["mfc"], BROKEN)


def test_a_reply_that_is_broken_says_what_to_look_at_and_that_somebody_is_there(
    tmp_path: Path,
) -> None:
    plan = read_lab(written(tmp_path))
    said = remedied(plan, plan.by_name["furnace"], BROKEN)
    assert said.startswith(f"furnace (eurotherm_2400): {BROKEN}; see that its own address is 1, ")
    assert "that it is set to 19200 baud" in said
    assert "that it is on" not in said


def test_an_answer_that_is_wrong_is_not_taken_for_a_silence(tmp_path: Path) -> None:
    plan = read_lab(written(tmp_path))
    said = "mfc (alicat_mc): no reply within its manual is so; bad reply: neither"
    assert remedied(plan, plan.by_name["mfc"], said) == said


# ---- the files of a new lab


def test_ports_and_instruments_that_do_not_fit_are_told_of_together(tmp_path: Path) -> None:
    lab = written(tmp_path)
    text = lab.read_text("utf-8")
    text = text.replace('port = "gas"', 'port = "gass"').replace('name = "mfc"', 'name = "furnace"')
    lab.write_text(text, "utf-8")
    connected(lab).is_one_plain_error(
        "instrument 'furnace' is there twice",
        "instrument 'furnace': no port 'gass'; there are heat, gas",
        "port 'gas' has no instrument",
    )


def test_callers_and_approvals_that_cannot_be_read_are_told_of_together(tmp_path: Path) -> None:
    lab = written(tmp_path)
    text = lab.read_text("utf-8").replace("state_dir", 'approvals = ["old.toml"]\nstate_dir', 1)
    lab.write_text(text, "utf-8")
    (tmp_path / "old.toml").write_text("no = 'approval'", "utf-8")
    (tmp_path / "callers.toml").write_text("= no TOML", "utf-8")
    connected(lab).is_one_plain_error("callers file", "approval file")
