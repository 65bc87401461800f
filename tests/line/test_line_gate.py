"""What a command sets going: programs are judged whole, and count whole while they go."""

import asyncio

import pytest

from furnace_alone import (
    ANNEAL,
    HOLD,
    PROGRAMMER,
    RESET,
    RUN,
    Furnace,
    program,
    reason,
    started,
    status_is_set,
)
from kernel_line import see
from labharness.core.vocabulary import Allowed, Command, Refused, read_program
from labharness.core.vocabulary.texts import Said
from labharness.line.command import programmer_of


@pytest.fixture
def furnace() -> Furnace:
    return Furnace()


# ---- judging


def test_a_command_that_starts_no_program_is_judged_by_the_kernel_alone() -> None:
    gate = Furnace().gate
    assert isinstance(gate.judge(Command("furnace.setpoint", 50.0, "degC")), Allowed)
    assert "has no limit" in reason(gate.judge(Command("furnace.number", 7.0, "")))
    assert "has no limit" in reason(gate.judge(Command("nobody", 7.0, "")))


def test_only_a_program_that_was_read_back_within_ten_seconds_is_started(furnace: Furnace) -> None:
    status_is_set(furnace)
    gate, none = furnace.gate, "furnace: no program was uploaded, or read back within 10 s"
    assert reason(gate.judge(RUN)) == none
    now_s = furnace.loop.time()
    for age_s, why in ((0.0, ""), (10.0, ""), (10.1, none)):
        gate.stored["furnace"] = (ANNEAL, now_s - age_s)
        assert reason(gate.judge(RUN)) == why
    verdict = gate.judge(RUN)
    assert isinstance(verdict, Refused)
    assert verdict.rule == "program"
    for other in (HOLD, RESET):
        assert isinstance(gate.judge(other), Allowed), "what is no start takes no program"


def test_a_program_starts_only_where_the_instrument_would_run_ours(furnace: Furnace) -> None:
    status_is_set(furnace)
    furnace.gate.stored["furnace"] = (ANNEAL, furnace.loop.time())
    why = "furnace.number does not read 7, the program uploaded"
    assert furnace.gate.chosen("furnace")
    for number, doubt in ((6.0, ()), (7.0, (6.0,))):
        track = furnace.memory.track("furnace.number")
        track.value, track.unconfirmed = number, doubt
        assert reason(furnace.gate.judge(RUN)) == why
    track.unconfirmed = ()
    track.stale_s = 5.0
    track.at_s = furnace.loop.time() - 6.0
    assert reason(furnace.gate.judge(RUN)) == why


@pytest.mark.parametrize(
    ("targets_c", "segment", "said"),
    [
        ((400.0, 50.0), 0, ""),
        (
            (400.0, 1001.0),
            3,
            "asked 1001 degC, allowed",
        ),
        (
            (1001.0, 50.0),
            1,
            "asked 1001 degC, allowed",
        ),
        (
            (550.0, 50.0),
            1,
            "a step of 525 degC, allowed",
        ),
        (
            (400.0, 10.0),
            3,
            "asked 10 degC, allowed 20",
        ),
    ],
)
def test_each_segment_is_judged_from_where_the_last_one_ends(
    targets_c: tuple[float, ...], segment: int, said: str
) -> None:
    asked = program(*targets_c)
    verdict = Furnace().gate.judge_program("furnace", asked)
    where = f"segment {segment} ({asked.segments[segment - 1]}): furnace.setpoint: "
    assert reason(verdict).startswith(where + said if segment else "")
    assert isinstance(verdict, Refused) is bool(segment)


def test_the_rate_of_each_ramp_is_judged_too_and_named_by_its_segment(furnace: Furnace) -> None:
    fast = read_program(
        {"segment": [{"step_to_c": 50}, {"dwell_min": 1}, {"ramp_to_c": 60, "at_c_per_min": 30}]}
    )
    verdict = furnace.gate.judge_program("furnace", fast)
    assert isinstance(verdict, Refused)
    assert verdict.command == Command("furnace.rate", 30.0, "degC/min")
    said = "segment 3 (ramp to 60 degC at 30 degC/min): furnace.rate: asked 30 degC/min, allowed"
    assert verdict.rule == "limit"
    assert verdict.reason == f"{said} 0 to 20 degC/min"


def test_no_program_is_judged_from_a_setpoint_in_doubt(furnace: Furnace) -> None:
    furnace.memory.track("furnace.setpoint").unconfirmed = (300.0,)
    verdict = furnace.gate.judge_program("furnace", ANNEAL)
    assert isinstance(verdict, Refused)
    assert verdict.command == Command("furnace.setpoint", 400.0, "degC")
    assert verdict.rule == "program"
    assert verdict.reason == (
        "furnace.setpoint was set and is not confirmed, so no program is judged from it"
    )


