"""The guard's core: which bytes may leave, and when."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import labharness.guard.core as core_module
from labharness.guard import GuardCore, NotPermitted, Permit, Port, PortState, SafeFrame, Source
from labharness.guard.core import DRAIN_S_MIN, PERMIT_S_MAX, PERMITS_MAX
from labharness.vocabulary import (
    LengthAt,
    Message,
    Nothing,
    Quiet,
    Request,
    Rtu,
    Transaction,
    Until,
    crc16_modbus,
)

READ = Request(b"A\r", Until(b"\r", b"A"), 0.3)
WRITE = Request(b"AS5.0\r", Until(b"\r", b"A"), 0.3)
SHUT = [Request(b"shut%d\r" % number, Until(b"\r"), 0.2) for number in range(4)]
SAFE = (
    SafeFrame(0, "heat", SHUT[0], "furnace.setpoint", 0.0),
    SafeFrame(1, "gas", SHUT[1], "hydrogen.setpoint", 0.0),
    SafeFrame(2, "heat", SHUT[2], "box.contactor", 0.0),
    SafeFrame(3, "gas", SHUT[3], "argon.setpoint", 100.0),
)


def rtu(*body: int) -> bytes:
    data = bytes(body)
    return data + crc16_modbus(data).to_bytes(2, "little")


def armed() -> GuardCore:
    core = GuardCore(
        {"heat": {READ.frame}, "gas": {READ.frame}},
        {"stop": SAFE, "vent": (replace(SAFE[1], step=0),), "nothing": ()},
    )
    core.log = []
    core.arm()
    return core


def state_of(port: Port) -> PortState:
    """Give a port's state afresh; mypy would remember the last one."""
    return port.state


def refused(core: GuardCore, send: Callable[[], object]) -> None:
    """Expect a refusal that leaves no byte and moves no port."""
    before = [*(core.log or [])], {name: port.state for name, port in core.ports.items()}
    with pytest.raises(NotPermitted):
        send()
    after = [*(core.log or [])], {name: port.state for name, port in core.ports.items()}
    assert before == after


# ---- permits


def test_a_permit_lets_its_frame_pass_once() -> None:
    core = armed()
    permit = core.permit("heat", WRITE.frame, 10.0)
    assert core.send("heat", WRITE, 10.0, permit) == WRITE.frame
    core.ports["heat"].feed(b"A ok\r", 10.1)
    refused(core, lambda: core.send("heat", WRITE, 10.1, permit))
    assert core.log is not None
    assert [(sent.port, sent.frame, sent.source) for sent in core.log] == [
        ("heat", WRITE.frame, Source.PERMIT)
    ]


@pytest.mark.parametrize(("late_s", "passes"), [(0.0, True), (1e-6, False), (1e9, False)])
def test_a_permit_ends_when_it_says(late_s: float, passes: bool) -> None:
    core = armed()
    permit = core.permit("heat", WRITE.frame, 0.0)
    if passes:
        assert core.send("heat", WRITE, PERMIT_S_MAX + late_s, permit)
    else:
        refused(core, lambda: core.send("heat", WRITE, PERMIT_S_MAX + late_s, permit))


def test_a_permit_is_of_no_use_when_the_time_is_not_known() -> None:
    core = armed()
    permit = core.permit("heat", WRITE.frame, 0.0)
    refused(core, lambda: core.send("heat", WRITE, float("nan"), permit))


def test_a_permit_is_for_its_port_and_for_its_frame() -> None:
    core = armed()
    permit = core.permit("heat", WRITE.frame, 0.0)
    refused(core, lambda: core.send("gas", WRITE, 0.0, permit))
    permit = core.permit("heat", WRITE.frame, 0.0)
    refused(core, lambda: core.send("heat", replace(WRITE, frame=b"AS9.0\r"), 0.0, permit))


@pytest.mark.parametrize(
    "change",
    [
        lambda p: replace(p, number=p.number + 1),
        lambda p: replace(p, port="gas"),
        lambda p: replace(p, frame=b"AS99\r"),
        lambda p: replace(p, epoch=p.epoch + 1),
        lambda p: replace(p, expires_s=p.expires_s + 60.0),
    ],
    ids=["number", "port", "frame", "epoch", "expires_s"],
)
def test_a_forged_permit_lets_nothing_pass(change: Callable[[Permit], Permit]) -> None:
    core = armed()
    forged = change(core.permit("heat", WRITE.frame, 0.0))
    refused(core, lambda: core.send(forged.port, replace(WRITE, frame=forged.frame), 1.0, forged))
    refused(core, lambda: core.send("heat", WRITE, 1.0, forged))


