"""Pressures against the room: the line at 0, 680, 1,600 and 3,600 m keeps below the maker's limit.

A quartz tube with O-rings fails by the difference to the room, 0.02 MPa by its maker. What is asked
of the trip, the vent and the filling is read at the plant, in a room of that height.
"""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from commands import edited_lab, say
from hands import asked, until
from labharness.faces.testing.bench import Bench
from labharness.faces.testing.faults import simulated_of
from labharness.journal.reading import run_header
from labharness.lab import Lab, LabPlan, default_lab_path, read_lab
from labharness.lab.config.lab_facts import lab_facts_of
from labharness.line import NotArmed
from labharness.work.desk.folder import JOURNAL_NAME
from rig import SHORT_LINE, approved_copy, submission

PA_PER_TORR = 101_325.0 / 760.0
MAKER_PA = 20_000.0  # 0.02 MPa gauge
TRIP_PA = 0.15 * 101_325.0
HEIGHTS_M = (0, 680, 1600, 3600)
GAUGE_PA = 1_500.0  # 0.5 % of reading and its noise
LONG_S = 300.0
EACH = pytest.mark.parametrize(
    "height_m",
    [0, *(pytest.param(each, marks=pytest.mark.thorough) for each in HEIGHTS_M[1:])],
)


def room_pa(height_m: float) -> float:
    """The standard atmosphere, ISO 2533:1975, up to 11 km: 101.3, 93.4, 83.5 and 64.9 kPa here."""
    return float(101_325.0 * (1.0 - 0.0065 * height_m / 288.15) ** 5.2559)


def stated(folder: Path, height_m: float) -> LabPlan:
    """The short line in a room of that height, as its lab file states."""
    torr = room_pa(height_m) / PA_PER_TORR
    return approved_copy(
        folder, edit=lambda text: text.replace("ambient_torr = 760", f"ambient_torr = {torr:.1f}")
    )


def test_the_heights_are_those_of_the_standard() -> None:
    found = [room_pa(each) / 1000 for each in HEIGHTS_M]
    assert found == pytest.approx([101.3, 93.4, 83.5, 64.9], abs=0.1)


def above_the_room(lab: Lab, what: str = "pressure_pa") -> float:
    truth = simulated_of(lab).plant.truth()
    found: float = truth[what] - truth["ambient_pa"]
    return found


def shipped(folder: Path, height_m: float) -> LabPlan:
    """The line that ships, in a room of that height."""
    shutil.copytree(default_lab_path().parent, folder, dirs_exist_ok=True)
    path = folder / "lab.toml"
    text = path.read_text("utf-8")
    torr = room_pa(height_m) / PA_PER_TORR
    path.write_text(text.replace("ambient_torr = 760", f"ambient_torr = {torr:.1f}"), "utf-8")
    return read_lab(path)


@pytest.mark.promise(11)
@pytest.mark.parametrize(("line", "peak_pa_max"), [(stated, 25_000.0), (shipped, MAKER_PA)])
@EACH
def test_a_clogged_tube_trips_below_the_limit_of_its_maker(
    play: Callable[..., Any],
    tmp_path: Path,
    line: Callable[[Path, float], LabPlan],
    peak_pa_max: float,
    height_m: float,
) -> None:
    """A poll later a tube of 2 L has 0.5 kPa more, and one of 0.2 L 5 kPa."""

    async def scene(lab: Lab) -> None:
        simulated_of(lab).plant.faults.outlet_blocked = True
        async with asyncio.timeout(LONG_S):
            while lab.line.memory.trip is None:
                await lab.line.polled()
        assert lab.line.memory.trip.procedure == "relieve_pressure"
        await asyncio.sleep(LONG_S)
        assert TRIP_PA - GAUGE_PA < above_the_room(lab, "peak_pressure_pa") < peak_pa_max

    play(scene, line(tmp_path, height_m))


@pytest.mark.promise(11)
@EACH
def test_the_trip_itself_stands_below_the_limit_of_its_maker(
    tmp_path: Path, height_m: float
) -> None:
    plan = stated(tmp_path, height_m)
    torr = room_pa(height_m) / PA_PER_TORR
    (trip,) = [row for row in plan.envelope.trips if row.channel == "gauge.pressure"]
    assert (trip.high - torr) * PA_PER_TORR == pytest.approx(TRIP_PA, abs=10)
    wrong_torr = plan.room.differ_max  # more, and the line is not armed
    assert (trip.high - torr + wrong_torr) * PA_PER_TORR < MAKER_PA
    shut = plan.envelope.procedures["immediate_shutdown"].when[0]
    assert shut.channel == "gauge.pressure"
    assert shut.high == pytest.approx(torr - 60, abs=0.1)
    fill = plan.envelope.purge.backfill
    assert fill is not None
    assert (fill.low, fill.atmosphere) == (10, 760)
    assert fill.high == pytest.approx(torr - 20, abs=0.1)
    check = plan.envelope.purge.leak_check
    assert check is not None
    assert check.below == 1


