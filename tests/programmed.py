"""What tests of programs share: the short line with a programmer, made as the how-to says."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from labharness.core.vocabulary import Command, Ending, Program, read_program
from labharness.lab import Lab, LabPlan
from rig import HERE, approved_copy

PAGE = HERE.parent / "docs" / "how-to" / "run-a-program.md"
ANNEAL: dict[str, Any] = {
    "segment": [
        {"ramp_to_c": 400, "at_c_per_min": 50},
        {"dwell_min": 2},
        {"ramp_to_c": 50, "at_c_per_min": 50},
    ]
}


def block(name: str) -> str:
    """One TOML block of the how-to."""
    found = re.search(rf"```toml {name}\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert found is not None
    return found[1]


def program(**changes: Any) -> Program:
    return read_program({**ANNEAL, **changes})


def programmed(folder: Path, edit: Callable[[str], str] = str) -> LabPlan:
    """The short line, its furnace with a programmer, as the page says."""

    def add(text: str) -> str:
        if "[[instrument]]" in text:
            text = text.replace("settings = { unit = 1 }\n", block("lab"), 1)
        else:
            step = '["furnace.output", 0],\n'
            text = text.replace(step, f"{step}    {block('procedure')}")
            text = text.replace("[[interlock]]", f"{block('envelope')}\n[[interlock]]", 1)
        return edit(text)

    return approved_copy(folder, edit=add)


async def prepared(lab: Lab) -> None:
    """Bring a running line to where its furnace may heat: flowing, purged, vented, by a rate."""
    line = lab.line
    for channel, value, unit in (
        ("box.argon_valve", 1, ""),
        ("box.vent", 1, ""),
        ("argon.setpoint", 480, "sccm"),
    ):
        outcome = await line.perform(Command(channel, value, unit))
        assert outcome.ending is Ending.CONFIRMED, outcome
    while line.volumes_purged("air") < 5:
        await line.next_tick()
    for channel, value, unit in (
        ("furnace.setpoint_rate", 50, "degC/min"),
        ("box.furnace_contactor", 1, ""),
    ):
        outcome = await line.perform(Command(channel, value, unit))
        assert outcome.ending is Ending.CONFIRMED, outcome
