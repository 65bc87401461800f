"""A broker that speaks TLS on one port, and none on another."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from broker import PASSWORD, Broker, free_port
from certificates import Authority
from confidential import CALLER, GROWER
from plain_caller import PlainCaller

CALLEE = "callee"


@dataclass(frozen=True, slots=True)
class Secured:
    """The broker, its port with TLS, and the certificates that show it."""

    broker: Broker
    port: int
    ca: Path

    def url(self, account: str) -> str:
        return f"amqps://{account}:{PASSWORD}@127.0.0.1:{self.port}/%2Fhcp"

    def tls(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.ca)

    def caller(self, name: str, callee_id: str) -> PlainCaller:
        return PlainCaller(self.url(name), name, callee_id, tls=self.tls())

    @contextmanager
    def at_rest(self) -> Iterator[None]:
        """Stop the broker meanwhile, so that all of its store is on the disk."""
        self.broker.stop()
        try:
            yield
        finally:
            self.broker.start()


@contextmanager
def secured_broker(folder: Path) -> Iterator[Secured]:
    authority = Authority(folder, "lab")
    server = authority.pair("server")
    made = Broker(folder / "b", (CALLEE, CALLER, GROWER))
    port = free_port()
    made.configure(
        f"listeners.ssl.1 = 127.0.0.1:{port}",
        f"ssl_options.cacertfile = {authority.file}",
        f"ssl_options.certfile = {server.cert}",
        f"ssl_options.keyfile = {server.key}",
        "ssl_options.verify = verify_none",
    )
    made.start()
    try:
        yield Secured(made, port, authority.file)
    finally:
        made.stop()
