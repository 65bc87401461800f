"""The log of reads of a run's results: who read what, when and how.

It is a chain of its own beside the journal, so that reading changes no run's head (HCP layer 3,
data classification: T2 and above take access logging). For restricted data (T4) it holds who may
read, and who has approved that: no other person reads.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from labharness.core.clock import utc_text, wall_clock_utc
from labharness.core.errors import LabError
from labharness.core.files.chained import BrokenChain, append_chained, read_chained
from labharness.core.vocabulary.persons import bad_name
from labharness.core.vocabulary.texts import CodedError, Text
from labharness.journal.chain import ENCRYPTED
from labharness.journal.layout import JournalFailed
from labharness.journal.reading import read, run_header

ACCESS_NAME: Final = "access.jsonl"
UNLOGGED: Final = "T1"
"""Public data, of which reads are not logged."""
UNDECLARED: Final = "T2"
"""The class of data whose submission states none, or cannot be read."""
APPROVED: Final = "T4"
"""Restricted data, of which each reader is approved by another person."""
BEGINNING: Final = 20
"""Records in which a submission is looked for."""


class AccessNotLogged(CodedError, OSError, code="access_not_logged"):
    """A read of results cannot be logged, and so is not allowed."""


class AccessNotApproved(AccessNotLogged, code="access_not_approved"):
    """Restricted results may not be read by a person or caller without an approval."""


class BadGrant(LabError, ValueError, code="bad_grant"):
    """An approval of a reader does not count; the message says why."""


@dataclass(frozen=True, slots=True)
class Grant:
    """An approval: one reader may read the results of a run.

    Attributes:
        at: UTC.
        approved: The reader: an account of the machine, or a caller's id.
        by: The person who has approved.
        account: Of that person.
        reason: Why.
        session_id: Of the run.
        signature: With that person's key, where the lab has approvers.
    """

    at: str
    approved: str
    by: str
    account: str
    reason: str
    session_id: str = ""
    signature: str = ""


@dataclass(frozen=True, slots=True)
class Access:
    """One read.

    Attributes:
        at: UTC.
        reader: An account of the machine, or a caller's id.
        via: The command or face by which it was read.
        what: The address of an artifact, or the kind of result.
        data_class: Of the run.
    """

    at: str
    reader: str
    via: str
    what: str
    data_class: str


def log_access(
    folder: Path,
    *,
    data_class: str,
    reader: str,
    via: str,
    what: str,
    of_results: bool = True,
    elsewhere: Path | None = None,
) -> None:
    """Log a read of a run's results before they are shown; public data takes none.

    Args:
        folder: The run's folder.
        data_class: Of the run.
        reader: An account of the machine, or a caller's id.
        via: The command or face by which it is read.
        what: The address of an artifact, or the kind of result.
        of_results: Results are shown, and not only where they are.
        elsewhere: A folder of the reader's own, for a run's folder that it may not write to.

    Raises:
        AccessNotLogged: No log takes it.
        AccessNotApproved: The data are restricted, and no person has approved this reader.
    """
    if data_class == UNLOGGED:
        return
    if data_class == APPROVED and of_results and not _is_approved(folder, reader):
        raise AccessNotApproved(Text("access.not_approved", path=str(folder), reader=reader))
    said = asdict(Access(utc_text(wall_clock_utc()), reader, via, what, data_class))
    try:
        append_chained(folder / ACCESS_NAME, said)
    except OSError as why:
        path, reason = str(folder / ACCESS_NAME), why.strerror or str(why)
        failed = AccessNotLogged("access.not_logged", path=path, why=reason)
        if elsewhere is None:
            raise failed from None
        try:
            elsewhere.mkdir(parents=True, exist_ok=True, mode=0o700)
            append_chained(elsewhere / ACCESS_NAME, {**said, "run": str(folder)})
        except OSError:
            raise failed from None


def grant_access(folder: Path, grant: Grant) -> None:
    """Approve that somebody else reads the results of a run.

    Raises:
        BadGrant: A person approves their own read, or a name cannot be taken.
        OSError: The log does not take it.
    """
    if why := bad_name(grant.by) or bad_name(grant.approved):
        raise BadGrant(why)
    if grant.approved in (grant.by, grant.account):
        raise BadGrant(Text("access.own", reader=grant.approved))
    append_chained(folder / ACCESS_NAME, asdict(grant))


def grants(folder: Path) -> Iterator[Grant]:
    """Return who may read the results of a run; raises as `accesses`."""
    for body, _ in read_chained(folder / ACCESS_NAME):
        if "approved" in body:
            yield Grant(*(str(body.get(name, "")) for name in Grant.__dataclass_fields__))


def _is_approved(folder: Path, reader: str) -> bool:
    try:
        return any(each.approved == reader for each in grants(folder))
    except (BrokenChain, OSError):
        return False


def accesses(folder: Path) -> Iterator[Access]:
    """Return the reads of a run's results, the oldest first.

    Raises:
        BrokenChain: A line of the log is not the one that was written.
        OSError: It cannot be read.
    """
    for body, _ in read_chained(folder / ACCESS_NAME):
        if "approved" not in body:
            yield Access(*(str(body.get(name, "")) for name in Access.__dataclass_fields__))


def data_class_of(journal: Path) -> str:
    """Return the data class of a run, as the header or the submission in its journal states it."""
    with suppress(JournalFailed, OSError):
        if encrypted := run_header(journal).get(ENCRYPTED):
            return str(encrypted)
        for record, _ in zip(read(journal), range(BEGINNING), strict=False):
            if record.kind == "submitted":
                constraints = record.body["payload"].get("constraints") or {}
                return str(constraints.get("data_classification") or UNDECLARED)
    return UNDECLARED
