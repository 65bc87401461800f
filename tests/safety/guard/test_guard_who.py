"""Who comes to a guard process, what it is told, when it is let go, and when a guard ends."""

import json
import signal
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from guard_stubs import KEY, ON, READ, SHUT
from guard_turns import START_S, Harness, Turn, guarding, last
from labharness.core.vocabulary import Cause, Trip
from labharness.safety.guard import process
from labharness.safety.guard.messages import write_trip

LEAK = Trip(Cause.GAS_LEAK, "vent", "h2.concentration", 1200.0, 1.0, "leak")
BUSY = {"say": "busy"}


# ---- coming


def test_who_comes_is_told_how_things_stand_and_gets_a_key(turn: Turn) -> None:
    (welcome,) = turn.comes().hears()
    assert welcome == {
        "say": "welcome",
        "digest": "sha256:armed",
        "key": KEY.hex(),
        "permits": 0,
        "trip": None,
        "log": [],
        "epoch": 0,
        "moves": 0,
        "armed": False,
        "latched": False,
        "write_error": "",
        "free": ["heat", "gas"],
        "shut": {},
        "heard": 0,
    }


def test_who_comes_to_a_latched_line_is_told_of_its_trip(tmp_path: Path) -> None:
    (tmp_path / "latch.json").write_text(json.dumps(write_trip(LEAK)), encoding="utf-8")
    with guarding(tmp_path) as turn:
        welcome = turn.comes().hears()[0]
        assert (welcome["trip"], welcome["latched"]) == (write_trip(LEAK), True)
        assert [each["what"] for each in welcome["log"]] == ["began with the safe table"]
        assert welcome["free"] == ["heat"], "the other is at its procedure"


def test_one_is_let_in_at_a_time_and_the_next_when_it_has_gone(turn: Turn) -> None:
    first = turn.comes()
    assert turn.comes().hears() == [BUSY, {"say": "hung up"}]
    first.socket.close()
    assert turn.comes().hears()[0]["say"] == "welcome", "it had gone in that very turn"


def test_nobody_is_let_in_where_nobody_comes(turn: Turn) -> None:
    turn.guard._greet()
    assert turn.guard._session is None


def test_closed_links_are_opened_for_who_comes(tmp_path: Path) -> None:
    with guarding(tmp_path, closed=("gas",)) as turn:
        turn.pass_(5.0)
        assert turn.links["gas"].within_s == []
        harness = turn.comes()
        assert turn.links["gas"].within_s == [1.0]
        welcome = harness.hears()[0]
        assert (welcome["free"], welcome["shut"]) == (["heat"], {})
        assert harness.hears() == []
        harness.arm()


# ---- going


@pytest.mark.parametrize("retire", [False, True])
def test_who_leaves_a_line_that_is_not_armed_may_go(turn: Turn, *, retire: bool) -> None:
    harness = turn.comes()
    assert harness.say(do="bye", retire=retire)[-1] == {"say": "hung up"}
    assert turn.guard._session is None
    assert turn.guard.latch.trip is None
    assert turn.guard._leaving_s == (turn.now + 5.0 if retire else float("inf"))


@pytest.mark.parametrize("retire", [False, True])
def test_who_leaves_a_line_armed_is_lost_and_the_guard_stays(turn: Turn, *, retire: bool) -> None:
    harness = turn.comes()
    harness.arm()
    harness.say(do="imported")
    harness.say(do="bye", retire=retire)
    assert turn.guard.latch.trip is not None
    assert turn.guard.latch.trip.detail == "the harness left while the line was armed"
    assert turn.logged()[-1] == "tripped by itself"
    assert turn.guard._leaving_s == float("inf")


@pytest.mark.parametrize("kept", [False, True])
def test_what_was_logged_goes_with_who_has_a_journal(turn: Turn, *, kept: bool) -> None:
    harness = turn.comes()
    if kept:
        turn.guard.log.add("an old one")
        harness.say(do="imported")
        assert turn.logged() == []
    turn.guard.log.add("while it was there")
    turn.pass_()
    assert (turn.folder / "guard.jsonl").exists()
    harness.say(do="bye", retire=False)
    assert turn.logged() == [] if kept else ["while it was there"]
    assert (turn.folder / "guard.jsonl").exists() is not kept


def test_the_end_of_a_socket_ends_an_armed_line(harness: Harness, turn: Turn) -> None:
    harness.socket.close()
    turn.pass_()
    assert turn.guard.latch.trip is not None
    assert turn.guard.latch.trip.detail.startswith("the socket of the harness closed (")
    assert turn.guard._session is None


def test_nobody_waits_for_the_exchange_of_a_harness_that_has_gone(turn: Turn) -> None:
    turn.comes().ask(READ)
    turn.guard._drop()
    later = turn.comes()
    turn.links["heat"].says(b"ok read\r")
    assert [each["say"] for each in later.hears()] == ["welcome"]


