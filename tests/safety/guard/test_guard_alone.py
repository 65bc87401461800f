"""A guard whose harness has gone: what was not answered stays its duty until it is answered."""

import json
import selectors
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from guard_rig import (
    BOUND_S,
    READ,
    SAFE,
    SAFE_FRAMES,
    SHUT,
    Away,
    Caller,
    Devices,
    GuardBench,
    arming,
    until,
)
from labharness.core.clock import PacedLoop, steady_s
from labharness.core.vocabulary import Nothing, Request, Until
from labharness.safety.guard import GuardCore, SafeFrame
from labharness.safety.guard.armed import ARMED_FILE
from labharness.safety.guard.ports import Ports


def trip(procedure: str, cause: str = "gas_leak_detected") -> dict[str, Any]:
    reason = {"channel": "h2.concentration", "value": 9.0, "at_s": 1.0, "detail": cause}
    return {"cause": cause, "procedure": procedure, **reason}


def heartbeat_for(caller: Caller, seconds: float, lost: str = "stop") -> None:
    end_s = time.monotonic() + seconds
    while time.monotonic() < end_s:
        caller.say(do="heartbeat", made_s=steady_s(), lost=lost)
        time.sleep(0.05)


@pytest.mark.promise(12)
@pytest.mark.parametrize("left", ["hung, and was killed later", "tripped, and took its leave"])
def test_what_a_living_harness_left_unanswered_is_sent_again_when_it_has_gone(
    rig: GuardBench, left: str
) -> None:
    guard = rig.start("--once")
    caller = rig.armed_by()
    caller.heartbeat()
    rig.devices.of["heat"].mute = True
    rig.devices.forget()
    if left.startswith("hung"):
        assert caller.hear("tripped")["trip"]["channel"] == "harness"
        until(lambda: rig.frames("heat") == SAFE_FRAMES["heat"], "the guard's own")
        rig.devices.forget()
    caller.say(do="trip", trip=trip("stop"))
    heartbeat_for(caller, 1.5)
    assert rig.frames("heat") == SAFE_FRAMES["heat"], "who tripped repeats, for as long as it lives"
    caller.say(do="disarm")
    if left.startswith("hung"):
        caller.socket.close()
    else:
        caller.leave()
    time.sleep(0.5)
    rig.devices.of["heat"].mute = False
    rig.devices.forget()
    until(lambda: rig.frames("heat") == SAFE_FRAMES["heat"], "the frames nobody answered")
    assert guard.wait(BOUND_S) == 0, "and then nothing is left to do"


def leave_unanswered(rig: GuardBench) -> None:
    """Have a harness arm and die with a port on which nobody answers."""
    rig.devices.of["heat"].mute = True
    caller = rig.armed_by()
    rig.devices.forget()
    caller.socket.close()
    until(lambda: rig.frames("heat") == SAFE_FRAMES["heat"], "the first wave")


@pytest.mark.promise(12)
def test_who_only_looks_on_takes_no_duty_from_the_guard(rig: GuardBench) -> None:
    rig.start()
    leave_unanswered(rig)
    onlooker = rig.call()
    heartbeat_for(onlooker, 0.8)  # what was on the wire has ended
    rig.devices.forget()
    rig.devices.of["heat"].mute = False
    heartbeat_for(onlooker, 2.5)
    assert set(rig.frames("heat")) == set(SAFE_FRAMES["heat"]), "it heartbeats, and repeats nothing"


def on_more_ports(rig: GuardBench, *more: str) -> None:
    """Give the guard further ports on which nobody answers, and a read that takes its time."""
    rig.devices.close()
    rig.devices = Devices("heat", "gas", *more)
    slow = replace(READ, timeout_s=0.8)
    ports = tuple(
        replace(port, reads=(slow,)) if port.name in more else port
        for port in arming(rig.devices).ports
    )
    rig.armed = replace(rig.armed, ports=ports)
    for name in more:
        rig.devices.of[name].mute = True


