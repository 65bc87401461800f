"""The report of a run: what it shows, that nothing hostile gets in, and that it repeats."""

import lzma
import math
import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from commands import say
from hostile import HOSTILE, grown, hostile_journal
from labharness.core.texts import LANGUAGES
from labharness.core.vocabulary.texts import Text, in_language
from labharness.faces.cli import main
from labharness.faces.report.both_runs import both_runs, differences
from labharness.faces.report.facts import Points, RunFacts
from labharness.faces.report.markup import (
    COLOURS,
    Frame,
    Scale,
    thinned,
)
from labharness.faces.report.page import page
from labharness.faces.report.quantities import quantities
from labharness.faces.report.reading import read_run
from labharness.faces.report.traces import phase_labels
from labharness.faces.testing.faults import simulated_of
from labharness.journal import SqliteJournal
from labharness.lab import Lab
from labharness.work.desk.folder import JOURNAL_NAME
from markup import parsed
from rig import HERE

FORMAT_1 = HERE / "data" / "journals" / "format_1.sqlite.xz"


def hot(lab: Lab) -> None:
    """Let the furnace run away: 20 degC a second more than it is told."""
    simulated_of(lab).plant.faults.add_furnace_c_per_s = 20.0


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One run of each ending, each with a state directory of its own."""
    root = tmp_path_factory.mktemp("runs")
    too_hot = {"temperature_range": {"min": 1200, "max": 1250, "unit": "celsius"}}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LABHARNESS_STATE", str(tmp_path_factory.mktemp("state")))
        grown(root / "completed")
        grown(root / "rejected", inputs=too_hot)
        grown(root / "failed", hot)
    return root


@pytest.fixture(scope="module")
def facts(runs: Path) -> dict[str, RunFacts]:
    found = {each.name: read_run(each / JOURNAL_NAME) for each in runs.iterdir()}
    return {**found, "undetermined": undetermined(found["completed"])}


def undetermined(run: RunFacts) -> RunFacts:
    """Return a run the answer it has when its spectra leave doubt."""
    analysis = {
        **run.results["raman_analysis"],
        "layer_count": None,
        "confidence": 0.6,
        "credible_set": [1, 2],
        "reasons": ["the most likely count, 1, has a probability of 0.60; 0.75 is needed"],
        "best_spot": None,
    }
    answer = {
        "error_code": "execution_error",
        "error_message": "answer (analysis): the number of layers is undetermined",
        "error_details": {"phase": "analysis", "step": 55},
        "partial_outputs": {"raman_analysis": analysis},
    }
    return replace(run, ending="task_failed", answer=answer)


@pytest.mark.parametrize("name", ["completed", "failed", "rejected", "undetermined"])
@pytest.mark.parametrize("language", list(LANGUAGES))
def test_every_ending_is_one_balanced_page_that_needs_nothing_from_outside(
    facts: dict[str, RunFacts], name: str, language: str
) -> None:
    html = page(facts[name], language)
    reader = parsed(html)
    assert {"script", "link", "img", "iframe", "object", "a", "form"}.isdisjoint(reader.tags)
    names = {attribute for attribute, _ in reader.attributes}
    assert {"href", "src", "style", "xlink:href", "action"}.isdisjoint(names)
    assert not any(attribute.startswith("on") for attribute in names)
    assert not re.search(r"https?:|url\(|@import", html)
    assert f'id="{language}" class="choice" checked' in html
    assert html == page(facts[name], language)


def test_a_completed_run_shows_its_verdict_and_how_sure_it_is(facts: dict[str, RunFacts]) -> None:
    html = page(facts["completed"])
    assert "Monolayer</span>" in html
    assert "on at least 75 % of the film" in html
    assert "薄膜至少 75 % 为" in html
    assert "Confidence 97." in html
    assert "Of the surveyed area" in html
    assert "bare substrate" in html
    assert "Simulated instruments (seed 1)" in html
    assert "10v20.0-R24" in html
    assert facts["completed"].chain.head.hash in html
    for section in ("The film", "Evidence", "Steps", "Events", "Instruments", "Provenance"):
        assert f">{section}<" in html


def test_a_report_says_how_long_a_run_took_as_its_answer_does(facts: dict[str, RunFacts]) -> None:
    run = facts["completed"]
    summary = {**run.answer["execution_summary"], "duration": "PT6H29M32S"}
    answer = {**run.answer, "execution_summary": summary}
    html = page(replace(run, answer=answer, duration_s=23_373.4))  # till its journal was closed
    assert "6:29:32" in html
    assert "<td>6:29:33" not in html


def test_a_setpoint_that_ramps_is_drawn_as_what_is_set(facts: dict[str, RunFacts]) -> None:
    found = next(each for each in quantities(facts["completed"]) if each.unit == "degC")
    assert {"furnace.working_setpoint", "sulfur.working_setpoint"} <= set(found.set)
    assert not any("setpoint" in each for each in found.measured)
    assert "furnace.temperature" in found.measured


def test_the_charts_hold_every_extreme_of_the_samples(facts: dict[str, RunFacts]) -> None:
    run = facts["failed"]
    trace = run.traces["furnace.temperature"]
    highest = max(value for _, value in trace if not math.isnan(value))
    assert highest > 1000
    html = page(run)
    assert f"{highest:.0f} °C" in html
    assert "1000 °C" in html
    chart = html[html.index('aria-label="furnace.temperature') :]
    assert chart.index('class="trip"') < chart.index("</svg>")
    assert "trip</tspan>" in chart[: chart.index("</svg>")]
    kept = list(thinned(trace, 0.0, run.duration_s, 100))
    assert len(kept) < len(trace) / 3
    assert max(value for _, value in kept) == highest


def test_a_trip_is_told_with_its_cause_its_phase_and_that_the_line_is_safe(
    facts: dict[str, RunFacts],
) -> None:
    html = page(facts["failed"])
    assert "Failed" in html
    assert "safety_violation" in html
    assert "over_temperature" in html
    assert "every step of that was verified" in html
    assert html.count('<tr class="bad">') >= 3  # the step, the trip and the error
    assert "The film" not in html


def test_a_rejected_run_shows_why_and_what_would_do(facts: dict[str, RunFacts]) -> None:
    html = page(facts["rejected"])
    assert "nothing was started" in html
    assert "1250 degC is outside" in html
    assert "What would do" in html
    assert "polyline" not in html


def test_a_run_without_a_clear_answer_shows_what_it_saw(facts: dict[str, RunFacts]) -> None:
    html = page(facts["undetermined"])
    assert "Number of layers: undetermined" in html
    assert "together reach 90 %: 1, 2" in html
    assert "Confidence 60 %" in html
    assert "0.75 is needed" in html
    for section in ("The film", "Evidence"):
        assert f">{section}<" in html


def test_the_fit_goes_through_the_points(facts: dict[str, RunFacts]) -> None:
    html = page(facts["completed"])
    drawing = html[html.index("Fit of the clearest spot") :]
    drawing = drawing[: drawing.index("</svg>")]
    points = re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)" r="1.8"', drawing)
    below = [(float(y) - 370.0) / 48.0 * 6 for _, y in points if float(y) > 315]
    assert len(below) > 60
    assert math.sqrt(sum(each * each for each in below) / len(below)) < 1.6, "in sigma"


def test_spectra_that_lost_their_checksum_are_not_drawn(runs: Path, tmp_path: Path) -> None:
    folder = tmp_path / "changed"
    (folder / "artifacts").mkdir(parents=True)
    for each in (runs / "completed").rglob("*"):
        if each.is_file():
            target = folder / each.relative_to(runs / "completed")
            target.write_bytes(each.read_bytes())
    spectra = folder / "artifacts" / "raw_spectrum.json"
    spectra.write_bytes(spectra.read_bytes().replace(b"300.0", b"301.0", 1))
    html = page(read_run(folder / JOURNAL_NAME))
    assert "MISSING OR CHANGED" in html
    assert "no fit can be drawn" in html
    assert main(["report", str(folder)]) == 1


def test_what_pre_flight_expected_lies_beside_what_was_measured(
    facts: dict[str, RunFacts],
) -> None:
    run = facts["completed"]
    assert run.prediction is not None
    html = page(run)
    assert html.count('class="band"') >= 4  # two temperatures, each in a wide and a narrow drawing
    assert "Pre-flight expected on the nominal plant" in html
    expected = run.prediction.channels["furnace.temperature"]
    measured = dict(run.traces["furnace.temperature"])
    growth = next(each for each in run.phases if each.name == "material_growth")
    inside = [
        low <= measured[at] <= high
        for at in measured
        if growth.start_s + 60 < at < growth.end_s - 60
        for low, high in [nearest(expected.low, expected.high, at)]
    ]
    assert len(inside) > 500
    assert sum(inside) > 0.95 * len(inside), "the growth runs at the temperature that was foreseen"
    without = page(replace(run, prediction=None))
    assert 'class="band"' not in without
    assert "No prediction was recorded" in without


def nearest(low: Points, high: Points, at_s: float) -> tuple[float, float]:
    index = min(range(len(low)), key=lambda each: abs(low[each][0] - at_s))
    return low[index][1], high[index][1]


def test_hostile_words_of_callers_instruments_and_files_stay_words(tmp_path: Path) -> None:
    html = page(read_run(hostile_journal(tmp_path)))
    reader = parsed(html)
    assert {"script", "img"}.isdisjoint(reader.tags)
    assert not any(name.startswith("on") for name, _ in reader.attributes)
    assert "".join(reader.texts).count("<script>alert(1)</script>") > 15
    assert not re.search("[\u202e\ud800\x1b]", html)
    html.encode("utf-8")


def test_hostile_words_do_not_steer_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], runs: Path
) -> None:
    (tmp_path / "one").mkdir()
    hostile_journal(tmp_path / "one")
    assert main(["history", "--runs", str(tmp_path)]) == 0
    assert main(["compare", str(tmp_path / "one"), str(runs / "completed")]) == 1
    said = capsys.readouterr().out
    assert "alert(1)" in said
    assert "\x1b" not in said
    assert "\u202e" not in said


def test_the_commands_write_the_page_list_the_runs_and_say_what_differs(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "page.html"
    assert main(["report", str(runs / "completed"), "--lang", "zh", "--out", str(out)]) == 0
    assert '<html lang="zh">' in out.read_text("utf-8")
    assert main(["history", "--runs", str(runs)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in said[-3:]] == sorted(each.name for each in runs.iterdir())
    assert "layer_count 1" in said[-3]
    assert main(["compare", str(runs / "completed"), str(runs / "completed")]) == 0
    assert main(["compare", str(runs / "completed"), str(runs / "rejected")]) == 1
    said_ = capsys.readouterr().out
    assert re.search(r"inputs\.temperature_range\.max +750  \|  1250", said_)
    assert re.search(r"ending +task_completed  \|  task_rejected", said_)


def test_what_differs_is_all_that_differs(facts: dict[str, RunFacts]) -> None:
    one = facts["completed"]
    assert differences(one, one) == []
    recipe = {**one.plan["recipe"], "dwell_s": 901.0}
    (found,) = differences(one, replace(one, plan={**one.plan, "recipe": recipe}))
    assert (found.part, found.name, found.one, found.other) == ("recipe", "dwell_s", "900", "901")


def test_a_folder_without_a_run_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in (["report"], ["compare", str(tmp_path)]):
        assert main([*command, str(tmp_path)]) == 64
    assert main(["history", "--runs", str(tmp_path / "nowhere")]) == 64
    said = capsys.readouterr().err
    assert said.count("holds no journal.sqlite") == 2
    assert "nowhere is not a folder" in said


def test_an_answer_that_no_hash_protects_is_marked(runs: Path, tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / JOURNAL_NAME, run={"session_id": "x"}, about={})
    journal.close()
    answer = (runs / "rejected" / "answer.json").read_bytes()
    (tmp_path / "answer.json").write_bytes(answer)
    html = page(read_run(tmp_path / JOURNAL_NAME))
    assert "which no hash protects" in html
    assert "What would do" in html


def test_each_limit_line_names_its_instrument_in_the_colour_of_its_curve(
    facts: dict[str, RunFacts],
) -> None:
    html = page(facts["completed"])
    label = re.search(r'class="halo c(\d)"><tspan class="en" lang="en">sulfur trips at 300<', html)
    curve = re.search(r'class="c(\d)">●</i> sulfur\.temperature', html)
    assert label is not None
    assert curve is not None
    assert label[1] == curve[1]
    assert "sulfur trips at 1000" not in html, "the one at 300 acts first"
    row = html[html.index(">sulfur.temperature</td>") + 1 :]
    cells = re.sub("<[^>]+>", " ", row[: row.index("</tr>")]).split()
    assert " ".join(cells).startswith("sulfur.temperature 24")
    assert "250 °C 300 °C acts first 最先动作 1000 °C after it 其后" in " ".join(cells)


def test_every_phase_of_a_chart_is_named_or_numbered_without_overlap(
    facts: dict[str, RunFacts],
) -> None:
    run = facts["completed"]
    for width, named in ((1040.0, 8), (360.0, 3)):
        frame = Frame(Scale(0.0, run.duration_s, 48.0, width - 150), Scale(0, 1, 200.0, 30.0))
        found = list(phase_labels(frame, run.phases, width))
        assert sum(each[1] for each in found) >= named
        rows: dict[float, list[float]] = {}
        for _, _, middle, y in found:
            rows.setdefault(y, []).append(middle)
        assert len(rows) <= 2
        assert 5 in [index for index, *_ in found], "the growth itself"


def test_a_command_that_nothing_can_show_is_named_and_any_other_doubt_stands_out(
    facts: dict[str, RunFacts],
) -> None:
    run = facts["completed"]
    html = page(run)
    count = run.unshown["spectrometer.acquire"]
    assert f"{count} sent to channels that have no read-back: spectrometer.acquire" in html
    assert "NOT CONFIRMED" not in html
    doubt = {"confirmed": 3, "unconfirmed": count + 1, "mismatch": 2}
    html = page(replace(run, commands=doubt))
    assert '<span class="alarm"><span class="en" lang="en">1 NOT CONFIRMED<' in html
    assert ">2 READ BACK OTHERWISE<" in html
    assert "Commands refused or unconfirmed" in html


def test_what_stays_on_is_said_before_the_channels_and_the_same_as_to_the_approver(
    facts: dict[str, RunFacts],
) -> None:
    html = page(facts["completed"])
    said = html.index("furnace STAYS ON, heating to 725 °C, until a hardware limiter acts")
    assert said < html.index("box.furnace_contactor = 1: ")
    assert "furnace 将持续加热，目标 725 °C" in html
    assert "independent over-temperature limiter" in html


OWN_WORDS = re.compile(
    r"\b(hold|held|arming|armed|running|disarmed|verified|confirmed|unconfirmed|refused|trips?|"
    r"loading|growth|cooling|Heat|Open|Shut|Wait|See|Turn|Take|Set|Stop|Start|Grow|Flush|Purge|"
    r"separation|height ratio|outliers|completed|skipped|limiter acts|keeps flowing)\b"
)


def test_nothing_of_our_own_vocabulary_is_english_in_the_chinese_page(
    facts: dict[str, RunFacts],
) -> None:
    for name in ("completed", "failed"):
        run = facts[name]
        assert run.prediction is not None
        for step in run.steps:
            assert in_language(step.description, "zh") != step.description
        of_files = [bar.source for bar in run.rules.bars] + list(run.prediction.hardware)
        of_files += [run.asked["intent"], *run.approval["by"], run.approval["reason"]]
        left = []
        for shown in chinese_texts(page(run, "zh")):
            for each in of_files:
                shown = shown.replace(str(each), "")
            # of an evidence term the lab file's own source is quoted at the end
            if OWN_WORDS.search(shown) and "on this microscope" not in shown:
                left.append(shown)
        assert left == []


def chinese_texts(html: str) -> list[str]:
    """Return what a reader of the Chinese page sees: all but what is marked as English."""
    body = html[html.index("<main>") : html.index("</main>")]
    body = re.sub(r'<t?span class="en" lang="en">.*?</t?span>', "", body)
    body = re.sub(r"<pre>.*?</pre>", "", body, flags=re.DOTALL)
    return [unescape(each) for each in re.findall(r">([^<]+)<", body) if each.strip()]


def test_a_stopped_run_says_who_stopped_it_and_a_rejected_one_that_it_is(
    facts: dict[str, RunFacts],
) -> None:
    stop = Text("by_hand.stop")
    reason = Text("by_hand", what=stop, by="Ada", reason=Text("after", parts=["smell"]))
    html = page(replace(facts["failed"], ending="aborted", answer={"data": {"reason": reason}}))
    assert f'>Stopped: <span class="en" lang="en">{reason}<' in html
    assert "手动停止请求（Ada）：smell" in html
    headline = page(facts["rejected"]).partition('class="big long">')[2][:60]
    assert headline.startswith('<span class="en" lang="en">Rejected: ')


def test_a_journal_of_format_1_still_opens_and_reports(tmp_path: Path) -> None:
    path = tmp_path / JOURNAL_NAME
    path.write_bytes(lzma.decompress(FORMAT_1.read_bytes()))
    run = read_run(path)
    assert "format" not in run.header
    assert run.chain.ok
    assert run.ending == "task_failed"
    (trip,) = run.happened("trip")
    said = "temperature above the safety envelope: furnace.temperature is 1004.8 degC, at most 1000"
    assert trip.text == f"over_temperature: {said}"
    assert said in page(run)
    assert said in page(run, "zh"), "a text of that time is shown as it was recorded"
    assert main(["journal", "verify", str(tmp_path)]) == 0


# ---- Two runs on one page: the pictures of both over each other, and what differs.

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
