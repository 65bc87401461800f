"""Making safe by itself: what is sent and when, what is looked at, and what is told of it."""

import asyncio
from dataclasses import replace

import pytest

from kernel_line import see
from labharness.core.vocabulary import Cause
from labharness.journal import JournalFailed
from labharness.line.procedures import StepState
from labharness.line.trip_response import tails
from labharness.safety.kernel import Bound, Mode
from line_alone import shown
from trip_response_alone import LOOK_S, STEPS, TOOK_S, Safe, cause, frames, states


@pytest.fixture
def safe() -> Safe:
    return Safe()


# ---- tripping


def test_a_trip_sends_first_then_counts_is_recorded_and_told(safe: Safe) -> None:
    seen: list[object] = []
    safe.events.on_abnormal = lambda trip: seen.append(
        (list(safe.fake.asked), safe.memory.mode, safe.memory.trip, len(safe.noted))
    )
    safe.fake.latch.write_error = "full"
    stop = cause()
    safe.after(0.0, stop)
    assert seen == [([("trip", "shutdown")], Mode.TRIPPED, stop, 1)]
    assert safe.bodies("trip") == [
        {
            "cause": "stop_request",
            "procedure": "shutdown",
            "channel": "line",
            "value": None,
            "detail": "because",
            "latch_error": "full",
        }
    ]
    assert safe.trip_response.trips == [stop]
    assert safe.trip_response.memory.trip == stop
    assert safe.woken == [0.0], "whoever waits for the line looks at it"


async def test_a_line_that_is_not_armed_trips_only_for_who_is_about_to_arm_it() -> None:
    safe = Safe()
    safe.memory.mode = Mode.DISARMED
    safe.trip_response.trip(cause())
    assert (safe.fake.asked, safe.told) == ([], [])
    safe.trip_response.trip(cause(), disarmed=True)
    assert safe.fake.asked == [("trip", "shutdown")]


def test_a_graver_cause_runs_its_procedure_over_a_lesser_and_each_is_told() -> None:
    leak, stop = cause(Cause.GAS_LEAK, "relieve"), cause()
    safe = Safe().after(0.0, stop, leak, stop, leak)
    assert [kind for kind in safe.fake.asked if kind[0] == "trip"] == [
        ("trip", "shutdown"),
        ("trip", "relieve"),
    ]
    assert safe.trip_response.trips == [stop, leak]
    assert [each for each in safe.told if each.startswith("tripped")] == [
        f"tripped {each.cause}" for each in (stop, leak, stop, leak)
    ]


def test_a_trip_runs_what_makes_safe_in_the_state_the_line_is_in() -> None:
    safe = Safe(Bound("furnace.temperature", low=500.0))
    see(safe.memory, 0.0, furnace__temperature=600.0)
    safe.after(0.0, cause())
    assert safe.fake.asked == [("trip", "relieve")]
    assert safe.trip_response.memory.trip == cause(name="relieve")
    safe = Safe(Bound("furnace.temperature", low=500.0))
    see(safe.memory, 0.0, furnace__temperature=600.0)
    safe.play(safe.trip_response.make_safe("shutdown"))
    assert safe.bodies("make_safe") == [{"procedure": "relieve"}]


def test_what_is_sent_is_not_known_to_be_set_until_a_look_shows_it(safe: Safe) -> None:
    for channel in ("furnace.setpoint", "hydrogen.flow", "box.contactor"):
        safe.memory.track(channel).told = 7.0

    async def then() -> None:
        told = {each: safe.memory.track(each).told for each in safe.shows}
        assert all(value != value for value in told.values())

    safe.shows["box.contactor"] = 1.0
    safe.after(6.0, cause(), then=then)
    assert safe.memory.track("furnace.setpoint").told == 20.0
    assert safe.memory.track("hydrogen.flow").told == 0.0
    told = safe.memory.track("box.contactor").told
    assert told != told


def test_each_frame_is_recorded_with_what_went_wrong(safe: Safe) -> None:
    frame = frames("shutdown")[0]
    assert safe.fake.on_trip == safe.trip_response.trip, "what the guard finds trips too"
    for error in ("", "no reply", "", "no reply"):
        safe.fake.on_safe_frame(frame, error)
    assert safe.bodies("safe_frame") == [
        {"channel": "hydrogen.setpoint", "value": 0.0, "error": error}
        for error in ("", "no reply", "", "no reply")
    ]


