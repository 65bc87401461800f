"""Fetches a document by ``https``, from an origin that the lab file lists and from nowhere else.

The host's name is resolved once, every address is judged, and the connection goes to an address
that was judged, so that a name that changes its answer leads nowhere else. A redirect is judged
like a first address.
"""

import http.client
import ipaddress
import socket
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urljoin, urlsplit

from labharness.core.clock import steady_s
from labharness.core.errors import LabError
from labharness.core.vocabulary.texts import Text
from labharness.work.capability.document_analysis.settings import (
    DocumentSettings,
    not_listed,
    origin_of,
    origins_of,
)

REDIRECTS_MAX: Final = 3
SILENT_S: Final = 10.0
"""Longest silence (s) of a server."""

CHUNK_BYTES: Final = 65_536
HEADER_FIELDS: Final = {"User-Agent": "labharness", "Accept-Encoding": "identity"}

Resolve = Callable[[str, int], Sequence[str]]


class OriginForbidden(LabError, ValueError, code="origin_forbidden"):
    """A document may not be fetched from there; the message says why."""


class NotFetched(LabError, ConnectionError, code="not_fetched"):
    """A server did not give the document; the message says why."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """A document as a server gave it.

    Attributes:
        media_type: As the server calls it, in lower case; ``""`` where it does not.
    """

    data: bytes
    media_type: str


def resolved(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a host, as the system resolves its name."""
    found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(each[4][0]) for each in found))


def fetch(
    uri: str, settings: DocumentSettings, folder: Path, *, resolve: Resolve = resolved
) -> Fetched:
    """Return the document at an address.

    Args:
        uri: Its ``https://`` address.
        settings: Of the lab: origins, certificates, the largest size, and the time.
        folder: Of the lab file.
        resolve: Returns the addresses of a host.

    Raises:
        OriginForbidden: The address, or one that it leads to, is not listed or is private.
        NotFetched: The server does not give it, or not in time, or it is too large.
    """
    until_s = steady_s() + settings.wall_s
    context = _context(settings, folder)
    for _ in range(REDIRECTS_MAX + 1):
        address = _judged(uri, settings, resolve)
        try:
            found = _asked(uri, address, context, settings.bytes_max, until_s)
        except (OSError, http.client.HTTPException) as why:
            if isinstance(why, LabError):
                raise
            raise NotFetched(Text("fetch.failed", why=type(why).__name__)) from None
        if isinstance(found, Fetched):
            return found
        uri = urljoin(uri, found)
    raise NotFetched(Text("fetch.redirects", most=REDIRECTS_MAX))


def _context(settings: DocumentSettings, folder: Path) -> ssl.SSLContext:
    if not settings.certificates:
        return ssl.create_default_context()
    try:
        return ssl.create_default_context(cafile=str(folder / settings.certificates))
    except OSError:
        raise NotFetched(Text("fetch.certificates")) from None


def _judged(uri: str, settings: DocumentSettings, resolve: Resolve) -> str:
    """Return an address of the host that may be connected to."""
    origin = origin_of(uri)
    allowed = list(origins_of(settings, origin)) if origin is not None else []
    if origin is None or not allowed:
        raise OriginForbidden(not_listed(_shown(uri), settings))
    try:
        addresses = resolve(*origin)
    except OSError:
        raise NotFetched(Text("fetch.no_address", host=origin[0])) from None
    if not addresses:
        raise NotFetched(Text("fetch.no_address", host=origin[0]))
    if not any(allowed) and not all(_is_public(each) for each in addresses):
        raise OriginForbidden(Text("fetch.private", host=origin[0]))
    return addresses[0]


def _is_public(address: str) -> bool:
    found = ipaddress.ip_address(address.partition("%")[0])
    inner = getattr(found, "ipv4_mapped", None)
    return (inner or found).is_global and not (inner or found).is_multicast


def _shown(uri: str) -> str:
    parts = urlsplit(uri)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"[:120]


class _Connection(http.client.HTTPSConnection):
    """A connection to an address that was judged, for a host's certificate."""

    def __init__(self, host: str, port: int, address: str, context: ssl.SSLContext) -> None:
        super().__init__(host, port, timeout=SILENT_S, context=context)
        self._address, self._tls = address, context

    def connect(self) -> None:
        """Connect to the address, whatever the name resolves to by now."""
        plain = socket.create_connection((self._address, self.port), SILENT_S)
        try:
            self.sock = self._tls.wrap_socket(plain, server_hostname=self.host.strip("[]"))
        except BaseException:
            plain.close()
            raise


def _asked(
    uri: str, address: str, context: ssl.SSLContext, bytes_max: int, until_s: float
) -> Fetched | str:
    """Ask once; return the document, or where else it is."""
    parts = urlsplit(uri)
    origin = origin_of(uri)
    if origin is None:
        raise OriginForbidden(Text("fetch.not_listed", origin=_shown(uri), listed="none"))
    connection = _Connection(*origin, address, context)
    try:
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.request("GET", target, headers=HEADER_FIELDS)
        answer = connection.getresponse()
        if answer.status in (301, 302, 303, 307, 308):
            return answer.headers.get("Location", "")
        if answer.status != 200:
            raise NotFetched(Text("fetch.status", status=answer.status))
        data = _read(answer, bytes_max, until_s)
        return Fetched(data, answer.headers.get_content_type().lower())
    finally:
        connection.close()


def _read(answer: http.client.HTTPResponse, bytes_max: int, until_s: float) -> bytes:
    parts: list[bytes] = []
    size = 0
    while chunk := answer.read1(CHUNK_BYTES):
        parts.append(chunk)
        size += len(chunk)
        if size > bytes_max:
            raise NotFetched(Text("fetch.too_large", most=bytes_max))
        if steady_s() > until_s:
            raise NotFetched(Text("fetch.too_slow"))
    return b"".join(parts)
