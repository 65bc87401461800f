"""Every line is found and explained, or told; no name stands beside a higher line of another."""

import re
from collections import Counter

import numpy as np
import pytest

from drawn_spectra import MATERIALS, MOS2, SILICON, WS2, Lines, draw, recording
from labharness.analysis.analysed import Wanted, analysed
from labharness.analysis.assess import FILM_ROWS, Assessment, assess
from labharness.analysis.formats import read_spectra
from labharness.analysis.material import OpenLine
from labharness.analysis.photoluminescence import pl_bands
from rig import RAMAN
from strange_spectra import KINDS, films, strangers

GRATING = np.arange(120.0, 1000.0, 0.6)
WHOLE = np.arange(100.0, 3300.0, 1.3)


def shown(name: str) -> Assessment:
    return assess(read_spectra((RAMAN / name).read_bytes()))


def near(lines: tuple[OpenLine, ...], place_cm1: float) -> bool:
    return any(abs(each.position_cm1 - place_cm1) < 5 for each in lines)


# ---- what is in no table


@pytest.mark.promise(50)
@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("cases/ps.txt", (620, 1001, 1031, 1602, 3054)),
        ("cases/naphthalene.txt", (513, 763, 1021, 1382, 1577, 3056)),
        ("cases/r6g.txt", (612, 773, 1183, 1311, 1362, 1508, 1650)),
        ("cases/acn.txt", (379, 918, 1374, 2253, 2941)),
        ("ramanchada2_mit/PST10_iR532_Probe_100_3000msx7.txt", (621, 1000, 1031, 1602)),
        ("ramanchada2_mit/PST10_iR785_OP03_8000msx2.txt", (626, 1006, 1036, 1607)),
    ],
)
def test_an_unknown_substance_gets_its_lines_and_no_name(
    name: str, lines: tuple[float, ...]
) -> None:
    found = shown(name)
    assert found.material == "unknown"
    assert found.probability == 0
    assert found.silicon == (None,)
    assert found.offset_cm1 == 0
    for place in lines:
        assert near(found.open_lines, place), place
    assert any("nothing here explains" in str(note) for note in found.notes)


@pytest.mark.promise(50)
@pytest.mark.parametrize(
    ("lines", "axis"),
    [
        (((521.0, 8.5, 2000.0),), (450.0, 1150.0, 1.2)),  # coesite: silicon by its place alone
        (((420.0, 8.0, 900.0), (580.0, 9.0, 450.0)), (300.0, 700.0, 1.1)),  # sapphire without 645
        (((417.0, 8.0, 500.0), (748.0, 8.0, 2000.0)), (140.0, 900.0, 1.2)),  # 751 above 418
        (((350.0, 9.0, 3000.0), (420.0, 11.0, 300.0)), (140.0, 900.0, 1.2)),  # WS2 but for A1g
        (((250.0, 7.0, 3000.0), (371.0, 7.0, 700.0)), (140.0, 900.0, 1.2)),  # WSe2 but for 373
        (((495.0, 14.0, 4000.0), (611.0, 14.0, 500.0)), (140.0, 900.0, 1.2)),  # silica but for D2
    ],
)
def test_lines_in_the_places_of_a_material_need_its_heights_and_widths_too(
    lines: Lines, axis: tuple[float, float, float]
) -> None:
    row = draw(np.arange(*axis), lines, np.random.default_rng(1))
    assert assess(recording(np.arange(*axis), row)).material == "unknown"


@pytest.mark.promise(50)
@pytest.mark.parametrize("seed", [1, pytest.param(42, marks=pytest.mark.thorough)])
def test_no_spectrum_of_what_is_in_no_table_gets_a_name(seed: int) -> None:
    assert len(KINDS) >= 40
    drawn = list(strangers(3, seed))
    named = Counter(
        (each.what, found)
        for each in drawn
        if (found := assess(each.recording).material) != each.name
    )
    assert len(drawn) > 250
    assert not named


def test_what_a_table_holds_gets_its_name_on_nearly_any_instrument() -> None:
    drawn = list(films(4, 5))
    wrong = [each.what for each in drawn if assess(each.recording).material != each.name]
    assert len(wrong) <= 0.05 * len(drawn), wrong


