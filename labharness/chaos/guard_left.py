"""The guard that stays with the simulated lab when its harness has gone, as the real one does."""

import asyncio
import copy
from pathlib import Path

from labharness.chaos.rules import Scene
from labharness.core.vocabulary import Cause, Trip
from labharness.instruments.link import LoopbackLink
from labharness.lab.wiring.simulated import SimulatedLab
from labharness.safety.guard import GuardCore, Latch
from labharness.safety.guard.shell import LoopGuard

__all__ = ["GuardLeft"]

REPEAT_S = 1.0  # as the guard's process has it
GRID_S = 1e-6  # of the loop's clock: a shorter sleep would not move it


class GuardLeft:
    """Makes safe what a harness left, and goes on with what nobody has obeyed until it is so.

    Args:
        sim_lab: Where.
        scene: What the referee knows; it is told whether a guard answers for the simulated lab.
        latch: The file of the latch.
    """

    def __init__(self, sim_lab: SimulatedLab, scene: Scene, latch: Path) -> None:
        self._sim_lab = sim_lab
        self._scene = scene
        self._latch = latch
        self._owing: LoopGuard | None = None

    @property
    def owes(self) -> bool:
        """Return whether something was not obeyed, or not seen, when it was asked last."""
        return self._owing is not None

    def keep(self, guard: object) -> None:
        """Keep the guard of a run that has ended, if it leaves frames that nobody has obeyed."""
        if isinstance(guard, LoopGuard) and guard.core.latched and guard.duty.left(reading=False):
            guard.core.log = None
            self._owing = guard

    def forget(self) -> None:
        """Owe nothing any more: the line was reset, or its harness is back."""
        self._owing = None

    async def alone(self, core: GuardCore, procedure: str, why: str, for_s: float) -> Trip:
        """Run a procedure, and see to it."""
        now_s = asyncio.get_running_loop().time()
        trip = Trip(Cause.COMMUNICATION, procedure, "harness", None, now_s, why)
        guard = await self._on_links(core)
        guard.trip(trip)
        await self._see_to_it(guard, for_s)
        return trip

    async def wait(self, for_s: float) -> None:
        """Let time pass, in which a guard that owes something goes on with it."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + for_s
        if self._owing is not None:
            guard = await self._on_links(copy.deepcopy(self._owing.core))
            guard.duty = self._owing.duty
            await self._see_to_it(guard, for_s)
        await asyncio.sleep(max(until_s - loop.time(), 0.0))

    async def _on_links(self, core: GuardCore) -> LoopGuard:
        """Return a guard on links of its own: who was at the other end of its socket is gone."""
        links = {name: LoopbackLink(bus) for name, bus in self._sim_lab.buses.items()}
        for link in links.values():
            await link.open()
        self._scene.guarded = True
        return LoopGuard(core, links, Latch(self._latch))

    async def _see_to_it(self, guard: LoopGuard, for_s: float) -> None:
        """Have it send again what was not obeyed, and read back what can be read, each second."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + for_s
        while until_s - loop.time() > GRID_S and guard.duty.left(reading=True):
            await asyncio.sleep(min(REPEAT_S, until_s - loop.time()))
            guard.insist(reading=True)
        left = guard.duty.left(reading=True)
        self._owing = guard if left else None
        self._scene.guarded = not left  # then it vouches for it
        guard.close()
