"""Protocols that are sayable as a table: two steps, NAK, checksums, binary frames."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import reduce
from operator import xor
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labharness.core.vocabulary import (
    Allowed,
    BadReply,
    Checked,
    Command,
    DeviceFault,
    Ending,
    Exactly,
    Outcome,
    Request,
    Seal,
    Until,
)
from labharness.instruments.driver import Ascii, AsciiDriver, Channel, Wants, Who
from labharness.instruments.driver.driver import fault, reads_of
from labharness.journal.null_journal import NullJournal
from labharness.line.command import Writer
from labharness.line.exchanges import Exchanges, NoReply
from labharness.line.instrument import Instrument, read_frames
from labharness.safety.guard.messages import Fields, read_request, write_request
from line_alone import Scene, asks

MEASURED: dict[str, Any] = {"doc": "Measure it.", "source": "page 1"}
SET: dict[str, Any] = {"doc": "Control it.", "source": "page 1"}
ACK, NAK, ENQ = "\x06", "\x15", "\x05"


class Gauge(AsciiDriver):
    """A gauge as Pfeiffer's TPG: it acknowledges a question, and answers ENQ (BG5195 p. 71)."""

    reply_end = "\r\n"
    end = "\r"
    acknowledged = ACK
    enquires = ENQ
    refused = NAK
    off = ()
    write_grammar = (rb"SP[^\r]+\r",)
    who = Who("TID", model="(.*)")
    wants = Wants("model", "TPR", "{!r} is no gauge")

    pressure = Ascii("PR1", unit="mbar", **MEASURED)


class Furnace(AsciiDriver):
    """A controller on EI-Bisynch (HA026230): BCC behind ETX, NAK and EOT alone."""

    head, end = "\x0400 11".replace(" ", "0"), ENQ
    reply_head, reply_end = "\x02", "\x03"
    refusal_has_head = False
    reply_seal = Seal(how="xor raw", start=1)
    alone = b"\x15\x04"
    refused = "[\x15\x04]"
    off = ()
    write_grammar = (rb"\x04....\x02.*",)
    who = Who("II", model="II>(.*)")
    wants = Wants("model", "24", "{!r} is none")

    temperature = Ascii("PV", reads=lambda said, what: float(said.removeprefix("PV")), **MEASURED)


class Pump(AsciiDriver):
    """A drive on Pfeiffer's telegrams: the sum of all before, in three digits, before CR."""

    command_seal = Seal(how="sum decimal", tail=1)
    reply_seal = Seal(how="sum decimal", tail=1)
    head = reply_head = "001"
    off = ()
    write_grammar = (rb"...10.*\r",)
    who = Who("0034902=?", model="(.*)")
    wants = Wants("model", ".", "{!r} is none")

    speed = Ascii("0030902=?", reads=lambda said, what: float(said[-6:]), **MEASURED)


class Meter(AsciiDriver):
    """A meter whose commands are done when ``*OPC?`` says so."""

    end = reply_end = "\n"
    completes = "*OPC?"
    done = "1"
    off = ()
    write_grammar = (rb"[^?]*\n",)
    who = Who("*IDN?", model="(.*)")
    wants = Wants("model", ".", "{!r} is none")

    level = Ascii("L?", sends="L {}", sets=(0.0, 1.0), decimals=1, **SET)


def test_a_question_is_acknowledged_and_then_enquired_for() -> None:
    (scan,) = Gauge().scans()
    assert [each.frame for each in scan.requests] == [b"PR1\r", b"\x05"]
    assert re.fullmatch(scan.requests[0].obeyed, b"\x06\r\n")
    assert not re.fullmatch(scan.requests[0].obeyed, b"\x15\r\n")
    assert scan.decode(b"7.6E+2\r\n") == (760.0,)
    driver = Gauge()
    it = Instrument(name="it", kind="it", driver=driver, port="p")
    assert read_frames((it,)) == {"p": {b"TID\r", b"PR1\r", b"\x05"}}
    assert {request.frame for _, request in reads_of(driver)} == {b"TID\r", b"PR1\r", b"\x05"}


