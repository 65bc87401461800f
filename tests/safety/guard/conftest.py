"""What tests of the guard process are given: one at a bench, or one that they play themselves."""

from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from guard_rig import GuardBench, bench
from guard_stubs import ARMED, Remote, Started, talking
from guard_turns import Harness, Turn, guarding
from labharness.safety.guard.remote import RemoteGuard


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[GuardBench]:
    with bench(tmp_path) as made:
        yield made


@pytest.fixture
def turn(tmp_path: Path) -> Iterator[Turn]:
    """A guard process that begins where a test says, one turn after the other."""
    with guarding(tmp_path) as made:
        yield made


@pytest.fixture
def harness(turn: Turn) -> Harness:
    """One that has come, and armed the line."""
    harness = turn.comes()
    harness.arm()
    return harness


@pytest.fixture
def far() -> Remote:
    return Remote(ARMED)


@pytest.fixture
def child() -> Started:
    return Started()


@pytest.fixture
def guard(tmp_path: Path, far: Remote, child: Started) -> AbstractAsyncContextManager[RemoteGuard]:
    """The harness's end, which has met the far one."""
    return talking(tmp_path, far, child)


@pytest.fixture
def unmet(tmp_path: Path, far: Remote, child: Started) -> AbstractAsyncContextManager[RemoteGuard]:
    """The harness's end, which has not yet looked for the far one."""
    return talking(tmp_path, far, child, opened=False)
