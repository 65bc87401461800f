"""The small parts of a guard, each by itself: latch as seen, mark, door, log, socket, process."""

import os
import socket
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from guard_stubs import LAST, SAFE
from labharness.core.files.named import open_named, open_own, shared_by_group
from labharness.core.vocabulary import Cause, Trip
from labharness.instruments.link import LinkLost
from labharness.safety.guard import harness, messages, service
from labharness.safety.guard.harness import OfflineLog
from labharness.safety.guard.latch import ArmedMarker
from labharness.safety.guard.messages import SocketLines, line_of
from labharness.safety.guard.remote import SplitGuard
from labharness.safety.guard.remote_parts import GuardedLink, SeenLatch
from labharness.safety.guard.service import Door, DoorPaths, Notifier
from platforms import unix

pytestmark = unix

LEAK = Trip(Cause.GAS_LEAK, "vent", "h2.concentration", 1200.0, 1.0, "leak")
BOUND_S = 5.0


class Calls:
    """Notes what is asked of it, and with what; a name in ``fails`` raises ``OSError``."""

    def __init__(self, **gives: Any) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.fails: set[str] = set()
        self.gives = gives

    def __getattr__(self, name: str) -> Any:
        if name in self.gives:
            return self.gives[name]

        def call(*args: Any, **options: Any) -> Any:
            self.calls.append((name, *args, *options.values()))
            if name in self.fails:
                raise OSError(5, "Input/output error")

        return call

    def take(self) -> list[tuple[Any, ...]]:
        taken, self.calls = self.calls, []
        return taken


# ---- the latch as a harness sees it


def test_a_latch_as_seen_keeps_the_records_of_the_ports_that_the_guard_has_not(
    tmp_path: Path,
) -> None:
    near: Any = Calls()
    latch = SeenLatch(tmp_path / "latch.json", near)
    assert (latch.trip, latch.write_error, latch.saved()) == (None, "", True)
    assert near.take() == []
    latch.set_marker("stop")
    assert near.take() == [("set_marker", "stop")]
    near.fails = {"close"}
    latch.close(LEAK)
    assert latch.saved(), "the guard has it on its disk"
    near.fails = set()
    assert latch.saved()
    assert latch.saved()
    assert near.take() == [("close", LEAK), ("close", LEAK)], "until it is written, and once"
    later = replace(LEAK, procedure="stop", detail="heat")
    latch.close(later)
    assert latch.trip == replace(LEAK, procedure="stop")
    latch.saved()
    assert near.take() == [("close", latch.trip)]
    latch.write_error = "disk full"
    assert not latch.saved()
    latch.clear_marker()
    assert near.take() == [], "a latched port is not opened by its mark"
    near.fails = {"clear"}
    with pytest.raises(OSError, match="Input/output error"):
        latch.open()
    assert latch.trip is not None
    near.fails = set()
    latch.open()
    assert near.take() == [("clear",), ("clear",)]
    reopened: Trip | None = latch.trip
    assert reopened is None
    near.fails = {"clear"}
    latch.clear_marker()
    assert near.take() == [("clear",)], "and one that does not go is found latched"
    latch.close(LEAK)
    near.take()
    latch.saved()
    assert near.take() == [("close", LEAK)], "after a reset it is another trip"


def test_where_the_guard_has_all_ports_it_keeps_all_records(tmp_path: Path) -> None:
    latch = SeenLatch(tmp_path / "latch.json")
    latch.close(LEAK)
    assert latch.saved()
    latch.set_marker("stop")
    latch.clear_marker()
    assert latch.trip == LEAK
    latch.open()
    assert latch.trip is None
    latch.probe()
    assert list(tmp_path.iterdir()) == []
    gone = SeenLatch(tmp_path / "gone" / "latch.json")
    with pytest.raises(FileNotFoundError):
        gone.probe()


def test_bytes_go_to_a_port_of_the_guard_through_the_guard_alone() -> None:
    guard: Any = Calls()
    link = GuardedLink(guard, "heat", "serial")
    assert (link.guarded, link.kind) == (True, "serial")
    with pytest.raises(LinkLost, match=r"^this serial port is the guard's$"):
        link.write(b"x")
    link.close()
    assert guard.calls == []


# ---- the armed marker, the door


class Held:
    """A thread whose work is done when a test says so."""

    made: ClassVar[list["Held"]] = []  # emptied by each test

    def __init__(self, target: Callable[..., None], args: Any = (), daemon: bool = False) -> None:
        assert daemon
        self._target, self._args = target, args
        self.alive = False
        self.joined: list[float | None] = []
        Held.made.append(self)

    def start(self) -> None:
        self.alive = True

    def end(self) -> None:
        self._target(*self._args)
        self.alive = False

    def is_alive(self) -> bool:
        return self.alive

    def join(self, within_s: float | None = None) -> None:
        self.joined.append(within_s)


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[Held]:
    Held.made = []
    monkeypatch.setattr(service, "Thread", Held)
    return Held.made


