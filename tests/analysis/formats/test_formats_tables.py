"""Text of many spectra: wide CSV, wafer maps, windows that overlap, and rows that are none."""

import numpy as np
import pytest

from labharness.analysis.formats import BadFile, Recording, csv_text, read_spectra
from rig import HERE
from spectral_files import AXIS, POINTS, counts, grid, refusal, wide

UPWARD = AXIS[::-1]


@pytest.mark.parametrize("data", [wide(), wide(";"), wide("\t"), wide().replace(b"shift", b'"s"')])
def test_a_column_a_spectrum_is_read_as_so_many_spectra(data: bytes) -> None:
    found = read_spectra(data)
    assert found.format == "text in columns"
    assert found.axis.tolist() == UPWARD
    assert found.intensity.tolist() == [counts(n)[::-1] for n in range(3)]


def test_columns_that_hold_no_spectrum_are_not_taken_for_one() -> None:
    rows = [f"{n},{540 + n / 9:.3f},{x},7,{5 * n % 9},3" for n, x in enumerate(UPWARD)]
    head = "pixel,wavelength (nm),Raman shift (cm-1),dark,counts,fit"
    found = read_spectra("\n".join([head, *rows]).encode())
    assert found.axis.tolist() == UPWARD
    assert found.intensity.tolist() == [[5 * n % 9 for n in range(POINTS)]]
    assert (found.axis_unit, found.unit_stated) == ("1/cm", True)


def test_a_wide_table_without_a_heading_is_read_unless_a_second_column_may_be_the_axis() -> None:
    bare = wide().split(b"\n", 1)[1]
    assert read_spectra(bare).intensity.shape == (3, POINTS)
    twice = b"\n".join(b"%d,%d,%d" % (n, 3 * n, n % 7) for n in range(30))
    with pytest.raises(BadFile, match="no heading says which hold spectra"):
        read_spectra(twice)


@pytest.mark.parametrize(
    ("data", "name", "places"),
    [
        (grid(";", ["X", "Y"]), "text of a map", ["x", "y"]),
        (grid(";", ["X (mm)", "Y (mm)"]), "text of a map", ["x_mm", "y_mm"]),
        (grid(",", ["X_um", "Y_um"]), "text of a map", ["x_um", "y_um"]),
        (grid("\t", ["", ""]), "LabSpec text (map)", ["column_1", "column_2"]),
        (grid(",", ["", ""]), "LabSpec text (map)", ["column_1", "column_2"]),
        (grid(";", ["", ""]), "LabSpec text (map)", ["column_1", "column_2"]),
        (grid("\t", []), "text of a map", ["column_1", "column_2"]),
        (grid(" ", []), "text of a map", ["column_1", "column_2"]),
    ],
)
def test_a_map_with_its_axis_in_the_first_row_is_read(
    data: bytes, name: str, places: list[str]
) -> None:
    found = read_spectra(data)
    assert (found.format, list(found.places)) == (name, places)
    assert found.axis.tolist() == UPWARD
    assert found.intensity.tolist() == [counts(n)[::-1] for n in range(5)]
    assert found.places[places[0]].tolist() == [0, 10.5, 21, 31.5, 42]


def test_a_labspec_header_goes_with_a_map_of_commas() -> None:
    head = b"#Laser (nm)=,532.06\n#AxisType[1]=,Spectr\n#AxisUnit[1]=,1/cm\n#AxisType[2]=,X\n"
    found = read_spectra(head + b"#AxisType[3]=,Y\n" + grid(",", ["", ""]))
    assert found.laser_nm == 532.06
    assert list(found.places) == ["y_um", "x_um"]


def test_a_table_of_pandas_is_columns_with_and_without_names() -> None:
    rows = [f"{x:.2f},{counts(0)[n]},{counts(1)[n]}" for n, x in enumerate(AXIS)]
    for head in (",0,1", "shift,a,b", ",a,b"):
        found = read_spectra("\n".join([head, *rows]).encode())
        assert found.axis.tolist() == UPWARD
        assert found.intensity.tolist() == [counts(0)[::-1], counts(1)[::-1]]
    numbered = "\n".join([",shift,a,b", *(f"{n},{row}" for n, row in enumerate(rows))])
    assert read_spectra(numbered.encode()).intensity.shape == (2, POINTS)


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_spectra_that_have_names_before_them_are_read(mark: str) -> None:
    rows = [mark.join(["spot", *(f"{x:g}" for x in AXIS)])]
    rows += [mark.join([f"flake {n}", *(f"{y:g}" for y in counts(n))]) for n in range(3)]
    found = read_spectra("\n".join(rows).encode())
    assert found.axis.tolist() == UPWARD
    assert found.intensity.tolist() == [counts(n)[::-1] for n in range(3)]
    assert dict(found.places) == {}


def window(low: float, high: float, level: int) -> str:
    return "".join(f"{low + n}\t{level + n % 5}\n" for n in range(int(high - low) + 1))


