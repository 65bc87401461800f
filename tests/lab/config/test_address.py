"""A small client finds a lab where the whole reader finds it, and reads no more than that."""

import re
from pathlib import Path

import pytest

from labharness.lab import BadLabFile, LabAddress, LabPlan, default_lab_path, read_address, read_lab
from labharness.lab.config.address import state_home


def test_a_state_directory_is_where_it_is_said_or_where_the_environment_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("LABHARNESS_STATE", raising=False)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    lab = Path("/one/lab.toml")
    assert state_home("bench", "/srv/bench", lab) == Path("/srv/bench")
    assert state_home("bench", "~/bench", lab) == Path.home() / "bench"
    found = state_home("bench", None, lab)
    assert found.parent == Path.home() / ".local" / "state" / "labharness"
    assert re.fullmatch("bench-[0-9a-f]{6}", found.name)
    monkeypatch.setenv("XDG_STATE_HOME", "/xdg")
    assert state_home("bench", None, lab) == Path("/xdg/labharness") / found.name
    monkeypatch.setenv("LABHARNESS_STATE", "/ours")
    assert state_home("bench", None, lab) == Path("/ours/labharness") / found.name


def test_two_files_of_one_simulated_lab_are_two_labs_by_whatever_way_each_is_named(
    tmp_path: Path,
) -> None:
    here, there = tmp_path / "one" / "lab.toml", tmp_path / "two" / "lab.toml"
    here.parent.mkdir()
    link = tmp_path / "link"
    link.symlink_to(here.parent, target_is_directory=True)
    assert state_home("bench", None, here) != state_home("bench", None, there)
    assert state_home("bench", None, here) == state_home("bench", None, link / "lab.toml")
    assert state_home("bench", None, here) == state_home(
        "bench", None, tmp_path / "two" / ".." / "one" / "lab.toml"
    )


HEAD = """[lab]
id = "bench"
%s
[[port]]
name = "a"
link = "loopback"
"""
REAL = """[[port]]
name = "b"
link = "serial"
path = "/dev/ttyS9"
"""


def test_an_address_is_the_one_of_the_whole_lab(short_plan: LabPlan) -> None:
    for whole in (read_lab(default_lab_path()), read_lab(short_plan.path)):
        found = read_address(whole.path)
        assert type(found) is LabAddress
        for name in (*LabAddress.__slots__, "option", "option_anywhere", "reset_command"):
            assert getattr(found, name) == getattr(whole, name), name


def test_an_address_is_read_of_a_file_that_is_wrong_elsewhere(tmp_path: Path) -> None:
    lab = tmp_path / "lab.toml"
    lab.write_text(HEAD % 'state_dir = "/x"\ntitel = 1' + REAL, "utf-8")
    found = read_address(lab)
    assert (found.lab_id, found.state_dir, found.real_ports) == ("bench", Path("/x"), ("b",))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[lab\n", "at line 1"),
        (HEAD.replace("bench", "Bench") % "", "lab.id"),
        (HEAD % "state_dir = 7", "state_dir"),
        (HEAD % 'state_dir = "~/x"' + REAL, "instrument"),
        (HEAD % "" + REAL.replace('"/dev/ttyS9"', "7"), "path"),
        ((HEAD % 'state_dir = "/a\\u0000b"'), "character 0"),
    ],
)
def test_where_it_cannot_be_read_the_whole_reader_says_why(
    tmp_path: Path, text: str, says: str
) -> None:
    lab = tmp_path / "lab.toml"
    lab.write_text(text, "utf-8")
    with pytest.raises(BadLabFile, match=says):
        read_address(lab)
