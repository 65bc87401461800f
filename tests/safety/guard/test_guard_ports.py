"""The ports of the guard's core: replies that are whole, late, wrong or endless."""

import json
import selectors
from dataclasses import replace
from typing import Any

import pytest

import labharness.safety.guard.port as port_module
from faced import rtu
from guard_stubs import Descriptor
from guarded import READ, SAFE, SHUT, armed, refused, state_of, whole
from labharness.core.vocabulary import (
    LengthAt,
    Message,
    Nothing,
    Quiet,
    Request,
    Rtu,
    Text,
    Transaction,
    Until,
)
from labharness.safety.guard import GuardCore, PortState, SafeFrame
from labharness.safety.guard.port import Port
from labharness.safety.guard.ports import Ports

# ---- replies, late and otherwise


@pytest.mark.promise(76)
def test_a_reply_may_come_in_pieces_and_what_follows_it_takes_it_away() -> None:
    core = armed()
    port = core.ports["heat"]
    core.send("heat", READ, 0.0, None)
    assert [port.feed(each, 0.1) for each in (b"A", b" 12", b".5")] == [None] * 3
    assert whole(port.feed(b"\r", 0.2)) == (b"A 12.5\r", "")
    assert (state_of(port), port.due_s) == (PortState.IDLE, float("inf"))
    core.send("heat", READ, 1.0, None)
    reply, error = whole(port.feed(b"A 12.5\rnoise", 1.1))
    assert reply is None
    assert "nobody asked for" in error
    assert port.discarded == 5
    assert state_of(port) is PortState.DRAIN
    assert port.due_s == pytest.approx(1.4)


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
    assert whole(port.expire(0.3)) == (None, "no reply within 0.3 s")
    assert state_of(port) is PortState.DRAIN
    assert port.due_s == pytest.approx(0.6), "as long again as it had time"
    refused(core, lambda: core.send("p", request_, 0.31, None))
    assert port.feed(late, 0.55) is None
    assert port.discarded == len(late)
    assert port.expire(0.6) is None
    assert state_of(port) is PortState.DRAIN, "the port was not quiet for long enough"
    assert port.expire(0.84) is None
    assert state_of(port) is PortState.DRAIN
    assert port.expire(0.86) is None
    assert state_of(port) is PortState.IDLE, "as long again from the late reply on"
    core.send("p", request_, 0.9, None)
    assert whole(port.feed(late, 0.95)) == (late, "")


def test_a_bad_reply_ends_the_exchange_and_drains_even_with_no_timeout_left() -> None:
    core = armed()
    port = core.ports["heat"]
    core.send("heat", READ, 0.0, None)
    reply, error = whole(port.feed(b"B 1\r", 0.1))
    assert reply is None
    assert error.startswith("bad reply: ")
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
    assert whole(port.feed(b"A 2\r", 1.1)) == (b"A 2\r", "")


@pytest.mark.parametrize("before", [b"", b"one"])
def test_a_link_that_wakes_with_nothing_says_nothing(before: bytes) -> None:
    core = GuardCore({"p": {b"?\r"}}, {})
    port = core.ports["p"]
    core.send("p", Request(b"?\r", Quiet(0.05), 1.0), 0.0, None)
    port.feed(before, 0.1)
    due_s = port.due_s
    assert port.feed(b"", 0.12) is None
    assert port.due_s == due_s
    assert whole(port.expire(due_s))[0] == (before or None)
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


@pytest.mark.promise(76)
@pytest.mark.parametrize("settle_s", [0.0, 0.05])
def test_bytes_that_nobody_asked_for_keep_a_port_quiet_for_a_time_out(settle_s: float) -> None:
    core = armed()
    port = core.ports["heat"]
    core.send("heat", replace(READ, settle_s=settle_s), 0.0, None)
    assert whole(port.feed(b"A 1\r", 0.1)) == (b"A 1\r", "")
    assert port.feed(b"A 2\r", 0.12) is None
    assert state_of(port) is PortState.DRAIN
    assert port.due_s == pytest.approx(0.42)
    assert port.discarded == 4
    assert port.expire(0.41) is None
    refused(core, lambda: core.send("heat", READ, 0.41, None))
    assert port.expire(0.43) is None
    assert core.send("heat", READ, 0.43, None) == READ.frame


