"""A document comes from where the lab allows it, and from nowhere else."""

import json
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from certificates import Authority
from labharness.journal.artifacts import Artifacts
from labharness.work.capability import CannotDo, Surroundings
from labharness.work.capability.document_analysis.settings import DocumentSettings, origin_of
from labharness.work.capability.document_analysis.source import (
    DocumentRefused,
    NotFetched,
    OriginForbidden,
    document_of,
    fetch,
    source_fault,
)


def around(tmp_path: Path, **settings: Any) -> Surroundings:
    return Surroundings(
        settings=DocumentSettings(**settings),
        lab_folder=tmp_path / "lab",
        runs=tmp_path / "runs",
        artifacts="artifacts",
        submit="submit.json",
        caller_id="alice",
        data_classification="T2",
    )


def refusal(inputs: Mapping[str, Any], **settings: Any) -> str:
    found = source_fault(inputs, DocumentSettings(**settings))
    return found.reason_code if isinstance(found, CannotDo) else ""


# ---- admission


@pytest.mark.parametrize(
    ("inputs", "code"),
    [
        ({"document": "x"}, ""),
        ({}, "invalid_input"),
        ({"document": "x", "document_uri": "file:///a/x.txt"}, "invalid_input"),
        ({"document": "x" * 11}, "invalid_input"),
        ({"document_uri": "file:///a/b/x.txt"}, ""),
        ({"document_uri": "file:///a/../etc/passwd"}, "forbidden"),
        ({"document_uri": "file:///a/%2e%2e/etc/passwd"}, "forbidden"),
        ({"document_uri": "file://other/a/x.txt"}, "forbidden"),
        ({"document_uri": "https://example.org/x.pdf"}, ""),
        ({"document_uri": "https://example.org:444/x.pdf"}, "invalid_input"),
        ({"document_uri": "https://example.org@evil.org/x.pdf"}, "invalid_input"),
        ({"document_uri": "https://evil.org/x.pdf"}, "invalid_input"),
        ({"document_uri": "https://a.lib.org/x.pdf"}, ""),
        ({"document_uri": "https://evillib.org/x.pdf"}, "invalid_input"),
        ({"document_uri": "http://example.org/x.pdf"}, "invalid_input"),
        ({"document_uri": "ftp://example.org/x.pdf"}, "invalid_input"),
        ({"document_uri": "hcp://session-1/artifacts/x.txt"}, ""),
    ],
)
def test_a_source_that_is_never_read_here_is_refused_before_the_run(
    inputs: dict[str, str], code: str
) -> None:
    allowed = {"folders": ("/a",), "origins": ("https://example.org", "https://*.lib.org")}
    assert refusal(inputs, bytes_max=10, **allowed) == code


def test_without_a_policy_nothing_is_read_or_fetched() -> None:
    assert refusal({"document_uri": "file:///a/x.txt"}) == "forbidden"
    assert refusal({"document_uri": "https://example.org/x.pdf"}) == "invalid_input"


def test_an_origin_that_is_not_listed_is_told_which_are() -> None:
    inputs = {"document_uri": "https://example.com/papers/paper-123.pdf"}  # of HCP's own example
    for origins, listed in (((), "none"), (("https://a.org", "https://*.b.org"), "https://a.org")):
        found = source_fault(inputs, DocumentSettings(origins=origins))
        assert isinstance(found, CannotDo)
        assert "https://example.com" in found.message
        assert f"fetches from: {listed}" in found.message
        assert "document" in found.suggestion


@pytest.mark.parametrize("text", ["http://a.org", "https://a.org/path", "a.org", "https://u@a.org"])
def test_a_lab_file_lists_origins_alone(text: str) -> None:
    with pytest.raises(ValueError, match="origin"):
        DocumentSettings(origins=(text,))


# ---- files


@pytest.mark.promise(64)
def test_a_file_is_read_below_its_folder_and_a_link_out_of_it_is_not(tmp_path: Path) -> None:
    papers = tmp_path / "lab" / "papers"
    papers.mkdir(parents=True)
    (papers / "one.md").write_text("# One")
    (tmp_path / "secret.md").write_text("# Secret")
    (papers / "out.md").symlink_to(tmp_path / "secret.md")
    allowed = around(tmp_path, folders=("papers",), bytes_max=10)
    found = document_of({"document_uri": (papers / "one.md").as_uri()}, allowed)
    assert (found.data, found.media_type) == (b"# One", "text/markdown")
    for name in ("../../secret.md", "out.md", "../../not-there.md"):
        with pytest.raises(DocumentRefused, match="not below a folder"):
            document_of({"document_uri": f"file://{papers}/{name}"}, allowed)
    with pytest.raises(DocumentRefused, match="no file"):
        document_of({"document_uri": (papers / "not-there.md").as_uri()}, allowed)
    (papers / "long.md").write_bytes(b"x" * 11)
    with pytest.raises(DocumentRefused, match="more than 10 bytes"):
        document_of({"document_uri": (papers / "long.md").as_uri()}, allowed)


def test_a_refusal_names_no_path_of_the_machine(tmp_path: Path) -> None:
    with pytest.raises(DocumentRefused) as caught:
        document_of({"document_uri": "file:///etc/hostname"}, around(tmp_path, folders=("/a",)))
    assert str(tmp_path) not in str(caught.value)


# ---- artifacts


