"""``labharness up``, ``down`` and ``status``: the processes of a lab that outlive a terminal."""

import argparse
import json
from pathlib import Path

from labharness.core.vocabulary.texts import Text
from labharness.faces.cli import EXIT_COMPLETED, EXIT_FAILED
from labharness.faces.cli.show import at_home, chosen_lab, say, warn
from labharness.instruments.link.conversation import house_door, owner_door
from labharness.lab.house.start import bring_up, state_of, take_down


def line_owner(chosen: argparse.Namespace) -> None:
    """Be the line owner of a lab."""
    from labharness.lab.house.line_owner import LineOwnerProcess

    LineOwnerProcess(Path(chosen.lab), chosen.speed).run()


def house(chosen: argparse.Namespace) -> None:
    """Be the house of a lab."""
    from labharness.lab.house.house_process import HouseProcess

    HouseProcess(Path(chosen.lab), Path(chosen.runs)).run()


def up(chosen: argparse.Namespace) -> None:
    """Start the processes of a lab that are not up yet."""
    with at_home(chosen):
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


def down(chosen: argparse.Namespace) -> None:
    """End the processes of a lab."""
    with at_home(chosen) as place:
        if run_id := take_down(place, chosen.stop):
            say(Text("house.goes_on", run_id=run_id))
        else:
            for what in ("house", "line owner"):
                say(Text("house.is_down", what=what))


def status(chosen: argparse.Namespace) -> int:
    """Print what the processes of a lab answer; return 1 unless both are well."""
    with at_home(chosen) as place:
        owner, kept = state_of(owner_door, place.state_dir), state_of(house_door, place.state_dir)
        code = EXIT_COMPLETED if owner and kept and not kept["failure"] else EXIT_FAILED
        if chosen.json:
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
        for state, number in sorted(kept["tasks"].items()):
            say(f"  {state:18}{number:>6}")
        if kept["failure"]:
            warn(Text("house.failing", why=kept["failure"]))
        return code
