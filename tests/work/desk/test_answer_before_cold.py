"""An answer comes when the line is safe, within the promised time; the cooling is watched after it.

In the tests of the watch alone a line counts as hot at room temperature, so that none has to heat.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pytest

from labharness.core.vocabulary import Cause, Trip
from labharness.faces.testing.bench import Bench, Ran, VirtualTime
from labharness.journal import SqliteJournal
from labharness.journal.artifacts import resolve
from labharness.journal.chain import Record
from labharness.journal.reading import read
from labharness.lab import Lab, LabPlan
from labharness.lab.wiring.tasks import TaskRun
from labharness.line import Line
from labharness.line.procedures import Verification
from labharness.work.desk.folder import ANSWER_NAME, ARTIFACTS_NAME, JOURNAL_NAME
from labharness.work.desk.making_safe import SAFE_S_MAX, Cooled, Cooling, MakingSafe
from labharness.work.desk.process_log import ROW_S
from rig import SAFE_TABLE, SOON, Injection, cut, submission

ABORT_S_MAX = 300.0  # as promised, not as imported

LINE = "labharness.line.line"
COOLING = "labharness.work.desk.making_safe"
COLDER_THAN_THE_ROOM_C = -10.0


def never_cold(plan: LabPlan) -> LabPlan:
    return replace(plan, cold=dict.fromkeys(plan.cold, COLDER_THAN_THE_ROOM_C))


def trip(cause: Cause) -> Callable[[Lab], None]:
    """Trip the line for a cause."""

    def act(lab: Lab) -> None:
        procedure = lab.line.envelope.procedure_of[cause]
        now_s = lab.clock.now_s()
        lab.line.trip_response.trip(Trip(cause, procedure, "line", None, now_s, "planted"))

    return act


def kinds_of(ran: Ran) -> list[Record]:
    return [each for each in read(ran.result.folder / JOURNAL_NAME) if each.kind != "samples"]


def first(records: list[Record], kind: str) -> Record:
    return next(each for each in records if each.kind == kind)


# ---- the time until the answer


@pytest.mark.promise(62)
def test_a_safe_state_that_takes_too_long_is_answered_in_time_and_worked_on_after_it(
    simulated_lab: Bench,
    short_plan: LabPlan,
    virtual_time: VirtualTime,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settle, calls = Line.settle, []

    async def slow(line: Line, procedure: str) -> Verification:
        calls.append(line.clock.now_s())
        while line.clock.now_s() < calls[0] + ABORT_S_MAX:
            await line.polled()
        return await settle(line, procedure)

    async def ask() -> tuple[float, list[str], list[str]]:
        async with simulated_lab.on(short_plan).running() as lab:
            monkeypatch.setattr(Line, "settle", slow)
            making_safe, since_s = MakingSafe(lab.line, SAFE_TABLE), lab.clock.now_s()
            await making_safe.wait()
            took_s, unverified = lab.clock.now_s() - since_s, making_safe.unverified()
            await making_safe.wait()  # as an abort does that comes meanwhile
            await making_safe.ended()
            return took_s, unverified, making_safe.unverified()

    took_s, unverified, in_the_end = virtual_time.run(ask())
    assert took_s == pytest.approx(SAFE_S_MAX)
    assert any("box.furnace_contactor" in each and "unknown" in each for each in unverified)
    assert len(calls) == 1
    assert in_the_end == []


@pytest.mark.promise(62)
def test_the_answer_is_in_its_folder_before_the_line_is_watched(
    short_plan: LabPlan, simulated_lab: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{LINE}.COOL_WATCH_S_MAX", 2 * ABORT_S_MAX)
    found: list[bool] = []

    def answered(work: TaskRun) -> None:
        found.append((work.folder / ANSWER_NAME).exists())
        work.abort("too late")
        work.stop("enough")

    ran = simulated_lab.on(never_cold(short_plan)).run(submission(), abort=SOON, answered=answered)
    records = kinds_of(ran)
    terminal, cooled = first(records, "terminal"), first(records, "cooled")
    changes = [each for each in records if each.body.get("event_type") == "state_changed"]
    assert found == [True]
    assert ran.body["data"] == {"final_state": "ABORTED", "reason": "stop request (test)"}
    assert terminal.at_s - changes[-2].at_s < ABORT_S_MAX
    assert terminal.seq < first(records, "trip").seq < cooled.seq
    assert all(each.kind != "event" for each in records if each.seq > terminal.seq)
    assert ran.result.watches
    assert ran.result.cooled is not None
    assert not ran.result.cooled.safe
    assert ran.lab.guard.latch.trip is not None, "a line that is left warm is latched"


HOT = ("ramp", 600.0)
ABORTS = (("loading", 5.0), ("leak_check", 20.0), HOT, ("material_growth", 300.0))
TRIPS = (*Cause, "a cut bus")


def in_time(ran: Ran, begin: Callable[[Record], bool]) -> tuple[Record, Record]:
    """Check that a hot line was answered for in time; return the answer and the watch's end."""
    records = kinds_of(ran)
    begun = next(each for each in records if begin(each))
    terminal, cooled = first(records, "terminal"), first(records, "cooled")
    assert terminal.at_s - begun.at_s <= ABORT_S_MAX
    assert terminal.seq < cooled.seq
    return terminal, cooled


