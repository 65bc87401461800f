"""``labharness analyse`` says what a spectrum shows, counts layers where it may, else why not."""

import sys
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import h5py
import numpy as np
import pytest

from commands import entry, say, spawn_on_full_disk
from labharness.analysis.formats import read_spectra
from labharness.analysis.spectrum import shift_from_wavelength
from labharness_simulators.plant.optics import LASER_NM, Spectrometer
from labharness_simulators.plant.sample import Sample
from labharness_simulators.plant.spectrum import Light, light_of
from rig import RAMAN

WITEC = RAMAN / "pynxtools_raman_apache2" / "Si-wafer-Raman-Spectrum-1.txt"


NO_SPECTRUM = (b"{}", b"{", b'{"raman": []}', b'{"raman": [{"raman_shift": 1}]}')


def light(sample: Sample, layers: int, exposure_s: float) -> Light:
    return light_of(sample, layers, 0.0, 0.0, 0.3, exposure_s)


def spectrum(layers: int, substrate: str = "SiO2/Si", exposure_s: float = 8.0, **about: Any) -> Any:
    """Return shift and counts of a film on an instrument with errors of its own."""
    sample = Sample("film", substrate, **about)
    spectrometer = Spectrometer(partial(light, sample, layers), Random(3))
    counts = np.array(spectrometer.exposure(exposure_s)) - spectrometer.BIAS_COUNTS
    return shift_from_wavelength(LASER_NM, spectrometer.wavelengths_nm()), counts


def written(folder: Path, shift: Any, counts: Any, head: str = "") -> Path:
    path = folder / "mine.txt"
    rows = "".join(f"{x:.4f}\t{y:.6g}\n" for x, y in zip(shift, counts, strict=True))
    path.write_text(head + rows, "utf-8")
    return path


def test_a_clean_monolayer_is_counted_with_its_posterior_and_evidence(tmp_path: Path) -> None:
    said = say("analyse", "--json", written(tmp_path, *spectrum(1)))
    found = entry(said)
    assert said.code == 0
    assert found["material"] == "MoS2"
    assert found["layer_count"] == 1
    assert found["credible_set"][0] == 1
    assert 0.75 < found["confidence"] < 0.95  # a separation alone never says more
    assert sum(found["posterior"].values()) == pytest.approx(1)
    assert [term["name"] for term in found["evidence"]] == ["A1g - E2g separation"]
    assert found["reasons"] == []
    assert any("A1g/Si is not used" in note for note in found["notes"])


def test_the_users_own_reference_is_evidence(tmp_path: Path) -> None:
    path = written(tmp_path, *spectrum(1))
    found = entry(say("analyse", "--json", "--film", "cvd", "--a1g-si", "0.12", path))
    assert found["layer_count"] == 1
    assert found["confidence"] > 0.85
    assert len(found["evidence"]) == 2


@pytest.mark.promise(48)
@pytest.mark.parametrize("film", ["unknown", "cvd", "exfoliated"])
@pytest.mark.parametrize("strain_percent", [-0.2, -0.3])
def test_three_layers_under_strain_beside_a_reference_are_not_called_two(
    tmp_path: Path, film: str, strain_percent: float
) -> None:
    path = written(tmp_path, *spectrum(3, strain_percent=strain_percent))
    found = entry(say("analyse", "--json", "--film", film, "--a1g-si", "0.12", path))
    assert found["layer_count"] in (3, None)
    assert 3 in found["credible_set"]


def test_a_bilayer_stays_undetermined_and_says_between_what(tmp_path: Path) -> None:
    said = say("analyse", written(tmp_path, *spectrum(2)))
    assert said.code == 1
    assert "undetermined, with 90 % one of 2, 3" in said.out
    assert "0.75 is needed" in said.out
    assert "probability of layers: 1: " in said.out


@pytest.mark.parametrize("scale", [1e-4, 0.37, 25.0])
@pytest.mark.parametrize("baseline", [0.0, "median"])
def test_the_scale_of_the_intensities_does_not_change_the_count(
    tmp_path: Path, scale: float, baseline: float | str
) -> None:
    shift, counts = spectrum(1)
    level = np.median(counts) if baseline == "median" else 0.0
    found = entry(say("analyse", "--json", written(tmp_path, shift, (counts - level) * scale)))
    assert found["layer_count"] == 1
    assert found["peak_distance_cm1"] == pytest.approx(19.7, abs=0.3)


def test_without_silicon_the_count_stands_and_the_axis_is_called_uncalibrated(
    tmp_path: Path,
) -> None:
    found = entry(say("analyse", "--json", written(tmp_path, *spectrum(1, "sapphire"))))
    assert found["layer_count"] == 1
    assert found["silicon"] == [None]
    assert any("no silicon line" in note for note in found["notes"])