@pytest.mark.promise(50)
@pytest.mark.parametrize("fwhm_cm1", [50.0, 70.0])
@pytest.mark.parametrize("over_g", [0.71, 0.75])
def test_graphite_is_not_called_graphene_where_an_instrument_shows_its_2d_higher(
    fwhm_cm1: float, over_g: float
) -> None:
    axis = np.arange(1150.0, 3000.0, 1.4)
    two_d = (2705.0, fwhm_cm1, 2000.0 * over_g)
    lines = ((1350.0, 45.0, 500.0), (1581.0, 18.0, 2000.0), two_d)
    row = draw(axis, lines, np.random.default_rng(1))
    assert assess(recording(axis, row)).material in ("graphite", "graphitic carbon")


@pytest.mark.promise(50)
@pytest.mark.parametrize(
    ("film", "other"),
    [
        ("MoS2 on glass", (447.0, 4.0, 9000.0)),
        ("graphene without D", (1001.0, 8.0, 9000.0)),
        ("hBN alone", (1436.0, 9.0, 800.0)),
        ("one layer of WSe2", (205.0, 6.0, 30_000.0)),
    ],
)
def test_a_higher_line_that_nothing_explains_takes_a_name(
    film: str, other: tuple[float, float, float]
) -> None:
    name, lines = MATERIALS[film]
    rng = np.random.default_rng(3)
    assert assess(recording(WHOLE, draw(WHOLE, lines, rng))).material == name
    found = assess(recording(WHOLE, draw(WHOLE, (*lines, other), rng)))
    if name == "MoS2":  # at 447 stands its own second order, but not so high
        assert found.material in ("unknown", "SiO2")
    else:
        assert found.material in ("unknown", "silicon")
    assert near(found.open_lines, other[0])


def test_the_lines_of_an_unknown_substance_are_measured_with_their_errors() -> None:
    recorded = read_spectra((RAMAN / "cases/ps.txt").read_bytes())
    found = analysed("ps.txt", recorded, Wanted(), rows=FILM_ROWS["unknown"])
    lines = {line.name: line for line in found.lines()}
    line = next(line for name, line in lines.items() if name.startswith("? 100"))
    assert line.position_cm1[0] == pytest.approx(1001.5, abs=0.3)
    assert line.fwhm_cm1[0] == pytest.approx(6, abs=0.5)
    assert "Si" not in lines


def test_anatase_on_polystyrene_is_no_carbon() -> None:
    both = [KINDS["anatase"][1], KINDS["polystyrene"][1]]
    lines = [(at, fwhm, 60 * height) for each in both for at, fwhm, height in each]
    found = assess(recording(WHOLE, draw(WHOLE, lines, np.random.default_rng(1))))
    assert found.material == "unknown"


# ---- the instrument and the air


def test_the_air_and_the_lamps_of_the_room_are_no_sample() -> None:
    lines = (*MATERIALS["graphene without D"][1], (2330.7, 5.0, 9000.0), (1556.0, 5.0, 400.0))
    lamp = 1e7 / 532 - 1e7 / 546.07
    found = assess(
        recording(WHOLE, draw(WHOLE, (*lines, (lamp, 3.0, 9000.0)), np.random.default_rng(1)))
    )
    assert found.material == "graphene"
    assert not found.open_lines


def test_narrow_lines_of_coarse_pixels_are_no_cosmic_rays() -> None:
    found = shown("cases/narrow_2px.txt")
    assert found.material == "MoS2"
    assert found.silicon[0] is not None


@pytest.mark.promise(50)
def test_a_cosmic_ray_does_not_take_the_name_where_no_silicon_shows_the_width() -> None:
    for seed, what in enumerate(("hBN alone", "graphene with D", "bulk MoTe2")):
        name, lines = MATERIALS[what]
        row = draw(WHOLE, lines, np.random.default_rng(seed))
        row[int(np.argmin(np.abs(WHOLE - (1150 if name != "MoTe2" else 310))))] += 30_000
        assert assess(recording(WHOLE, row)).material == name


# ---- what lies beside


