"""armed.json and what crosses the guard's socket: read as written, or refused in plain words."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labharness.core.vocabulary import (
    Cause,
    Exactly,
    LengthAt,
    Message,
    Nothing,
    Quiet,
    Request,
    Rtu,
    Transaction,
    Trip,
    Until,
)
from labharness.core.vocabulary import (
    Lines as LinesRule,
)
from labharness.lab import LabPlan
from labharness.lab.wiring.arming import armed_of
from labharness.line.procedures import compile_procedures
from labharness.safety.guard import Permit, SafeFrame
from labharness.safety.guard.armed import Armed, ArmedPort, BadArming, read_armed
from labharness.safety.guard.harness import NEVER, HarnessWatch, OfflineLog
from labharness.safety.guard.messages import (
    LINE_BYTES_MAX,
    BadFields,
    Fields,
    LineSplitter,
    fits,
    line_of,
    read_request,
    read_trip,
    seal,
    write_request,
    write_trip,
)

RAW = st.binary(max_size=12)
WHOLE = st.integers(0, 2**31)
RULES = st.one_of(
    st.builds(Until, RAW, RAW, WHOLE),
    st.builds(Exactly, WHOLE, RAW),
    st.builds(Rtu, WHOLE, WHOLE, st.none() | WHOLE, RAW),
    st.builds(
        LengthAt, WHOLE, WHOLE, WHOLE, WHOLE, RAW, WHOLE, st.lists(WHOLE, min_size=1).map(tuple)
    ),
    st.builds(LinesRule, WHOLE, RAW, RAW, WHOLE),
    st.builds(Quiet, st.floats(0, 60)),
    st.builds(Message, st.text(max_size=12)),
    st.just(Nothing()),
)
REQUESTS = st.builds(
    Request,
    st.binary(min_size=8, max_size=40),
    RULES,
    st.floats(0, 60),
    st.floats(0, 60),
    st.none() | st.builds(Transaction, st.integers(0, 4), st.integers(1, 4), st.booleans()),
)
OFF = Request(b"off\r", Until(b"\r"), 0.3, obeyed=b"off\r")
IS_OFF = Request(b"off?\r", Until(b"\r"), 0.3, obeyed=b"yes\r")
SAFE = SafeFrame(0, "heat", OFF, "furnace.output", 0.0, "%", IS_OFF)
READ = Request(b"state\r", Until(b"\r"), 0.3)
ARMED = Armed(
    lab="bench",
    lab_digest="sha256:0",
    envelope_digest="sha256:1",
    silence_s_max=0.5,
    safe_table="stop",
    lost="stop",
    ports=(
        ArmedPort(name="heat", link="serial", path="/dev/ttyUSB0", baud=9600, reads=(READ,)),
        ArmedPort(name="gas", link="tcp", host="10.0.0.7", tcp_port=502),
    ),
    procedures={"stop": (SAFE,), "nothing": ()},
)


@given(request=REQUESTS)
@settings(deadline=None, max_examples=60)
def test_a_request_is_read_as_it_was_written(request: Request) -> None:
    written = json.loads(json.dumps(write_request(request)))
    assert read_request(Fields(written, "request")) == request


def test_an_arming_is_read_as_it_was_written() -> None:
    assert read_armed(ARMED.text()) == ARMED


def test_a_trip_is_read_as_it_was_written() -> None:
    for value, known in ((None, None), (1200.5, 1200.5), (math.inf, None), (math.nan, None)):
        trip = Trip(Cause.GAS_LEAK, "stop", "h2.concentration", value, 12.5, "1200 ppm")
        read = read_trip(Fields(json.loads(json.dumps(write_trip(trip))), "trip"))
        assert read == replace(trip, value=known)


@pytest.mark.promise(1)
def test_the_arming_of_a_real_lab_is_complete(short_plan: LabPlan) -> None:
    rows = tuple(
        row.model_copy(update={"link": "serial", "path": f"/dev/{row.name}", "baud": 9600})
        for row in short_plan.file.port
    )
    plan = short_plan.with_file(short_plan.file.model_copy(update={"port": rows}))
    procedures = compile_procedures(plan.envelope, {each.name: each for each in plan.instruments})
    armed = armed_of(plan, procedures, "immediate_shutdown")
    assert armed is not None
    assert read_armed(armed.text()) == armed
    assert armed.procedures == procedures
    assert {frame.unit for frame in procedures["immediate_shutdown"]} >= {"sccm", "%"}
    for port in armed.ports:
        assert port.reads
        writes = [f.request for each in procedures.values() for f in each if f.port == port.name]
        for request in (*port.reads, *writes):
            assert request.timeout_s + request.settle_s <= port.exchange_s_max


def every_key(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    items: Any = value.items() if isinstance(value, dict) else ()
    if isinstance(value, list):
        items = enumerate(value)
    for key, inner in items:
        found += every_key(inner, (*path, key))
    return found


def spoiled(act: Callable[[Any, Any], None], path: tuple[Any, ...]) -> str:
    body = json.loads(ARMED.text())
    inner = body
    for key in path[:-1]:
        inner = inner[key]
    act(inner, path[-1])
    return json.dumps(body)


def test_whatever_is_missing_from_an_arming_is_named() -> None:
    for path in every_key(json.loads(ARMED.text())):
        if isinstance(path[-1], str) and path[:-1] != ("procedures",):

            def drop(inner: Any, key: Any) -> None:
                del inner[key]

            with pytest.raises(BadArming, match=f"has no '{path[-1]}'"):
                read_armed(spoiled(drop, path))


MAY_BE = {("value", "-1"), ("transaction", "None"), ("shown", "None"), ("echoes", "True")}
MAY_BE |= {(name, "[]") for name in ("stop", "nothing", "reads", "steps")}


def test_whatever_is_of_another_kind_in_an_arming_is_refused_in_one_line() -> None:
    wrongs: tuple[object, ...] = (None, [], {}, -1, True, float("nan"))
    for path in every_key(json.loads(ARMED.text())):
        for wrong in wrongs:

            def put(inner: Any, key: Any, wrong: object = wrong) -> None:
                inner[key] = wrong

            if (path[-1], repr(wrong)) in MAY_BE:
                continue
            with pytest.raises(BadArming) as refused:
                read_armed(spoiled(put, path))
            assert "\n" not in str(refused.value)


@pytest.mark.promise(4)
@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        (("more",), 1, "unknown 'more'"),
        (("ports", 0, "more"), 1, "unknown 'more'"),
        (("ports", 0, "reads", 0, "reply", "more"), 1, "unknown 'more'"),
        (("format",), 1, "is of format 1, this guard reads 3"),
        (("procedures", "stop", 0, "request", "obeyed"), "", "which reply means done"),
        (("procedures", "stop", 0, "request", "obeyed"), b"(".hex(), "is not a regular expression"),
        (("procedures", "stop", 0, "shown", "obeyed"), "", "does not say what it is to be"),
        (("silence_s_max",), 60.0, "allowed 0.2 to 5 s"),
        (("lost",), "unheard of", "none of stop, nothing"),
        (("ports", 1, "name"), "heat", "each once"),
        (("ports", 0, "link"), "visa", "none of serial, tcp"),
        (("ports", 0, "protocol"), "pigeon", "none of modbus_rtu, modbus_tcp, text"),
        (
            ("ports", 0, "protocol"),
            "modbus_rtu",
            "port heat: .* is not a whole frame of modbus_rtu",
        ),
        (("ports", 0, "reads", 0, "frame"), SAFE.request.frame.hex(), "sets furnace.output to 0"),
        (("ports", 0, "reads", 0, "frame"), "01050006ff006c3b", r"function 5 \(write single coil"),
        (("ports", 0, "stop_bits"), 3, "allowed 1 or 2"),
        (("ports",), [], "no port 'heat'"),
        (("procedures", "stop", 0, "port"), "elsewhere", "no port 'elsewhere'"),
        (("procedures", "stop", 0, "request", "frame"), "0g", "is not hexadecimal"),
        (("procedures", "stop", 0, "request", "timeout_s"), 61, "allowed 0 to 60 s"),
        (("procedures", "stop", 0, "value"), float("inf"), "is not a finite number"),
    ],
)
def test_what_is_wrong_with_an_arming_is_said(path: Any, value: object, says: str) -> None:
    def put(inner: Any, key: Any) -> None:
        inner[key] = value

    with pytest.raises(BadArming, match=says):
        read_armed(spoiled(put, path))


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 100_000, "null"])
def test_what_is_no_arming_at_all_is_refused(text: str) -> None:
    with pytest.raises(BadArming):
        read_armed(text)


def test_a_transaction_field_lies_inside_its_frame() -> None:
    written = write_request(replace(SAFE.request, transaction=Transaction(3, 2)))
    with pytest.raises(BadFields, match="not inside the frame"):
        read_request(Fields(written, "request"))


# ---- the seal of a permit

ON = Request(b"on\r", Until(b"\r"), 0.3)


@given(
    name=st.sampled_from(["number", "epoch", "expires_s", "port", "frame"]), bit=st.integers(0, 60)
)
@settings(deadline=None, max_examples=60)
def test_a_seal_fits_its_permit_and_no_other(name: str, bit: int) -> None:
    permit = Permit(1 << 61, "heat", ON.frame, 1 << 61, 2.0**40)
    other: Any = {
        "number": permit.number ^ 1 << bit,
        "epoch": permit.epoch ^ 1 << bit,
        "expires_s": permit.expires_s + (bit + 1) * 1e-3,
        "port": "heat" + "x" * (bit + 1),
        "frame": bytes([permit.frame[0] ^ 1 << bit % 8]) + permit.frame[1:],
    }[name]
    key = bytes(range(32))
    given_ = seal(key, permit, ON)
    assert fits(key, permit, ON, given_)
    assert not fits(key, replace(permit, **{name: other}), ON, given_)
    assert not fits(bytes(32), permit, ON, given_)
    assert not fits(key, permit, ON, given_[:-1])


def test_a_seal_knows_where_the_port_ends_and_the_frame_begins() -> None:
    one = Permit(1, "ab", b"c", 1, 1.0)
    assert seal(b"k", one, ON) != seal(b"k", replace(one, port="a", frame=b"bc"), ON)


# ---- heartbeats, lines, and what is left for later


def test_a_harness_is_overdue_after_its_silence_and_not_before() -> None:
    watch = HarnessWatch(0.5, "stop")
    assert not watch.overdue(1e9), "nobody is watched before arming"
    watch.heartbeat(5.0, 5.0, "vent")
    assert watch.procedure == "vent"
    assert not watch.overdue(1e9)
    watch.heard_s = 10.0
    assert (watch.overdue(10.5), watch.overdue(10.500001)) == (False, True)
    watch.heartbeat(10.4, 10.45, "stop")
    assert (watch.overdue(10.9), watch.overdue(10.91)) == (False, True)
    watch.heartbeat(10.2, 10.95, "stop")
    assert watch.overdue(10.95), "a heartbeat counts from when it was made"
    watch.heard_s = 10.6
    watch.heartbeat(99.0, 11.0, "stop")
    assert watch.due_s == 11.5, "nobody heartbeats in the future"
    assert watch.heartbeat(3600.0, 3600.0, "vent") == 3589.0, "though it slept through it too"
    assert (watch.procedure, watch.due_s) == ("stop", 11.5)
    watch.heard_s = NEVER
    assert watch.due_s == float("inf")


@given(cuts=st.lists(st.integers(0, 60), max_size=5))
@settings(deadline=None, max_examples=40)
def test_messages_come_whole_however_they_are_cut(cuts: list[int]) -> None:
    messages = [{"say": "safe", "number": number, "text": "µ\n"} for number in range(3)]
    stream = b"".join(map(line_of, messages)) + b'{"cut sho'
    lines, found, at = LineSplitter(), [], 0
    for cut in [*sorted(cuts), len(stream)]:
        found += list(lines.feed(stream[at:cut]))
        at = max(at, cut)
    assert found == messages


def test_a_message_without_end_is_given_up() -> None:
    lines = LineSplitter()
    with pytest.raises(ValueError, match="longer than"):
        list(lines.feed(b"x" * (LINE_BYTES_MAX + 1)))


def test_what_is_left_for_later_is_there_later(tmp_path: Path) -> None:
    log = OfflineLog(tmp_path / "guard.jsonl")
    log.add("tripped by itself", why="µ")
    assert not (tmp_path / "guard.jsonl").exists(), "bytes go before it"
    log.flush()
    with (tmp_path / "guard.jsonl").open("ab") as file:
        file.write(b'{"cut sho')
    again = OfflineLog(tmp_path / "guard.jsonl")
    assert [each["what"] for each in again.entries] == ["tripped by itself", "unreadable"]
    again.clear()
    assert OfflineLog(tmp_path / "guard.jsonl").entries == []


def test_a_log_that_can_be_neither_read_nor_removed_keeps_no_guard_from_beginning(
    tmp_path: Path,
) -> None:
    (tmp_path / "guard.jsonl").mkdir()
    log = OfflineLog(tmp_path / "guard.jsonl")
    (entry,) = log.entries
    assert entry == {
        "what": "unreadable",
        "line": "guard.jsonl cannot be read: Is a directory",
    }
    log.clear()
    assert log.entries == []


def test_a_log_whose_disk_fails_keeps_its_entries(tmp_path: Path) -> None:
    log = OfflineLog(tmp_path / "no such folder" / "guard.jsonl")
    log.add("tripped")
    log.flush()
    (tmp_path / "no such folder").mkdir()
    log.flush()
    assert [each["what"] for each in OfflineLog(log._path).entries] == ["tripped"]
