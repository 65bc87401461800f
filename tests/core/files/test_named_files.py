"""What stands in a file's place and is none is never waited for, and is never an open latch."""

import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from commands import say
from guard_rig import bench, until
from labharness.core.files.named import open_named
from labharness.lab import LabPlan
from labharness.safety.guard import Latch, LatchUnreadable
from labharness.safety.guard.remote_parts import Child
from platforms import unix
from rig import ON_SHORT

pytestmark = unix

BOUND_S = 20.0


def pipe(path: Path) -> None:
    os.mkfifo(path)


def door(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def dangling(path: Path) -> None:
    path.symlink_to(path.with_name("nothing"))


def loop(path: Path) -> None:
    path.symlink_to(path)


NO_FILES = (pipe, door, device, dangling, loop)
"""A socket that is bound for a moment leaves its name behind."""
PIPE_DAILY = [pytest.param(put, marks=[pytest.mark.soak] * (put is not pipe)) for put in NO_FILES]


@contextmanager
def within(bound_s: float) -> Iterator[None]:
    """Fail where something waits for longer: a file that is none would be waited for for ever."""

    def late(number: int, frame: object) -> None:
        raise AssertionError(f"not within {bound_s:g} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, bound_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def made_safe() -> None:
    said = say("safe", *ON_SHORT)
    first = said.out.splitlines()[0]
    assert (said.code, first) == (0, "immediate_shutdown: every step verified")


@pytest.mark.promise(14)
@pytest.mark.parametrize("name", ["latch.json", "guard.armed"])
@pytest.mark.parametrize("put", NO_FILES)
def test_a_latch_that_is_no_file_is_a_latch(
    tmp_path: Path, put: Callable[[Path], None], name: str
) -> None:
    put(tmp_path / name)
    with within(BOUND_S):
        with pytest.raises(LatchUnreadable, match="the line stays latched"):
            Latch(tmp_path / "latch.json")
        assert Latch.or_shut(tmp_path / "latch.json").trip is not None
    assert os.path.lexists(tmp_path / name), "a person finds out what it is"


@pytest.mark.promise(14)
def test_a_pipe_put_there_after_the_look_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "latch.json"
    path.write_text("{}", "utf-8")
    seen = path.stat()
    path.unlink()
    os.mkfifo(path)
    monkeypatch.setattr(Path, "stat", lambda path: seen)  # as it was a moment ago
    with within(5.0), pytest.raises(OSError, match="it is a pipe or a device, and no file"):
        open_named(path)


@pytest.mark.parametrize("put", NO_FILES)
@pytest.mark.parametrize("name", ["latch.json", "guard.armed"])
def test_a_line_whose_latch_is_no_file_is_made_safe_and_neither_set_nor_reset(
    short_plan: LabPlan, tmp_path: Path, put: Callable[[Path], None], name: str
) -> None:
    short_plan.make_state_dir()
    put(short_plan.state_dir / name)
    attend = ("--attend", "--speed", "fast", "--for", 5, "--out", tmp_path / "out")
    with within(BOUND_S):
        made_safe()
        said = say("set", "argon.setpoint", 100, "sccm", *attend, *ON_SHORT)
        assert (said.code, "the line stays latched" in said.err) == (1, True), said
        said = say("reset", "--name", "Ada", "--reason", "aired", *ON_SHORT)
        assert (said.code, "the line stays latched" in said.err) == (1, True), said
        assert "the line stays latched" in say("doctor", *ON_SHORT).out
    assert os.path.lexists(short_plan.state_dir / name)


@pytest.mark.promise(12)
@pytest.mark.parametrize("put", PIPE_DAILY)
@pytest.mark.parametrize(
    "name",
    [
        *("line.lock", "alarms.jsonl"),
        *(
            pytest.param(each, marks=pytest.mark.soak)
            for each in ("owner.json", "latch.new", "guard.new", "resets.jsonl")
        ),
    ],
)
def test_no_other_file_of_a_line_is_waited_for(
    short_plan: LabPlan, tmp_path: Path, put: Callable[[Path], None], name: str
) -> None:
    short_plan.make_state_dir()
    put(short_plan.state_dir / name)
    attend = ("--attend", "--speed", "fast", "--for", 5, "--out", tmp_path / "out")
    with within(3 * BOUND_S):
        made_safe()
        for words in (
            ("set", "argon.setpoint", 100, "sccm", *attend),
            ("reset", "--name", "Ada", "--reason", "aired"),
            ("doctor",),
        ):
            said = say(*words, *ON_SHORT)
            assert "Traceback" not in said.err + said.out
            assert "broke" not in said.err + said.out


@pytest.mark.parametrize("put", [pipe, dangling])
@pytest.mark.parametrize("name", ["latch.json", "guard.armed", "guard.jsonl", "guard.new"])
def test_a_guard_begins_whatever_stands_in_the_place_of_its_files(
    tmp_path: Path, put: Callable[[Path], None], name: str
) -> None:
    with bench(tmp_path) as rig:
        put(rig.state_dir / name)
        rig.start()
        caller = rig.call()
        latched = name in ("latch.json", "guard.armed")
        assert caller.welcome["latched"] is latched
        if latched:
            until(rig.made_safe, "the safe table")


def test_a_guard_begins_though_its_log_or_its_lock_is_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "guard.log")
    child = Child(("/bin/true",), tmp_path / "guard.log")
    with within(BOUND_S):
        child.start()
        until(lambda: not child.running(), "its end")
        assert child.complaint() == ""
    with bench(tmp_path / "bench") as rig:
        os.mkfifo(rig.state_dir / "guard.lock")
        guard = rig.start()
        _, err = guard.communicate(timeout=BOUND_S)
        rig.guard = None
        assert b"guard.lock: it is a pipe or a device, and no file" in err
        with suppress(OSError):
            (rig.state_dir / "guard.lock").unlink()
