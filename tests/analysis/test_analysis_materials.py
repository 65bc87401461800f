"""A material is named by its lines, from the table, and what is not in the table is not."""

import re

import numpy as np
import pytest
from numpy.typing import NDArray

from drawn_spectra import MATERIALS, OTHERS, draw, recording
from labharness.analysis.assess import Assessment, assess
from labharness.analysis.material_table import MATERIALS as TABLE
from labharness.analysis.material_table import SILICON, SUBSTRATES, Material
from labharness.analysis.peaks import silicon_stress_mpa
from rig import HERE

WHOLE = np.arange(100.0, 3200.0, 1.2)
GRATING = np.arange(100.0, 900.0, 0.6)
BEYOND = ("hBN", "disordered carbon", "graphene", "graphite", "graphitic carbon")
"""Their lines lie beyond one position of a grating."""

CARBON = np.arange(1226.0, 2788.0, 1.3)


def shown(what: str, axis: NDArray[np.float64], seed: int = 5) -> Assessment:
    rng = np.random.default_rng(seed)
    return assess(recording(axis, draw(axis, MATERIALS[what][1], rng)))


@pytest.mark.parametrize("what", MATERIALS)
def test_a_material_gets_its_name_from_a_survey_of_the_whole_spectrum(what: str) -> None:
    assert shown(what, WHOLE).material == MATERIALS[what][0]


@pytest.mark.parametrize("what", [each for each in MATERIALS if MATERIALS[each][0] not in BEYOND])
def test_a_material_gets_its_name_from_one_position_of_a_fine_grating(what: str) -> None:
    assert shown(what, GRATING).material == MATERIALS[what][0]


@pytest.mark.parametrize("what", [each for each in MATERIALS if "graph" in MATERIALS[each][0]])
def test_carbon_gets_its_name_from_a_window_that_ends_behind_2d(what: str) -> None:
    assert shown(what, CARBON).material == MATERIALS[what][0]


@pytest.mark.parametrize("what", OTHERS)
@pytest.mark.parametrize("brightness", [1.0, 8.0])
def test_what_is_in_no_table_gets_no_name(what: str, brightness: float) -> None:
    lines = [(at, fwhm, brightness * height) for at, fwhm, height in OTHERS[what]]
    found = assess(recording(WHOLE, draw(WHOLE, lines, np.random.default_rng(7))))
    assert found.material == "unknown"
    assert found.verdict is None


@pytest.mark.parametrize("offset_cm1", [-2.0, 2.0])
@pytest.mark.parametrize("what", ["MoS2 on glass", "bulk WS2", "one layer of WSe2", "graphite"])
def test_an_axis_that_is_off_does_not_hide_a_material(what: str, offset_cm1: float) -> None:
    counts = draw(WHOLE, MATERIALS[what][1], np.random.default_rng(3), offset_cm1=offset_cm1)
    assert assess(recording(WHOLE, counts)).material == MATERIALS[what][0]


def test_graphene_without_d_has_its_ratio_told_and_is_named_not_counted() -> None:
    found = shown("graphene without D", CARBON)
    (reason,) = found.reasons
    assert "named, not counted" in reason
    ratio = re.search(r"I\(2D\)/I\(G\) (\S+), I\(D\)/I\(G\) (\S+)", reason)
    assert ratio is not None
    assert float(ratio[1]) == pytest.approx(2.7, abs=0.1)
    assert float(ratio[2].rstrip(";")) == 0


def test_the_lines_that_name_a_material_come_with_their_errors() -> None:
    (named,) = shown("graphene with D", WHOLE).named
    assert named is not None
    assert set(named.lines) == {"G", "2D", "D"}
    for line, (at, fwhm, height) in {"G": (1583, 14, 1000), "2D": (2672, 30, 2200)}.items():
        seen = named.lines[line]
        assert seen.position_cm1 == pytest.approx(at, abs=5 * seen.position_sigma_cm1)
        assert seen.fwhm_cm1 == pytest.approx(fwhm, abs=6 * seen.fwhm_sigma_cm1)
        assert seen.height_counts == pytest.approx(height, abs=6 * seen.height_sigma_counts)
    ratio = named.ratio("D", "G")
    assert ratio is not None
    assert ratio[0] == pytest.approx(0.3, abs=5 * ratio[1])
    assert named.ratio("2D", "D'") is None


@pytest.mark.parametrize("row", [*TABLE, *SUBSTRATES, SILICON], ids=lambda row: row.name)
def test_each_row_of_the_table_has_a_source_and_says_why_it_is_not_counted(row: Material) -> None:
    assert re.search(r"10\.\d{4,}/\S+|[A-Z]\. [A-Z].* \d+, \d+", row.source)
    assert (row.why_no_count == "") is (row.name == "MoS2")


def test_of_a_stack_of_two_materials_one_is_named() -> None:
    both = (*MATERIALS["MoS2 on silicon"][1], *MATERIALS["graphene without D"][1])
    counts = draw(WHOLE, both, np.random.default_rng(2))
    assert assess(recording(WHOLE, counts)).material == "MoS2"


def test_stress_of_silicon_follows_its_line() -> None:
    # A tension of 1 GPa moves the line down by 2.3 cm⁻¹.
    assert silicon_stress_mpa(-2.3) == pytest.approx(998, abs=1)


def test_silicon_that_moves_over_a_map_is_told_with_the_stress_it_would_be() -> None:
    rng = np.random.default_rng(4)
    rows = [
        draw(GRATING, MATERIALS["bare silicon"][1], rng, offset_cm1=at)
        for at in np.linspace(-1, 1, 9)
    ]
    notes = " ".join(assess(recording(GRATING, np.array(rows))).notes)
    found = re.search(r"silicon moves by ±(\S+) cm⁻¹ .* ±(\d+) MPa uniaxial", notes)
    assert found is not None
    assert float(found[2]) == pytest.approx(434 * float(found[1]), rel=0.02)
    still = np.array([draw(GRATING, MATERIALS["bare silicon"][1], rng) for _ in range(9)])
    assert "MPa" not in " ".join(assess(recording(GRATING, still)).notes)


PAGE = HERE.parent / "docs" / "reference" / "materials.md"


def told(row: Material) -> str:
    """Return a material's row of the reference."""
    seen: dict[str, str] = {}
    for group in (each for form in row.forms for each in (*form.groups, *row.besides)):
        for name, window in zip(group.names, group.windows, strict=True):
            seen.setdefault(name, f"{name} {window.low_cm1:g}–{window.high_cm1:g}")
    ratios = ", ".join(f"{line}/{over}" for line, over in row.ratios)
    counted = "no" if row.why_no_count else "yes"
    return f"| {row.name} | {counted} | {'; '.join(seen.values())} | {ratios} | {row.source} |"


@pytest.mark.parametrize("row", [*TABLE, *SUBSTRATES, SILICON], ids=lambda row: row.name)
def test_the_reference_shows_each_row_of_the_table_as_it_is(row: Material) -> None:
    assert told(row) in PAGE.read_text("utf-8").splitlines()