@pytest.mark.parametrize(
    ("name", "material", "words"),
    [
        ("wrighttools_mit/wt_raman_linescan.txt.gz", "WS2", "it shows WS2"),
        ("raman_fitting_mit/testDW38C_pos1.txt", "disordered carbon", "neither graphene"),
        ("raman_fitting_mit/Si_spectrum01.txt", "silicon", "silicon and no film"),
        ("ramanchada2_mit/Si_HLR633_Z010_100_40sx5.txt", "silicon", "silicon and no film"),
        ("ramanchada2_mit/Sil10_iR532_Probe_100_60000msx2.txt", "silicon", "resolves 7.1"),
        ("pynxtools_raman_apache2/rod_file_1000679.rod", "unknown", "the laser has 488"),
        ("wrighttools_mit/wt_spectrum_wn.txt.gz", "unknown", "lines that no material"),
    ],
)
def test_a_real_file_gets_a_plain_reason_and_no_count(name: str, material: str, words: str) -> None:
    said = say("analyse", RAMAN / name)
    assert said.code == 1
    assert said.out.startswith(f"{RAMAN / name}: {material}; no layer count\n")
    assert words in said.out
    assert said.err == ""


@pytest.mark.parametrize(
    ("name", "position_cm1", "fwhm_cm1"),
    [
        ("raman_fitting_mit/Si_spectrum01.txt", 521.30, 7.4),
        ("ramanchada2_mit/Si_HLR633_Z010_100_40sx5.txt", 518.76, 3.59),
    ],
)
def test_silicon_of_a_real_file_lies_where_it_was_published(
    name: str, position_cm1: float, fwhm_cm1: float
) -> None:
    (silicon,) = entry(say("analyse", "--json", RAMAN / name))["silicon"]
    assert silicon["position_cm1"] == pytest.approx(position_cm1, abs=0.07)
    assert silicon["fwhm_cm1"] == pytest.approx(fwhm_cm1, abs=0.4)


def test_a_line_scan_finds_bare_substrate_at_both_ends() -> None:
    path = RAMAN / "wrighttools_mit" / "wt_raman_linescan.txt.gz"
    shown = np.array(entry(say("analyse", "--json", path))["materials"])
    y_um = read_spectra(path.read_bytes()).places["y_um"]
    assert set(shown[(y_um > 30.5) | (y_um < -24)]) == {"silicon"}
    assert set(shown[(y_um > -20) & (y_um < 28)]) == {"WS2"}


def test_a_miscalibrated_coarse_instrument_is_shifted_and_refused() -> None:
    found = entry(say("analyse", "--json", "--laser-nm", "532.1", WITEC))
    (silicon,) = found["silicon"]
    assert silicon["position_cm1"] == pytest.approx(527.6, abs=0.3)
    assert found["axis_moved_by_cm1"] == pytest.approx(-6.9, abs=0.3)
    reasons = " ".join(found["reasons"])
    assert "the instrument resolves" in reasons
    assert "the axis is not trusted" in reasons


@pytest.mark.parametrize(
    ("pixels", "options", "words"),
    [
        (6, (), "too coarse; at most 3"),
        (1, ("--laser-nm", 633), "633.0 nm; the table of layers holds for 500–550 nm"),
    ],
)
def test_mos2_on_coarse_pixels_or_under_a_red_laser_is_not_counted(
    tmp_path: Path, pixels: int, options: tuple[object, ...], words: str
) -> None:
    shift, counts = spectrum(1)
    said = say("analyse", *options, written(tmp_path, shift[::pixels], counts[::pixels]))
    assert said.code == 1
    assert words in said.out


def test_disorder_seen_in_the_la_line_alone_takes_the_count_away(tmp_path: Path) -> None:
    shift, counts = spectrum(1)
    bright = counts.max() / 12
    disordered = counts + bright / (1 + (2 * (shift - 227) / 16) ** 2)
    found = entry(say("analyse", "--json", written(tmp_path, shift, disordered)))
    assert any("disordered" in note for note in found["notes"])
    clean = entry(say("analyse", "--json", written(tmp_path, shift, counts)))
    assert found["posterior"]["1"] < clean["posterior"]["1"]
    assert not any("disordered" in note for note in clean["notes"])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "No such file"),
        (b"", "empty"),
        (b"dear diary\n", "no line holds two numbers"),
        (b"1,2\n2,3\n", "at least"),
        (b"".join(b"%d,5\n" % n for n in range(100)), "no noise"),
        *((each, "not the raw_spectrum.json of a run") for each in NO_SPECTRUM),
    ],
)
def test_an_unreadable_file_gets_one_plain_line(
    tmp_path: Path, content: bytes | None, words: str
) -> None:
    path = tmp_path / "what.txt"
    if content is not None:
        path.write_bytes(content)
    say("analyse", path).is_one_plain_error("labharness analyse:", "what.txt", words)