@pytest.mark.promise(62)
@pytest.mark.thorough
@pytest.mark.parametrize(("stage", "after_s"), ABORTS, ids=[each[0] for each in ABORTS])
def test_an_abort_is_answered_within_its_timeout(
    short_plan: LabPlan, simulated_lab: Bench, stage: str, after_s: float
) -> None:
    ran = simulated_lab.on(short_plan).run(submission(), abort=(stage, after_s))
    _, cooled = in_time(ran, lambda each: each.body.get("data", {}).get("to_state") == "ABORTING")
    assert ran.body["data"]["final_state"] == "ABORTED"
    assert "warnings" not in ran.body["data"]
    assert (cooled.body["cold"], cooled.body["unverified"]) == (True, [])


@pytest.mark.promise(62)
@pytest.mark.thorough
@pytest.mark.parametrize("cause", TRIPS)
def test_a_trip_of_a_hot_line_is_answered_within_the_timeout_of_an_abort(
    short_plan: LabPlan, simulated_lab: Bench, cause: Cause | str
) -> None:
    act = trip(cause) if isinstance(cause, Cause) else cut("heat")
    bench = simulated_lab.on(short_plan)
    bench.inject_all([Injection(*HOT, act)])
    ran = bench.run(submission())
    terminal, cooled = in_time(ran, lambda each: each.kind == "trip")
    assert ran.type == "task_failed"
    (log,) = [each for each in ran.body["artifacts"] if each["name"].startswith("partial_")]
    rows = resolve(log["uri"], [ran.result.folder / ARTIFACTS_NAME]).read_text().splitlines()
    assert float(rows[-1].partition(",")[0]) <= terminal.at_s + ROW_S, "it ends at the answer"
    if isinstance(cause, Cause):
        assert cooled.body["cold"]
        assert cooled.at_s - terminal.at_s > ABORT_S_MAX, "it was hot"
    else:
        assert "is not heard" in cooled.body["warm"]


# ---- the watch


@dataclass
class Watched:
    """A watch over a line that never counts as cold, and what it told."""

    lab: Lab
    cooling: Cooling
    told: list[tuple[str, str]] = field(default_factory=list)

    async def end(self) -> Cooled:
        return await self.cooling.watch()


def watch(
    bench: Bench,
    time: VirtualTime,
    meanwhile: Callable[[Watched], None],
) -> tuple[Cooled, Watched, list[Record]]:
    """Make an armed line safe and watch it; return the end, and the records."""
    seen: list[Watched] = []

    async def work() -> Cooled:
        async with bench.running() as lab:
            making_safe = MakingSafe(lab.line, SAFE_TABLE)
            await making_safe.wait()
            told: list[tuple[str, str]] = []

            def tell(kind: str, data: Any) -> None:
                told.append((kind, str(data["message"])))

            seen.append(Watched(lab, Cooling(lab.line, making_safe, tell), told))
            lab.clock.loop.call_later(30.0, meanwhile, seen[0])
            return await seen[0].end()

    cooled = time.run(work())
    journal = seen[0].lab.line.journal
    assert isinstance(journal, SqliteJournal)
    return cooled, seen[0], list(read(journal.path))


Warm = Callable[[Callable[[Watched], None]], tuple[Cooled, Watched, list[Record]]]


@pytest.fixture
def warm(simulated_lab: Bench, short_plan: LabPlan, virtual_time: VirtualTime) -> Warm:
    """Return the watch over a line that stays warm."""
    return partial(watch, simulated_lab.on(never_cold(short_plan)), virtual_time)


@pytest.mark.promise(62)
def test_a_watch_that_is_broken_off_latches_the_warm_line(warm: Warm) -> None:
    cooled, seen, _ = warm(lambda it: it.cooling.break_off("home"))
    assert cooled.warm == "the watch was broken off: home"
    assert 30 <= cooled.watched_s < 60
    assert seen.lab.guard.latch.trip is not None
    assert [kind for kind, _ in seen.told] == ["cooling", "cooled"]


@pytest.mark.promise(62)
def test_a_watch_has_an_end_and_latches_the_line_that_is_warm_then(
    warm: Warm, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (LINE, COOLING):
        monkeypatch.setattr(f"{module}.COOL_WATCH_S_MAX", 60.0)
    cooled, seen, _ = warm(lambda it: None)
    assert "is not cold after" in cooled.warm
    assert cooled.watched_s == pytest.approx(60, abs=5)
    assert seen.lab.guard.latch.trip is not None


@pytest.mark.promise(62)
def test_a_trip_during_the_watch_is_handled_and_told(warm: Warm) -> None:
    def trips(it: Watched) -> None:
        trip(Cause.GAS_LEAK)(it.lab)
        it.lab.line.events.on_warning("a warning")
        it.cooling.break_off("enough")

    cooled, seen, records = warm(trips)
    assert (cooled.tripped, cooled.unverified) == ("planted", ())
    assert first(records, "trip").seq < first(records, "cooled").seq
    assert first(records, "cooling").body == {"warning": "a warning"}
    latched = seen.lab.guard.latch.trip
    assert latched is not None
    assert latched.cause is Cause.GAS_LEAK, "the latch holds the first cause"
