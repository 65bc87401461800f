"""The file of an alarm's facts, and the workers of the channels, at their bounds."""

import errno
import json
import os
import queue
import stat
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from labharness.safety.alarm import outlets
from labharness.safety.alarm.board import Actor, AlarmEvent, Fact, Severity
from labharness.safety.alarm.outlets import (
    AlarmFile,
    AlertChannel,
    AppriseChannels,
    BadAddress,
    NullSenders,
    recipients,
    strange_addresses,
)

AT = datetime(2026, 1, 1, 8, tzinfo=UTC)
FACT = Fact(
    event=AlarmEvent.TIMED_SHELVE,
    alarm="a",
    at=AT,
    role=Actor.OPERATOR,
    who="Ada",
    why="known",
    severity=Severity.FAULT,
    source="house",
    rank=3,
    shelve_s=60.5,
)


def fact(number: int = 0, **more: Any) -> Fact:
    """Make a fact that differs from the others."""
    return Fact(
        event=AlarmEvent.ACTIVATE, alarm=f"a{number}", at=AT + timedelta(seconds=number), **more
    )


@pytest.fixture
def file(tmp_path: Path) -> AlarmFile:
    return AlarmFile(tmp_path / "alarms.jsonl")


def line(**more: object) -> bytes:
    """Write a fact as the file holds it, with something otherwise."""
    return json.dumps({**json.loads(outlets._line(FACT)), **more}).encode() + b"\n"


# ---- looking


def test_a_file_is_looked_at_from_where_the_last_look_ended(file: AlarmFile) -> None:
    assert file.look() == ()
    file.append([FACT])
    assert file.look() == (FACT,)
    assert file.look() == ()
    file.append([fact(1), fact(2)])
    assert file.look() == (fact(1), fact(2))
    assert file.damaged == 0


def test_half_a_line_is_waited_for(file: AlarmFile) -> None:
    whole = line()
    file.path.write_bytes(line() + whole[:20])
    assert file.look() == (FACT,)
    assert file.look() == ()
    with file.path.open("ab") as other:
        other.write(whole[20:])
    assert file.look() == (FACT,)
    assert file.damaged == 0


@pytest.mark.parametrize("length", [16_384, 16_385])
def test_a_line_that_is_too_long_is_passed_over_and_one_that_is_not_is_waited_for(
    file: AlarmFile, length: int
) -> None:
    file.path.write_bytes(b" " * length)
    assert file.look() == ()
    long = length > 16_384
    assert file._read_to == (length if long else 0)
    with file.path.open("ab") as other:
        other.write(b"\n" + line())
    assert file.look() == (FACT,)


@pytest.mark.parametrize(("length", "kept"), [(16_384, True), (16_385, False)])
def test_a_fact_is_no_longer_than_a_line_may_be(
    file: AlarmFile, length: int, *, kept: bool
) -> None:
    written = line(more="")
    file.path.write_bytes(line(more="x" * (length - len(written) + 1)))
    assert len(file.look()) == kept
    assert file.damaged == (not kept)


def test_a_long_file_is_read_in_many_looks(
    file: AlarmFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outlets, "LOOK_BYTES_MAX", 3 * len(line()) + 5)
    file.path.write_bytes(line() * 8)
    assert len(file.look()) == 3
    assert len(file.look_at_all()) == 5
    assert file.look_at_all() == ()


def test_a_file_that_was_cut_short_replaced_or_removed_is_read_from_its_beginning(
    file: AlarmFile, tmp_path: Path
) -> None:
    file.path.write_bytes(line() * 2)
    assert len(file.look()) == 2
    file.path.write_bytes(line())
    assert len(file.look()) == 1, "it was cut short"
    fresh = tmp_path / "fresh"
    fresh.write_bytes(line() * 3)
    fresh.replace(file.path)
    assert len(file.look()) == 3, "it is another of its name"
    file.path.unlink()
    assert file.look() == ()
    file.path.write_bytes(line() * 4)
    assert len(file.look()) == 4


