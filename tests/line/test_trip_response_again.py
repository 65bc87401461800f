"""A trip stays in force: what is not verified is sent again, and nothing else is sent over it."""

import asyncio
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from alarmed import Watched
from cut_wires import cut
from labharness.core.vocabulary import Cause, Command
from labharness.faces.testing.faults import simulated_of
from labharness.lab import Lab, LabPlan
from labharness.line.trip_response import AGAIN_S, DownStage, Reached
from labharness.safety.guard import Source
from labharness.work.desk.by_hand import ByHand, Nobody
from procedures_failing import ON, SHUTDOWN, cause, energising, is_off

RELIEVE = "relieve_pressure"
FLOOD = 10  # annunciations in 10 min are none


@pytest.fixture
def lab(short_plan: LabPlan, tmp_path: Path) -> AbstractAsyncContextManager[Lab]:
    """The short line, with mains and light."""
    return energising(short_plan, tmp_path)


def sent(lab: Lab) -> int:
    return sum(each.source is Source.PROCEDURE for each in lab.guard.core.log or [])


async def energise(watched: Watched) -> None:
    for command in ON:
        await watched.lab.line.perform(command)
    assert not is_off(watched.lab)


@pytest.mark.thorough
@pytest.mark.promise(12)
async def test_a_port_that_comes_back_long_after_is_made_safe_and_told_of_once(
    watched: Watched,
) -> None:
    told: list[str] = []
    await energise(watched)
    line = watched.lab.line
    line.events.on_warning = told.append
    cut(watched.lab, "relays")
    line.trip_response.trip(cause(watched.lab, SHUTDOWN))
    await line.trip_response.verified()
    assert not line.trip_response.verifications[-1].complete
    await asyncio.sleep(600.0)
    records = len(watched.journaled("safe_frame"))
    assert not is_off(watched.lab)
    cut(watched.lab, "relays", off=False)
    await asyncio.sleep(AGAIN_S + 3.0)
    assert is_off(watched.lab)
    assert line.trip_response.verifications[-1].complete
    frames = sent(watched.lab)
    await asyncio.sleep(60.0)
    assert sent(watched.lab) == frames, "what is verified is not sent again"
    assert len(watched.journaled("safe_frame")) <= records + 8, "each step once more"
    await watched.close()
    complete = [each["complete"] for each in watched.journaled("verified")]
    assert complete[:2] == [True, False], "the safe table, and the trip in its own time"
    assert complete.count(True) == 2
    assert len(complete) <= 4, "what a try finds is recorded where it is new"
    late = [each for each in told if "verified" in each]
    assert len(late) == len(complete) - 2
    assert late[-1].startswith(f"{SHUTDOWN}: every step verified 6")
    assert len(watched.calls()) <= FLOOD
    assert len(watched.journaled("safe_frame")) < 80
    assert not watched.alarms.board.alarms[f"not_verified/{SHUTDOWN}"].state.active


async def test_a_line_that_is_closed_is_tried_no_more(watched: Watched) -> None:
    await energise(watched)
    cut(watched.lab, "relays")
    watched.lab.line.trip_response.trip(cause(watched.lab, SHUTDOWN))
    await asyncio.sleep(30.0)
    await watched.lab.line.close()
    frames = sent(watched.lab)
    await asyncio.sleep(60.0)
    assert sent(watched.lab) == frames


async def test_safe_by_hand_on_a_tripped_line_sends_what_is_in_force_and_looks_afresh(
    lab: Lab,
) -> None:
    line, hands = lab.line, ByHand(lab.line, Nobody())
    line.trip_response.trip(cause(lab, RELIEVE, Cause.OVER_PRESSURE))
    await line.trip_response.verified()
    before = len(lab.guard.core.log or [])
    done = await hands.answer({"do": "safe", "by": "Ada", "reason": "to be sure"})
    wave = [each.request.frame for each in lab.guard.core.procedures[RELIEVE]]
    log = (lab.guard.core.log or [])[before:]
    left = [each.frame for each in log if each.source is Source.PROCEDURE]
    assert sorted(left) == sorted(wave), "not the stop procedure over a graver one"
    assert (done["procedure"], done["unverified"]) == (RELIEVE, [])
    cut(lab, "inert")
    done = await hands.answer({"do": "safe", "by": "Ada", "reason": "once more"})
    assert any("argon.setpoint" in each for each in done["unverified"]), "not the old answer"
    cut(lab, "inert", off=False)


