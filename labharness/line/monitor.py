"""The monitor of a line: readings go to the kernel and the journal, and what trips is answered.

The kernel says what trips and what only warns; nothing is decided here. A fact that cannot be
written down keeps no byte of making safe back.
"""

import asyncio
from collections.abc import Mapping, Sequence

from labharness.core.vocabulary import Cause, Trip
from labharness.core.vocabulary.texts import Text
from labharness.journal import Journal, JournalFailed
from labharness.line.events import Events
from labharness.line.instrument import BoundScan
from labharness.safety.guard import Guard
from labharness.safety.kernel import Memory, observe, tick

__all__ = ["Monitor"]


class Monitor:
    """Tells the kernel what a line measures, and carries out what it answers.

    Attributes:
        journal_lost: Why the journal could not be written; ``""`` while it can.

    Args:
        memory: The kernel's.
        guard: Told that this loop lives, and when what was judged holds no longer.
        journal: Where facts and samples go.
        loop: Whose time it keeps.
        events: Run the procedure of a trip, and tell of what is found. A warning of a channel is
            shown the first time it comes.
    """

    def __init__(
        self,
        *,
        memory: Memory,
        guard: Guard,
        journal: Journal,
        loop: asyncio.AbstractEventLoop,
        events: Events,
    ) -> None:
        self.journal_lost = ""
        self._memory = memory
        self._guard = guard
        self._journal = journal
        self._loop = loop
        self._events = events
        self._warned: set[tuple[str, object]] = set()
        self._changes = 0
        guard.on_offline_log = self.keep

    def take(self, scan: BoundScan, values: tuple[float, ...]) -> None:
        """Fold the values of a scan into memory, answer what they show, and keep them."""
        now = self._loop.time()
        trips = observe(self._memory, scan.tracks, values, now)
        if trips:
            self._answer(trips)  # first: to keep a sample may take a disk
        try:
            self._journal.sample(scan.stream, now, values)
        except JournalFailed as why:
            self.lose_journal(str(why))
        if self._memory.changes != self._changes:
            self._changes = self._memory.changes
            self._guard.new_epoch()

    def tick(self) -> None:
        """Let the kernel see what time has passed, and answer what that shows: silence trips."""
        trips = tick(self._memory, self._loop.time())
        if trips:
            self._answer(trips)

    def heartbeat(self) -> None:
        """Tell the guard that this loop lives, and what makes safe in the state the line is in."""
        memory = self._memory
        lost = memory.envelope.procedure_of[Cause.COMMUNICATION]
        if memory.trip is not None:  # a guard that begins anew goes on with it
            lost = memory.trip.procedure
        self._guard.heartbeat(memory.procedure(lost))

    def record(self, kind: str, body: Mapping[str, object]) -> int:
        """Write down a fact; return its number.

        Raises:
            JournalFailed: It could not be written down.
        """
        return self._journal.append(kind, body, self._loop.time())

    def note(self, kind: str, body: Mapping[str, object]) -> None:
        """Write down what cannot wait for a record: making safe goes on without a journal."""
        try:
            self.record(kind, body)
        except JournalFailed as why:
            self.journal_lost = str(why)

    def keep(self, log: Sequence[Mapping[str, object]]) -> bool:
        """Write down what a guard did without a harness; return whether a disk has all of it."""
        try:
            for each in log:
                self.record("guard_log", each)
            self._journal.commit()
        except JournalFailed as why:
            self.journal_lost = str(why)
            return False
        return self._journal.keeps

    def lose_journal(self, why: str) -> None:
        """Trip: a line whose facts are lost is not driven on (law 8)."""
        self.journal_lost = why
        procedure = self._memory.envelope.procedure_of[Cause.JOURNAL_LOST]
        now = self._loop.time()
        self._answer((Trip(Cause.JOURNAL_LOST, procedure, "journal", None, now, why),))

    def lose_link(self, port: str, why: str) -> None:
        """Trip: nobody knows any more what stands behind a link."""
        procedure = self._memory.envelope.procedure_of[Cause.COMMUNICATION]
        now = self._loop.time()
        self._answer((Trip(Cause.COMMUNICATION, procedure, port, None, now, why),))

    def _answer(self, trips: Sequence[Trip]) -> None:
        severe = sorted((each for each in trips if each.procedure), key=lambda t: t.cause.rank)
        mild = [each for each in trips if not each.procedure]
        for each in severe:
            self._events.on_trip(each)  # the gravest runs before anybody is told (law 2)
        for each in mild:
            about = (each.channel, _rule(each.detail))  # a rule may bear on many channels
            if about not in self._warned:
                self._warned.add(about)
                self.note("warning", {"detail": each.detail})
                self._events.on_warning(each.detail)
        for each in mild:
            self._events.on_abnormal(each)


def _rule(detail: str) -> object:
    """Return the row that a warning is of; of one without a row all that it says."""
    return detail.params.get("row", detail) if isinstance(detail, Text) else detail
