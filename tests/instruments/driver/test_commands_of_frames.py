"""A command of several frames is done when each was answered, and no frame of it is sent again."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from labharness.core.vocabulary import Allowed, Command, Ending, Outcome, Request, Until
from labharness.instruments.driver import Channel
from labharness.instruments.driver.driver import fault
from labharness.journal.null_journal import NullJournal
from labharness.line.command import Writer
from labharness.line.exchanges import Exchanges, NoReply
from labharness.line.instrument import Instrument

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
