"""``labharness up``, ``down`` and ``status``: the processes of a lab that outlive a terminal."""

import argparse
import json
from pathlib import Path

from labharness.core.vocabulary.texts import Text
from labharness.faces.cli import EXIT_COMPLETED, EXIT_FAILED
from labharness.faces.cli.show import chosen_address, chosen_lab, looking, say, warn
from labharness.instruments.link.conversation import house_door, owner_door
from labharness.lab import LabAddress
from labharness.lab.house.start import bring_up, state_of, take_down


def house(chosen: argparse.Namespace) -> int:
    """Carry out one of the commands; return its exit code."""
    if chosen.command == "line-owner":
        from labharness.lab.house.line_owner import LineOwnerProcess

        LineOwnerProcess(Path(chosen.lab), chosen.speed).run()
        return EXIT_COMPLETED
    if chosen.command == "house":
        from labharness.lab.house.house_process import HouseProcess

        HouseProcess(Path(chosen.lab), Path(chosen.runs)).run()
        return EXIT_COMPLETED
    place = chosen_address(chosen.lab)
    with looking(place.state_dir):
        if chosen.command == "up":
            return _up(chosen)
        if chosen.command == "down":
            return _down(place, chosen.stop)
        return _status(place, chosen.json)


def _up(chosen: argparse.Namespace) -> int:
    plan = chosen_lab(chosen.lab)
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


def _down(place: LabAddress, stop: bool) -> int:
    if run_id := take_down(place, stop):
        say(Text("house.goes_on", run_id=run_id))
    else:
        for what in ("house", "line owner"):
            say(Text("house.is_down", what=what))
    return EXIT_COMPLETED


def _status(place: LabAddress, as_json: bool) -> int:
    owner, kept = state_of(owner_door, place.state_dir), state_of(house_door, place.state_dir)
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
