"""A walk over how a session can be closed, and its transcript: what its caller and its files get.

As `desk_walk`, for the end alone: each way to end, on a line and without one, open and
confidential, with a disk that takes files, one that does not, and a journal that is lost. To write
it anew, and read which lines have changed:

    python tests/closing_walk.py
"""

import asyncio
import itertools
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock, patch

from desk_walk import LABS, rounded
from labharness.core.clock import VIRTUAL_EPOCH, Chance
from labharness.core.errors import LabError
from labharness.core.vocabulary import Cause
from labharness.core.vocabulary.texts import Text
from labharness.core.vocabulary.trips import Trip
from labharness.journal import JournalFailed, SqliteJournal
from labharness.journal.artifacts import Artifacts
from labharness.journal.reading import read
from labharness.lab import read_lab
from labharness.lab.config.lab_facts import lab_facts_of
from labharness.lab.wiring.tasks import lab_facts_without_line
from labharness.line import HoldTooLong, Tripped
from labharness.protocols.hcp.messages import ResumeFrom
from labharness.protocols.hcp.terms import Rejected
from labharness.work.capability import Answer, ArtifactContent, NoAnswer, PartialResults
from labharness.work.desk import closing as closings
from labharness.work.desk.closing import Closing, Withdrawn
from labharness.work.desk.facts import LabFacts
from labharness.work.desk.results import ResultLog
from labharness.work.desk.session import Session
from labharness.work.plan import FailureKind, Status, StepFailed, StepRecord
from labharness.work.plan.instructions import Instruction
from task_walk import line

TRANSCRIPT = Path(__file__).parent / "data" / "closing_walk.txt"
HOT = Trip(
    Cause.OVER_TEMPERATURE, "cool", "furnace.temperature", 900.0, 7.0, Text("odd", bound=850)
)
SILENT = Trip(Cause.COMMUNICATION, "cool", "", None, 8.0, "nothing was heard")
MAP = ArtifactContent("map", "text/csv", b"x,y\n")
FILM = Answer({"layers": 1, "sure~/": 0.9}, (MAP,), finding="one layer", warnings=("dim",))
NO_FILM = NoAnswer("no film", {"layers": 0}, (MAP,), Text("advice.hold"))
NOTHING = NoAnswer("nothing was seen", {}, (), "")
SPECTRUM = [[384.0, 385.0], [2, 9]]
ENDS: tuple[BaseException, ...] = (
    Tripped(HOT),
    Tripped(SILENT),
    *(StepFailed("heat", "ramp", "it is slow", kind) for kind in FailureKind),
    HoldTooLong("an hour"),
    TimeoutError(),
    TimeoutError("no step for an hour"),
    ConnectionError(),
    ConnectionError("the port is gone"),
    Withdrawn("it may not begin"),
    ZeroDivisionError("ours"),
)
SHORT_ENDS = (ENDS[0], ENDS[2])


def step(name: str, stage: str, status: Status, *times_s: Any) -> StepRecord:
    """Return the record of a step that began and ended at some times."""
    what = Instruction(instruction_id=name, action="wait", timeout_s=9.0, stage=stage)
    return StepRecord(what, status, *times_s)


RECORDS = (
    step("load", "loading", Status.COMPLETED, 1.0, 2.0),
    step("heat", "ramp", Status.FAILED, 2.0, 4.0),
    step("cool", "end", Status.PENDING),
)


class Partial:
    """A capability that makes partial results."""

    log = "growth_log"
    asked = 0

    def so_far(self, records: object, measured: tuple[Any, ...]) -> PartialResults:
        self.asked += 1
        return PartialResults(
            {"spectra": len(measured), "asked": self.asked}, (replace(MAP, name="partial_map"),)
        )


class Ticking:
    """A clock that goes on by a second whenever it is looked at."""

    metadata = dict
    speed = 60.0
    stands = False

    def __init__(self, behind_s: float) -> None:
        self.behind_s, self._ticks = behind_s, itertools.count()

    def now_s(self) -> float:
        return 10.0

    def utc(self) -> Any:
        return self.utc_of(next(self._ticks))

    def utc_of(self, at_s: float) -> Any:
        return VIRTUAL_EPOCH + timedelta(seconds=at_s)


