"""The harness's end of the guard process, word for word: what it says, and what it believes."""

import asyncio
import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from guard_stubs import (
    KEY,
    LAST,
    MACHINE_S,
    ON,
    READ,
    SAFE,
    WHOLE_SEND,
    Remote,
    Started,
    armed,
    ask,
    talking,
)
from labharness.core.vocabulary import Cause, Trip
from labharness.safety.guard import NotPermitted
from labharness.safety.guard.messages import seal, write_request, write_trip
from labharness.safety.guard.remote import RemoteGuard

LEAK = Trip(Cause.GAS_LEAK, "vent", "h2.concentration", 1200.0, 1.0, "leak")
# ---- exchanges


async def test_a_read_is_asked_for_by_its_frame_and_its_reply_is_handed_on(
    guard: RemoteGuard, far: Remote
) -> None:
    ends = ask(guard)
    assert far.take() == [WHOLE_SEND]
    assert (guard.ready("heat"), guard.ready("gas")) == (False, True)
    far.tell("status", heard=0)
    assert not guard.ready("heat"), "it has not heard of it"
    far.tell("status", heard=1, free=["gas"])
    assert not guard.ready("heat"), "it is at it"
    far.tell("ended", {"port": "heat", "number": 1, "reply": b"21\r".hex(), "error": ""})
    assert ends == [(b"21\r", "")]
    far.tell("status", free=["heat", "gas"])
    assert guard.ready("heat")


async def test_an_exchange_that_failed_is_handed_on_with_its_reason(
    guard: RemoteGuard, far: Remote
) -> None:
    ends = ask(guard)
    far.tell("ended", {"port": "heat", "number": 1, "reply": None, "error": "no reply"})
    assert ends == [(None, "no reply")]


async def test_the_end_of_an_exchange_that_is_over_is_nobodys(
    guard: RemoteGuard, far: Remote
) -> None:
    def end(number: int) -> dict[str, Any]:
        return {"port": "heat", "number": number, "reply": b"%d\r".hex() % number, "error": ""}

    first = ask(guard)
    far.tell("ended", {"port": "heat", "number": 1, "reply": "31", "error": ""}, heard=1)
    second = ask(guard)
    far.tell("ended", {"port": "heat", "number": 1, "reply": "39", "error": ""})
    assert (first, second) == ([(b"1", "")], []), "an old reply is none to a new question"
    far.tell("ended", {"port": "heat", "number": 2, "reply": "32", "error": ""})
    far.tell("ended", {"port": "heat", "number": 2, "reply": "32", "error": ""})
    assert second == [(b"2", "")], "and a question has one end"


async def test_a_frame_with_a_permit_is_sealed_with_the_key_of_the_connection(
    unmet: RemoteGuard, far: Remote
) -> None:
    far.welcome["permits"] = 7
    await unmet.open()
    await armed(unmet, far)
    unmet.new_epoch()
    await asyncio.sleep(0.25)
    permit = unmet.permit("heat", ON)
    assert (permit.number, permit.port, permit.frame, permit.epoch) == (8, "heat", ON.frame, 2)
    assert permit.expires_s == pytest.approx(MACHINE_S + 2.25, abs=1e-6)
    assert permit.expires_s <= MACHINE_S + 2.25, "the guard takes none that lives longer"
    unmet.exchange("heat", ON, permit, lambda reply, error: None)
    assert far.take()[1:] == [
        {
            "do": "send",
            "port": "heat",
            "number": 3,
            "permit": {
                "number": 8,
                "epoch": 2,
                "expires_us": round(permit.expires_s * 1e6),
                "seal": seal(KEY, permit, ON).hex(),
            },
            "request": write_request(ON),
        }
    ]
    assert unmet.permit("gas", ON).number == 9


async def test_no_permit_is_made_but_on_an_armed_line_that_is_not_latched(
    unmet: RemoteGuard, far: Remote
) -> None:
    with pytest.raises(NotPermitted, match=r"^no permit for port heat: the guard process was"):
        unmet.permit("heat", ON)
    await unmet.open()
    with pytest.raises(NotPermitted, match=r"^no permit for port heat: not armed$"):
        unmet.permit("heat", ON)
    await armed(unmet, far)
    assert unmet.permit("heat", ON)
    unmet.disarm()
    with pytest.raises(NotPermitted, match="not armed"):
        unmet.permit("heat", ON)
    far.heard(armed=True)
    assert unmet.permit("heat", ON)
    far.heard(latched=True)
    with pytest.raises(NotPermitted, match=r"^no permit for port heat: latched$"):
        unmet.permit("heat", ON)