@pytest.mark.parametrize("answer", ["ack", "nak"])
def test_both_steps_are_sent_on_one_port_and_a_nak_ends_them(answer: str) -> None:
    scene = Scene()
    scene.port.says |= {"PR1": answer, "enq": "760"}
    first = replace(asks("PR1"), obeyed=rb"ack\r?")
    read = scene.exchanges.ask("p", asks("enq"), bytes.decode, before=(first,))
    if answer == "ack":
        assert scene.play(read).startswith("760")
        return
    with pytest.raises(DeviceFault, match="does not say that it was done"):
        scene.play(read)
    assert scene.port.asked("enq") == 0


def test_a_checksum_behind_the_end_is_checked_by_the_rule_and_a_nak_is_a_refusal() -> None:
    (scan,) = Furnace().scans()
    rule, reply = scan.request.reply, bytes.fromhex("02 50 56 31 36 2E 34 03 18")  # HA026230
    assert scan.request.frame == bytes.fromhex("04 30 30 30 31 31 50 56 05")
    assert [rule.take(reply[:n], 0) for n in range(1, 9)] == [0] * 8
    assert rule.take(reply, 0) == 9
    assert scan.decode(reply) == (16.4,)
    with pytest.raises(BadReply, match="checksum of"):
        rule.take(reply[:-1] + b"\x19", 0)
    for alone in (b"\x15", b"\x04"):
        assert rule.take(alone, 0) == 1
        with pytest.raises(DeviceFault, match="temperature"):
            scan.decode(alone)


def test_a_checksum_before_the_end_is_sent_and_checked() -> None:
    (scan,) = Pump().scans()
    assert scan.request.frame == b"0010030902=?107\r"
    sealed = Seal(how="sum decimal", tail=1).put(b"0011030906001500\r")
    assert scan.decode(sealed) == (1500.0,)
    with pytest.raises(BadReply, match="checksum"):
        scan.request.reply.take(sealed.replace(b"1500", b"9500"), 0)


def test_a_command_is_done_when_the_instrument_says_so() -> None:
    command, query = Meter().write("level", 0.5)
    assert (command.frame, query.frame) == (b"L 0.5\n", b"*OPC?\n")
    assert re.fullmatch(query.obeyed, b"1\n")


@pytest.mark.promise(4)
@given(
    how=st.sampled_from(["xor raw", "xor hex", "sum raw", "sum hex", "crc16 raw", "crc16 hex"]),
    data=st.binary(min_size=4, max_size=12),
    flip=st.tuples(st.integers(0, 3), st.integers(1, 255)),
    tail=st.integers(0, 2),
)
def test_a_binary_frame_with_one_byte_changed_never_passes(
    how: str, data: bytes, flip: tuple[int, int], tail: int
) -> None:
    seal = Seal(how=how, tail=tail)
    frame = seal.put(data + b"\r" * tail)
    rule = Checked(how=how, tail=tail, inner=Exactly(len(frame)))
    assert rule.take(frame, 0) == len(frame)
    assert seal.cut(frame) == data + b"\r" * tail
    if how == "xor raw":
        assert frame[len(data)] == reduce(xor, data)
    at, by = flip
    changed = frame[:at] + bytes([frame[at] ^ by]) + frame[at + 1 :]
    with pytest.raises(BadReply, match="checksum"):
        rule.take(changed, 0)


@pytest.mark.parametrize("driver", [Gauge(), Furnace(), Pump()])
def test_such_a_read_is_armed_as_it_is(driver: AsciiDriver) -> None:
    for _, request in reads_of(driver):
        assert read_request(Fields(write_request(request), "it")) == request


def test_a_checksum_that_nobody_knows_is_refused() -> None:
    with pytest.raises(ValueError, match="'md5' is none of xor raw"):
        Seal(how="md5")


FIRST, SECOND = Request(b"first\r", Until(b"\r"), 0.1), Request(b"second\r", Until(b"\r"), 0.1)


STEP = 0.1


