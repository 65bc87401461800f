"""A package of somebody else: its kinds are there, and what is broken in it is one plain error."""

import shutil
from pathlib import Path

import pytest

from commands import ROOT, edited_lab, spawn_with
from rig import SHORT_LINE

POINTS = """
[labharness.drivers]
theirs = their_drivers
[labharness.simulators]
theirs = their_simulators
[labharness.envelopes]
theirs = their_envelopes
"""
OFFERS = "[labharness.capabilities]\ntheirs = their_capabilities\n"


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """An installed package with one kind, as the page on drivers says: no plant, no lab."""
    home = tmp_path / "site"
    for drawer, ending in (("drivers", "py"), ("simulators", "py"), ("envelopes", "toml")):
        package = home / f"their_{drawer}"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text('"""Theirs."""\n', "utf-8")
        kind = ROOT / drawer / f"labharness_{drawer}" / f"mks_910.{ending}"
        shutil.copy(kind, package / f"their_gauge.{ending}")
    about = home / "theirs-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n", "utf-8")
    (about / "entry_points.txt").write_text(POINTS, "utf-8")
    return home


def test_a_kind_of_another_package_is_listed_and_measures(theirs: Path, tmp_path: Path) -> None:
    assert "their_gauge          their_drivers.their_gauge" in spawn_with(theirs, "drivers").out
    lab = edited_lab(tmp_path, 'kind = "mks_910"', 'kind = "their_gauge"')
    said = spawn_with(theirs, "read", "gauge.pressure", "--lab", lab)
    assert said.code == 0, said.err
    assert said.out.startswith("gauge.pressure 7")


@pytest.mark.parametrize(
    ("broken", "text", "words"),
    [
        ("their_drivers/their_gauge.py", "def (", "SyntaxError: invalid syntax"),
        ("their_simulators/their_gauge.py", "", "their_simulators.their_gauge has no Simulator"),
        ("their_drivers/__init__.py", "import not_there", "No module named 'not_there'"),
    ],
)
def test_what_is_broken_in_another_package_is_one_plain_error_that_names_it(
    theirs: Path, tmp_path: Path, broken: str, text: str, words: str
) -> None:
    (theirs / broken).write_text(text, "utf-8")
    lab = edited_lab(tmp_path, 'kind = "mks_910"', 'kind = "their_gauge"')
    module = broken.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    said = spawn_with(theirs, "read", "gauge.pressure", "--lab", lab)
    said.is_one_plain_error(module, words)


def test_a_broken_capability_of_another_package_is_one_plain_error_that_names_it(
    theirs: Path,
) -> None:
    (theirs / "theirs-1.0.dist-info" / "entry_points.txt").write_text(OFFERS, "utf-8")
    package = theirs / "their_capabilities"
    for folder in (package, package / "alchemy"):
        folder.mkdir()
        (folder / "__init__.py").write_text("", "utf-8")
    for asked in (("capabilities", "list"), ("lab", "check", "--lab", SHORT_LINE)):
        said = spawn_with(theirs, *asked)
        said.is_one_plain_error("their_capabilities.alchemy has no CAPABILITY")


PLANTS = """
from labharness_simulators.plant.cvd_tube import CvdTube

class Theirs(CvdTube):
    pass

PLANTS = {"KIND": Theirs}
"""


def plant_of(theirs: Path, kind: str) -> None:
    """Put a plant into the package, in a module of its own."""
    folder = theirs / "their_simulators" / "plant"
    folder.mkdir()
    (folder / "__init__.py").write_text(PLANTS.replace("KIND", kind), "utf-8")


def test_a_plant_of_another_package_stands_beside_ours(theirs: Path, tmp_path: Path) -> None:
    plant_of(theirs, "their_tube")
    said = spawn_with(theirs, "read", "gauge.pressure", "--lab", SHORT_LINE)
    assert said.code == 0, said.err
    lab = edited_lab(tmp_path, 'kind = "cvd_tube"', 'kind = "their_tube"')
    said = spawn_with(theirs, "read", "gauge.pressure", "--lab", lab)
    assert said.code == 0, said.err
    assert said.out.startswith("gauge.pressure 7")


def test_two_plants_of_one_kind_are_one_plain_error_that_names_both(theirs: Path) -> None:
    plant_of(theirs, "cvd_tube")
    said = spawn_with(theirs, "lab", "check", "--lab", SHORT_LINE)
    said.is_one_plain_error(
        "plant 'cvd_tube' is doubled: labharness_simulators.plant and their_simulators.plant"
    )


def test_the_shipped_lab_says_what_keeps_it_from_being_found(theirs: Path) -> None:
    (theirs / "their_envelopes" / "__init__.py").write_text("1 / 0", "utf-8")
    spawn_with(theirs, "safe").is_one_plain_error("their_envelopes cannot be imported")
