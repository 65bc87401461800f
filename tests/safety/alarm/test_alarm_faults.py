"""Every single fault of plant and wires in a whole growth: how often it calls, in a table."""

from collections.abc import Iterator

import pytest

from alarmed import Act
from labharness.faces.testing.faults import simulated_of
from labharness.journal.reading import read
from labharness.lab import Lab, LabPlan
from labharness.safety.guard import Latch
from rig import Injection, Run, cut, plant_fault

DWELL = "material_growth"
WINDOW_S = 600.0
CALLS_MAX = 10  # in any window: more is a flood (ISA-18.2)

pytestmark = [pytest.mark.soak, pytest.mark.timeout(900)]  # three dozen growths


def late(port: str) -> Act:
    def act(lab: Lab) -> None:
        simulated_of(lab).buses[port].faults.reply_late_s = 0.75

    return act


def garbled(port: str) -> Act:
    def act(lab: Lab) -> None:
        simulated_of(lab).buses[port].faults.reply_garbled = 1000

    return act


def faults(plan: LabPlan) -> Iterator[tuple[str, Act]]:
    yield "winding heats by itself", plant_fault("add_furnace_c_per_s", 20.0)
    yield "hydrogen in the room", plant_fault("h2_detector_offset_ppm", 9000.0)
    yield "air leak", plant_fault("air_leak_sccm", 50.0)
    for name in (
        "furnace_sensor_broken",
        "sulfur_sensor_broken",
        "estop_open",
        "lid_open",
        "exhaust_lost",
        "enclosure_open",
        "outlet_blocked",
    ):
        yield name.replace("_", " "), plant_fault(name)
    for row in plan.file.port:
        yield f"port {row.name} cut", cut(row.name)
        yield f"port {row.name} late", late(row.name)
        yield f"port {row.name} garbled", garbled(row.name)


@pytest.mark.promise(22)
def test_no_single_fault_of_a_growth_floods(short_plan: LabPlan, run_task: Run) -> None:
    print("\nfault                       calls  in 10 min  alarms  first-out; what else called")  # noqa: T201 - the measured table
    for name, act in faults(short_plan):
        ran = run_task(short_plan, inject=(Injection(DWELL, 60.0, act),))
        rows = [each for each in read(ran.result.folder / "journal.sqlite") if each.kind == "alarm"]
        calls = [each for each in rows if each.body["called"]]
        active = {each.body["alarm"] for each in rows if each.body["event"] == "activate"}
        most = max(
            (sum(one.at_s <= each.at_s < one.at_s + WINDOW_S for each in calls) for one in calls),
            default=0,
        )
        said = ", ".join(each.body["alarm"] for each in calls)
        print(f"{name:27} {len(calls):5}  {most:9}  {len(active):6}  {said}")  # noqa: T201 - the measured table
        assert most <= CALLS_MAX
        assert bool(calls) == bool(
            ran.lab.line.trip_response.trips or ran.lab.line.events.warnings
        ), name
        Latch(short_plan.state_dir / "latch.json").open()
        (short_plan.state_dir / "alarms.jsonl").unlink(missing_ok=True)
