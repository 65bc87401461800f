"""Which link may energise, the control loop's heartbeats, and flights that touch no real port."""

import asyncio
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, cast

import pytest

from labharness.core.clock import Chance, Clock, VirtualLoop, run
from labharness.instruments.link import Link
from labharness.journal.null_journal import NullJournal
from labharness.lab import Lab, LabPlan
from labharness.line.hindrances import may_not_energise
from labharness.line.poll import Poller
from labharness.safety.guard import Guard
from labharness.safety.guard.remote import BEAT_S
from labharness.safety.guard.shell import LoopGuard


def over(kind: str, *, guarded: bool = False) -> Link:
    return cast("Link", SimpleNamespace(kind=kind, guarded=guarded))


@pytest.mark.parametrize(
    ("link", "attended", "unattended"),
    [
        (over("loopback"), True, True),
        (over("serial", guarded=True), True, True),
        (over("tcp", guarded=True), True, True),
        (over("serial"), False, False),
        (over("tcp"), False, False),
        (over("visa"), True, False),
        (over("websocket"), True, False),
        (over("visa", guarded=True), False, False),
        (over("carrier pigeon"), False, False),
    ],
)
def test_a_link_energises_by_its_kind_and_by_who_holds_it(
    link: Link, attended: bool, unattended: bool
) -> None:
    assert (may_not_energise(link, attended=True) == "") is attended
    assert (may_not_energise(link, attended=False) == "") is unattended


def heartbeats(break_at_s: float | None, heartbeat_s: float = BEAT_S) -> list[float]:
    """Run a poller for 4 s, whose tick may break; give when it heartbeat."""
    made: list[float] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()

        def tick() -> None:
            if break_at_s is not None and loop.time() >= break_at_s:
                poller.stop()
                raise ValueError("the tick broke")

        guard = cast("Guard", SimpleNamespace(heartbeat_s=heartbeat_s))
        poller = Poller(
            loop, guard, [], 1.0, lambda *_: None, tick, lambda: made.append(loop.time())
        )
        poller.start()
        await asyncio.sleep(4.0)
        poller.stop()
        await asyncio.sleep(1.0)

    if break_at_s is None:
        run(main(), VirtualLoop())
    else:
        with pytest.raises(ValueError, match="the tick broke"):
            run(main(), VirtualLoop())
    return made


def test_the_control_loop_heartbeats_between_its_ticks_and_stops_with_them() -> None:
    whole = heartbeats(None)
    assert len(whole) == 41  # the last one with the tick at 4 s
    assert max(later - sooner for sooner, later in pairwise(whole)) < 1.5 * BEAT_S
    assert whole[-1] == 4.0, "and none after it was stopped"
    assert len(heartbeats(2.0)) == 20, "a tick that breaks is the last"


def test_a_guard_in_this_process_takes_no_heartbeats() -> None:
    assert heartbeats(None, LoopGuard.heartbeat_s) == []


def test_a_flight_opens_no_real_port(short_plan: LabPlan) -> None:
    rows = tuple(
        row.model_copy(update={"link": "serial", "path": f"/dev/{row.name}", "baud": 9600})
        for row in short_plan.file.port
    )
    plan = short_plan.with_file(short_plan.file.model_copy(update={"port": rows}))

    async def main() -> tuple[set[str], set[str]]:
        def lab(**options: Any) -> Lab:
            clock = Clock(asyncio.get_running_loop())
            return Lab(plan, clock=clock, chance=Chance(0), journal=NullJournal(), **options)

        flight = lab(nominal=True)
        real = lab(operator=flight.operator)
        return (
            {link.kind for link in flight.links.values()},
            {link.kind for link in real.links.values()},
        )

    assert run(main(), VirtualLoop()) == ({"loopback"}, {"serial"})
