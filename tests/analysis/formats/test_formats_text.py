"""Text files of spectra are read as they are, and what is no spectrum gets one plain line."""

import gzip

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labharness.analysis.formats import BadFile, Recording, csv_text, read_spectra
from rig import RAMAN
from spectral_files import refusal

FILES = {
    "wrighttools_mit/wt_raman_linescan.txt.gz": ("LabSpec text (map)", 100, 1020, 532.0),
    "wrighttools_mit/wt_spectrum_wn.txt.gz": ("LabSpec text", 1, 1020, 532.0),
    "pynxtools_raman_apache2/Si-wafer-Raman-Spectrum-1.txt": ("WITec ASCII", 1, 1600, None),
    "pynxtools_raman_apache2/rod_file_1000679.rod": ("ROD CIF", 1, None, 488.0),
    "raman_fitting_mit/Si_spectrum01.txt": ("text in two columns", 1, 1600, None),
    "raman_fitting_mit/testDW38C_pos1.txt": ("text in two columns", 1, 1600, None),
    "ramanchada2_mit/Si_HLR633_Z010_100_40sx5.txt": ("text in two columns", 1, 6034, None),
    "ramanchada2_mit/Sil10_iR532_Probe_100_60000msx2.txt": ("B&W Tek export", 1, None, 532.02),
    "ramanchada2_mit/PST10_iR532_Probe_100_3000msx7.txt": ("B&W Tek export", 1, None, 532.02),
    "ramanchada2_mit/PST10_iR785_OP03_8000msx2.txt": ("text in two columns", 1, 10257, None),
    "cases/ps.txt": ("text in two columns", 1, 2134, None),
    "cases/naphthalene.txt": ("text in two columns", 1, 2134, None),
    "cases/r6g.txt": ("text in two columns", 1, 1889, None),
    "cases/acn.txt": ("text in two columns", 1, 2134, None),
    "cases/labspec_nm.txt": ("LabSpec text", 1, 1546, 532.11),
    "cases/narrow_2px.txt": ("text in two columns", 1, 387, None),
    "cases/sat_EA.txt": ("text in two columns", 1, 1546, None),
}


def read(name: str) -> Recording:
    return read_spectra((RAMAN / name).read_bytes())


@pytest.mark.parametrize("name", FILES)
def test_a_real_file_is_recognised_by_its_content(name: str) -> None:
    format_name, spectra, points, laser_nm = FILES[name]
    found = read(name)
    assert found.format == format_name
    assert len(found.intensity) == spectra
    assert points is None or found.axis.size == points
    assert found.laser_nm == laser_nm
    assert (np.diff(found.axis) > 0).all()


def test_every_copied_file_of_spectra_is_read_by_a_test() -> None:
    kinds = ("*.txt", "*.gz", "*.rod")
    held = {p.relative_to(RAMAN).as_posix() for kind in kinds for p in RAMAN.rglob(kind)}
    tables = ("LICENSE.txt", "published_lines.txt", "drawn_lines.txt")
    assert {name for name in held if not name.endswith(tables)} == set(FILES)


def test_a_labspec_map_brings_its_places_and_an_ascending_axis() -> None:
    found = read("wrighttools_mit/wt_raman_linescan.txt.gz")
    assert list(found.places) == ["y_um"]
    assert found.places["y_um"][[0, -1]].tolist() == [33.1398, -34.9106]
    assert found.axis[-1] == 599.432
    assert found.intensity[0, -1] == 41.8885
    assert found.header["Grating"] == "1800 gr/mm"


def test_a_wavelength_becomes_a_shift_only_with_a_laser_that_somebody_named() -> None:
    found = read("pynxtools_raman_apache2/Si-wafer-Raman-Spectrum-1.txt")
    assert found.axis_unit == "nm"
    with pytest.raises(BadFile, match="--laser-nm"):
        found.shift_cm1()
    shift = found.with_laser(532.1).shift_cm1()
    beyond_the_laser = shift > 300
    brightest = float(shift[beyond_the_laser][found.intensity[0, beyond_the_laser].argmax()])
    assert brightest == pytest.approx(527.6, abs=1.5)
    with pytest.raises(BadFile, match="200–1200"):
        found.with_laser(5.3)


def test_a_vendors_export_gives_the_dark_subtracted_column_where_it_is_calibrated() -> None:
    found = read("ramanchada2_mit/Sil10_iR532_Probe_100_60000msx2.txt")
    assert found.axis[np.argmax(found.intensity[0])] == pytest.approx(520.7, abs=2)
    assert found.axis[0] > 100


TABLE = "".join(f"{100 + n},{7 * n % 5 + 0.25}\n" for n in range(4))


