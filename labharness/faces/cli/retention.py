"""``labharness retention``: how long each run is kept, and the removal of those that are over."""

import argparse
from pathlib import Path

from labharness.core.clock import utc_text, wall_clock_utc
from labharness.core.vocabulary.persons import bad_name
from labharness.core.vocabulary.texts import Text
from labharness.faces.cli.show import BadUse, CommandFailed, chosen_lab, looking, say, say_each
from labharness.lab import LabPlan
from labharness.lab.house.submissions import forget
from labharness.lab.operate.retention import (
    KeptRun,
    kept_runs,
    log_clock,
    remove_left_over,
    remove_run,
    why_clock_is_doubted,
)
from labharness.protocols.hcp.terms import CONFIDENTIAL
from labharness.work.task.kept import HOUSE_JOURNAL, read_tasks


def retention(chosen: argparse.Namespace) -> None:
    """List the runs with their dates, or remove those that are over."""
    plan, runs = chosen_lab(chosen.lab), Path(chosen.runs)
    now = wall_clock_utc()
    with looking(runs, CommandFailed):
        if not runs.is_dir():
            raise BadUse("cli.no_runs_folder", runs=str(runs))
        found = list(kept_runs(runs, plan.file.retention))
        if chosen.verb == "list":
            say_each(map(_line, found))
            return
        if why := bad_name(chosen.name):
            raise BadUse(why)
        over = [each for each in found if each.over(now)]
        if not chosen.clock_checked and (why := why_clock_is_doubted(over, found, runs, now)):
            raise CommandFailed(why)
        remove_left_over(runs)
        log_clock(runs, checked=chosen.clock_checked, by=chosen.name, now=now)
        for each in over:
            if each.data_class in CONFIDENTIAL:
                _forget(plan, each.session_id)
            remove_run(each, by=chosen.name, reason=chosen.reason, now=now)
            say(Text("retention.removed", run=each.folder.name, data_class=each.data_class))
        say(Text("retention.count", removed=len(over), kept=len(found) - len(over)))


def _forget(plan: LabPlan, session_id: str) -> None:
    """Destroy the key of a confidential run's submission, which a house has kept."""
    house = plan.state_dir / HOUSE_JOURNAL
    if house.exists():
        forget(plan.state_dir, read_tasks(house), session_id)


def _line(run: KeptRun) -> str:
    until = Text("retention.always") if run.until is None else utc_text(run.until)[:10]
    stays = Text("retention.stays", why=run.why) if run.why else ""
    return Text(
        "retention.run",
        run=run.folder.name,
        data_class=run.data_class,
        ended=utc_text(run.ended_at)[:10],
        until=until,
        stays=stays,
    )
