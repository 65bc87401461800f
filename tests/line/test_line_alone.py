"""A line by itself, on a guard that a test answers for: how it opens, and is armed or not."""

import pytest

from labharness.line import NotArmed, Tripped
from labharness.line.exchanges import NoReply
from labharness.line.poll import TICK_S
from labharness.safety.kernel import Mode
from whole_line_alone import STOP, Alone

# ---- opening and arming


def test_a_line_opens_its_links_asks_everybody_and_polls_and_writes_nothing() -> None:
    alone = Alone()
    alone.play(alone.line.open)
    assert [each.opened for each in alone.links.values()] == [1, 1]
    who = [body["instrument"] for body in alone.journal.of("identified")]
    assert who == ["furnace", "box", "hydrogen", "argon"]
    assert alone.journal.of("identified")[0] == {
        "instrument": "furnace",
        "model": "toy",
        "firmware": "1.0",
    }
    assert set(alone.line.identities) == {*who}
    assert alone.guard.asked("furnace.temperature?") == 1
    assert alone.guard.written == []
    assert alone.loop.time() == pytest.approx(TICK_S, abs=0.2)
    assert TICK_S == 1.0


@pytest.mark.parametrize(
    ("says", "why"),
    [
        ("pump", r"furnace \(toy\): it is a pump"),
        ("?", r"furnace \(toy\): it does not say who it is"),
        (None, r"furnace \(toy\): no reply"),
    ],
)
def test_who_is_silent_or_another_keeps_a_line_shut(says: str | None, why: str) -> None:
    alone = Alone()
    alone.guard.says["furnace who?"] = says
    with pytest.raises(NoReply, match=why):
        alone.play(alone.line.open)
    assert alone.line.identities == {}
    assert alone.guard.asked("furnace.temperature?") == 0


def test_who_stands_there_is_said_and_kept() -> None:
    alone = Alone()

    async def work() -> None:
        found = await alone.line.identify("box")
        assert found.model == "toy"
        assert alone.line.identities == {"box": found}

    alone.play(work)


def test_a_line_that_is_tripped_while_it_opens_says_so_before_it_polls() -> None:
    alone = Alone()
    alone.loop.call_later(0.015, lambda: alone.line.trip_response.trip(STOP, disarmed=True))
    with pytest.raises(Tripped, match="because"):
        alone.play(alone.line.open)
    assert alone.guard.asked("furnace.temperature?") == 0


def test_a_line_is_armed_made_safe_prepared_read_and_held_and_then_started() -> None:
    alone = Alone()
    alone.guard.holds["box.contactor"] = 1.0
    alone.play(alone.running, close=False)
    assert alone.modes() == ["arming", "held", "running"]
    kinds = alone.kinds()[4:]
    assert kinds == ["mode", "armed", "make_safe", "verified", "mode", "mode"]
    assert alone.journal.of("armed") == [{"safe_table": "shutdown"}]
    assert alone.guard.written == ["furnace.rate=5"]
    assert alone.guard.holds["box.contactor"] == 0.0
    assert "arm" in alone.guard.done
    assert alone.guard.done.count("epoch") >= 4, "each mode and what is made safe is another"
    assert alone.line.memory.mode is Mode.RUNNING
    assert alone.line.memory.track("furnace.rate").told == 5.0


def refuses(alone: Alone, why: str) -> None:
    """Find that a line is not armed, and read-only afterwards."""
    with pytest.raises(NotArmed, match=why):
        alone.play(alone.armed)
    assert alone.line.memory.mode is Mode.DISARMED


def test_all_that_stands_in_the_way_of_arming_is_said_at_once() -> None:
    alone = Alone(link="tcp", ambient=None)
    alone.guard.latch.trip = STOP
    alone.guard.latch.full = OSError(28, "full")
    alone.guard.holds["furnace.temperature"] = 1060.0
    alone.play(alone.line.open)
    assert [each.split(" ")[0:3] for each in alone.line.hindrances("shutdown")] == [
        ["port", "heat", "is"],
        ["too", "hot:", "furnace.temperature"],
        ["the", "pressure", "of"],
        ["latched", "since", "because:"],
        ["a", "latch", "could"],
    ]
    assert alone.line.hindrances("shutdown")[-1] == "a latch could not be written: full"
    assert alone.line.unguarded() == (
        "port heat is a real link (tcp), and energising on it takes the guard process",
    )
    assert "arm" not in alone.guard.done
    refuses(Alone(link="tcp"), "takes the guard process")
    alone = Alone()
    assert alone.line.hindrances("shutdown") == ()
    alone.loop.close()


def test_where_a_person_attends_a_link_needs_no_guard_that_outlives_us() -> None:
    for attended in (True, False):
        alone = Alone(link="visa", attended=attended)
        assert bool(alone.line.unguarded()) is not attended
        alone.loop.close()


def test_a_guard_that_does_not_arm_or_a_step_that_does_not_hold_keeps_a_line_disarmed() -> None:
    for error, said in ((OSError(13, "denied"), "denied"), (OSError("odd"), "odd")):
        alone = Alone()

        async def fails(error: OSError = error) -> None:
            raise error

        alone.guard.arms = fails
        refuses(alone, f"the guard does not arm: {said}")
        assert alone.modes() == []
    alone = Alone()
    alone.guard.holds["box.contactor"] = 1.0
    alone.guard.obeys = False
    refuses(alone, r"the safe table does not hold: box\.contactor = 0: mismatch \(reads 1\)")
    assert alone.modes() == ["arming", "disarmed"]
    assert alone.guard.written == []


def test_what_is_not_prepared_or_whose_link_is_lost_meanwhile_is_not_armed() -> None:
    alone = Alone()
    alone.guard.says["furnace.rate?"] = "3"
    refuses(alone, r"prepare furnace\.rate = 5 mismatch")
    alone = Alone()

    async def lose() -> None:
        alone.guard.on_link_lost("box", "unplugged")

    alone.guard.arms = lose
    refuses(alone, "a link was lost meanwhile: box")
    assert alone.modes() == ["arming", "disarmed"]


def test_who_is_behind_a_lost_link_says_who_it_is_before_arming() -> None:
    alone = Alone()

    async def lose() -> None:
        await alone.line.open()
        alone.guard.on_link_lost("box", "unplugged")
        alone.guard.says["box who?"] = "pump"

    with pytest.raises(NotArmed, match="it is a pump"):
        alone.play(lose, lambda: alone.line.arm("shutdown"))
    assert "arm" not in alone.guard.done
    alone = Alone()

    async def back() -> None:
        await alone.line.open()
        alone.guard.on_link_lost("box", "unplugged")

    alone.play(back, lambda: alone.line.arm("shutdown"))
    assert "link_back" in alone.kinds()


@pytest.mark.parametrize("when", ["meeting", "arming"])
def test_a_line_that_is_tripped_by_hand_before_it_is_armed_says_so(when: str) -> None:
    alone = Alone()

    async def trip() -> None:
        alone.line.trip_response.trip(STOP, disarmed=True)

    async def work() -> None:
        await alone.line.open()
        if when == "meeting":
            alone.guard.on_link_lost("box", "unplugged")
            alone.loop.call_later(0.005, alone.loop.create_task, trip())
        else:
            alone.guard.arms = trip
        await alone.line.arm("shutdown")

    with pytest.raises(Tripped):
        alone.play(work)
    assert alone.modes() == []
    assert ("arm" in alone.guard.done) is (when == "arming")