@pytest.mark.promise(76)
def test_a_reply_that_its_driver_cannot_read_keeps_a_port_quiet_for_a_time_out() -> None:
    core = armed()
    port = core.ports["heat"]
    core.send("heat", READ, 0.0, None)
    assert whole(port.feed(b"A ?\r", 0.1)) == (b"A ?\r", "")
    port.doubt(0.11)
    assert state_of(port) is PortState.DRAIN
    assert port.due_s == pytest.approx(0.41)
    core.trip("stop")
    assert core.send_safe("heat", 0.12) is not None, "making safe does not wait for quiet"
    port.doubt(0.13)
    assert state_of(port) is PortState.SENT, "nor does a late doubt touch its exchange"


# ---- steps, where a reply does not say whose answer it is

LINE = Until(b"\r")
ASK, WHO = Request(b"p?\r", LINE, 0.3), Request(b"id?\r", LINE, 0.5)
FORM = replace(WHO, obeyed=b"ID [0-9]+\r")
OFF = Request(b"l0\r", LINE, 0.3, obeyed=b"OK\r")
SHOWN = replace(ASK, obeyed=b"0\r")
STOP = SafeFrame(0, "p", OFF, "laser.emission", 0.0, "", SHOWN)


def stepped(step: Request) -> tuple[GuardCore, Port]:
    core = GuardCore({"p": {b"p?\r", b"id?\r"}}, {"stop": (STOP, STOP)}, {"p": (step,)})
    return core, core.ports["p"]


def asked(core: GuardCore, *replies: bytes, request: Request = ASK, at_s: float = 0.0) -> Any:
    """Ask, and answer the question and what follows it; return the end."""
    core.send("p", request, at_s, None)
    finished = None
    for reply in replies:
        finished = core.ports["p"].feed(reply, at_s)
        core.prove("p", at_s)
    return finished


@pytest.mark.promise(76)
def test_a_reply_counts_once_a_step_after_it_was_answered_in_its_form() -> None:
    core, port = stepped(FORM)
    core.log = []
    assert asked(core, b"0.5\r") is None
    assert [each.frame for each in core.log] == [b"p?\r", b"id?\r"]
    assert whole(port.feed(b"ID 7\r", 0.1)) == (b"0.5\r", "")
    assert state_of(port) is PortState.IDLE
    reply, error = whole(asked(core, b"0\r", b"0.5\r", at_s=1.0))
    assert reply is None
    assert "the answer to another" in error
    assert state_of(port) is PortState.DRAIN
    assert port.due_s == pytest.approx(1.5)
    assert port.feed(b"ID 7\r", 1.1) is None
    assert port.due_s == pytest.approx(1.6)


@pytest.mark.promise(76)
def test_a_step_that_is_always_the_same_is_learnt_where_nothing_follows_for_three_time_outs() -> (
    None
):
    core, port = stepped(WHO)
    assert asked(core, b"0\r", b"0.5\r") is None
    assert whole(port.feed(b"7\r", 0.01))[0] is None, "the step's own answer came after it"
    port.expire(port.due_s)
    assert asked(core, b"0.5\r", b"7\r", at_s=2.0) is None
    assert port.expire(3.4) is None
    assert whole(port.expire(3.5)) == (b"0.5\r", ""), "longer than an answer may be late"
    assert whole(asked(core, b"0.6\r", b"7\r", at_s=4.0)) == (b"0.6\r", "")
    assert whole(asked(core, b"7\r", b"0.6\r", at_s=5.0))[0] is None
    port.expire(port.due_s)
    assert whole(asked(core, b"7\r", request=WHO, at_s=7.0)) == (b"7\r", "")
    assert asked(core, b"8\r", request=WHO, at_s=8.0) is None, "another one, or a stray line"
    assert whole(port.expire(9.5)) == (b"8\r", "")


