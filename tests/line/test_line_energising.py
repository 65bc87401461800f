"""Flights touch no real port."""

import asyncio
from typing import Any

from labharness.core.clock import Chance, Clock, VirtualLoop, run
from labharness.journal.null_journal import NullJournal
from labharness.lab import Lab, LabPlan


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
