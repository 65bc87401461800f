"""``labharness serve``: the house of a lab, reachable for callers over a message broker."""

import argparse
import asyncio
from pathlib import Path
from typing import Final

from labharness.core.clock import pause
from labharness.core.vocabulary.texts import Text
from labharness.faces.cli import EXIT_COMPLETED
from labharness.faces.cli.brokers import broker_of
from labharness.faces.cli.show import chosen_lab, complain, looking
from labharness.faces.service.amqp import AmqpFace
from labharness.lab import LabPlan
from labharness.lab.config.lease import Leased
from labharness.lab.house.access import HouseAccess
from labharness.lab.house.house_process import HouseProcess
from labharness.lab.house.start import NotUp, bring_up_owner

__all__ = ["serve"]

STAND_BY_S: Final = 1.0
"""Time (s) between two tries to take over from another house of this lab."""


OWNER_LOOK_S: Final = 2.0
OWNER_LOOK_S_MAX: Final = 60.0
"""Longest time (s) between two looks at a line owner that does not come up."""


def serve(chosen: argparse.Namespace) -> int:
    """Serve until a stop request; return the exit code."""
    plan = chosen_lab(chosen.lab)
    broker = broker_of(chosen)
    with looking(plan.state_dir):
        plan.must_hold()
        stands_by = False
        while True:
            face = AmqpFace(broker, complain)

            async def served(house: HouseAccess, face: AmqpFace = face) -> None:
                keeping = asyncio.ensure_future(_keep_owner(plan, chosen.speed))
                try:
                    await face(house)
                finally:
                    keeping.cancel()

            try:
                bring_up_owner(plan, chosen.speed)
                HouseProcess(plan.path.resolve(), Path(chosen.runs), served).run()
            except Leased as why:
                if not stands_by:
                    complain(Text("hcp.stands_by", why=str(why)))
                stands_by = True
                pause(STAND_BY_S)
                continue
            return EXIT_COMPLETED


async def _keep_owner(plan: LabPlan, speed: float | None) -> None:
    """Start the line owner again whenever it has died; a line that it left is latched."""
    wait_s = OWNER_LOOK_S
    while True:
        await asyncio.sleep(wait_s)
        try:
            await asyncio.to_thread(bring_up_owner, plan, speed)
            wait_s = OWNER_LOOK_S
        except (NotUp, OSError) as why:
            complain(str(why))
            wait_s = min(2 * wait_s, OWNER_LOOK_S_MAX)
