"""The house's interfaces: its workers, the orders that they take, and the folders of the runs."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Final, Protocol

from labharness.core.errors import LabError
from labharness.core.files.durable import write_durably
from labharness.core.files.named import said_in
from labharness.core.vocabulary.texts import CodedError, Text
from labharness.journal.chain import Record
from labharness.journal.layout import JournalEmpty
from labharness.journal.reading import read_after
from labharness.work.desk.folder import JOURNAL_NAME

LEFT_NAME: Final = "left.json"
"""Written into a run's folder by its worker when the run is over, however it ended."""

HOUSE_FILE: Final = "house.json"
"""In the state directory: where the runs are, for readers that come while no house is up."""

SESSION: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""A session id as we mint it; any other text could name another folder."""

RECORDS_MAX: Final = 256
"""Most records of a run's journal that are held at once, though a reader may be a week behind."""


WORKER: Final = "line"
DESK: Final = "desk"
"""Worker of a task whose capability needs no instruments: the house itself."""


class TaskRefused(CodedError, RuntimeError, code="task_refused"):
    """The house does not do what was asked of a task; the message says why."""


class BadOrder(CodedError, ValueError, code="bad_order"):
    """The line owner cannot take an order; the message names what is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOrder:
    """One run that the house asks of the line owner; the same order twice makes one run.

    Attributes:
        run_id: Its session.
        folder: Its own folder, which nothing else writes to.
        submit: File of the ``task_submit`` message.
        seed: Of a simulated run; ``None`` takes the default.
        approval_wait_s: World time to wait for persons; ``None`` takes the default.
        resume_from: Session and checkpoint to go on from, as in ``task_submit``.
    """

    __pydantic_config__: ClassVar = {"extra": "forbid", "strict": True}
    run_id: str
    folder: str
    submit: str
    seed: int | None = None
    approval_wait_s: float | None = None
    resume_from: Mapping[str, str] | None = None


def runs_of(home: Path) -> Path | None:
    """Return the folder of the runs of a lab's house; ``None`` where there was never one."""
    found = said_in(home / HOUSE_FILE)
    return Path(found["runs"]) if isinstance(found, dict) and "runs" in found else None


def order_from_json(body: Mapping[str, Any], home: Path) -> RunOrder:
    """Return the order that a request holds: of a run in the folder of the lab's own runs.

    Args:
        body: The request.
        home: The lab's state directory.

    Raises:
        BadOrder: A field is missing, unknown or of another type, or names another folder.
    """
    from pydantic import TypeAdapter, ValidationError  # who only looks for runs needs none

    given = {name: value for name, value in body.items() if name not in ("do", "account")}
    try:
        order = TypeAdapter(RunOrder).validate_json(json.dumps(given))
    except ValidationError as why:
        raise BadOrder("order.wrong", name=str(why.errors()[0]["loc"][0])) from None
    if wrong := next(_elsewhere(order, home), None):
        raise BadOrder("order.wrong", name=wrong)
    return order


def _elsewhere(order: RunOrder, home: Path) -> Iterator[str]:
    runs, point = runs_of(home), order.resume_from
    if not SESSION.fullmatch(order.run_id):
        yield "run_id"
    if runs is None or Path(order.folder).resolve() != runs.resolve() / order.run_id:
        yield "folder"
    if Path(order.submit).resolve().parent != (home / "tasks").resolve():
        yield "submit"
    if point is not None and point.keys() != {"session_id", "checkpoint_id"}:
        yield "resume_from"


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerStatus:
    """The state of the line owner.

    Attributes:
        pid: Of its process; another number is another owner, which knows no earlier run.
        run_id: The run that has the line, also while its line cools; ``""`` where it is idle.
        speed: Lab seconds a real second; ``None`` in virtual time.
        leaving: It takes no more runs, and ends when the line is free.
    """

    pid: int
    run_id: str
    speed: float | None
    leaving: bool = False


def why_away(status: OwnerStatus | None, *, silent: bool) -> str:
    """Return why no line owner will take a run; ``""`` where one will.

    Args:
        status: Of the line owner; ``None`` where it does not answer.
        silent: It has not answered for so long that there is none.
    """
    if status is not None:
        return Text("house.owner_leaves", run_id=status.run_id) if status.leaving else ""
    return Text("house.owner_away") if silent else ""


