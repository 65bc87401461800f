"""Artifacts over HTTP: to the caller of their run alone, whole or by ranges, each read logged."""

import asyncio
import base64
import hashlib
import http.client
from collections.abc import Callable
from email.message import Message
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from labharness.faces.broker.connection import Broker
from labharness.faces.service import artifact_pages
from labharness.faces.service.artifact_pages import ArtifactPages
from labharness.journal import SqliteJournal
from labharness.journal.access_log import accesses
from labharness.journal.artifacts import Artifacts
from labharness.lab.house.orders import RunFolders
from served_pages import with_pages

SESSION, NAME = "0f7c-1", "curve.csv"
CONTENT = bytes(range(256)) * 4
ARTIFACTS = "/artifacts/"
PATH = f"{ARTIFACTS}{SESSION}/{NAME}"
OWNER, PASSWORD = "harness-alpha-001", "sesame"


class Tasks:
    """One task of one caller, as far as the pages look at it."""

    def __init__(self) -> None:
        self.by_id, self.sessions = {"t": self}, {SESSION: "t"}
        self.attempts: tuple[Any, ...] = ()
        self.session_id = SESSION
        self.requested_by = OWNER


async def vouches(account: str, password: str) -> bool:
    if account == "away":
        raise ConnectionError("no broker")
    return password == PASSWORD


def made(runs: Path, data_class: str = "T2") -> ArtifactPages:
    folder = runs / SESSION
    folder.mkdir()
    with SqliteJournal(folder / "journal.sqlite") as journal:
        constraints = {"data_classification": data_class}
        journal.append("submitted", {"payload": {"constraints": constraints}}, 0.0)
    Artifacts(folder / "artifacts", SESSION).put("curve", NAME, "text/csv", CONTENT)
    tasks: Any = Tasks()
    return ArtifactPages(vouches, lambda: tasks, RunFolders(runs))


def basic(account: str = OWNER, password: str = PASSWORD) -> dict[str, str]:
    coded = base64.b64encode(f"{account}:{password}".encode()).decode()
    return {"Authorization": f"Basic {coded}"}


Answer = tuple[int, Message, bytes]


def got(port: int, path: str, headers: dict[str, str], method: str = "GET") -> Answer:
    asking = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    asking.request(method, path, headers=headers)
    answer = asking.getresponse()
    content = answer.read()
    asking.close()
    return answer.status, answer.headers, content


def asked(pages: ArtifactPages, ask: Callable[[int], Any]) -> Any:
    return with_pages([pages.route], ask)


@pytest.mark.promise(74, 70)
def test_its_caller_gets_an_artifact_with_its_checksum(tmp_path: Path) -> None:
    pages = made(tmp_path)
    status, headers, content = asked(pages, lambda port: got(port, PATH, basic()))
    assert (status, content) == (200, CONTENT)
    assert headers["ETag"] == f'"sha256:{hashlib.sha256(CONTENT).hexdigest()}"'
    assert headers["Content-Type"] == "text/csv"
    (read,) = accesses(tmp_path / SESSION)
    assert (read.reader, read.via, read.what.rpartition("/")[2]) == (OWNER, "http", NAME)
    status, headers, content = asked(pages, lambda port: got(port, PATH, basic(), "HEAD"))
    assert (status, headers["Content-Length"], content) == (200, str(len(CONTENT)), b"")


@pytest.mark.promise(74)
@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        (PATH, {}, 401),
        (PATH, basic(password="wrong"), 401),
        (PATH, {"Authorization": "Basic §"}, 401),
        (PATH, {"Authorization": "Bearer token"}, 401),
        (PATH, basic("away"), 503),
        (PATH, basic("somebody-else"), 404),
        (f"{ARTIFACTS}{SESSION}/none.csv", basic(), 404),
        (f"{ARTIFACTS}{SESSION}/index.json", basic(), 404),
        (f"{ARTIFACTS}another/{NAME}", basic(), 404),
        (f"{ARTIFACTS}{SESSION}/../journal.sqlite", basic(), 404),
        (f"{ARTIFACTS}{SESSION}/%2e%2e/journal.sqlite", basic(), 404),
        (f"{ARTIFACTS}..", basic(), 404),
    ],
)
def test_anybody_else_and_anything_else_is_refused(
    tmp_path: Path, path: str, headers: dict[str, str], status: int
) -> None:
    pages = made(tmp_path)
    sent = {name: value.encode("utf-8").decode("latin-1") for name, value in headers.items()}
    found, answered, content = asked(pages, lambda port: got(port, path, sent))
    assert found == status
    assert CONTENT[:20] not in content
    assert ("WWW-Authenticate" in answered) is (status == 401)
    assert list(accesses(tmp_path / SESSION)) == []


