"""The monitor of a line: it passes readings to the kernel and the journal, and answers trips.

The kernel decides what trips and what only warns. A fact that cannot be recorded delays no byte of
a procedure.
"""

import asyncio
import math
from collections.abc import Mapping, Sequence

from labharness.core.vocabulary import Cause, Trip
from labharness.core.vocabulary.channels import owner_of
from labharness.core.vocabulary.texts import Text
from labharness.journal import Journal, JournalFailed
from labharness.line.events import Events
from labharness.line.instrument import BoundScan
from labharness.safety.guard import Guard
from labharness.safety.kernel import Memory, observe, tick
from labharness.safety.kernel.modes import LIVE


class Monitor:
    """Passes the readings of a line to the kernel, and carries out its answers.

    Attributes:
        journal_lost: Reason why the journal could not be written; ``""`` while it can.

    Args:
        memory: The kernel's memory.
        guard: Gets the heartbeats, and a new epoch when a verdict may no longer hold.
        journal: Gets facts and samples.
        loop: The event loop.
        events: Run the procedure of a trip, and report trips and warnings. A warning of a channel
            is shown the first time.
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
        self._otherwise: dict[str, dict[str, str]] = {}  # by instrument and scan, the reason
        self._warned: set[tuple[str, object]] = set()
        self._changes = 0
        guard.on_offline_log = self.keep

    def take(self, scan: BoundScan, values: tuple[float, ...]) -> str:
        """Fold the values of a scan into memory, answer its trips, and record the values.

        Returns:
            The reason why they do not count: the instrument is set otherwise; ``""`` if they do.
        """
        wrong = self._otherwise.get(scan.instrument)
        if wrong:
            wrong.pop(scan.scan.name, None)
            if wrong:
                return "; ".join(wrong.values())
        now = self._loop.time()
        trips = observe(self._memory, scan.tracks, values, now)
        if trips:
            self._answer(trips)  # first, because recording a sample may wait for a disk
        try:
            if values:
                self._journal.sample(scan.stream, now, values)
        except JournalFailed as why:
            self.lose_journal(str(why))
        if self._memory.changes != self._changes:
            self._changes = self._memory.changes
            self._guard.new_epoch()
        return ""

    def fault(self, scan: BoundScan, why: str) -> None:
        """Take an instrument's refusal of a scan that proves how it is set.

        Its readings are in another unit, or of another gas: they are unknown until all is right.
        """
        wrong = self._otherwise.setdefault(scan.instrument, {})
        known = scan.scan.name in wrong
        if not scan.proves or known:
            return
        wrong[scan.scan.name] = why
        detail = Text("instrument.otherwise", instrument=scan.instrument, why=why)
        self.note("warning", {"detail": detail})
        self._events.on_warning(detail)
        self._guard.new_epoch()
        memory, now = self._memory, self._loop.time()
        for channel, track in memory.tracks.items():
            if owner_of(channel) == scan.instrument:  # as before its first reading
                track.value, track.at_s = math.nan, -math.inf
        counts = [
            watch for watch, _ in memory.watched if owner_of(watch.channel) == scan.instrument
        ]
        if memory.mode in LIVE:
            cause = Cause.COMMUNICATION
            self._answer(
                [Trip(cause, each.procedure, each.channel, None, now, detail) for each in counts]
            )

    def tick(self) -> None:
        """Let time pass in the kernel, and answer its trips: silence trips too."""
        trips = tick(self._memory, self._loop.time())
        if trips:
            self._answer(trips)

    def heartbeat(self) -> None:
        """Send the guard a heartbeat, with the procedure for the present state of the line."""
        memory = self._memory
        lost = memory.envelope.procedure_of[Cause.COMMUNICATION]
        if memory.trip is not None:  # a guard that begins anew goes on with it
            lost = memory.trip.procedure
        self._guard.heartbeat(memory.procedure(lost))

    def record(self, kind: str, body: Mapping[str, object]) -> int:
        """Record a fact; return its number.

        Raises:
            JournalFailed: It could not be recorded.
        """
        return self._journal.append(kind, body, self._loop.time())

    def note(self, kind: str, body: Mapping[str, object]) -> None:
        """Record a fact if the journal takes it: making safe goes on without a journal."""
        try:
            self.record(kind, body)
        except JournalFailed as why:
            self.journal_lost = str(why)

    def keep(self, log: Sequence[Mapping[str, object]]) -> bool:
        """Record the log of a guard without a harness; return whether all of it is on a disk."""
        try:
            for each in log:
                self.record("guard_log", each)
            self._journal.commit()
        except JournalFailed as why:
            self.journal_lost = str(why)
            return False
        return self._journal.keeps

    def lose_journal(self, why: str) -> None:
        """Trip: a line without a record of its facts must not go on (law 8)."""
        self.journal_lost = why
        procedure = self._memory.envelope.procedure_of[Cause.JOURNAL_LOST]
        now = self._loop.time()
        self._answer((Trip(Cause.JOURNAL_LOST, procedure, "journal", None, now, why),))

    def lose_link(self, port: str, why: str) -> None:
        """Trip: the instruments behind a link are not known any more."""
        procedure = self._memory.envelope.procedure_of[Cause.COMMUNICATION]
        now = self._loop.time()
        self._answer((Trip(Cause.COMMUNICATION, procedure, port, None, now, why),))

    def _answer(self, trips: Sequence[Trip]) -> None:
        severe = sorted((each for each in trips if each.procedure), key=lambda t: t.cause.rank)
        mild = [each for each in trips if not each.procedure]
        for each in severe:
            self._events.on_trip(each)  # the gravest runs before any listener is called (law 2)
        for each in mild:
            about = (each.channel, _rule(each.detail))  # a rule may bear on many channels
            if about not in self._warned:
                self._warned.add(about)
                self.note("warning", {"detail": each.detail})
                self._events.on_warning(each.detail)
        for each in mild:
            self._events.on_abnormal(each)


def _rule(detail: str) -> object:
    """Return the row of a warning; its whole text if it has none."""
    return detail.params.get("row", detail) if isinstance(detail, Text) else detail
