"""A broker that is away for two minutes in the middle of a growth: the line goes on meanwhile."""

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from broker import NEEDS_BROKER, Broker, running
from labharness.core.clock import pause, steady_s
from labharness.journal.reading import read_after, samples, verify_file
from labharness.work.desk.folder import JOURNAL_NAME
from plain_caller import PlainCaller, history_faults
from requested import GROWTH
from rig import SHORT_LINE
from serving import PACED, Service
from up_lab import until

CALLEE, CALLER = "callee", "harness-alpha-001"

AWAY_S = 120.0
"""Of real time, as the issue has it; of the line's time, at its pace, four times as long."""

LOOK_S = 5.0
STOOD_STILL_S_MAX = 60.0
"""Of the line's time: its samples reach the disk in blocks of that length."""

POLLED = ("argon.frame", "box.inputs", "furnace.process", "gauge.pressure", "h2_detector.status")
"""What is asked every second; others are asked for when a step needs them."""

GAP_S_MAX = 3.5
"""Longest time (s) between two readings of an instrument; the line counts it as silent then."""

BACK_S_MAX = 90.0
"""Until the first message after the broker is back: the service tries again every 60 s at most."""

GROWTH_S_MAX = 1_800.0

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3_600), NEEDS_BROKER]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with running(tmp_path / "b", (CALLEE, CALLER)) as made:
        yield made


@pytest.mark.promise(65)
def test_a_growth_goes_on_for_two_minutes_without_its_broker_and_is_told_in_full_afterwards(
    broker: Broker, tmp_path: Path
) -> None:
    service = Service(SHORT_LINE, broker.url(CALLEE), tmp_path / "runs", PACED)
    try:
        owner = service.owner()
        asks = PlainCaller(broker.url(CALLER) + "?heartbeat=0", CALLER, "short-line")
        asks.submit(GROWTH)
        asks.until(lambda told: told.is_("state_changed", to_state="RUNNING"))
        asks.until(lambda told: told.is_("progress", stage="leak_check"))
        (run,) = service.runs.iterdir()
        journal = run / JOURNAL_NAME
        asks.forget()
        before = told_in(journal)
        broker.stop()
        looks = [newest_s(journal)]
        end_s = steady_s() + AWAY_S
        while steady_s() < end_s:
            pause(LOOK_S)
            looks.append(newest_s(journal))
        meanwhile = told_in(journal)[len(before) :]
        broker.start()
        back_s = steady_s()
        asks.connect()
        asks.until(lambda told: told["message_id"] in meanwhile, BACK_S_MAX)
        first_s = steady_s() - back_s
        end = asks.ended(GROWTH_S_MAX)
        assert end["type"] == "task_completed", end.payload
        until(lambda: verify_file(journal).ok)
        figures = {
            "line_s_meanwhile": round(looks[-1] - looks[0], 1),
            "messages_meanwhile": len(meanwhile),
            "first_message_after_s": round(first_s, 1),
            "messages": len({each["message_id"] for each in asks.heard}),
            "deliveries": len(asks.heard),
            "longest_gap_s": round(longest_gap_s(journal), 2),
        }
        (tmp_path / "figures.json").write_text(json.dumps(figures))
        assert history_faults(asks.heard) == []
        heard = list(dict.fromkeys(each["message_id"] for each in asks.heard))
        kept = told_in(journal)
        assert [each for each in heard if each in kept] == kept, "all of it, in its order"
        assert meanwhile, "nothing happened while the broker was away"
        assert max(after - first for first, after in pairwise(looks)) < AWAY_S
        assert figures["line_s_meanwhile"] > float(PACED) * AWAY_S - STOOD_STILL_S_MAX
        assert figures["longest_gap_s"] < GAP_S_MAX
        assert service.owner() == owner
        assert len(list(service.runs.iterdir())) == 1
        asks.close()
    finally:
        service.down()


def told_in(journal: Path) -> list[str]:
    """Return the ids of the messages in a run's journal that are for its caller, in their order."""
    return [
        each.body["message_id"]
        for each in read_after(journal, 0)
        if each.kind in ("event", "terminal") and is_told(each.body)
    ]


def is_told(body: dict[str, object]) -> bool:
    return body.get("event_type") != "session_created"  # told on receipt, by another id


def newest_s(journal: Path) -> float:
    """Return the lab time of the newest record."""
    return max(each.at_s for each in read_after(journal, 0))


def longest_gap_s(journal: Path) -> float:
    """Return the longest lab time between two rows of readings that are polled."""
    newest: dict[str, float] = {}
    longest = 0.0
    for stream, at_s, _ in samples(journal):
        if stream in POLLED:
            longest = max(longest, at_s - newest.get(stream, at_s))
            newest[stream] = at_s
    assert set(newest) == set(POLLED)
    return longest
