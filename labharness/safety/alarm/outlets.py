"""The outlets of a board: the file that other terminals share, and the channels that call people.

Of the file each line is a fact, appended and never changed. The process that owns the line appends
its observations, and people at other terminals their actions; each reads the facts of the others. A
line that the board refuses changes nothing, so there is no lock, and a terminal that is stopped in
the middle of writing blocks no other.

Each channel has a worker, so that none waits for another. Its address may hold a secret: only
apprise gets it, and every message shows the channel's name instead.
"""

import json
import logging
import os
import queue
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Protocol

from labharness.core.clock import utc_text
from labharness.core.errors import LabError
from labharness.core.files.durable import sync_folder
from labharness.core.files.named import open_named, open_own
from labharness.core.texts import ENGLISH
from labharness.core.vocabulary.extras import EXTRAS
from labharness.core.vocabulary.texts import Text, coded, revived
from labharness.safety.alarm import board as alarms

LOOK_BYTES_MAX: Final = 1 << 20
"""Bytes that one look reads; what is left is for the next."""

LINE_BYTES_MAX: Final = 16_384
"""A longer line is not a fact, and is skipped."""

YEARS: Final = range(2000, 3000)
"""A fact of another year is not ours, and its times could not be computed with."""

TEXT_MAX: Final = 500
"""Characters kept of a name, a reason or an observation."""


class AlarmFile:
    """Appends facts and reads those that it has not read yet.

    Args:
        path: The file; its folder must exist when something is appended.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.damaged = 0
        self._read_to = 0
        self._which = (0, 0)

    def append(self, facts: Sequence[alarms.Fact]) -> None:
        """Add facts; on return they survive a power cut.

        Raises:
            OSError: The disk does not take them.
        """
        text = "".join(_line(fact) + "\n" for fact in facts)
        fresh = not self.path.exists()
        handle = open_own(self.path, os.O_RDWR | os.O_APPEND, 0o600)
        try:
            if os.lseek(handle, 0, os.SEEK_END):
                os.lseek(handle, -1, os.SEEK_END)
                if os.read(handle, 1) != b"\n":  # a power cut left half a line
                    text = "\n" + text  # ours begins on its own
            data = text.encode()
            if os.write(handle, data) != len(data):
                raise OSError(28, "only a part could be written")
            os.fsync(handle)
        finally:
            os.close(handle)
        if fresh:
            sync_folder(self.path.parent)

    def look(self) -> tuple[alarms.Fact, ...]:
        """Return the facts that any process appended since the last look; cheap without news.

        A file that was cut short, or another of its name, is read from its beginning: what was
        read already may come again.

        Raises:
            OSError: The file cannot be read.
        """
        try:
            file = open_named(self.path)
        except FileNotFoundError:
            self._read_to = 0
            return ()
        with file:
            now = os.fstat(file.fileno())
            which = (now.st_dev, now.st_ino)
            if which != self._which or now.st_size < self._read_to:
                self._which, self._read_to = which, 0
            file.seek(self._read_to)
            data = file.read(LOOK_BYTES_MAX)
        end = data.rfind(b"\n") + 1
        if not end and len(data) > LINE_BYTES_MAX:
            end = len(data)
        self._read_to += end
        facts = []
        for line in data[:end].splitlines():
            fact = _fact(line)
            if fact is not None:
                facts.append(fact)
            elif line.strip():
                self.damaged += 1
        return tuple(facts)

    def look_at_all(self) -> tuple[alarms.Fact, ...]:
        """Return every fact since the last look, in as many looks as it takes."""
        facts: list[alarms.Fact] = []
        read_to = -1
        while read_to < self._read_to:  # each look moves on, or was the last
            read_to = self._read_to
            facts += self.look()
        return tuple(facts)


def _line(fact: alarms.Fact) -> str:
    why = coded(fact.why if len(fact.why) <= TEXT_MAX else fact.why[:TEXT_MAX])
    cut = {"at": utc_text(fact.at), "who": fact.who[:TEXT_MAX], "why": why}
    return json.dumps(asdict(fact) | cut)


READS: Final[Mapping[str, Callable[[Any], object]]] = {
    "event": alarms.AlarmEvent,
    "alarm": str,
    "at": lambda text: datetime.fromisoformat(text.replace("Z", "+00:00")),
    "role": alarms.Actor,
    "who": str,
    "why": str,
    "severity": alarms.Severity,
    "source": str,
    "rank": int,
    "shelve_s": float,
}
"""The fields of a fact, each with what reads it."""


def _fact(line: bytes) -> alarms.Fact | None:
    if len(line) > LINE_BYTES_MAX:
        return None
    try:
        body = json.loads(line, object_hook=revived)
        fields: dict[str, Any] = {name: read(body[name]) for name, read in READS.items()}
        fact = alarms.Fact(**fields)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return None  # written by hand or by a broken disk: not a fact
    return None if fact.at.tzinfo is None or fact.at.year not in YEARS else fact


ALERT_S_MAX: Final = 10.0
"""Real time (s) from a call to its end on each channel, delivered or known not to be."""

SERVICE_S_MAX: Final = 2.0
"""Time (s) to connect, and again to be answered; with two tries that stays below ALERT_S_MAX."""

TRIES_MAX: Final = 2

QUEUE_MAX: Final = 32
"""Calls that wait for one channel; one more and the channel counts as dead."""

Done = Callable[[str], None]
"""Called with the error; ``""`` when the channel took the message."""


class BadAddress(LabError, ValueError, code="bad_address"):
    """The address of a channel cannot be used; the message names the channel, never the address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertChannel:
    """One way to reach a person.

    Attributes:
        name: Its name in every message.
        severities: The severities that it is called for.
        level: 0 is called at once; each further level five unacknowledged minutes later.
        language: Language of its messages, one of `LANGUAGES`.
    """

    name: str
    severities: frozenset[alarms.Severity] = frozenset(alarms.Severity)
    level: int = 0
    language: str = ENGLISH


