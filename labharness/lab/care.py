"""Caring for a line without a run: who stands on it, and opening its latch."""

import json
from collections.abc import Callable, Coroutine
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from labharness.clock import Chance, Clock, PacedLoop, VirtualLoop, utc_text, wall_clock_utc
from labharness.clock import run as run_on
from labharness.guard import Latch
from labharness.journal import SqliteJournal
from labharness.lab.lab import Lab, LabPlan
from labharness.lab.lock import LineLock
from labharness.lab.operators import TerminalOperator
from labharness.line import NoReply
from labharness.link import LinkLost
from labharness.vocabulary import Cause, Trip

__all__ = ["NotReset", "identify", "reset", "still_standing"]

T = TypeVar("T")


class NotReset(RuntimeError):
    """The latch stays: the message says what stands in the way."""


def identify(plan: LabPlan) -> list[tuple[str, str, str]]:
    """Ask every instrument who it is; nothing is written.

    Returns:
        Name, what it says it is, and what is wrong (``""`` when nothing is).
    """

    async def ask(lab: Lab) -> list[tuple[str, str, str]]:
        found = []
        for port, link in lab.links.items():
            try:
                await link.open()
            except LinkLost as why:
                found.append((f"port {port}", "", str(why)))
        for name in lab.line.instruments:
            try:
                identity = await lab.line.identify(name)
                found.append((name, f"{identity.model} {identity.firmware}".strip(), ""))
            except (NoReply, LinkLost) as why:
                found.append((name, "", str(why)))
        return found

    return _with_lab(plan, ask)


def reset(plan: LabPlan, name: str, reason: str) -> Trip | None:
    """Open the latch: the cause is gone, and a named person says why. A reset is no start.

    Returns:
        The trip that had latched; ``None`` when nothing was latched.

    Raises:
        NotReset: No name or reason, or the cause still stands.
        LineBusy: A run owns the line.
    """
    if not name.strip() or not reason.strip():
        raise NotReset("a reset takes a name and a reason")
    plan.state_dir.mkdir(parents=True, exist_ok=True)
    with LineLock(plan.state_dir):
        latch = Latch(plan.state_dir / "latch.json")
        if latch.trip is None:
            return None
        trip = latch.trip
        standing = _with_lab(plan, lambda lab: still_standing(lab, trip))
        if standing:
            raise NotReset(f"the cause still stands: {'; '.join(standing)}")
        line = {
            "at": utc_text(wall_clock_utc()),
            "name": name,
            "reason": reason,
            "cause": trip.cause.value,
            "detail": trip.detail,
        }
        with (plan.state_dir / "resets.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
        latch.open()
        return trip


async def still_standing(lab: Lab, trip: Trip) -> list[str]:
    """Open a lab's line, look, and say what stands in the way of resetting a trip."""
    try:
        await lab.line.open()
    except (LinkLost, NoReply) as why:
        return [str(why)]
    await lab.line.next_tick()
    standing = list(lab.line.standing_trips())
    if trip.cause is Cause.INTERLOCK_LOST:
        standing += lab.line.lost_conditions(trip.channel)
    return standing


def _with_lab(plan: LabPlan, work: Callable[[Lab], Coroutine[Any, Any, T]]) -> T:
    """Open the lab's line read-only, with a journal that is thrown away."""
    simulated = plan.links == ("loopback",)
    loop = VirtualLoop() if simulated else PacedLoop(1.0)

    async def main(folder: Path) -> T:
        clock = Clock(loop)
        with SqliteJournal(folder / "care.sqlite") as journal:
            lab = Lab(
                plan,
                clock=clock,
                chance=Chance(1 if simulated else None),
                journal=journal,
                operator=TerminalOperator(lambda prompt: ""),
            )
            try:
                return await work(lab)
            finally:
                await lab.line.close()

    with TemporaryDirectory() as folder:
        return run_on(main(Path(folder)), loop)
