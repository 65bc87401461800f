"""A copy of the code in which a bug can be planted, and tests run against the copy.

Each run is a child of a process that has imported the libraries and none of our code, which is what
the start of a test costs most.
"""

import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from compileall import compile_dir
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from py_compile import PycInvalidationMode
from typing import IO

__all__ = ["DRAWERS", "FAILED", "ROOT", "Copy", "copied"]

ROOT = Path(__file__).parent.parent
DRAWERS = ("labharness", "drivers", "simulators", "envelopes", "tests", "examples", "docs")
LIBRARIES = (
    "numpy",
    "pydantic",
    "pymodbus.client",
    "cryptography.fernet",
    "jsonschema",
    "simpy",
    "hypothesis.strategies",
)
# Plain assertions: to rewrite those of a test takes as long as most tests do, and none is read.
PYTEST = ("-q", "-x", "--assert=plain", "-p", "no:cacheprovider")
TEST_S_MAX = 120
FAILED = 1  # pytest's exit code when tests ran and some failed; others are no proof


@dataclass(frozen=True, slots=True)
class Copy:
    """The code and its tests in a folder of their own.

    Attributes:
        folder: Where.
        runner: The process whose children run the tests.
    """

    folder: Path
    runner: "subprocess.Popen[str]"

    @contextmanager
    def wrong(self, file: str, right: str, wrong: str) -> Iterator[None]:
        """Plant a bug for a while.

        Raises:
            LookupError: The text is not there, or not once.
        """
        path = self.folder / file
        healthy = path.read_text("utf-8")
        if healthy.count(right) != 1:
            raise LookupError(f"{file} does not hold {right!r} once")
        path.write_text(healthy.replace(right, wrong), "utf-8")
        try:
            yield
        finally:
            path.write_text(healthy, "utf-8")

    def run(self, *tests: str) -> tuple[int, str]:
        """Run tests of the copy against its code; give pytest's exit code and what it printed."""
        said = self.folder / "said.txt"
        asked, answers = _pipe(self.runner.stdin), _pipe(self.runner.stdout)
        asked.write(json.dumps([str(said), *tests]) + "\n")
        asked.flush()
        code = int(answers.readline() or -1)
        return code, said.read_text("utf-8", "replace")


@contextmanager
def copied(folder: Path) -> Iterator[Copy]:
    """Copy the code and its tests, and have them run there."""
    for drawer in DRAWERS:
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / drawer, folder / drawer, ignore=ignore)
    shutil.copy(ROOT / "pyproject.toml", folder)
    # By its hash, because a bug of the same length in the same second would be missed by its date.
    compile_dir(folder, quiet=1, invalidation_mode=PycInvalidationMode.CHECKED_HASH)
    paths = [folder, *(folder / drawer for drawer in ("drivers", "simulators", "envelopes"))]
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(str(path) for path in paths),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    with subprocess.Popen(
        [sys.executable, __file__],
        cwd=folder,
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as runner:
        yield Copy(folder, runner)
        _pipe(runner.stdin).close()


def _pipe(pipe: IO[str] | None) -> IO[str]:
    if pipe is None:
        raise RuntimeError("the runner has no pipes")
    return pipe


def _run_what_is_asked() -> None:
    """Fork for each line of standard input; a child that hangs is ended by its alarm."""
    import pytest

    for name in LIBRARIES:
        importlib.import_module(name)
    for line in sys.stdin:
        said, *tests = json.loads(line)
        child = os.fork()
        if child == 0:
            signal.alarm(TEST_S_MAX)
            out = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(out, 1)
            os.dup2(out, 2)
            code = pytest.main([*PYTEST, *tests])
            sys.stdout.flush()
            os._exit(code)
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _run_what_is_asked()
