"""What a report is written with: markup, phrases, numbers, and runs that no task drove."""

import re
import subprocess
import sys
from html import unescape
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jinja2 import UndefinedError

from labharness.core.texts import shipped
from labharness.core.vocabulary import share_text
from labharness.faces.cli import main
from labharness.faces.report.answer_face import percent
from labharness.faces.report.document import render
from labharness.faces.report.markup import (
    Html,
    clock_ticks,
    el,
    rounded_ticks,
    significant,
    text,
)
from labharness.faces.report.page import page
from labharness.faces.report.reading import read_run
from labharness.faces.report.traces import apart
from labharness.faces.report.words import both, plain
from labharness.journal import SqliteJournal
from labharness.work.desk.folder import JOURNAL_NAME
from markup import parsed
from rig import HERE, SHORT_LINE
from sentences import SENTENCES


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


def test_the_general_words_name_no_material_and_no_process() -> None:
    own = re.compile(r"MoS2|sulfur|raman|growth|film|layer|substrate|silicon", re.IGNORECASE)
    room = HERE.parent / "labharness/faces/report"
    spectra = "".join(path.read_text("utf-8") for path in room.rglob("spectra*.py"))
    general = {
        code: said
        for code, said in SENTENCES.items()
        if shipped()[code].home.parent == room
        and f'"{code.removeprefix("report.")}"' not in spectra
    }
    assert [key for key, said in general.items() if own.search(f"{key} {said[0]}")] == []
    code = [room / f"{name}.py" for name in ("both_runs", "page", "traces")]
    assert [each.name for each in code if own.search(each.read_text("utf-8"))] == []


@pytest.mark.promise(53)
def test_the_phases_of_each_shipped_capability_are_named_in_both_languages() -> None:
    stages = {"material_growth": "生长", "dwell": "保温", "sweep": "扫描"}
    assert {stage: plain(f"phase.{stage}", "zh") for stage in stages} == stages


def test_templates_hold_markup_and_no_words() -> None:
    templates = sorted((HERE.parent / "labharness/faces/report/templates").rglob("*.j2"))
    assert len(templates) > 8
    for each in templates:
        bare = re.sub(r"\{[{%#].*?[}%#]\}|<[^<>{}]*>", "", each.read_text("utf-8"), flags=re.DOTALL)
        bare = re.sub(r"<[^<>]*>", "", bare)
        assert set(re.findall(r"[A-Za-z]{3,}", bare)) <= {"labharness"}, each.name


def test_a_value_that_a_template_lacks_is_an_error_and_a_hostile_one_is_text() -> None:
    with pytest.raises(UndefinedError, match="'body' is undefined"):
        render("section.html.j2", key="asked")
    shown = render("section.html.j2", key="asked", body="<script>\u202e")
    assert "&lt;script&gt;\ufffd" in shown


def test_the_command_line_starts_without_templates() -> None:
    code = (
        "import sys, labharness.faces.cli.report, labharness.faces.cli.run, "
        "labharness.faces.report.page; print('jinja2' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@settings(deadline=None, max_examples=60)
@given(low=st.floats(-1e6, 1e6), span=st.floats(1e-3, 1e6), count=st.integers(1, 10))
def test_ticks_are_few_round_and_within_the_axis(low: float, span: float, count: int) -> None:
    high = low + span
    places = [value for value, _ in rounded_ticks(low, high, count)]
    assert len(places) <= 2 * count + 2
    assert all(low - 1e-6 * span <= each <= high + 1e-6 * span for each in places)
    assert len(clock_ticks(span, count)) <= count + 2


@settings(deadline=None, max_examples=60)
@given(places=st.lists(st.floats(20, 210), max_size=8).map(sorted))
def test_labels_beside_a_chart_lie_apart_and_not_below_it(places: list[float]) -> None:
    found = apart(places, 20.0, 210.0)
    assert all(later - one >= 13.0 - 1e-6 for one, later in pairwise(found))
    assert all(each <= 210.0 for each in found)
    if all(later - one >= 13.0 for one, later in pairwise(places)):
        assert found == places, "nothing moves without need"


@settings(deadline=None, max_examples=60)
@given(raw=st.text())
def test_a_text_that_is_not_ours_stays_as_it_was_recorded(raw: str) -> None:
    assert "".join(parsed(both(f"\t{raw}")).texts) == unescape(text(f"\t{raw}"))


def test_a_certain_confidence_is_not_claimed() -> None:
    assert [percent(each) for each in (1.0, 0.99999, 0.95, 0.5, 0.57)] == [
        "99.99 %",
        "99.99 %",
        "95 %",
        "50 %",
        "57 %",
    ]
    assert [share_text(each) for each in (1.0, 0.9999, 0.57, 0.0)] == [
        "0.999",
        "0.999",
        "0.570",
        "0.000",
    ]


def test_a_column_keeps_its_digits() -> None:
    shown = [significant(each, 3) for each in (0.081, 0.08, 0.0785, 24.0, 1234.0, 0.0)]
    assert shown == ["0.0810", "0.0800", "0.0785", "24.0", "1234", "0"]


def test_a_line_driven_by_hand_has_a_page_and_a_row_that_say_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hand = ["--attend", "--speed", "fast", "--for", "5", "--name", "Ada", "--lab", str(SHORT_LINE)]
    asked = ["set", "argon.setpoint"]
    assert main([*asked, "80", "sccm", *hand, "--out", str(tmp_path / "done")]) == 0
    assert main([*asked, "600", "sccm", *hand, "--out", str(tmp_path / "refused")]) == 2
    capsys.readouterr()
    assert main(["history", "--runs", str(tmp_path)]) == 0
    rows = capsys.readouterr().out.splitlines()[1:]
    assert all("by hand" in each and "none" not in each for each in rows)
    assert "1 refused; set argon.setpoint = 600 sccm by hand (Ada)" in rows[1]
    done, refused = (read_run(tmp_path / each / JOURNAL_NAME) for each in ("done", "refused"))
    assert [each.text for each in done.happenings if each.kind in ("by_hand", "command")] == [
        "set argon.setpoint = 80 sccm by hand (Ada)",
        "argon.setpoint = 80 sccm: confirmed, reads 80",
    ]
    html = page(refused)
    assert "Driven by hand by Ada" in html
    said = "argon.setpoint = 600 sccm: REFUSED: argon.setpoint: asked 600 sccm, allowed 0 to 490"
    assert said in html.partition('class="big long">')[2][:400]
    assert '<tr class="bad">' in html
    assert "What was asked" not in html
    assert "No answer" not in page(done)


def test_a_run_that_is_held_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "one").mkdir()
    journal = SqliteJournal(tmp_path / "one" / JOURNAL_NAME, run={"session_id": "x"}, about={})
    for at_s, (before, to) in enumerate([("PENDING", "RUNNING"), ("RUNNING", "PAUSED")]):
        data = {"from_state": before, "to_state": to, "reason": "hold by hand (Ada)"}
        journal.append("event", {"event_type": "state_changed", "data": data}, float(at_s))
    journal.close()
    assert main(["history", "--runs", str(tmp_path)]) == 0
    assert " held " in capsys.readouterr().out
    html = page(read_run(tmp_path / "one" / JOURNAL_NAME))
    assert "No answer" in html
    assert 'it was last <span class="en" lang="en">held<' in html