@pytest.mark.parametrize(
    ("caller", "held", "there"),
    [("alice", "T1", True), ("alice", None, True), ("bob", "T1", False), ("alice", "T3", False)],
)
@pytest.mark.promise(64)
def test_an_artifact_is_read_by_the_caller_of_its_run_alone(
    caller: str, held: str | None, there: bool, tmp_path: Path
) -> None:
    run = tmp_path / "runs" / "20260101-abc"
    kept = Artifacts(run / "artifacts", "abc").put("log", "log.txt", "text/plain", b"5 nm")
    constraints = {} if held is None else {"data_classification": held}
    payload = {"caller_id": caller, "constraints": constraints}
    (run / "submit.json").write_text(json.dumps({"payload": payload}))
    if there:
        assert document_of({"document_uri": kept.uri}, around(tmp_path)).data == b"5 nm"
        return
    with pytest.raises(DocumentRefused, match="no artifact"):
        document_of({"document_uri": kept.uri}, around(tmp_path))


@pytest.mark.parametrize("uri", ["hcp://session-../artifacts/x", "hcp://session-a/b/c", "hcp://"])
def test_an_address_that_leads_out_of_the_runs_names_no_artifact(uri: str, tmp_path: Path) -> None:
    with pytest.raises(DocumentRefused, match="no artifact"):
        document_of({"document_uri": uri}, around(tmp_path))


# ---- servers

Answer = tuple[int, dict[str, str], bytes]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a certificate for two hosts, its key and its authority in files beside it."""
    folder = tmp_path_factory.mktemp("tls")
    return Authority(folder, "papers").pair("server", "papers.test", "a.lib.test").cert


@contextmanager
def served(certificate: Path, answer: Callable[[str], Answer]) -> Iterator[tuple[int, list[str]]]:
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            status, headers, body = answer(self.path)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *told: object) -> None:
            """Print nothing."""

        def handle(self) -> None:
            try:
                super().handle()
            except OSError:
                return  # the client has read enough

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_suffix(".key"))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1], asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def loopback(host: str, port: int) -> tuple[str, ...]:
    return ("127.0.0.1",)


def settings(certificate: Path, *origins: str, bytes_max: int = 1_000) -> DocumentSettings:
    authority = str(certificate.with_name("papers-ca.pem"))
    return DocumentSettings(origins=origins, certificates=authority, bytes_max=bytes_max, wall_s=5)


def test_a_listed_origin_is_fetched_at_the_address_that_was_judged(certificate: Path) -> None:
    with served(certificate, lambda _: (200, {"Content-Type": "text/html; x=y"}, b"hi")) as (at, _):
        origin = f"https://papers.test:{at}"
        found = fetch(f"{origin}/a?b=c", settings(certificate, origin), Path("/"), resolve=loopback)
    assert (found.data, found.media_type) == (b"hi", "text/html")


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "::ffff:127.0.0.1", "0.0.0.0"]
)
@pytest.mark.promise(64)
def test_a_private_address_is_not_asked_unless_its_origin_is_named_exactly(
    address: str, certificate: Path
) -> None:
    with served(certificate, lambda _: (200, {}, b"secret")) as (at, asked):
        allowed = settings(certificate, f"https://*.lib.test:{at}")
        with pytest.raises(OriginForbidden, match="private"):
            fetch(f"https://a.lib.test:{at}/", allowed, Path("/"), resolve=lambda *_: (address,))
        both = ("93.184.216.34", address)
        with pytest.raises(OriginForbidden, match="private"):
            fetch(f"https://a.lib.test:{at}/", allowed, Path("/"), resolve=lambda *_: both)
        assert asked == []


@pytest.mark.promise(64)
def test_a_redirect_is_judged_like_a_first_address(certificate: Path) -> None:
    def answer(path: str) -> Answer:
        return 302, {"Location": "https://other.test/secret"}, b""

    with served(certificate, answer) as (at, asked):
        origin = f"https://papers.test:{at}"
        with pytest.raises(OriginForbidden, match=r"fetches no document from https://other\.test"):
            fetch(f"{origin}/", settings(certificate, origin), Path("/"), resolve=loopback)
        assert asked == ["/"]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ((200, {}, b"x" * 1_001), "more than 1000 bytes"),
        ((404, {}, b""), "404"),
        ((302, {"Location": "/again"}, b""), "more than 3 times"),
    ],
)
def test_a_server_that_does_not_give_the_document_is_told_in_a_sentence(
    answer: Answer, why: str, certificate: Path
) -> None:
    with served(certificate, lambda _: answer) as (at, _):
        origin = f"https://papers.test:{at}"
        with pytest.raises(NotFetched, match=why):
            fetch(f"{origin}/", settings(certificate, origin), Path("/"), resolve=loopback)


def test_a_server_with_a_certificate_of_another_host_gives_nothing(certificate: Path) -> None:
    with served(certificate, lambda _: (200, {}, b"x")) as (at, asked):
        origin = f"https://elsewhere.test:{at}"
        with pytest.raises(NotFetched, match="Cert"):
            fetch(f"{origin}/", settings(certificate, origin), Path("/"), resolve=loopback)
        assert asked == []


@pytest.mark.parametrize("uri", ["https://", "https:///x", "https://a b/x", "https://a.org:99999/"])
def test_a_text_that_has_no_host_has_no_origin(uri: str) -> None:
    assert origin_of(uri) is None