# ---- verifying


def test_all_steps_are_looked_at_at_once_by_what_shows_them() -> None:
    safe = Safe().after(1.0, cause(at_s=-0.5))
    channels, within_s = safe.looks[0]
    assert channels == ("hydrogen.flow", "box.contactor", "furnace.setpoint", "argon.setpoint")
    assert within_s == pytest.approx(3.5), "what is left of the procedure's time"
    (found,) = safe.trip_response.verifications
    assert found.complete
    assert found.within_s == pytest.approx(0.5 + TOOK_S)
    assert found.steps == (
        ("hydrogen.setpoint", 0.0, 0.0, StepState.VERIFIED),
        ("box.contactor", 0.0, 0.0, StepState.VERIFIED),
        ("furnace.setpoint", 20.0, 20.0, StepState.VERIFIED),
        ("argon.setpoint", 100.0, 100.0, StepState.VERIFIED),
    )
    assert safe.bodies("verified") == [
        {"procedure": "shutdown", "complete": True, "steps": [list(each) for each in found.steps]}
    ]
    assert "shutdown True" in safe.told
    assert safe.fake.repeats() == []


def test_a_look_has_a_moment_though_the_time_of_its_procedure_is_over() -> None:
    safe = Safe().after(1.0, cause(at_s=-100.0))
    assert safe.looks[0][1] == LOOK_S
    assert safe.trip_response.verifications[0].within_s == pytest.approx(100 + TOOK_S)


@pytest.mark.parametrize(
    ("shows", "state"),
    [
        (0.5, StepState.VERIFIED),
        (0.51, StepState.MISMATCH),
        (-0.51, StepState.MISMATCH),
        (None, StepState.UNKNOWN),
    ],
)
def test_a_step_is_verified_within_its_resolution_and_by_nothing_but_a_reading(
    safe: Safe, shows: float | None, state: StepState
) -> None:
    safe.shows["hydrogen.flow"] = shows
    safe.after(6.0, cause())
    assert safe.trip_response.verifications[0].steps[0] == ("hydrogen.setpoint", 0.0, shows, state)


def test_a_step_that_is_only_worth_a_try_is_told_where_it_holds_and_else_left_out() -> None:
    safe = Safe()
    safe.shows["argon.setpoint"] = None
    safe.after(6.0, cause())
    (found,) = safe.trip_response.verifications
    assert found.complete
    assert len(found.steps) == 3
    assert safe.fake.repeats() == [["argon.setpoint"]] * 9, "and tried all the same"


def test_a_step_that_nothing_can_show_is_not_looked_for(safe: Safe) -> None:
    safe.instruments["argon"].driver.channels = {"setpoint": shown(None)}
    safe.after(6.0, cause())
    assert safe.looks[0][0] == ("hydrogen.flow", "box.contactor", "furnace.setpoint")
    assert safe.trip_response.verifications[0].complete


def test_what_is_open_is_sent_again_with_what_its_port_had_after_it_until_the_time_is_over(
    safe: Safe,
) -> None:
    safe.shows["hydrogen.flow"] = 4.0
    safe.after(4.9, cause())
    assert safe.fake.repeats() == [["hydrogen.setpoint", "argon.setpoint"]] * 9
    assert len(safe.looks) == 10
    (found,) = safe.trip_response.verifications
    assert states(found) == ["mismatch", "verified", "verified", "verified"]
    assert found.unverified() == ("hydrogen.setpoint = 0: mismatch (reads 4)",)
    assert safe.told[-1] == "shutdown False"


def test_no_look_begins_that_would_end_after_the_procedures_time(safe: Safe) -> None:
    safe.shows["hydrogen.flow"] = 4.0
    safe.after(2.0, cause(at_s=-2.5))
    assert 3.4 < safe.trip_response.verifications[0].within_s <= 4.0
    assert len(safe.looks) == 5


def test_the_one_look_that_counts_shows_all_of_them(safe: Safe) -> None:
    safe.shows["hydrogen.flow"] = 4.0

    def swap() -> None:
        safe.shows.update({"hydrogen.flow": 0.0, "box.contactor": 1.0})

    safe.loop.call_later(0.3, swap)
    safe.loop.call_later(0.8, safe.shows.__setitem__, "box.contactor", 0.0)
    safe.after(3.0, cause())
    assert safe.fake.repeats()[0] == ["hydrogen.setpoint", "argon.setpoint"]
    assert safe.fake.repeats()[-1] == ["box.contactor"]
    assert safe.trip_response.verifications[0].complete