def test_one_mark_is_written_at_a_time_and_each_second_at_most(threads: list[Held]) -> None:
    latch: Any = Calls(marker="stop")
    mark = ArmedMarker(latch)
    assert not mark.busy
    mark.wait()
    mark.wanted = "stop"
    mark.follow(10.0)
    assert threads == [], "it is written"
    mark.wanted = "vent"
    mark.follow(10.0)
    assert (len(threads), mark.busy) == (1, True)
    mark.wanted = "other"
    mark.follow(20.0)
    assert len(threads) == 1, "one is on its way"
    mark.wait(2.5)
    assert threads[0].joined == [2.5]
    latch.fails = {"mark"}
    threads[0].end()
    assert latch.take() == [("set_marker", "vent")], "a disk that fails is tried again"
    assert not mark.busy
    mark.wait()
    assert threads[0].joined == [2.5]
    mark.follow(10.999)
    assert len(threads) == 1
    mark.follow(11.0)
    threads[1].end()
    assert latch.take() == [("set_marker", "other")]


def test_the_door_is_looked_at_once_a_second_by_one_thread(
    threads: list[Held], tmp_path: Path
) -> None:
    stands = tmp_path / "guard.sock"
    stands.touch()
    watch = Door((stands, tmp_path, tmp_path / "never there"))
    watch.look(100.0)
    watch.look(200.0)
    assert len(threads) == 1, "a share that hangs is looked at once"
    threads[0].end()
    assert watch.lost == ""
    watch.look(100.999)
    assert len(threads) == 1
    watch.look(101.0)
    stands.unlink()
    threads[1].end()
    assert watch.lost == f"{stands} was removed under its owner"
    watch.look(300.0)
    assert len(threads) == 2, "what is lost is lost"


def test_what_was_replaced_is_told_from_what_was_removed(tmp_path: Path) -> None:
    stands = tmp_path / "guard.sock"
    stands.symlink_to("nowhere")
    places = DoorPaths((stands,))
    assert places.lost() == ""
    other = tmp_path / "other"
    other.touch()
    other.replace(stands)
    assert places.lost() == f"{stands} was replaced under its owner"


# ---- the log of an offline_log


def test_a_log_has_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness, "ENTRIES_MAX", 3)
    path = tmp_path / "guard.jsonl"
    log = OfflineLog(path)
    for number in range(5):
        log.add("tripped", number=number)
    assert [each["number"] for each in log.entries] == [0, 1, 2], "the first ones hold the cause"
    log.flush()
    log.flush()
    assert len(path.read_text("utf-8").splitlines()) == 3, "each once"
    with path.open("a") as file:
        file.write("x" * 999 + "\n")
    assert len(OfflineLog(path).entries) == 3
    path.write_text("x" * 999 + '\n"word"\n', encoding="utf-8")
    assert OfflineLog(path).entries == [{"what": "unreadable", "line": "x" * 200}, {"what": "word"}]


def test_what_comes_after_a_log_was_taken_over_is_written_from_its_beginning(
    tmp_path: Path,
) -> None:
    path = tmp_path / "guard.jsonl"
    log = OfflineLog(path)
    log.clear()
    log.add("one")
    log.flush()
    log.clear()
    assert not path.exists()
    log.add("two")
    log.flush()
    assert [each["what"] for each in OfflineLog(path).entries] == ["two"]
    (entry,) = log.entries
    assert str(entry["at"]).endswith("Z")


# ---- files


@pytest.mark.parametrize(
    ("folder", "mask", "mode", "rights"),
    [
        (0o700, 0o022, 0o666, 0o644),
        (0o700, 0o000, 0o666, 0o666),
        (0o700, 0o022, 0o600, 0o600),
        (0o770, 0o077, 0o600, 0o660),
    ],
)
def test_a_file_of_ours_is_its_groups_where_the_folder_is(
    tmp_path: Path, folder: int, mask: int, mode: int, rights: int
) -> None:
    tmp_path.chmod(folder)
    kept = os.umask(mask)
    try:
        for name, more in (("stated", (mode,)), ("unstated", ())):
            os.close(open_own(tmp_path / name, os.O_WRONLY, *more))
    finally:
        os.umask(kept)
    assert stat.S_IMODE((tmp_path / "stated").stat().st_mode) == rights
    unstated = 0o660 if folder == 0o770 else 0o666 & ~mask
    assert stat.S_IMODE((tmp_path / "unstated").stat().st_mode) == unstated
    assert shared_by_group(tmp_path) is (folder == 0o770)


