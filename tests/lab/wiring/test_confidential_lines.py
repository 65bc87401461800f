"""Confidential tasks on a line: nothing in clear, and a line that is safe whatever the key does."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attempts import Attempts, Submit, body, going_on
from canary import CANARY, found_in, traces
from commands import COMMAND, Said, say
from confidential import DWELL_S, confidential_growth, confidential_line
from labharness.core.clock import pause, steady_s
from labharness.core.clock.loops import finish
from labharness.core.vocabulary.texts import Text
from labharness.journal.encryption import KeyMissing
from labharness.journal.layout import JournalEmpty
from labharness.journal.reading import read, verify_file
from labharness.lab import Lab
from labharness.work.desk.redaction import AS_IT_IS, redacted_event
from rig import Injection, as_submit, cut, plant_fault, task_submit

NUMBER = str(DWELL_S)
KILLS = 12


def found(*places: Path) -> list[str]:
    return [each for canary in (CANARY, NUMBER) for each in found_in(*places, canary=canary)]


class Place:
    """The short line with a key, in folders that are searched as a whole."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.inputs = folder / "inputs"
        self.inputs.mkdir()
        self.plan = confidential_line(folder / "lab", inputs=self.inputs)
        self.lab = self.plan.path
        self.key = folder / "lab" / "data.key"
        (folder / "tmp").mkdir()

    def found(self) -> list[str]:
        return found(*(self.folder / each for each in ("lab", "state", "runs", "tmp")))

    def run(self, name: str, payload: Mapping[str, Any], *more: str) -> Said:
        task = self.folder / f"{name}.json"  # it is its caller's own
        task.write_text(json.dumps(task_submit(payload)), "utf-8")
        out = self.folder / "runs" / name
        said = say("run", task, "--lab", self.lab, "--out", out, *more)
        assert not traces((said.out + said.err).encode())
        assert NUMBER not in said.out + said.err
        return said


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    made = Place(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    return made


@pytest.mark.promise(71)
def test_nothing_of_a_confidential_growth_is_kept_in_clear(place: Place) -> None:
    """Records, samples, spectra, plan, prediction, log, files and answer; the key reads them."""
    said = place.run("t3", confidential_growth(), "--json", "--log-level", "debug")
    assert said.code == 0, said
    payload = json.loads(said.out)["payload"]
    uris = {each["name"]: each["uri"] for each in payload["artifacts"]}
    assert {"results", "remarks", "raw_spectrum", "growth_log_csv"} <= uris.keys()
    assert payload["outputs"]["layer_count"] == f"{uris['results']}#/layer_count"
    assert place.found() == []
    run = place.folder / "runs" / "t3"
    assert not (run / "run.log").exists(), "a frame holds a setpoint"
    results = json.loads(say("artifact", uris["results"], "--runs", run, "--cat").out)
    assert results["layer_count"] == 1
    assert say("report", run, "--out", place.folder / "r.html").code == 0
    page = (place.folder / "r.html").read_text("utf-8")
    assert NUMBER in page, "with the key the report quotes its steps"
    assert "the film" in page
    listed = say("history", "--runs", run.parent).out
    assert "confidential" in listed
    assert "hcp://" not in listed
    records = list(read(run / "journal.sqlite"))
    assert CANARY in str([each.body for each in records if each.kind == "submitted"])
    kinds = {each.kind for each in records}
    assert {"samples", "queried", "checkpoint", "prediction", "whole_event"} <= kinds


@pytest.mark.soak
def test_the_search_finds_what_an_open_growth_leaves(place: Place) -> None:
    """A control: the same task of the class T2 shows its canaries in each file of its run."""
    payload = confidential_growth("T2")
    task = place.folder / "open.json"
    task.write_text(json.dumps(task_submit(payload)), "utf-8")
    out = place.folder / "runs" / "open"
    said = say("run", task, "--lab", place.lab, "--out", out)
    assert said.code == 0, said
    names = " ".join(place.found())
    for name in ("submit.json", "journal.sqlite", "report.html"):
        assert name in names


@pytest.mark.promise(71)
@pytest.mark.parametrize("why", ["gone", "shared", "no key"])
def test_without_its_key_a_run_is_refused_before_anything_is_armed(place: Place, why: str) -> None:
    if why == "gone":
        place.key.unlink()
    elif why == "shared":
        place.key.chmod(0o644)
    else:
        place.key.write_text("nonsense", "utf-8")
        place.key.chmod(0o600)
    said = place.run("t3", confidential_growth())
    said.is_one_plain_error("data.key")
    assert not (place.folder / "runs" / "t3" / "journal.sqlite").exists()
    assert not list((place.folder / "state").glob("*armed*"))
    assert place.found() == []


@pytest.mark.thorough
@pytest.mark.promise(71)
def test_the_request_of_a_confidential_plan_is_shown_with_the_key_alone(place: Place) -> None:
    (place.lab.parent / "short_line_approval.toml").unlink()
    refused = place.run("asked", confidential_growth())
    assert refused.code == 2, refused
    assert "labharness approvals approve" in refused.out
    assert place.found() == []
    listed = say("approvals", "list", "--lab", place.lab)
    request = listed.out.split()[0]
    shown = say("approvals", "show", request, "--lab", place.lab)
    assert CANARY in shown.out
    assert NUMBER in shown.out
    logged = say("journal", "access", place.folder / "runs" / "asked").out
    assert "approvals" in logged
    assert "T3" in logged
    place.key.rename(place.key.with_name("moved"))
    hidden = say("approvals", "show", request, "--lab", place.lab)
    assert (hidden.code, hidden.out) == (1, "")
    assert "key cannot be had" in hidden.err
    place.key.with_name("moved").rename(place.key)
    agreed = ("--name", "Olga", "--reason", "looked at it", "--lab", place.lab)
    assert say("approvals", "approve", request, *agreed).code == 0
    assert place.run("again", confidential_growth()).code == 0
    assert place.found() == []


@pytest.mark.promise(71)
@pytest.mark.soak
def test_a_confidential_growth_that_is_killed_at_any_instant_has_left_nothing_in_clear(
    place: Place,
) -> None:
    """In the flight before it too, whose folder stays when its process is killed."""
    task = place.folder / "t.json"
    task.write_text(json.dumps(task_submit(confidential_growth())), "utf-8")
    ended, reached = 0, set[str]()
    for number in range(KILLS):
        out = place.folder / "runs" / str(number)
        words = ("run", task, "--lab", place.lab, "--out", out, "--speed", "40")
        with (place.folder / "tmp" / "said").open("ab") as said:
            run = subprocess.Popen(
                [*COMMAND, *map(str, words)], stdout=said, stderr=said, start_new_session=True
            )
        until_s = steady_s() + 30.0
        while run.poll() is None and not (out / "journal.sqlite").exists():
            assert steady_s() < until_s
        pause(0.5 * number)
        ended += run.poll() is not None
        with suppress(ProcessLookupError):
            os.killpg(run.pid, signal.SIGKILL)
        run.wait(30)
        assert place.found() == [], number
        with suppress(JournalEmpty):
            reached |= {each.kind for each in read(out / "journal.sqlite")}
        shutil.rmtree(place.folder / "state")  # else the next finds a latched line
    assert ended < KILLS, "some were killed at their work"
    assert {"planned", "armed"} <= reached


class Alone:
    """Attempts on the short line with a key."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        plan = confidential_line(folder / "lab")
        self.attempts = Attempts(plan, folder / "runs")
        self.key = folder / "lab" / "data.key"

    def found(self) -> list[str]:
        return found(*(self.folder / each for each in ("lab", "state", "runs")))


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Alone]:
    made = Alone(tmp_path)
    yield made
    finish(made.attempts.loop)


def submit(payload: dict[str, Any] | None = None) -> Submit:
    return as_submit(task_submit(payload or confidential_growth()))


@pytest.mark.promise(71)
def test_a_trip_makes_the_line_safe_and_is_recorded_though_the_key_is_lost(alone: Alone) -> None:
    """After arming no key is needed: what the line did is in the journal, for whoever has it."""
    master, kept = alone.key, alone.folder / "kept"
    own = alone.folder / "runs" / "a" / "key.json"

    def lose(lab: Lab) -> None:
        kept.mkdir()
        for each in (master, own):
            each.rename(kept / each.name)

    opened = Injection("ramp", 10.0, plant_fault("estop_open"))
    result = alone.attempts.run("a", submit(), inject=(Injection("ramp", 5.0, lose), opened))
    assert result.message.type == "task_failed"
    payload = body(result)
    assert payload["error_code"] == "safety_violation"
    assert "artifact failure" in payload["error_message"]
    (event,) = payload["execution_summary"]["risk_events"]
    assert event.keys() == {"code", "at", "text"}
    assert payload["partial_outputs"]["growth_log"].endswith("results.json#/growth_log")
    assert payload["error_details"]["last_checkpoint"] == "ckpt-001"
    assert payload["error_details"]["recoverable"] is False
    assert result.cooled is not None
    assert result.cooled.safe
    journal = alone.folder / "runs" / "a" / "journal.sqlite"
    assert verify_file(journal).ok, "the chain holds without a key"
    with pytest.raises(KeyMissing):
        list(read(journal))
    for each in (master, own):
        (kept / each.name).rename(each)
    records = list(read(journal))
    kinds = [each.kind for each in records]
    assert "trip" in kinds
    assert "terminal" in kinds
    verified = [each.body["complete"] for each in records if each.kind == "verified"]
    assert verified[-1]
    uri = payload["partial_outputs"]["growth_log"].partition("#")[0]
    runs = ("--runs", alone.folder / "runs" / "a")
    partial = json.loads(say("artifact", uri, *runs, "--cat").out)
    assert [each["phase"] for each in partial["growth_log"]][-1] == "ramp", "it read itself"
    assert alone.found() == []
    latch = json.loads((alone.folder / "state" / "latch.json").read_text("utf-8"))
    assert latch, "why the line is latched is read without a key"


@pytest.mark.promise(71)
@pytest.mark.thorough
def test_a_confidential_run_goes_on_from_its_checkpoint_and_into_no_lower_class(
    alone: Alone,
) -> None:
    lost = Injection("characterisation", 120.0, cut("spectrometer"))
    first = alone.attempts.run("first", submit(), inject=(lost,))
    assert first.message.type == "task_failed", body(first)
    assert body(first)["error_details"]["recoverable"]
    assert body(first)["error_details"]["last_checkpoint"] == "ckpt-003"
    alone.attempts.mend()
    for data_class, reason in (("T2", "higher class"), ("T4", "")):
        asked = going_on(submit(confidential_growth(data_class)), alone.folder / "runs" / "first")
        second = alone.attempts.run(data_class, asked, earlier="first")
        assert second.message.type == ("task_rejected" if reason else "task_completed")
        assert reason in body(second).get("reason_message", "")
    assert body(second)["execution_summary"]["resumed_from"]["checkpoint_id"] == "ckpt-003"
    shutil.rmtree(alone.folder / "runs" / "T2")  # it was submitted as T2, and is kept as that
    assert alone.found() == []


@pytest.mark.promise(71)
def test_of_a_manual_step_the_action_is_told_and_not_what_is_to_be_done() -> None:
    asked = {
        "level": "info",
        "message": Text("operator.put", sample=CANARY),
        "details": {"required_action": "confirm", "sample": CANARY},
    }
    told = redacted_event("log", asked)
    assert told is not None
    assert told["details"] == {"required_action": "confirm"}
    assert CANARY not in str(told)


def data_of(kind: str) -> st.SearchStrategy[dict[str, Any]]:
    """Any data of an event, with fields that may be told and others."""
    names = sorted({*AS_IT_IS.get(kind, ()), "message", "reason", "description", "values", "extra"})
    said = st.one_of(
        st.just(CANARY),
        st.just(DWELL_S),
        st.builds(lambda: Text("pair", what="step", why=CANARY)),
        st.builds(lambda: Text(CANARY)),
        st.just([{"at": CANARY}]),
    )
    hidden = st.sampled_from([each for each in names if each not in AS_IT_IS.get(kind, ())])
    return st.dictionaries(hidden, said)


@pytest.mark.promise(71)
@given(st.data())
def test_what_is_told_of_a_confidential_task_is_named_in_the_table(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from([*AS_IT_IS, "tick", "else"]))
    told = redacted_event(
        kind, {"data": {"about": CANARY, "record": 1}, **data.draw(data_of(kind))}
    )
    assert (told is None) == (kind not in AS_IT_IS)
    assert CANARY not in str(told)
    assert NUMBER not in str(told)
