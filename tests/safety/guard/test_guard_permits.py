"""Permits at the guard process: the honest one passes once, the others never."""

import random
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from guard_rig import ON, READ, SHUT, Caller, GuardBench, bench
from labharness.safety.guard.core import PERMIT_S_MAX
from labharness.safety.guard.messages import write_request


@pytest.fixture(scope="module")
def armed_caller(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[GuardBench, Caller]]:
    """One guard and one armed harness, for what leaves no trace."""
    with bench(tmp_path_factory.mktemp("guard")) as made:
        made.start()
        caller = made.call()
        caller.arm()
        yield made, caller
        caller.socket.close()


@pytest.mark.promise(5)
def test_a_permit_passes_once(armed_caller: tuple[GuardBench, Caller]) -> None:
    rig, caller = armed_caller
    rig.devices.forget()
    caller.heartbeat()
    permit = caller.permit()
    assert caller.send(permit)["reply"] == (b"ok heat on\r").hex()
    caller.heartbeat()
    assert "seen before" in caller.send(permit)["error"]
    assert rig.frames("heat") == [ON.frame]


def forged(caller: Caller, chance: random.Random, seen: int) -> tuple[dict[str, Any], str]:
    """Make a permit that must not pass; return it, and why not."""
    kind = chance.choice(["replayed", "expired", "long-lived", "epoch", "port", "flip", "key"])
    if kind == "replayed":
        caller.number -= 1
        return caller.permit(number=chance.randint(0, seen)), kind
    if kind == "expired":
        return caller.permit(expires_s=time.monotonic() - chance.choice([1e-6, 1e-3, 9.0])), kind
    if kind == "long-lived":
        late_s = chance.choice([0.1, 60.0, 1e6])
        return caller.permit(expires_s=time.monotonic() + PERMIT_S_MAX + late_s), kind
    if kind == "epoch":
        foreign = chance.choice([caller.epoch + 1, caller.epoch + 2**32, 0])
        return caller.permit(epoch=foreign), kind
    if kind == "port":
        return caller.permit(port="gas"), kind
    permit = caller.permit()
    if kind == "key":
        stranger, caller.key = caller.key, chance.randbytes(32)
        permit = caller.permit()
        caller.key = stranger
        return permit, kind
    name = chance.choice(["number", "epoch", "expires_us", "seal"])
    if name == "seal":
        bit = 1 << chance.randrange(256)
        permit["seal"] = f"{int(permit['seal'], 16) ^ bit:064x}"
    else:
        permit[name] ^= 1 << chance.randrange(40)
    return permit, kind


def refuse(rig: GuardBench, caller: Caller, count: int, seed: int) -> None:
    chance = random.Random(seed)
    caller.heartbeat()
    assert caller.send(caller.permit())["error"] == ""
    seen = caller.number
    rig.devices.forget()
    passed = []
    for number in range(count):
        if number % 20 == 0:
            caller.heartbeat()
        permit, kind = forged(caller, chance, seen)
        end = caller.send(permit)
        if not end["error"].startswith("refused by the guard"):
            passed.append((kind, permit, end["error"]))
    assert passed == []
    assert rig.frames("heat") == []
    caller.heartbeat()
    caller.number += 2**41  # beyond any number whose bit was flipped
    assert caller.send(caller.permit())["error"] == "", "an honest one passes still"


@pytest.mark.promise(4)
def test_no_forged_permit_passes(armed_caller: tuple[GuardBench, Caller]) -> None:
    refuse(*armed_caller, count=2000, seed=1)


@pytest.mark.promise(4)
@pytest.mark.soak
@pytest.mark.timeout(900)
def test_no_forged_permit_of_a_hundred_thousand_passes(
    armed_caller: tuple[GuardBench, Caller],
) -> None:
    refuse(*armed_caller, count=100_000, seed=2)


