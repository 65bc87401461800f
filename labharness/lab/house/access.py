"""The house as a service uses it: requests are carried out in the house's own thread."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from labharness.lab.house.house import House
from labharness.lab.house.made import Submitted
from labharness.lab.house.orders import LineOwnerDoor, RunFiles
from labharness.lab.house.outgoing import TaskMessages
from labharness.lab.house.sessions import abort_session, warn_caller
from labharness.protocols.hcp.codec import HcpMessage
from labharness.work.admission.confidential import Way
from labharness.work.task.record import Tasks

__all__ = ["Face", "HouseAccess"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class HouseAccess:
    """A house that is up.

    Attributes:
        lab_id: Id of the lab; it is the id of the callee.
        home: The lab's state directory.
        runs: The folders of its runs.
        owner: Its line owner.
        with_house: Calls a function with the house, in the house's own thread, and returns what it
            returns; the next turn of the house follows at once.
        tasks: Returns the tasks as they are.
        changed: Set whenever something may have changed; the face clears it.
    """

    lab_id: str
    home: Path
    runs: RunFiles
    owner: LineOwnerDoor
    with_house: Callable[[Callable[[House], T]], Awaitable[T]]
    tasks: Callable[[], Tasks]
    changed: asyncio.Event

    async def submit(
        self, data: bytes, decoded: HcpMessage, via: str, way: Way, traceparent: object = None
    ) -> Submitted:
        """Keep a submission; raises as `House.submit`.

        A caller's ``traceparent`` is of use where tasks are traced alone.
        """
        return await self.with_house(
            lambda house: house.submit(data, via=via, way=way, decoded=decoded)
        )

    async def abort(self, caller_id: str, session_id: str, token: str, reason: str) -> str:
        """Carry out the abort of a session by its caller; as `abort_session`."""
        with TaskMessages(self.home) as kept:
            return await self.with_house(
                lambda house: abort_session(house, kept, caller_id, session_id, token, reason)
            )

    async def warn(self, session_id: str, code: str) -> None:
        """Have a run tell its caller of a refused request; as `warn_caller`."""
        await self.with_house(lambda _: warn_caller(self.owner, session_id, code))


Face = Callable[[HouseAccess], Awaitable[None]]
"""Serves callers until it is cancelled; a face that returns or raises ends its house."""
