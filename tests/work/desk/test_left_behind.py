"""A run whose program is killed leaves what its journal holds, and its caller is told of it."""

from dataclasses import replace
from pathlib import Path
from shutil import copytree

import pytest

from labharness.analysis.formats.own import parse_own
from labharness.faces.service.session_messages import LostEnd, SessionState, end_of_lost
from labharness.journal.artifacts import resolve
from labharness.lab import Lab, LabPlan
from labharness.lab.config.lab_facts import lab_facts_of
from labharness.work.desk.left_behind import left_behind
from labharness.work.desk.results import results
from rig import Injection, Run
from tasks_alone import TasksAlone


@pytest.mark.promise(58)
def test_a_killed_run_has_left_results_files_and_summary_as_far_as_its_journal_holds_them(
    short_plan: LabPlan, run_task: Run, tmp_path: Path
) -> None:
    """Its folder at that instant is what a kill would have left of it."""
    run, killed = tmp_path / "run", tmp_path / "killed"

    def kill(lab: Lab) -> None:
        copytree(run, killed)

    run_task(short_plan, out=run, inject=(Injection("characterisation", 200.0, kill),))
    facts = replace(lab_facts_of(short_plan), begins_anew=False)
    left = left_behind(killed, facts)
    measured = list(results(killed / "journal.sqlite"))
    of_map = [each for each in measured if each.about["of"] == "raman"]
    assert left.outputs["spectra"] == {"dark": 1, "survey": 49, "raman": len(of_map)}
    assert left.outputs["growth_log"][-1]["phase"] == "characterisation"
    assert left.outputs["growth_log"][0]["duration_s"] > 0
    assert left.outputs["growth_log"][0]["measured"]
    uris = {each["name"]: each["uri"] for each in left.artifacts}
    text = resolve(uris["partial_raw_spectrum"], [killed / "artifacts"]).read_text("utf-8")
    assert parse_own(text).intensity.shape[0] == len(of_map) > 0
    assert left.summary is not None
    assert left.summary["steps_executed"] > 50
    assert left.summary["checkpoints_created"] == 3
    assert left.way_on is not None
    assert left.way_on.checkpoint_id == "ckpt-003"
    assert left_behind(killed, facts) == left  # a house that dies over it makes it again
    alone = TasksAlone()
    alone.running()
    (run_of,), ids = alone["t"].attempts, iter("abcdefg")
    found, now = SessionState("RUNNING", 9), "2026-01-01T00:00:00.000Z"
    ending = LostEnd(left.way_on.session_id, found, ids.__next__, now)
    (*_, failed, closed) = end_of_lost(alone["t"], run_of, ending, left=left, accepted=False)
    told = failed.payload.stated()
    assert (failed.type, told["error_details"]["recoverable"]) == ("task_failed", True)
    assert told["partial_outputs"] == left.outputs
    assert [each["uri"] for each in told["artifacts"]] == [*uris.values()]
    assert told["execution_summary"]["duration"] == left.summary["duration"]
    assert "ckpt-003" in told["suggestion"]
    assert closed.type == "event"
    anew = left_behind(killed, replace(facts, begins_anew=True))
    assert anew.way_on is None
    without = left_behind(killed, replace(facts, capabilities={}))
    assert set(without.outputs) == {"process_log"}, "a capability that the lab offers no more"
