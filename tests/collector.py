"""A collector of traces: takes OTLP over HTTP, and keeps each span as the protocol has it."""

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)


class Collector:
    """What was sent.

    Attributes:
        url: Its address, without a path.
        spans: Of all requests, in their order.
        paths: Of the requests.
        bodies: Of the requests, as they came.
        resources: The resource of each request, as a mapping.
        hangs: While it is set, no request is answered.
        status: The answer.
    """

    def __init__(self) -> None:
        self.url = ""
        self.spans: list[Any] = []
        self.paths: list[str] = []
        self.bodies: list[bytes] = []
        self.resources: list[dict[str, str]] = []
        self.hangs = Event()
        self.over = Event()
        self.status = 200
        self._lock = Lock()

    def take(self, path: str, body: bytes) -> None:
        found = ExportTraceServiceRequest.FromString(body)
        with self._lock:
            self.paths.append(path)
            self.bodies.append(body)
            for group in found.resource_spans:
                about = {each.key: each.value.string_value for each in group.resource.attributes}
                self.resources.append(about)
                self.spans += [span for scope in group.scope_spans for span in scope.spans]

    def named(self, name: str) -> list[Any]:
        return [each for each in self.spans if each.name == name]


@contextmanager
def collecting() -> Iterator[Collector]:
    """Serve a collector on a free port."""
    kept = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            while kept.hangs.is_set() and not kept.over.wait(0.05):
                pass
            if kept.status == 200:
                kept.take(self.path, body)
            self.send_response(kept.status)
            self.send_header("Content-Type", "application/x-protobuf")
            self.end_headers()
            self.wfile.write(ExportTraceServiceResponse().SerializeToString())

        def log_message(self, format: str, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    kept.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield kept
    finally:
        kept.over.set()
        server.shutdown()
        server.server_close()
