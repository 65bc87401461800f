"""The ports of the guard's core: replies that are whole, late, wrong or endless."""

import json
from dataclasses import replace

import pytest

import labharness.safety.guard.core as core_module
from guarded import READ, SAFE, SHUT, armed, refused, rtu, state_of
from labharness.core.vocabulary import (
    LengthAt,
    Message,
    Nothing,
    Quiet,
    Request,
    Rtu,
    Transaction,
)
from labharness.safety.guard import GuardCore, PortState
from labharness.safety.guard.core import DRAIN_S_MIN

# ---- replies, late and otherwise


def test_a_reply_may_come_in_pieces_and_what_follows_it_is_counted_and_dropped() -> None:
    core = armed()
    port = core.ports["heat"]
    core.send("heat", READ, 0.0, None)
    assert [port.feed(each, 0.1) for each in (b"A", b" 12", b".5")] == [None] * 3
    finished = port.feed(b"\rnoise", 0.2)
    assert finished is not None
    assert (finished.reply, finished.error) == (b"A 12.5\r", "")
    assert port.discarded == 5
    assert (port.state, port.due_s) == (PortState.IDLE, float("inf"))


@pytest.mark.promise(11)
@pytest.mark.parametrize(
    ("request_", "late"),
    [
        (READ, b"A 999\r"),
        (Request(rtu(1, 3, 0, 1, 0, 1), Rtu(1, 3, 2), 0.3), rtu(1, 3, 2, 3, 0xE7)),
    ],
)
def test_a_late_reply_of_the_right_shape_is_never_taken_for_a_fresh_one(
    request_: Request, late: bytes
) -> None:
    core = GuardCore({"p": {request_.frame}}, {})
    port = core.ports["p"]
    core.send("p", request_, 0.0, None)
    assert port.expire(0.2999) is None
    finished = port.expire(0.3)
    assert finished is not None
    assert finished.reply is None
    assert "no reply within 0.3 s" in finished.error
    assert state_of(port) is PortState.DRAIN
    assert port.due_s == pytest.approx(0.6), "as long again as it had time"
    refused(core, lambda: core.send("p", request_, 0.31, None))
    assert port.feed(late, 0.55) is None
    assert port.discarded == len(late)
    assert port.expire(0.6) is None
    assert state_of(port) is PortState.DRAIN, "the port was not quiet for long enough"
    assert port.expire(0.55 + DRAIN_S_MIN) is None
    assert state_of(port) is PortState.IDLE
    assert port.feed(late, 0.66) is None
    assert port.due_s == float("inf"), "an idle port asks for no time, whatever it hears"
    core.send("p", request_, 0.7, None)
    fresh = port.feed(late, 0.75)
    assert fresh is not None
    assert fresh.reply == late


def test_a_bad_reply_ends_the_exchange_and_drains_even_with_no_timeout_left() -> None:
    core = armed()
    port = core.ports["heat"]
    core.send("heat", READ, 0.0, None)
    finished = port.feed(b"B 1\r", 0.1)
    assert finished is not None
    assert finished.reply is None
    assert finished.error.startswith("bad reply: ")
    assert state_of(port) is PortState.DRAIN
    assert port.due_s == pytest.approx(0.4)


@pytest.mark.parametrize("lost", [False, True])
def test_half_a_reply_is_no_part_of_the_next(lost: bool) -> None:
    core = armed()
    port = core.ports["heat"]
    core.send("heat", READ, 0.0, None)
    assert port.feed(b"A 1", 0.1) is None
    assert port.lose("unplugged", 0.2) if lost else port.expire(0.3)
    port.expire(port.due_s)
    core.send("heat", READ, 1.0, None)
    finished = port.feed(b"A 2\r", 1.1)
    assert finished is not None
    assert finished.reply == b"A 2\r"