def test_a_wavelength_without_a_laser_asks_for_one() -> None:
    say("analyse", WITEC).is_one_plain_error("--laser-nm")


def test_of_many_files_each_is_judged_and_the_worst_gives_the_exit_code(tmp_path: Path) -> None:
    good = written(tmp_path, *spectrum(1))
    bare = RAMAN / "raman_fitting_mit" / "Si_spectrum01.txt"
    assert say("analyse", good, good).code == 0
    assert say("analyse", bare, good).code == 1
    said = say("analyse", tmp_path / "none.txt", good, bare)
    assert said.code == 64
    assert "MoS2; 1 layer" in said.out
    assert "silicon; no layer count" in said.out
    assert say("analyse", "--json", good, bare).out.count('"file"') == 2


@pytest.mark.parametrize("ending", [".csv", ".nxs", ".h5"])
def test_spectra_are_saved_in_an_open_format(tmp_path: Path, ending: str) -> None:
    shift, counts = spectrum(1)
    target = tmp_path / f"out{ending}"
    said = say("analyse", "--save", target, written(tmp_path, shift, counts))
    assert said.code == 0
    assert said.err == f"written: {target}\n"
    if ending == ".csv":
        assert read_spectra(target.read_bytes()).intensity[0] == pytest.approx(counts)
    else:
        with h5py.File(target) as file:
            assert file["entry/definition"].asstr()[()] == "NXraman"
            assert file["entry/data/intensity"][0] == pytest.approx(counts)


def test_what_cannot_be_saved_is_said_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, *spectrum(1))
    say("analyse", "--save", "out.png", path).is_one_plain_error(".csv, .nxs, .h5")
    say("analyse", "--save", "out.csv", path, path).is_one_plain_error("one FILE")
    say("analyse", "--save", tmp_path / "no" / "out.csv", path).is_one_plain_error("No such file")
    raw = tmp_path / "raw.csv"
    raw.write_bytes(path.read_bytes())
    say("analyse", "--save", raw, raw).is_one_plain_error("raw.csv is the file that is read")
    assert raw.read_bytes() == path.read_bytes()
    monkeypatch.setitem(sys.modules, "h5py", None)
    say("analyse", "--save", tmp_path / "o.nxs", path).is_one_plain_error("labharness[formats]")


@pytest.mark.skipif(sys.platform == "win32", reason="file size limits are Unix's")
def test_a_full_disk_leaves_what_was_saved_before(tmp_path: Path) -> None:
    path, target = written(tmp_path, *spectrum(1)), tmp_path / "out.csv"
    target.write_text("# read_from=last week\n", "utf-8")
    said = spawn_on_full_disk(5_000, "analyse", path, "--save", target)
    said.is_one_plain_error("out.csv: File too large")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["mine.txt", "out.csv"]
    assert target.read_text("utf-8") == "# read_from=last week\n"


@pytest.mark.parametrize("options", [("--laser-nm", "red"), ("--a1g-si", "-1"), ("--film", "ald")])
def test_a_wrong_option_is_refused(options: tuple[str, str]) -> None:
    say("analyse", *options, WITEC).is_one_plain_error("see labharness analyse --help")


def test_an_axis_of_wavelengths_without_heading_is_named_and_converted_with_the_laser(
    tmp_path: Path,
) -> None:
    shift, counts = spectrum(1)
    path = written(tmp_path, 1e7 / (1e7 / LASER_NM - shift), counts)
    said = say("analyse", path)
    assert said.code == 1
    assert "no layer count: the axis looks like wavelengths in nm: 535" in said.out
    named = entry(say("analyse", "--json", path, "--laser-nm", LASER_NM))
    assert named["layer_count"] == 1
    assert any("was converted with that laser" in note for note in named["notes"])


def test_a_narrow_window_of_shifts_is_not_taken_for_wavelengths(tmp_path: Path) -> None:
    """The line of silicon between 480 and 560 cm⁻¹, in pixels as fine as a grating's."""
    shift = np.linspace(480.0, 560.0, 800)
    counts = 100.0 + 5000.0 / (1.0 + ((shift - 520.7) / 2.0) ** 2)
    counts += np.random.default_rng(1).normal(0.0, 5.0, shift.size)
    said = say("analyse", written(tmp_path, shift, counts), "--laser-nm", LASER_NM)
    assert "wavelengths" not in said.out
    assert "480–560 cm⁻¹" in said.out