@pytest.mark.parametrize("move", ["new_epoch", "arm", "disarm", "reset"])
def test_whatever_moves_the_epoch_voids_every_permit(move: str) -> None:
    core = armed()
    permits = [core.permit("heat", WRITE.frame, 0.0) for _ in range(3)]
    epoch = core.epoch
    getattr(core, move)()
    assert core.epoch > epoch
    for permit in permits:
        refused(core, lambda permit=permit: core.send("heat", WRITE, 0.0, permit))  # type: ignore[misc]  # mypy cannot type a default of a lambda


def test_a_permit_of_another_epoch_is_refused_even_if_it_was_kept() -> None:
    core = armed()
    permit = core.permit("heat", WRITE.frame, 0.0)
    core.epoch += 1  # as if new_epoch had forgotten to clear
    refused(core, lambda: core.send("heat", WRITE, 0.0, permit))


def test_no_permit_is_made_unless_armed_and_unlatched() -> None:
    core = armed()
    core.disarm()
    with pytest.raises(NotPermitted, match="not armed"):
        core.permit("heat", WRITE.frame, 0.0)
    core.arm()
    core.trip("stop")
    with pytest.raises(NotPermitted, match="latched"):
        core.permit("heat", WRITE.frame, 0.0)
    with pytest.raises(NotPermitted, match="named person"):
        core.arm()
    core.reset()
    core.arm()
    assert core.permit("heat", WRITE.frame, 0.0).epoch == core.epoch


def test_permits_outstanding_are_bounded() -> None:
    core = armed()
    for _ in range(PERMITS_MAX):
        core.permit("heat", WRITE.frame, 0.0)
    with pytest.raises(NotPermitted, match="outstanding"):
        core.permit("heat", WRITE.frame, PERMIT_S_MAX)
    assert core.permit("heat", WRITE.frame, PERMIT_S_MAX + 0.1), "those that expired do not count"
    for _ in range(2):
        core.new_epoch()
        for _ in range(PERMITS_MAX):
            core.permit("heat", WRITE.frame, 0.0)


# ---- reads


def test_a_frame_that_reads_needs_no_permit_even_while_latched() -> None:
    core = armed()
    core.trip("nothing")
    assert core.send("heat", READ, 0.0, None) == READ.frame
    assert core.log is not None
    assert core.log[-1].source is Source.READ


@given(data=st.data())
@settings(deadline=None, max_examples=100)
def test_a_read_with_any_byte_changed_added_or_left_out_is_refused(data: st.DataObject) -> None:
    frame = rtu(1, 3, 0, 1, 0, 5)
    core = GuardCore({"p": {frame}}, {})
    core.log = []
    at = data.draw(st.integers(0, len(frame) - 1))
    other = data.draw(
        st.sampled_from([frame[:at] + frame[at + 1 :], frame[:at] + b"\0" + frame[at:], b""])
        | st.integers(1, 255).map(
            lambda mask: frame[:at] + bytes([frame[at] ^ mask]) + frame[at + 1 :]
        )
    )
    refused(core, lambda: core.send("p", Request(other, Rtu(1, 3, 10), 0.3), 0.0, None))


def test_a_read_of_one_port_is_no_read_of_another() -> None:
    core = GuardCore({"a": {b"A\r"}, "b": {b"B\r"}}, {})
    refused(core, lambda: core.send("b", READ, 0.0, None))


def test_a_port_has_one_exchange_at_a_time() -> None:
    core = armed()
    core.send("heat", READ, 0.0, None)
    refused(core, lambda: core.send("heat", READ, 0.1, None))
    assert core.send("gas", READ, 0.1, None) == READ.frame


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
    refused(core, lambda: core.send("p", request_, 0.31, None))
    assert port.feed(late, 0.55) is None
    assert port.discarded == len(late)
    assert port.expire(0.6) is None
    assert state_of(port) is PortState.DRAIN, "the port was not quiet for long enough"
    assert port.expire(0.55 + DRAIN_S_MIN) is None
    assert state_of(port) is PortState.IDLE
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


def test_a_lost_road_ends_the_exchange_and_only_an_exchange() -> None:
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


# ---- procedures


