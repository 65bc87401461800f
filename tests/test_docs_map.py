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


def test_every_room_has_its_sentence() -> None:
    rooms = {path.parent.name for path in (ROOT / "labharness").glob("*/__init__.py")}
    table = ARCHITECTURE.split("## The rooms")[1].split("Three drawers")[0]
    named = [
        name
        for row in table.splitlines()
        if row.startswith("| `")
        for name in re.findall(r"`(\w+)`", row.split("|")[1])
    ]
    assert sorted(named) == sorted(rooms)


@pytest.mark.parametrize("page", ["architecture.md", "contributing.md"])
def test_every_file_that_the_map_names_is_there(page: str) -> None:
    text = (ROOT / "docs" / page).read_text("utf-8")
    named = re.findall(r"`([\w/]+/[\w/.]+\.(?:py|toml|md))`", text)
    assert named
    roots = (ROOT, ROOT / "labharness")
    assert not [name for name in named if not any((root / name).is_file() for root in roots)]