@pytest.mark.promise(10)
@EACH
def test_a_tube_is_evacuated_filled_and_vented_in_its_own_room(
    play: Callable[..., Any], tmp_path: Path, height_m: float
) -> None:
    plan = stated(tmp_path, height_m)
    torr = room_pa(height_m) / PA_PER_TORR

    async def scene(lab: Lab) -> None:
        line = lab.line
        for channel, value in (("argon.setpoint", 400), ("box.nitrogen_bypass_shut", 1)):
            assert await asked(lab, channel, value) == ""
        await until(lab, lambda: line.volumes_purged("air") > 5)
        for cycle in range(3):
            assert await asked(lab, "argon.setpoint", 0) == ""
            if not cycle:
                assert await asked(lab, "box.vent", 0) == "", "its gauge reads the room"
            assert await asked(lab, "box.pump", 1) == ""
            assert await asked(lab, "box.pump_isolation", 1) == ""
            await until(lab, lambda: line.latest("gauge.pressure") < 5)
            assert line.memory.procedure("immediate_shutdown") == "hold_vacuum"
            assert await asked(lab, "box.pump_isolation", 0) == ""
            assert await asked(lab, "argon.setpoint", 20) == ""
            await until(lab, lambda: line.latest("gauge.pressure") > torr - 60)
            if line.latest("gauge.pressure") < torr - 25:
                assert "gauge.pressure" in await asked(lab, "box.vent", 1), "the oil would follow"
            await until(lab, lambda: line.latest("gauge.pressure") > torr - 15)
        assert line.memory.proofs.purged.backfills["air"] == 3
        assert line.memory.procedure("immediate_shutdown") == "immediate_shutdown"
        assert await asked(lab, "box.vent", 1) == ""
        await asyncio.sleep(60)
        assert simulated_of(lab).plant.truth()["sucked_back_pa"] < 20 * PA_PER_TORR
        assert abs(above_the_room(lab)) < 2_000

    play(scene, plan)


@pytest.mark.promise(10)
@pytest.mark.soak
@EACH
def test_a_growth_comes_to_its_end_in_its_own_room(
    simulated_lab: Bench, tmp_path: Path, height_m: float
) -> None:
    ran = simulated_lab.on(stated(tmp_path, height_m)).run(submission())
    assert ran.type == "task_completed", ran.body
    header = run_header(ran.result.folder / JOURNAL_NAME)
    assert header["ambient_torr"] == pytest.approx(room_pa(height_m) / PA_PER_TORR, abs=0.1)
    assert ran.truth["sucked_back_pa"] < 20 * PA_PER_TORR
    assert ran.truth["peak_pressure_pa"] - ran.truth["ambient_pa"] < TRIP_PA


# ---- what is said of the room


async def never(lab: Lab) -> None:
    raise AssertionError("it runs")


@pytest.mark.promise(11)
@pytest.mark.parametrize("height_m", [1600, 3600])
def test_a_line_is_not_armed_by_the_pressure_of_another_room(
    play: Callable[..., Any], tmp_path: Path, height_m: float
) -> None:
    """A lab file copied from sea level: its trip would stand at 1.6 times the maker's limit."""
    torr = room_pa(height_m) / PA_PER_TORR
    plan = approved_copy(
        tmp_path,
        edit=lambda text: text.replace(
            "vented = true", f"vented = true\nambient_torr = {torr:.1f}"
        ),
    )
    assert plan.room.ambient == 760
    with pytest.raises(NotArmed, match=r"the room has 760 by the lab file \(ambient_torr\), and "):
        play(never, plan)


@pytest.mark.promise(11)
def test_a_line_whose_room_nobody_knows_is_not_armed(
    play: Callable[..., Any], tmp_path: Path
) -> None:
    plan = approved_copy(tmp_path, edit=lambda text: text.replace("ambient_torr = 760", "# none"))
    assert plan.room.ambient is None
    with pytest.raises(NotArmed, match="the pressure of the room is not known"):
        play(never, plan)
    said = say("lab", "check", "--lab", plan.path)
    assert said.code == 1
    assert "finding: lab.ambient_torr: it is missing" in said.out
    assert "ambient_torr = 760 # in [lab]" in said.out


