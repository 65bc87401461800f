"""What ``labharness analyse`` gives people to work with: table, JSON, pictures, a page."""

import csv
import math
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from commands import entry, say
from films import AXIS, BILAYER, MONOLAYER, SUBSTRATE, film, written, written_map
from markup import parsed
from platforms import names_any_file

STEERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""What a terminal obeys, or shows in another order than it is written."""


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    return written(tmp_path / "mine.txt", film(MONOLAYER))


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A map of five by four: two layers in the middle, bare substrate in one corner."""
    spectra = {}
    for number, (y, x) in enumerate(np.ndindex(4, 5)):
        lines = SUBSTRATE if (x, y) == (0, 0) else BILAYER if x == 2 else MONOLAYER
        spectra[0.5 * x, 0.5 * y] = film(lines, number)
    return written_map(tmp_path_factory.mktemp("map") / "map.txt", spectra)


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


# ---- the table of peaks


def test_a_spectrum_is_told_with_its_lines_and_their_errors(mine: Path) -> None:
    out = say("analyse", mine).out
    assert "  lines of MoS2, ± one sigma:\n" in out
    found = re.search(r"A1g +(\S+) ± (\S+) +(\S+) ± (\S+) +(\S+) ± (\S+) +(\S+) ± (\S+)\n", out)
    assert found, out
    values = [float(each) for each in found.groups()]
    truth = (403.6, 5.0, 1500.0, math.pi / 2 * 5.0 * 1500.0)
    for value, sigma, true in zip(values[::2], values[1::2], truth, strict=True):
        assert abs(value - true) < 5 * sigma
        assert sigma < 0.1 * true


def test_json_has_every_line_with_numbers_that_are_not_rounded(mine: Path) -> None:
    peaks = {row["line"]: row for row in entry(say("analyse", "--json", mine))["peaks"]}
    assert set(peaks) == {"E2g", "A1g", "Si"}
    line = peaks["A1g"]
    assert line["position_cm1"] == pytest.approx(403.6, abs=0.3)
    area = math.pi / 2 * line["fwhm_cm1"] * line["height_counts"]
    assert line["area_counts_cm1"] == pytest.approx(area, rel=1e-12)
    assert 0 < line["sigma_area_counts_cm1"] < 0.05 * area


def test_heights_are_in_the_unit_of_the_file(tmp_path: Path, mine: Path) -> None:
    small = written(tmp_path / "small.txt", film(MONOLAYER) / 1000)
    heights = [
        {
            row["line"]: row["height_counts"]
            for row in entry(say("analyse", "--json", each))["peaks"]
        }
        for each in (mine, small)
    ]
    assert heights[1]["A1g"] == pytest.approx(heights[0]["A1g"] / 1000, rel=0.02)


def test_many_files_make_one_table(tmp_path: Path, mine: Path, grid: Path) -> None:
    target = tmp_path / "peaks.csv"
    said = say("analyse", "--table", target, mine, grid)
    assert said.err == f"written: {target} (63 rows)\n"
    rows = rows_of(target)
    assert [len([row for row in rows if row["file"] == str(each)]) for each in (mine, grid)] == [
        3,
        60,
    ]
    ninth = [row for row in rows if row["file"] == str(grid) and row["spectrum"] == "9"]
    assert {(row["x_um"], row["y_um"]) for row in ninth} == {("1.5", "0.5")}
    bare = [row for row in rows if row["file"] == str(grid) and row["spectrum"] == "1"]
    assert [(row["line"], row["stands_out"], row["area_counts_cm1"] == "") for row in bare] == [
        ("E2g", "false", True),
        ("A1g", "false", True),
        ("Si", "true", False),
    ]


def test_a_file_that_cannot_be_read_leaves_the_others_their_rows(
    tmp_path: Path, mine: Path
) -> None:
    target = tmp_path / "peaks.csv"
    said = say("analyse", "--table", target, tmp_path / "none.txt", mine)
    assert said.code == 64
    assert said.err.endswith(f"written: {target} (3 rows, 1 of 2 files)\n")
    assert len(rows_of(target)) == 3