ASKED = Command("mono.wavelength", 550.0, "nm")


SILENT, REFUSED, DONE = "silent", "refused", "done"


class TwoFrames:
    """A driver whose one channel takes frames in order, as a monochromator and its camera do."""

    channels = {  # noqa: RUF012 - a driver's own rows
        "wavelength": Channel(
            unit="nm",
            doc="Control it.",
            source="test",
            resolution=STEP,
            settable=True,
            readback="wavelength",
        )
    }
    off = ()

    def __init__(self, frames: tuple[Request, ...]) -> None:
        self.frames = frames

    def write(self, channel: str, value: float) -> tuple[Request, ...]:
        return self.frames

    def encode(self, channel: str, value: float) -> Any:
        for request in self.frames:
            if (yield request) == REFUSED.encode():
                raise fault(channel, "not now")


def performed(
    *replies: str, frames: tuple[Request, ...] = (FIRST, SECOND), reads: float = ASKED.value
) -> tuple[Outcome, list[bytes]]:
    """Perform the command with a reply to each frame; return its end, and what left."""
    left: list[bytes] = []

    async def send(request: Request, *, command: bool = False) -> bytes:
        reply = replies[len(left)] if len(left) < len(replies) else DONE
        left.append(request.frame)
        if reply == SILENT:
            raise NoReply("no reply")
        return reply.encode()

    async def nothing() -> None:
        return

    async def read(channel: str) -> float:
        return reads

    @asynccontextmanager
    async def lease(port: str) -> AsyncIterator[object]:
        yield SimpleNamespace(settle=nothing, send=send)

    gate = SimpleNamespace(
        judge=Allowed,
        begin=lambda command: None,
        conclude=lambda command: None,
        latest=lambda channel: reads,
    )
    writer = Writer(
        gate=cast("Any", gate),
        instruments={
            "mono": Instrument(
                name="mono", kind="two", driver=cast("Any", TwoFrames(frames)), port="bench"
            )
        },
        exchanges=cast("Exchanges", SimpleNamespace(lease=lease)),
        journal=cast("Any", NullJournal()),
        now_s=lambda: 0.0,
        read=read,
        lost=lambda why: None,
    )
    return asyncio.run(writer.perform(ASKED)), left


def test_all_frames_are_answered_and_it_is_confirmed() -> None:
    outcome, left = performed(DONE, DONE)
    assert outcome.ending is Ending.CONFIRMED
    assert left == [FIRST.frame, SECOND.frame]


@pytest.mark.promise(42)
@pytest.mark.parametrize("replies", [(SILENT,), (DONE, SILENT)], ids=["first", "second"])
def test_a_read_back_of_one_frame_does_not_show_the_others(replies: tuple[str, ...]) -> None:
    outcome, left = performed(*replies)
    assert outcome.ending is Ending.UNKNOWN
    assert outcome.read_back is None
    assert left == [FIRST.frame, SECOND.frame][: len(replies)]


def test_a_refused_frame_of_several_fails_though_the_value_reads_as_asked() -> None:
    outcome, _ = performed(DONE, REFUSED)
    assert outcome.ending is Ending.FAILED


@pytest.mark.promise(42)
def test_one_frame_that_is_not_answered_is_shown_by_its_read_back_and_is_not_sent_again() -> None:
    outcome, left = performed(SILENT, frames=(FIRST,))
    assert outcome.ending is Ending.CONFIRMED
    assert "no proof that it arrived" in outcome.detail
    assert left == [FIRST.frame]


@pytest.mark.promise(42)
@pytest.mark.parametrize(
    ("steps", "ending"),
    [(0.9, Ending.CONFIRMED), (-0.9, Ending.CONFIRMED), (1.5, Ending.MISMATCH)]
    + [(steps, Ending.MISMATCH) for steps in (-1.5, 9.0, -9.0)],
)
def test_what_is_read_back_is_what_was_asked_to_within_one_step(
    steps: float, ending: Ending
) -> None:
    outcome, _ = performed(reads=ASKED.value + steps * STEP)
    assert outcome.ending is ending
