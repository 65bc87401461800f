"""Start line owner and house of a lab as processes of their own, and end them again."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from labharness.core import clock
from labharness.core.files.named import open_own
from labharness.core.vocabulary.texts import CodedError, Text
from labharness.instruments.link.conversation import LineControl, NoOwner, house_door, owner_door

if TYPE_CHECKING:
    from labharness.lab.config.address import LabAddress
    from labharness.lab.config.lab_plan import LabPlan

START_S_MAX: Final = 30.0
"""Longest time (s) from a process's start until its socket answers."""

LEAVE_S_MAX: Final = 30.0
"""Longest time (s) for a process without a run to leave."""

LOOK_S: Final = 0.05
LOG_BYTES_SHOWN: Final = 2_000


class NotUp(CodedError, RuntimeError, code="not_up"):
    """A process of the lab did not come up, or does not leave; the message says which and why."""


Door = Callable[[Path], LineControl]


def state_of(door: Door, home: Path) -> dict[str, Any] | None:
    """Return what a process says of itself; ``None`` where it does not answer."""
    try:
        with door(home) as conversation:
            return conversation.ask(do="status")
    except NoOwner:
        return None


def bring_up(plan: "LabPlan", speed: float | None, runs: Path) -> tuple[bool, bool]:
    """Start what is not up yet; return whether line owner and house were started now.

    Args:
        plan: The lab's files.
        speed: Lab seconds a real second; ``None`` is real time for real instruments, else as fast
            as it goes.
        runs: The folder of the runs.

    Raises:
        NotUp: One of them ended at once, or does not answer in time.
        OSError: Its log cannot be written, or the system has no such processes (Windows).
    """
    house = ("house", str(plan.path.resolve()), "--runs", str(runs.resolve()))
    return bring_up_owner(plan, speed), _started(house_door, plan, house, lambda house: None)


def bring_up_owner(plan: "LabPlan", speed: float | None) -> bool:
    """Start the line owner if it is not up; return whether it was. Arguments as `bring_up`.

    Raises:
        NotUp: It ended at once, does not answer in time, or is up with another speed.
        OSError: Its log cannot be written, or the system has no such processes (Windows).
    """
    if os.name != "posix":
        raise NotUp("control.unsupported")
    plan.make_state_dir()
    pace = ("real" if plan.in_real_time else "fast") if speed is None else f"{speed:g}"
    words = ("line-owner", str(plan.path.resolve()), "--speed", pace)

    def check(owner: Mapping[str, Any]) -> None:
        if (
            speed is not None
            and owner["speed"] != speed
            and (owner["run_id"] or not owner["leaving"])
        ):
            has = Text("house.fast") if owner["speed"] is None else f"{owner['speed']:g}"
            run_id = str(owner["run_id"]) or "-"
            raise NotUp("house.other_speed", has=has, speed=speed, run_id=run_id)

    return _started(owner_door, plan, words, check)


def _started(
    door: Door, plan: "LabPlan", words: Sequence[str], check: Callable[[Mapping[str, Any]], None]
) -> bool:
    """Return whether a process had to be started; one that leaves is asked to stay."""
    home = plan.state_dir
    log = home / f"{words[0]}.log"
    pid, until_s = 0, clock.steady_s() + START_S_MAX
    while (found := state_of(door, home)) is None or found["leaving"]:
        if found is not None:
            check(found)
            if _stays(door, home):
                continue
        elif not pid:
            pid = _spawned((sys.executable, "-m", "labharness.faces.cli", *words), log)
        if (pid and os.waitpid(pid, os.WNOHANG)[0]) or clock.steady_s() > until_s:
            raise NotUp("house.did_not_start", what=words[0], log=str(log), why=_end_of(log))
        clock.pause(LOOK_S)
    check(found)
    return bool(found["pid"] == pid)


def _stays(door: Door, home: Path) -> bool:
    """Return whether a process that is leaving stays; one without a run does not."""
    with suppress(NoOwner), door(home) as conversation:
        return bool(conversation.ask(do="stay")["ok"])
    return False


def _spawned(command: tuple[str, ...], log: Path) -> int:
    """Start a process in a session of its own: a closed terminal and its Ctrl-C do not reach it."""
    handle = open_own(log, os.O_WRONLY | os.O_APPEND)
    try:
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, handle, 1),
            (os.POSIX_SPAWN_DUP2, handle, 2),
        ]
        return os.posix_spawn(command[0], command, os.environ, file_actions=actions, setsid=True)
    finally:
        os.close(handle)


def _end_of(log: Path) -> str:
    try:
        return log.read_bytes()[-LOG_BYTES_SHOWN:].decode(errors="replace").strip()
    except OSError as why:
        return str(why)


def take_down(plan: "LabAddress", stop: bool) -> str:
    """End the house, then the line owner once its line is free; return the run that goes on.

    Args:
        plan: Where the lab is.
        stop: Stop what runs, as a stop request; without it a run goes on to its end.

    Raises:
        NotUp: One of them does not leave.
    """
    home = plan.state_dir
    if _leave(house_door, home) is not None:
        _gone(house_door, home, "house")
    run_id = str((_leave(owner_door, home) or {}).get("run_id", ""))
    if run_id and stop:
        with suppress(NoOwner), owner_door(home) as door:
            door.ask(do="abort", run_id=run_id, reason=Text("house.down"))
    if not run_id:
        _gone(owner_door, home, "line-owner")
    return run_id


def _leave(door: Door, home: Path) -> dict[str, Any] | None:
    """Return the answer of a process that is told to leave; ``None`` from one that is gone."""
    with suppress(NoOwner), door(home) as conversation:
        return conversation.ask(do="leave")
    return None


def _gone(door: Door, home: Path, what: str) -> None:
    until_s = clock.steady_s() + LEAVE_S_MAX
    while state_of(door, home) is not None:
        if clock.steady_s() > until_s:
            raise NotUp("house.stays", what=what, most_s=LEAVE_S_MAX)
        clock.pause(LOOK_S)