@pytest.mark.promise(76)
def test_making_safe_waits_for_no_step_and_believes_no_reading_without_one() -> None:
    core, port = stepped(WHO)
    assert asked(core, b"0.5\r", b"7\r") is None, "it waits for quiet"
    core.trip("stop")
    assert whole(port.give_way(0.1))[0] is None
    assert core.send_safe("p", 0.1) == OFF.frame
    assert whole(port.feed(b"OK\r", 0.11)) == (b"OK\r", ""), "the next one waits"
    assert core.send_safe("p", 0.12) == OFF.frame
    assert port.feed(b"OK\r", 0.13) is None
    assert core.prove("p", 0.13) == WHO.frame
    core.queue([STOP, STOP])
    assert core.send_safe("p", 0.14) is None, "a frame is on the wire"
    assert port.feed(b"7\r", 0.15) is None
    assert whole(port.give_way(0.15))[0] is None, "and now none is"
    port.safe.clear()
    read = replace(STOP, request=SHOWN, shown=None)
    core.queue([read, STOP])
    assert core.send_safe("p", 1.0) == ASK.frame, "out of DRAIN"
    assert whole(port.feed(b"0\r", 1.1)) == (None, Text("reply.unproven"))
    core.queue([read, read])
    core.send_safe("p", 2.0)
    assert port.feed(b"0\r", 2.1) is None
    assert core.prove("p", 2.1) == WHO.frame, "readings wait for each other"


@pytest.mark.promise(13)
def test_a_port_makes_safe_until_its_last_frame_has_ended_whatever_gave_way_to_it() -> None:
    """Its guard keeps from the disk so long: a read that gave way ended its frame's turn, too."""
    core = GuardCore({"p": {b"p?\r", b"id?\r"}}, {"stop": (STOP,)}, {"p": (WHO,)})
    port, link, ended = core.ports["p"], Descriptor("p"), list[str]()
    link.open(1.0)
    ports = Ports(core, {"p": link}, selectors.DefaultSelector(), lambda: 0.0)
    ports.on_safe = lambda frame, error: ended.append(error)
    assert asked(core, b"0.5\r", b"7\r") is None, "it waits for quiet"
    assert not ports.making_safe
    ports.trip("stop")
    assert link.wrote == [OFF.frame]
    assert ports.making_safe
    ports.insist(reading=False)
    assert not port.safe, "what is on the wire is not sent again"
    assert port.feed(b"OK\r", 0.1) is None
    assert core.prove("p", 0.1) == WHO.frame
    assert port.feed(b"7\r", 0.2) is None
    assert ports.making_safe
    ports.expire(port.due_s)
    assert (ended, ports.making_safe) == ([""], False)
    link.end()


@pytest.mark.promise(76)
def test_a_step_follows_when_the_instrument_has_had_its_silence() -> None:
    core, port = stepped(FORM)
    core.send("p", replace(ASK, settle_s=0.05), 0.0, None)
    assert port.feed(b"0.5\r", 0.1) is None
    assert core.prove("p", 0.1) is None
    assert port.expire(port.due_s) is None
    assert core.prove("p", port.due_s) == WHO.frame
    assert port.expire(port.due_s) is not None, "it is silent"
    assert state_of(port) is PortState.DRAIN
    port.expire(port.due_s)
    core.send("p", replace(ASK, settle_s=0.05), 2.0, None)
    assert port.feed(b"0.5\r", 2.1) is None
    assert whole(port.feed(b"0.5\r", 2.12))[0] is None, "nobody asked for it"


def test_a_step_that_is_no_read_of_its_port_is_refused() -> None:
    with pytest.raises(ValueError, match="port p: the step 6f 6e 0d is none of its reads"):
        GuardCore({"p": {b"p?\r"}}, {}, {"p": (Request(b"on\r", LINE, 0.3),)})


