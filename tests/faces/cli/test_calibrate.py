"""``labharness calibrate`` measures a known monolayer, and writes it where the lab file has it."""

import json
from functools import partial
from pathlib import Path
from random import Random

import pytest

from commands import say
from labharness.analysis.spectrum import shift_from_wavelength
from labharness.faces.cli.calibrate import HOME, with_tables
from labharness.lab.config.lab_file import LabFile, parse
from labharness.work.capability.cvd.recipe import CvdSettings
from labharness_simulators.plant.optics import LASER_NM, Spectrometer
from labharness_simulators.plant.sample import Sample
from labharness_simulators.plant.spectrum import Light, light_of
from rig import SHORT_LINE

DARK, RAMAN_S, PL_S = 300.0, 8.0, 0.5
ON = 'monolayer "M7" on 90 nm SiO2/Si'


def shining(sample: Sample, layers: int, x_um: float, exposure_s: float) -> Light:
    return light_of(sample, layers, x_um, 0.0, 0.3, exposure_s)


def raw(folder: Path, layers: int, spots: int = 5, oxide: float = 2.0) -> Path:
    """Write a run's raw spectra of a film on an oxide that doubles A1g/silicon."""
    sample = Sample("known", "SiO2/Si", raman_factor=oxide, spot_seed=4)
    chance = Random(5)
    raman, glows = [], []
    for spot in range(spots):
        place = {"x_um": 60.0 * spot, "y_um": 0.0}
        camera = Spectrometer(partial(shining, sample, layers, place["x_um"]), chance)
        shift = shift_from_wavelength(LASER_NM, camera.wavelengths_nm()).tolist()
        counts = camera.exposure(RAMAN_S)
        raman.append({**place, "exposure_s": RAMAN_S, "raman_shift": shift, "counts": counts})
        camera.centre_nm = 665.0
        camera.advance_to(100.0)
        row = {"wavelength_nm": camera.wavelengths_nm(), "counts": camera.exposure(PL_S)}
        glows.append({**place, "exposure_s": PL_S, **row})
    axis = raman[0]["raman_shift"]
    for each in raman:
        each["raman_shift"] = axis
    path = folder / "raw_spectrum.json"
    whole = {"raman": raman, "photoluminescence": glows, "dark_counts": DARK, "laser_nm": 532.0}
    path.write_text(json.dumps(whole), "utf-8")
    return path


def test_a_known_monolayer_gives_both_tables_and_the_lab_file_takes_them(tmp_path: Path) -> None:
    lab = tmp_path / "lab.toml"
    lab.write_text(SHORT_LINE.read_text("utf-8"), "utf-8")
    name = str(raw(tmp_path, 1))
    said = say("calibrate", name, "--on", ON, "--date", "2026-03-01", "--write", str(lab))
    assert said.code == 0, said.err
    tables = parse(LabFile, lab.read_text("utf-8"), str(lab)).capability
    raman = CvdSettings.model_validate(tables["cvd-material-synthesis"])
    assert raman.a1g_si is not None
    assert raman.pl_raman is not None
    assert raman.a1g_si.value == pytest.approx(0.24, rel=0.2)
    assert 0.1 <= raman.a1g_si.uncertainty / raman.a1g_si.value < 0.2
    # one position of the grating shows the middle of the band: its foot counts as background
    assert raman.pl_raman.value == pytest.approx(0.7 * 20.0, rel=0.2)
    assert raman.a1g_si.on == ON
    assert raman.a1g_si.date.isoformat() == "2026-03-01"
    assert raman.reference()["a1g_si"]["date"] == "2026-03-01"


def test_what_it_prints_is_the_table_to_paste(tmp_path: Path) -> None:
    said = say("calibrate", str(raw(tmp_path, 1)), "--on", ON, "--date", "2026-03-01")
    assert said.code == 0, said.err
    assert f"[{HOME}.a1g_si]" in said.out
    text = f"[{HOME}]\nlaser_nm = 532.0\n" + said.out
    assert with_tables(text, said.out, ("a1g_si", "pl_raman")).count(f"[{HOME}.a1g_si]") == 1


def test_a_film_that_is_not_one_layer_calibrates_nothing(tmp_path: Path) -> None:
    said = say("calibrate", str(raw(tmp_path, 3)), "--on", ON)
    assert said.code == 1
    assert "not one layer everywhere" in said.err
    assert "Traceback" not in said.err


def test_two_spots_are_too_few_and_bare_silicon_is_no_film(tmp_path: Path) -> None:
    assert (
        "a calibration takes 3" in say("calibrate", str(raw(tmp_path, 1, spots=2)), "--on", ON).err
    )
    bare = say("calibrate", str(raw(tmp_path, 0)), "--on", ON)
    assert bare.code == 1
    assert "it shows silicon, and a calibration takes MoS2" in bare.err


def test_a_file_that_is_not_there_is_one_plain_line(tmp_path: Path) -> None:
    said = say("calibrate", str(tmp_path / "none.txt"), "--on", ON)
    assert (said.code, said.err.count("\n")) == (64, 1)


def test_tables_replace_those_of_before_and_a_bare_value_too() -> None:
    before = (
        f"[tube]\nvolume_cm3 = 1.0\n\n[{HOME}]\nlaser_nm = 532.0\na1g_si_monolayer = 0.1\n"
        f'source = "xf"\n\n[{HOME}.pl_raman]\nvalue = 3.0\n\n[plant]\nkind = "y"\n'
    )
    text = f"[{HOME}.a1g_si]\nvalue = 0.2\n"
    after = with_tables(before, text, ("a1g_si",))
    assert "a1g_si_monolayer" not in after
    assert "source" not in after
    assert after.count(f"[{HOME}.a1g_si]") == after.count(f"[{HOME}.pl_raman]") == 1
    assert after.index(f"[{HOME}]") < after.index(f"[{HOME}.a1g_si]") < after.index("[plant]")
    assert with_tables(after, text, ("a1g_si",)).count(f"[{HOME}.a1g_si]") == 1
    assert after.count("volume_cm3") == 1
