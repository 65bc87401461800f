"""The map leads somewhere: rooms, files, laws and rulings that are named are there."""

import re

import pytest

from commands import ROOT

ARCHITECTURE = (ROOT / "docs/architecture.md").read_text("utf-8")
RULINGS = (ROOT / "docs/reference/rulings.md").read_text("utf-8")
CODE = [
    path
    for drawer in ("labharness", "drivers", "simulators", "envelopes", "tests")
    for path in sorted((ROOT / drawer).rglob("*"))
    if path.suffix in {".py", ".toml"}
]


def cited(word: str) -> set[str]:
    """Return each number that the code cites, as ``2`` or ``10b``."""
    pattern = re.compile(rf"\b{word} (\d+[a-z]?)\b", re.IGNORECASE)
    return {found for path in CODE for found in pattern.findall(path.read_text("utf-8"))}


def test_every_law_that_the_code_cites_is_in_the_architecture() -> None:
    laws = set(re.findall(r"^(\d+)\. \*\*", ARCHITECTURE, re.MULTILINE))
    assert laws == {str(number) for number in range(1, 11)}
    assert cited("law")
    assert cited("law") <= laws


def test_every_ruling_that_the_code_cites_is_in_the_reference() -> None:
    rulings = set(re.findall(r"^ *(?:\*\*)?(\d+[a-z]?)\. ", RULINGS, re.MULTILINE))
    assert cited("ruling")
    assert cited("ruling") <= rulings


def test_every_wing_and_room_has_its_sentence() -> None:
    table = ARCHITECTURE.split("## Wings and rooms")[1].split("Three drawers")[0]
    named, wing = set(), ""
    for row in re.findall(r"^\| (`.*?`)? ?\| (.*?) ?\| ", table, re.MULTILINE):
        wing = row[0].strip("`") or wing
        named |= {f"{wing}/{room}" for room in re.findall(r"`(\w+)`", row[1])} or {wing}
    wings = {"chaos", "line", "analysis", "journal"}
    package = ROOT / "labharness"
    rooms = {
        path.parent.relative_to(package).as_posix() for path in package.glob("*/*/__init__.py")
    }
    assert named == wings | {room for room in rooms if room.split("/")[0] not in wings}


@pytest.mark.parametrize("page", ["architecture.md", "contributing.md"])
def test_every_file_that_the_map_names_is_there(page: str) -> None:
    text = (ROOT / "docs" / page).read_text("utf-8")
    # what `make pages` writes is under build/, and not in the tree
    named = re.findall(r"`((?!build/)[\w/]+/[\w/.]+\.(?:py|toml|md))`", text)
    assert named
    roots = (ROOT, ROOT / "labharness")
    assert not [name for name in named if not any((root / name).is_file() for root in roots)]
