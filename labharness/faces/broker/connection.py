"""A connection to a message broker, as a callee and a caller have it."""

import logging
import ssl
import warnings
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote, urlsplit

from labharness.faces.broker.lenient import read_what_can_be_read
from labharness.instruments.link.pipes import settle
from labharness.protocols.hcp.codec import HcpMessage, encode

if TYPE_CHECKING:
    import asyncio

    from aio_pika import Message
    from aio_pika.abc import AbstractChannel, AbstractConnection

CONNECT_S_MAX: Final = 10.0
"""Longest time (s) of one try to connect."""

CONFIRM_S_MAX: Final = 30.0
"""Longest time (s) for the broker to confirm a message."""

HANG_UP_S_MAX: Final = 5.0
"""Longest time (s) for the broker to take leave; a network may swallow its answer."""

ANONYMOUS: Final = "guest"
"""The account of an address without one, as AMQP clients have it."""


@dataclass(frozen=True, slots=True)
class Broker:
    """How a broker is reached.

    Attributes:
        url: ``amqp://`` or ``amqps://`` with account, host and virtual host.
        tls: For ``amqps``; ``None`` takes the authorities that the system trusts.
    """

    url: str
    tls: ssl.SSLContext | None = None

    @property
    def account(self) -> str:
        """The account that the broker knows this side by."""
        return unquote(urlsplit(self.url).username or ANONYMOUS)

    @property
    def secured(self) -> bool:
        """Whether it is over TLS."""
        return self.url.startswith("amqps://")

    @property
    def place(self) -> str:
        """The address without account and password, for people."""
        return self.url.rpartition("@")[2].rpartition("//")[2]

    async def vouches(self, account: str, password: str) -> bool:
        """Return whether the broker lets an account in with a password.

        Raises:
            ConnectionError: The broker cannot be asked.
        """
        from aio_pika.exceptions import CONNECTION_EXCEPTIONS, ProbableAuthenticationError

        try:
            asked = replace(self, url=_as_account(self.url, account, password))
            connection = await asked.connect()
        except ProbableAuthenticationError:
            return False
        except (*CONNECTION_EXCEPTIONS, OSError) as why:
            raise ConnectionError(str(why)) from None
        await hang_up(connection)
        return True

    async def connect(self) -> "AbstractConnection":
        """Connect; the caller hangs up.

        Raises:
            TimeoutError: The broker has not answered within `CONNECT_S_MAX`.
            aio_pika.exceptions.CONNECTION_EXCEPTIONS: It does not answer, or refuses.
        """
        import asyncio

        import aio_pika

        read_what_can_be_read()
        # aio-pika closes a connection that failed when it is collected, in any thread.
        never = "coroutine 'Connection.close' was never awaited"
        warnings.filterwarnings("ignore", never, RuntimeWarning)
        for each in ("aiormq", "aio_pika"):  # all that they log is raised as well
            logging.getLogger(each).setLevel(logging.CRITICAL)
        async with asyncio.timeout(CONNECT_S_MAX):
            return await aio_pika.connect(self.url, ssl_context=self.tls)


def _as_account(url: str, account: str, password: str) -> str:
    """Return the address of a broker with other credentials."""
    parts = urlsplit(url)
    place = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=f"{quote(account, '')}:{quote(password, '')}@{place}").geturl()


def amqp_message(message: HcpMessage, user_id: str | None = None) -> "Message":
    """Return an HCP message with the AMQP properties that layer 1 names.

    Args:
        message: The message.
        user_id: The account that sends it; the broker refuses any other than its own.
    """
    from aio_pika import DeliveryMode, Message

    return Message(
        encode(message),
        content_type="application/json",
        content_encoding="utf-8",
        delivery_mode=DeliveryMode.PERSISTENT,
        message_id=message.message_id,
        timestamp=datetime.fromisoformat(message.timestamp),
        correlation_id=message.session_id or None,
        type=message.type,
        user_id=user_id,
    )


def when_closed(*watched: "AbstractConnection | AbstractChannel") -> "asyncio.Future[None]":
    """Return a future that ends, by the reason where there is one, once one of them is closed."""
    import asyncio

    ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    for each in watched:
        each.close_callbacks.add(lambda _, why: settle(ended, why))
    return ended


async def hang_up(connection: "AbstractConnection") -> None:
    """Close a connection, whatever state it is in."""
    import asyncio

    with suppress(Exception):
        async with asyncio.timeout(HANG_UP_S_MAX):
            await connection.close()


async def one_ended(jobs: "Iterable[asyncio.Future[None]]") -> None:
    """Wait until a job has ended; raises what it has raised."""
    import asyncio

    await asyncio.wait(jobs, return_when=asyncio.FIRST_COMPLETED)
    for each in jobs:
        if each.done():
            each.result()


async def cancelled(jobs: "Iterable[asyncio.Future[None]]") -> None:
    """Cancel jobs, and wait until they have ended; how they do does not matter any more."""
    import asyncio

    for each in jobs:
        each.cancel()
    await asyncio.gather(*jobs, return_exceptions=True)