def test_a_permit_is_for_the_request_that_it_was_sealed_for(
    armed_caller: tuple[GuardBench, Caller],
) -> None:
    rig, caller = armed_caller
    rig.devices.forget()
    for other in (
        replace(ON, frame=b"heat xx\r"),
        replace(ON, timeout_s=0.4),
        replace(ON, settle_s=0.1),
    ):
        caller.heartbeat()
        assert "does not fit" in caller.send(caller.permit(), other)["error"]
    long = replace(ON, timeout_s=0.51)
    assert "allows 0.5 s" in caller.send(caller.permit(long), long)["error"]
    assert rig.frames("heat") == []


@pytest.mark.promise(4)
def test_a_write_without_a_permit_is_refused_and_a_read_is_not(
    armed_caller: tuple[GuardBench, Caller],
) -> None:
    rig, caller = armed_caller
    rig.devices.forget()
    caller.heartbeat()
    assert "is not a read of port heat" in caller.send(None, SHUT[0])["error"]
    assert (
        "is not a read of port heat" in caller.send(None, replace(READ, frame=b"read\r\r"))["error"]
    )
    assert caller.send(None, READ)["error"] == ""
    assert rig.frames("heat") == [READ.frame]


WORDS = st.sampled_from(
    ["send", "trip", "repeat", "arm", "heartbeat", "bye", "heat", "stop", "\ud800"]
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.floats() | st.just(10**400) | st.integers() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)
HONEST: tuple[dict[str, Any], ...] = (
    {"do": "send", "port": "heat", "number": 1, "permit": None, "frame": "00"},
    {
        "do": "send",
        "port": "heat",
        "number": 1,
        "permit": {"number": 1, "epoch": 1, "expires_us": 1, "seal": "00"},
        "request": write_request(ON),
    },
    {"do": "repeat", "frames": [["stop", 0]]},
    {"do": "arm", "lost": "stop"},
    {"do": "heartbeat", "made_s": 1.0, "lost": "stop"},
    {"do": "bye", "retire": False},
)


@pytest.fixture(scope="module")
def patient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardBench]:
    with bench(tmp_path_factory.mktemp("guard")) as made:
        made.start()
        yield made


@given(
    message=st.sampled_from(HONEST),
    key=st.text(max_size=3) | st.sampled_from(["do", "permit", "request", "frames", "made_s"]),
    value=VALUES,
)
@settings(
    deadline=None, max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_nothing_that_a_harness_says_ends_the_guard(
    patient: GuardBench, message: dict[str, Any], key: str, value: Any
) -> None:
    caller = patient.call()
    caller.say(**{**message, key: value})
    caller.socket.close()
    assert patient.guard is not None
    later = patient.call()
    assert later.welcome["say"] == "welcome"
    later.leave(reset=True)
    assert patient.guard.poll() is None
    assert ON.frame not in patient.frames("heat")


@pytest.mark.promise(5)
@pytest.mark.parametrize("move", ["epoch", "disarm", "arm"])
def test_what_moves_the_epoch_voids_a_permit_on_its_way(rig: GuardBench, move: str) -> None:
    rig.start()
    caller = rig.armed_by()
    permit = caller.permit()
    caller.say(do=move, **({"lost": "stop"} if move == "arm" else {}))
    error = caller.send(permit)["error"]
    assert "epoch" in error or "not armed" in error
    assert rig.frames("heat") == []
    caller.socket.close()


@pytest.mark.promise(1)
@pytest.mark.parametrize(("timeout_s", "settle_s"), [(0.51, 0.0), (0.3, 0.21), (0.0, 0.51)])
def test_a_port_is_taken_for_no_longer_than_it_was_armed_for_the_silence_after_it_counted(
    armed_caller: tuple[GuardBench, Caller], timeout_s: float, settle_s: float
) -> None:
    rig, caller = armed_caller
    rig.devices.forget()
    caller.heartbeat()
    long = replace(ON, timeout_s=timeout_s, settle_s=settle_s)
    assert "port heat allows 0.5 s" in caller.send(caller.permit(long), long)["error"]
    assert rig.frames("heat") == []
