"""A real PostgreSQL for tests: a cluster of its own on a free port, for as long as it is used.

Where PostgreSQL is not installed the tests that need it are skipped, and fail in CI.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp

import pytest

from broker import free_port

ACCOUNT = "postgres"  # the server does not run as root
START_S_MAX = 60


def _programs() -> Path:
    """Return the folder of the server's programs, which Debian keeps out of the path."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"))
    path = shutil.which("pg_ctl") or (found[-1] if found else None)
    if path is not None:
        return Path(path).parent
    if os.environ.get("CI"):
        pytest.fail("PostgreSQL is not installed: apt install postgresql")
    pytest.skip("PostgreSQL is not installed")


@contextmanager
def postgresql() -> Iterator[str]:
    """Start a server; yield the address of a database in it."""
    programs, root = _programs(), Path(mkdtemp(prefix="postgres-"))
    whose = ["runuser", "-u", ACCOUNT, "--"] if os.geteuid() == 0 else []
    if whose:
        shutil.chown(root, ACCOUNT)
    port, data = free_port(), root / "data"

    def run(program: str, *words: str) -> None:
        command = [*whose, str(programs / program), *words]
        done = subprocess.run(
            command, cwd=root, capture_output=True, text=True, check=False, timeout=START_S_MAX
        )
        assert done.returncode == 0, (command, done.stderr, done.stdout)

    run("initdb", "-D", str(data), "-U", "lab", "--auth", "trust", "-N")
    options = f"-p {port} -h 127.0.0.1 -k {root} -c fsync=off"
    run("pg_ctl", "-D", str(data), "-o", options, "-l", str(root / "log"), "-w", "start")
    try:
        yield f"postgresql://lab@127.0.0.1:{port}/postgres"
    finally:
        run("pg_ctl", "-D", str(data), "-m", "immediate", "-w", "stop")
        shutil.rmtree(root, ignore_errors=True)
