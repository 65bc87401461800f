"""Runs that are kept no longer: how long by the class of their data, and how one is removed."""

import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Final

from labharness.core.clock import utc_text
from labharness.core.files.chained import BrokenChain, append_chained, read_chained
from labharness.core.files.durable import sync_folder
from labharness.core.vocabulary.texts import Text
from labharness.journal import JournalFailed
from labharness.journal.access_log import data_class_of
from labharness.journal.encryption import KeyMissing
from labharness.journal.reading import read_after, run_header, verify_file
from labharness.lab.config.lab_file import RetentionTable
from labharness.work.desk.folder import ANSWER_NAME, JOURNAL_NAME

REMOVED_NAME: Final = "removed.jsonl"
"""The log of removed runs, a chain beside their folders."""

UNSEEN_MAX: Final = timedelta(days=7)
"""Longest time of which nothing in the folder knows: behind a longer one the clock may have jumped.
Of runs whose days are few it is half of them."""

CLOCK: Final = "clock"
"""Of a line in the log that says how far the clock is relied on."""

LEAVING: Final = ".removed-"
"""Beginning of the name of a folder that is being removed: nothing reads it as a run."""


@dataclass(frozen=True, slots=True)
class KeptRun:
    """A run, and until when it is kept.

    Attributes:
        folder: Its folder.
        data_class: Of its data.
        session_id: Of its session.
        ended_at: When its journal was written last, UTC.
        until: From when on it may be removed, UTC; ``None`` for never.
        why: Why it stays whatever its age; ``""`` for no reason.
    """

    folder: Path
    data_class: str
    session_id: str
    ended_at: datetime
    until: datetime | None
    why: str = ""

    def over(self, now: datetime) -> bool:
        """Return whether it may be removed."""
        return not self.why and self.until is not None and now >= self.until


def kept_runs(runs: Path, retention: RetentionTable) -> Iterator[KeptRun]:
    """Return every run in a folder of runs, by name.

    Raises:
        OSError: The folder cannot be read.
    """
    for folder in sorted(runs.iterdir()):
        journal = folder / JOURNAL_NAME
        if folder.name.startswith(LEAVING) or folder.is_symlink() or not journal.is_file():
            continue
        yield _kept(folder, journal, retention)


def _kept(folder: Path, journal: Path, retention: RetentionTable) -> KeptRun:
    ended_at = datetime.fromtimestamp(journal.stat().st_mtime, UTC)  # reading leaves it
    data_class = data_class_of(journal)
    days = retention.days(data_class)
    until = None if days is None else ended_at + timedelta(days=days)
    try:
        header = run_header(journal)
        ended = bool(header.get("by_hand")) or any(
            each.kind == "terminal" for each in read_after(journal, 0)
        )
    except KeyMissing:  # its answer stands beside it, unread
        ended = (folder / ANSWER_NAME).exists()
    except JournalFailed as why:
        return KeptRun(folder, data_class, "", ended_at, until, str(why))
    session_id = str(header.get("session_id", ""))
    open_ = "" if ended else Text("retention.open")
    return KeptRun(folder, data_class, session_id, ended_at, until, open_)


def remove_run(run: KeptRun, *, by: str, reason: str, now: datetime) -> None:
    """Log that a run is removed, with the head of its journal, and remove its folder.

    The log comes first, and the folder is renamed before it is emptied: a power cut leaves either a
    whole run or none.

    Args:
        run: The run.
        by: The person who removes it.
        reason: Why.
        now: World time.

    Raises:
        ValueError: It may not be removed yet.
        OSError: The disk does not take it.
    """
    if not run.over(now):
        raise ValueError(f"{run.folder} is kept")
    head = verify_file(run.folder / JOURNAL_NAME).head
    said = {
        "at": utc_text(now),
        "run": run.folder.name,
        "session_id": run.session_id,
        "data_class": run.data_class,
        "ended_at": utc_text(run.ended_at),
        "records": head.seq,
        "head": head.hash,
        "by": by,
        "reason": reason,
    }
    append_chained(run.folder.parent / REMOVED_NAME, said)
    leaving = run.folder.with_name(f"{LEAVING}{run.folder.name}")
    run.folder.rename(leaving)
    sync_folder(leaving.parent)
    shutil.rmtree(leaving)


def why_clock_is_doubted(
    over: Sequence[KeptRun], found: Iterable[KeptRun], runs: Path, now: datetime
) -> str:
    """Return why runs are not to be removed by this clock; ``""`` where it may be relied on.

    A clock that jumped makes a new run old. So runs or removals must have left traces since the
    oldest run that would go has ended, or since a person has checked the clock.

    Args:
        over: The runs that would go.
        found: All runs of the folder.
        runs: The folder.
        now: World time.

    Raises:
        OSError: The log of the folder cannot be read.
    """
    if not over:
        return ""
    seen, since = [each.ended_at for each in found], min(each.ended_at for each in over)
    with suppress(BrokenChain):  # lines behind the damage do not count
        for body, _ in read_chained(runs / REMOVED_NAME):
            seen.append(datetime.fromisoformat(body["at"]))
            since = max(since, seen[-1]) if body.get(CLOCK) == "checked" else since
    days = min(each.until - each.ended_at for each in over if each.until is not None)
    most = min(UNSEEN_MAX, days / 2)
    for before, after in pairwise(sorted({now, since, *(t for t in seen if since < t < now)})):
        if after - before > most:
            return Text(
                "retention.clock",
                runs=str(runs),
                now=utc_text(now),
                before=utc_text(before),
                after=utc_text(after),
                most_d=most / timedelta(days=1),
            )
    return ""


def log_clock(runs: Path, *, checked: bool, by: str, now: datetime) -> None:
    """Leave a trace of the time, which a later removal may rely on.

    Args:
        runs: The folder of the runs.
        checked: The person has compared the clock with another one.
        by: Name of the person.
        now: World time.

    Raises:
        OSError: The disk does not take it.
    """
    said = {"at": utc_text(now), CLOCK: "checked" if checked else "seen", "by": by}
    append_chained(runs / REMOVED_NAME, said)


def remove_left_over(runs: Path) -> None:
    """Remove what a removal left that a power cut broke off; of a link the link alone.

    Raises:
        OSError: The disk does not take it.
    """
    for each in sorted(runs.glob(f"{LEAVING}*")):
        if each.is_dir() and not each.is_symlink():
            shutil.rmtree(each)
        else:
            each.unlink()
