"""Lines over descriptors: each once, in order, bounded, and without holding up an end."""

import asyncio
import os
import threading
import warnings
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labharness.instruments.link.pipes import LINES_MAX, LinesIn, LinesOut

LINE = st.binary(max_size=30).filter(lambda each: b"\n" not in each)
MOST = 20


def received(chunks: list[bytes]) -> list[bytes]:
    """Return the lines of bytes that come in some chunks, and then end."""
    reads, writes = os.pipe()

    def send() -> None:
        for each in chunks:
            os.write(writes, each)
        os.close(writes)

    async def receive() -> list[bytes]:
        sending = threading.Thread(target=send, daemon=True)
        sending.start()
        found = [line async for line in LinesIn(reads, MOST).lines()]
        sending.join()
        return found

    try:
        return asyncio.run(receive())
    finally:
        os.close(reads)


@settings(max_examples=60, deadline=None)
@given(st.lists(LINE, max_size=60), st.integers(1, 50), st.booleans())
def test_lines_come_whole_and_in_order_however_they_are_cut(
    lines: list[bytes], size: int, ended: bool
) -> None:
    data = b"\n".join(lines) + b"\n" * ended
    chunks = [data[at : at + size] for at in range(0, len(data), size)]
    assert received(chunks) == [each[: MOST + 1] for each in lines if each[: MOST + 1].strip()]


def test_a_long_line_is_cut_and_held_nowhere_whole() -> None:
    found = received([b"a" * 60_000] * 4 + [b"\nb\n"])
    assert found == [b"a" * (MOST + 1), b"b"]


@settings(max_examples=30, deadline=None)
@given(st.lists(LINE, max_size=40))
def test_lines_go_out_in_the_order_in_which_they_are_put(lines: list[bytes]) -> None:
    reads, writes = os.pipe()

    async def put() -> None:
        out = LinesOut(writes)
        await asyncio.gather(*(out.put(each) for each in lines))

    asyncio.run(put())
    os.close(writes)
    with os.fdopen(reads, "rb") as file:
        assert file.read() == b"".join(each + b"\n" for each in lines)


def test_a_reader_that_has_gone_is_told_as_such() -> None:
    reads, writes = os.pipe()
    os.close(reads)

    async def put() -> None:
        with pytest.raises(BrokenPipeError):
            await LinesOut(writes).put(b"line")

    asyncio.run(put())
    os.close(writes)


def test_neither_a_silent_writer_nor_a_slow_reader_holds_up_the_end() -> None:
    silent, _ = os.pipe()
    _, full = os.pipe()

    async def begin() -> None:
        out, lines = LinesOut(full), LinesIn(silent, MOST)
        with suppress(TimeoutError):
            async with asyncio.timeout(0.3):
                await asyncio.gather(out.put(b"a" * 10_000_000), anext(lines.lines()))

    asyncio.run(begin())  # it ends


def test_a_line_that_comes_after_the_loop_has_ended_leaves_nothing_behind() -> None:
    """A coroutine that nobody awaits is warned of, wherever it is thrown away."""
    reads, writes = os.pipe()
    before = set(threading.enumerate())

    async def begin() -> None:
        LinesIn(reads, MOST)

    asyncio.run(begin())
    (reader,) = set(threading.enumerate()) - before
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        os.write(writes, b"late\n")
        reader.join()
    assert [str(each.message) for each in told] == []
    os.close(writes)
    os.close(reads)


def test_more_lines_than_are_taken_wait_at_the_writer() -> None:
    reads, writes = os.pipe()
    os.set_blocking(writes, False)

    async def begin() -> int:
        LinesIn(reads, 70_000)
        sent = 0
        for _ in range(LINES_MAX * 8):
            try:
                sent += os.write(writes, b"a" * 60_000 + b"\n") > 60_000
            except BlockingIOError:
                break
            await asyncio.sleep(0.002)
        return sent

    assert asyncio.run(begin()) < LINES_MAX * 4
