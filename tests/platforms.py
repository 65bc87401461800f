"""What not every system has: a test that needs it is skipped elsewhere, with the reason."""

import importlib
import os
import socket
import sys

import pytest

__all__ = [
    "fill_disk",
    "fills_a_disk",
    "has_terminals",
    "names_any_file",
    "serves_ports",
    "takes_open_files_away",
    "unix",
]

unix = pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="Windows has no such socket")
takes_open_files_away = pytest.mark.skipif(os.name == "nt", reason="Windows keeps an open file")
has_terminals = pytest.mark.skipif(os.name != "posix", reason="Windows has no pseudo-terminals")
serves_ports = pytest.mark.skipif(
    sys.platform != "linux", reason="serial ports are served on Linux"
)
names_any_file = pytest.mark.skipif(os.name == "nt", reason="Windows has no such names")
fills_a_disk = pytest.mark.skipif(
    not hasattr(os, "memfd_create"), reason="only Linux limits the files of another process"
)


def fill_disk(pid: int, size: int) -> None:
    """Let no file of a running process grow beyond a size, in bytes: the disk is full for it."""
    limits = importlib.import_module("resource")  # which Windows does not have
    limits.prlimit(pid, limits.RLIMIT_FSIZE, (size, size))
