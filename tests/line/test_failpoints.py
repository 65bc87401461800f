"""One write fails or the harness dies there: the room stays safe, journal and latch tell the truth.

Each point is a whole growth on the short line up to that write, then a restart over the same room:
the fresh harness reads what is so and sets nothing, a line that must be latched is not given out
before a named person has reset it, and then it grows again.
"""

import sys
from pathlib import Path

import pytest

from failplug import Failpoint
from failpoints import suffer
from labharness.chaos.scenario import Fault
from labharness.lab import LabPlan

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux names the file behind a descriptor (/proc)"
)

ESTOP = (Fault(kind="estop_open", stage="ramp", after_s=30.0),)
STOP = (Fault(kind="stop_request", stage="ramp", after_s=30.0),)
DIED = "died, latched"  # by the guard, which saw it die
WELL = "task_completed"
TRIPPED = "task_failed safety_violation {}, latched"


def lost(phase: str) -> str:
    """The journal is: the line trips, and the answer says in which phase."""
    return TRIPPED.format(phase)


def failed(phase: str) -> str:
    """A step is: its command may have arrived; the line is made safe, and verified."""
    return f"task_failed execution_error {phase}"


def silent(phase: str) -> str:
    """A port is: the line trips."""
    return f"{failed(phase)}, latched"


COMMIT, OPEN = "journal commit", "journal open"
BY_ESTOP = TRIPPED.format("ramp")

POINTS = (
    # the journal, from its first transaction to its last
    Failpoint(OPEN, "full", "", "no run"),
    Failpoint(OPEN, "dies before", "", "died"),
    Failpoint(OPEN, "dies after", "", "died"),
    Failpoint(COMMIT, "full", "arming", lost("arming")),
    Failpoint(COMMIT, "dies before", "arming", DIED, nth=2),
    Failpoint(COMMIT, "dies after", "arming", DIED),
    Failpoint(COMMIT, "dies before", "leak_check", DIED),
    Failpoint(COMMIT, "broken", "leak_check", lost("leak_check"), nth=2),
    Failpoint(COMMIT, "dies within", "purge", DIED),
    Failpoint(COMMIT, "locked", "purge", lost("purge")),
    Failpoint(COMMIT, "locked", "ramp", lost("ramp"), lasts=True),
    Failpoint(COMMIT, "full", "ramp", lost("ramp"), lasts=True),
    Failpoint(COMMIT, "dies after", "ramp", DIED),
    Failpoint(COMMIT, "dies before", "material_growth", DIED),
    Failpoint(COMMIT, "broken", "material_growth", lost("material_growth"), lasts=True),
    Failpoint(COMMIT, "dies within", "cooling", DIED, nth=2),
    Failpoint(COMMIT, "full", "transfer", lost("transfer")),
    Failpoint(COMMIT, "locked", "characterisation", lost("characterisation")),
    Failpoint(COMMIT, "dies after", "characterisation", DIED, nth=3),
    Failpoint(COMMIT, "full", "analysis", lost("analysis")),
    Failpoint(COMMIT, "dies after", "analysis", DIED),
    Failpoint(COMMIT, "dies within", "ramp", DIED, nth=2, faults=ESTOP),
    # the links: commands, polls, and the frames of a procedure
    Failpoint("relays command", "dies after", "loading", DIED),
    Failpoint("relays command", "dies within", "leak_check", DIED),
    Failpoint("relays command", "lost", "leak_check", failed("leak_check")),
    Failpoint("inert command", "dies within", "purge", DIED),
    Failpoint("inert command", "lost", "purge", failed("purge")),
    Failpoint("heat command", "dies before", "ramp", DIED),
    Failpoint("heat command", "dies after", "ramp", DIED, nth=2),
    Failpoint("heat command", "lost", "ramp", failed("ramp")),
    Failpoint("heat command", "half", "ramp", failed("ramp")),
    Failpoint("laser command", "dies after", "characterisation", DIED),
    Failpoint("spectrometer command", "dies within", "characterisation", DIED, nth=2),
    Failpoint("stage command", "lost", "characterisation", failed("characterisation")),
    Failpoint("heat read", "half", "material_growth", WELL, nth=20),
    Failpoint("heat read", "dies within", "material_growth", DIED, nth=20),
    Failpoint("heat read", "lost", "material_growth", silent("material_growth"), lasts=True),
    Failpoint("relays read", "lost", "ramp", silent("ramp"), lasts=True),
    Failpoint("relays read", "dies within", "ramp", DIED, nth=30),
    Failpoint("vacuum read", "lost", "leak_check", WELL, nth=5),
    Failpoint("vacuum read", "lost", "material_growth", silent("material_growth"), lasts=True),
    Failpoint("relays safe", "dies within", "arming", DIED, nth=3),
    Failpoint("relays safe", "lost", "arming", WELL),
    Failpoint("heat safe", "lost", "arming", failed("arming"), lasts=True),
    Failpoint("relays safe", "dies within", "ramp", DIED, faults=ESTOP),
    Failpoint("relays safe", "dies after", "ramp", DIED, nth=4, faults=ESTOP),
    Failpoint("relays safe", "half", "ramp", BY_ESTOP, nth=2, faults=ESTOP),
    Failpoint("heat safe", "lost", "ramp", BY_ESTOP, lasts=True, faults=ESTOP),
    Failpoint("inert safe", "dies before", "ramp", DIED, faults=STOP),
    Failpoint("relays safe", "lost", "ramp", "event ABORTED", faults=STOP),
    Failpoint("hydrogen safe", "dies after", "cooling", DIED),
    # the latch: its file, its name, the folder that holds the name
    Failpoint("fsync latch.new", "full", "", "task_rejected resource_unavailable"),
    Failpoint("open latch.new", "broken", "ramp", BY_ESTOP, faults=ESTOP),
    Failpoint("fsync latch.new", "full", "ramp", BY_ESTOP, faults=ESTOP),
    Failpoint("fsync latch.new", "broken", "ramp", BY_ESTOP, lasts=True, faults=ESTOP),
    Failpoint("open guard.new", "full", "arming", failed("arming")),
    Failpoint("fsync guard.new", "dies before", "arming", "died"),
    Failpoint("replace guard.armed", "dies after", "arming", DIED),
    Failpoint("fsync latch.new", "dies before", "ramp", DIED, faults=ESTOP),
    Failpoint("replace latch.json", "dies before", "ramp", DIED, faults=ESTOP),
    Failpoint("replace latch.json", "dies after", "ramp", DIED, faults=ESTOP),
    Failpoint("replace latch.json", "broken", "ramp", BY_ESTOP, faults=ESTOP),
    Failpoint("fsync state", "broken", "ramp", BY_ESTOP, faults=ESTOP),
    # alarms, artifacts, the answer, and whose line it is
    Failpoint("write alarms.jsonl", "full", "ramp", BY_ESTOP, lasts=True, faults=ESTOP),
    Failpoint("write alarms.jsonl", "half", "ramp", BY_ESTOP, faults=ESTOP),
    Failpoint("write alarms.jsonl", "dies within", "ramp", DIED, faults=ESTOP),
    Failpoint("fsync alarms.jsonl", "broken", "ramp", BY_ESTOP, faults=ESTOP),
    Failpoint("fsync .growth_log_partial.csv.part", "full", "ramp", BY_ESTOP, faults=ESTOP),
    Failpoint("replace growth_log_partial.csv", "dies before", "ramp", DIED, faults=ESTOP),
    Failpoint("replace index.json", "broken", "ramp", BY_ESTOP, faults=ESTOP),
    Failpoint("replace index.json", "dies after", "analysis", "died"),
    Failpoint("write_bytes submit.json", "half", "", "no run"),
    Failpoint("open line.lock", "broken", "", "no run"),
    Failpoint("open owner.json", "full", "", WELL),
    Failpoint("fsync answer.new", "full", "ramp", BY_ESTOP, faults=ESTOP),
    Failpoint("replace answer.json", "dies before", "ramp", DIED, faults=ESTOP),
)