def test_no_descriptor_is_left_of_what_is_no_file(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(IsADirectoryError):
        open_named(tmp_path)
    with pytest.raises(OSError, match="a pipe or a device"):
        open_own(Path("/dev/null"), os.O_RDONLY)
    assert len(os.listdir("/proc/self/fd")) == before


# ---- systemd


@pytest.mark.parametrize(
    ("limit", "pid", "every_s"),
    [
        ("3000000", "", 1.5),
        ("3000000", "ours", 1.5),
        ("3000000", "1", float("inf")),
        ("0", "", float("inf")),
        ("", "", float("inf")),
        ("soon", "", float("inf")),
    ],
)
def test_the_watchdog_is_fed_twice_in_the_time_it_allows(
    monkeypatch: pytest.MonkeyPatch, limit: str, pid: str, every_s: float
) -> None:
    monkeypatch.setenv("WATCHDOG_USEC", limit)
    monkeypatch.setenv("WATCHDOG_PID", str(os.getpid()) if pid == "ours" else pid)
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    made = Notifier()
    assert made.every_s == every_s
    made.say("READY=1")


@pytest.mark.parametrize("abstract", [False, True])
def test_systemd_hears_at_a_path_or_at_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, abstract: bool
) -> None:
    monkeypatch.delenv("WATCHDOG_USEC", raising=False)
    address = f"@{tmp_path}@1" if abstract else str(tmp_path / "notify@1")
    monkeypatch.setenv("NOTIFY_SOCKET", address)
    made = Notifier()
    made.say("READY=1")  # nobody is there yet
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(address.replace("@", "\0", 1) if abstract else address)
        systemd.settimeout(BOUND_S)
        made.say("READY=1")
        assert systemd.recv(64) == b"READY=1"


# ---- the socket


def test_a_socket_hears_what_has_arrived_and_holds_up_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(messages, "READ_BYTES_MAX", 10)
    near, far = socket.socketpair()
    with near, far:
        lines = SocketLines(near)
        assert not near.getblocking()
        assert list(lines.hear()) == []
        far.send(line_of({"n": 1}) + line_of({"n": 2})[:-1])
        assert list(lines.hear()) == [{"n": 1}]
        far.send(b"\n")
        assert list(lines.hear()) == [{"n": 2}]
        far.send(line_of({"n": 3}) * 100)
        assert 17 <= len(list(lines.hear())) <= 23, "sixteen reads at a time"
        while list(lines.hear()):
            pass
        far.close()
        with pytest.raises(ConnectionResetError, match="the harness is gone"):
            list(lines.hear())


def test_what_is_said_to_who_does_not_read_is_kept_to_a_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(messages, "UNSENT_BYTES_MAX", 1000)
    near, far = socket.socketpair()
    with near, far:
        lines = SocketLines(near)
        while not lines.waits:
            lines.say({"n": 1})
        left = len(lines._unsent)
        lines._unsent += b"x" * (1000 - left)
        lines.flush()
        lines._unsent += b"x"
        with pytest.raises(BrokenPipeError, match="the harness does not read"):
            lines.flush()


# ---- two guards made one


def test_ports_here_and_there_are_one_guard() -> None:
    near: Any = Calls(core=Calls(ports={"heat"}))
    latch: Any = Calls()
    remote: Any = Calls(latch=latch, heartbeat_s=0.1)
    guard = SplitGuard(remote, near, {"stop": SAFE, "vent": (LAST,)})
    assert guard.heartbeat_s == 0.1
    assert guard.latch is near.latch is latch

    assert (guard.at("heat"), guard.at("gas")) == (near, remote)
    guard.repeat(SAFE)
    assert near.take() == [("repeat", [SAFE[0], SAFE[2]])]
    assert remote.take() == [("repeat", [SAFE[1]])]
    guard.repeat([LAST])
    assert near.take() == []
    guard.repeat([SAFE[0]])
    assert len(remote.take()) == 1
    near.take()
    guard.trip(LEAK)
    guard.new_epoch()
    guard.disarm()
    guard.heartbeat("stop")
    guard.close()
    assert remote.take() == [
        ("trip", LEAK),
        ("new_epoch",),
        ("disarm",),
        ("heartbeat", "stop"),
        ("close",),
    ]
    assert near.take() == [("trip", LEAK), ("new_epoch",), ("disarm",), ("close",)]


def test_what_either_guard_tells_is_told_by_both_as_one() -> None:
    core = Calls(ports={"heat"})
    near: Any = Calls(core=core)
    remote: Any = Calls(latch=Calls(), heartbeat_s=0.1)
    guard = SplitGuard(remote, near, {})
    told: list[tuple[object, ...]] = []
    guard.on_safe_frame = lambda frame, error: told.append((frame, error))
    guard.on_trip = lambda trip: told.append((trip,))
    guard.on_link_lost = lambda port, why: told.append((port, why))
    guard.on_offline_log = lambda log: bool(log)
    remote.on_safe_frame(LAST, "no")
    near.on_safe_frame(SAFE[0], "")
    remote.on_link_lost("gas", "unplugged")
    assert told == [(LAST, "no"), (SAFE[0], ""), ("gas", "unplugged")]
    assert (remote.on_offline_log([]), remote.on_offline_log([{}])) == (False, True)
    remote.on_trip(LEAK)
    assert told[-1] == (LEAK,)
    assert near.take() == [("new_epoch",)]
    assert core.__dict__["latched"] is True
