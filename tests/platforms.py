"""What not every system has: a test that needs it is skipped elsewhere, with the reason."""

import os
import socket

import pytest

__all__ = ["takes_open_files_away", "unix"]

unix = pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="Windows has no such socket")
takes_open_files_away = pytest.mark.skipif(os.name == "nt", reason="Windows keeps an open file")