QUICK = (
    Failpoint(OPEN, "full", "", "no run"),
    Failpoint("fsync latch.new", "full", "", "task_rejected resource_unavailable"),
    Failpoint("relays safe", "dies within", "arming", DIED, nth=3),
    Failpoint(COMMIT, "locked", "purge", lost("purge")),
    Failpoint("replace latch.json", "dies before", "ramp", DIED, faults=ESTOP),
)
"""Five of them; the growth after the restart is stopped once it purges."""

BEFORE_ARMING = QUICK[:2]


def test_there_are_forty_points_and_more_and_no_two_are_one() -> None:
    assert len({str(point) for point in POINTS}) == len(POINTS) >= 40
    assert set(QUICK) <= set(POINTS)


@pytest.mark.promise(16, 20)
@pytest.mark.parametrize(
    "point",
    [
        pytest.param(each, marks=[pytest.mark.thorough] * (each not in BEFORE_ARMING), id=str(each))
        for each in QUICK
    ],
)
def test_after_a_failing_write_a_restart_finds_the_line_as_it_is(
    short_plan: LabPlan, tmp_path: Path, point: Failpoint
) -> None:
    found = suffer(short_plan, point, tmp_path, whole=False)
    assert found.wrong == []
    assert found.ends == point.ends
    assert found.growths[-1] == "event ABORTED"


@pytest.mark.promise(16, 20)
@pytest.mark.soak
@pytest.mark.parametrize("point", POINTS, ids=str)
def test_after_any_failing_write_a_restart_grows_again(
    short_plan: LabPlan, tmp_path: Path, point: Failpoint
) -> None:
    found = suffer(short_plan, point, tmp_path, whole=True)
    print(f"{point!s:60} {found.ends}")  # noqa: T201 - the list is the result
    assert found.wrong == []
    assert found.ends == point.ends
    assert found.growths[-1] == WELL
    if point.lasts and point.write.endswith("latch.new"):
        assert any("latch could not be saved" in each for each in found.warnings)
