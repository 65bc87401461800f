"""Renishaw WDF and packed JCAMP-DX are read by their published layouts."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from renishawWiRE import WDFReader

from labharness.analysis.formats import read_spectra
from packed_files import JCAMP, ROWS, wdf
from spectral_files import refusal


def test_wdf_is_read_as_its_published_reader_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "map.wdf"
    path.write_bytes(wdf(ROWS))
    witness = WDFReader(path)
    found = read_spectra(path.read_bytes())
    assert np.array_equal(found.axis, witness.xdata[::-1])
    assert np.array_equal(found.intensity, np.reshape(witness.spectra, (3, 60))[:, ::-1])
    assert found.laser_nm == pytest.approx(witness.laser_length, rel=1e-6)
    assert found.places["x_um"].tolist() == witness.xpos.tolist()
    assert found.places["y_um"].tolist() == witness.ypos.tolist()
    assert found.header["title"] == "flake1"
    witness.close()


def test_a_map_that_was_stopped_gives_the_spectra_it_has() -> None:
    assert np.array_equal(read_spectra(wdf(ROWS, capacity=9)).intensity, ROWS[:, ::-1])


VALUES = [1000, 1002, 1004, 1004, 1004, 1000, 995, 995, 996, 990, 990, -5]


@pytest.mark.parametrize(
    "rows",
    [
        "400 1000 1002 1004 1004 1004 1000\n406 995 995 996 990 990 -5",
        "400+1000+1002+1004+1004+1004+1000\n406+995+995+996+990+990-5",
        "400A000A002A004A004A004A000\n406I95I95I96I90I90e",
        "400A000KK%%m\n405A000n%Jo%r95\n411e",
        "400A000KT%Tm\n405A000n%Jo%r95\n411e",
    ],
    ids=["AFFN", "PAC", "SQZ", "DIF", "DUP"],
)
def test_jcamp_is_unpacked_from_every_form(rows: str, tmp_path: Path) -> None:
    text = JCAMP.format(rows=rows)
    found = read_spectra(text.encode())
    assert found.format == "JCAMP-DX"
    assert (found.intensity[0] * 2).tolist() == VALUES
    assert found.axis == pytest.approx(np.arange(400, 412))
    witness: Any = pytest.importorskip("jcamp", reason="comes with the extra dev")
    path = tmp_path / "film.jdx"
    path.write_text(text, "utf-8")
    other = witness.readfile(path)
    assert np.array_equal(other["x"], found.axis)
    assert np.array_equal(other["y"], found.intensity[0])


@pytest.mark.parametrize("units", ["1/CM", "cm-1", "Raman shift (cm^-1)", "RAMAN SHIFT"])
def test_jcamp_may_say_wavenumber_in_other_words(units: str) -> None:
    text = JCAMP.format(rows=ONE).replace("##XUNITS=1/CM", f"##XUNITS={units}")
    assert read_spectra(text.encode()).axis_unit == "1/cm"


def test_jcamp_of_a_windows_with_decimal_commas_is_read() -> None:
    text = JCAMP.replace("XYDATA=(X++(Y..Y))", "XYPOINTS=(XY..XY)").replace("=12", "=3")
    text = text.replace("YFACTOR=0.5", "YFACTOR=0,5")
    found = read_spectra(text.format(rows="400,5 1,5\n401,5 2,5\n402,5 4,5").encode())
    assert found.axis.tolist() == [400.5, 401.5, 402.5]
    assert found.intensity.tolist() == [[0.75, 1.25, 2.25]]


def test_jcamp_names_the_laser() -> None:
    text = JCAMP.format(rows=ONE).replace("##XUNITS", "##.LASER WAVELENGTH=532.0 nm\n##XUNITS")
    assert read_spectra(text.encode()).laser_nm == 532


def test_jcamp_pairs_are_read() -> None:
    text = JCAMP.replace("XYDATA=(X++(Y..Y))", "XYPOINTS=(XY..XY)").replace("=12", "=3")
    found = read_spectra(text.format(rows="400,1; 401,2\n402,4").encode())
    assert found.axis.tolist() == [400, 401, 402]
    assert found.intensity.tolist() == [[0.5, 1, 2]]


MANY = "\n".join(f"{400 + 5 * n} " + " ".join(str(100 + n + k) for k in range(5)) for n in range(8))


@pytest.mark.parametrize(
    ("spoil", "gone", "note"),
    [
        (("415 103", "415 1?3"), range(415, 420), "row 4 is left out: it is not packed numbers"),
        (("\n435 107 108 109 110 111", ""), range(435, 440), "35 points and NPOINTS states 40"),
        ((" 110 111", ""), range(438, 440), "the file has 38 points and NPOINTS states 40"),
    ],
)
def test_a_jcamp_file_with_a_bad_row_is_read_without_it(
    spoil: tuple[str, str], gone: range, note: str
) -> None:
    text = JCAMP.replace("LASTX=411", "LASTX=439").replace("=12", "=40").format(rows=MANY)
    found = read_spectra(text.replace(*spoil).encode())
    assert found.axis.tolist() == [x for x in range(400, 440) if x not in gone]
    assert any(note in each for each in found.notes)


ONE = "400 1000 1002 1004 1004 1004 1000 995 995 996 990 990 -5"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (JCAMP.format(rows=ONE).replace("RAMAN S", "INFRARED S"), "INFRARED"),
        (JCAMP.format(rows=ONE).replace("1/CM", "SECONDS"), "SECONDS"),
        (JCAMP.format(rows=ONE).replace("=12", "=13"), "NPOINTS states 13"),
        (JCAMP.format(rows=ONE).replace("FIRSTX=400", "FIRSTX=here"), "FIRSTX"),
        (JCAMP.format(rows="400 1000 ? 3"), "is not a row of packed numbers"),
        (JCAMP.format(rows="400 K K K"), "is not a row of packed numbers"),
        (JCAMP.format(rows="400A000K\n402A999"), "the one before ended with 1002"),
        ("##TITLE=x\n##END=\n", "neither XYDATA"),
    ],
)
def test_a_jcamp_file_that_does_not_hold_together_is_refused(text: str, words: str) -> None:
    said = refusal(text.encode())
    assert "JCAMP" in said
    assert words in said


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (wdf(ROWS)[:300], "300 bytes"),
        (wdf(ROWS).replace(b"XLST", b"ABCD"), "no block XLST"),
        (wdf(ROWS)[:700], "no block XLST"),
        (wdf(ROWS)[: 512 + 16 + 720 + 28 + 30], "within the block XLST"),
    ],
)
def test_a_binary_file_that_does_not_hold_together_is_refused(data: bytes, words: str) -> None:
    assert words in refusal(data)
