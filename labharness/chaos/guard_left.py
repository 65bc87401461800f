"""The guard that remains when a simulated harness is gone, like the real guard process."""

import asyncio
import copy
from pathlib import Path

from labharness.chaos.scene import Scene
from labharness.core.vocabulary import Cause, Trip
from labharness.instruments.link import LoopbackLink
from labharness.lab.wiring.simulated_lab import SimulatedLab
from labharness.safety.guard import GuardCore, Latch
from labharness.safety.guard.shell import LoopGuard

REPEAT_S = 1.0  # as in the guard process
GRID_S = 1e-6  # of the loop's clock: it does not advance for a shorter sleep


class GuardLeft:
    """Make the line of a dead harness safe, and repeat what was not obeyed until it is.

    Args:
        sim_lab: The simulated lab.
        scene: The referee's knowledge; ``guarded`` is kept up to date here.
        latch: The file of the latch.
    """

    def __init__(self, sim_lab: SimulatedLab, scene: Scene, latch: Path) -> None:
        self._sim_lab = sim_lab
        self._scene = scene
        self._latch = latch
        self._owing: LoopGuard | None = None

    @property
    def owes(self) -> bool:
        """Return whether some frame was not obeyed, or its effect not seen, at the last try."""
        return self._owing is not None

    def keep(self, guard: object) -> None:
        """Keep the guard of a finished run, if some of its frames were not obeyed."""
        if isinstance(guard, LoopGuard) and guard.core.latched and guard.duty.left(reading=False):
            guard.core.log = None
            self._owing = guard

    def forget(self) -> None:
        """Drop the open frames: the line was reset, or its harness is back."""
        self._owing = None

    async def alone(self, core: GuardCore, procedure: str, why: str, for_s: float) -> Trip:
        """Run a procedure and verify it."""
        now_s = asyncio.get_running_loop().time()
        trip = Trip(Cause.COMMUNICATION, procedure, "harness", None, now_s, why)
        guard = await self._on_links(core)
        guard.trip(trip)
        await self._see_to_it(guard, for_s)
        return trip

    async def wait(self, for_s: float) -> None:
        """Let time pass, in which a guard with open frames continues."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + for_s
        if self._owing is not None:
            guard = await self._on_links(copy.deepcopy(self._owing.core))
            guard.duty = self._owing.duty
            await self._see_to_it(guard, for_s)
        await asyncio.sleep(max(until_s - loop.time(), 0.0))

    async def _on_links(self, core: GuardCore) -> LoopGuard:
        """Return a guard with new links: the other end of its socket is gone."""
        links = {name: LoopbackLink(bus) for name, bus in self._sim_lab.buses.items()}
        for link in links.values():
            await link.open()
        self._scene.guarded = True
        return LoopGuard(core, links, Latch(self._latch))

    async def _see_to_it(self, guard: LoopGuard, for_s: float) -> None:
        """Repeat each second: send again what was not obeyed, and read back."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + for_s
        while until_s - loop.time() > GRID_S and guard.duty.left(reading=True):
            await asyncio.sleep(min(REPEAT_S, until_s - loop.time()))
            guard.insist(reading=True)
        left = guard.duty.left(reading=True)
        self._owing = guard if left else None
        self._scene.guarded = not left  # from then on it vouches for the line
        guard.close()
