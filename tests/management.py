"""A broker's management interface without the broker: what RabbitMQ 3.12 and later answer to setup.

It keeps what is written to it as RabbitMQ does: a virtual host that is put again changes, and a
queue that is there stays as it is.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

KEYS = {"permissions": ("user", "vhost"), "topic_permissions": ("user", "vhost", "exchange")}
"""What names a row; of all other kinds it is name and virtual host."""


class ManagementAnswers:
    """What one cluster has.

    Args:
        version: Of RabbitMQ.
        nodes: How many.
        hosts: Rows of its virtual hosts.
        queues: Rows of its queues.
    """

    def __init__(
        self,
        version: str,
        nodes: int,
        hosts: list[dict[str, Any]],
        queues: list[dict[str, Any]],
    ) -> None:
        self.version, self.nodes, self.hosts, self.queues = version, nodes, hosts, queues
        kinds = ("users", "permissions", "topic_permissions", "policies", "exchanges")
        self.rows: dict[str, list[dict[str, Any]]] = {each: [] for each in kinds}
        self.asked: list[str] = []

    def answer(self, method: str, path: str, body: bytes) -> object:
        """Return the answer to one request, or ``None``."""
        self.asked.append(f"{method} {path}")
        if method == "GET":
            found: dict[str, object] = {
                "definitions": self._definitions(),
                "nodes": [{"name": f"rabbit@n{each}"} for each in range(self.nodes)],
                "vhosts": self.hosts,
                "queues": self.queues,
            }
            return found[path]
        if (method, path) == ("POST", "definitions"):
            self._take(json.loads(body))
        elif (method, path) == ("PUT", "vhosts//hcp"):
            self._put({"name": "/hcp"}, json.loads(body))
        elif method == "DELETE":
            assert path.startswith("permissions/"), "nothing else is ever deleted"
        return None

    def _definitions(self) -> dict[str, Any]:
        hosts = [{"name": each["name"]} for each in self.hosts]
        return {"rabbit_version": self.version, "vhosts": hosts, "queues": [], **self.rows}

    def _put(self, host: dict[str, Any], settings: dict[str, Any]) -> None:
        (kept,) = [each for each in self.hosts if each["name"] == host["name"]] or [host]
        if kept is host:
            self.hosts.append(host)
        kept["description"] = settings.get("description", "")
        kept["tags"] = [each for each in settings.get("tags", "").split(",") if each]
        kept["default_queue_type"] = settings.get("default_queue_type", "undefined")

    def _take(self, told: dict[str, list[dict[str, Any]]]) -> None:
        for each in told.get("vhosts", []):
            self._put(dict(each), {})
        there = [each["name"] for each in self.queues]
        for each in told.get("queues", []):
            if each["name"] not in there:
                kind = each["arguments"].get("x-queue-type", "classic")
                self.queues.append({**each, "type": kind})
        for kind, rows in self.rows.items():
            keys = KEYS.get(kind, ("name", "vhost"))
            for row in told.get(kind, []):
                rows[:] = [
                    each for each in rows if any(each.get(key) != row.get(key) for key in keys)
                ]
                rows.append(row)


@contextmanager
def managed(answers: ManagementAnswers) -> Iterator[str]:
    """Serve these answers; yield the address without an account."""

    class Handler(BaseHTTPRequestHandler):
        def _told(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            path = unquote(urlsplit(self.path).path).removeprefix("/api/")
            found = answers.answer(self.command, path, body)
            data = b"" if found is None else json.dumps(found).encode()
            self.send_response(204 if found is None else 200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PUT = do_DELETE = _told  # noqa: N815 - the names are http.server's

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    serving = threading.Thread(target=server.serve_forever, daemon=True)
    serving.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        serving.join()
