"""A link that was lost and is back: its instruments are prepared again, or the line trips."""

import asyncio
from typing import Any

import pytest

from alarmed import Watched
from cut_wires import cut
from labharness.core.vocabulary import Cause, Command, Ending
from labharness.faces.testing.faults import simulated_of
from labharness.lab import Lab
from labharness.line import NotArmed
from labharness.line.preparing import LOSSES_MAX, RETURN_S_MAX
from labharness.safety.kernel import Mode
from labharness_simulators.alicat_basis2 import WATCHDOG
from rig import SAFE_TABLE

HYDROGEN = Command("hydrogen.setpoint", 0.0, "sccm")
ARGON = Command("argon.setpoint", 100.0, "sccm")
MOMENTS_S = [0.0, 0.01, 0.03, 0.06, 0.1]  # while two values are prepared


def words(lab: Lab) -> dict[int, int]:
    """Return what the hydrogen controller keeps, and loses when it restarts."""
    found: dict[int, int] = simulated_of(lab).faces["hydrogen"]._words
    return found


def lose(lab: Lab, port: str = "hydrogen", *, restarted: bool = True) -> None:
    """Have a guard tell of a link that was lost and is open again at once."""
    if restarted and port == "hydrogen":
        words(lab)[WATCHDOG] = 0
    lab.line.guard.on_link_lost(port, "unplugged")


async def back(watched: Watched) -> None:
    """Wait until no link is missing any more."""
    await watched.until(lambda: not watched.lab.line._reconnecting.missing(), 5.0)


async def goes_on(watched: Watched) -> None:
    """Start the line, and see that hydrogen can be set and what restarted is prepared."""
    watched.lab.line.start()
    assert (await watched.lab.line.perform(HYDROGEN)).ending is Ending.CONFIRMED
    assert words(watched.lab)[WATCHDOG] == 5000


def intents(watched: Watched) -> list[str]:
    return [each["channel"] for each in watched.journaled("intent")]


def links(watched: Watched) -> list[tuple[str, str]]:
    return [
        (kind, each["port"])
        for kind in ("link_lost", "link_back")
        for each in watched.journaled(kind)
    ]


def tripped(watched: Watched) -> dict[str, Any]:
    trip = watched.journaled("trip")[0]
    assert trip["cause"] == Cause.COMMUNICATION.value
    return trip


@pytest.mark.promise(3)
async def test_an_instrument_is_prepared_again_before_its_next_command(watched: Watched) -> None:
    lab = watched.lab
    assert words(lab)[WATCHDOG] == 5000
    before = len(intents(watched))
    lose(lab)
    outcome = await lab.line.perform(HYDROGEN)
    assert outcome.ending is Ending.CONFIRMED
    assert words(lab)[WATCHDOG] == 5000
    sent = ["setpoint_source", "watchdog_ms", "setpoint"]
    assert intents(watched)[before:] == [f"hydrogen.{each}" for each in sent]
    assert lab.line.memory.trip is None
    await watched.close()
    assert watched.journaled("identified")[-1]["instrument"] == "hydrogen"
    assert links(watched) == [("link_lost", "hydrogen"), ("link_back", "hydrogen")]


async def test_nothing_else_passes_on_that_port_and_all_on_the_others(watched: Watched) -> None:
    line = watched.lab.line
    first = asyncio.ensure_future(line.perform(ARGON))
    flight = asyncio.ensure_future(line.perform(HYDROGEN))
    await asyncio.sleep(0)  # one is on its way, and one waits for its turn
    lose(watched.lab)
    early = await flight
    assert (await first).ending is Ending.CONFIRMED
    assert early.ending is Ending.REFUSED, early
    assert "the link of port hydrogen was lost" in early.detail
    assert (await line.perform(ARGON)).ending is Ending.CONFIRMED
    assert (await line.perform(HYDROGEN)).ending is Ending.CONFIRMED


async def test_an_instrument_with_nothing_to_prepare_is_asked_who_it_is(watched: Watched) -> None:
    before = len(intents(watched))
    lose(watched.lab, "relays")
    await back(watched)
    assert len(intents(watched)) == before
    await watched.close()
    assert watched.journaled("identified")[-1]["instrument"] == "box"
    assert links(watched) == [("link_lost", "relays"), ("link_back", "relays")]