@pytest.mark.parametrize(
    "text",
    [
        TABLE,
        TABLE.replace(",", "\t"),
        TABLE.replace(",", "  "),
        TABLE.replace(",", ", "),
        TABLE.replace(",", ";").replace(".", ","),
        TABLE.replace(",", "\t").replace(".", ","),
        TABLE.replace(",", " ").replace(".", ",").replace("100 ", "100,0 "),
        "Raman shift,counts\n" + TABLE,
        "# operator=Ada\n\n" + TABLE + "\n",
        "\n".join(reversed(TABLE.splitlines())),
        TABLE.replace("\n", "\r\n"),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_two_columns_are_read_whatever_parts_them(text: str, encoding: str) -> None:
    found = read_spectra(text.encode(encoding))
    assert found.axis.tolist() == [100, 101, 102, 103]
    assert found.intensity.tolist() == [[0.25, 2.25, 4.25, 1.25]]
    assert found.axis_unit == "1/cm"


def test_a_heading_that_says_wavelength_is_believed() -> None:
    assert read_spectra(b"Wavelength (nm),counts\n540,1\n541,2\n").axis_unit == "nm"


def test_wire_text_is_read_single_and_as_a_map() -> None:
    single = read_spectra(b"#Wave\t\t#Intensity\n500.5\t\t7\n400.5\t\t5\n")
    assert (single.format, single.axis.tolist()) == ("WiRE text", [400.5, 500.5])
    assert single.intensity.tolist() == [[5, 7]]
    rows = "".join(
        f"{x}\t\t{y}\t\t{wave}\t\t{10 * x + y + wave / 1000}\n"
        for y in (0, 1)
        for x in (0, 1)
        for wave in (500, 400)
    )
    found = read_spectra(b"#X\t\t#Y\t\t#Wave\t\t#Intensity\n" + rows.encode())
    assert found.intensity.tolist() == [[0.4, 0.5], [10.4, 10.5], [1.4, 1.5], [11.4, 11.5]]
    assert found.places["x_um"].tolist() == [0, 1, 0, 1]
    assert found.places["y_um"].tolist() == [0, 0, 1, 1]


def test_a_labspec_map_over_an_area_has_two_columns_of_places() -> None:
    head = "#Laser (nm)=\t532\n#AxisType[0]=\tIntens\n#AxisType[1]=\tSpectr\n"
    head += "#AxisUnit[1]=\t1/cm\n#AxisType[2]=\tX\n#AxisType[3]=\tY\n"
    found = read_spectra((head + "\t\t400\t401\n5\t1\t8\t9\n5\t2\t6\t7\n").encode("latin-1"))
    assert found.places["y_um"].tolist() == [5, 5]
    assert found.places["x_um"].tolist() == [1, 2]
    assert found.intensity.tolist() == [[8, 9], [6, 7]]


ROD = "data_1\nloop_\n_raman_spectrum.raman_shift\n_raman_spectrum.intensity\n"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty"),
        (b" \n ", "empty"),
        (b"a poem\nof two lines\n", "no line holds two numbers"),
        (b"\x00\x01\x02" * 50, "neither text nor"),
        (b"\x89HDF\r\n\x1a\n", "HDF5"),
        (gzip.compress(b"1,2\n2,3\n", mtime=0)[:-9], "gzip"),
        (b"\x1f\x8bnot gzip", "gzip"),
        (b"400,1\n4o1,2\n402,x\n4o3,1\n404,2\n", "line 2"),
        (b"400,1\n401,nan\n", "NaN"),
        (b"400,1\n403,2\n401,3\n404,1\n402,3\n405,1\n", "turns"),
        (b"400,1\n400,2\n", "turns or stands"),
        (b"400,1,2\n401,2,3\n", "3 columns"),
        (b"[Header]\nXAxisUnit = nm\n", "no [Data]"),
        (b"[Header]\nXAxisUnit = furlong\n[Data]\n1,2\n", "furlong"),
        (b"[Header]\nXAxisUnit = nm\n[Data]\nX,Y\n", "no row of numbers"),
        (b"#Wave\t\t#Intensity\n", "no row of numbers"),
        (b"#Wave\t\t#Height\t\t#Intensity\n1\t2\t3\n", "last two"),
        (b"#X\t#Wave\t#Intensity\n0\t5\t1\n0\t4\t1\n1\t5\t1\n1\t3\t1\n", "one axis"),
        (b"#A=\t1\n#AxisType[1]=\tSpectr\n#AxisUnit[1]=\tK\n1\t2\n", "'K'"),
        (b"#A=\t1\n\t400\t401\n0\t1\n", "rows of 2 numbers"),
        (b"File Version;BWRam4\nDate;x\n", "begins with Pixel"),
        (b"File Version;BWRam4\nPixel;Raw\n1;2\n", "are missing"),
        (ROD.replace("intensity", "counts").encode(), "no loop"),
        ((ROD + "400 1 2\n").encode(), "under 2 names"),
    ],
)
def test_what_cannot_be_read_gets_one_plain_line(data: bytes, words: str) -> None:
    assert words in refusal(data)


@given(
    st.lists(st.floats(-1e9, 1e9), min_size=6, max_size=30),
    st.floats(-100, 4000),
    st.one_of(st.none(), st.floats(400, 800)),
    st.integers(1, 3),
)
@settings(deadline=None, max_examples=40)
def test_what_is_written_as_csv_is_read_back_to_the_last_bit(
    counts: list[float], start: float, laser_nm: float | None, spectra: int
) -> None:
    points = len(counts) // spectra
    rows = np.array(counts[: points * spectra]).reshape(spectra, points)
    axis = np.array([start + 0.37 * n for n in range(points)])
    given_one = Recording("a test", axis, "1/cm", rows, laser_nm=laser_nm)
    found = read_spectra(csv_text(given_one).encode())
    assert found.format == "CSV"
    assert np.array_equal(found.axis, axis)
    assert np.array_equal(found.intensity, rows)
    assert found.laser_nm == laser_nm