def test_parquet_is_the_same_table(tmp_path: Path, mine: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    tables = [tmp_path / name for name in ("t.csv", "t.parquet")]
    for each in tables:
        assert say("analyse", "--table", each, mine).err.startswith("written:")
    found = parquet.read_table(tables[1]).to_pylist()
    assert [row["line"] for row in found] == [row["line"] for row in rows_of(tables[0])]
    one = float(rows_of(tables[0])[0]["area_counts_cm1"])
    assert found[0]["area_counts_cm1"] == pytest.approx(one, rel=1e-9)


def test_a_map_is_told_by_medians_and_with_peaks_by_every_spectrum(grid: Path) -> None:
    out = say("analyse", grid).out
    assert "lines of MoS2, median ± scatter between spectra:" in out
    assert re.search(r"E2g .* 19 of 20\n", out)
    every = say("analyse", "--peaks", grid).out
    assert len(re.findall(r"^    \d+ +\S+ +\S+ +(?:E2g|A1g|Si) ", every, re.MULTILINE)) == 60
    assert re.search(r"^    spectrum  x / µm  y / µm  line ", every, re.MULTILINE)
    assert re.search(r"^    1 +0 +0 +E2g +– +– +– +–$", every, re.MULTILINE)


@pytest.mark.parametrize(
    ("option", "name", "words"),
    [
        ("--table", "peaks.xlsx", ".csv, .parquet"),
        ("--report", "page.pdf", ".html"),
        ("--table", "no/such/folder.csv", "No such file"),
    ],
)
def test_what_cannot_be_written_is_one_line(
    mine: Path, tmp_path: Path, option: str, name: str, words: str
) -> None:
    said = say("analyse", "--json", option, tmp_path / name, mine)
    assert said.code == 64
    assert said.err.count("\n") == 1
    assert words in said.err


def test_no_output_goes_over_a_file_that_is_read_or_is_no_report(
    tmp_path: Path, mine: Path
) -> None:
    raw = mine.rename(tmp_path / "raw.csv")
    before = raw.read_bytes()
    say("analyse", "--table", raw, raw).is_one_plain_error("raw.csv is the file that is read")
    light = written(tmp_path / "pl.csv", film(SUBSTRATE))
    say("analyse", "--table", light, "--pl", light, raw).is_one_plain_error("pl.csv is the file")
    notes = tmp_path / "notes.html"
    notes.write_text("of last year", "utf-8")
    say("analyse", "--report", notes, raw).is_one_plain_error("notes.html is in the way")
    assert (raw.read_bytes(), notes.read_text("utf-8")) == (before, "of last year")


# ---- what a person asks of the lines


def test_a_window_is_fitted_in_place_of_the_materials_lines(tmp_path: Path) -> None:
    path = written(tmp_path / "odd.txt", film([*SUBSTRATE, (455.0, 8.0, 600.0)]))
    said = say("analyse", "--json", "--window", "430-480", path)
    (line,) = entry(said)["peaks"]
    assert line["line"] == "430-480"
    assert line["position_cm1"] == pytest.approx(455.0, abs=0.3)
    assert line["fwhm_cm1"] == pytest.approx(8.0, rel=0.1)


def test_windows_are_several_and_one_without_pixels_is_named(mine: Path) -> None:
    windows = ("--window", "360:435", "--window", "505–535", "--window", "2000-2100")
    found = entry(say("analyse", "--json", *windows, mine))
    assert [row["line"] for row in found["peaks"]] == ["E2g", "A1g", "Si"]
    assert any("no line is fitted in 2000-2100 cm⁻¹" in note for note in found["notes"])


@pytest.mark.parametrize("text", ["435-360", "400", "a-b", "360-", "1e3-2e3"])
def test_a_window_that_is_none_is_refused(mine: Path, text: str) -> None:
    say("analyse", "--window", text, mine).is_one_plain_error("not a window", "360-435")


def test_the_material_is_taken_at_a_persons_word_and_the_word_is_noted(mine: Path) -> None:
    found = entry(say("analyse", "--json", "--material", "WS2", mine))
    assert [row["line"] for row in found["peaks"]] == ["2LA(M) + E2g", "A1g", "Si"]
    assert "the lines are those of WS2, as asked; it shows MoS2" in found["notes"]
    assert found["material"] == "MoS2"  # what it shows does not change by what it is called


def test_a_material_without_lines_here_is_told_with_those_that_have(mine: Path) -> None:
    said = say("analyse", "--material", "MoS", mine)
    said.is_one_plain_error("'MoS'", "did you mean MoS2?", "WS2")


def test_a_smooth_baseline_changes_the_lines_and_not_the_count(mine: Path) -> None:
    one, other = (
        entry(say("analyse", "--json", "--baseline", name, mine)) for name in ("straight", "arpls")
    )
    assert one["posterior"] == other["posterior"]
    areas = [each["peaks"][1]["area_counts_cm1"] for each in (one, other)]
    assert areas[0] != areas[1]
    assert areas[0] == pytest.approx(areas[1], rel=0.1)
    said = say("analyse", "--baseline", "arpls", mine)
    assert "± one sigma, background by arpls:" in said.out


# ---- photoluminescence


def exciton(path: Path, axis_of: str, height: float = 3000.0) -> Path:
    """Write a band at 662 nm, 20 nm wide, with its B exciton, against nm, eV or a shift."""
    nm = np.linspace(560.0, 760.0, 800)
    counts = 200 + height / (1 + ((nm - 662) / 10) ** 2) + 500 / (1 + ((nm - 615) / 14) ** 2)
    counts = np.random.default_rng(4).poisson(counts).astype(np.float64)
    axis = {"nm": nm, "eV": 1239.842 / nm, "shift": 1e7 / 532 - 1e7 / nm}[axis_of]
    return written(path, counts, axis)


@pytest.mark.parametrize("axis", ["nm", "eV", "shift"])
def test_photoluminescence_is_measured_whatever_its_axis(
    tmp_path: Path, mine: Path, axis: str
) -> None:
    light = exciton(tmp_path / "pl.txt", axis)
    found = entry(say("analyse", "--json", "--laser-nm", "532", "--pl", light, mine))
    (band,) = found["photoluminescence"]
    assert band["position_nm"] == pytest.approx(662.0, abs=0.2)
    assert band["energy_ev"] == pytest.approx(1.8729, abs=0.001)
    assert band["fwhm_nm"] == pytest.approx(20.0, rel=0.05)
    assert band["height_counts"] == pytest.approx(3000.0, rel=0.05)


def test_photoluminescence_is_told_and_weighs_nothing(tmp_path: Path, mine: Path) -> None:
    light = exciton(tmp_path / "pl.txt", "nm")
    said = say("analyse", "--pl", light, mine)
    assert "  photoluminescence at 66" in said.out
    assert "times as high as A1g, if both were taken alike; no evidence of layers" in said.out
    with_it, without = (entry(say("analyse", "--json", *pl, mine)) for pl in (("--pl", light), ()))
    assert with_it["posterior"] == without["posterior"]


def test_photoluminescence_that_is_not_there_is_said(tmp_path: Path, mine: Path) -> None:
    flat = np.random.default_rng(4).poisson(np.full(800, 200.0)).astype(np.float64)
    light = written(tmp_path / "pl.txt", flat, np.linspace(560.0, 760.0, 800))
    assert "photoluminescence: no band stands out" in say("analyse", "--pl", light, mine).out


def test_photoluminescence_needs_one_film_its_laser_and_a_file(tmp_path: Path, mine: Path) -> None:
    light = exciton(tmp_path / "pl.txt", "shift")
    say("analyse", "--pl", light, mine, mine).is_one_plain_error("--pl takes one FILE")
    say("analyse", "--pl", light, mine).is_one_plain_error("pl.txt", "names the laser")
    say("analyse", "--pl", tmp_path / "no.txt", mine).is_one_plain_error("no.txt: No such file")


# ---- pictures and the page


def texts(path: Path) -> str:
    return " ".join(part.text or "" for part in ElementTree.parse(path).iter())


def test_a_picture_shows_each_line_with_its_fit_residuals_and_axes(mine: Path) -> None:
    assert say("analyse", "--plot", mine).err == f"drawn: {mine}.svg\n"
    said = texts(Path(f"{mine}.svg"))
    assert said.count("residual, σ") == 2  # the film's lines, and silicon's
    assert said.count("Raman shift, cm⁻¹") == 3
    for words in (
        "mine.txt",
        "1 layer, confidence",
        "E2g 384",
        "A1g 403",
        "Si 520.70",
        "intensity, unit of the file",
    ):
        assert words in said, words
    drawn = Path(f"{mine}.svg").read_text("utf-8")
    assert drawn.count('class="fitted"') == 4  # each curve, and its mark in the legend
    for words in ("measured", "fit", "background"):
        assert drawn.count(f">{words}</text>") == 2, words
    assert "svg .fitted{" in drawn  # a file of its own brings its style


def test_a_map_is_drawn_as_position_width_ratio_and_class(grid: Path) -> None:
    said = say("analyse", "--plot", grid)
    assert said.err == f"drawn: {grid}.svg\ndrawn: {grid}.map.svg\n"
    path = Path(f"{grid}.map.svg")
    for words in (
        "most likely layers at each place",
        "E2g position, cm⁻¹",
        "A1g width, cm⁻¹",
        "A1g − E2g, cm⁻¹",
        "height A1g / E2g",
        "x, µm",
        "y, µm",
        "silicon: 1",
    ):
        assert words in texts(path), words
    assert path.read_text("utf-8").count("data:image/png;base64,") == 9


def test_a_map_gives_no_place_a_count_that_the_answer_does_not_claim(tmp_path: Path) -> None:
    spectra = {
        (float(x), float(y)): film(BILAYER, 8 * y + x)  # a strained monolayer, or two
        for y, x in np.ndindex(4, 4)
    }
    path = written_map(tmp_path / "map.txt", spectra)
    said = say("analyse", "--plot", path)
    assert "layers undetermined" in said.out
    drawn = texts(Path(f"{path}.map.svg"))
    assert "what each spectrum shows" in drawn
    assert "MoS2: 16" in drawn
    assert re.search(r"\d layers?: ", drawn) is None


def test_the_page_needs_nothing_from_outside(tmp_path: Path, mine: Path, grid: Path) -> None:
    target = tmp_path / "report.html"
    said = say("analyse", "--report", target, mine, grid, tmp_path / "none.txt")
    assert said.err.endswith(f"written: {target}, 2 of 3 files\n")
    page = target.read_text("utf-8")
    read = parsed(page)
    assert not {"script", "link", "iframe", "img", "object"} & set(read.tags)
    reaches = [
        value
        for name, value in read.attributes
        if name in ("href", "src") and not value.startswith("data:image/png;base64,")
    ]
    assert reaches == []
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    assert ("content", policy) in read.attributes
    assert "url(" not in page
    told = " ".join(read.texts)
    for words in ("mine.txt", "map.txt", "none.txt: No such file", "Lines", "谱峰", "A1g position"):
        assert words in told, words


def test_a_report_is_written_again_over_its_like(tmp_path: Path, mine: Path) -> None:
    target = tmp_path / "report.html"
    for _ in range(2):
        assert say("analyse", "--report", target, mine).err == f"written: {target}\n"


# ---- names and headers that mean harm


@names_any_file
@pytest.mark.parametrize(
    "name", ["a\x1b[2Jb", "a\x9b2Jb", "a\nb: MoS2; 1 layer", "a\u202eb", "a\x7fb"]
)
def test_the_name_of_a_file_steers_no_terminal_and_breaks_no_output(
    tmp_path: Path, name: str
) -> None:
    path = written(tmp_path / f'{name}<b>&".txt', film(MONOLAYER))
    table, page = tmp_path / "t.csv", tmp_path / "r.html"
    for options in ((), ("--json",), ("--peaks",)):
        said = say("analyse", "--plot", "--table", table, "--report", page, *options, path)
        assert not STEERS.search(said.out.replace("\n", "")), options
        assert not STEERS.search(said.err.replace("\n", "")), options
        assert "b: MoS2; 1 layer" not in said.out.splitlines()
    assert entry(say("analyse", "--json", path))["file"] == str(path)
    assert not STEERS.search(table.read_text("utf-8").replace("\n", ""))
    assert len(rows_of(table)) == 3
    assert not STEERS.search(page.read_text("utf-8").replace("\n", ""))
    assert "b" not in parsed(page.read_text("utf-8")).tags
    ElementTree.parse(f"{path}.svg")


def test_an_error_about_a_hostile_file_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "what.txt"
    path.write_text("#X\t\t#\x1b[2JWave\t\t#\x9bIntensity\n1\t2\t3\n", "utf-8")
    said = say("analyse", path)
    assert said.code == 64
    assert said.err.count("\n") == 1
    assert not STEERS.search(said.err.replace("\n", ""))


def test_a_series_at_one_place_is_drawn_by_the_number_of_the_spectrum(tmp_path: Path) -> None:
    place = "0.000\t0.000"
    rows = [
        f"{place}\t{shift:.4f}\t{counts:.6g}"
        for seed in range(3)
        for shift, counts in zip(AXIS, film(MONOLAYER, seed), strict=True)
    ]
    path = tmp_path / "series.txt"
    path.write_text("\n".join(["#X\t\t#Y\t\t#Wave\t\t#Intensity", *rows]) + "\n", "utf-8")
    assert "3 spectra" in say("analyse", "--plot", path).out
    said = texts(Path(f"{path}.map.svg"))
    assert "spectrum" in said.split()
    assert "x, µm" not in said


def test_a_dead_spectrum_of_a_map_has_rows_without_numbers(tmp_path: Path) -> None:
    spectra = {(0.5 * x, 0.5 * y): film(MONOLAYER, x + 3 * y) for y in range(3) for x in range(3)}
    spectra[0.5, 0.5] = np.zeros_like(AXIS)
    path = written_map(tmp_path / "map.txt", spectra)
    target = tmp_path / "t.csv"
    assert say("analyse", "--plot", "--table", target, path).err.count("\n") == 3
    rows = rows_of(target)
    assert len(rows) == 27
    dead = [row for row in rows if row["spectrum"] == "5"]
    assert {row["material"] for row in dead} == {"not judged"}
    assert {(row["stands_out"], row["height_counts"]) for row in dead} == {("false", "")}
    assert "not judged: 1" in texts(Path(f"{path}.map.svg"))


def test_of_an_unknown_material_silicon_is_measured_and_no_name_made_up(tmp_path: Path) -> None:
    path = written(tmp_path / "odd.txt", film([(455.0, 40.0, 300.0)]))
    said = say("analyse", path).out
    assert said.startswith(f"{path}: unknown; no layer count")
    assert "lines of" not in said


# ---- over its own files alone, and what stands in a way is said at once

STRANGER = b"of last year, and the only copy\n"
OUTPUTS = [
    ("--table", "out.csv"),
    ("--table", "out.parquet"),
    ("--save", "out.csv"),
    ("--save", "out.nxs"),
    ("--save", "out.h5"),
    ("--report", "out.html"),
    ("--plot", "mine.txt.svg"),
]


def asked(option: str, target: Path) -> tuple[str | Path, ...]:
    return (option,) if option == "--plot" else (option, target)


@pytest.mark.promise(51)
@pytest.mark.parametrize(("option", "name"), OUTPUTS)
def test_a_file_of_somebody_else_is_not_written_over(
    tmp_path: Path, mine: Path, option: str, name: str
) -> None:
    target = tmp_path / name
    target.write_bytes(STRANGER)
    said = say("analyse", *asked(option, target), mine)
    said.is_one_plain_error(f"{target} is in the way", option, "--overwrite")
    assert target.read_bytes() == STRANGER
    assert say("analyse", *asked(option, target), "--overwrite", mine).code == 0
    assert target.read_bytes() != STRANGER


@pytest.mark.parametrize(("option", "name"), OUTPUTS)
def test_what_it_wrote_itself_is_written_again(
    tmp_path: Path, mine: Path, option: str, name: str
) -> None:
    target = tmp_path / name
    for _ in range(2):
        assert say("analyse", *asked(option, target), mine).code == 0
    target.write_bytes(b"")  # as mktemp leaves it
    assert say("analyse", *asked(option, target), mine).code == 0
    assert target.stat().st_size > 0


@pytest.mark.promise(51)
def test_a_page_or_a_table_that_another_program_wrote_is_somebody_elses(
    tmp_path: Path, mine: Path
) -> None:
    page, table = tmp_path / "page.html", tmp_path / "table.csv"
    page.write_text("<!doctype html><title>my thesis</title>", "utf-8")
    table.write_text("file,spectrum,peak\n1,2,3\n", "utf-8")
    say("analyse", "--report", page, mine).is_one_plain_error("page.html is in the way")
    say("analyse", "--table", table, mine).is_one_plain_error("table.csv is in the way")


@pytest.mark.promise(51)
def test_a_map_of_somebody_else_is_not_drawn_over(tmp_path: Path, mine: Path) -> None:
    both = written(tmp_path / "both.csv", film(MONOLAYER))
    rows = both.read_text("utf-8").splitlines()
    both.write_text("\n".join(f"{row}\t{row.split()[1]}" for row in rows), "utf-8")
    other = Path(f"{both}.map.svg")
    other.write_bytes(STRANGER)
    said = say("analyse", "--plot", both)
    assert (said.code, other.read_bytes()) == (64, STRANGER)
    assert "both.csv.map.svg is in the way" in said.err


def test_two_outputs_of_one_name_are_refused(tmp_path: Path, mine: Path) -> None:
    target = tmp_path / "one.csv"
    said = say("analyse", "--table", target, "--save", f"{tmp_path}/./one.csv", mine)
    said.is_one_plain_error("one.csv is named twice")
    assert not target.exists()


def test_all_that_is_not_installed_is_named_at_once(
    tmp_path: Path, mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "h5py", None)
    outputs = ("--table", tmp_path / "t.parquet", "--save", tmp_path / "s.nxs")
    said = say("analyse", *outputs, mine)
    said.is_one_plain_error(
        "writing Parquet needs pyarrow and writing HDF5 needs h5py: "
        "pip install 'labharness[formats]'"
    )
    stored = tmp_path / "stored.h5"
    stored.write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(64))
    said = say("analyse", "--table", tmp_path / "t.parquet", mine, stored)
    said.is_one_plain_error("reading HDF5 needs h5py", "writing Parquet needs pyarrow")


@pytest.mark.parametrize("laser", [("--laser-nm", "532"), ()])
def test_a_raman_file_given_as_photoluminescence_is_told_to_be_one(
    tmp_path: Path, mine: Path, laser: tuple[str, ...]
) -> None:
    other = written(tmp_path / "other.txt", film(SUBSTRATE))
    said = say("analyse", *laser, "--pl", other, mine)
    said.is_one_plain_error("other.txt", "that is a Raman spectrum")


def test_a_wide_raman_spectrum_given_as_photoluminescence_is_told_by_silicon(
    tmp_path: Path, mine: Path
) -> None:
    axis = np.arange(100.0, 3000.0, 1.0)
    rng = np.random.default_rng(1)
    silicon = 20_000 / (1 + ((axis - 520.7) / 1.8) ** 2)
    other = written(tmp_path / "other.txt", rng.poisson(400 + silicon).astype(float), axis)
    said = say("analyse", "--laser-nm", "532", "--pl", other, mine)
    said.is_one_plain_error("other.txt", "silicon's at 520.7 cm⁻¹: that is a Raman spectrum")