@pytest.mark.promise(3)
async def test_who_does_not_say_who_it_is_in_time_trips(watched: Watched) -> None:
    lab = watched.lab
    began_s = lab.clock.now_s()
    cut(lab, "stage")  # nothing polls it, so no silence trips
    lose(lab, "stage")
    await watched.until(lambda: lab.line.memory.trip is not None, 2 * RETURN_S_MAX)
    assert lab.clock.now_s() - began_s < RETURN_S_MAX + 1.0
    await watched.close()
    assert "not prepared again within 30 s" in tripped(watched)["detail"]


@pytest.mark.promise(3)
async def test_a_link_that_does_not_hold_trips(watched: Watched) -> None:
    for times in range(LOSSES_MAX + 1):
        assert watched.lab.line.memory.trip is None, times
        lose(watched.lab)
        await asyncio.sleep(10.0)
    assert watched.lab.line.memory.trip is not None
    await watched.close()
    assert "it was lost 6 times" in tripped(watched)["detail"]


@pytest.mark.promise(3)
async def test_a_line_that_is_held_sets_nothing_and_trips_in_time(watched: Watched) -> None:
    line = watched.lab.line
    await line.hold()
    lose(watched.lab, "relays")  # who is only asked is no reason
    await asyncio.sleep(2 * RETURN_S_MAX)
    assert line.memory.trip is None
    assert not line.events.warnings
    before = len(intents(watched))
    lose(watched.lab)
    await asyncio.sleep(RETURN_S_MAX - 1.0)
    assert line.memory.trip is None
    assert [each for each in line.events.warnings if "port hydrogen" in each and "resume" in each]
    await asyncio.sleep(2.0)
    assert len(intents(watched)) == before
    await watched.close()
    assert "30 s; a line that is held sets nothing" in tripped(watched)["detail"]


@pytest.mark.parametrize("held_first", [True, False])
async def test_a_line_that_is_let_go_in_time_is_prepared_then(
    watched: Watched, held_first: bool
) -> None:
    line = watched.lab.line
    early = None
    if held_first:
        await line.hold()
    lose(watched.lab)
    if not held_first:
        early = asyncio.ensure_future(line.perform(HYDROGEN))
        await asyncio.sleep(0)  # it waits for the link
        await line.hold()
    await asyncio.sleep(10.0)
    assert line.memory.mode is Mode.HELD
    held = line.perform(HYDROGEN)
    assert (await asyncio.wait_for(held, 1.0)).ending is Ending.REFUSED
    line.start()
    if early is not None:
        assert (await early).ending is Ending.CONFIRMED
    assert (await line.perform(HYDROGEN)).ending is Ending.CONFIRMED
    assert words(watched.lab)[WATCHDOG] == 5000
    await asyncio.sleep(2 * RETURN_S_MAX)
    assert line.memory.trip is None
    await watched.close()
    assert links(watched) == [("link_lost", "hydrogen"), ("link_back", "hydrogen")]


@pytest.mark.parametrize("after_s", MOMENTS_S)
async def test_a_hold_that_comes_while_a_link_is_prepared_is_none_to_trip_on(
    watched: Watched, after_s: float
) -> None:
    line = watched.lab.line
    lose(watched.lab)
    await asyncio.sleep(after_s)
    await line.hold()
    await asyncio.sleep(5.0)
    assert line.memory.trip is None
    await goes_on(watched)


async def test_a_prepare_that_waits_for_its_turn_behind_a_hold_waits_for_its_end(
    watched: Watched,
) -> None:
    line = watched.lab.line
    async with line._writer.turn:
        hold = asyncio.ensure_future(line.hold())
        before = len(intents(watched))
        lose(watched.lab)
        await asyncio.sleep(1.0)
        assert len(intents(watched)) == before
    await hold
    await asyncio.sleep(5.0)
    assert intents(watched)[before:] == ["hydrogen.setpoint_source"], "refused, once"
    assert line.memory.trip is None
    await goes_on(watched)


