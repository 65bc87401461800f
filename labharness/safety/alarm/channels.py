"""The channels that call people: one worker for each, so that none waits for another.

A channel's address may hold a secret. Only apprise gets it; every message shows the channel's name
instead.
"""

import logging
import queue
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from labharness.core.errors import LabError
from labharness.core.languages import ENGLISH
from labharness.core.vocabulary.extras import EXTRAS
from labharness.core.vocabulary.texts import Text
from labharness.safety.alarm.states import Severity

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
    severities: frozenset[Severity] = frozenset(Severity)
    level: int = 0
    language: str = ENGLISH


def recipients(
    channels: Sequence[AlertChannel], severities: Iterable[Severity], level: int, dead: str = ""
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
        import apprise
    except ImportError:
        return ()  # `AppriseChannels` reports that
    logging.getLogger("apprise").disabled = True  # it writes parts of addresses to its log
    return tuple(
        name
        for name, address in addresses.items()
        if apprise.Apprise.instantiate(address, suppress_exceptions=True) is None
    )


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
            import apprise
        except ImportError:
            raise BadAddress(f"alerts take apprise: {EXTRAS['apprise'].command}") from None
        logging.getLogger("apprise").disabled = True  # it writes parts of addresses to its log
        self._queues: dict[str, queue.Queue[tuple[str, str, Done]]] = {}
        for name, address in addresses.items():
            service = apprise.Apprise.instantiate(address, suppress_exceptions=True)
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
