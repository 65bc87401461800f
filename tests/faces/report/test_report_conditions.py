"""What a reader of a report looks for first: date, lab, run, conditions, and the spectra used."""

import html
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import nan
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pytest

from commands import say
from labharness.faces.report.cvd.film import _spread
from labharness.faces.report.facts import RunFacts
from labharness.faces.report.markup import Frame, Scale, exact, number
from labharness.faces.report.page import conditions, page
from labharness.faces.report.reading import read_run
from labharness.faces.report.traces import curve_labels
from labharness.work.desk.folder import JOURNAL_NAME
from rig import EXAMPLE, SHORT_LINE

TAGS = re.compile(r"<[^>]*>")


def words(markup: str) -> str:
    return html.unescape(TAGS.sub(" ", markup))


def conditions_said(run: RunFacts) -> str:
    """Return the words of the section on the conditions."""
    return words(page(run).partition(">Conditions<")[2].partition("</section>")[0])


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunFacts]:
    folder = tmp_path_factory.mktemp("run") / "one"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LABHARNESS_STATE", str(tmp_path_factory.mktemp("state")))
        assert say("run", EXAMPLE, "--lab", SHORT_LINE, "--out", folder).code == 0
        yield read_run(folder / JOURNAL_NAME)


@pytest.mark.thorough
def test_date_lab_and_run_stand_above_everything(run: RunFacts) -> None:
    whole = page(run)
    said = words(whole.partition('class="masthead"')[2].partition("</p>")[0])
    assert str(run.about["at"])[:16].replace("T", " ") in said
    assert "Short line of the tests (short-line)" in said
    assert str(run.header["session_id"])[:8] in said
    assert whole.index('class="masthead"') < whole.index("<h1")


@pytest.mark.thorough
def test_the_growth_is_given_as_mean_and_standard_deviation(run: RunFacts) -> None:
    (phase,) = [each for each in run.phases if each.name == "material_growth"]
    trace = run.traces["furnace.temperature"]
    values = [value for at_s, value in trace if phase.start_s <= at_s <= phase.end_s]
    said = conditions_said(run)
    deviation = f"{stdev(values):#.2g}"
    digits = len(deviation.partition(".")[2])
    spread = f"{fmean(values):.{digits}f} ± {deviation}"
    assert f"furnace.temperature {spread} °C (n = {len(values)})" in said
    assert "hydrogen.flow" not in said, "none flowed: what is left is noise"


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ((50.0, 50.1), "50.050 ± 0.071"),
        ((726.0, 728.0), "727.0 ± 1.4"),
        ((700.0, 740.0), "720 ± 28"),
        ((400.0, 1000.0), "700 ± 424"),
        ((1.0, 1.0), "1 ± 0"),
    ],
)
def test_mean_and_deviation_end_at_one_digit(values: tuple[float, ...], said: str) -> None:
    assert _spread(values) == said


@pytest.mark.thorough
def test_leak_rate_and_purges_are_those_of_the_answer(run: RunFacts) -> None:
    said = conditions_said(run)
    measured = {
        name: value for row in run.results["growth_log"] for name, value in row["measured"].items()
    }
    leak = measured["gauge.pressure rise per minute"]
    assert f"{number(leak)} Torr/min" in said
    assert f"{number(measured['volumes purged of hydrogen'])} tube volumes against hydrogen" in said
    assert "<span" not in said


@pytest.mark.thorough
def test_laser_power_grating_and_exposures_are_named(run: RunFacts) -> None:
    said = conditions_said(run)
    exposures = [each["exposure_s"] for each in run.spectra["raman"]]
    assert f"{exact(run.spectra['laser_nm'])} nm" in said
    assert "laser.power 0.0003 W" in said
    assert "spectrometer.wavelength" in said
    assert f"{len(exposures)} × " in said
    assert "Objective" in said
    assert "not stated" in said
    told = {**run.header, "raman": {"objective": "100x, NA 0.9", "grating": "1800 /mm"}}
    said = conditions_said(replace(run, header=told))
    assert "100x, NA 0.9" in said
    assert "1800 /mm" in said
    assert "not stated" not in said


@pytest.mark.thorough
def test_the_spectra_that_the_evidence_leans_on_are_drawn(run: RunFacts) -> None:
    whole = page(run)
    assert "Silicon at the clearest spot" in whole
    assert "Photoluminescence at the same spot" in whole
    none = page(replace(run, spectra={**run.spectra, "photoluminescence": []}))
    assert "Silicon at the clearest spot" in none
    assert "Photoluminescence at the same spot" not in none


@pytest.mark.thorough
def test_a_run_that_measured_nothing_has_no_conditions(run: RunFacts) -> None:
    bare = replace(run, answer={}, spectra={}, phases=())
    assert conditions(bare) == []
    strange = replace(run, answer={"outputs": {"growth_log": [1]}}, spectra={}, phases=())
    assert conditions(strange) == []


def test_recorded_numbers_keep_all_their_digits() -> None:
    for value in (1013.25, 12345.678, 0.1, 1e-07, 2.5e300, 1 / 3, 250.0):
        assert float(exact(value)) == value
    assert [exact(each) for each in (1013.25, 250.0, 0.1)] == ["1013.25", "250", "0.1"]
    assert exact(nan) == "nan"


# ---- names of curves


def test_every_curve_is_named_once_beside_itself_and_not_over_another() -> None:
    frame = Frame(Scale(0.0, 100.0, 40.0, 900.0), Scale(0.0, 100.0, 220.0, 30.0))
    low = tuple((float(at), 10.0) for at in range(101))
    steep = tuple((float(at), float(at)) for at in range(101))
    late = tuple((float(at), nan if at < 50 else 80.0) for at in range(101))
    traces = {"a.flow": low, "b.flow": steep, "c.flow": late, "d.flow": ()}
    found = {name: (x, y) for name, x, y in curve_labels(frame, traces)}
    assert list(found) == ["a.flow", "b.flow", "c.flow"], "what was never measured has no name"
    assert found["a.flow"][1] == pytest.approx(frame.y(10.0) - 6.0)
    assert found["c.flow"][0] >= frame.x(50.0)
    (away,) = curve_labels(frame, {"a.flow": low}, [frame.y(10.0) - 10.0])
    assert away[2] == pytest.approx(frame.y(10.0) - 6.0), "a name stays beside its curve"
    bent = tuple((float(at), 10.0 if at < 40 else 80.0) for at in range(101))
    ((_, x, _),) = curve_labels(frame, {"a.flow": bent}, [frame.y(80.0) - 10.0])
    assert x < frame.x(40.0), "no name lies on the line of a limit"
    places = list(found.values())
    for index, (x, y) in enumerate(places):
        for a, b in places[index + 1 :]:
            assert abs(x - a) > 30.0 or abs(y - b) > 12.0


def test_the_lab_file_states_objective_and_grating(tmp_path: Path) -> None:
    from commands import edited_lab
    from labharness.lab import LabPlan, read_lab
    from labharness.lab.config.lab_facts import lab_facts_of
    from labharness.lab.wiring.runs import about_process

    def recorded(plan: LabPlan) -> Mapping[str, Any]:
        return lab_facts_of(plan).line_facts["cvd-material-synthesis"].settings.recorded()

    laser = "laser_nm = 532.0\n"
    plan = read_lab(edited_lab(tmp_path, laser, f'{laser}objective = "50x, NA 0.5"\n'))
    assert recorded(plan) == {"raman": {"objective": "50x, NA 0.5"}}
    assert recorded(read_lab(SHORT_LINE)) == {}
    assert about_process(plan)["lab"] == "Short line of the tests (short-line)"