def test_behind_a_link_that_was_lost_only_its_own_preparing_passes(furnace: Furnace) -> None:
    gate, set_it = furnace.gate, Command("furnace.setpoint", 50.0, "degC")
    gate.unprepared["furnace"] = None
    why = "the link of port furnace was lost, and the instruments behind it are not prepared again"
    verdict = gate.judge(set_it)
    assert verdict == Refused(set_it, "lost link", Said("link.unprepared", port="furnace"))
    assert reason(gate.judge_program("furnace", ANNEAL)) == why
    gate.unprepared["furnace"] = set_it
    assert isinstance(gate.judge(set_it), Allowed)
    assert reason(gate.judge(Command("furnace.setpoint", 50.0, "degC"))) == why, "another's"
    off = Command("box.contactor", 0.0, "")
    assert isinstance(gate.judge(off), Allowed), "another port"


# ---- what is going


def test_a_program_that_was_started_counts_as_all_its_targets_until_it_is_over() -> None:
    furnace = Furnace()
    status_is_set(furnace)
    setpoint = furnace.memory.track("furnace.setpoint")
    going, nothing = [400.0, 50.0], list[float]()

    def counts() -> list[float]:
        return list(setpoint.unconfirmed)

    started(furnace)
    assert counts() == going
    furnace.look()
    assert counts() == going, "what was read before the start says nothing"
    furnace.memory.track("furnace.status").unconfirmed = ()

    async def later() -> None:
        await asyncio.sleep(1.0)
        see(furnace.memory, furnace.loop.time(), furnace__status=2.0)
        furnace.look()
        assert (counts(), furnace.over) == (going, [])
        await asyncio.sleep(1.0)
        see(furnace.memory, furnace.loop.time(), furnace__status=8.0)
        furnace.look()
        furnace.look()
        assert counts() == going
        ended = "furnace: its program has ended and stays where it ended; reset it"
        assert furnace.over == [ended], "told once"
        furnace.memory.track("furnace.status").unconfirmed = (1.0,)
        see(furnace.memory, furnace.loop.time(), furnace__status=1.0)
        furnace.look()
        assert counts() == going, "in doubt it may run still"
        furnace.memory.track("furnace.status").unconfirmed = ()
        furnace.look()
        assert counts() == nothing
        assert setpoint.told != setpoint.told, "and what it left there is nobody's word"
        assert furnace.over[1:] == ["furnace: its program is over"]
        furnace.look()
        assert len(furnace.over) == 2

    furnace.play(later())


def test_a_program_that_is_held_goes_on_as_it_was_judged(furnace: Furnace) -> None:
    status_is_set(furnace)
    see(furnace.memory, 0.0, furnace__status=4.0)
    assert not furnace.gate.held("furnace"), "whose program that is, nobody knows"
    see(furnace.memory, 0.0, furnace__status=1.0)
    started(furnace)
    furnace.gate.stored.clear()
    furnace.memory.track("furnace.status").unconfirmed = ()
    furnace.memory.track("furnace.setpoint").unconfirmed = ()
    assert not furnace.gate.held("furnace")
    assert reason(furnace.gate.judge(RUN)).startswith("furnace: no program was uploaded")
    see(furnace.memory, 0.0, furnace__status=4.0)
    assert furnace.gate.held("furnace")
    assert isinstance(furnace.gate.judge(RUN), Allowed)
    furnace.gate.begin(RUN)
    assert furnace.memory.track("furnace.setpoint").unconfirmed == (), "nothing new is set going"
    furnace.gate.unprepared["furnace"] = None
    assert isinstance(furnace.gate.judge(RUN), Refused)


def test_other_commands_set_nothing_else_going(furnace: Furnace) -> None:
    status_is_set(furnace)
    furnace.gate.stored["furnace"] = (ANNEAL, 0.0)
    for command in (HOLD, RESET, Command("box.contactor", 2.0, "")):
        furnace.gate.begin(command)
    assert furnace.memory.track("furnace.setpoint").unconfirmed == ()
    assert furnace.memory.track("furnace.status").unconfirmed == (4.0, 1.0)
    furnace.gate.conclude(RESET)
    assert furnace.memory.track("furnace.status").unconfirmed == ()


def test_the_last_reading_of_what_is_stale_or_in_doubt_is_none(furnace: Furnace) -> None:
    gate, track = furnace.gate, furnace.memory.track("furnace.temperature")
    assert gate.latest("furnace.temperature") == 25.0
    track.unconfirmed = (30.0,)
    assert gate.latest("furnace.temperature") != gate.latest("furnace.temperature")
    track.unconfirmed, track.at_s = (), -6.0
    assert gate.latest("furnace.temperature") != gate.latest("furnace.temperature")


def test_who_runs_no_programs_is_told_who_does(furnace: Furnace) -> None:
    assert programmer_of(furnace.instruments, "furnace") is PROGRAMMER
    with pytest.raises(LookupError, match="box runs no programs; on this line these run programs"):
        programmer_of(furnace.instruments, "box")
    with pytest.raises(LookupError, match=r"no instrument 'furnaxe'.*these run programs: furnace"):
        programmer_of(furnace.instruments, "furnaxe")
    with pytest.raises(LookupError, match="these run programs: none"):
        programmer_of({"box": furnace.instruments["box"]}, "box")
    assert furnace.gate.judge(Command("box.status", 2.0, "")) != Allowed(RUN)