@pytest.mark.promise(12)
def test_polls_that_nobody_answers_keep_no_safe_frame_back_on_another_port(
    rig: GuardBench,
) -> None:
    silent = ("laser", "stage", "lamp", "pump")
    on_more_ports(rig, *silent)
    (rig.state_dir / ARMED_FILE).write_text(rig.armed.text(), encoding="utf-8")
    rig.start()
    leave_unanswered(rig)
    onlooker = rig.call()
    began_s = time.monotonic()

    def poll_until(done: Callable[[], bool], within_s: float) -> None:
        end_s = time.monotonic() + within_s
        while not done() and time.monotonic() < end_s:
            polled = int((time.monotonic() - began_s) / 0.4) + 1  # so that one is always asked
            for name in silent[:polled]:
                onlooker.say(do="send", port=name, number=7, permit=None, frame=READ.frame.hex())
            onlooker.socket.recv(1 << 20)
            time.sleep(0.02)

    poll_until(lambda: False, 3.0)
    rig.devices.of["heat"].mute = False
    rig.devices.forget()
    wanted = set(SAFE_FRAMES["heat"])
    poll_until(lambda: wanted <= set(rig.frames("heat")), 2.0)
    assert wanted <= set(rig.frames("heat")), "each second, whoever looks on"


def test_a_port_on_which_nobody_answers_keeps_no_safe_frame_back_on_another(
    rig: GuardBench,
) -> None:
    more = [replace(SAFE[1], step=n, request=replace(SHUT[1], timeout_s=0.5)) for n in range(4, 12)]
    armed = replace(rig.armed, procedures={"stop": (*SAFE, *more), "vent": (SAFE[1],)})
    (rig.state_dir / ARMED_FILE).write_text(armed.text(), encoding="utf-8")
    rig.devices.of["gas"].mute = True
    rig.start()
    leave_unanswered(rig)
    time.sleep(0.8)
    rig.devices.of["heat"].mute = False
    rig.devices.forget()
    wanted = set(SAFE_FRAMES["heat"])
    until(lambda: wanted <= set(rig.frames("heat")), "each second", within_s=2.0)


# ---- a refusal is no obedience


def guard_log(rig: GuardBench, frame: SafeFrame) -> list[str]:
    """Return how the exchanges of a frame ended, as the guard has written them down."""
    lines = (rig.state_dir / "guard.jsonl").read_text("utf-8").splitlines()
    entries = [json.loads(line) for line in lines]
    return [each["error"] for each in entries if each.get("channel") == frame.channel]


def lose_the_harness(rig: GuardBench) -> None:
    caller = rig.armed_by()
    rig.devices.forget()
    caller.socket.close()


@pytest.mark.promise(12)
def test_a_frame_that_is_refused_once_is_sent_again_until_it_is_obeyed(rig: GuardBench) -> None:
    heat = SAFE[0]
    rig.start()
    rig.devices.of["heat"].says[heat.request.frame] = (b"busy\r", 1)
    lose_the_harness(rig)
    wanted = SAFE_FRAMES["heat"] * 2
    until(lambda: rig.frames("heat") == wanted, "the tail from the refused one on", within_s=2.5)
    until(lambda: (rig.state_dir / "guard.jsonl").exists(), "the log")
    until(lambda: len(guard_log(rig, heat)) == 2, "both ends of the frame")
    refused, obeyed = guard_log(rig, heat)
    assert b"busy\r".hex(" ") in refused, "with its bytes"
    assert obeyed == ""
    time.sleep(1.5)
    assert rig.frames("heat") == wanted, "and then no more"
    assert rig.frames("gas") == SAFE_FRAMES["gas"]


def test_a_guard_that_is_refused_for_good_goes_on_each_second(rig: GuardBench) -> None:
    last = SAFE[2]
    rig.start()
    rig.devices.of["heat"].says[last.request.frame] = (b"?\r", 1000)
    lose_the_harness(rig)
    again = [last.request.frame] * 3
    until(lambda: rig.frames("heat") == [*SAFE_FRAMES["heat"], *again], "each second", within_s=4.5)


@pytest.mark.promise(12)
def test_a_guard_that_is_alone_goes_on_until_the_reading_shows_it(rig: GuardBench) -> None:
    shown = Request(b"contactor?\r", Until(b"\r"), 0.3, obeyed=b"open\r")
    seen = replace(SAFE[2], shown=shown)
    safe = tuple(seen if each == SAFE[2] else each for each in SAFE)
    armed = replace(rig.armed, procedures={"stop": safe, "vent": (SAFE[1],)})
    (rig.state_dir / ARMED_FILE).write_text(armed.text(), encoding="utf-8")
    rig.devices.of["heat"].says[shown.frame] = (b"closed\r", 1)
    guard = rig.start("--once")
    lose_the_harness(rig)
    first, second = SAFE_FRAMES["heat"]
    until(lambda: shown.frame in rig.frames("heat"), "the reading", within_s=2.5)
    rig.devices.of["heat"].says[shown.frame] = (b"open\r", 1)
    until(
        lambda: rig.frames("heat") == [first, second, shown.frame, second, shown.frame],
        "what the reading belied, and the reading",
        within_s=2.5,
    )
    assert guard.wait(BOUND_S) == 0, "and then nothing is left to do"


