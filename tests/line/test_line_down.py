"""What comes of making safe: what is not off is told, and a line comes down by stages."""

import asyncio

import pytest

from labharness.core.vocabulary import Cause
from labharness.line.trip_response import IN_FLIGHT_S_MAX, DownStage, Reached
from trip_response_alone import Safe, cause


@pytest.fixture
def safe() -> Safe:
    return Safe()


# ---- what comes of it


def test_what_is_not_dark_in_time_contradicts_what_was_verified(safe: Safe) -> None:
    safe.shows["furnace.power"] = 50.0

    async def then() -> None:
        await safe.trip_response.verified()
        assert len(safe.trip_response.verifications) == 2, "who waits, waits for that too"

    safe.after(0.0, cause(at_s=-2.0), then=then)
    first, last = safe.trip_response.verifications
    assert first.complete
    assert last.contradicted == (
        "furnace.power reads 50 , though furnace.setpoint = 20 is verified: "
        "it may still be heating",
    )
    assert 5.0 < last.within_s < 5.6, "from the trip on"
    assert safe.bodies("verified")[1]["contradicted"] == list(last.contradicted)
    assert "contradicted" not in safe.bodies("verified")[0]
    assert safe.told[-1] == f"shutdown: {last.contradicted[0]}"
    assert "shutdown False" in safe.told


def test_what_contradicts_is_told_beside_what_did_before(safe: Safe) -> None:
    safe.shows["furnace.power"] = 50.0
    safe.loop.call_later(20.0, safe.shows.__setitem__, "furnace.temperature", 310.0)
    safe.after(60.0, cause())
    last = safe.trip_response.verifications[-1]
    assert [text.split()[0] for text in last.contradicted] == [
        "furnace.power",
        "furnace.temperature",
    ]
    assert 30.0 < last.within_s < 30.5
    assert safe.trip_response.cooling_known


def test_whether_a_line_cools_is_known_when_the_look_at_it_has_ended(safe: Safe) -> None:
    assert safe.trip_response.cooling_known, "what was never safe has no such look"

    async def then() -> None:
        await safe.trip_response.verified()
        assert await safe.trip_response.hot("shutdown") == ("furnace.temperature",)
        assert not safe.trip_response.cooling_known
        await asyncio.sleep(31.0)
        assert safe.trip_response.cooling_known

    safe.after(0.0, cause(), then=then)
    assert len(safe.trip_response.verifications) == 1


async def test_a_line_that_is_let_go_is_looked_at_no_more() -> None:
    safe = Safe()
    await safe.trip_response.make_safe("shutdown")
    safe.trip_response.let_go()
    assert safe.trip_response.cooling_known
    safe.shows["furnace.temperature"] = 900.0
    await asyncio.sleep(60.0)
    assert safe.trip_response.verifications == []
    assert [names for names, _ in safe.looks if names == ("furnace.temperature",)] == [
        ("furnace.temperature",)
    ], "but for how hot it is"


async def test_a_procedure_that_comes_after_ends_the_look_at_the_one_before() -> None:
    safe = Safe()
    safe.shows["furnace.power"] = 50.0
    making = asyncio.create_task(safe.trip_response.make_safe("shutdown"))
    await asyncio.sleep(1.0)
    safe.trip_response.trip(cause(Cause.GAS_LEAK, "relieve", at_s=1.0))
    found = await making
    assert (found.procedure, found.contradicted) == ("shutdown", ())
    await asyncio.sleep(60.0)
    safe.trip_response.close()
    assert {each.procedure for each in safe.trip_response.verifications} == {"relieve"}


def test_a_line_made_safe_without_a_trip_is_told_with_what_contradicts_it(safe: Safe) -> None:
    safe.shows["furnace.power"] = 50.0
    found = safe.play(safe.trip_response.make_safe("shutdown"))
    assert not found.complete
    assert len(found.contradicted) == 1
    assert safe.trip_response.verifications == [found]


# ---- stage by stage


def down(safe: Safe, begin: DownStage, held_s: float = 0.0) -> Reached:
    async def held() -> None:
        await asyncio.sleep(held_s)

    return safe.play(safe.trip_response.bring_down(begin, held))


def test_the_first_stage_that_is_reached_in_time_ends_the_way_down() -> None:
    assert down(Safe(), DownStage.HOLD) == Reached(DownStage.HOLD, ())
    assert IN_FLIGHT_S_MAX == 5.0
    late = "hold: a command was still in flight after 5 s"
    assert down(Safe(), DownStage.HOLD, held_s=5.1) == Reached(DownStage.STOP, (late,))
    assert down(Safe(), DownStage.HOLD, held_s=4.9) == Reached(DownStage.HOLD, ())
    assert down(Safe(), DownStage.STOP) == Reached(DownStage.STOP, ())
    assert down(Safe(), DownStage.ABORT) == Reached(DownStage.ABORT, ())


def test_a_line_that_reaches_no_stage_trips_with_what_each_left_open(safe: Safe) -> None:
    safe.shows["box.contactor"] = 1.0
    open_step = "box.contactor = 0: mismatch (reads 1)"
    passed = (f"stop: {open_step}", f"abort: {open_step}")
    assert down(safe, DownStage.STOP) == Reached(DownStage.TRIP, passed)
    trip = safe.trip_response.memory.trip
    assert trip is not None
    assert (trip.cause, trip.channel, trip.value) == (Cause.STOP_REQUEST, "line", None)
    assert trip.detail == f"not verified by {'; '.join(passed)}"
    assert trip.at_s == pytest.approx(safe.trip_response.verifications[-1].within_s, abs=9.0)
    assert len(safe.trip_response.verifications) == 1, "and it is waited for"


def test_a_trip_that_comes_meanwhile_ends_the_way_down_and_no_stage_follows(safe: Safe) -> None:
    safe.loop.call_later(0.005, safe.trip_response.trip, cause(Cause.GAS_LEAK, "relieve"))
    assert down(safe, DownStage.STOP) == Reached(DownStage.TRIP, ("stop: a trip came meanwhile",))
    assert [kind for kind, _ in safe.fake.asked] == ["epoch", "repeat", "trip"]
    safe = Safe()
    safe.loop.call_later(0.005, safe.trip_response.trip, cause())
    late = "hold: a command was still in flight after 5 s"
    assert down(safe, DownStage.HOLD, held_s=9.0) == Reached(DownStage.TRIP, (late,))
    assert [kind for kind, _ in safe.fake.asked] == ["trip"]
