"""What not every system has: a test that needs it is skipped elsewhere, with the reason."""

import os
import socket
import sys

import pytest

unix = pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="Windows has no such socket")
takes_open_files_away = pytest.mark.skipif(os.name == "nt", reason="Windows keeps an open file")
has_terminals = pytest.mark.skipif(os.name != "posix", reason="Windows has no pseudo-terminals")
serves_ports = pytest.mark.skipif(
    sys.platform != "linux", reason="serial ports are served on Linux"
)
names_any_file = pytest.mark.skipif(os.name == "nt", reason="Windows has no such names")