class Case:
    """One session that has run, with what is around it."""

    def __init__(self, folder: Path, facts: LabFacts, about: Mapping[str, Any]) -> None:
        folder.mkdir(parents=True)
        self.folder, self.told = folder, list[Any]()
        clock: Any = Ticking(about.get("behind_s", 0.0))
        self.journal = SqliteJournal(folder / "journal.sqlite", run={"session_id": "s"})
        chance = Chance(1)
        self.session = Session("s", self.journal, clock, chance.uuid4, self.tell)
        self.session.metadata["source_message_id"] = "m-1"
        self.session.become("RUNNING", "accepted")
        if about.get("confidential"):
            self.session.confide(encrypted=False)
        asyncio.run(self.measure(about.get("measured", True)))
        trips = SimpleNamespace(trips=[HOT, SILENT])
        events = SimpleNamespace(warnings=["unverified"])
        instruments = ("furnace",) if facts.has_line else ()
        bounded: Any = SimpleNamespace(
            clock=clock, trip_response=trips, instruments=instruments, events=events
        )
        made: Any = SimpleNamespace(made=2, last="ckpt-002")
        self.closing = Closing(
            *(self.session, bounded, Artifacts(folder / "artifacts", "s"), facts, chance, made),
            about.get("capability", type(None))(),
        )

    def tell(self, kind: str, data: Mapping[str, Any]) -> None:
        self.told.append([kind, data])

    async def measure(self, measured: bool) -> None:
        if measured:
            await ResultLog(self.journal, float).keep("map", "camera", "look", {}, SPECTRUM)

    def break_down(self, what: str) -> None:
        """Have the journal fail from now on, or the disk of the artifacts."""
        failing: Any = self.journal if what == "journal" else self.closing.artifacts
        error = JournalFailed("it is lost") if what == "journal" else OSError(28, "no space")
        for name in {"journal": ("append", "flush", "commit"), "put": ("put",)}.get(what, ()):
            setattr(failing, name, Mock(side_effect=error))

    def closed(self, message: Any) -> list[Any]:
        """Return all that came of it."""
        with suppress(JournalFailed):
            self.journal.close()
        kept = {
            path.name: path.read_text("utf-8")
            for path in sorted((self.folder / "artifacts").glob("*"))
        }
        records = [[each.kind, each.body] for each in read(self.folder / "journal.sqlite")]
        answer = [message.type, message.unknown, message.payload.model_dump(by_alias=True)]
        return [answer, self.told, kept, records, self.session.properties()]


CASES: Mapping[str, Mapping[str, Any]] = {
    "as it is": {"ends": ENDS},
    "behind": {"ends": ENDS[:1], "behind_s": 0.6},
    "not behind": {"ends": ENDS[:1], "behind_s": 0.5},
    "confidential": {"confidential": True},
    "of a capability": {"capability": Partial},
    "of a confidential capability": {"capability": Partial, "confidential": True},
    "of a bare capability": {"capability": object},
    "nothing measured": {"capability": object, "measured": False},
    "resumable": {"again": ResumeFrom(session_id="s", checkpoint_id="ckpt-002")},
    "prepared": {"ahead": True, "again": ResumeFrom(session_id="s", checkpoint_id="ckpt-002")},
    "prepared by a capability": {"ahead": True, "capability": Partial},
    "full": {"fails": "put", "capability": Partial},
    "full and confidential": {"fails": "put", "capability": Partial, "confidential": True},
    "lost": {"fails": "journal", "capability": Partial},
}
"""What is around a session that ends."""


def ways(case: Case, ends: tuple[BaseException, ...]) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Return each way in which a session can be closed."""
    closing = case.closing
    failed = partial(closing.failed, records=RECORDS, answer=None)
    for ended in ends:
        yield repr(ended), partial(failed, ended, summary=summary(case))
    for found, ended in itertools.product((NO_FILM, NOTHING), SHORT_ENDS):
        name = f"{found.reason} {ended!r}"
        yield name, partial(failed, ended, answer=found, summary=summary(case))
    yield "not begun", partial(failed, ENDS[5], records=RECORDS[2:], summary=summary(case, ()))
    for film in (FILM, replace(FILM, finding="", warnings=())):
        yield f"film {film.finding}", partial(closing.completed, film, summary(case))
    for missing, why in itertools.product(((), ("it is hot",)), ("enough", Text("advice.hold"))):
        yield f"aborted {why} {missing}", partial(closing.aborted, why, missing, RECORDS)
    refused = Rejected("invalid_input", "odd: 7", suggestion="ask otherwise")
    yield "rejected", partial(closing.rejected, refused)
    yield "withdrawn", partial(closing.withdrawn, refused)


def summary(case: Case, records: tuple[StepRecord, ...] = RECORDS) -> dict[str, Any]:
    return case.closing.summary(records, 61.5)


def closed(folder: Path, facts: LabFacts, about: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Close a session in each way, one after the other; return what came of it."""
    for number in itertools.count():
        case = Case(folder / str(number), facts, about)
        left = [*ways(case, about.get("ends", SHORT_ENDS))][number:]
        if not left:
            return
        name, way = left[0]
        found = itertools.chain([about.get("again")], itertools.repeat(None))
        with (
            patch.object(closings, "way_on", side_effect=found),  # a checkpoint is looked for once
            patch.object(closings, "LOG") as log,
        ):
            if about.get("ahead"):
                asyncio.run(case.closing.prepare(RECORDS))
            case.break_down(about.get("fails", ""))
            try:
                told = case.closed(way())
            except (LabError, OSError) as why:
                told = [repr(why), case.told]
            yield name, [told, [repr(each) for each in log.method_calls]]


def transcript(folder: Path, case: str) -> Iterator[tuple[str, list[Any]]]:
    """Return the lines of a case, each with all that its digest is of."""
    plan = read_lab(LABS / "annealing_furnace" / "lab.toml")
    for where, facts in (("line", lab_facts_of(plan)), ("none", lab_facts_without_line(plan))):
        for name, told in closed(folder / where, facts, CASES[case]):
            yield line(f"{case}, {where}: {name}", rounded(told), folder)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as at:
        lines = [each for case in CASES for each, _ in transcript(Path(at) / case, case)]
    TRANSCRIPT.write_text("\n".join(lines) + "\n", "utf-8")
    sys.stdout.write(f"{len(lines)} lines\n")