# ---- a guard that ends


def is_over(turn: Turn, seconds: float = 0.0) -> bool:
    turn.now = round(turn.now + seconds, 6)
    return turn.guard._is_over()


def test_a_guard_that_is_kept_does_not_end_by_itself(turn: Turn) -> None:
    turn.comes().say(do="bye", retire=False)
    assert not is_over(turn, 1e6)


def test_a_guard_for_one_run_waits_thirty_seconds_for_it_and_ends_with_it(tmp_path: Path) -> None:
    with guarding(tmp_path, once=True) as turn:
        assert not is_over(turn, 30.0)
        harness = turn.comes()
        assert not is_over(turn, 100.0), "somebody is there"
        harness.socket.close()
        turn.pass_()
        assert not is_over(turn, 30.0), "it has said nothing: another may be meant"
        assert is_over(turn, 0.001)
        harness = turn.comes()
        harness.say(do="epoch")
        assert not is_over(turn)
        harness.socket.close()
        turn.pass_()
        assert is_over(turn)
        turn.comes().say(do="bye", retire=False)
        assert is_over(turn), "who came after it says nothing about that"


def test_a_guard_ends_with_nothing_on_the_wire_and_nothing_owed(tmp_path: Path) -> None:
    with guarding(tmp_path, once=True) as turn:
        harness = turn.comes()
        harness.ask(READ)
        harness.socket.close()
        turn.pass_()
        assert not is_over(turn), "a read is on the wire"
        turn.links["heat"].says(b"ok read\r")
        turn.pass_()
        assert is_over(turn)
        harness = turn.comes()
        harness.arm()
        harness.socket.close()
        turn.pass_()
        turn.pass_(0.3)
        turn.pass_(0.3)
        assert not turn.guard.ports.busy
        assert not is_over(turn), "nobody has obeyed"
        turn.pass_(0.4)
        turn.answer()
        assert is_over(turn)


def test_a_guard_that_is_to_go_waits_five_seconds_for_its_wire(turn: Turn) -> None:
    harness = turn.comes()
    harness.ask(READ)
    harness.say(do="bye", retire=True)
    assert not is_over(turn, 4.999), "a reply is waited for"
    assert is_over(turn, 0.001)
    turn.now = START_S
    turn.links["heat"].says(b"ok read\r")
    turn.pass_()
    assert is_over(turn)


def test_a_signal_makes_an_armed_line_safe_and_lets_the_guard_go(
    turn: Turn, monkeypatch: pytest.MonkeyPatch
) -> None:
    handlers: dict[int, Any] = {}
    woken: list[int] = []
    stub = SimpleNamespace(
        signal=handlers.__setitem__,
        set_wakeup_fd=lambda fd, warn_on_full_buffer=True: woken.extend([fd, warn_on_full_buffer]),
        SIG_IGN=signal.SIG_IGN,
        **{each.name: each for each in signal.Signals},
    )
    monkeypatch.setattr(process, "signal", stub)
    near, far = turn.guard._heed_signals()
    assert woken == [far.fileno(), False]
    assert {n for n, each in handlers.items() if each is signal.SIG_IGN} == {
        signal.SIGTSTP,
        signal.SIGTTIN,
        signal.SIGTTOU,
    }
    heeded = {n for n, each in handlers.items() if each is not signal.SIG_IGN}
    assert heeded == {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT}
    assert handlers[signal.SIGTERM](15, None) is None
    assert not near.getblocking()
    assert not far.getblocking()
    harness = turn.comes()
    harness.arm()
    far.send(b"\x0f")
    heard = harness.hears()
    assert last(heard, "tripped")["trip"]["detail"] == (
        "the guard was told to stop while the line was armed"
    )
    assert turn.guard._leaving_s == turn.now + 5.0
    turn.answer()
    turn.now += 1.0
    far.send(b"\x0f")
    turn.pass_()
    assert turn.logged().count("tripped by itself") == 1, "it is armed no more"
    for each in (near, far):
        each.close()


# ---- a door that is lost


def test_a_guard_whose_door_is_lost_makes_safe_once_and_ends_when_its_work_is_done(
    harness: Harness, turn: Turn, capsys: pytest.CaptureFixture[str]
) -> None:
    turn.pass_()
    turn.guard._door.lost = "state/guard.sock was removed under its owner"
    turn.pass_()
    assert turn.guard.latch.trip is not None
    assert "was removed" in turn.guard.latch.trip.detail
    assert turn.logged()[-2:] == ["tripped by itself", "door lost"]
    assert capsys.readouterr().err == (
        "labharness guard: state/guard.sock was removed under its owner; "
        "it ends when its work is done\n"
    )
    turn.pass_()
    assert turn.logged().count("door lost") == 1
    assert not is_over(turn)
    turn.answer()
    assert not is_over(turn), "the harness is still there"
    harness.say(do="bye", retire=False)
    assert is_over(turn)