def test_one_file_that_took_the_place_of_another_is_read_though_it_is_as_long(
    file: AlarmFile, tmp_path: Path
) -> None:
    file.path.write_bytes(line())
    file.look()
    fresh = tmp_path / "fresh"
    fresh.write_bytes(line(alarm="b"))
    fresh.replace(file.path)
    assert [each.alarm for each in file.look()] == ["b"]


@pytest.mark.parametrize(
    "wrong",
    [
        b"scrawl\n",
        b"[]\n",
        b"1\n",
        b"[" * 9000 + b"\n",
        line(at="soon"),
        line(at="2026-01-01T08:00:00"),
        line(at="1999-12-31T08:00:00Z"),
        line(at="3000-01-01T08:00:00Z"),
        line(at=1),
        line(event="unheard of"),
        line(role="unheard of"),
        line(severity="unheard of"),
        line(rank="high"),
        line(rank=float("inf")),
        line(shelve_s="long"),
        json.dumps({"event": "activate"}).encode() + b"\n",
    ],
)
def test_what_is_no_fact_is_counted_and_passed_over(file: AlarmFile, wrong: bytes) -> None:
    file.path.write_bytes(line() + wrong + b"\n  \n" + line())
    assert file.look() == (FACT, FACT)
    assert file.damaged == 1, "and an empty line is no damage"


@pytest.mark.parametrize("year", [2000, 2999])
def test_a_fact_of_any_year_that_can_be_is_one(file: AlarmFile, year: int) -> None:
    file.path.write_bytes(line(at=f"{year}-06-01T08:00:00Z"))
    assert len(file.look()) == 1


# ---- appending


