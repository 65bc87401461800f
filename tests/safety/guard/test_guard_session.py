"""A session at the guard process: a harness that does not read is parted with, and is lost."""

import json
import selectors
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from guard_rig import Away, bench
from guard_stubs import LAST, ON, READ, SHUT
from guard_turns import Harness, Turn, last, reason
from labharness.core.clock import steady_s
from labharness.safety.guard import messages
from labharness.safety.guard.harness import HarnessSession
from labharness.safety.guard.messages import SocketLines, line_of
from labharness.safety.guard.process import ProcessGuard

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
        self.session = HarnessSession(guard, near, self.selector, bytes(32), self._part)

    def _goodbye(self, *, retire: bool) -> None:
        self.leaves.append(retire)
        self.session.close()

    def _part(self, why: str) -> None:
        self.why.append(why)
        self.session.close()

    def say(self) -> None:
        self.session.say("safe", frame=["stop", 1], error="no reply within 0.3 s")


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> Iterator[Parts]:
    monkeypatch.setattr(messages, "UNSENT_BYTES_MAX", UNSENT_BYTES_MAX)
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
    monkeypatch.setattr(messages, "UNSENT_BYTES_MAX", UNSENT_BYTES_MAX)
    monkeypatch.setattr(Away, "fileno", lambda link: 0)  # a line is armed over open links alone
    with bench(tmp_path) as rig, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "door"))
        listener.listen()
        guard = ProcessGuard(
            armed=rig.armed,
            digest="",
            links=dict.fromkeys(rig.devices.of, Away()),
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
                guard._tell("free")
            guard.heartbeat(steady_s(), "stop")
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


# ---- what a harness may ask


SEND = {"do": "send", "port": "heat", "number": 7, "permit": None, "frame": READ.frame.hex()}
ASKS: list[dict[str, Any]] = [
    SEND,
    {"do": "trip", "trip": reason()},
    {"do": "repeat", "frames": [["stop", 1]]},
    {"do": "epoch"},
    {"do": "arm", "lost": "stop"},
    {"do": "disarm"},
    {"do": "heartbeat", "made_s": 1000.0, "lost": "stop"},
    {"do": "reset"},
    {"do": "imported"},
]
MOVES = ("trip", "epoch", "arm", "disarm", "reset")


@pytest.mark.parametrize("asks", ASKS, ids=[each["do"] for each in ASKS])
def test_a_message_is_taken_whole_and_as_it_is_meant_or_the_harness_is_lost(
    turn: Turn, asks: dict[str, Any]
) -> None:
    harness = turn.comes()
    harness.say(**asks)
    assert turn.guard._session is not None
    counts = turn.guard._session.heard, turn.guard._session._moves
    assert counts == (1, asks["do"] in MOVES)
    harness.say(**asks, more=1)
    assert turn.guard._session is None, "it says more than anybody asked for"
    for key in asks:
        harness = turn.comes()
        harness.say(**{name: value for name, value in asks.items() if name != key})
        assert turn.guard._session is None, f"it says no {key}"


@pytest.mark.parametrize(
    "wrong",
    [
        {"do": "unheard of"},
        {**SEND, "port": "elsewhere"},
        {**SEND, "number": -1},
        {**SEND, "permit": {}},
        {"do": "trip", "trip": reason("unheard of")},
        {"do": "arm", "lost": "unheard of"},
        {"do": "heartbeat", "made_s": 1000.0, "lost": "unheard of"},
        {"do": "heartbeat", "made_s": "soon", "lost": "stop"},
        {"do": "repeat", "frames": [["stop", 3]]},
        {"do": "repeat", "frames": [["stop", -1]]},
        {"do": "repeat", "frames": [["stop", 1.0]]},
        {"do": "repeat", "frames": [["stop", True]]},
        {"do": "repeat", "frames": [["stop", 1, 1]]},
        {"do": "repeat", "frames": [["stop"]]},
        {"do": "repeat", "frames": ["stop"]},
        {"do": "repeat", "frames": [["unheard of", 0]]},
    ],
    ids=str,
)
def test_what_cannot_be_is_the_end_of_a_harness(turn: Turn, wrong: dict[str, Any]) -> None:
    turn.comes().say(**wrong)
    assert turn.guard._session is None
    assert turn.wrote() == {"heat": [], "gas": []}


def test_what_follows_a_leave_is_not_taken(turn: Turn) -> None:
    harness = turn.comes()
    harness.socket.sendall(line_of({"do": "bye", "retire": False}) + line_of(SEND))
    turn.pass_()
    assert turn.wrote()["heat"] == []


def test_a_read_needs_no_permit_and_its_end_has_its_number(turn: Turn) -> None:
    harness = turn.comes()
    harness.ask(READ)
    assert turn.wrote()["heat"] == [READ.frame]
    turn.links["heat"].says(b"ok read\r")
    end = last(harness.hears(), "ended")
    told = {key: end[key] for key in ("port", "number", "reply", "error", "free", "heard")}
    assert told == {
        "port": "heat",
        "number": 7,
        "reply": b"ok read\r".hex(),
        "error": "",
        "free": ["heat", "gas"],
        "heard": 1,
    }


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"frame": ON.frame.hex()}, "is not a read of port heat and carries no permit"),
        ({"frame": (ON.frame * 9).hex()}, ON.frame[:4].hex(" ")),
    ],
)
def test_what_is_no_read_is_refused_with_its_bytes(
    turn: Turn, change: dict[str, Any], says: str
) -> None:
    harness = turn.comes()
    end = last(harness.ask(READ, **change), "ended")
    assert end["reply"] is None
    assert end["error"].startswith("refused by the guard: ")
    assert says in end["error"]
    assert len(end["error"]) < 250, "and not with all of them"
    assert turn.wrote()["heat"] == []


