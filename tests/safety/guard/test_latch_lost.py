"""A latch that cannot be written: the armed marker stands for it, on either guard."""

import errno
import resource
from collections.abc import Callable
from pathlib import Path

import pytest

from commands import say
from guarded import armed
from labharness.core.clock import VirtualLoop, run
from labharness.core.files.durable import write_durably
from labharness.core.vocabulary import Cause, Trip
from labharness.faces.testing.bench import Bench, Ran
from labharness.lab import Lab, LabPlan
from labharness.lab.operate.attend import Attendance
from labharness.lab.operate.idle_line import reset
from labharness.line import Line, NotArmed
from labharness.safety.guard import Latch, LatchUnreadable, NotPermitted, Source
from labharness.safety.guard.port_records import LEFT_ARMED
from labharness.safety.guard.shell import LoopGuard
from labharness.safety.kernel import Mode
from rig import SAFE_TABLE, SHORT_LINE, Injection, Run, deafen_argon, plant_fault

LEAK = Trip(Cause.GAS_LEAK, "stop", "h2.concentration", 1200.0, 1.0, "leak")


def full_disk(lab: Lab) -> None:
    """Let nothing more be written beside the latch."""

    def full(path: Path, text: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    lab.guard.latch.write = full  # type: ignore[attr-defined]  # the latch itself, on this lab


ENDS: dict[str, Callable[[Run, LabPlan], Ran]] = {
    "a trip": lambda run, plan: run(
        plan,
        inject=(
            Injection("ramp", 29.0, full_disk),
            Injection("ramp", 30.0, plant_fault("estop_open")),
        ),
    ),
    "a stop that nothing verifies": lambda run, plan: run(
        plan,
        inject=(Injection("ramp", 29.0, full_disk), Injection("ramp", 30.0, deafen_argon)),
        abort=("ramp", 31.0),
    ),
    "a good end that nothing verifies": lambda run, plan: run(
        plan,
        inject=(Injection("analysis", 0.0, full_disk), Injection("analysis", 0.0, deafen_argon)),
    ),
}


@pytest.mark.promise(14)
@pytest.mark.parametrize(
    "end", [pytest.param(end, marks=[pytest.mark.soak] * end.startswith("a good")) for end in ENDS]
)
def test_a_latch_that_was_never_on_the_disk_keeps_out_the_next_run_until_its_reset(
    short_plan: LabPlan, run_task: Run, end: str
) -> None:
    ran = ENDS[end](run_task, short_plan)
    assert ran.lab.line.memory.trip is not None
    assert not (short_plan.state_dir / "latch.json").exists()
    told = ran.body.get("execution_summary") or ran.body["data"]
    assert "the latch could not be saved" in str(told["warnings"])
    refused = run_task(short_plan)  # on a mended disk
    assert refused.body["reason_code"] == "resource_unavailable"
    assert "left armed" in refused.body["reason_message"]
    assert refused.lab.guard.core.log == []
    trip = reset(short_plan, "Ada", "looked at it")
    assert trip is not None
    assert trip.cause is Cause.COMMUNICATION
    assert run_task(short_plan, abort=("loading", 1.0)).body["data"]["final_state"] == "ABORTED"
    assert not (short_plan.state_dir / "guard.armed").exists(), (
        "a clean end takes the armed marker away"
    )


@pytest.mark.promise(14)
@pytest.mark.parametrize("mended", [True, False], ids=["saved later", "never saved"])
def test_a_mark_stays_for_as_long_as_it_stands_for_a_latch(tmp_path: Path, mended: bool) -> None:
    path = tmp_path / "latch.json"
    latch = Latch(path)
    latch.set_marker("stop")
    (tmp_path / "latch.new").mkdir()
    latch.close(LEAK)
    latch.clear_marker()
    found = Latch(path)
    assert found.trip is not None
    assert (found.trip.procedure, found.trip.detail) == ("stop", LEFT_ARMED)
    (tmp_path / "latch.new").rmdir()
    if mended:
        assert latch.saved()
        latch.clear_marker()
        assert Latch(path).trip == LEAK
        assert Latch(path).marker is None
    else:
        assert found.saved()
        assert Latch(path).trip == found.trip, "and the next one finds it in its file"
    again = Latch(path)
    again.open()
    assert Latch(path).trip is None
    assert list(tmp_path.iterdir()) == []


def test_a_mark_that_does_not_go_leaves_the_line_latched_and_breaks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "latch.json"
    latch = Latch(path)
    latch.set_marker("stop")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", read_only)
        latch.clear_marker()
        with pytest.raises(OSError, match="read-only"):
            Latch(path).open()
    assert Latch(path).trip is not None


def read_only(path: Path, missing_ok: bool = False) -> None:
    raise OSError(errno.EROFS, "read-only file system", str(path))


def test_a_mark_that_cannot_be_read_is_an_error_and_never_an_open_latch(tmp_path: Path) -> None:
    (tmp_path / "guard.armed").mkdir()
    with pytest.raises(LatchUnreadable, match="the line stays latched"):
        Latch(tmp_path / "latch.json")


def test_a_disk_that_takes_an_empty_file_and_no_byte_is_no_place_for_a_latch(
    tmp_path: Path,
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        (tmp_path / "empty").write_bytes(b"")
        with pytest.raises(OSError, match="File too large"):
            Latch(tmp_path / "latch.json").probe()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def loop_guard(folder: Path) -> LoopGuard:
    return LoopGuard(armed(), {}, Latch(folder / "latch.json"))


def test_a_loop_guard_that_died_armed_is_found_latched_and_a_clean_end_leaves_nothing(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        first = loop_guard(tmp_path)
        await first.arm()
        assert (tmp_path / "guard.armed").exists(), "before the first permit"
        second = loop_guard(tmp_path)  # the first is gone, and nobody made anything safe
        assert second.core.latched
        with pytest.raises(NotPermitted, match="named person"):
            await second.arm()
        await second.reset()
        assert not second.core.armed, "a reset is no start"
        await second.arm()
        second.disarm()
        assert loop_guard(tmp_path).latch.trip is None

    run(main(), VirtualLoop())
    assert list(tmp_path.iterdir()) == []


async def test_a_line_whose_mark_does_not_reach_the_disk_is_not_armed_and_nothing_is_written(
    simulated_lab: Bench,
) -> None:
    async with simulated_lab.opened() as lab:
        (lab.plan.state_dir / "guard.new").mkdir()
        with pytest.raises(NotArmed, match="the guard does not arm: Is a directory"):
            await lab.line.arm(SAFE_TABLE)
        assert {each.source for each in lab.guard.core.log or ()} == {Source.READ}
        assert lab.line.memory.mode is Mode.DISARMED


def test_a_line_driven_by_hand_says_that_its_latch_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def trips(self: Attendance, line: Line) -> None:
        now_s = line.clock.now_s()
        line.trip_response.trip(Trip(Cause.STOP_REQUEST, SAFE_TABLE, "test", None, now_s, "test"))

    def full(path: Path, text: str) -> None:
        if path.name == "latch.json":
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        write_durably(path, text)

    monkeypatch.setattr(Attendance, "_stay", trips)
    monkeypatch.setattr("labharness.safety.guard.latch.write_durably", full)
    words = ("set", "argon.setpoint", 100, "sccm", "--lab", SHORT_LINE, "--attend")
    said = say(*words, "--speed", "fast", "--for", 5, "--out", tmp_path / "by hand")
    assert said.code == 1
    assert "the latch could not be saved" in said.err
    again = say(*words, "--speed", "fast", "--for", 5, "--out", tmp_path / "again")
    assert "left armed" in again.err