@pytest.mark.parametrize("before", [b"", b"one"])
def test_a_link_that_wakes_with_nothing_says_nothing(before: bytes) -> None:
    core = GuardCore({"p": {b"?\r"}}, {})
    port = core.ports["p"]
    core.send("p", Request(b"?\r", Quiet(0.05), 1.0), 0.0, None)
    port.feed(before, 0.1)
    due_s = port.due_s
    assert port.feed(b"", 0.12) is None
    assert port.due_s == due_s
    finished = port.expire(due_s)
    assert finished is not None
    assert finished.reply == (before or None)
    port.expire(due_s + 0.5)
    drained_s = port.due_s
    port.feed(b"", drained_s - 0.01)
    assert port.due_s == drained_s


def test_an_instrument_that_needs_silence_after_its_reply_gets_it() -> None:
    core = GuardCore({"p": {b"A\r"}}, {})
    request = replace(READ, settle_s=0.05)
    core.send("p", request, 0.0, None)
    assert core.ports["p"].feed(b"A\r", 0.1) is not None
    refused(core, lambda: core.send("p", request, 0.12, None))
    assert core.ports["p"].due_s == pytest.approx(0.15)
    assert core.ports["p"].expire(0.16) is None
    assert core.send("p", request, 0.16, None)


def test_bytes_that_nobody_asked_for_are_dropped() -> None:
    core = armed()
    assert core.ports["heat"].feed(b"A hello\r", 0.0) is None
    assert core.ports["heat"].state is PortState.IDLE
    assert core.ports["heat"].discarded == 8
    assert core.ports["heat"].due_s == float("inf")
    assert core.ports["heat"].expire(1e9) is None


def test_silence_ends_a_quiet_reply() -> None:
    core = GuardCore({"p": {b"?\r"}}, {})
    port = core.ports["p"]
    core.send("p", Request(b"?\r", Quiet(0.05), 1.0), 0.0, None)
    assert port.feed(b"one ", 0.1) is None
    assert port.due_s == pytest.approx(0.15)
    assert port.feed(b"two", 0.14) is None
    assert port.expire(0.15) is None
    finished = port.expire(port.due_s)
    assert finished is not None
    assert finished.reply == b"one two"


def test_a_babbler_does_not_hold_a_port_beyond_its_timeout() -> None:
    core = GuardCore({"p": {b"?\r"}}, {"stop": (replace(SAFE[0], port="p"),)})
    port = core.ports["p"]
    core.send("p", Request(b"?\r", Quiet(0.05), 1.0), 0.0, None)
    for step in range(1, 50):
        port.feed(b"x", step * 0.02)
    assert port.due_s == 1.0
    finished = port.expire(1.0)
    assert finished is not None
    assert finished.reply is None
    core.trip("stop")
    assert core.send_safe("p", 1.0) == SHUT[0].frame


def test_a_port_that_babbles_is_tried_again_after_two_seconds_and_not_before() -> None:
    core = armed()
    port = core.ports["heat"]
    core.send("heat", READ, 0.0, None)
    port.feed(b"B 1\r", 0.1)
    assert port.due_s == pytest.approx(0.4)
    now = 0.35
    while now < 2.4:
        port.feed(b"x", now)
        assert port.due_s == pytest.approx(min(now + 0.1, 2.4)), "its quiet begins again"
        port.expire(now)
        assert state_of(port) is PortState.DRAIN
        now += 0.05
    port.expire(port.due_s)
    assert core.send("heat", READ, 2.41, None) == READ.frame


def test_a_silent_instrument_times_out_under_a_quiet_rule_too() -> None:
    core = GuardCore({"p": {b"?\r"}}, {})
    core.send("p", Request(b"?\r", Quiet(0.05), 1.0), 0.0, None)
    assert core.ports["p"].expire(0.99) is None
    finished = core.ports["p"].expire(1.0)
    assert finished is not None
    assert finished.reply is None


