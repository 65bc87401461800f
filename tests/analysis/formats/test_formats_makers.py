"""Exports of BWSpec, JASCO, LabSpec XML and TriVista are read with laser, places and settings."""

import numpy as np
import pytest

from labharness.analysis.formats import BadFile, read_spectra
from spectral_files import AXIS, POINTS, bwspec, counts, jasco, labspec_xml, refusal, trivista

UPWARD = AXIS[::-1]


@pytest.mark.parametrize("data", [bwspec(), bwspec(",", comma=False), bwspec("\t")])
def test_bwspec_gives_dark_subtracted_counts_where_the_shift_is_calibrated(data: bytes) -> None:
    found = read_spectra(data)
    assert found.format == "B&W Tek export"
    assert found.axis.tolist() == UPWARD[1:-1]
    assert found.intensity.tolist() == [counts(0)[1:-1]]
    assert found.laser_nm == 532.07
    assert found.header["laser_powerlevel"] == "100"
    assert found.notes == ()


def test_bwspec_without_a_dark_spectrum_gives_the_raw_counts_and_says_so() -> None:
    found = read_spectra(bwspec().replace(b"Dark Subtracted #1", b"something else"))
    assert found.intensity[0, 0] == counts(0)[1] + 1186
    assert "raw ones" in found.notes[0]


def test_a_bwspec_row_that_is_no_row_is_named() -> None:
    lines = bwspec().split(b"\n")
    lines[-7] = lines[-7][:20]
    found = read_spectra(b"\n".join(lines))
    assert found.axis.size == POINTS - 3
    assert found.notes == (f"line {len(lines) - 6} is left out: it is not numbers",)


@pytest.mark.parametrize(
    "data",
    [
        jasco(),
        jasco(encoding="cp932"),
        jasco(encoding="utf-8-sig"),
        jasco("\t"),
        jasco(laser="Laser wavelength"),
        jasco().replace(b"##### Extended Information\n", b""),
        jasco().replace(b"\n", b"\r\n"),
        jasco(kind=""),
    ],
)
def test_jasco_is_read_with_the_laser_of_its_footer(data: bytes) -> None:
    found = read_spectra(data)
    assert found.format == "JASCO text"
    assert found.axis.tolist() == UPWARD
    assert found.intensity.tolist() == [counts(0)]
    assert found.laser_nm == 532.05
    assert found.header["機種名"] == "NRS-5100"
    assert found.notes == ()


def test_jasco_says_when_points_are_missing() -> None:
    found = read_spectra(jasco().replace(b"NPOINTS,    40", b"NPOINTS,    41"))
    assert found.notes == ("the file has 40 points and states NPOINTS 41",)


def test_jasco_infrared_is_refused_by_its_own_word() -> None:
    with pytest.raises(BadFile, match="'INFRARED SPECTRUM', not RAMAN SPECTRUM"):
        read_spectra(jasco(kind="INFRARED SPECTRUM"))


def test_labspec_xml_spreads_its_axes_over_the_map_x_first() -> None:
    found = read_spectra(labspec_xml(nx=3, ny=2))
    assert found.format == "LabSpec XML"
    assert found.axis.tolist() == UPWARD
    assert found.intensity.tolist() == [counts(n)[::-1] for n in range(6)]
    assert found.places["x_um"].tolist() == [0, 2, 4, 0, 2, 4]
    assert found.places["y_um"].tolist() == [0, 0, 0, 5, 5, 5]
    assert found.laser_nm == 532.06  # the exact one, not the 532 of the window
    assert found.header["Grating"] == "600 gr/mm"


def test_labspec_xml_of_one_spectrum_has_no_places() -> None:
    found = read_spectra(labspec_xml(nx=0))
    assert found.intensity.shape == (1, POINTS)
    assert dict(found.places) == {}


@pytest.mark.parametrize(
    ("unit", "axis", "first_nm"),
    [
        ("nm", (540.0, 541.0, 542.0), 540.0),
        ("1/cm abs", (18500.0, 18400.0, 18300.0), 1e7 / 18500),
        ("eV", (2.3, 2.2, 2.1), 1239.841984 / 2.3),
    ],
)
def test_labspec_xml_in_other_units_becomes_a_wavelength(
    unit: str, axis: tuple[float, ...], first_nm: float
) -> None:
    found = read_spectra(labspec_xml(nx=0, unit=unit, axis=axis))
    assert found.axis_unit == "nm"
    assert found.axis[0] == pytest.approx(first_nm)
    shift = found.shift_cm1()
    assert shift[0] == pytest.approx(1e7 / 532.06 - 1e7 / first_nm)


def test_a_row_of_labspec_xml_that_was_cut_is_left_out_with_its_place() -> None:
    data = labspec_xml().replace(b"101 101", b"101", 1)
    found = read_spectra(data)
    assert len(found.intensity) == 5
    assert found.places["x_um"].tolist() == [0, 4, 0, 2, 4]
    assert found.notes == ("spectrum 2 is left out: it is not 40 numbers",)


def test_trivista_gives_a_map_with_its_places_on_a_wavelength() -> None:
    found = read_spectra(trivista(4))
    assert (found.format, found.axis_unit, found.laser_nm) == ("TriVista", "nm", 532.1)
    assert found.intensity.tolist() == [counts(n) for n in range(4)]
    assert found.places["x_um"].tolist() == [-50, -25, 0, 25]
    assert found.header["DataLabel"] == "Counts"


def test_a_trivista_laser_of_zero_is_none() -> None:
    found = read_spectra(trivista(laser="0.000"))
    assert found.laser_nm is None
    with pytest.raises(BadFile, match="--laser-nm"):
        found.shift_cm1()


def test_a_trivista_axis_in_shifts_is_a_shift() -> None:
    assert read_spectra(trivista(unit="RamanShift")).axis_unit == "1/cm"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (labspec_xml()[:900], "the XML breaks at line"),
        (trivista()[:900], "the XML breaks at line"),
        (labspec_xml(unit="GHz"), "'GHz'"),
        (labspec_xml().replace(b"Spectr<", b"Temper<"), "no axis of type Spectr"),
        (labspec_xml().replace(b"LSX_Matrix", b"LSX_Other"), "LSX_Matrix is missing"),
        (labspec_xml().replace(b"<LSX_Data>", b"<!DOCTYPE a [<!ENTITY b 'c'>]><LSX_Data>"), "ent"),
        (trivista(unit="Kelvin"), "'Kelvin'"),
        (trivista(0), "no document with a frame"),
        (trivista().replace(b'"40|', b'"41|'), "ValueArray"),
        (jasco().replace(b"XUNITS,1/CM", b"XUNITS,GHZ"), "'GHZ'"),
        (bwspec().replace(b"Raman Shift", b"Shift of Raman").replace(b"Wavelength", b"W"), "are m"),
    ],
)
def test_what_does_not_hold_together_gets_one_plain_line(data: bytes, words: str) -> None:
    assert words in refusal(data)


def test_a_file_of_bytes_is_read_whatever_its_name_says() -> None:
    formats = {read_spectra(data).format for data in (bwspec(), jasco(), labspec_xml(), trivista())}
    assert len(formats) == 4
    assert np.isfinite(read_spectra(trivista()).intensity).all()