def test_silence_ends_a_quiet_reply() -> None:
    core = GuardCore({"p": {b"?\r"}}, {})
    port = core.ports["p"]
    core.send("p", Request(b"?\r", Quiet(0.05), 1.0), 0.0, None)
    assert port.feed(b"one ", 0.1) is None
    assert port.due_s == pytest.approx(0.15)
    assert port.feed(b"two", 0.14) is None
    assert port.expire(0.15) is None
    assert whole(port.expire(port.due_s)) == (b"one two", "")


def test_a_babbler_does_not_hold_a_port_beyond_its_timeout() -> None:
    core = GuardCore({"p": {b"?\r"}}, {"stop": (replace(SAFE[0], port="p"),)})
    port = core.ports["p"]
    core.send("p", Request(b"?\r", Quiet(0.05), 1.0), 0.0, None)
    for step in range(1, 50):
        port.feed(b"x", step * 0.02)
    assert port.due_s == 1.0
    assert whole(port.expire(1.0))[0] is None
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
        assert port.due_s == pytest.approx(min(now + 0.3, 2.4)), "its quiet begins again"
        port.expire(now)
        assert state_of(port) is PortState.DRAIN
        now += 0.05
    port.expire(port.due_s)
    assert core.send("heat", READ, 2.41, None) == READ.frame


def test_a_silent_instrument_times_out_under_a_quiet_rule_too() -> None:
    core = GuardCore({"p": {b"?\r"}}, {})
    core.send("p", Request(b"?\r", Quiet(0.05), 1.0), 0.0, None)
    assert core.ports["p"].expire(0.99) is None
    assert whole(core.ports["p"].expire(1.0))[0] is None


def test_a_reply_without_end_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(port_module, "BUFFER_BYTES_MAX", 100)
    core = GuardCore({"p": {b"?\r"}}, {})
    core.send("p", Request(b"?\r", Quiet(0.05), 1.0), 0.0, None)
    assert core.ports["p"].feed(b"x" * 100, 0.1) is None
    assert "more than 100 bytes" in whole(core.ports["p"].feed(b"x", 0.11))[1]


@pytest.mark.parametrize("answers", [False, True])
def test_where_no_reply_comes_the_exchange_ends_after_its_settling_time(answers: bool) -> None:
    core = GuardCore({"p": {b"!\r"}}, {})
    port = core.ports["p"]
    core.send("p", Request(b"!\r", Nothing(), 0.0, settle_s=0.2), 0.0, None)
    assert port.due_s == 0.2
    if answers:
        assert whole(port.feed(b"what?\r", 0.1))[0] is None
        assert state_of(port) is PortState.DRAIN
    else:
        assert whole(port.expire(0.2)) == (b"", "")
        assert state_of(port) is PortState.IDLE


def test_a_lost_link_ends_the_exchange_and_only_an_exchange() -> None:
    core = armed()
    assert core.ports["heat"].lose("unplugged", 0.0) is None
    core.send("heat", READ, 0.0, None)
    assert whole(core.ports["heat"].lose("unplugged", 0.1)) == (None, "unplugged")
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
        fresh = frame[:2] + b"\0\0\0\x05\x01\x03\x02\0\x09"
        assert whole(port.feed(fresh, step + 0.1)) == (fresh, "")
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
        fresh = json.dumps({"id": body["id"], "command": "ccd_list"}).encode()
        assert whole(port.feed(fresh, step)) == (fresh, "")
    assert len(set(seen)) == 3
    if start == 1_000_000_000:
        assert seen == [start + 1, start + 2, start + 3]


def test_a_port_whose_replies_are_numbered_goes_on_at_once_after_bytes_that_nobody_asked_for() -> (
    None
):
    core = GuardCore({"p": {MBAP.frame}}, {})
    port = core.ports["p"]
    assert port.give_way(0.0) is None, "nothing waits"
    whole_reply = core.send("p", MBAP, 0.0, None)[:2] + b"\0\0\0\x05\x01\x03\x02\0\x09"
    assert whole(port.feed(whole_reply + b"noise", 0.1)) == (whole_reply, "")
    assert port.feed(b"more", 0.2) is None
    assert (port.discarded, state_of(port)) == (9, PortState.IDLE)
    assert port.give_way(0.3) is None
