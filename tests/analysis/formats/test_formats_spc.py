"""Galactic SPC in its three versions is read as its published readers read it."""

import io
from typing import Any

import numpy as np
import pytest

from labharness.analysis.formats import BadFile, read_spectra
from spc_files import AXIS, ROWS, new_spc, old_spc, pairs_spc
from spectral_files import refusal


@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize(("exponent", "bits"), [(-128, 32), (10, 32), (10, 16)])
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("order", ["<", ">"])
def test_the_new_format_is_read_in_each_of_its_encodings(
    listed: bool, exponent: int, bits: int, count: int, order: str
) -> None:
    data = new_spc(
        ROWS[:count], listed=listed, many=count > 1, exponent=exponent, bits=bits, order=order
    )
    found = read_spectra(data)
    assert found.format == "Galactic SPC"
    assert found.axis == pytest.approx(AXIS[::-1], rel=1e-5)
    assert found.intensity == pytest.approx(ROWS[:count, ::-1], abs=2**-5)


@pytest.mark.parametrize("count", [1, 3])
def test_the_old_format_is_read_with_its_high_words_first(count: int) -> None:
    found = read_spectra(old_spc(ROWS[:count] - 90))
    assert found.axis == pytest.approx(AXIS[::-1], rel=1e-5)
    assert found.intensity == pytest.approx(ROWS[:count, ::-1] - 90, abs=2**-20)


@pytest.mark.parametrize("directory", [True, False])
def test_pairs_on_one_axis_are_spectra(directory: bool) -> None:
    found = read_spectra(pairs_spc([(AXIS, row) for row in ROWS], directory=directory))
    assert np.array_equal(found.intensity, ROWS[:, ::-1])
    assert found.notes == ()


def test_pairs_on_windows_are_joined_to_one_spectrum() -> None:
    low, high = np.arange(100, 200, dtype=np.float32), np.arange(180, 300, dtype=np.float32)
    found = read_spectra(pairs_spc([(low, low), (high, high)]))
    assert found.intensity.tolist() == [found.axis.tolist()]
    assert found.notes == ("2 windows are joined to one spectrum (100–199, 180–299)",)


def test_pairs_on_axes_of_their_own_are_brought_to_the_first() -> None:
    moved = AXIS + np.float32(2.5)
    found = read_spectra(pairs_spc([(AXIS, 3 * AXIS), (moved, 3 * moved)]))
    assert found.intensity == pytest.approx(np.stack([3 * found.axis] * 2), rel=1e-6)
    assert "interpolated onto that of the first" in found.notes[0]


@pytest.mark.parametrize(
    ("unit", "axis_unit", "stated", "notes"),
    [
        (13, "1/cm", True, ()),
        (1, "1/cm", True, ()),
        (3, "nm", True, ()),
        (0, "1/cm", False, ()),
        (5, "1/cm", False, ("the file says that its axis is in minutes; taken for cm⁻¹",)),
    ],
)
def test_an_axis_type_says_what_the_axis_is_unless_it_cannot_be(
    unit: int, axis_unit: str, stated: bool, notes: tuple[str, ...]
) -> None:
    found = read_spectra(new_spc(ROWS[:1], unit=unit))
    assert (found.axis_unit, found.unit_stated, found.notes) == (axis_unit, stated, notes)


def test_micrometres_become_nanometres() -> None:
    found = read_spectra(new_spc(ROWS[:1], unit=2))
    assert (found.axis_unit, found.axis[0]) == ("nm", 100_000)


def test_minutes_that_reach_no_raman_shift_are_refused_by_name() -> None:
    short = AXIS / np.float32(30)
    with pytest.raises(BadFile, match="in minutes, and it reaches 20: no Raman shift"):
        read_spectra(pairs_spc([(short, ROWS[0])], unit=5))


@pytest.mark.parametrize(
    ("log", "laser_nm"),
    [
        (b"Laser = 532\r\nX=1", 532.0),
        (b"Laser_Wavelength_nm=785.0\r\nLaser power=300", 785.0),
        (b"LaserPower=532", None),
        (b"Excitation Wavelength = 0", None),
    ],
)
def test_the_log_is_kept_and_names_the_laser(log: bytes, laser_nm: float | None) -> None:
    found = read_spectra(new_spc(ROWS[:1], log=log))
    assert found.laser_nm == laser_nm
    key, _, value = log.decode().splitlines()[0].partition("=")
    assert found.header[key.strip()] == value.strip()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (new_spc(ROWS[:1])[:-9], "the file ends"),
        (new_spc(ROWS, many=True)[:-250], "the file ends"),
        (new_spc()[:300], "the header alone has 512"),
        (old_spc()[:400], "the header promises"),
        (pairs_spc([(AXIS, ROWS[0])])[:-9], "the file ends"),
        (new_spc()[:4] + b"\xff\xff\xff\x7f" + new_spc()[8:], "points"),
    ],
)
def test_a_file_that_does_not_hold_together_is_refused(data: bytes, words: str) -> None:
    said = refusal(data)
    assert "Galactic SPC" in said
    assert words in said


@pytest.mark.parametrize(
    "data",
    [
        new_spc(many=True),
        new_spc(many=True, listed=False),
        new_spc(many=True, exponent=10),
        new_spc(many=True, exponent=10, bits=16),
        pairs_spc([(AXIS, row) for row in ROWS]),
        pairs_spc([(AXIS, row) for row in ROWS], directory=True),
    ],
)
def test_the_new_format_is_read_as_spc_io_reads_it(data: bytes) -> None:
    witness: Any = pytest.importorskip("spc_io", reason="comes with the extra dev")
    spectra = list(witness.SPC.from_bytes_io(io.BytesIO(data)))
    found = read_spectra(data)
    assert len(spectra) == len(found.intensity)
    for one, row in zip(spectra, found.intensity, strict=True):
        assert found.axis == pytest.approx(np.asarray(one.xarray)[::-1], rel=1e-6)
        assert row == pytest.approx(np.asarray(one.yarray)[::-1], rel=1e-6)