class Worker(Protocol):
    """A worker that carries out runs, as the house sees it."""

    def held(self) -> str:
        """Return what keeps it from a run (a person, a latch); ``""`` where it is free."""

    def begin(self, order: RunOrder) -> None:
        """Ask for a run; an order that it has taken before changes nothing."""

    def ask(self, run_id: str, do: str, reason: str, by: str = "") -> None:
        """Ask for ``abort`` of a run, or for a person: ``hold`` or ``resume``."""

    def confirm(self, run_id: str, step: str, by: str) -> str:
        """Confirm to a run that its manual step is done; return the step."""


class LineOwnerWorker(Worker, Protocol):
    """The line owner as the house sees it."""

    def status(self) -> OwnerStatus | None:
        """Return its state; ``None`` where it does not answer."""

    def latch_reason(self) -> str:
        """Return why its line takes no run until a person has reset it; ``""`` if it is open."""


class DeskWorker(Worker, Protocol):
    """The worker of tasks that need no instruments: it has several runs at once."""

    def status_of(self, run_id: str) -> OwnerStatus:
        """Return its state as far as one run is concerned, which it names if it carries it out."""


class RunFiles(Protocol):
    """The folders of the runs, as far as the house reads them."""

    def folder(self, run_id: str) -> str:
        """Return the folder of a run."""

    def begun(self, run_id: str) -> bool:
        """Return whether the run has left anything: a journal, or the reason why it has none."""

    def records(self, run_id: str, after: int) -> Iterable[Record]:
        """Return the committed records of its journal after one, each as it is asked for."""

    def left(self, run_id: str) -> tuple[str, str]:
        """Return code and reason of the error that ended it outside its journal, or nothing."""


@dataclass(frozen=True, slots=True)
class RunFolders:
    """The runs of one house, each in a folder named like its session.

    Attributes:
        root: Where the folders are.
    """

    root: Path

    def folder(self, run_id: str) -> str:
        """Return the folder of a run."""
        return str(self.root / run_id)

    def begun(self, run_id: str) -> bool:
        """Return whether the run has left anything."""
        return has_begun(self.root / run_id)

    def records(self, run_id: str, after: int) -> Iterator[Record]:
        """Return the committed records of its journal after one, each as it is asked for.

        Raises:
            JournalFailed: The journal cannot be read.
        """
        path = self.root / run_id / JOURNAL_NAME
        if path.exists():
            with suppress(JournalEmpty):  # its writer has just made the file
                yield from read_after(path, after)

    def left(self, run_id: str) -> tuple[str, str]:
        """Return code and reason of the error that ended it outside its journal, or nothing."""
        left = said_in(self.root / run_id / LEFT_NAME)
        if not isinstance(left, dict):
            return "", ""
        return str(left.get("error", "")), str(left.get("why", ""))


def has_begun(folder: Path) -> bool:
    """Return whether a run has left anything in its folder: a journal, or how it ended."""
    return any((folder / name).exists() for name in (JOURNAL_NAME, LEFT_NAME))


def leave_end(folder: Path, run_id: str, why: Exception | None, *, told: bool = True) -> None:
    """Write the end of a run into its folder, however it ended.

    Args:
        folder: The folder of the run.
        run_id: Its session.
        why: The error that ended it outside its journal; ``None`` for none.
        told: Whether the words of the error are written too.
    """
    left = {"run_id": run_id, "error": "", "why": ""}
    if why is not None:
        code = why.code if isinstance(why, LabError) else "internal_error"
        left |= {"error": code, "why": str(why) if told else ""}
    with suppress(OSError):  # a full disk: the house finds no end, and says that it is lost
        folder.mkdir(parents=True, exist_ok=True)
        write_durably(folder / LEFT_NAME, json.dumps(left))


def next_records(runs: RunFiles, run_id: str, after: int) -> list[Record]:
    """Return the next `RECORDS_MAX` records of a run's journal; fewer are all that there are.

    Raises:
        JournalFailed: The journal cannot be read.
    """
    return list(islice(runs.records(run_id, after), RECORDS_MAX))