async def test_a_stop_request_of_a_tripped_line_sends_it_again_and_says_that_it_has_tripped(
    short_plan: LabPlan, tmp_path: Path
) -> None:
    class Owner(Nobody):
        def abort(self, reason: str) -> None:
            pass

    async with energising(short_plan, tmp_path) as lab:
        line, hands = lab.line, ByHand(lab.line, Owner())
        said = await hands.answer({"do": "stop", "by": "Ada", "reason": "test"})
        assert said["said"] == "stop requested: the line is being made safe"
        line.trip_response.trip(cause(lab, RELIEVE, Cause.OVER_PRESSURE))
        await line.trip_response.verified()
        before = sent(lab)
        said = await hands.answer({"do": "stop", "by": "Ada", "reason": "test"})
        assert "the line has tripped (test): relieve_pressure is sent again" in said["said"]
        await line.trip_response.verified()
        assert sent(lab) > before


@pytest.mark.promise(15)
@pytest.mark.parametrize("port", ["laser", "heat"])
async def test_the_way_down_ends_at_a_trip_that_comes_meanwhile(lab: Lab, port: str) -> None:
    reached: list[Reached] = []
    line = lab.line
    cut(lab, port)  # so that the first stage takes its whole time
    down = asyncio.ensure_future(line.bring_down(DownStage.STOP))
    await asyncio.sleep(2.0)
    line.trip_response.trip(cause(lab, RELIEVE, Cause.OVER_PRESSURE))
    reached.append(await down)
    await asyncio.sleep(1.0)
    assert line.latest("argon.setpoint") == 0.0, "no argon into a blocked tube"
    assert line.latest("box.argon_valve") == 0.0
    assert line.trip_response.verifications[-1].procedure == RELIEVE
    await lab.line.close()
    assert reached == [Reached(DownStage.TRIP, ("stop: a trip came meanwhile",))]


@pytest.mark.promise(15)
async def test_nothing_but_the_procedure_in_force_is_sent_while_a_trip_stands(lab: Lab) -> None:
    lab.line.trip_response.trip(cause(lab, RELIEVE, Cause.OVER_PRESSURE))
    made = await lab.line.trip_response.make_safe("close_all_valves_and_alert")
    assert (made.procedure, made.complete) == (RELIEVE, True)
    assert lab.line.latest("argon.setpoint") == 0.0


@pytest.mark.promise(12)
@pytest.mark.parametrize("pause_s", [0.05, 0.25, 1.0])
async def test_a_procedure_that_comes_back_is_verified_by_what_is_read_after_it(
    lab: Lab, pause_s: float
) -> None:
    trip_response = lab.line.trip_response
    trip_response.trip(cause(lab, SHUTDOWN, Cause.INTERLOCK_LOST))
    await asyncio.sleep(pause_s)
    trip_response.trip(cause(lab, RELIEVE, Cause.OVER_TEMPERATURE))
    await asyncio.sleep(pause_s)
    cut(lab, "inert")  # the frames of the third are lost
    trip_response.trip(cause(lab, SHUTDOWN, Cause.SENSOR_BREAK))
    await asyncio.sleep(1.0)
    cut(lab, "inert", off=False)
    await trip_response.verified()
    assert trip_response.verifications[-1].procedure == SHUTDOWN
    assert trip_response.verifications[-1].complete
    assert (await lab.line.read("argon.setpoint")) == 100.0


@pytest.mark.promise(12)
async def test_complete_is_what_one_look_shows(lab: Lab) -> None:
    argon = simulated_of(lab).faces["argon"]
    await lab.line.perform(Command("argon.setpoint", 90.0, "sccm"))
    cut(lab, "laser")  # a step stays open
    lab.line.trip_response.trip(cause(lab, SHUTDOWN))
    await asyncio.sleep(4.0)
    argon._setpoint_sccm = 0.0  # by a knob at the instrument, after it was read
    argon.setpoint_source = "A"
    cut(lab, "laser", off=False)
    await lab.line.trip_response.verified()
    assert not lab.line.trip_response.verifications[-1].complete
