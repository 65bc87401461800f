"""Whatever breaks on the way of a request, it ends in one terminal message that is on record."""

import json
from dataclasses import replace
from pkgutil import resolve_name
from typing import Any

import pytest

from labharness.faces.testing.faults import simulated_of
from labharness.journal.reading import read
from labharness.lab import read_lab
from labharness.work.capability import Answer
from labharness.work.capability.iv_curve import IvCurve
from labharness.work.desk.folder import JOURNAL_NAME
from rig import HERE, SOON, Ran, Run, as_submit

IV = HERE.parent / "envelopes/labharness_envelopes/labs/iv_bench/lab.toml"
IV_EXAMPLE = HERE.parent / "examples" / "iv-curve.json"
DESK = "labharness.work.desk"
BEFORE = {
    "weigh": f"{DESK}.desk.Admitting.weigh",
    "plan": "labharness.work.capability.cvd.CvdSynthesis.plan",
    "rules": f"{DESK}.desk.plan_record",
    "open": "labharness.line.Line.open",
    "hindrances": "labharness.line.Line.hindrances",
    "predict": f"{DESK}.desk.Admitting.predict",
    "expect": f"{DESK}.progress_reporter.ProgressReporter.expect",
    "approve": f"{DESK}.desk.Admitting.approve",
    "token": f"{DESK}.admitting.issue",
}
EARLY = {
    "begin": f"{DESK}.progress_reporter.ProgressReporter.begin",
    "scope": f"{DESK}.desk.scope",
    "arm": "labharness.line.Line.arm",
    "start": "labharness.line.Line.start",
    "step": "labharness.work.plan.Executor.run",
}
FLOWN = (EARLY["arm"], EARLY["start"], EARLY["step"])
LATE = {  # each is a whole growth
    "settle": "labharness.line.Line.settle",
    "latch": f"{DESK}.making_safe.latch_lost",
    "disarm": "labharness.line.Line.disarm",
    "records": "labharness.work.plan.Executor.records",
    "answer": "labharness.work.capability.cvd.CvdSynthesis.answer",
    "schema": f"{DESK}.closing.unfit",
    "artifacts": f"{DESK}.closing.Closing.keep",
    "log": f"{DESK}.closing.process_log",
    "listed": "labharness.journal.artifacts.Artifacts.list",
    "message": f"{DESK}.closing.answers.task_completed",
}
WITHIN = {
    **EARLY,
    **{name: pytest.param(place, marks=pytest.mark.thorough) for name, place in LATE.items()},
}


class Broken(Exception):
    """An error that nobody foresaw."""


def break_once(monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    """Let the first call of a function raise; a call that the pre-flight makes does not count."""
    real, begin = resolve_name(place), resolve_name(EARLY["begin"])
    begun: list[bool] = []
    broken: list[bool] = []

    def begins(*asked: object) -> object:
        begun.append(True)
        return begin(*asked)

    def breaks(*asked: object, **named: object) -> object:
        if not broken and (begun or place not in FLOWN):
            broken.append(True)
            raise Broken("nobody foresaw it")
        return real(*asked, **named)

    monkeypatch.setattr(EARLY["begin"], begins)
    monkeypatch.setattr(place, breaks)


def terminal(ran: Ran) -> dict[str, Any]:
    """Return the one terminal record of a run."""
    found = [
        each.body for each in read(ran.result.folder / JOURNAL_NAME) if each.kind == "terminal"
    ]
    assert len(found) == 1, [each["type"] for each in found]
    return dict(found[0])


def safe(ran: Ran) -> None:
    truth = simulated_of(ran.lab).plant.truth()
    assert (truth["furnace_heating"], truth["hydrogen_sccm"]) == (False, 0.0)


@pytest.mark.promise(57)
@pytest.mark.parametrize("place", BEFORE.values(), ids=BEFORE)
def test_what_breaks_before_the_task_is_accepted_rejects_it(
    run_task: Run, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    break_once(monkeypatch, place)
    ran = run_task()
    assert (ran.type, terminal(ran)["type"]) == ("task_rejected", "task_rejected")
    assert ran.body["reason_code"] == "resource_unavailable"
    assert "nobody foresaw it" in ran.body["reason_message"]
    safe(ran)


@pytest.mark.promise(57)
@pytest.mark.parametrize("place", WITHIN.values(), ids=WITHIN)
def test_what_breaks_in_a_run_fails_it_with_the_line_safe(
    run_task: Run, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    break_once(monkeypatch, place)
    ran = run_task()
    assert (ran.type, terminal(ran)["type"]) == ("task_failed", "task_failed")
    assert ran.body["error_code"] == "internal_error"
    assert "nobody foresaw it" in ran.body["error_message"]
    safe(ran)


@pytest.mark.promise(57)
@pytest.mark.parametrize("value", [float("nan"), object()], ids=["NaN", "object"])
def test_an_answer_that_no_message_can_hold_fails_the_task(
    run_task: Run, monkeypatch: pytest.MonkeyPatch, value: object
) -> None:
    answer = IvCurve.answer  # it has one after seconds, a growth after an hour

    def lies(self: IvCurve, *asked: Any) -> Any:
        found = answer(self, *asked)
        assert isinstance(found, Answer)
        return replace(found, outputs={**found.outputs, "points": value})

    monkeypatch.setattr(IvCurve, "answer", lies)
    ran = run_task(read_lab(IV), as_submit(json.loads(IV_EXAMPLE.read_text("utf-8"))))
    assert (ran.type, terminal(ran)["type"]) == ("task_failed", "task_failed")
    assert ran.body["error_code"] == "internal_error"


@pytest.mark.promise(57)
def test_an_abort_on_whose_way_something_breaks_stays_an_abort(
    run_task: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_once(monkeypatch, LATE["settle"])
    ran = run_task(abort=SOON)
    assert (ran.type, terminal(ran)["type"]) == ("event", "event")
    assert ran.body["data"]["final_state"] == "ABORTED"
    assert "nobody foresaw it" in str(ran.body["data"]["warnings"])
    safe(ran)
