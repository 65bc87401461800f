"""Artifacts of a caller's own runs over HTTP, whole or a range of bytes, as RFC 9110 has it."""

import asyncio
import base64
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from io import BytesIO
from mimetypes import guess_type
from pathlib import Path
from typing import Final

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from labharness.core.files.named import open_named
from labharness.faces.service.application import refused
from labharness.journal import access_log
from labharness.journal.access_log import data_class_of, log_access
from labharness.journal.artifacts import ArtifactRefused, resolve_all
from labharness.journal.encryption import KeyMissing, kept, stated_class
from labharness.lab.house.access import session_of
from labharness.lab.house.orders import RunFiles
from labharness.work.desk.folder import ARTIFACTS_NAME, JOURNAL_NAME
from labharness.work.task.record import Tasks

PART_BYTES_MAX: Final = 32 * 1024 * 1024
"""Most bytes of one answer; more are had by ranges."""

Vouches = Callable[[str, str], Awaitable[bool]]
"""Returns whether an account and its password are right, or raises ``ConnectionError``."""

_RANGE: Final = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})")


@dataclass(frozen=True, slots=True)
class ArtifactPages:
    """Serves each artifact to the caller whose run made it.

    Attributes:
        vouches: Asks the broker about an account, as which a caller submits.
        tasks: Returns the tasks as they are.
        runs: The folders of their runs.
    """

    vouches: Vouches
    tasks: Callable[[], Tasks]
    runs: RunFiles

    @property
    def route(self) -> Route:
        """Where they are."""
        return Route("/artifacts/{session_id}/{name}", self.page)

    async def page(self, asked: Request) -> Response:
        """Return the answer to one request; what is not the caller's is not there."""
        account, password = _credentials(asked.headers.get("authorization", ""))
        try:
            known = bool(account) and await self.vouches(account, password)
        except ConnectionError:
            return refused(HTTPStatus.SERVICE_UNAVAILABLE)
        if not known:
            challenge = {"WWW-Authenticate": 'Basic realm="labharness", charset="UTF-8"'}
            return refused(HTTPStatus.UNAUTHORIZED, **challenge)
        session_id, name = asked.path_params["session_id"], asked.path_params["name"]
        task, _ = session_of(self.tasks(), session_id)
        if task is None or task.requested_by != account:
            return refused(HTTPStatus.NOT_FOUND)
        folder = Path(self.runs.folder(session_id))
        uri = f"hcp://session-{session_id}/artifacts/{name}"
        return await asyncio.to_thread(_page, folder, uri, account, asked.headers)


def _credentials(header: str) -> tuple[str, str]:
    """Return account and password of a Basic authorization (RFC 7617); empty ones for none."""
    kind, _, coded = header.partition(" ")
    try:
        text = base64.b64decode(coded, validate=True).decode()
    except ValueError:  # `binascii.Error` is one
        return "", ""
    account, _, password = text.partition(":")
    return (account, password) if kind.lower() == "basic" else ("", "")


def _page(folder: Path, uri: str, account: str, asked: Headers) -> Response:
    try:
        ((path, checksum),) = resolve_all(uri, [folder / ARTIFACTS_NAME]).items()
        log_access(
            folder,
            data_class=data_class_of(folder / JOURNAL_NAME),
            reader=account,
            via="http",
            what=uri,
        )
        # that of a confidential run is decrypted in memory
        with BytesIO(kept(path)) if stated_class(folder) else open_named(path) as file:
            size = file.seek(0, 2)
            first, end = _part(asked, size, f'"{checksum}"')
            if first >= end and size:
                none = {"Content-Range": f"bytes */{size}"}
                return refused(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, **none)
            if end - first > PART_BYTES_MAX:
                return refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, **{"Accept-Ranges": "bytes"})
            file.seek(first)
            content = file.read(end - first)
    except ArtifactRefused:
        return refused(HTTPStatus.NOT_FOUND)
    except access_log.AccessNotApproved:
        return refused(HTTPStatus.FORBIDDEN)
    except (access_log.AccessNotLogged, KeyMissing):
        return refused(HTTPStatus.SERVICE_UNAVAILABLE)
    except OSError:
        return refused(HTTPStatus.INTERNAL_SERVER_ERROR)
    headers = {"ETag": f'"{checksum}"', "Accept-Ranges": "bytes"}
    if end - first < size:
        headers["Content-Range"] = f"bytes {first}-{end - 1}/{size}"
    status = HTTPStatus.OK if end - first == size else HTTPStatus.PARTIAL_CONTENT
    headers["Content-Type"] = guess_type(path.name)[0] or "application/octet-stream"
    return Response(content, status, headers)


def _part(headers: Mapping[str, str], size: int, etag: str) -> tuple[int, int]:
    """Return the first byte asked for and the one behind the last; all of them without a range.

    Several ranges, and a range of another version than this one, are answered by the whole.
    """
    match = _RANGE.fullmatch(headers.get("range", "").strip())
    if match is None or headers.get("if-range", etag) != etag:
        return 0, size
    first, last = match.groups()
    if first:
        return int(first), min(int(last) + 1, size) if last else size
    return (max(0, size - int(last)), size) if last else (0, size)
