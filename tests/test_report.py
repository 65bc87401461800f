"""The report of a run: what it shows, that nothing hostile gets in, and that it repeats."""

import json
import math
import re
import string
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labharness.cli import main
from labharness.desk.report.compare import differences
from labharness.desk.report.facts import Points, RunFacts
from labharness.desk.report.html import Html, el, text
from labharness.desk.report.page import page
from labharness.desk.report.reading import read_run
from labharness.desk.report.svg import clock_ticks, rounded_ticks, thinned
from labharness.desk.report.words import LANGUAGES, PHRASES
from labharness.journal import SqliteJournal
from labharness.lab import Lab, read_lab
from labharness.lab.tasks import JOURNAL_NAME, TaskRun
from rig import EXAMPLE, SHORT_LINE, message_of

HOSTILE = (
    "</script><script>alert(1)</script><img src=x onerror='a()'>\"&\u202e{intent}\ud800\x1b[2J"
)
VOID = {"br", "input", "meta"}


class Balance(HTMLParser):
    """Holds every end tag against its start, and keeps tags, attributes and texts."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def parsed(html: str) -> Balance:
    reader = Balance()
    reader.feed(html)
    reader.close()
    assert reader.open == []
    return reader


def hot(lab: Lab) -> None:
    """Let the furnace run away: 20 degC a second more than it is told."""
    assert lab.simulated is not None
    lab.simulated.plant.faults.add_furnace_c_per_s = 20.0


def grown(folder: Path, act: Callable[[Lab], None] | None = None, **payload: Any) -> Path:
    """Run the example on the short line, with a fault a minute into the growth."""
    body = json.loads(EXAMPLE.read_text("utf-8"))
    for part, values in payload.items():
        body["payload"][part].update(values)
    opened: list[Lab] = []

    def tell(kind: str, data: Any) -> None:
        if act is not None and kind == "progress" and data["stage"] == "material_growth":
            opened[0].clock.loop.call_later(60.0, act, opened[0])

    message, submit = message_of(body)
    TaskRun(
        read_lab(SHORT_LINE),
        message,
        submit,
        speed=None,
        seed=1,
        out=folder,
        tell=tell,
        prepare=opened.append,
    ).execute()
    return folder


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
    """Give a run the answer it has when its spectra leave doubt."""
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
    assert "Monolayer: 1 layer" in html
    assert "单层：1 层" in html
    assert "Confidence 99.99 %" in html, "rounded down: it is never 100 %"
    assert "Simulated instruments (seed 1)" in html
    assert "10v20.0-R24" in html
    assert facts["completed"].chain.head.hash in html
    for section in ("The film", "Evidence", "Steps", "Events", "Instruments", "Provenance"):
        assert f">{section}<" in html


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
    assert "what pre-flight expected" in html
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


def hostile_journal(folder: Path) -> Path:
    """Write a journal whose every free text is hostile."""
    path = folder / JOURNAL_NAME
    journal = SqliteJournal(
        path, run={"session_id": HOSTILE, "seed": None}, about={"python": HOSTILE}
    )
    step = {
        "instructionId": "one",
        "metadata": {"stage": HOSTILE, "description": HOSTILE},
    }
    planned = {"instructions": {"instructions": [step]}, "recipe": {HOSTILE: HOSTILE}}
    asked = {
        "intent": HOSTILE,
        "caller_id": HOSTILE,
        "inputs": {HOSTILE: [HOSTILE, {"a": HOSTILE}]},
    }
    spots = [{"x_um": HOSTILE, "y_um": 0}]
    told = {"event_type": "warning", "data": {"message": HOSTILE}}
    record: list[tuple[str, dict[str, Any]]] = [
        ("submitted", {"payload": {**asked, "context": {HOSTILE: HOSTILE}}}),
        ("approved", {"by": [HOSTILE], "reason": HOSTILE}),
        ("planned", planned),
        (
            "prediction",
            {
                "trajectory": {HOSTILE: [[0.0, 1.0]]},
                "bands": {},
                "units": {HOSTILE: HOSTILE},
                "duration_s": 1.0,
                "steps": [
                    {"instruction": "one", "started_s": 0, "ended_s": 1, "if_killed": [HOSTILE]}
                ],
                "gas_used_cm3": {HOSTILE: 1.0},
            },
        ),
        ("identified", {"instrument": HOSTILE, "model": HOSTILE, "firmware": HOSTILE}),
        ("task_accepted", {"risk_level": HOSTILE}),
        ("step", {"instruction": "one", "status": "RUNNING"}),
        ("event", told),
        ("trip", {"cause": HOSTILE, "detail": HOSTILE}),
        (
            "terminal",
            {
                "type": "task_failed",
                "payload": {
                    "error_code": HOSTILE,
                    "error_message": HOSTILE,
                    "error_details": {"phase": HOSTILE, "step": HOSTILE},
                    "partial_outputs": {"raman_analysis": {"spots": spots, HOSTILE: HOSTILE}},
                    "artifacts": [
                        {"name": HOSTILE, "uri": HOSTILE, "size_bytes": 1, "checksum": HOSTILE}
                    ],
                },
            },
        ),
    ]
    for at, (kind, body) in enumerate(record):
        journal.append(kind, body, float(at))
    journal.close()
    return path


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


@settings(deadline=None, max_examples=60)
@given(raw=st.text())
def test_any_text_is_one_text_node_and_one_attribute(raw: str) -> None:
    reader = parsed(el("p", raw, title=raw))
    assert reader.tags == ["p"]
    assert len(reader.attributes) == 1
    assert "".join(reader.texts) == reader.attributes[0][1]


def test_markup_made_here_is_kept_and_a_long_text_is_cut() -> None:
    assert el("p", Html("<b>x</b>"), "<b>") == "<p><b>x</b>&lt;b&gt;</p>"
    assert len(text("x" * 10_000)) < 4100


def test_both_languages_have_every_phrase_with_the_same_blanks() -> None:
    for key, phrases in PHRASES.items():
        assert len(phrases) == len(LANGUAGES)
        assert all(phrases), key
        blanks = [
            {name for _, name, _, _ in string.Formatter().parse(each) if name} for each in phrases
        ]
        assert blanks[0] == blanks[1], key
        written = not key.startswith(("phase.", "status.", "event."))
        assert not written or phrases[0] != phrases[1], key


@settings(deadline=None, max_examples=60)
@given(low=st.floats(-1e6, 1e6), span=st.floats(1e-3, 1e6), count=st.integers(1, 10))
def test_ticks_are_few_round_and_within_the_axis(low: float, span: float, count: int) -> None:
    high = low + span
    places = [value for value, _ in rounded_ticks(low, high, count)]
    assert len(places) <= 2 * count + 2
    assert all(low - 1e-6 * span <= each <= high + 1e-6 * span for each in places)
    assert len(clock_ticks(span, count)) <= count + 2


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
    assert "nowhere is no folder" in said


def test_an_answer_that_no_hash_protects_is_marked(runs: Path, tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / JOURNAL_NAME, run={"session_id": "x"}, about={})
    journal.close()
    answer = (runs / "rejected" / "answer.json").read_bytes()
    (tmp_path / "answer.json").write_bytes(answer)
    html = page(read_run(tmp_path / JOURNAL_NAME))
    assert "which no hash protects" in html
    assert "What would do" in html
