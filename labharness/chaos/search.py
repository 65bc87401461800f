"""Play many scenarios in worker processes, count hours, and reduce a violation to its faults."""

import json
import os
import signal
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import closing
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import count
from multiprocessing import connection, get_context, parent_process
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from labharness.chaos.scenario import Fault, Scenario, draw, write_scenario
from labharness.chaos.table import faults_of
from labharness.chaos.world import Verdict, play
from labharness.core.files.named import open_named
from labharness.core.files.tables import all_errors
from labharness.lab.config.lab_plan import read_lab

PLAYS_MAX = 100  # six faults take at most a few dozen


def shrink(scenario: Scenario, breaks: Callable[[Scenario], bool]) -> Scenario:
    """Remove faults while the scenario still breaks its rule.

    Args:
        scenario: A scenario that breaks a rule.
        breaks: Plays a smaller scenario and returns whether it still breaks the rule.

    Returns:
        A scenario from which no single fault can be removed; Zeller's ddmin, with complements only.
    """
    plays = 0

    def still(faults: Sequence[Fault], second_growth: bool) -> bool:
        nonlocal plays
        plays += 1
        smaller = replace(scenario, faults=tuple(faults), second_growth=second_growth)
        return plays <= PLAYS_MAX and breaks(smaller)

    faults = scenario.faults
    second = scenario.second_growth and not still(faults, False)
    parts = 2
    while len(faults) >= 1 and parts >= 1:
        size = max(1, -(-len(faults) // parts))
        for begin in range(0, len(faults), size):
            rest = faults[:begin] + faults[begin + size :]
            if still(rest, second):
                faults, parts = rest, max(1, min(parts, len(rest)))
                break
        else:
            if size == 1:
                break
            parts = min(len(faults), 2 * parts)
    return replace(scenario, faults=faults, second_growth=second)


WORKERS = 2
AHEAD = 2  # scenarios queued per worker, so that no worker waits for another
SCENARIOS_A_WORKER = 50  # then the worker is replaced, so that memory does not add up
VIOLATIONS_MAX = 20  # enough to stop a search


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """The settings of a search.

    Attributes:
        lab: The lab file.
        hours: Lab time to simulate, h.
        seed: Seed of all scenarios.
        rate: Factor on the drawn rates of faults.
    """

    lab: str
    hours: float
    seed: int
    rate: float = 1.0


Count = Annotated[int, Field(ge=0)]
Amount = Annotated[float, Field(ge=0)]


def _whole(violation: dict[str, Any]) -> dict[str, Any]:
    if not {"name", "violation", "scenario", "timeline"} <= set(violation):
        raise ValueError("a violation has a name, a violation, a scenario and a timeline")
    return violation


@dataclass(slots=True)
class Tally:
    """The results of a search so far.

    Attributes:
        seed: Seed of the search.
        rate: Rate of the search.
        lab_digest: Over lab file, envelope and faults file; a search with another one cannot be
            resumed.
        lab_s: Lab time simulated, s.
        done: Numbers of the finished scenarios, which may have gaps.
        drawn: Number of faults drawn for them.
        injected: Number of those that began; a run may end before one comes.
        demands: Seconds in which a hardware safeguard had to answer, by rule.
        violations: Scenario, rule, detail, timeline and digest of each.
        played_by: The versions of labharness that were used, the latest last.
    """

    __pydantic_config__: ClassVar = {"strict": True, "extra": "forbid", "allow_inf_nan": False}

    seed: Count
    rate: Amount
    lab_digest: str
    lab_s: Amount = 0.0
    done: set[Count] = field(default_factory=set)
    drawn: Count = 0
    injected: Count = 0
    demands: dict[str, Amount] = field(default_factory=dict)
    violations: list[Annotated[dict[str, Any], AfterValidator(_whole)]] = field(
        default_factory=list
    )
    played_by: list[str] = field(default_factory=list)

    def take(self, number: int, said: dict[str, Any]) -> None:
        """Add one scenario."""
        self.done.add(number)
        self.lab_s += said["lab_s"]
        self.drawn += said["drawn"]
        self.injected += said["injected"]
        for rule, seconds in said["demands"].items():
            self.demands[rule] = self.demands.get(rule, 0.0) + seconds
        if said["violation"] is not None:
            self.violations.append(said)

    def write(self, path: Path) -> None:
        """Write it completely or not at all.

        Raises:
            OSError: It cannot be written.
        """
        body = {**asdict(self), "done": sorted(self.done)}
        fresh = path.with_name(f"{path.name}.part")
        fresh.write_text(json.dumps(body, indent=1) + "\n", "utf-8")
        fresh.replace(path)

    @classmethod
    def read(cls, path: Path) -> "Tally":
        """Return the results kept in a file.

        Raises:
            ValueError: The file does not hold results of a search.
            OSError: It cannot be read.
        """
        with open_named(path) as file:
            data = file.read()
        try:
            kept = TypeAdapter(cls).validate_json(data)
        except ValidationError as why:
            said = all_errors(why, {}, cls)
            raise ValueError(f"{path} is not a state of a search: {said}") from None
        missing = {each.name for each in fields(cls)} - set(json.loads(data))
        if missing:
            raise ValueError(f"{path} is not a state of a search: it has no {min(missing)}")
        return kept


def search(
    asked: Search,
    tally: Tally,
    told: Callable[[Tally, dict[str, Any]], None],
    workers: int,
    waits: Callable[[], None] = lambda: None,
) -> Tally:
    """Search until the hours are full or enough violations are found; update ``tally`` on the way.

    Args:
        asked: The settings.
        tally: The results so far; a resumed search continues from them.
        told: Called after each scenario.
        workers: Number of processes; 1 searches in this one.
        waits: Called at a stop while other processes still play: their growths are finished, and
            dropped.

    Raises:
        BrokenProcessPool: A worker was killed; the results until then are complete.
    """
    with closing(_played(asked, tally, workers, waits)) as played:
        for number, said in played:
            tally.take(number, said)
            told(tally, said)
    return tally


def _played(
    asked: Search, tally: Tally, workers: int, waits: Callable[[], None]
) -> Generator[tuple[int, dict[str, Any]], None, None]:
    fresh = (number for number in count() if number not in tally.done)

    def enough() -> bool:
        return tally.lab_s >= asked.hours * 3600.0 or len(tally.violations) >= VIOLATIONS_MAX

    if workers == 1:
        while not enough():
            number = next(fresh)
            yield number, play_one(asked, number)
        return
    pool = ProcessPoolExecutor(
        workers,
        mp_context=get_context("spawn"),
        initializer=_belong_to_the_parent,
        max_tasks_per_child=SCENARIOS_A_WORKER,
    )
    running: dict[Future[dict[str, Any]], int] = {}
    try:
        while not enough():
            while len(running) < workers * AHEAD:
                number = next(fresh)
                running[pool.submit(play_one, asked, number)] = number
            ended, _ = wait(running, return_when=FIRST_COMPLETED)
            for each in sorted(ended, key=running.__getitem__):
                yield running.pop(each), each.result()
    except (KeyboardInterrupt, GeneratorExit):
        waits()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def play_one(asked: Search, number: int) -> dict[str, Any]:
    """Draw and play one scenario of a search, in a temporary folder."""
    plan = read_lab(Path(asked.lab))
    scenario = draw(asked.seed, number, asked.rate, faults_of(plan))
    with TemporaryDirectory(prefix="labharness-chaos-") as folder:
        return told_of(play(plan, scenario, Path(folder)))


def told_of(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as JSON values."""
    violation = verdict.violation
    return {
        "name": verdict.scenario.name,
        "lab_s": verdict.lab_s,
        "drawn": len(verdict.scenario.faults),
        "injected": verdict.injected,
        "digest": verdict.digest,
        "demands": dict(verdict.demands),
        "violation": None if violation is None else asdict(violation),
        "scenario": json.loads(write_scenario(verdict.scenario)),
        "timeline": [list(each) for each in verdict.timeline],
    }


def _belong_to_the_parent() -> None:
    """Leave Ctrl-C to the parent, and end when the parent was killed: no pipe reports that."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    if parent is not None:
        Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    connection.wait([sentinel])
    os._exit(1)