async def test_what_is_asked_without_a_guard_ends_in_the_next_turn(unmet: RemoteGuard) -> None:
    assert unmet.ready("heat"), "and fails at once"
    ends = ask(unmet)
    assert ends == []
    await asyncio.sleep(0)
    assert ends == [(None, "the guard process was not reached yet")]


async def test_what_takes_no_answer_may_be_said_to_nobody(unmet: RemoteGuard) -> None:
    unmet.heartbeat("stop")
    unmet.repeat(SAFE)
    unmet.new_epoch()
    unmet.trip(LEAK)
    assert unmet._told == 0


async def test_a_closed_guard_sends_nothing_and_takes_its_leave(
    guard: RemoteGuard, far: Remote, child: Started
) -> None:
    guard.close()
    assert far.take() == [{"do": "bye", "retire": False}]
    assert far.closed == ["closed"]
    assert child.waited_s == [2.0]
    assert not guard.ready("heat")
    with pytest.raises(NotPermitted, match=r"^port heat is closed$"):
        ask(guard)
    with pytest.raises(NotPermitted, match=r": the guard is closed$"):
        guard.permit("heat", ON)
    await asyncio.sleep(30.0)
    assert len(far.called) == 1, "nobody brings it back"


# ---- making safe


async def test_a_trip_takes_its_ports_and_latches_before_the_guard_has_heard_of_it(
    guard: RemoteGuard, far: Remote
) -> None:
    await armed(guard, far)
    guard.trip(LEAK)
    assert far.take() == [{"do": "trip", "trip": write_trip(LEAK)}]
    assert (guard.ready("heat"), guard.ready("gas")) == (True, False)
    assert guard.latch.trip == LEAK
    with pytest.raises(NotPermitted, match="latched"):
        guard.permit("heat", ON)
    far.tell("status", heard=1, moves=1, latched=False)
    assert not guard.ready("gas"), "it has not heard of the trip"
    with pytest.raises(NotPermitted, match="latched"):
        guard.permit("heat", ON)
    far.tell("status", heard=2, moves=2, latched=True)
    assert guard.ready("gas")
    with pytest.raises(NotPermitted, match="the line is latched: it takes a reset"):
        await guard.arm()
    assert far.take() == []


async def test_a_guard_that_is_not_latched_after_it_took_all_says_so(
    guard: RemoteGuard, far: Remote
) -> None:
    far.tell("status", latched=True)
    guard.new_epoch()
    far.tell("status", latched=False, moves=1, heard=1)
    await armed(guard, far)
    assert guard.permit("heat", ON), "somebody has reset it"


async def test_frames_that_are_repeated_are_named_by_their_place_and_take_their_ports(
    guard: RemoteGuard, far: Remote
) -> None:
    guard.repeat([SAFE[2], LAST])
    assert far.take() == [{"do": "repeat", "frames": [["stop", 2], ["vent", 0]]}]
    assert not guard.ready("heat")
    far.tell("status", heard=0)
    assert not guard.ready("heat")
    far.tell("status", heard=1)
    assert guard.ready("heat")


async def test_a_trip_that_no_guard_heard_of_is_told_to_the_one_that_comes(
    unmet: RemoteGuard, far: Remote
) -> None:
    unmet.trip(LEAK)
    assert unmet.latch.trip == LEAK
    assert not unmet._free["gas"]
    await unmet.open()
    assert far.take() == [{"do": "trip", "trip": write_trip(LEAK)}]
    assert unmet.latch.trip == LEAK, "whatever the guard says of its own"


async def test_a_trip_that_was_reset_is_told_to_nobody_any_more(
    guard: RemoteGuard, far: Remote
) -> None:
    guard.trip(LEAK)
    resetting = asyncio.ensure_future(guard.reset())
    await asyncio.sleep(0)
    far.tell("reset", {"error": ""}, moves=2, heard=2)
    await resetting
    assert guard.latch.trip is None
    far.take()
    far.hang_up()
    await asyncio.sleep(0.5)
    assert far.take() == []
    assert not guard._lost


