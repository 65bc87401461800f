"""The alarms of a line: each fault is raised, journaled and sent to people.

It only listens to the line: a trip has sent its bytes, closed its latch and made its record before
anything here runs, and nothing here can delay it. A channel that fails, a full disk or a lost
journal leaves the alarms in memory as they are.
"""

import asyncio
import shlex
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Final

from labharness.core.clock import Clock
from labharness.core.vocabulary import Cause, Trip
from labharness.core.vocabulary.texts import Text, in_language
from labharness.journal import JournalFailed
from labharness.line.line import Line
from labharness.line.procedures import Verification
from labharness.line.trip_response import LATCH_S_MAX
from labharness.safety.alarm.board import (
    ESCALATE_AFTER,
    HOUSE,
    Actor,
    AlarmEvent,
    AlarmGroup,
    Board,
    Fact,
    Severity,
    expired,
    left_over,
    level_due,
    longest_s,
    take,
    watch_anew,
)
from labharness.safety.alarm.outlets import (
    ALERT_S_MAX,
    AlarmFile,
    AlertChannel,
    Channels,
    recipients,
    still_to_call,
)
from labharness.safety.guard import not_tried
from labharness.safety.kernel import Bound, Mode

OFF_DELAY_S: Final = 60.0
"""Lab time (s) for which a cause must be gone before its alarm is inactive (OffDelay of Part 9)."""

CLOSE_S_MAX: Final = 2 * ALERT_S_MAX
"""Real time (s) that the end of a run waits for: a channel that dies, and the others told of it."""

UNSAVED_MAX: Final = 1_000
"""Facts that wait for a disk that takes none; older ones are in memory and in the journal."""

SAVE_S_MAX: Final = 10.0
"""Real time (s) after which a disk that has not answered counts as one that takes none."""

HEAR_S: Final = 1.0
"""Real time (s) between two looks at what people did, once the line is no longer polled."""

LATCH: Final = "latch_not_saved"
RECORD: Final = "alarms_not_saved"
CHANNEL: Final = "alert_channel/"
UNVERIFIED: Final = "not_verified/"


def alarm_name(trip: Trip) -> str:
    """Return the name of the alarm of a trip or a warning of the line."""
    kind = "" if trip.procedure else "/warning"
    return f"{trip.cause.value}/{trip.channel}{kind}"


def _rank(cause: Cause) -> int:
    """Return a trip's place among alarms: a gas leak calls people in any case."""
    return 0 if cause is Cause.GAS_LEAK else 1 + cause.rank