@pytest.mark.parametrize("after_s", MOMENTS_S)
async def test_a_run_that_ends_while_a_link_is_prepared_ends_clean(
    watched: Watched, after_s: float
) -> None:
    line = watched.lab.line
    lose(watched.lab)
    await asyncio.sleep(after_s)
    assert (await line.settle(SAFE_TABLE)).complete
    before = len(intents(watched))
    refused = await line.perform(Command("hydrogen.setpoint", 5.0, "sccm"))
    assert refused.ending is Ending.REFUSED
    await asyncio.sleep(2 * RETURN_S_MAX)
    assert intents(watched)[before:] == ["hydrogen.setpoint"]
    assert line.memory.trip is None
    line.disarm()
    await line.arm(SAFE_TABLE)
    assert words(watched.lab)[WATCHDOG] == 5000
    await goes_on(watched)
    await watched.close()
    assert not watched.journaled("trip")


async def test_who_is_silent_when_a_run_ends_makes_no_trip_of_it(watched: Watched) -> None:
    line = watched.lab.line
    cut(watched.lab, "stage")  # no step of a procedure, and nothing polls it
    lose(watched.lab, "stage", restarted=False)
    await asyncio.sleep(1.0)
    assert (await line.settle(SAFE_TABLE)).complete
    await asyncio.sleep(2 * RETURN_S_MAX)
    assert line.memory.trip is None
    assert line._reconnecting.missing() == ("stage",)


@pytest.mark.promise(3)
async def test_a_link_that_is_lost_after_the_end_of_a_run_trips(watched: Watched) -> None:
    line = watched.lab.line
    lose(watched.lab)
    assert (await line.settle(SAFE_TABLE)).complete
    await asyncio.sleep(5.0)
    lose(watched.lab)  # what was verified on it may be undone
    await asyncio.sleep(RETURN_S_MAX + 1.0)
    assert line.memory.mode is Mode.TRIPPED
    await watched.close()
    assert "port hydrogen was lost" in tripped(watched)["detail"]


async def test_what_was_left_at_an_end_is_prepared_before_the_line_goes_on(
    watched: Watched,
) -> None:
    line = watched.lab.line
    lose(watched.lab)
    await line.settle(SAFE_TABLE)
    await asyncio.sleep(5.0)
    await goes_on(watched)


async def test_a_line_that_is_closed_while_a_link_is_prepared_has_not_tripped(
    watched: Watched,
) -> None:
    line = watched.lab.line
    await line.hold()
    lose(watched.lab)
    await asyncio.sleep(RETURN_S_MAX - 0.25)  # the line is closed next, and looked at till then
    await watched.close()
    assert not watched.journaled("trip")


async def test_a_procedure_asks_no_lost_link(watched: Watched) -> None:
    lose(watched.lab, "heat")
    assert (await watched.lab.line.trip_response.make_safe(SAFE_TABLE)).complete


async def test_a_line_that_was_disarmed_asks_before_it_is_armed(watched: Watched) -> None:
    lab = watched.lab
    await lab.line.trip_response.make_safe(SAFE_TABLE)
    lab.line.disarm()
    before = len(intents(watched))
    lose(lab)
    await asyncio.sleep(5.0)
    assert len(intents(watched)) == before, "and nothing is set till then"
    cut(lab, "hydrogen")
    with pytest.raises(NotArmed, match="hydrogen"):
        await lab.line.arm(SAFE_TABLE)
    assert lab.line.memory.mode is Mode.DISARMED
    cut(lab, "hydrogen", off=False)
    await asyncio.sleep(2.0)
    await lab.line.arm(SAFE_TABLE)
    assert words(lab)[WATCHDOG] == 5000
    await goes_on(watched)
    await watched.close()
    assert links(watched) == [("link_lost", "hydrogen"), ("link_back", "hydrogen")]


async def test_a_link_that_is_lost_while_arming_keeps_the_line_from_it(watched: Watched) -> None:
    line = watched.lab.line
    await line.trip_response.make_safe(SAFE_TABLE)
    line.disarm()
    for port in ("hydrogen", "relays"):
        arming = asyncio.ensure_future(line.arm(SAFE_TABLE))
        await watched.until(lambda: line.memory.mode is Mode.ARMING, 5.0)
        lose(watched.lab, port)
        with pytest.raises(NotArmed, match=f"{port}"):
            await arming
        assert line.memory.mode is Mode.DISARMED
    await line.arm(SAFE_TABLE)
