"""``labharness report``, ``history`` and ``compare``: runs as people read them."""

import argparse
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from labharness.core.vocabulary.durations import clock_text
from labharness.faces.cli import EXIT_COMPLETED, EXIT_FAILED, EXIT_USAGE
from labharness.faces.cli.show import BadPath, complain, looking, one_line, say, write_whole
from labharness.faces.report.answer_face import output_text
from labharness.faces.report.document import GENERATOR
from labharness.faces.report.facts import RunFacts
from labharness.faces.report.reading import read_run, read_summary
from labharness.journal import JournalFailed
from labharness.work.desk.folder import JOURNAL_NAME, REPORT_NAME

__all__ = ["is_another", "report", "write_report"]

CELL_CHARACTERS_MAX = 60
HEAD_BYTES = 500  # in these a report says that it is one


class _NoRun(ValueError):
    """A folder holds no run."""


class _NoPlace(ValueError):
    """A page cannot be written where it is wanted."""


def report(chosen: argparse.Namespace) -> int:
    """Carry out one of the three commands."""
    try:
        if chosen.command == "report":
            return _report(Path(chosen.folder), chosen.out, chosen.lang or "en")
        if chosen.command == "history":
            return _history(Path(chosen.runs))
        return _compare(Path(chosen.one), Path(chosen.other), chosen.out, chosen.lang)
    except (_NoRun, _NoPlace) as why:
        complain(f"labharness {chosen.command}: {why}")
        return EXIT_USAGE


def _run(folder: Path) -> RunFacts:
    journal = folder / JOURNAL_NAME
    with looking(journal):
        there = journal.is_file()
    if not there:
        raise _NoRun(f"{folder} holds no {JOURNAL_NAME}")
    return read_run(journal)


def write_report(folder: Path) -> None:
    """Leave the report of a run in its folder."""
    from labharness.faces.report.page import page

    write_whole(folder / REPORT_NAME, page(_run(folder)).encode())


def is_another(path: Path) -> bool:
    """Return whether a file is there that is no page: a journal or an answer is easily named."""
    try:
        with path.open("rb") as file:
            return f'content="{GENERATOR}"'.encode() not in file.read(HEAD_BYTES)
    except OSError:
        return False  # it is not there, or will not be written either


def _report(folder: Path, out: str | None, language: str) -> int:
    from labharness.faces.report.page import page

    facts = _run(folder)
    path = Path(out) if out else folder / REPORT_NAME
    _refuse_another(path)
    _put(path, page(facts, language))
    holds = _holds("report", folder, facts)
    say(str(path))
    return EXIT_COMPLETED if holds else EXIT_FAILED


def _refuse_another(path: Path) -> None:
    with looking(path):
        if path.is_file() and is_another(path):
            raise _NoPlace(f"{path} is in the way: it is no report")


def _put(path: Path, html: str) -> None:
    try:
        write_whole(path, html.encode())
    except OSError as why:
        raise _NoPlace(f"{path}: {why.strerror}") from why


def _holds(command: str, folder: Path, facts: RunFacts) -> bool:
    """Return whether a run is as it was written; complain of what is not."""
    if not facts.chain.ok:
        complain(f"labharness {command}: {folder / JOURNAL_NAME}: {facts.chain.reason}")
    changed = ", ".join(each.name for each in facts.artifacts if not each.holds)
    if changed:
        complain(f"labharness {command}: {folder}: missing or changed since the run: {changed}")
    return facts.chain.ok and not changed


def _history(runs: Path) -> int:
    with looking(runs):
        if not runs.is_dir():
            raise _NoRun(f"{runs} is no folder; name the one that holds the runs: --runs DIR")
        folders = sorted(runs.iterdir())
    journals: list[Path] = []
    unread = 0
    for folder in folders:
        journal = folder / JOURNAL_NAME
        try:
            with looking(journal):
                journals += [journal] if journal.is_file() else []
        except BadPath as why:  # another account's, perhaps
            complain(f"labharness history: {why}")
            unread += 1
    if not journals:
        say(f"no run in {runs}{os.sep}" if not unread else f"no run in {runs}{os.sep} can be read")
        return EXIT_FAILED if unread else EXIT_COMPLETED
    rows: list[tuple[str, ...]] = []
    rows.append(("run", "began (lab time)", "session", "capability", "ending", "answer", "took"))
    for journal in journals:
        try:
            rows.append(_row(journal.parent.name, read_summary(journal)))
        except JournalFailed as why:
            complain(f"labharness history: {why}")
            unread += 1
    _print(rows)
    return EXIT_FAILED if unread else EXIT_COMPLETED


def _row(folder: str, summary: Mapping[str, Any]) -> tuple[str, ...]:
    header = summary["header"]
    return (
        folder,
        str(header.get("epoch", ""))[:16],
        str(header.get("session_id", ""))[:8],
        str(summary["asked"].get("capability", "")),
        _ended(summary),
        _by_hand(summary) if header.get("by_hand") else _answer(summary["answer"]),
        clock_text(summary["duration_s"]),
    )


def _ended(summary: Mapping[str, Any]) -> str:
    """Return how a run ended, or in which state its journal leaves it."""
    if summary["header"].get("by_hand"):
        return "by hand"
    if summary["ending"] == "none" and summary["state"]:
        return {"PAUSED": "held"}.get(summary["state"], f"left {summary['state'].lower()}")
    return str(summary["ending"]).removeprefix("task_")


def _by_hand(summary: Mapping[str, Any]) -> str:
    refused = f"{summary['refused']} refused; " if summary["refused"] else ""
    return refused + "; ".join(summary["by_hand"])


def _answer(answer: Mapping[str, Any]) -> str:
    outputs = answer.get("outputs")
    if isinstance(outputs, Mapping):
        shown = [
            output_text(name, value)
            for name, value in outputs.items()
            if isinstance(value, int | float | str)
        ]
        return ", ".join(shown)
    return str(answer.get("error_code") or answer.get("reason_code") or "")


def _compare(one: Path, other: Path, out: str | None, language: str | None) -> int:
    from labharness.faces.report.compare import differences

    if language is not None and out is None:
        raise _NoPlace("--lang is of the page: name it, --out FILE")
    both = _run(one), _run(other)
    page = None if out is None else Path(out)
    if page is not None:
        _refuse_another(page)
    found = differences(*both)
    part = ""
    for each in found:
        if each.part != part:
            part = each.part
            say(part)
        say(f"  {_cell(each.name):42} {_cell(each.one)}  |  {_cell(each.other)}")
    if not found:
        say("no difference")
    holds = [_holds("compare", *each) for each in zip((one, other), both, strict=True)]
    if page is not None:
        from labharness.faces.report.both_runs import both_runs

        _put(page, both_runs(*both, (str(one), str(other)), language or "en"))
        say(str(page))
    return EXIT_COMPLETED if all(holds) and not found else EXIT_FAILED


def _print(rows: list[tuple[str, ...]]) -> None:
    shown = [[_cell(each) for each in row] for row in rows]
    widths = [max(len(row[at]) for row in shown) for at in range(len(rows[0]))]
    for row in shown:
        line = "  ".join(each.ljust(width) for each, width in zip(row, widths, strict=True))
        say(line.rstrip())


def _cell(text: str) -> str:
    clean = one_line(text)
    too_long = len(clean) > CELL_CHARACTERS_MAX
    return clean[: CELL_CHARACTERS_MAX - 1] + "…" if too_long else clean