# ---- which procedure


def latched_procedure(rig: GuardBench) -> str:
    return str(json.loads((rig.state_dir / "latch.json").read_text("utf-8"))["procedure"])


@pytest.mark.promise(15)
def test_a_guard_that_comes_back_runs_what_ran_last_and_not_what_silence_would_have_run(
    rig: GuardBench,
) -> None:
    rig.start()
    caller = rig.armed_by()
    caller.heartbeat()
    caller.say(do="trip", trip=trip("vent", "over_pressure"))
    heartbeat_for(caller, 1.0, lost="stop")
    rig.kill()
    rig.devices.forget()
    rig.start()
    until(lambda: rig.frames("gas") == [SHUT[1].frame], "the procedure of the trip")
    time.sleep(0.3)
    assert rig.frames("heat") == [], "gas was let in where the trip had let it out"


@pytest.mark.promise(15)
def test_a_graver_trip_leaves_the_first_cause_and_its_own_procedure_in_the_latch(
    rig: GuardBench,
) -> None:
    rig.start()
    caller = rig.armed_by()
    caller.say(do="trip", trip=trip("stop", "over_temperature"))
    until(rig.made_safe, "the first procedure")
    until(lambda: (rig.state_dir / "latch.json").exists(), "the latch")
    caller.say(do="trip", trip=trip("vent", "over_pressure"))
    until(lambda: latched_procedure(rig) == "vent", "the procedure that ran last")
    caller.say(do="disarm")
    until(lambda: not (rig.state_dir / "guard.armed").exists(), "the end of the armed marker")
    rig.kill()
    rig.devices.forget()
    rig.start()
    assert rig.call().welcome["trip"]["cause"] == "over_temperature", "the first is to be cleared"
    until(lambda: rig.frames("gas") == [SHUT[1].frame], "the procedure of the graver trip")
    assert rig.frames("heat") == []


# ---- frames of two procedures


class Plug(Away):
    """A link that takes bytes when it is plugged in."""

    is_in = False

    def __init__(self) -> None:
        self.sent: list[bytes] = []

    def write(self, data: bytes) -> None:
        if not self.is_in:
            super().write(data)
        self.sent.append(data)


def step(number: int, channel: str, value: float) -> SafeFrame:
    request = Request(f"{channel}={value:g}\r".encode(), Nothing(), 0.0)
    return SafeFrame(number, "gas", request, channel, value)


VACUUM = (step(0, "argon", 0.0), step(1, "hydrogen", 0.0), step(2, "vent", 0.0))
VENTED = (step(0, "vent", 1.0), step(1, "argon", 100.0))


@pytest.mark.promise(12)
@pytest.mark.parametrize("follows", ["trip", "repeat"])
def test_frames_that_a_later_procedure_overrules_are_not_sent_again(follows: str) -> None:
    plug = Plug()
    core = GuardCore({"gas": ()}, {"vacuum": VACUUM, "vented": VENTED})
    ports = Ports(core, {"gas": plug}, selectors.DefaultSelector(), lambda: 0.0)
    ports.on_safe = lambda frame, error: None
    ports.trip("vacuum")
    assert ports.duty.open() == list(VACUUM), "in the procedure's order"
    if follows == "trip":
        ports.trip("vented")
    else:
        ports.repeat(VENTED)
    plug.is_in = True
    ports.insist(reading=False)
    for _ in range(9):
        ports.expire(1.0)
    left = [] if follows == "trip" else [VACUUM[1]]
    wanted = sorted([*left, *VENTED], key=lambda frame: frame.step)
    assert plug.sent == [frame.request.frame for frame in wanted]
    assert not ports.duty.left(reading=False)


# ---- a machine that sleeps


def test_a_machine_s_sleep_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    if not hasattr(time, "CLOCK_BOOTTIME"):
        pytest.skip("this system has no clock that counts it")
    loop = PacedLoop(2.0)
    before_s = steady_s()
    really = time.clock_gettime
    monkeypatch.setattr(time, "clock_gettime", lambda clock: really(clock) + 3600.0)
    assert 3600.0 <= steady_s() - before_s < 3610.0
    assert 7200.0 <= loop.time() < 7220.0
    loop.close()
