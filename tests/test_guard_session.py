"""A session at the guard process: a harness that does not read is parted with, and is lost."""

import selectors
import socket
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from guard_rig import Away, bench
from labharness.clock import steady_s
from labharness.guard import socket_lines
from labharness.guard.process import ProcessGuard
from labharness.guard.session import Session
from labharness.guard.socket_lines import SocketLines, line_of

UNSENT_BYTES_MAX = 200_000


class Parts:
    """A session with a stand-in for its guard, the harness's end, and why it was parted with."""

    def __init__(self) -> None:
        self.why: list[str] = []
        self.leaves: list[bool] = []
        guard: Any = SimpleNamespace(
            core=SimpleNamespace(epoch=0, armed=True, latched=False, procedures={}),
            latch=SimpleNamespace(trip=None, write_error=""),
            ports=SimpleNamespace(free=list, shut=dict),
            goodbye=self._goodbye,
        )
        near, self.far = socket.socketpair()
        self.selector = selectors.DefaultSelector()
        self.session = Session(guard, near, self.selector, bytes(32), self._part)

    def _goodbye(self, *, retire: bool) -> None:
        self.leaves.append(retire)
        self.session.close()

    def _part(self, why: str) -> None:
        self.why.append(why)
        self.session.close()

    def say(self) -> None:
        self.session.say({"say": "safe", "frame": ["stop", 1], "error": "no reply within 0.3 s"})


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> Iterator[Parts]:
    monkeypatch.setattr(socket_lines, "UNSENT_BYTES_MAX", UNSENT_BYTES_MAX)
    made = Parts()
    yield made
    made.session.close()
    made.far.close()
    made.selector.close()


def test_a_harness_that_reads_nothing_for_too_long_is_parted_with(parts: Parts) -> None:
    for _ in range(10_000):
        parts.say()
    assert parts.why == [], "not in the midst of what it is told of"
    parts.session.settle()
    assert len(parts.why) == 1
    assert "does not read" in parts.why[0]


def test_what_a_deaf_harness_is_told_is_not_kept_without_end(parts: Parts) -> None:
    for _ in range(10_000):
        parts.say()
    assert len(parts.session._lines._unsent) < 2 * UNSENT_BYTES_MAX


def test_a_harness_that_reads_is_not_parted_with(parts: Parts) -> None:
    for _ in range(100):
        parts.say()
    parts.session.settle()
    assert parts.why == []


def test_a_leave_that_was_said_before_a_socket_closed_is_heard(parts: Parts) -> None:
    parts.far.sendall(line_of({"do": "bye", "retire": False}))
    parts.far.close()
    parts.say()
    parts.session.settle()
    assert (parts.why, parts.leaves) == ([], [False]), "it took its leave: it is not lost"


def test_a_deaf_harness_that_has_armed_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket_lines, "UNSENT_BYTES_MAX", UNSENT_BYTES_MAX)
    monkeypatch.setattr(Away, "fileno", lambda road: 0)  # a line is armed over open roads alone
    with bench(tmp_path) as rig, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "door"))
        listener.listen()
        guard = ProcessGuard(
            armed=rig.armed,
            digest="",
            roads=dict.fromkeys(rig.devices.of, Away()),
            state_dir=rig.state_dir,
            listener=listener,
            steady_s=steady_s,
            entropy=bytes,
            once=True,
        )
        with socket.socket(socket.AF_UNIX) as harness:
            harness.connect(str(tmp_path / "door"))
            guard._greet()
            guard.arm("stop")
            for _ in range(10_000):
                guard._freed()
            guard.beat(steady_s(), "stop")
            guard._keep_time()
        assert guard.latch.trip is not None
        assert "does not read" in guard.latch.trip.detail
        guard.ports.close()
        guard._selector.close()


def test_what_a_slow_harness_is_told_arrives_whole_and_in_order() -> None:
    near, far = socket.socketpair()
    lines = SocketLines(near)
    sent = b"".join(line_of({"number": number}) for number in range(50_000))
    for number in range(50_000):
        lines.say({"number": number})
    heard = b""
    while len(heard) < len(sent):
        heard += far.recv(1 << 16)
        lines.flush()
    assert heard == sent
    assert not lines.waits
    near.close()
    far.close()
