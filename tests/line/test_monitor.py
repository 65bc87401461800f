"""The monitor: trips before warnings and records, silence, heartbeats, and the log of a guard."""

import math
from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kernel_line import parts
from labharness.core.clock import VirtualLoop
from labharness.core.vocabulary import Cause, Trip
from labharness.journal import JournalFailed
from labharness.journal.null_journal import NullJournal
from labharness.line.events import Events
from labharness.line.instrument import BoundScan
from labharness.line.poll import Monitor
from labharness.safety.guard import Guard
from labharness.safety.kernel import Envelope, Memory, Mode, TripRow

FURNACE = "furnace.temperature"
HOT_C, WARM_C = 1100.0, 1030.0  # above the row that trips, and above the one that only warns


class Watched:
    """A monitor over the kernel, and the order of what it does."""

    def __init__(
        self, journal: NullJournal | None = None, rows: tuple[TripRow, ...] | None = None
    ) -> None:
        self.done: list[str] = []
        self.heartbeats: list[str] = []
        loop = VirtualLoop()
        loop.close()  # only its time is asked for
        events = Events()
        events.on_trip = lambda trip: self.done.append("bytes")
        events.on_warning = lambda text: self.done.append("warned")
        events.on_abnormal = lambda warning: self.done.append("warning told")
        guard = SimpleNamespace(
            heartbeat=self.heartbeats.append, new_epoch=lambda: self.done.append("epoch")
        )
        rules = parts()
        rules["procedures"] |= {"relieve": replace(rules["procedures"]["shutdown"], name="relieve")}
        rules["trips"] = rows or rules["trips"]
        self.memory = Memory(Envelope(**rules))
        self.memory.mode = Mode.RUNNING
        self.monitor = Monitor(
            memory=self.memory,
            guard=cast("Guard", guard),
            journal=journal or NullJournal(),
            loop=loop,
            events=events,
        )

    def reads(self, value: float) -> None:
        """Let the furnace read a temperature."""
        scan = SimpleNamespace(
            instrument="furnace",
            tracks=(self.memory.track(FURNACE),),
            stream=0,
            scan=SimpleNamespace(name="process"),
        )
        self.monitor.take(cast("BoundScan", scan), (value,))


ROWS = parts()["trips"]


@pytest.mark.promise(11)
def test_no_reading_counts_while_a_proof_of_the_settings_is_refused() -> None:
    watched = Watched()
    track = watched.memory.track(FURNACE)
    unit = SimpleNamespace(
        instrument="furnace", tracks=(), stream=-1, proves=True, scan=SimpleNamespace(name="unit")
    )
    watched.reads(25.0)
    watched.monitor.fault(cast("BoundScan", unit), "it shows kelvin")
    assert watched.done == ["warned", "epoch", "bytes"]
    assert math.isnan(track.value)
    watched.reads(1100.0)  # it would trip, were it degrees Celsius
    assert math.isnan(track.value)
    assert not track.fresh(0.0)
    watched.monitor.fault(cast("BoundScan", unit), "it shows kelvin")
    assert watched.done == ["warned", "epoch", "bytes"]
    watched.monitor.take(cast("BoundScan", unit), ())
    watched.reads(26.0)
    assert (track.value, track.fresh(0.0)) == (26.0, True)


@pytest.mark.parametrize("rows", [ROWS, ROWS[::-1]], ids=["trip first", "warning first"])
def test_a_trip_goes_before_the_warning_of_the_same_reading(rows: tuple[TripRow, ...]) -> None:
    watched = Watched(rows=rows)
    watched.reads(HOT_C)
    assert watched.done[:3] == ["bytes", "warned", "warning told"]


def test_a_warning_is_shown_once_and_told_each_time() -> None:
    watched = Watched()
    for value in (WARM_C, WARM_C + 1):
        watched.reads(value)
    assert [each for each in watched.done if each != "epoch"] == [
        "warned",
        "warning told",
        "warning told",
    ]


@pytest.mark.promise(13)
def test_a_trip_goes_before_the_sample_that_showed_it_is_kept() -> None:
    class Slow(NullJournal):
        """A journal in which every sample would take a commit."""

        def sample(self, *args: Any) -> None:
            watched.done.append("disk")

    watched = Watched(Slow())
    watched.reads(HOT_C)
    assert watched.done.index("bytes") < watched.done.index("disk")


def test_a_channel_that_was_never_read_trips_at_a_tick() -> None:
    watched = Watched()
    watched.monitor.tick()
    assert "bytes" in watched.done


@pytest.mark.parametrize("named", ["shutdown", "relieve"])
def test_a_heartbeat_names_what_goes_on_if_the_guard_begins_anew(named: str) -> None:
    watched = Watched()
    if named == "relieve":
        watched.memory.trip = Trip(Cause.OVER_TEMPERATURE, named, FURNACE, HOT_C, 1.0, "hot")
    watched.monitor.heartbeat()
    assert watched.heartbeats == [named]


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
    monitor = Watched(journal).monitor
    assert monitor.keep([{"what": "tripped by itself"}, {"what": "safe frame"}]) is kept
    assert monitor.journal_lost == ("full" if isinstance(journal, Disk) and not kept else "")