def test_of_a_procedure_that_another_has_overruled_nothing_is_known_or_told(safe: Safe) -> None:
    safe.shows["hydrogen.flow"] = 4.0

    async def then() -> None:
        await asyncio.sleep(0.4)
        safe.trip_response.trip(cause(Cause.GAS_LEAK, "relieve", at_s=0.4))
        safe.shows["hydrogen.flow"] = 0.0

    safe.after(3.0, cause(), then=then)
    first, second = safe.trip_response.verifications
    assert set(states(first)) == {"unknown"}
    assert (second.procedure, second.complete) == ("relieve", True)
    assert [each for each in safe.told if each.endswith(("True", "False"))] == ["relieve True"]
    assert len(safe.bodies("verified")) == 2, "but it is recorded"


def test_frames_from_the_first_open_one_of_each_port_on_are_sent_again() -> None:
    all_of_it = frames("shutdown")
    assert tails(all_of_it, {"argon.setpoint"}) == [all_of_it[3]]
    assert tails(all_of_it, {"hydrogen.setpoint"}) == [all_of_it[0], all_of_it[3]]
    assert tails(all_of_it, {"box.contactor", "furnace.setpoint"}) == [all_of_it[1], all_of_it[2]]
    assert tails(all_of_it, set()) == []


# ---- for as long as the line is ours


def test_what_is_left_open_is_tried_every_five_seconds_and_told_once_when_it_is_there() -> None:
    safe = Safe()
    safe.shows.update({"hydrogen.flow": 4.0, "box.contactor": None})
    safe.loop.call_later(20.0, safe.shows.__setitem__, "hydrogen.flow", 0.0)
    safe.loop.call_later(40.0, safe.shows.__setitem__, "box.contactor", 0.0)
    safe.after(90.0, cause())
    repeats = safe.fake.repeats()[9:]
    assert repeats[0] == ["hydrogen.setpoint", "box.contactor", "argon.setpoint"]
    assert repeats.count(["box.contactor"]) == 4
    assert len(repeats) == 8, "and what is verified is sent no more"
    found = safe.trip_response.verifications
    assert [each.complete for each in found] == [False, False, True]
    late = [each for each in safe.told if each.startswith("shutdown:")]
    assert late == [
        f"shutdown: hydrogen.setpoint verified {found[1].within_s:.0f} s after the trip",
        f"shutdown: every step verified {found[2].within_s:.0f} s after the trip",
    ]
    assert 20 < found[1].within_s < 26
    assert 40 < found[2].within_s < 46
    assert [body["complete"] for body in safe.bodies("verified")] == [False, False, True]


def test_a_step_that_comes_and_goes_is_told_once(safe: Safe) -> None:
    safe.shows.update({"hydrogen.flow": 4.0, "box.contactor": 1.0})
    for at_s, flow in ((12.0, 0.0), (22.0, 4.0), (32.0, 0.0)):
        safe.loop.call_later(at_s, safe.shows.__setitem__, "hydrogen.flow", flow)
    safe.after(60.0, cause())
    assert len([each for each in safe.told if each.startswith("shutdown:")]) == 1
    assert len(safe.trip_response.verifications) == 2


def test_of_tries_that_go_on_for_hours_each_end_of_a_frame_is_recorded_once(safe: Safe) -> None:
    safe.shows["box.contactor"] = None
    safe.fake.answer = lambda frame: "" if len(safe.fake.repeats()) > 20 else "no reply"

    async def again() -> None:
        await asyncio.sleep(200.0)
        safe.trip_response.repeat()
        await asyncio.sleep(200.0)

    safe.after(0.0, cause(), then=again)
    recorded = [body["error"] for body in safe.bodies("safe_frame")]
    once = ["no reply"] * 9 + ["no reply", ""]
    assert recorded[:11] == once
    assert recorded[11:] == [""] * (3 + 9 + 1), "and anew where the whole of it was asked for"