@pytest.mark.parametrize("state", ["idle", "sent", "drain", "latched", "disarmed", "tripped"])
def test_a_procedure_is_never_refused_and_leaves_in_order_of_hazard(state: str) -> None:
    core = armed()
    if state == "sent":
        core.send("heat", READ, 0.0, None)
    if state == "drain":
        core.send("heat", READ, -1.0, None)
        core.ports["heat"].expire(0.0)
        assert core.ports["heat"].state is PortState.DRAIN
    if state == "latched":
        core.latched = True
    if state == "disarmed":
        core.disarm()
    if state == "tripped":
        core.trip("vent")
    assert core.log is not None
    core.log.clear()
    permitless_epoch = core.epoch
    assert core.trip("stop") == ("heat", "gas")
    assert core.latched
    assert core.epoch > permitless_epoch
    now = 0.0
    for _ in range(20):
        for name, port in core.ports.items():
            if core.send_safe(name, now) is not None:
                assert port.feed(b"ok\r", now) is not None
            port.expire(now)
        now += 0.1
    sent = [(each.port, each.frame) for each in core.log if each.source is Source.PROCEDURE]
    for name in ("heat", "gas"):
        wanted = [each.request.frame for each in SAFE if each.port == name]
        assert [frame for port, frame in sent if port == name] == wanted


def test_a_procedure_waits_for_the_exchange_on_the_wire_and_for_no_quiet() -> None:
    core = armed()
    core.send("heat", READ, 0.0, None)
    core.trip("stop")
    assert core.send_safe("heat", 0.1) is None
    assert core.send_safe("gas", 0.1) == SHUT[1].frame
    core.ports["heat"].expire(0.3)
    assert core.ports["heat"].state is PortState.DRAIN
    assert core.send_safe("heat", 0.3) == SHUT[0].frame
    finished = core.ports["heat"].feed(b"ok\r", 0.35)
    assert finished is not None
    assert finished.safe == SAFE[0]


def test_no_user_sends_while_a_procedure_waits() -> None:
    core = armed()
    core.trip("stop")
    refused(core, lambda: core.send("heat", READ, 0.0, None))
    refused(core, lambda: core.send("gas", READ, 0.0, None))


def test_a_procedure_that_follows_replaces_what_still_waits_on_its_ports() -> None:
    core = armed()
    core.trip("stop")
    assert core.trip("vent") == ("gas",)
    assert [each.request.frame for each in core.ports["gas"].safe] == [SHUT[1].frame]
    assert len(core.ports["heat"].safe) == 2


def test_an_unknown_procedure_still_latches_and_voids() -> None:
    core = armed()
    permit = core.permit("heat", WRITE.frame, 0.0)
    with pytest.raises(KeyError):
        core.trip("no such thing")
    assert core.latched
    refused(core, lambda: core.send("heat", WRITE, 0.0, permit))


def test_nothing_to_send_is_nothing_sent() -> None:
    core = armed()
    assert core.send_safe("heat", 0.0) is None
    assert core.trip("nothing") == ()


def test_a_guard_without_a_log_sends_the_same() -> None:
    core = armed()
    core.log = None
    assert core.send("gas", READ, 0.0, None) == READ.frame
    core.trip("stop")
    assert core.send_safe("heat", 0.0) == SHUT[0].frame


def test_a_port_cannot_end_what_it_never_began() -> None:
    with pytest.raises(RuntimeError, match="never began"):
        armed().ports["heat"]._end(b"", "", 0.0, drain_s=0.0)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["read", "write", "bare", "old", "feed", "late", "trip", "reset", "arm", "disarm"]
        ),
        st.sampled_from(["heat", "gas"]),
        st.floats(0.0, 1.0),
    ),
    max_size=60,
)


@given(steps=STEPS)
@settings(deadline=None, max_examples=150)
def test_whatever_is_tried_only_reads_permitted_frames_and_procedures_leave(
    steps: list[tuple[str, str, float]],
) -> None:
    core = armed()
    assert core.log is not None
    now = 0.0
    old: list[Permit] = []
    for what, name, wait_s in steps:
        now += wait_s
        port = core.ports[name]
        sent = len(core.log)
        source = None
        try:
            if what == "read":
                source = Source.READ
                core.send(name, READ, now, None)
            elif what == "write":
                source = Source.PERMIT
                permit = core.permit(name, WRITE.frame, now)
                old.append(permit)
                assert core.armed
                assert not core.latched
                core.send(name, WRITE, now, permit)
                old.append(permit)
            elif what == "bare":
                core.send(name, WRITE, now, None)
            elif what == "old" and old:
                stale = replace(old[-1], port=name)
                core.new_epoch()
                core.send(name, WRITE, now, stale)
            elif what == "feed":
                port.feed(b"A\r", now)
            elif what == "late":
                port.expire(now)
            elif what == "trip":
                source = Source.PROCEDURE
                core.trip("stop")
                core.send_safe(name, now)
            elif what in ("reset", "arm", "disarm"):
                getattr(core, what)()
        except NotPermitted:
            assert len(core.log) == sent
            continue
        new = core.log[sent:]
        assert all(each.source is source for each in new)
        assert len(new) <= 1