def test_windows_that_overlap_are_joined_where_each_ends() -> None:
    found = read_spectra((window(500, 900, 20) + window(100, 550, 10)).encode())
    assert found.axis.tolist() == [float(x) for x in range(100, 901)]
    assert set(found.intensity[0, :425].tolist()) == {10, 11, 12, 13, 14}
    assert set(found.intensity[0, 425:].tolist()) == {20, 21, 22, 23, 24}
    assert found.notes == ("2 windows are joined to one spectrum (100–550, 500–900)",)


def test_a_window_within_another_is_left_out_and_named() -> None:
    text = window(100, 900, 10) + window(150, 180, 90) + window(800, 1200, 20)
    found = read_spectra(text.encode())
    assert 90 not in found.intensity
    assert "1 of them lie within another and are left out" in found.notes


def test_spectra_below_each_other_on_one_axis_are_spectra() -> None:
    found = read_spectra((window(100, 200, 10) * 3).encode())
    assert found.intensity.shape == (3, 101)


def test_a_map_in_long_form_leaves_out_the_spectrum_that_lacks_a_row() -> None:
    rows = [f"{x},{y},{s},{x + y}" for y in (0, 1) for x in (0, 1) for s in range(300, 330)]
    del rows[40]
    found = read_spectra(("X,Y,Raman shift,Counts\n" + "\n".join(rows)).encode())
    assert found.intensity.tolist() == [[0] * 30, [1] * 30, [2] * 30]
    assert found.places["y_um"].tolist() == [0, 1, 1]
    assert found.notes == ("spectrum 2 is left out: it is not on the axis of the others",)


@pytest.mark.parametrize(
    ("bad", "note"),
    [
        ("402,x", "line 3 is left out: it is not 2 numbers"),
        ("402", "line 3 is left out: it is not 2 numbers"),
        ("402;7,8,9", "line 3 is left out: it is not 2 numbers"),
        ("402,nan", "pixel 3 is left out: no spectrum has a number there"),
        ("402,1e300", "pixel 3 is left out: no spectrum has a number there"),
        ("401,9", "point 3 is left out: the axis turns or stands there"),
        ("902,9", "point 3 is left out: the axis turns or stands there"),
    ],
)
def test_one_bad_row_is_named_and_the_others_are_read(bad: str, note: str) -> None:
    rows = [f"{400 + n},{n % 3}" for n in range(60)]
    rows[2] = bad
    found = read_spectra("\n".join(rows).encode())
    assert found.axis.size == 59
    assert found.notes == (note,)


def test_a_file_that_ends_within_its_last_row_is_read_without_it() -> None:
    whole = grid("\t", ["", ""])
    found = read_spectra(whole[:-40])
    assert len(found.intensity) == 4
    assert found.notes == ("line 6 is left out: it is not 42 numbers",)


def test_more_than_a_tenth_of_bad_rows_is_another_file() -> None:
    rows = [f"{400 + n},{n % 3}" if n % 5 else "here nothing" for n in range(60)]
    with pytest.raises(BadFile, match=r"line 6 is not 2 numbers: 'here nothing', and \d+ more"):
        read_spectra("\n".join(rows).encode())


def test_a_spectrum_with_a_nan_is_left_out_of_its_map_with_its_place() -> None:
    rows = np.ones((3, 20))
    rows[1, 7] = np.nan
    found = Recording("a test", np.arange(20.0), "1/cm", rows, places={"x_um": np.arange(3.0)})
    assert found.places["x_um"].tolist() == [0, 2]
    assert found.notes == ("spectrum 2 is left out: NaN or infinity among the numbers",)


def test_a_footer_is_no_bad_row() -> None:
    found = read_spectra(b"400,1\n401,2\n402,3\n\nmeasured by Ada\n##END=\n")
    assert found.axis.size == 3
    assert found.notes == ()


def test_a_few_pixels_are_a_recording() -> None:
    found = read_spectra(b"".join(b"%d\t%d\n" % (400 + 3 * n, n % 4) for n in range(12)))
    assert found.axis.size == 12


def test_rruff_files_begin_like_jcamp_and_are_columns() -> None:
    head = b"##NAMES=Molybdenite\n##RRUFFID=R060000\n##LASER=532\n"
    found = read_spectra(
        head + b"".join(b"%d, %d\n" % (n, n % 9) for n in range(300)) + b"##END=\n"
    )
    assert (found.format, found.axis.size) == ("text in two columns", 300)


@pytest.mark.parametrize(
    ("heading", "unit"),
    [
        ("Wellenlänge (nm);Zähler", "nm"),
        ("Raman-Verschiebung;Zähler", "1/cm"),
        ("拉曼位移;强度", "1/cm"),
        ("波長;強度", "nm"),
    ],
)
def test_a_heading_in_another_language_is_understood(heading: str, unit: str) -> None:
    rows = "".join(f"{540 + n / 10};{n % 5}\n" for n in range(20)).replace(".", ",")
    found = read_spectra((heading + "\n" + rows).encode())
    assert (found.axis_unit, found.unit_stated) == (unit, True)


