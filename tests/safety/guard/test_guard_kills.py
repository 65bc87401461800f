"""Real harnesses killed, stopped and stuck at seeded instants; the time until their line is safe.

Counted is from the signal to the last safe byte read at a device behind a pseudo-terminal. An
exchange that is in flight is waited out first; its wire time, and that of the safe frames before
the last, is modelled at 9600 baud and not the software's.
"""

import random
import signal
import statistics
import time
from collections.abc import Iterator

import pytest

from guard_rig import BAUD, LATENCY_S, ON, SAFE_FRAMES, SHUT, GuardBench, bench, until
from labharness.core.vocabulary import Request

KILLED_S_MAX = 0.250  # after the longest exchange in flight
STOPPED_S_MAX = 1.5
ENERGISING_S = 0.15  # a harness works for up to so long before its signal
STALE_S = 0.25  # how long after its end a stale frame would show

pytestmark = pytest.mark.serial


def exchange_s(request: Request) -> float:
    reply = b"ok " + request.frame
    return (len(request.frame) + len(reply)) * 10 / BAUD + LATENCY_S


IN_FLIGHT_S = exchange_s(ON) + exchange_s(SHUT[0])


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardBench]:
    with bench(tmp_path_factory.mktemp("kills")) as made:
        made.start()
        yield made


def trial(
    rig: GuardBench,
    number: signal.Signals,
    chance: random.Random,
    bound_s: float,
    *options: str,
) -> float:
    """Send a signal to a working harness; return the seconds until its line was safe."""
    with rig.harness(*options) as harness:
        time.sleep(chance.uniform(0.0, ENERGISING_S))
        rig.devices.forget()
        sent_s = time.monotonic()
        harness.send_signal(number)
        until(rig.made_safe, f"after {number.name}", 3.0)
        took_s = rig.safe_at_s() - sent_s
        assert took_s <= bound_s, f"safe after {took_s:.3f} s, allowed {bound_s:.3f} s"
        if number is signal.SIGSTOP:
            harness.send_signal(signal.SIGCONT)
            time.sleep(STALE_S if options else 0.0)
    assert rig.made_safe(), "something left after the line was made safe"
    assert rig.frames("heat")[:-2].count(ON.frame) == len(rig.frames("heat")) - 2
    assert rig.frames("gas") == SAFE_FRAMES["gas"], "each safe frame once"
    caretaker = rig.call()
    assert caretaker.welcome["latched"] is True
    caretaker.say(do="imported")
    caretaker.leave(reset=True)
    return took_s


def trials(
    rig: GuardBench, numbers: list[signal.Signals], seed: int, bound_s: float, *options: str
) -> None:
    chance = random.Random(seed)
    took_s = sorted(trial(rig, number, chance, bound_s, *options) for number in numbers)
    names = "/".join(sorted({number.name for number in numbers}))
    p99_s = took_s[min(len(took_s) - 1, round(len(took_s) * 0.99))]
    print(  # noqa: T201 - the figures are what the long run is for
        f"\n{len(took_s)} {names}: median {statistics.median(took_s) * 1e3:.1f} ms, "
        f"p99 {p99_s * 1e3:.1f} ms, max {took_s[-1] * 1e3:.1f} ms"
    )


@pytest.mark.promise(1)
def test_after_a_kill_at_any_instant_the_line_is_safe_in_time(rig: GuardBench) -> None:
    trials(rig, [signal.SIGKILL] * 20, 1, KILLED_S_MAX + IN_FLIGHT_S)


@pytest.mark.promise(2)
def test_after_a_stop_or_a_stuck_loop_the_line_is_safe_in_time(rig: GuardBench) -> None:
    trials(rig, [signal.SIGSTOP] * 6 + [signal.SIGUSR1] * 4, 2, STOPPED_S_MAX)


@pytest.mark.promise(1)
def test_a_harness_that_wakes_up_cannot_use_what_it_had(rig: GuardBench) -> None:
    trials(rig, [signal.SIGSTOP] * 2, 3, STOPPED_S_MAX, "rude")


@pytest.mark.promise(1)
@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_after_a_thousand_kills_the_line_was_safe_in_time(rig: GuardBench) -> None:
    trials(rig, [signal.SIGKILL] * 1000, 4, KILLED_S_MAX + IN_FLIGHT_S)


@pytest.mark.promise(2)
@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_after_three_hundred_stops_the_line_was_safe_in_time(rig: GuardBench) -> None:
    trials(rig, [signal.SIGSTOP] * 200 + [signal.SIGUSR1] * 100, 5, STOPPED_S_MAX)
