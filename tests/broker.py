"""A real RabbitMQ of the tests' own: started on free ports, stopped and started again at will."""

import base64
import hashlib
import json
import os
import shutil
import socket
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from labharness.core.clock import pause, steady_s

VHOST = "/hcp"
PASSWORD = "secret"
ADMINISTRATOR = "administrator"
COOKIE = ".erlang.cookie"
START_S_MAX = 120.0
STOP_S_MAX = 60.0


def broker_program() -> str | None:
    """Return the server's own script; that of the distribution changes accounts."""
    placed = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
    return str(placed) if placed.exists() else shutil.which("rabbitmq-server")


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


NEEDS_BROKER = pytest.mark.skipif(
    broker_program() is None and not os.environ.get("CI"),
    reason="rabbitmq-server is not installed",
)


class Broker:
    """One broker, with accounts that may do all within the virtual host of HCP.

    Args:
        home: Its folder.
        accounts: Their names.
        managed: It has the management interface and an administrator.
        plugins: Names of more plugins.
        joins: A broker that has been started, of whose cluster it is a node from its start on.
    """

    def __init__(
        self,
        home: Path,
        accounts: Iterable[str],
        *,
        managed: bool = False,
        plugins: tuple[str, ...] = (),
        joins: "Broker | None" = None,
    ) -> None:
        self.home, self._joins = home, joins
        self.port, self.management_port, self._between = free_port(), free_port(), free_port()
        self._managed = managed
        home.mkdir(parents=True)
        found = _definitions(accounts, ADMINISTRATOR if managed else None)
        (home / "definitions.json").write_text(json.dumps(found))
        names = ("rabbitmq_management", *plugins) if managed else plugins
        (home / "plugins").write_text(f"[{','.join(names)}].")
        self._configure()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def node(self) -> str:
        """Its name, for ``rabbitmqctl``."""
        return f"t{self.port}@localhost"

    def _configure(self, *lines: str) -> None:
        management = (
            f"management.tcp.port = {self.management_port}",
            "management.tcp.ip = 127.0.0.1",
        )
        config = (
            f"listeners.tcp.1 = 127.0.0.1:{self.port}",
            f"load_definitions = {self.home / 'definitions.json'}",
            *(management if self._managed else ()),
            *self._cluster(),
            *lines,
        )
        (self.home / "rabbitmq.conf").write_text("\n".join(config) + "\n")

    def _cluster(self) -> tuple[str, ...]:
        if self._joins is None:
            return ()
        shutil.copy2(self._joins.home / COOKIE, self.home / COOKIE)
        return (
            "cluster_formation.peer_discovery_backend = classic_config",
            f"cluster_formation.classic_config.nodes.1 = {self._joins.node}",
            f"cluster_formation.classic_config.nodes.2 = {self.node}",
            "cluster_formation.randomized_startup_delay_range.min = 0",
            "cluster_formation.randomized_startup_delay_range.max = 1",
        )

    def configure(self, *lines: str, advanced: str = "") -> None:
        """Set more of its configuration, which counts from the next start on.

        Args:
            lines: Of ``rabbitmq.conf``.
            advanced: Terms of Erlang for the application ``rabbit``.
        """
        self._configure(*lines)
        (self.home / "advanced.config").write_text(f"[{{rabbit, [{advanced}]}}].\n")

    def url(self, account: str) -> str:
        return f"amqp://{account}:{PASSWORD}@127.0.0.1:{self.port}/%2Fhcp"

    def start(self) -> None:
        program = broker_program()
        assert program is not None, "install rabbitmq-server"
        env = {
            **os.environ,
            "HOME": str(self.home),  # of the cookie
            "RABBITMQ_NODENAME": self.node,
            "RABBITMQ_DIST_PORT": str(self._between),
            "RABBITMQ_MNESIA_BASE": str(self.home / "data"),
            "RABBITMQ_LOG_BASE": str(self.home / "log"),
            "RABBITMQ_CONFIG_FILE": str(self.home / "rabbitmq.conf"),
            "RABBITMQ_ADVANCED_CONFIG_FILE": str(self.home / "advanced.config"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.home / "plugins"),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
        }
        out = (self.home / "out").open("ab")
        with out:
            self._process = subprocess.Popen(
                [program],
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        until_s = steady_s() + START_S_MAX
        while not self._answers():
            assert self._process.poll() is None, (self.home / "out").read_text()
            assert steady_s() < until_s, (self.home / "out").read_text()
            pause(0.2)

    def _answers(self) -> bool:
        """Return whether it takes connections; it opens its ports last."""
        ports = (self.port, self.management_port) if self._managed else (self.port,)
        return all(_listens(each) for each in ports)

    def kill(self) -> None:
        """End it at once, as a power cut does."""
        if self._process is not None:
            os.killpg(self._process.pid, 9)
            self._process.wait(STOP_S_MAX)
            self._process = None

    def stop(self) -> None:
        """End it; what is durable stays."""
        if self._process is not None:
            os.killpg(self._process.pid, 15)
            try:
                self._process.wait(STOP_S_MAX)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, 9)
                self._process.wait(STOP_S_MAX)
            self._process = None


@contextmanager
def running(folder: Path, accounts: tuple[str, ...], *, managed: bool = False) -> Iterator[Broker]:
    """Run a broker, with these accounts, as long as the block does."""
    made = Broker(folder, accounts, managed=managed)
    made.start()
    yield made
    made.stop()


def _listens(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), 1.0):
            return True
    except OSError:
        return False


def _definitions(accounts: Iterable[str], administrator: str | None) -> dict[str, object]:
    names = list(accounts)
    tagged = {
        **dict.fromkeys(names, ""),
        **({administrator: "administrator"} if administrator else {}),
    }
    return {
        "users": [
            {
                "name": name,
                "password_hash": _hashed(name),
                "hashing_algorithm": "rabbit_password_hashing_sha256",
                "tags": tags,
            }
            for name, tags in tagged.items()
        ],
        "vhosts": [{"name": VHOST if names else "/"}],
        "permissions": [
            {"user": name, "vhost": VHOST, "configure": ".*", "write": ".*", "read": ".*"}
            for name in names
        ],
    }


def _hashed(name: str) -> str:
    salt = hashlib.sha256(name.encode()).digest()[:4]
    return base64.b64encode(salt + hashlib.sha256(salt + PASSWORD.encode()).digest()).decode()
