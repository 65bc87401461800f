"""A copy of the code in which a bug can be planted, and tests run against the copy.

Each run is a child of a process that has imported the libraries and none of our code, which is what
the start of a test costs most.
"""

import ctypes
import gc
import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import traceback
from collections.abc import Iterator
from compileall import compile_dir
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from py_compile import PycInvalidationMode
from typing import IO, Any

from _pytest.config import default_plugins

from planted_bug import PlantedBug
from planting import file_of, plant

ROOT = Path(__file__).parent.parent
DRAWERS = ("labharness", "drivers", "simulators", "envelopes", "tests", "examples", "docs")
LIBRARIES = (
    *("numpy", "pydantic", "pymodbus.client", "cryptography.fernet", "jsonschema", "simpy"),
    *("hypothesis.strategies", "msgspec", "pygments.formatters.terminal", "pytest"),
    *("anyio.pytest_plugin", "pytest_timeout", "xdist.plugin"),
    *(f"_pytest.{each}" for each in default_plugins),
)
# Plain assertions: to rewrite those of a test takes as long as most tests do, and none is read.
# What hangs is ended from outside: a timer of pytest's own would take the place of ours.
ONCE = "once"  # hypothesis's profile in a copy; conftest's is loaded before it
PYTEST = ("-q", "-x", "--assert=plain", "-p", "no:cacheprovider", "--timeout=0")
TEST_S_MAX = 100  # below the time that the test which plants has, or its answer is another's
FAILED = 1  # pytest's exit code when tests ran and some failed; others are no proof
LATE = -signal.SIGALRM
UNSIGNED = 100  # the labs could not even be read
SET_CHILD_SUBREAPER = 36  # linux/prctl.h
SHORT_LAB = "tests/short_line.toml"
SHIPPED_LAB = "envelopes/labharness_envelopes/labs/cvd_mos2"
SIGNED_LABS = (f"{SHIPPED_LAB}/lab.toml", SHORT_LAB)
SIGNED = (f"{SHIPPED_LAB}/approval.toml", "tests/short_line_approval.toml")


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
    def planted(self, bug: PlantedBug) -> Iterator[None]:
        """Plant a bug for a while.

        Raises:
            LookupError: What protects is not there, or not once.
        """
        file = file_of(bug.where)
        healthy = (self.folder / file).read_text("utf-8")
        with self.holds(file, plant(healthy, bug.where, bug.right, bug.wrong)):
            yield

    @contextmanager
    def holds(self, file: str, text: str) -> Iterator[None]:
        """Have another text in a file for a while."""
        path = self.folder / file
        healthy = path.read_text("utf-8")
        path.write_text(text, "utf-8")
        try:
            yield
        finally:
            path.write_text(healthy, "utf-8")

    def run(self, *tests: str, limit_s: int = TEST_S_MAX, signed: bool = False) -> tuple[int, str]:
        """Run tests of the copy against its code, in this order, up to the first that is red.

        Args:
            tests: Their names.
            limit_s: Ended after this time, s.
            signed: Sign the approvals of the simulated labs first, as after an edit of their files.

        Returns:
            pytest's exit code, ``LATE`` after the limit, ``UNSIGNED`` if there was nothing to sign;
            and what it printed.
        """
        said = self.folder / "said.txt"
        asked, answers = _pipe(self.runner.stdin), _pipe(self.runner.stdout)
        with ExitStack() as kept:
            if signed:
                for file in SIGNED:
                    kept.enter_context(self.holds(file, (self.folder / file).read_text("utf-8")))
            request = (str(said), limit_s, signed, tests)
            asked.write(json.dumps(request) + "\n")
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
    ours, pipe = [sys.executable, __file__], subprocess.PIPE
    with subprocess.Popen(ours, cwd=folder, env=env, stdin=pipe, stdout=pipe, text=True) as runner:
        yield Copy(folder, runner)
        _pipe(runner.stdin).close()


def _pipe(pipe: IO[str] | None) -> IO[str]:
    if pipe is None:
        raise RuntimeError("the runner has no pipes")
    return pipe


def _run_what_is_asked() -> None:
    """Fork for each line of standard input; a child that hangs is ended by its alarm."""
    for name in LIBRARIES:
        importlib.import_module(name)
    _adopt_orphans()
    gc.disable()  # conftest enables it in each child, when it has read the tests
    gc.freeze()
    for line in sys.stdin:
        said, limit_s, signed, tests = json.loads(line)
        child = os.fork()
        if child == 0:
            signal.alarm(limit_s)
            out = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(out, 1)
            os.dup2(out, 2)
            code = _run(signed, tests)
            sys.stdout.flush()
            os._exit(code)
        _, status = os.waitpid(child, 0)
        _end_orphans()
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


def _run(signed: bool, tests: list[str]) -> int:
    import hypothesis
    import pytest

    phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)  # the least example is no news
    hypothesis.settings.register_profile(
        ONCE, derandomize=True, database=None, deadline=None, phases=phases
    )
    if signed:
        try:
            importlib.import_module("labharness.lab.wiring.approve_sim").main(list(SIGNED_LABS))
        except Exception:  # noqa: BLE001 - whatever a mutant of a row makes of its reader
            traceback.print_exc()
            return UNSIGNED
    rank = {test: number for number, test in enumerate(tests)}
    return int(
        pytest.main([*PYTEST, f"--hypothesis-profile={ONCE}", *tests], plugins=[_InOrder(rank)])
    )


class _InOrder:
    """A plugin of pytest: the tests run in the order in which they were asked for."""

    def __init__(self, rank: dict[str, int]) -> None:
        self._rank = rank

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Sort them; what was asked for by its file stays as it is."""
        items.sort(key=lambda item: self._rank.get(item.nodeid, -1))


def _adopt_orphans() -> None:
    """Have a process that a test started and left become our child, so that we can end it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _end_orphans() -> None:
    """End what a test left behind: a mutated guard may not know how to end."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(path.read_text().rpartition(")")[2].split()[1])
            if parent == os.getpid():
                os.kill(int(path.parent.name), signal.SIGKILL)
                os.waitpid(int(path.parent.name), 0)
        except (OSError, ValueError, IndexError):  # it is gone already
            continue


if __name__ == "__main__":
    _run_what_is_asked()