@pytest.mark.parametrize("torr", ["449.9", "800.1", "101.3", "1013"])
def test_a_room_that_no_lab_stands_in_is_refused(tmp_path: Path, torr: str) -> None:
    lab = edited_lab(tmp_path, "ambient_torr = 760", f"ambient_torr = {torr}")
    say("lab", "check", "--lab", lab).is_one_plain_error("lab.ambient_torr", torr)


IS_PRESSURE = "gauge.pressure is a pressure, and "
WRONG = {
    "no unit": (
        'at_most = 60, unit = "Torr gauge" }',
        "at_most = 60 }",
        "interlock 'the vent shuts only on a gauge that reads the atmosphere': "
        f"{IS_PRESSURE}it has no unit; it takes 'Torr gauge' (against the room) or 'Torr absolute'",
    ),
    "a unit that does not say which": (
        'at_most = 60, unit = "Torr gauge" }',
        'at_most = 60, unit = "Torr" }',
        f"{IS_PRESSURE}its unit is 'Torr'",
    ),
    "another unit": (
        'at_most = 60, unit = "Torr gauge" }',
        'at_most = 60, unit = "mbar gauge" }',
        f"{IS_PRESSURE}its unit is 'mbar gauge'",
    ),
    "a unit of what is none": (
        '{ channel = "sulfur.setpoint_rate", at_least = 0.1, at_most = 60 }',
        '{ channel = "sulfur.setpoint_rate", at_least = 0.1, at_most = 60, unit = "Torr gauge" }',
        "sulfur.setpoint_rate is in 'degC/min', not 'Torr gauge'",
    ),
    "a backfill": (
        'high_unit = "Torr gauge"\n',
        "",
        f"purge.backfill.high: {IS_PRESSURE}it has no unit",
    ),
    "a leak check": (
        'below_unit = "Torr absolute"\n',
        "",
        f"purge.leak_check.below: {IS_PRESSURE}it has no unit",
    ),
    "the safety envelope": (
        'unit = "atm gauge"',
        'unit = "bar gauge"',
        "parameters.pressure: unit 'bar gauge' is not one of atm, atm gauge, torr, torr gauge",
    ),
    "a gauge that is not watched": (
        '[ambient]\nchannel = "gauge.pressure"',
        '[ambient]\nchannel = "argon.pressure"',
        "argon.pressure has no [[watch]], though rules rest on it",
    ),
}


@pytest.mark.promise(11)
@pytest.mark.parametrize("name", WRONG)
def test_a_pressure_says_which_one_it_is(tmp_path: Path, name: str) -> None:
    old, new, words = WRONG[name]
    lab = edited_lab(tmp_path, old, new)
    say("lab", "check", "--lab", lab).is_one_plain_error(words)


def test_the_example_of_the_protocol_is_absolute_as_it_stands(tmp_path: Path) -> None:
    """HCP L3 gives 5 atm, and no room."""
    lab = edited_lab(tmp_path, 'max = 0.15\nunit = "atm gauge"', 'max = 5\nunit = "atm"')
    for torr in ("760", "487"):
        text = lab.read_text("utf-8")
        here = text.replace("ambient_torr = 760", f"ambient_torr = {torr}")
        (tmp_path / "here.toml").write_text(here, "utf-8")
        plan = read_lab(tmp_path / "here.toml")
        (trip,) = [row for row in plan.envelope.trips if row.channel == "gauge.pressure"]
        assert trip.high == pytest.approx(5 * 760)
        assert plan.safety_envelope["parameters"]["pressure"] == {
            "max": 5.0,
            "unit": "atm",
            "hard_limit": True,
        }


def test_callers_are_told_which_pressure_is_meant(tmp_path: Path) -> None:
    plan = stated(tmp_path, 1600)
    assert plan.safety_envelope["parameters"]["pressure"] == {
        "max": 0.15,
        "unit": "atm gauge",
        "hard_limit": True,
        "ambient_torr": pytest.approx(626.6, abs=1),
    }


def test_the_plan_fills_the_tube_to_its_own_room(tmp_path: Path) -> None:
    name = "cvd-material-synthesis"
    assert lab_facts_of(read_lab(SHORT_LINE)).line_facts[name].ambient_torr == 760
    facts = lab_facts_of(stated(tmp_path, 3600)).line_facts[name]
    assert facts.ambient_torr == pytest.approx(487, abs=1)
