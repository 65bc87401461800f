"""Numbers and units as other programs write them are read where only one thing can be meant."""

from collections.abc import Callable

import numpy as np
import pytest

from drawn_spectra import MATERIALS, draw, recording
from labharness.analysis.assess import assess
from labharness.analysis.formats import BadFile, Recording, read_spectra

AXIS = np.round(np.arange(120.0, 700.0, 0.8), 2)
COUNTS = np.round(40.0 * draw(AXIS, MATERIALS["MoS2 on silicon"][1], np.random.default_rng(4)), 2)
LASER_NM = 532.0


def rows(
    axis: Callable[[float], str], counts: Callable[[float], str], mark: str, head: str = ""
) -> bytes:
    pairs = zip(AXIS.tolist(), COUNTS.tolist(), strict=True)
    return (head + "".join(f"{axis(x)}{mark}{counts(y)}\n" for x, y in pairs)).encode()


def point(value: float) -> str:
    return f"{value:.2f}"


def german(value: float) -> str:
    return f"{value:,.2f}".translate(str.maketrans(",.", ".,"))


def fortran(value: float) -> str:
    return f"{value:.8E}".replace("E", "D")


def with_mark(mark: str) -> Callable[[float], str]:
    return lambda value: f"{value:,.2f}".replace(",", mark)


def holds(found: Recording) -> None:
    assert found.axis == pytest.approx(AXIS, abs=1e-6)
    assert found.intensity[0] == pytest.approx(COUNTS, rel=1e-7)


@pytest.mark.parametrize("mark", ["\t", " ", ",", ";"])
@pytest.mark.parametrize("letter", ["D", "d"])
def test_exponents_of_fortran_are_read(mark: str, letter: str) -> None:
    def number(value: float) -> str:
        return fortran(value).replace("D", letter)

    found = read_spectra(rows(number, number, mark))
    holds(found)
    assert "exponents after D are read as those after E" in found.notes


@pytest.mark.parametrize(
    ("axis", "counts", "mark", "note"),
    [
        (point, with_mark(","), "\t", "commas between thousands are left away"),
        (point, with_mark(","), ";", "commas between thousands are left away"),
        (german, german, ";", "points between thousands are left away"),
        (german, german, "\t", "points between thousands are left away"),
        (point, with_mark("'"), "\t", "apostrophes between thousands are left away"),
        (point, with_mark("\u202f"), "\t", "blanks between thousands are left away"),
    ],
)
def test_thousands_that_are_parted_are_read_where_nothing_else_can_be_meant(
    axis: Callable[[float], str], counts: Callable[[float], str], mark: str, note: str
) -> None:
    found = read_spectra(rows(axis, counts, mark))
    holds(found)
    assert note in found.notes


def test_whole_thousands_beside_an_axis_with_points_are_thousands() -> None:
    found = read_spectra(rows(point, lambda value: f"{value:,.0f}", "\t"))
    assert found.intensity[0] == pytest.approx(np.round(COUNTS), abs=1)


def test_three_decimals_after_a_comma_stay_decimals() -> None:
    def number(value: float) -> str:
        return f"{value:.3f}".replace(".", ",")

    head = "Datum\t12.03.2024\n532.1\t785.2\n"
    found = read_spectra(rows(number, number, "\t", head))
    assert found.axis[-1] == pytest.approx(AXIS[-1])
    assert found.intensity[0][-1] == pytest.approx(COUNTS[-1])
    assert not any("thousands" in note for note in found.notes)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-16", "utf-32", "utf-8-sig"])
def test_text_in_wide_characters_is_read(encoding: str) -> None:
    holds(read_spectra(rows(point, point, "\t").decode().encode(encoding)))


@pytest.mark.parametrize(
    ("title", "of_shift"),
    [
        ("Energy (eV)", lambda shift: 1239.841984e-7 * (1e7 / LASER_NM - shift)),
        ("Raman shift (meV)", lambda shift: 0.1239841984 * shift),
        ("Raman shift / eV", lambda shift: 1.239841984e-4 * shift),
        ("Wavelength (µm)", lambda shift: 1e4 / (1e7 / LASER_NM - shift)),
        ("Absolute wavenumber (cm-1)", lambda shift: 1e7 / LASER_NM - shift),
    ],
)
def test_an_axis_in_another_unit_is_read_where_its_heading_says_so(
    title: str, of_shift: Callable[[float], float]
) -> None:
    data = rows(lambda shift: f"{of_shift(shift):.9f}", point, "\t", f"{title}\tCounts\n")
    found = read_spectra(data).with_laser(LASER_NM)
    assert found.shift_cm1() == pytest.approx(AXIS, abs=0.01)


@pytest.mark.parametrize("scale", [1.239841984e-4, 1e6])
def test_an_axis_that_is_no_shift_and_says_nothing_is_refused_with_what_would_do(
    scale: float,
) -> None:
    spectra = recording(AXIS * scale, COUNTS)
    with pytest.raises(
        ValueError, match=r"cannot be a Raman shift in cm⁻¹; head its column .*Energy \(eV\)"
    ):
        assess(spectra)


def test_an_energy_below_nothing_is_refused() -> None:
    data = rows(lambda shift: f"{shift - 300:.3f}", point, "\t", "Energy (eV)\tCounts\n")
    with pytest.raises(BadFile, match=r"a photon of -180 eV; all are above 0"):
        read_spectra(data)
