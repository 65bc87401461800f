"""Two runs on one page: the pictures of both over each other, and what differs."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from commands import say
from hostile import HOSTILE, grown, hostile_journal
from labharness.faces.report.both_runs import both_runs
from labharness.faces.report.facts import RunFacts
from labharness.faces.report.markup import COLOURS
from labharness.faces.report.reading import read_run
from labharness.work.desk.folder import JOURNAL_NAME
from markup import parsed

NAMES = ("runs/first", "runs/hotter")


TOO_HOT = {"temperature_range": {"min": 1200, "max": 1250, "unit": "celsius"}}


def made(factory: pytest.TempPathFactory, **payload: Any) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LABHARNESS_STATE", str(factory.mktemp("state")))
        return grown(factory.mktemp("runs") / "one", **payload)


@pytest.fixture(scope="module")
def rejected(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory, inputs=TOO_HOT)


@pytest.fixture(scope="module")
def completed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole growth: what takes it is thorough."""
    return made(tmp_path_factory)


@pytest.fixture(scope="module")
def first(completed: Path) -> RunFacts:
    return read_run(completed / JOURNAL_NAME)


def hotter(run: RunFacts) -> RunFacts:
    """Return the run again, 500 degC hotter, and with half the exposure for the same counts."""
    name = "furnace.temperature"
    points = tuple((at_s, value + 500.0) for at_s, value in run.traces[name])
    raman = [{**each, "exposure_s": each["exposure_s"] / 2} for each in run.spectra["raman"]]
    spectra = {**run.spectra, "raman": raman}
    return replace(run, traces={**run.traces, name: points}, spectra=spectra)


def figure(html: str, name: str) -> str:
    """Return the figure whose caption has a name."""
    found: list[str] = [
        each
        for each in re.findall(r"<figure>.*?</figure>", html, re.DOTALL)
        if name in each.partition("</figcaption>")[0]
    ]
    assert len(found) == 1, name
    return found[0]


def lowest_point(drawing: str, colour: str) -> tuple[float, float]:
    """Return the lowest and the highest place (in px from the top) of the curves of a colour."""
    curves = re.findall(rf'points="([^"]*)"[^>]*stroke="{colour}" class="trace', drawing)
    assert curves, f"nothing in {colour}"
    places = [float(pair.partition(",")[2]) for each in curves for pair in each.split()]
    return min(places), max(places)


@pytest.mark.thorough
def test_both_runs_are_drawn_into_one_chart_each_in_its_colour(first: RunFacts) -> None:
    html = both_runs(first, hotter(first), NAMES)
    drawing = figure(html, "furnace.temperature")
    here, there = (lowest_point(drawing, each)[0] for each in COLOURS[:2])
    assert there < here - 20, "the hotter one lies above the other"
    assert len(re.findall(r'class="set', drawing)) >= 2, "both setpoints are drawn"
    assert len(set(re.findall(r'viewBox="([^"]*)"', drawing))) == 1
    for name in ("argon.flow", "gauge.pressure"):
        assert all(colour in figure(html, name) for colour in COLOURS[:2])


@pytest.mark.thorough
def test_spectra_lie_over_each_other_in_counts_a_second(first: RunFacts) -> None:
    html = both_runs(first, hotter(first), NAMES)
    drawing = figure(html, "Lines of the film")
    assert "counts per second" in drawing
    here, there = (lowest_point(drawing, each)[0] for each in COLOURS[:2])
    assert there < here - 20, "the same counts in half the time are twice as many a second"
    assert all(colour in figure(html, "Photoluminescence") for colour in COLOURS[:2])
    assert html.count('<b><span class="en" lang="en">Map of the layer count') == 2


@pytest.mark.thorough
def test_the_page_is_balanced_in_both_languages_and_loads_nothing(first: RunFacts) -> None:
    html = both_runs(first, hotter(first), NAMES, "zh")
    reader = parsed(html)
    assert '<html lang="zh">' in html
    assert {"script", "img", "link"}.isdisjoint(reader.tags)
    assert not any(value.startswith("http") for _, value in reader.attributes)
    said = "".join(reader.texts)
    for words in ("What differs", "差异", "furnace.temperature，最高", "1: runs/first"):
        assert words in said


@pytest.mark.thorough
def test_a_run_without_a_film_is_drawn_beside_one_that_has_one(
    first: RunFacts, rejected: Path
) -> None:
    html = both_runs(first, read_run(rejected / JOURNAL_NAME), NAMES)
    parsed(html)
    assert "This run has no film to show." in html
    assert "Nothing differs." in both_runs(first, first, NAMES)


def test_hostile_words_of_a_run_stay_words(rejected: Path, tmp_path: Path) -> None:
    hostile = read_run(hostile_journal(tmp_path))
    other = read_run(rejected / JOURNAL_NAME)
    reader = parsed(both_runs(hostile, other, (HOSTILE, HOSTILE)))
    assert {"script", "img"}.isdisjoint(reader.tags)
    assert not any(name.startswith("on") for name, _ in reader.attributes)


@pytest.mark.thorough
def test_where_the_line_tripped_is_marked_with_the_number_of_the_run(first: RunFacts) -> None:
    trip = replace(first.happenings[0], kind="trip", text="over_temperature: x", at_s=900.0)
    html = both_runs(first, replace(first, happenings=(*first.happenings, trip)), NAMES)
    assert re.search(r'class="trip">.*trip</tspan>.* 2</text>', figure(html, "argon.flow"))
    assert "Red line" in html
    assert "Red line" not in both_runs(first, first, NAMES)


@pytest.mark.thorough
def test_the_command_writes_the_page_and_says_what_differs(
    completed: Path, rejected: Path, tmp_path: Path
) -> None:
    out = tmp_path / "both.html"
    said = say("compare", completed, rejected, "--out", out, "--lang", "zh")
    assert said.code == 1, "they differ"
    assert "task_rejected" in said.out
    assert said.out.splitlines()[-1] == str(out)
    assert '<html lang="zh">' in out.read_text("utf-8")


def test_no_file_but_a_page_is_written_over(rejected: Path, tmp_path: Path) -> None:
    out, notes = tmp_path / "both.html", tmp_path / "notes.txt"
    for _ in range(2):  # its own page is written over
        said = say("compare", rejected, rejected, "--out", out)
        assert (said.code, said.out.splitlines()) == (0, ["no difference", str(out)])
    notes.write_text("mine", "utf-8")
    said = say("compare", rejected, rejected, "--out", notes)
    said.is_one_plain_error(f"{notes} is in the way: it is not a report")
    assert notes.read_text("utf-8") == "mine"
    said = say("compare", rejected, rejected, "--out", tmp_path / "nowhere" / "both.html")
    assert said.code == 64
    assert said.err.count("\n") == 1, "one plain line"
    assert say("compare", rejected, rejected, "--lang", "zh").out == "没有差别\n"


@pytest.mark.thorough
def test_a_file_that_changed_since_the_run_is_named(first: RunFacts) -> None:
    kept = replace(first.artifacts[0], holds=False)
    html = both_runs(first, replace(first, artifacts=(kept,)), NAMES)
    assert re.search(rf'class="alarm">{kept.name}: .*MISSING OR CHANGED', html)
