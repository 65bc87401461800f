"""``labharness up``, ``down`` and ``status``: the processes of a lab that outlive a terminal."""

import argparse
import json
from pathlib import Path

from labharness.core.vocabulary.texts import Text
from labharness.faces.cli import EXIT_COMPLETED, EXIT_FAILED
from labharness.faces.cli.show import chosen_lab, looking, say, warn
from labharness.lab import LabPlan
from labharness.lab.house.house_process import HouseProcess, house_door
from labharness.lab.house.line_owner import LineOwnerProcess
from labharness.lab.house.owner_client import owner_door
from labharness.lab.house.start import bring_up, state_of, take_down


def house(chosen: argparse.Namespace) -> int:
    """Carry out one of the commands; return its exit code."""
    if chosen.command == "line-owner":
        LineOwnerProcess(Path(chosen.lab), chosen.speed).run()
        return EXIT_COMPLETED
    if chosen.command == "house":
        HouseProcess(Path(chosen.lab), Path(chosen.runs)).run()
        return EXIT_COMPLETED
    plan = chosen_lab(chosen.lab)
    with looking(plan.state_dir):
        if chosen.command == "up":
            return _up(plan, chosen)
        if chosen.command == "down":
            return _down(plan, chosen.stop)
        return _status(plan, chosen.json)


def _up(plan: LabPlan, chosen: argparse.Namespace) -> int:
    plan.must_hold()
    owned, housed = bring_up(plan, chosen.speed, Path(chosen.runs))
    owner = state_of(owner_door, plan.state_dir) or {}
    states = [Text("house.started" if fresh else "house.was_up") for fresh in (owned, housed)]
    pace = owner.get("speed")
    speed = Text("house.fast") if pace is None else f"{pace:g}"
    states[0] = Text("house.at_speed", state=states[0], speed=speed)
    for what, state in zip(("line owner", "house"), states, strict=True):
        say(Text("house.up", what=what, state=state))
    return EXIT_COMPLETED


def _down(plan: LabPlan, stop: bool) -> int:
    if run_id := take_down(plan, stop):
        say(Text("house.goes_on", run_id=run_id))
    else:
        for what in ("house", "line owner"):
            say(Text("house.is_down", what=what))
    return EXIT_COMPLETED


def _status(plan: LabPlan, as_json: bool) -> int:
    owner, kept = state_of(owner_door, plan.state_dir), state_of(house_door, plan.state_dir)
    code = EXIT_COMPLETED if owner and kept and not kept["failure"] else EXIT_FAILED
    if as_json:
        say(json.dumps({"line_owner": owner, "house": kept}))
        return code
    if owner is None:
        say(Text("house.is_down", what="line owner"))
    else:
        idle = "house.owner_runs" if owner["run_id"] else "house.owner_idle"
        say(Text(idle, pid=owner["pid"], run_id=owner["run_id"]))
    if kept is None:
        say(Text("house.is_down", what="house"))
        return code
    count = sum(kept["tasks"].values())
    say(Text("house.state", pid=kept["pid"], tasks=count, runs=kept["runs"]))
    for status, number in sorted(kept["tasks"].items()):
        say(f"  {status:18}{number:>6}")
    if kept["failure"]:
        warn(Text("house.failing", why=kept["failure"]))
    return code
