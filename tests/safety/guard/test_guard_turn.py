"""A guard process turn by turn: what it sends, writes down and tells, and when."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from guard_stubs import ARMED, SAFE, SHUT
from guard_turns import START_S, Harness, Turn, guarding, last, reason
from labharness.core.vocabulary import Cause, Trip
from labharness.safety.guard import process
from labharness.safety.guard.messages import write_trip

LEAK = Trip(Cause.GAS_LEAK, "vent", "h2.concentration", 1200.0, 1.0, "leak")
STOP = {
    port: [each.request.frame for each in SAFE if each.port == port] for port in ("heat", "gas")
}
FIRST = {port: frames[:1] for port, frames in STOP.items()}
NOTHING: dict[str, list[bytes]] = {"heat": [], "gas": []}


# ---- a beginning


def test_where_nothing_is_owed_a_guard_begins_with_nothing(turn: Turn) -> None:
    turn.pass_()
    assert (turn.wrote(), turn.logged(), turn.guard.core.latched) == (NOTHING, [], False)


@pytest.mark.parametrize(("procedure", "runs"), [("vent", "vent"), ("of another lab", "stop")])
def test_a_guard_begins_with_the_procedure_that_its_latch_names_or_with_the_safe_table(
    tmp_path: Path, procedure: str, runs: str
) -> None:
    trip = replace(LEAK, procedure=procedure)
    (tmp_path / "latch.json").write_text(json.dumps(write_trip(trip)), encoding="utf-8")
    with guarding(tmp_path) as turn:
        assert turn.wrote() == (FIRST if runs == "stop" else {"heat": [], "gas": [SHUT[3].frame]})
        assert turn.guard.core.latched
        (entry,) = turn.guard.log.entries
        assert {key: entry[key] for key in ("what", "procedure", "why")} == {
            "what": "began with the safe table",
            "procedure": runs,
            "why": "leak",
        }
        turn.pass_(1.0)
        assert turn.wrote() != NOTHING, "nobody else sees to it"


# ---- a harness that falls silent


def test_a_harness_that_is_silent_for_too_long_is_lost(harness: Harness, turn: Turn) -> None:
    turn.pass_(0.5)
    assert turn.wrote() == NOTHING
    turn.pass_(0.001)
    assert turn.wrote() == FIRST
    assert not turn.guard.core.armed
    assert turn.guard.latch.trip == Trip(
        Cause.COMMUNICATION,
        "stop",
        "harness",
        None,
        START_S + 0.501,
        "the harness was silent for 0.501 s",
    )
    told = [each for each in harness.hears() if each["say"] == "tripped"]
    assert [each["trip"]["detail"] for each in told] == ["the harness was silent for 0.501 s"]
    (entry,) = [each for each in turn.guard.log.entries if each["what"] == "tripped by itself"]
    assert (entry["procedure"], entry["why"]) == ("stop", "the harness was silent for 0.501 s")
    turn.pass_(0.6)
    assert turn.logged().count("tripped by itself") == 1, "nobody is watched any more"


def test_a_heartbeat_names_what_silence_runs_and_keeps_it_away(turn: Turn) -> None:
    harness = turn.comes()
    harness.arm()
    turn.pass_(0.4)
    harness.say(do="heartbeat", made_s=turn.now, lost="vent")
    turn.pass_(0.5)
    assert turn.wrote() == NOTHING
    turn.pass_(0.01)
    assert turn.wrote() == {"heat": [], "gas": [SHUT[3].frame]}


def test_a_heartbeat_after_both_stood_still_is_no_sign_of_life(turn: Turn) -> None:
    harness = turn.comes()
    harness.arm()
    turn.now += 0.75
    harness.say(do="heartbeat", made_s=turn.now, lost="vent")
    assert turn.wrote() == FIRST
    assert turn.guard.latch.trip is not None
    assert turn.guard.latch.trip.detail == "the harness was silent for 0.750 s"


def test_what_ran_last_runs_again_when_a_harness_is_lost_on_a_latched_line(turn: Turn) -> None:
    harness = turn.comes()
    harness.arm()
    harness.say(do="trip", trip=reason("vent"))
    turn.wrote()
    turn.answer()
    turn.pass_(0.6)
    assert turn.wrote() == {"heat": [], "gas": [SHUT[3].frame]}
    assert turn.guard.latch.trip is not None
    assert turn.guard.latch.trip.detail == "leak", "the first cause is the one to clear"


# ---- sending again


def test_what_was_not_answered_is_sent_again_each_second(harness: Harness, turn: Turn) -> None:
    harness.socket.close()
    turn.pass_()
    assert turn.wrote() == FIRST
    turn.answer("gas")
    for _ in range(2):
        turn.pass_(0.3)
    assert turn.wrote() == {"heat": STOP["heat"][1:], "gas": []}
    turn.pass_(0.39)
    assert turn.wrote() == NOTHING
    turn.pass_(0.01)
    assert turn.wrote() == {"heat": STOP["heat"][:1], "gas": []}
    turn.answer("heat")
    assert turn.wrote()["heat"] == STOP["heat"][1:]
    turn.pass_(5.0)
    assert turn.wrote() == NOTHING, "all was answered"


def test_a_harness_that_makes_safe_puts_the_guards_own_tries_off(turn: Turn) -> None:
    harness = turn.comes()
    harness.arm()
    harness.say(do="trip", trip=reason("stop"))
    assert turn.wrote() == FIRST
    for _ in range(28):
        turn.pass_(0.5)
        harness.say(do="heartbeat", made_s=turn.now, lost="stop")
    turn.wrote()
    harness.say(do="repeat", frames=[["stop", 0]])
    assert turn.wrote()["heat"] == STOP["heat"][:1]
    for _ in range(29):
        turn.pass_(0.5)
        harness.say(do="heartbeat", made_s=turn.now, lost="stop")
    assert turn.wrote() == NOTHING
    turn.pass_(0.5)
    assert turn.wrote()["heat"] == STOP["heat"][:1]


def test_who_takes_its_leave_of_a_latched_line_leaves_what_is_open_to_the_guard(
    harness: Harness, turn: Turn
) -> None:
    harness.say(do="trip", trip=reason("stop"))
    harness.say(do="disarm")
    harness.say(do="bye", retire=False)
    turn.wrote()
    turn.pass_(0.3)
    turn.pass_(0.3)
    turn.wrote()
    turn.pass_(0.4)
    assert turn.wrote()["heat"] == STOP["heat"][:1]


def test_how_a_frame_ended_is_logged_when_it_ends_otherwise_than_before(turn: Turn) -> None:
    harness = turn.comes()
    harness.arm()
    harness.socket.close()
    turn.pass_()
    turn.answer("gas")
    for _ in range(40):
        turn.pass_(0.1)
    ends = [each for each in turn.guard.log.entries if each["what"] == "safe frame"]
    assert [(each["channel"], each["value"], each["error"]) for each in ends] == [
        ("hydrogen.setpoint", 0.0, ""),
        ("furnace.setpoint", 0.0, "no reply within 0.3 s"),
        ("box.contactor", 0.0, "no reply within 0.3 s"),
    ]
    turn.answer("heat")
    while turn.guard._owes():
        turn.pass_(0.1)
        turn.answer("heat")
    assert [each["error"] for each in turn.guard.log.entries[-2:]] == ["", ""]


def test_a_guard_for_one_run_tries_so_often_and_one_that_is_kept_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "REPEATS_MAX", 3)
    for once, tries in ((True, 3), (False, 8)):
        folder = tmp_path / str(once)
        folder.mkdir()
        with guarding(folder, once=once) as turn:
            harness = turn.comes()
            harness.arm()
            harness.socket.close()
            turn.pass_()
            for _ in range(82):
                assert once or not turn.guard._is_over()
                turn.pass_(0.1)
            assert turn.wrote()["gas"].count(SHUT[1].frame) == 1 + tries
            assert turn.guard._is_over() is once


def test_who_makes_safe_gives_the_guard_all_its_tries_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "REPEATS_MAX", 2)
    with guarding(tmp_path, once=True) as turn:
        for _ in range(2):
            harness = turn.comes()
            harness.say(do="trip", trip=reason("vent"))
            assert turn.guard._repeats == 0
            for _ in range(155):
                turn.pass_(0.1)
            assert turn.wrote()["gas"] == [SHUT[3].frame] * 2
            harness.socket.close()
            for _ in range(35):
                turn.pass_(0.1)
            assert turn.wrote()["gas"] == [SHUT[3].frame] * 2
            assert turn.guard._is_over()


# ---- arming


def test_an_armed_line_is_marked_watched_and_takes_permits(turn: Turn) -> None:
    harness = turn.comes()
    harness.say(do="arm", lost="vent")
    assert (turn.folder / "guard.armed").read_text("utf-8") == "vent\n"
    assert turn.guard.core.armed
    turn.pass_(0.6)
    assert turn.wrote() == {"heat": [], "gas": [SHUT[3].frame]}


def test_a_line_is_not_armed_while_a_link_is_closed(tmp_path: Path) -> None:
    with guarding(tmp_path, closed=("gas",)) as turn:
        turn.links["gas"].refuses = "unplugged"
        harness = turn.comes()
        heard = harness.say(do="arm", lost="stop")
        told = last(heard, "armed")
        assert (told["error"], told["shut"]) == ("not all ports are open: gas", {"gas": ""})
        assert heard[-1]["shut"] == {"gas": "unplugged"}
        assert not turn.guard.core.armed
        assert not (tmp_path / "guard.armed").exists()
        assert turn.links["gas"].within_s == [1.0]


def test_a_line_is_not_armed_where_its_latch_could_not_be_written(turn: Turn) -> None:
    (turn.folder / "latch.new").mkdir()
    heard = turn.comes().say(do="arm", lost="stop")
    assert (heard[-1]["error"], heard[-1]["armed"]) == ("Is a directory", False)
    assert heard[-1]["epoch"] == 1, "what was permitted before is void all the same"


def test_a_guard_that_is_leaving_is_not_armed_and_lets_nobody_in(turn: Turn) -> None:
    harness = turn.comes()
    turn.guard._leaving_s = turn.now + 5.0
    heard = harness.say(do="arm", lost="stop")
    assert (heard[-1]["error"], heard[-1]["armed"]) == ("the guard is leaving", False)
    assert turn.comes().hears() == [{"say": "hung up"}]


def test_the_mark_follows_the_heartbeats_once_a_second_and_goes_when_the_line_is_disarmed(
    turn: Turn,
) -> None:
    def mark() -> str:
        return (turn.folder / "guard.armed").read_text("utf-8").strip()

    harness = turn.comes()
    harness.arm()
    harness.say(do="heartbeat", made_s=turn.now, lost="vent")
    assert mark() == "vent"
    for _ in range(3):
        turn.pass_(0.3)
        harness.say(do="heartbeat", made_s=turn.now, lost="stop")
        assert mark() == "vent"
    turn.pass_(0.1)
    assert mark() == "stop"
    harness.say(do="disarm")
    assert not (turn.folder / "guard.armed").exists()
    turn.pass_(10.0)
    assert turn.wrote() == NOTHING, "nobody is watched"


# ---- a trip of the harness


def test_nothing_is_written_down_while_a_line_is_armed_but_its_mark(turn: Turn) -> None:
    harness = turn.comes()
    harness.arm()
    turn.guard.log.add("link lost")
    turn.pass_(0.1)
    assert not (turn.folder / "guard.jsonl").exists(), "a trip may come, and waits for no disk"
    harness.say(do="disarm")
    assert (turn.folder / "guard.jsonl").exists()


def test_a_trip_sends_latches_and_is_written_down_when_it_was_answered(turn: Turn) -> None:
    harness = turn.comes()
    harness.arm()
    heard = harness.say(do="trip", trip=reason("stop"))
    assert turn.wrote() == FIRST
    assert heard[-1]["latched"]
    assert heard[-1]["write_error"].endswith("not written yet")
    assert not (turn.folder / "latch.json").exists(), "bytes go before the disk"
    assert turn.logged() == ["tripped"]
    assert turn.guard.log.entries[0]["why"] == "leak"
    assert turn.guard.log.entries[0]["procedure"] == "stop"
    turn.answer()
    assert turn.guard.latch.trip == replace(LEAK, procedure="stop")
    assert json.loads((turn.folder / "latch.json").read_text("utf-8"))["detail"] == "leak"
    assert harness.hears()[-1]["write_error"] == ""


def test_a_procedure_that_nobody_answers_keeps_the_latch_from_the_disk_for_ten_seconds(
    tmp_path: Path,
) -> None:
    slow = replace(SAFE[0], request=replace(SHUT[0], timeout_s=60.0))
    with guarding(tmp_path, armed=replace(ARMED, procedures={"stop": (slow,)})) as turn:
        harness = turn.comes()
        harness.arm()
        turn.pass_(0.2)
        harness.say(do="trip", trip=reason("stop"))
        while not (tmp_path / "latch.json").exists():
            turn.pass_(0.1)
            harness.say(do="heartbeat", made_s=turn.now, lost="stop")
        assert turn.now - START_S == pytest.approx(10.2)


def test_a_trip_whose_reason_cannot_be_read_is_one_all_the_same(turn: Turn) -> None:
    harness = turn.comes()
    harness.arm()
    harness.say(do="trip", trip={"procedure": "vent", "cause": "boredom"})
    assert turn.wrote()["gas"][:1] == [SHUT[3].frame]
    assert turn.guard.latch.trip is not None
    assert (turn.guard.latch.trip.channel, turn.guard.latch.trip.procedure) == ("harness", "vent")
    assert "boredom" in turn.guard.latch.trip.detail
    assert "socket" not in turn.guard.latch.trip.detail, "that came after it"
    assert turn.guard._session is None, "a harness that speaks nonsense is lost"


def test_a_latch_that_does_not_reach_the_disk_is_tried_each_second_and_told_of(turn: Turn) -> None:
    tries: list[float] = []

    def full(path: Path, text: str) -> None:
        tries.append(round(turn.now - START_S, 3))
        raise OSError(28, "No space left on device")

    harness = turn.comes()
    harness.arm()
    turn.guard.latch.write = full
    harness.say(do="trip", trip=reason("vent"))
    turn.answer()
    assert "No space left" in harness.hears()[-1]["write_error"]
    for _ in range(21):
        turn.pass_(0.1)
        harness.say(do="heartbeat", made_s=turn.now, lost="stop")
    assert tries == pytest.approx([0.0, 1.0, 2.0], abs=0.11)
    assert (turn.folder / "guard.armed").exists(), "the armed marker stands for the latch"


# ---- a reset


def test_a_reset_opens_the_latch_and_ends_the_duty(harness: Harness, turn: Turn) -> None:
    harness.say(do="trip", trip=reason("stop"))
    heard = harness.say(do="reset")
    assert (heard[-1]["say"], heard[-1]["error"], heard[-1]["latched"]) == ("reset", "", False)
    assert turn.guard.latch.trip is None
    assert not turn.guard._owes()
    assert not turn.guard.core.armed, "a reset is no start"
    for _ in range(4):
        turn.pass_(0.3)
    turn.wrote()
    turn.pass_(20.0)
    assert turn.wrote() == NOTHING, "and nobody is watched"


def test_a_latch_that_does_not_open_says_why_and_holds(harness: Harness, turn: Turn) -> None:
    harness.say(do="trip", trip=reason("stop"))
    (turn.folder / "latch.json").mkdir()
    heard = harness.say(do="reset")
    assert heard[-1]["error"] == "the latch does not open: Is a directory"
    assert heard[-1]["latched"]


def test_a_latch_that_could_not_be_read_is_read_anew_when_a_person_has_mended_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "latch.json").write_text("{", encoding="utf-8")
    with guarding(tmp_path) as turn:
        assert turn.wrote() == FIRST
        turn.answer()
        harness = turn.comes()
        heard = harness.say(do="arm", lost="stop")
        assert "cannot be read" in heard[-1]["error"]
        assert "cannot be read" in harness.say(do="reset")[-1]["error"]
        (tmp_path / "latch.json").unlink()
        turn.guard._read_latch_anew()
        assert turn.guard.latch.trip is not None, "it holds until it is opened"
        assert turn.guard.latch.trip.procedure == "stop"
        (tmp_path / "latch.json").write_text(json.dumps(write_trip(LEAK)), encoding="utf-8")
        turn.guard._read_latch_anew()
        assert turn.guard.latch.trip == LEAK, "what is there is read as it is"
        assert harness.say(do="reset")[-1]["error"] == ""
        harness.arm()
        harness.say(do="heartbeat", made_s=turn.now, lost="vent")
        turn.pass_(1.0)
        assert turn.guard._marker._latch is turn.guard.latch