@dataclass(eq=False, kw_only=True)
class LineAlarms:
    """The alarms of one line while a process owns it.

    Attributes:
        line: The line; its journal gets the facts.
        clock: Lab time for events of the line, world time for actions of people.
        file: The file of the facts, to which other terminals add theirs.
        channels: The channels to people.
        senders: Sends on the channels.
        title: Title of the lab, for the messages.
        option: Option of a command that names the lab; ``""`` if it needs none.
    """

    line: Line
    clock: Clock
    file: AlarmFile
    channels: Sequence[AlertChannel]
    senders: Channels
    title: str
    option: str = ""

    def __post_init__(self) -> None:
        self.board = Board()
        self.calls = 0
        self._causes: dict[str, Trip] = {}
        self._gone_s: dict[str, float] = {}
        self._pending: list[Fact] = []
        self._unsaved: list[Fact] = []
        self._unlatched_s: float | None = None  # since when a latch waits for the disk
        self._saving: asyncio.Future[None] | None = None
        self._heard: set[Fact] = set()
        self._told: dict[int, int] = {}
        self._called_s: dict[int, dict[str, float]] = {}
        self._sending: dict[int, asyncio.TimerHandle] = {}
        self._sent = 0
        self._ended_one = asyncio.Event()
        self._given_up = asyncio.Event()
        self._begin()
        self.line.events.on_abnormal = self._saw
        self.line.events.on_tick = self._tick
        self.line.events.on_close = self._close
        self.line.events.on_verified = self._verified

    def _begin(self) -> None:
        """Take over the states of earlier processes, without their causes."""
        with suppress(OSError):  # a file that cannot be read prevents no warning
            for fact in self.file.look_at_all():
                self.board = take(self.board, fact).board
                if _by_others(fact):
                    self._heard.add(fact)
            if old := left_over(self.board, self.clock.utc()):
                self.file.append(old)
        for fact in left_over(self.board, self.clock.utc()):
            self.board = take(self.board, fact).board
        self.board = watch_anew(self.board)

    async def _close(self) -> None:
        """Wait, for a limited time, until messages are sent and facts saved, or have failed."""
        self._watch_latch()
        self._flush()
        self.line.events.on_abnormal = lambda trip: None
        self.line.events.on_tick = lambda: None
        await self._sent_and_saved()

    async def _sent_and_saved(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._lab_s(CLOSE_S_MAX)):
                while self._sending or self._saving:
                    self._ended_one.clear()
                    await self._ended_one.wait()
                    if self._pending:
                        self._flush()  # a channel that died is told on the others
        for timer in self._sending.values():
            timer.cancel()
        if self._saving:
            self._saving.cancel()  # the disk may still take them later

    async def answered(self, tell: Callable[[str], None]) -> None:
        """Go on calling for a line that was left, until one person knows or all were called.

        Only grave alarms count. It ends by itself, because each level is called at its time.

        Args:
            tell: Called with the reason of the wait.
        """
        self._given_up.clear()
        said = ("", 0)
        while still := still_to_call(self.board, self.channels, self._told):
            group, level = still
            name = self.board.calling(group)[0][1]
            if self._given_up.is_set():
                tell(Text("alarm.nobody_further", alarm=name))
                break
            if said != (name, level):
                said = (name, level)
                waited_s = longest_s(self.board, group, self._waited_s(group))
                due = self.clock.utc() + level * ESCALATE_AFTER - timedelta(seconds=waited_s)
                tell(Text("alarm.next_level", alarm=name, at=f"{due:%H:%M}"))
            with suppress(TimeoutError):
                async with asyncio.timeout(self._lab_s(HEAR_S)):
                    await self._given_up.wait()
            self._hear()
            self._escalate()
        await self._sent_and_saved()

    def give_up(self) -> None:
        """Stop waiting for an acknowledgement."""
        self._given_up.set()

    # ---- events of the line

    def _saw(self, trip: Trip) -> None:
        name = alarm_name(trip)
        if name in self._causes:
            self._gone_s.pop(name, None)
            return
        if trip.procedure and self.line.memory.mode is Mode.DISARMED:
            return  # a disarmed line does not trip
        self._causes[name] = trip
        # an idle line has lost a state that it should keep: only people can act
        idle = self.line.memory.mode is Mode.DISARMED and trip.value is None
        alone = Severity.FAULT if idle else Severity.WARNING
        severity = Severity.TRIP if trip.procedure else alone
        if name in self._active(name):
            self._end_unheard(name)
        self._raise(name, severity, trip.detail, rank=_rank(trip.cause))
        self._watch_latch()

    def _verified(self, verification: Verification) -> None:
        procedure, steps = verification.procedure, verification.unverified()
        if verification.complete:
            for name in self._active(UNVERIFIED):
                self._clear(name, Text("alarm.verified", procedure=procedure))
        else:
            why = Text("alarm.unverified", procedure=procedure, steps=steps)
            self._raise(UNVERIFIED + procedure, Severity.CRITICAL, why)

    def _tick(self) -> None:
        self._watch_latch()
        self._clear_what_is_gone()
        self._hear()
        if self.board.alarms:
            for fact in expired(self.board, self.clock.utc()):
                self._tell(fact)
            self._escalate()
        self._save()

    def _escalate(self) -> None:
        """Call the levels that are due for unacknowledged groups."""
        for group in self.board.groups:
            due = level_due(self.board, group, self._waited_s(group))
            for level in range(self._told[group.number] + 1, due + 1):
                self._told[group.number] = level
                self._call(group, level)

    def _waited_s(self, group: AlarmGroup) -> dict[str, float]:
        """Return for how long each alarm of a group has called, in real time."""
        now_s = self.clock.now_s()
        called_s = self._called_s[group.number]
        return {name: (now_s - at_s) / self._lab_s(1.0) for name, at_s in called_s.items()}

    def _watch_latch(self) -> None:
        error = self.line.guard.latch.write_error
        if not_tried(error):  # a procedure's bytes go before it
            if self._unlatched_s is None:
                self._unlatched_s = self.clock.now_s()
            if self.clock.now_s() - self._unlatched_s < self._lab_s(LATCH_S_MAX):
                return
        else:
            self._unlatched_s = None
        if error:
            self._raise(LATCH, Severity.CRITICAL, Text("latch.unsaved", why=str(error)))
        elif self._active(LATCH):
            self._clear(LATCH, Text("latch.saved"))

    def _clear_what_is_gone(self) -> None:
        now_s = self.clock.now_s()
        for name, trip in tuple(self._causes.items()):
            if self._stands(trip):
                self._gone_s.pop(name, None)
            elif now_s - self._gone_s.setdefault(name, now_s) >= OFF_DELAY_S:
                del self._causes[name], self._gone_s[name]
                self._clear(name, Text("alarm.gone"))

    def _stands(self, trip: Trip) -> bool:
        """Return whether a cause is still there; an unknown one is."""
        line, now_s = self.line, self.clock.now_s()
        if trip.cause is Cause.JOURNAL_LOST:
            return bool(line.monitor.journal_lost)
        tracks = line.memory.tracks
        track = tracks.get(trip.channel)  # the guard, this process and a person's hand have none
        if trip.value is not None:
            if track is not None and track.foreign():
                return True
            return any(
                row.cause is trip.cause and not row.low <= line.latest(row.channel) <= row.high
                for row in (track.rows if track else ())
            )
        if trip.cause is Cause.COMMUNICATION:  # a guard that is back lets every channel be read
            heard = (trip.channel,) if track else line.envelope.watches
            return not all(tracks[each].fresh(now_s) for each in heard)
        return any(
            rule.row.on_loss
            and line.memory.energised(rule, now_s)
            and not line.memory.holds(condition, now_s)
            for rule in line.memory.rules
            for condition in rule.row.require
            if trip.channel == (condition.channel if isinstance(condition, Bound) else "purge")
        )

    # ---- facts

    def _active(self, prefix: str) -> tuple[str, ...]:
        return tuple(
            name
            for name, alarm in self.board.alarms.items()
            if alarm.state.active and name.startswith(prefix)
        )

    def _raise(
        self, name: str, severity: Severity, why: str, *, source: str = "line", rank: int = 0
    ) -> None:
        if name not in self._active(name):
            fact = self._fact(AlarmEvent.ACTIVATE, name, why)
            self._tell(replace(fact, severity=severity, source=source, rank=rank))

    def _end_unheard(self, name: str) -> None:
        """End an alarm that an earlier process left latched and active: this one sees it anew.

        Until then it stands, because its trip may still be in force. No journal tells of it: the
        same seed gives the same one, whatever was left.
        """
        fact = self._fact(AlarmEvent.DEACTIVATE, name, Text("alarm.anew"))
        self.board = take(self.board, fact).board
        self._unsaved.append(fact)

    def _clear(self, name: str, why: str) -> None:
        self._tell(self._fact(AlarmEvent.DEACTIVATE, name, why))

    def _fact(self, event: AlarmEvent, name: str, why: str) -> Fact:
        return Fact(event=event, alarm=name, at=self.clock.utc(), why=why)

    def _tell(self, fact: Fact) -> None:
        """Queue a fact; disk and people come when the callback that found it has ended."""
        if any((each.event, each.alarm) == (fact.event, fact.alarm) for each in self._pending):
            return
        if not self._pending:
            self.clock.loop.call_soon(self._flush)
        self._pending.append(fact)

    def _flush(self) -> None:
        """Take the waiting facts and call people; the disk comes last and delays no call."""
        self._hear()
        facts, self._pending = self._pending, []
        for fact in facts:
            self._take(fact)
        self._unsaved = [*self._unsaved, *facts][-UNSAVED_MAX:]
        self._save()

    def _hear(self) -> None:
        """Take the facts that other terminals added to the file.

        Our own facts in it are known. The action of a person counts once, even if the file was put
        back or cut short and is read again: an old action acknowledges no new alarm.
        """
        with suppress(OSError):  # the next look may see it
            for fact in self.file.look():
                if _by_others(fact) and fact not in self._heard:
                    self._heard.add(fact)
                    self._take(fact)

    def _save(self) -> None:
        """Have a thread save the unsaved facts, one write at a time."""
        if self._saving or not self._unsaved:
            return
        facts, self._unsaved = self._unsaved, []
        loop = self.clock.loop
        self._saving = loop.run_in_executor(None, self.file.append, facts)
        late = loop.call_later(
            self._lab_s(SAVE_S_MAX), self._not_saved, Text("alarm.no_answer", within_s=SAVE_S_MAX)
        )
        self._saving.add_done_callback(partial(self._saved, facts, late))

    def _saved(
        self, facts: list[Fact], late: asyncio.TimerHandle, saving: "asyncio.Future[None]"
    ) -> None:
        self._saving = None
        late.cancel()
        self._ended_one.set()
        if saving.cancelled():
            return
        try:
            saving.result()
        except OSError as why:
            self._unsaved = [*facts, *self._unsaved][-UNSAVED_MAX:]
            self._not_saved(why.strerror or str(why))
            return
        self._take(self._fact(AlarmEvent.DEACTIVATE, RECORD, Text("alarm.saved")))
        self._save()  # what came meanwhile

    def _not_saved(self, why: str) -> None:
        text = Text("alarm.unwritten", file=self.file.path.name, why=str(why))
        fact = self._fact(AlarmEvent.ACTIVATE, RECORD, text)
        self._take(replace(fact, severity=Severity.FAULT, source=HOUSE))

    def _take(self, fact: Fact) -> None:
        """Have the board take a fact; a refused one, for example a second end, changes nothing."""
        taken = take(self.board, fact)
        if taken.refusal:
            return
        self.board = taken.board
        group = self.board.group_of(fact.alarm)
        alarm = self.board.alarms[fact.alarm]
        self._record(
            "alarm",
            {
                "event": fact.event.value,
                "alarm": fact.alarm,
                "severity": alarm.severity.value,
                "role": fact.role.value,
                "who": fact.who,
                "why": fact.why,
                "first_out": group.first_out if group is not None else None,
                "called": taken.call is not None,
            },
        )
        if taken.call is not None:
            number = taken.call.number
            self._told.setdefault(number, 0)
            self._called_s.setdefault(number, {})[fact.alarm] = self.clock.now_s()
            self._call(taken.call, 0)

    def _record(self, kind: str, body: dict[str, object]) -> None:
        with suppress(JournalFailed):  # the line trips on it, and that is an alarm of its own
            self.line.journal.append(kind, body, self.clock.now_s())

    # ---- people

    def _call(self, group: AlarmGroup, level: int) -> None:
        """Call the recipients of one level of a group."""
        names = [name for _, name in self.board.calling(group)]
        if not level:
            names = names[-1:]
        self.calls += 1
        alarms = [self.board.alarms[name] for name in names]
        severity = alarms[-1].severity
        title = Text("alarm.title", lab=self.title, severity=severity, alarm=names[-1])
        if level:
            late_min = level * ESCALATE_AFTER.total_seconds() / 60
            title = Text("alarm.title_late", title=title, late_min=late_min)
        who = f"--name NAME --reason REASON{self.option}"
        lines = [
            *(each.detail for each in alarms),
            Text("alarm.first_out", alarm=group.first_out, count=len(group.members)),
            f"labharness alarms ack {shlex.quote(group.first_out)} {who}",
            Text("alarm.look", command=f"labharness watch{self.option}"),
        ]
        if any(self.board.alarms[name].state.latched for name in group.members):
            lines.append(Text("alarm.reset", command=f"labharness reset {who}"))
        dead = names[-1].removeprefix(CHANNEL) if names[-1].startswith(CHANNEL) else ""
        told = recipients(self.channels, [each.severity for each in alarms], level, dead)
        for channel in told:
            self._send(channel, names[-1], level, title, Text("alarm.message", lines=lines))

    def _send(self, to: AlertChannel, alarm: str, level: int, title: str, text: str) -> None:
        self._sent += 1
        number, loop = self._sent, self.clock.loop
        ended: Callable[[str], None] = partial(self._ended, number, to.name, alarm, level)
        self._sending[number] = loop.call_later(
            self._lab_s(ALERT_S_MAX), ended, Text("alarm.no_answer", within_s=ALERT_S_MAX)
        )

        def done(why: str) -> None:
            with suppress(RuntimeError):  # the loop has ended, and this process with it
                loop.call_soon_threadsafe(ended, why)

        title, text = in_language(title, to.language), in_language(text, to.language)
        self.senders.send(to.name, title, text, done)

    def _ended(self, number: int, channel: str, alarm: str, level: int, why: str) -> None:
        timer = self._sending.pop(number, None)
        if timer is None:  # it had ended by its time
            return
        timer.cancel()
        self._ended_one.set()
        self._record("alert", {"channel": channel, "alarm": alarm, "level": level, "error": why})
        if why:
            text = Text("alarm.channel", channel=channel, why=str(why))
            self._raise(CHANNEL + channel, Severity.FAULT, text, source=HOUSE)
        elif CHANNEL + channel in self._active(CHANNEL):
            self._clear(CHANNEL + channel, Text("alarm.channel_works"))

    def _lab_s(self, real_s: float) -> float:
        """Return a real duration in seconds of this loop."""
        return real_s * (self.clock.speed or 1.0)


def _by_others(fact: Fact) -> bool:
    """Return whether another terminal may have written a fact while this process owns the line."""
    return fact.role is not Actor.SYSTEM or fact.event is AlarmEvent.UNSHELVE
