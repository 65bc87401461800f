"""The short line, served to clients that others wrote: each file here is one of them.

They are installed by the extra ``interop`` alone, in an environment of their own (``make
interop``); elsewhere these tests are not collected. Some are under the GPL: they are used here and
ship with nothing.
"""

import importlib
import os
import socket
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest

from served import Served

if find_spec("horiba_sdk") is None:
    collect_ignore_glob = ["test_*.py"]

MIDAS_PORT = 5020  # the midas package takes no other on this machine
SPEED = 10  # the grating homes in one second


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The short line on real ports, its gas detector where its usual client looks for it."""
    options: list[object] = ["--speed", SPEED]
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", MIDAS_PORT)) != 0:  # nobody is there
            options += ["--tcp", f"detector={MIDAS_PORT}"]
    with Served(tmp_path_factory.mktemp("interop") / "served", *options) as served:
        yield served


def client(name: str) -> Any:
    """Import somebody else's client in a test, where its warnings are its own."""
    return importlib.import_module(name)


def terminal(lab: Served, port: str) -> str:
    """Return the device behind a served port; some clients take only paths below ``/dev``."""
    return os.path.realpath(str(lab.status["ports"][port]))
