"""The monitor answers in the order of law 2: bytes first, then whoever is told."""

from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from labharness.core.clock import VirtualLoop
from labharness.core.vocabulary import Cause, Trip
from labharness.journal import JournalFailed
from labharness.journal.null_journal import NullJournal
from labharness.line import monitor as monitor_module
from labharness.line.events import Events
from labharness.line.instrument import BoundScan
from labharness.line.monitor import Monitor
from labharness.safety.guard import Guard
from labharness.safety.kernel import Memory

TRIP = Trip(Cause.OVER_TEMPERATURE, "immediate_shutdown", "furnace.temperature", 990.0, 1.0, "hot")
WARNING = replace(TRIP, procedure="", detail="warm: furnace.temperature is 990 degC")


@pytest.mark.parametrize("found", [(WARNING, TRIP), (TRIP, WARNING)])
def test_a_trip_goes_before_the_warning_of_the_same_reading(
    found: tuple[Trip, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    monkeypatch.setattr(monitor_module, "tick", lambda memory, now: found)
    monitor_of(done).tick()
    assert done == ["bytes", "warned", "warning told"]


@pytest.mark.promise(13)
def test_a_trip_goes_before_the_sample_that_showed_it_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done: list[str] = []

    class Slow(NullJournal):
        """A journal in which every sample would take a commit."""

        def sample(self, *args: Any) -> None:
            done.append("disk")

    monkeypatch.setattr(monitor_module, "observe", lambda *args: (TRIP,))
    scan = cast("BoundScan", SimpleNamespace(tracks=(), stream=0))
    monitor_of(done, Slow()).take(scan, (990.0,))
    assert done == ["bytes", "disk"]


@pytest.mark.parametrize("named", ["immediate_shutdown", "relieve_pressure"])
def test_a_heartbeat_names_what_goes_on_if_the_guard_begins_anew(named: str) -> None:
    trip = None if named == "immediate_shutdown" else replace(TRIP, procedure=named)
    told: list[str] = []
    monitor = monitor_of([])
    monitor._memory = cast(
        "Memory",
        SimpleNamespace(
            trip=trip,
            envelope=SimpleNamespace(procedure_of=dict.fromkeys(Cause, "immediate_shutdown")),
            procedure=lambda name: name,
        ),
    )
    monitor._guard = cast("Guard", SimpleNamespace(heartbeat=told.append))
    monitor.heartbeat()
    assert told == [named]


class Disk(NullJournal):
    """A journal that keeps, until it fails."""

    keeps = True

    def __init__(self, fails_at: str = "") -> None:
        super().__init__()
        self._fails_at = fails_at

    def append(self, kind: str, body: Mapping[str, object], at_s: float) -> int:
        if self._fails_at == kind:
            raise JournalFailed("full")
        return super().append(kind, body, at_s)

    def commit(self) -> None:
        if self._fails_at == "commit":
            raise JournalFailed("full")


@pytest.mark.parametrize(
    ("journal", "kept"),
    [
        (Disk(), True),
        (Disk("guard_log"), False),
        (Disk("commit"), False),
        (NullJournal(), False),
    ],
    ids=["a disk", "full", "full at the commit", "null_journal"],
)
def test_a_log_counts_as_kept_once_a_disk_has_all_of_it(
    journal: NullJournal, *, kept: bool
) -> None:
    monitor = monitor_of([], journal)
    assert monitor.keep([{"what": "tripped by itself"}, {"what": "safe frame"}]) is kept
    assert monitor.journal_lost == ("full" if isinstance(journal, Disk) and not kept else "")


def monitor_of(done: list[str], journal: NullJournal | None = None) -> Monitor:
    """Return a monitor that writes down the order of what it does."""
    loop = VirtualLoop()
    loop.close()  # only its time is asked for
    events = Events()
    events.on_trip = lambda trip: done.append("bytes")
    events.on_warning = lambda text: done.append("warned")
    events.on_abnormal = lambda warning: done.append("warning told")
    return Monitor(
        memory=cast("Memory", SimpleNamespace(changes=0)),  # what the kernel finds is given
        guard=cast("Guard", SimpleNamespace()),
        journal=journal or NullJournal(),
        loop=loop,
        events=events,
    )