async def test_a_latch_that_the_guard_cannot_open_stays(guard: RemoteGuard, far: Remote) -> None:
    guard.trip(LEAK)
    resetting = asyncio.ensure_future(guard.reset())
    await asyncio.sleep(0)
    assert far.take()[1:] == [{"do": "reset"}]
    far.tell("reset", {"error": "the latch does not open"}, moves=2, heard=2, latched=True)
    with pytest.raises(OSError, match="the latch does not open"):
        await resetting
    assert guard.latch.trip == LEAK


# ---- arming


async def test_a_line_is_armed_when_the_guard_says_so(guard: RemoteGuard, far: Remote) -> None:
    arming = asyncio.ensure_future(guard.arm())
    await asyncio.sleep(1.0)
    assert far.take() == [{"do": "arm", "lost": "stop"}]
    assert not arming.done()
    far.tell("armed", {"error": ""}, armed=True, moves=1, heard=1, epoch=1)
    await arming
    assert far.take() == []
    assert guard.permit("heat", ON).epoch == 1


async def test_a_guard_that_does_not_arm_says_why_and_is_not_left_armed(
    guard: RemoteGuard, far: Remote
) -> None:
    arming = asyncio.ensure_future(guard.arm())
    await asyncio.sleep(0)
    far.tell("armed", {"error": "Is a directory"}, moves=1, heard=1)
    with pytest.raises(NotPermitted, match=r"^Is a directory$"):
        await arming
    assert far.take()[1:] == [{"do": "disarm"}]


async def test_a_guard_that_does_not_answer_is_waited_for_so_long_and_is_not_left_armed(
    guard: RemoteGuard, far: Remote
) -> None:
    loop = asyncio.get_running_loop()
    with pytest.raises(NotPermitted, match=r"^the guard does not answer within 5 s$"):
        await guard.arm()
    assert loop.time() == pytest.approx(5.0)
    assert far.take() == [{"do": "arm", "lost": "stop"}, {"do": "disarm"}]
    far.tell("armed", {"error": ""}, moves=1, armed=True, heard=1)
    with pytest.raises(NotPermitted, match="not armed"):
        guard.permit("heat", ON)


async def test_arming_that_is_given_up_leaves_nothing_armed(
    guard: RemoteGuard, far: Remote
) -> None:
    arming = asyncio.ensure_future(guard.arm())
    await asyncio.sleep(0)
    arming.cancel()
    with pytest.raises(asyncio.CancelledError):
        await arming
    assert far.take()[1:] == [{"do": "disarm"}]


async def test_a_guard_that_is_gone_is_neither_armed_nor_reset(unmet: RemoteGuard) -> None:
    with pytest.raises(NotPermitted, match="was not reached yet"):
        await unmet.arm()
    with pytest.raises(OSError, match="was not reached yet"):
        await unmet.reset()
    unmet.new_epoch()
    unmet.disarm()
    assert (unmet._moves_ahead, unmet._moves_told) == (0, 0)


@pytest.mark.parametrize("asks", ["arm", "reset"])
async def test_who_waits_for_the_guards_disk_hears_when_the_guard_is_gone(
    guard: RemoteGuard, far: Remote, asks: str
) -> None:
    waiting = asyncio.ensure_future(getattr(guard, asks)())
    await asyncio.sleep(0)
    far.hang_up()
    with pytest.raises(OSError, match="the guard process is gone"):
        await waiting
    assert asyncio.get_running_loop().time() < 0.1


# ---- heartbeats


async def test_a_heartbeat_says_when_it_was_made_and_what_fits_the_line(
    guard: RemoteGuard, far: Remote
) -> None:
    assert guard.heartbeat_s == 0.1
    await asyncio.sleep(0.75)
    guard.heartbeat("vent")
    assert far.take() == [{"do": "heartbeat", "made_s": MACHINE_S + 0.75, "lost": "vent"}]


async def test_a_guard_that_tells_of_no_end_is_ended_after_the_exchange_and_two_seconds(
    guard: RemoteGuard, far: Remote, child: Started
) -> None:
    slow = replace(READ, timeout_s=0.4, settle_s=0.1)
    for _ in range(40):
        guard.heartbeat("stop")
    guard.exchange("gas", slow, None, lambda reply, error: None)
    for _ in range(24):
        guard.heartbeat("stop")
        assert child.ended == 0
    guard.heartbeat("stop")
    guard.heartbeat("stop")
    assert child.ended == 1
    far.tell("ended", {"port": "gas", "number": 41, "reply": None, "error": "no"}, heard=41)
    guard.heartbeat("stop")
    assert child.ended == 1, "nothing is waited for any more"