def test_a_frame_with_a_permit_leaves_once(harness: Harness, turn: Turn) -> None:
    message = harness.permitted(ON)
    harness.say(**message)
    assert turn.wrote()["heat"] == [ON.frame]
    turn.links["heat"].says(b"ok heat on\r")
    assert last(harness.hears(), "ended")["error"] == ""
    end = last(harness.say(**message), "ended")
    assert end["error"] == "refused by the guard: permit 1 was seen before"


def refusal(harness: Harness, message: dict[str, Any]) -> str:
    error = str(last(harness.say(**message), "ended")["error"])
    return error.removeprefix("refused by the guard: ")


def test_a_permit_is_held_to_its_seal_its_epoch_its_life_and_its_port(turn: Turn) -> None:
    harness = turn.comes()
    assert "the line is not armed" in refusal(harness, harness.permitted(ON))
    harness.arm()
    message = harness.permitted(ON)
    message["permit"]["seal"] = bytes(32).hex()
    assert refusal(harness, message) == "the seal of permit 2 does not fit"
    message = harness.permitted(ON)
    message["permit"]["epoch"] += 1
    assert refusal(harness, message) == "the seal of permit 3 does not fit"
    assert "is of epoch 0" in refusal(harness, harness.permitted(ON, epoch=0))
    old = harness.permitted(ON, expires_s=turn.now - 0.001)
    assert "has expired" in refusal(harness, old)
    eternal = harness.permitted(ON, expires_s=turn.now + 2.1)
    assert "is to live longer than 2 s" in refusal(harness, eternal)
    assert turn.wrote() == {"heat": [], "gas": []}


@pytest.mark.parametrize(("settle_s", "error"), [(0.1, ""), (0.2, "an exchange of 0.6 s, port h")])
def test_an_exchange_is_no_longer_than_its_port_allows(
    harness: Harness, turn: Turn, settle_s: float, error: str
) -> None:
    long = replace(ON, timeout_s=0.4, settle_s=settle_s)
    heard = harness.say(**harness.permitted(long))
    assert turn.wrote()["heat"] == ([] if error else [ON.frame])
    assert [each["error"] for each in heard if each["say"] == "ended"] == [
        f"refused by the guard: {error}eat allows 0.5 s"
    ] * bool(error)


def test_frames_of_a_procedure_are_sent_as_they_are_named(turn: Turn) -> None:
    harness = turn.comes()
    harness.say(do="repeat", frames=[["stop", 0], ["vent", 0]])
    assert turn.wrote() == {"heat": [SHUT[0].frame], "gas": [SHUT[3].frame]}
    harness.say(do="epoch")
    assert turn.guard.core.epoch == 1


def test_arming_that_fails_moves_the_epoch_as_arming_does(turn: Turn) -> None:
    harness = turn.comes()
    harness.say(do="trip", trip=reason())
    told = last(harness.say(do="arm", lost="stop"), "armed")
    assert told["error"] == "the line is latched: it takes a reset by a named person"
    assert (told["epoch"], told["moves"]) == (2, 2)


def test_a_trip_moves_the_epoch_and_is_answered_with_how_things_stand(turn: Turn) -> None:
    harness = turn.comes()
    harness.hears()
    told = harness.say(do="trip", trip=reason())[0]
    assert (told["say"], told["epoch"], told["moves"], told["latched"]) == ("status", 1, 1, True)


def test_what_a_harness_does_not_read_is_sent_when_it_does(turn: Turn) -> None:
    harness = turn.comes()
    for number in range(4000):
        turn.guard._tell("ended", port="heat", number=number, reply=b"x" * 100, error="")
    assert turn.guard._session is not None
    assert turn.guard._session._lines.waits
    numbers: list[int] = []
    while len(numbers) < 4000:
        heard = harness.hears()
        assert heard
        numbers += [each["number"] for each in heard if each["say"] == "ended"]
    assert numbers == list(range(4000))
    turn.pass_()
    key = turn.guard._selector.get_key(turn.guard._session._lines.socket)
    assert key.events == selectors.EVENT_READ, "a socket that takes more would wake it for ever"


@pytest.mark.promise(14)
def test_of_a_frame_that_is_in_no_table_a_harness_is_told_that_its_port_is_free_again(
    parts: Parts,
) -> None:
    parts.session.safe(LAST, "")  # such as a reading of the guard's own
    parts.far.settimeout(1.0)
    said = json.loads(parts.far.recv(4096))
    assert (said["say"], said["free"]) == ("free", [])


def test_a_session_that_is_over_says_and_hears_nothing(parts: Parts) -> None:
    parts.session.close()
    parts.session.close()
    parts.say()
    parts.session.hear()
    parts.session.settle()
    assert parts.why == []
    assert parts.far.recv(1) == b""


def test_a_harness_that_takes_nothing_when_its_socket_wakes_is_parted_with(parts: Parts) -> None:
    while not parts.session._lines.waits:
        parts.say()
    parts.session._lines._unsent += b"x" * 2 * UNSENT_BYTES_MAX
    parts.session.hear()
    assert parts.why == []
    parts.session.settle()
    assert "does not read" in parts.why[0]