def test_what_is_appended_is_on_the_disk_and_so_is_the_name_of_a_fresh_file(
    file: AlarmFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    fsync = os.fsync

    def record(handle: int) -> None:
        mode = os.fstat(handle).st_mode
        synced.append("folder" if stat.S_ISDIR(mode) else f"file of {os.fstat(handle).st_size}")
        fsync(handle)

    monkeypatch.setattr(os, "fsync", record)
    opened = len(os.listdir("/proc/self/fd"))
    file.append([FACT])
    assert synced == [f"file of {len(line())}", "folder"]
    file.append([FACT])
    assert synced[2:] == [f"file of {2 * len(line())}"]
    assert len(os.listdir("/proc/self/fd")) == opened


def test_a_fact_begins_on_a_line_of_its_own(file: AlarmFile) -> None:
    file.path.write_bytes(line() + b'{"cut sho')
    file.append([fact(1)])
    assert file.look() == (FACT, fact(1))
    assert file.damaged == 1
    file.append([fact(2)])
    assert b"\n\n" not in file.path.read_bytes()


def test_words_without_end_are_cut(file: AlarmFile) -> None:
    file.append([fact(who="w" * 501, why="y" * 501)])
    (found,) = file.look()
    assert (found.who, found.why) == ("w" * 500, "y" * 500)


def test_a_disk_that_takes_only_a_part_is_no_place_for_a_fact(
    file: AlarmFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: write(handle, data[:-1]))
    with pytest.raises(OSError, match="only a part could be written") as refused:
        file.append([FACT])
    assert refused.value.errno == errno.ENOSPC


@pytest.mark.parametrize(("folder", "rights"), [(0o770, 0o660), (0o700, 0o600)])
def test_the_group_of_the_lab_may_write_the_file(file: AlarmFile, folder: int, rights: int) -> None:
    mask = os.umask(0o077)
    try:
        file.path.parent.chmod(folder)
        file.append([FACT])
    finally:
        os.umask(mask)
    assert stat.S_IMODE(file.path.stat().st_mode) == rights


def test_a_pipe_in_its_place_is_neither_read_nor_written(file: AlarmFile) -> None:
    os.mkfifo(file.path)
    with pytest.raises(OSError, match="a pipe or a device"):
        file.look()
    reader = os.open(file.path, os.O_RDWR | os.O_NONBLOCK)
    with pytest.raises(OSError, match="a pipe or a device"):
        file.append([FACT])
    os.close(reader)


# ---- whom it is told


TRIPS = AlertChannel(name="trips", severities=frozenset({Severity.TRIP}))
ALL = AlertChannel(name="all")
CHIEF = AlertChannel(name="chief", level=1)


@pytest.mark.parametrize(
    ("severity", "level", "dead", "told"),
    [
        (Severity.TRIP, 0, "", ("trips", "all")),
        (Severity.FAULT, 0, "", ("all",)),
        (Severity.FAULT, 1, "", ("chief",)),
        (Severity.FAULT, 2, "", ()),
        (Severity.FAULT, 0, "all", ("trips",)),
        (Severity.TRIP, 0, "trips", ("all",)),
    ],
)
def test_a_call_goes_to_the_channels_of_its_level_and_severity(
    severity: Severity, level: int, dead: str, told: tuple[str, ...]
) -> None:
    found = recipients([TRIPS, ALL, CHIEF], {severity}, level, dead)
    assert tuple(each.name for each in found) == told


def on_a_service(notify: Callable[..., object], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Stand in for apprise with one service; addresses that begin with ``!`` are none."""
    service = SimpleNamespace(notify=notify)

    def instantiate(address: str, *, suppress_exceptions: bool) -> object:
        assert suppress_exceptions, "what it raises may hold the address"
        return None if address.startswith("!") else service

    stub = SimpleNamespace(Apprise=SimpleNamespace(instantiate=instantiate))
    monkeypatch.setitem(sys.modules, "apprise", stub)
    return service


def test_a_message_is_tried_twice_and_its_end_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ends: queue.Queue[str] = queue.Queue()
    answers: list[object] = [True, False, True, False, False, OSError("secret"), OSError("secret")]
    said: list[dict[str, str]] = []

    def notify(**message: str) -> object:
        said.append(message)
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    service = on_a_service(notify, monkeypatch)
    channels = AppriseChannels({"mail": "mailto://secret"})
    assert (service.socket_connect_timeout, service.socket_read_timeout) == (2.0, 2.0)
    told = []
    for _ in range(4):
        channels.send("mail", "title", "text", ends.put)
        told.append(ends.get(timeout=5))
    assert told == ["", "", "it does not take messages", "it breaks with OSError"]
    assert said == [{"title": "title", "body": "text"}] * 7
    assert outlets.ALERT_S_MAX > 2 * outlets.TRIES_MAX * outlets.SERVICE_S_MAX


def test_as_many_messages_wait_for_a_channel_as_it_may_have_and_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun, free = threading.Event(), threading.Event()
    ends: queue.Queue[str] = queue.Queue()

    def notify(**message: str) -> bool:
        begun.set()
        return free.wait(5)

    on_a_service(notify, monkeypatch)
    channels = AppriseChannels({"mail": "mailto://secret"})
    channels.send("mail", "title", "text", ends.put)
    assert begun.wait(5)
    for _ in range(32):
        channels.send("mail", "title", "text", ends.put)
    assert ends.empty()
    channels.send("mail", "title", "text", ends.put)
    assert ends.get_nowait() == "32 messages wait for it already"
    free.set()
    assert [ends.get(timeout=5) for _ in range(33)] == [""] * 33


def test_an_address_that_is_none_is_named_by_its_channel(monkeypatch: pytest.MonkeyPatch) -> None:
    on_a_service(lambda **message: True, monkeypatch)
    addresses = {"mail": "mailto://secret", "chat": "!secret"}
    assert strange_addresses(addresses) == ("chat",)
    assert strange_addresses({}) == ()
    with pytest.raises(BadAddress, match=r"^alert 'chat': apprise does not know an address"):
        AppriseChannels(addresses)
    monkeypatch.setitem(sys.modules, "apprise", None)
    assert strange_addresses(addresses) == ()
    with pytest.raises(BadAddress, match="alerts take apprise: pip install"):
        AppriseChannels(addresses)


def test_on_paper_every_message_is_sent() -> None:
    ends: list[str] = []
    NullSenders().send("mail", "title", "text", ends.append)
    assert ends == [""]