async def test_a_guard_that_waits_for_its_disk_may_be_late_with_everything_else(
    guard: RemoteGuard, far: Remote, child: Started
) -> None:
    ask(guard)
    arming = asyncio.ensure_future(guard.arm())
    await asyncio.sleep(0)
    for _ in range(45):
        guard.heartbeat("stop")
    assert child.ended == 0
    far.tell("armed", {"error": ""}, armed=True, moves=1)
    await arming
    for _ in range(30):
        guard.heartbeat("stop")
    assert child.ended > 0


# ---- what the guard says


async def test_what_the_guard_tells_of_is_passed_on(guard: RemoteGuard, far: Remote) -> None:
    told: list[object] = []
    guard.on_safe_frame = lambda frame, error: told.append((frame, error))
    guard.on_link_lost = lambda port, why: told.append((port, why))
    guard.on_trip = told.append
    far.tell("safe", {"frame": ["stop", 1], "error": "no reply"})
    far.tell("lost", {"port": "gas", "why": "unplugged"})
    assert told == [(SAFE[1], "no reply"), ("gas", "unplugged")]
    told.clear()
    await asyncio.sleep(3.5)
    far.tell("tripped", {"trip": write_trip(replace(LEAK, at_s=MACHINE_S))}, latched=True)
    assert told == [replace(LEAK, at_s=3.5)], "in lab time"
    assert guard.latch.trip == replace(LEAK, at_s=3.5)
    far.tell("status", write_error="No space left on device")
    assert not guard.latch.saved()


async def test_who_waits_for_a_port_gets_it_when_the_guard_says_that_it_is_free(
    guard: RemoteGuard, far: Remote
) -> None:
    turns: list[str] = []
    far.tell("status", free=["gas"])
    guard.when_free("heat", lambda: turns.append("first"))
    guard.when_free("heat", lambda: turns.append("patient"), patient=True)
    guard.when_free("heat", lambda: turns.append("second"))
    left = partial(turns.append, "left")
    guard.when_free("heat", left)
    guard.leave("heat", left)
    assert turns == []
    far.tell("status", free=["gas", "heat"])
    assert turns == ["first"]
    far.tell("free")
    assert turns == ["first"], "it is taken until it is given back"
    guard.release("heat")
    assert turns == ["first", "second"]
    guard.release("heat")
    assert turns == ["first", "second", "patient"]


async def test_a_port_that_is_free_is_given_at_once(guard: RemoteGuard) -> None:
    turns: list[str] = []
    guard.when_free("heat", lambda: turns.append("now"))
    assert turns == ["now"]


@pytest.mark.parametrize("kept", [False, True])
async def test_the_log_of_an_offline_log_is_taken_over_by_who_keeps_it(
    unmet: RemoteGuard, far: Remote, *, kept: bool
) -> None:
    entries: list[object] = []

    def keep(log: Any) -> bool:
        entries.extend(log)
        return kept

    unmet.on_offline_log = keep
    far.welcome["log"] = [{"what": "tripped by itself"}, "scrawl"]
    await unmet.open()
    assert entries == [{"what": "tripped by itself"}, {"what": "scrawl"}]
    assert far.take() == [{"do": "imported"}] * kept


async def test_a_latch_that_was_left_holds_before_the_guard_is_reached(
    far: Remote, child: Started, tmp_path: Path
) -> None:
    (tmp_path / "latch.json").write_text(json.dumps(write_trip(LEAK)), encoding="utf-8")
    async with talking(tmp_path, far, child, opened=False) as guard:
        assert guard.latch.trip == LEAK
        await guard.open()
        assert guard.latch.trip is None, "the guard knows: somebody has reset it"


async def test_a_latch_that_the_guard_has_is_taken_over(unmet: RemoteGuard, far: Remote) -> None:
    far.welcome["trip"] = write_trip(LEAK)
    far.status["latched"] = True
    await unmet.open()
    assert unmet.latch.trip == LEAK
    with pytest.raises(NotPermitted, match="the line is latched"):
        await unmet.arm()