def recipients(
    channels: Sequence[AlertChannel],
    severities: Iterable[alarms.Severity],
    level: int,
    dead: str = "",
) -> tuple[AlertChannel, ...]:
    """Return the channels of one level that a call goes to.

    Args:
        channels: All channels.
        severities: Severities of the alarms that call.
        level: Level of recipients.
        dead: The dead channel that the call is about; all others of the level are called.
    """
    return tuple(
        each
        for each in channels
        if each.level == level
        and each.name != dead
        and (dead or not each.severities.isdisjoint(severities))
    )


def strange_addresses(addresses: Mapping[str, str]) -> tuple[str, ...]:
    """Return the channels whose address apprise does not know; none without apprise."""
    if not addresses:
        return ()
    try:
        return tuple(name for name, service in _services(addresses).items() if service is None)
    except ImportError:
        return ()  # `AppriseChannels` reports that


def _services(addresses: Mapping[str, str]) -> dict[str, Any]:
    """Return the service behind each address; ``None`` where apprise knows none."""
    import apprise

    logging.getLogger("apprise").disabled = True  # it writes parts of addresses to its log
    made = apprise.Apprise.instantiate
    return {name: made(each, suppress_exceptions=True) for name, each in addresses.items()}


class Channels(Protocol):
    """Takes messages; never blocks and never raises."""

    def send(self, channel: str, title: str, text: str, done: Done) -> None:
        """Send, and call ``done`` once, from whatever thread."""


class NullSenders:
    """Sends nothing: in virtual time no person is called, and no seed decides an answer."""

    def send(self, channel: str, title: str, text: str, done: Done) -> None:
        """Count it as sent."""
        done("")


class AppriseChannels:
    """Sends by apprise, which knows mail, chat, text messages and a hundred services more.

    Args:
        addresses: An apprise address by channel name.

    Raises:
        BadAddress: apprise is not installed, or does not know an address.
    """

    def __init__(self, addresses: Mapping[str, str]) -> None:
        try:
            services = _services(addresses)
        except ImportError:
            raise BadAddress(f"alerts take apprise: {EXTRAS['apprise'].command}") from None
        self._queues: dict[str, queue.Queue[tuple[str, str, Done]]] = {}
        for name, service in services.items():
            if service is None:
                raise BadAddress(f"alert {name!r}: apprise does not know an address like its url")
            service.socket_connect_timeout = SERVICE_S_MAX
            service.socket_read_timeout = SERVICE_S_MAX
            waiting: queue.Queue[tuple[str, str, Done]] = queue.Queue(QUEUE_MAX)
            self._queues[name] = waiting
            # a daemon: what hangs in a foreign library must not keep the harness from ending
            threading.Thread(
                target=_work, args=(service.notify, waiting), name=f"alert {name}", daemon=True
            ).start()

    def send(self, channel: str, title: str, text: str, done: Done) -> None:
        """Queue a message for its channel's worker."""
        try:
            self._queues[channel].put_nowait((title, text, done))
        except queue.Full:
            done(Text("alarm.channel_queue", count=QUEUE_MAX))


def _work(notify: Callable[..., object], waiting: "queue.Queue[tuple[str, str, Done]]") -> None:
    while True:  # for as long as the process lives
        title, text, done = waiting.get()
        for _ in range(TRIES_MAX):
            why = _sent(notify, title, text)
            if not why:
                break
        done(why)


def _sent(notify: Callable[..., object], title: str, text: str) -> str:
    try:
        return "" if notify(title=title, body=text) else Text("alarm.channel_refuses")
    except Exception as why:  # noqa: BLE001 - whatever breaks a channel, it is dead, and told so
        return Text("alarm.channel_breaks", error=type(why).__name__)


GRAVE: Final = frozenset({alarms.Severity.CRITICAL, alarms.Severity.TRIP})
"""The line is latched or not verified safe, so a person has to know, even after it was left."""


def still_to_call(
    board: alarms.Board, channels: Sequence[AlertChannel], told: Mapping[int, int]
) -> tuple[alarms.AlarmGroup, int] | None:
    """Return a grave unacknowledged group and the next level to call for it.

    Args:
        board: All alarms.
        channels: All channels.
        told: The last level that was called for each group.
    """
    for group in board.groups:
        called = [board.alarms[name].severity for _, name in board.calling(group)]
        if not GRAVE.isdisjoint(called):
            for level in range(told[group.number] + 1, alarms.LEVEL_MAX + 1):
                if recipients(channels, called, level):
                    return group, level
    return None
