"""Gets the document of a task: from the task itself, a file, an artifact of a run, or a server.

Fetches a document by ``https``, from an origin that the lab file lists and from nowhere else. The
host's name is resolved once, every address is judged, and the connection goes to an address that
was judged, so that a name that changes its answer leads nowhere else. A redirect is judged like a
first address.
"""

import http.client
import ipaddress
import os
import socket
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

from labharness.core.clock import steady_s
from labharness.core.errors import LabError
from labharness.core.files.allowed import path_of
from labharness.core.vocabulary.texts import CodedError, Text
from labharness.work.capability import CannotDo, Surroundings
from labharness.work.capability.document_analysis.settings import (
    DocumentSettings,
    Origin,
    not_listed,
    origin_of,
    origins_of,
)
from labharness.work.capability.stored import content_of

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
class Document:
    """A document before it is read.

    Attributes:
        media_type: As its caller or its server calls it; ``""`` where none does.
    """

    data: bytes
    media_type: str


def resolved(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a host, as the system resolves its name."""
    found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(each[4][0]) for each in found))


def fetch(
    uri: str, settings: DocumentSettings, folder: Path, *, resolve: Resolve = resolved
) -> Document:
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
        origin, address = _judged(uri, settings, resolve)
        try:
            found = _asked(uri, origin, address, context, settings.bytes_max, until_s)
        except (OSError, http.client.HTTPException) as why:
            if isinstance(why, LabError):
                raise
            raise NotFetched(Text("fetch.failed", why=type(why).__name__)) from None
        if isinstance(found, Document):
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


def _judged(uri: str, settings: DocumentSettings, resolve: Resolve) -> tuple[Origin, str]:
    """Return the origin, and an address of its host that may be connected to."""
    origin = origin_of(uri)
    allowed = list(origins_of(settings, origin)) if origin is not None else []
    if origin is None or not allowed:
        raise OriginForbidden(not_listed(_shown(uri), settings))
    try:
        addresses = resolve(*origin)
    except OSError:
        addresses = ()
    if not addresses:
        raise NotFetched(Text("fetch.no_address", host=origin[0]))
    if not any(allowed) and not all(_is_public(each) for each in addresses):
        raise OriginForbidden(Text("fetch.private", host=origin[0]))
    return origin, addresses[0]


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
    uri: str,
    origin: Origin,
    address: str,
    context: ssl.SSLContext,
    bytes_max: int,
    until_s: float,
) -> Document | str:
    """Ask once; return the document, or where else it is."""
    parts = urlsplit(uri)
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
        return Document(data, answer.headers.get_content_type().lower())
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


SUFFIXES: Final = {
    ".txt": "text/plain",
    ".md": "text/markdown",
    ".markdown": "text/markdown",
    ".html": "text/html",
    ".htm": "text/html",
    ".pdf": "application/pdf",
}
NOT_FOR_CALLER: Final = {
    "no_artifact": "document.no_artifact",
    "no_folder": "document.no_folder",
    "not_there": "document.not_there",
}
"""The text of each reason of `content_of`."""

PDF_MARK: Final = b"%PDF-"


class DocumentRefused(CodedError, ValueError, code="document_refused"):
    """A document may not be read, or is not there; the message says why."""


def source_fault(inputs: Mapping[str, Any], settings: DocumentSettings) -> CannotDo | None:
    """Return why the source of a task is never read here; ``None`` where it may be."""
    if ("document" in inputs) == ("document_uri" in inputs):
        return CannotDo("invalid_input", Text("document.one_source"), Text("document.give_one"))
    if "document" in inputs:
        size = len(inputs["document"].encode("utf-8", "surrogatepass"))
        if size > settings.bytes_max:
            why = Text("document.too_large", most=settings.bytes_max)
            return CannotDo("invalid_input", why, Text("document.shorten"))
        return None
    uri = inputs["document_uri"]
    scheme = urlsplit(uri).scheme if uri.isprintable() else ""
    if scheme == "hcp":
        return None
    if scheme == "file":
        path = path_of(uri)
        if path is not None and any(path.is_relative_to(each) for each in _lexical(settings)):
            return None
        return CannotDo("forbidden", Text("document.no_folder"), Text("document.other_source"))
    if scheme == "https":
        origin = origin_of(uri)
        if origin is not None and any(True for _ in origins_of(settings, origin)):
            return None
        asked = "" if origin is None else f"https://{origin[0]}"
        # not forbidden, because the lab fetches from there for no caller at all
        return CannotDo("invalid_input", not_listed(asked, settings), Text("document.other_source"))
    return CannotDo("invalid_input", Text("document.scheme"), Text("document.other_source"))


def _lexical(settings: DocumentSettings) -> tuple[Path, ...]:
    """Return the absolute folders; which folder a relative one is, only the reader knows."""
    absolute = tuple(Path(os.path.normpath(each)) for each in settings.folders)
    return tuple(each if each.is_absolute() else Path("/") for each in absolute)


def document_of(inputs: Mapping[str, Any], around: Surroundings) -> Document:
    """Return the document of a task; it may wait for a disk or a server.

    Raises:
        DocumentRefused: It may not be read, or it is not there, or too large.
        OriginForbidden: It may not be fetched from there.
        NotFetched: Its server does not give it.
    """
    settings = around.settings
    if not isinstance(settings, DocumentSettings):
        raise DocumentRefused("document.no_folder")
    if "document" in inputs:
        data = inputs["document"].encode("utf-8", "replace")
        return Document(data, inputs.get("media_type", "text/plain"))
    uri = inputs["document_uri"]
    said = inputs.get("media_type", "")
    if urlsplit(uri).scheme == "https":
        fetched = fetch(uri, settings, around.lab_folder)
        return Document(fetched.data, said or _kind(uri, fetched.data, fetched.media_type))
    most = settings.bytes_max
    found = content_of(uri, around, settings.folders, "document-analysis", most)
    if isinstance(found, str):
        raise DocumentRefused(NOT_FOR_CALLER[found])
    name, data = found
    if len(data) > most:
        raise DocumentRefused("document.too_large", most=most)
    return Document(data, said or _kind(name, data, ""))


def _kind(name: str, data: bytes, said: str) -> str:
    """Return the media type: what its bytes, its server or its name say, in this order."""
    if data.startswith(PDF_MARK):
        return "application/pdf"
    if said in SUFFIXES.values() and said != "text/plain":
        return said
    suffix = Path(urlsplit(name).path).suffix.lower()
    return SUFFIXES.get(suffix, said or "application/octet-stream")