@pytest.mark.promise(50)
def test_a_second_film_is_said_and_lowers_the_confidence_of_the_count() -> None:
    rng = np.random.default_rng(2)
    alone = assess(recording(GRATING, draw(GRATING, (*MOS2, *SILICON), rng)))
    both = assess(recording(GRATING, draw(GRATING, (*MOS2, *WS2, *SILICON), rng)))
    assert (alone.beside, both.beside) == ((), ("WS2",))
    assert any("WS2 is there too" in str(note) for note in both.notes)
    assert alone.verdict is not None
    assert both.verdict is not None
    assert both.verdict.confidence < 0.9 * alone.verdict.confidence
    assert not any("weak" in reason for reason in both.reasons)


@pytest.mark.promise(50)
def test_what_lies_on_silicon_without_a_name_is_told() -> None:
    lines = (*SILICON, *((at, fwhm, 40 * high) for at, fwhm, high in KINDS["black phosphorus"][1]))
    found = assess(recording(GRATING, draw(GRATING, lines, np.random.default_rng(2))))
    assert found.material == "silicon"
    for place in (362, 439, 467):
        assert near(found.open_lines, place)
    assert any("beside silicon stand lines" in str(note) for note in found.notes)


# ---- photoluminescence


@pytest.mark.parametrize("unit", ["nm", "eV"])
@pytest.mark.parametrize("head", ["", "#Laser=\t532\n", "{stated}"])
def test_a_map_of_photoluminescence_in_nm_or_ev_is_read_as_such(unit: str, head: str) -> None:
    rng = np.random.default_rng(1)
    nm = np.linspace(600, 740, 400)
    axis = nm if unit == "nm" else 1239.842 / nm
    stated = f"#AxisType[1]=\tSpectr\n#AxisUnit[1]=\t{unit}\n"
    rows = rng.poisson(200 + 3000 / (1 + ((nm - 668) / 9) ** 2), (6, nm.size))
    text = head.format(stated=stated) + "\t\t" + "\t".join(f"{x:.5f}" for x in axis) + "\n"
    text += "".join(
        f"{n % 3}\t{n // 3}\t" + "\t".join(map(str, r)) + "\n" for n, r in enumerate(rows)
    )
    bands = pl_bands(read_spectra(text.encode()), 532.0)
    assert len(bands) == 6
    for band in bands:
        assert band.stands_out
        assert band.position_nm == pytest.approx(668, abs=0.5)


# ---- what lowers the confidence


@pytest.mark.promise(50)
def test_lines_clipped_by_the_camera_are_not_counted() -> None:
    found = shown("cases/sat_EA.txt")
    assert found.material == "MoS2"
    assert found.verdict is None
    assert any("clipped" in reason for reason in found.reasons)


def test_smoothed_noise_is_told_and_lowers_the_confidence() -> None:
    row = draw(GRATING, (*MOS2, *SILICON), np.random.default_rng(2))
    smooth = np.convolve(np.pad(row, 2, mode="edge"), np.ones(5) / 5, "valid")
    sharp, found = assess(recording(GRATING, row)), assess(recording(GRATING, smooth))
    assert sharp.verdict is not None
    assert found.verdict is not None
    assert found.verdict.confidence < sharp.verdict.confidence
    told = " ".join(map(str, found.notes))
    factor = re.search(r"errors are taken (\S+) times as large", told)
    assert factor is not None
    assert float(factor[1]) == pytest.approx(5, rel=0.35)
    assert "smoothed" not in " ".join(map(str, sharp.notes))


def test_a_bad_fit_is_told_and_lowers_the_confidence() -> None:
    bright = [(at, fwhm, 10 * high) for at, fwhm, high in (*MOS2, *SILICON)]
    shoulders = [(377.0, 8.0, 3_000.0), (394.0, 8.0, 4_000.0), (415.0, 10.0, 4_000.0)]
    rng = np.random.default_rng(2)
    good = assess(recording(GRATING, draw(GRATING, bright, rng)))
    bad = assess(recording(GRATING, draw(GRATING, (*bright, *shoulders), rng)))
    assert "fit badly" in " ".join(map(str, bad.notes))
    assert "fit badly" not in " ".join(map(str, good.notes))
    assert good.verdict is not None
    assert bad.verdict is not None
    assert bad.verdict.confidence < good.verdict.confidence