def test_a_reply_without_end_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core_module, "BUFFER_BYTES_MAX", 100)
    core = GuardCore({"p": {b"?\r"}}, {})
    core.send("p", Request(b"?\r", Quiet(0.05), 1.0), 0.0, None)
    assert core.ports["p"].feed(b"x" * 100, 0.1) is None
    finished = core.ports["p"].feed(b"x", 0.11)
    assert finished is not None
    assert "more than 100 bytes" in finished.error


@pytest.mark.parametrize("answers", [False, True])
def test_where_no_reply_comes_the_exchange_ends_after_its_settling_time(answers: bool) -> None:
    core = GuardCore({"p": {b"!\r"}}, {})
    port = core.ports["p"]
    core.send("p", Request(b"!\r", Nothing(), 0.0, settle_s=0.2), 0.0, None)
    assert port.due_s == 0.2
    if answers:
        finished = port.feed(b"what?\r", 0.1)
        assert finished is not None
        assert finished.reply is None
        assert state_of(port) is PortState.DRAIN
    else:
        finished = port.expire(0.2)
        assert finished is not None
        assert (finished.reply, finished.error) == (b"", "")
        assert state_of(port) is PortState.IDLE


def test_a_lost_link_ends_the_exchange_and_only_an_exchange() -> None:
    core = armed()
    assert core.ports["heat"].lose("unplugged", 0.0) is None
    core.send("heat", READ, 0.0, None)
    finished = core.ports["heat"].lose("unplugged", 0.1)
    assert finished is not None
    assert (finished.reply, finished.error) == (None, "unplugged")
    assert core.ports["heat"].state is PortState.DRAIN


# ---- transactions

MBAP = Request(
    b"\0\0\0\0\0\x06\x01\x03\0\0\0\x01",
    LengthAt(4, 2, 6, 2, b"\x01\x03", 6, (11, 9)),
    0.3,
    transaction=Transaction(0, 2),
)
JSON = Request(
    b'{"id":1000000000,"command":"ccd_list"}',
    Message("ccd_list"),
    0.3,
    transaction=Transaction(6, 10, ascii=True),
)


@pytest.mark.parametrize("start", [0, 5, 65_534, 65_535, 1_000_000_000, 9_999_999_998])
def test_a_binary_transaction_id_is_filled_in_below_the_check_and_differs_each_time(
    start: int,
) -> None:
    core = GuardCore({"p": {MBAP.frame}}, {})
    port = core.ports["p"]
    port.transaction = start
    seen = []
    for step in range(3):
        frame = core.send("p", MBAP, step, None)
        assert frame[2:] == MBAP.frame[2:]
        seen.append(frame[:2])
        if step:
            assert port.feed(seen[-2] + b"\0\0\0\x05\x01\x03\x02\0\x07", step) is None, "late"
        finished = port.feed(frame[:2] + b"\0\0\0\x05\x01\x03\x02\0\x09", step + 0.1)
        assert finished is not None
        assert finished.reply == frame[:2] + b"\0\0\0\x05\x01\x03\x02\0\x09"
    assert len(set(seen)) == 3
    assert port.discarded == 2 * 11, "the late ones"


@pytest.mark.parametrize("start", [0, 1_000_000_000, 9_999_999_998, 9_999_999_999])
def test_an_ascii_transaction_id_stays_json_and_differs_each_time(start: int) -> None:
    core = GuardCore({"p": {JSON.frame}}, {})
    port = core.ports["p"]
    port.transaction = start
    seen: list[int] = []
    for step in range(3):
        body = json.loads(core.send("p", JSON, step, None))
        assert len(str(body["id"])) == 10
        assert body["command"] == "ccd_list"
        late = {"id": seen[-1] if seen else 1, "command": "ccd_list"}
        assert port.feed(json.dumps(late).encode(), step) is None
        seen.append(body["id"])
        finished = port.feed(json.dumps({"id": body["id"], "command": "ccd_list"}).encode(), step)
        assert finished is not None
        assert finished.reply is not None
    assert len(set(seen)) == 3
    if start == 1_000_000_000:
        assert seen == [start + 1, start + 2, start + 3]