@pytest.mark.promise(70)
def test_nothing_is_handed_out_where_no_log_takes_the_read(tmp_path: Path) -> None:
    pages = made(tmp_path)
    (tmp_path / SESSION / "access.jsonl").mkdir()
    status, _, content = asked(pages, lambda port: got(port, PATH, basic()))
    assert (status, CONTENT[:20] in content) == (503, False)


@pytest.mark.promise(74)
@pytest.mark.parametrize(
    ("headers", "status", "first", "end"),
    [
        ({"Range": "bytes=0-9"}, 206, 0, 10),
        ({"Range": "bytes=1000-"}, 206, 1000, 1024),
        ({"Range": "bytes=-24"}, 206, 1000, 1024),
        ({"Range": "bytes=1000-9999"}, 206, 1000, 1024),
        ({"Range": "bytes=0-1023"}, 200, 0, 1024),
        ({"Range": "bytes=-"}, 200, 0, 1024),
        ({"Range": "bytes=0-1,5-6"}, 200, 0, 1024),
        ({"Range": "lines=0-1"}, 200, 0, 1024),
        ({"Range": "bytes=0-9", "If-Range": '"sha256:older"'}, 200, 0, 1024),
        ({"Range": "bytes=1024-"}, 416, 0, 0),
        ({"Range": "bytes=9-3"}, 416, 0, 0),
    ],
)
def test_a_range_is_answered_as_rfc_9110_says(
    tmp_path: Path, headers: dict[str, str], status: int, first: int, end: int
) -> None:
    pages = made(tmp_path)
    found, answered, content = asked(pages, lambda port: got(port, PATH, basic() | headers))
    assert found == status
    if status == 416:
        assert answered["Content-Range"] == "bytes */1024"
        return
    assert content == CONTENT[first:end]
    assert answered["ETag"] == f'"sha256:{hashlib.sha256(CONTENT).hexdigest()}"', "of the whole"
    said = answered.get("Content-Range")
    assert said == (None if status == 200 else f"bytes {first}-{end - 1}/1024")


@pytest.mark.promise(74)
def test_a_large_artifact_is_had_by_ranges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artifact_pages, "PART_BYTES_MAX", 100)
    pages = made(tmp_path)

    def ask(port: int) -> tuple[int, bytes]:
        whole = got(port, PATH, basic())[0]
        parts = [
            got(port, PATH, basic() | {"Range": f"bytes={at}-{at + 99}"})[2]
            for at in range(0, len(CONTENT), 100)
        ]
        return whole, b"".join(parts)

    assert asked(pages, ask) == (413, CONTENT)


@settings(max_examples=40, deadline=None)
@given(ranges=st.lists(st.text(max_size=30), min_size=1, max_size=5))
def test_no_range_breaks_a_page(
    tmp_path_factory: pytest.TempPathFactory, ranges: list[str]
) -> None:
    pages = made(tmp_path_factory.mktemp("runs"), "T1")
    for each in ranges:
        first, end = artifact_pages._part({"range": each}, len(CONTENT), "")
        assert first >= 0
        assert end <= len(CONTENT)
    assert pages.runs.folder(SESSION)


@pytest.mark.promise(74)
@given(account=st.text(min_size=1), password=st.text())
@example(account="alpha@another.example:5671/", password="x")
@example(account="alpha", password="x@another.example/")
def test_no_account_has_another_broker_asked(account: str, password: str) -> None:
    urls: list[str] = []

    async def connect(broker: Broker) -> Any:
        urls.append(broker.url)
        raise OSError("it is away")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Broker, "connect", connect)
        with pytest.raises(ConnectionError):
            asyncio.run(Broker("amqps://lab:own@mq.example:5671/%2Fhcp").vouches(account, password))
    (place,) = map(urlsplit, urls)
    assert (place.hostname, place.port, place.path) == ("mq.example", 5671, "/%2Fhcp")
    assert (unquote(place.username or ""), unquote(place.password or "")) == (account, password)