def test_a_line_that_is_closed_is_tried_no_more_and_nothing_of_it_is_seen(safe: Safe) -> None:
    safe.shows["box.contactor"] = None

    async def then() -> None:
        await asyncio.sleep(6.0)
        safe.trip_response.close()
        safe.fake.asked.clear()
        safe.trip_response.repeat()
        await asyncio.sleep(60.0)
        assert safe.fake.asked == []

    safe.after(0.0, cause(), then=then)
    safe = Safe()

    async def close_first() -> None:
        safe.trip_response.close()
        await asyncio.sleep(60.0)

    safe.after(0.0, cause(), then=close_first)
    assert [names for names, _ in safe.looks if "furnace.power" in names] == []
    safe = Safe()
    safe.shows["box.contactor"] = None
    safe.after(0.0, cause(), then=close_first)
    assert len(safe.fake.repeats()) == 9, "those of the procedure's own time"


def test_a_listener_whose_journal_is_gone_ends_no_try(safe: Safe) -> None:
    safe.shows["hydrogen.flow"] = 4.0
    safe.shows["furnace.power"] = 50.0

    def gone(text: str) -> None:
        safe.told.append(text)
        raise JournalFailed("full")

    safe.events.on_warning = gone
    safe.loop.call_later(20.0, safe.shows.__setitem__, "hydrogen.flow", 0.0)
    safe.after(60.0, cause())
    assert [each.complete for each in safe.trip_response.verifications] == [False, True, False]
    assert "may still be heating" in safe.told[-1]


# ---- asked for again, and without a trip


def test_what_is_in_force_is_sent_whole_when_somebody_asks_and_verified_afresh(safe: Safe) -> None:
    async def then() -> None:
        await asyncio.sleep(1.0)
        safe.trip_response.repeat()
        await asyncio.sleep(1.0)
        assert len(safe.trip_response.verifications) == 2
        found = await safe.trip_response.make_safe("relieve")
        assert found.procedure == "shutdown", "nothing may undo what is in force"
        assert found is safe.trip_response.verifications[-1]

    safe.after(0.0, cause(), then=then)
    whole = [each.channel for each in STEPS["shutdown"]]
    assert safe.fake.repeats() == [whole, whole]
    assert safe.bodies("make_safe") == [{"procedure": "shutdown"}] * 2
    safe = Safe()
    safe.trip_response.repeat()
    assert (safe.fake.asked, safe.noted) == ([], [])


def test_a_line_is_made_safe_without_a_trip_in_a_new_epoch(safe: Safe) -> None:
    safe.memory.track("box.contactor").told = 7.0
    safe.shows["box.contactor"] = 7.0
    assert not safe.play(safe.trip_response.make_safe("shutdown")).complete
    told = safe.memory.track("box.contactor").told
    assert told != told, "what was set before is not what it is set to now"
    safe = Safe()
    found = safe.play(safe.trip_response.make_safe("shutdown"))
    assert found.complete
    assert safe.fake.asked == [("epoch", None), ("repeat", [e.channel for e in STEPS["shutdown"]])]
    assert safe.bodies("make_safe") == [{"procedure": "shutdown"}]
    assert safe.told[-1] == "shutdown True"
    assert (safe.trip_response.verifications, safe.memory.mode) == ([], Mode.RUNNING)


def test_the_latch_of_a_line_that_was_found_latched_takes_the_procedure(safe: Safe) -> None:
    latched = cause(Cause.GAS_LEAK, "relieve")
    safe.fake.latch.trip = latched
    safe.fake.trip = lambda trip: safe.fake.asked.append(("trip", trip))  # type: ignore[method-assign]  # a stand-in
    safe.play(safe.trip_response.make_safe("shutdown"))
    assert safe.fake.asked == [("trip", replace(latched, procedure="shutdown"))]


async def test_a_trip_while_a_line_is_made_safe_leaves_that_unknown() -> None:
    safe = Safe()
    asyncio.get_running_loop().call_later(
        TOOK_S / 2, safe.trip_response.trip, cause(Cause.GAS_LEAK, "relieve")
    )
    found = await safe.trip_response.make_safe("shutdown")
    await safe.trip_response.verified()
    assert set(states(found)) == {"unknown"}
    assert safe.trip_response.verifications[-1].complete


def test_who_waits_for_a_verification_may_go_and_it_goes_on(safe: Safe) -> None:
    async def then() -> None:
        waits = asyncio.create_task(safe.trip_response.verified())
        await asyncio.sleep(0)
        waits.cancel()
        await safe.trip_response.verified()
        assert safe.trip_response.verifications[-1].complete

    safe.after(0.0, cause(), then=then)