def test_what_was_left_out_does_not_come_back_from_csv() -> None:
    found = read_spectra(wide().replace(b"500.00,", b"500.00,x,", 1))
    assert found.notes == ("line 2 is left out: it is not 4 numbers",)
    assert np.array_equal(read_spectra(csv_text(found).encode()).intensity, found.intensity)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"PK\x03\x04" + bytes(700), "ZIP archive or an Office file"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(700), "JASCO .jws"),
        (b"WIT_PR06" + bytes(700), "WITec project"),
        (b"\n\n\xfe\xfe" + bytes(700), "Bruker OPUS"),
        (b"Andor Technology Multi-Channel File\n65538 1\n", "Andor SIF"),
        (b"%PDF-1.7\n1 0 obj\n", "PDF"),
        (b"\x89PNG\r\n\x1a\n" + bytes(700), "PNG picture"),
        (b"MM\x00*" + bytes(700), "TIFF picture"),
        (b"BM\xbe\x02\x00\x00" + bytes(696), "BMP picture"),
        (bytes(4098) + b"\x55\x55" + bytes(100), "WinSpec"),
        (b"\x01" + bytes(5000) + b"<SpeFormat version='3.0'>", "LightField"),
        (b"MATLAB 5.0 MAT-file, Platform" + bytes(700), "MATLAB"),
        (b"<!DOCTYPE html>\n<html><body>404</body></html>", "web page"),
        (b"<?xml version='1.0'?>\n<Workbook/>\n", "XML of a kind"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:1\n", "git lfs pull"),
        (b"Dear Ada,\nthe spectra follow.\n", "it begins with 'Dear Ada,'"),
    ],
)
def test_an_unknown_file_is_answered_with_what_it_seems_to_be(data: bytes, words: str) -> None:
    assert words in refusal(data)


CASES = HERE / "data" / "raman" / "cases"


def test_an_axis_that_numbers_the_pixels_is_no_raman_axis() -> None:
    with pytest.raises(BadFile, match="'pixel #', which only numbers"):
        read_spectra((CASES / "pixel_header.csv").read_bytes())


@pytest.mark.parametrize("title", ["Pixel", "Channel", "index", "Point no."])
def test_a_heading_that_counts_is_no_raman_axis(title: str) -> None:
    text = "\n".join([f"{title},Counts", *(f"{n},{5 * n % 9}" for n in range(30))])
    with pytest.raises(BadFile, match="only numbers the pixels"):
        read_spectra(text.encode())


def test_an_axis_of_energies_is_said_to_be_one_and_converted_with_a_laser() -> None:
    found = read_spectra((CASES / "ev.csv").read_bytes())
    with pytest.raises(BadFile, match="an energy in eV and the file names no laser"):
        found.shift_cm1()
    assert found.with_laser(532.0).shift_cm1()[[0, -1]] == pytest.approx([150, 1000], abs=1)


@pytest.mark.promise(50)
@pytest.mark.parametrize(
    ("entry", "laser_nm"),
    [
        ("#Laser=\t532.11", 532.11),
        ("#Laser (nm)=\t632.8", 632.8),
        ("#Laser=\t785 nm", 785.0),
        ("#Laser power (mW)=\t532", None),
        ("#Laser=\t100%", None),
    ],
    ids=["LabSpec 5", "LabSpec 6", "with its unit", "power", "share"],
)
def test_the_laser_that_a_header_of_labspec_names_counts(
    entry: str, laser_nm: float | None
) -> None:
    rows = "".join(f"{shift}\t{n}\n" for n, shift in enumerate(AXIS[::-1]))
    text = f"#Acq. time (s)=\t10\n{entry}\n{rows}"
    assert read_spectra(text.encode()).laser_nm == laser_nm


@pytest.mark.parametrize(
    "head", ["# Laser: 632.8 nm", "Excitation wavelength = 632.8", "laser_nm=632.8"]
)
def test_the_laser_that_the_header_of_a_table_names_counts(head: str) -> None:
    text = "\n".join([head, "shift,counts", *(f"{x},{n % 7}" for n, x in enumerate(UPWARD))])
    assert read_spectra(text.encode()).laser_nm == 632.8


@pytest.mark.parametrize("head", ["", "Raman shift,a,Raman shift,b,Raman shift,c\n"])
@pytest.mark.parametrize("moved", [0.0, 0.3])
def test_pairs_of_columns_are_so_many_spectra(head: str, moved: float) -> None:
    rows = [
        ",".join(f"{x + moved * n},{counts(n)[-1 - at]}" for n in range(3))
        for at, x in enumerate(UPWARD)
    ]
    found = read_spectra((head + "\n".join(rows)).encode())
    assert len(found.intensity) == 3
    if not moved:
        assert found.axis.tolist() == UPWARD
        assert found.intensity.tolist() == [counts(n)[::-1] for n in range(3)]


def test_a_wafer_map_below_a_title_is_read_with_its_places() -> None:
    found = read_spectra((CASES / "wafer.csv").read_bytes())
    assert found.format == "text of a map"
    assert found.intensity.shape == (6, 1546)
    assert found.places["x"].tolist()[:3] == [0, 10, 20]
    assert found.axis[[0, -1]] == pytest.approx([150, 1000], abs=1)