def test_a_door_that_is_lost_under_a_line_that_is_not_armed_trips_nothing(turn: Turn) -> None:
    turn.guard._door.lost = "state was replaced under its owner"
    turn.pass_()
    assert turn.guard.latch.trip is None
    assert turn.logged() == ["door lost"]
    assert is_over(turn)


def test_the_door_is_looked_at_each_second(tmp_path: Path) -> None:
    (tmp_path / "guard.sock").touch()
    with guarding(tmp_path) as turn:
        turn.pass_()
        (tmp_path / "guard.sock").unlink()
        turn.pass_(0.999)
        assert turn.logged() == []
        turn.pass_(0.001)
        assert turn.logged() == ["door lost"]


# ---- sleep


def nap_s(turn: Turn) -> float:
    return round(turn.guard._nap_s(), 6)


def test_a_guard_sleeps_until_the_next_thing_is_due_and_a_second_at_most(tmp_path: Path) -> None:
    with guarding(tmp_path, closed=("gas",)) as turn:
        turn.pass_()
        assert nap_s(turn) == 1.0
        turn.links["gas"].refuses = "unplugged"
        harness = turn.comes()
        turn.pass_()
        assert nap_s(turn) == 1.0
        turn.guard.ports.want_closed()
        assert nap_s(turn) == 0.02, "a link is being opened"
        turn.links["gas"].refuses = ""
        turn.pass_(1.0)
        turn.pass_()
        assert nap_s(turn) == 1.0
        harness.ask(READ)
        assert nap_s(turn) == 0.3, "a reply"
        turn.links["heat"].says(b"ok read\r")
        turn.pass_()
        harness.arm()
        assert nap_s(turn) == 0.5, "a heartbeat"
        turn.now += 0.6
        assert nap_s(turn) == 0.0, "and nothing is waited for that is overdue"
        turn.pass_()
        turn.answer()
        turn.guard._repeat_s = turn.now + 0.7
        assert nap_s(turn) == 0.7, "another try"
        turn.guard._leaving_s = turn.now + 0.6
        assert nap_s(turn) == 0.6
        turn.guard._notify_s = turn.now + 0.4
        assert nap_s(turn) == 0.4


def test_systemd_is_told_as_often_as_it_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        systemd.setblocking(False)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        monkeypatch.setenv("WATCHDOG_USEC", "3000000")
        with guarding(tmp_path) as turn:
            told = []
            for _ in range(40):
                turn.pass_(0.1)
                try:
                    assert systemd.recv(64) == b"WATCHDOG=1"
                except BlockingIOError:
                    continue
                told.append(round(turn.now - START_S, 1))
            assert told == [0.1, 1.6, 3.1]


# ---- what happens on a link


def test_a_link_that_is_lost_voids_every_permit_and_is_told_of(turn: Turn) -> None:
    harness = turn.comes()
    harness.arm()
    message = harness.permitted(ON)
    turn.links["gas"].lost = "unplugged"
    turn.links["gas"].says(b"?")
    heard = harness.hears()
    told = last(heard, "lost")
    assert (told["port"], told["why"], told["shut"]) == ("gas", "unplugged", {"gas": "unplugged"})
    (entry,) = turn.guard.log.entries
    assert (entry["what"], entry["port"], entry["why"]) == ("link lost", "gas", "unplugged")
    end = last(harness.say(**message), "ended")
    assert end["error"] == "refused by the guard: permit 1 is of epoch 1"
    assert turn.wrote()["heat"] == []


def test_a_procedure_is_told_of_frame_by_frame(turn: Turn) -> None:
    harness = turn.comes()
    harness.say(do="repeat", frames=[["stop", 0], ["vent", 0]])
    assert turn.wrote() == {"heat": [SHUT[0].frame], "gas": [SHUT[3].frame]}
    turn.links["heat"].says(b"ok shut0\r")
    told = last(harness.hears(), "safe")
    assert (told["frame"], told["error"], told["free"]) == (["stop", 0], "", ["heat"])
    turn.links["gas"].says(b"what?\r")
    told = last(harness.hears(), "safe")
    assert told["frame"] == ["vent", 0]
    assert b"what?\r".hex(" ") in told["error"]


def test_a_port_that_is_free_again_is_told_of(turn: Turn) -> None:
    harness = turn.comes()
    harness.ask(READ)
    turn.pass_(0.3)
    assert last(harness.hears(), "ended")["free"] == ["gas"], "it is quiet first"
    turn.pass_(0.3)
    assert last(harness.hears(), "free")["free"] == ["heat", "gas"]
