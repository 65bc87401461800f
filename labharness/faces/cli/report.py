"""``labharness report``, ``history`` and ``compare``: pages and tables about recorded runs."""

import argparse
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from labharness.core.vocabulary.durations import clock_text
from labharness.core.vocabulary.texts import Text, several
from labharness.faces.cli import EXIT_COMPLETED, EXIT_FAILED
from labharness.faces.cli.records import journal_in, results_in
from labharness.faces.cli.show import (
    BadPath,
    BadUse,
    aligned,
    looking,
    one_line,
    say,
    say_each,
    warn,
    write_whole,
)
from labharness.faces.report.answer_face import output_text
from labharness.faces.report.document import GENERATOR
from labharness.faces.report.facts import RunFacts
from labharness.faces.report.reading import read_run, read_summary
from labharness.journal import JournalFailed
from labharness.journal.access_log import AccessNotLogged
from labharness.journal.encryption import stated_class
from labharness.work.desk.folder import JOURNAL_NAME, REPORT_NAME
from labharness.work.desk.redaction import referred_in

CELL_CHARACTERS_MAX = 60
HEAD_BYTES = 500  # these hold the mark of a report
COLUMNS = (
    "cli.run",
    "cli.began",
    "cli.session",
    "cli.capability",
    "cli.ending",
    "cli.the_answer",
    "cli.took",
)


def write_report(folder: Path) -> None:
    """Write the report of a run into its folder."""
    from labharness.faces.report.page import page

    write_whole(folder / REPORT_NAME, page(read_run(journal_in(folder))).encode())


def report(chosen: argparse.Namespace) -> int:
    """Write the report of a run; return 1 if one of its files has changed."""
    from labharness.faces.report.page import page

    folder = Path(chosen.folder)
    if chosen.out is None and stated_class(folder):
        raise BadUse("encrypted.report", folder=str(folder))
    facts = read_run(results_in(folder, "report"))
    path = Path(chosen.out) if chosen.out else folder / REPORT_NAME
    _refuse_another(path)
    with looking(path, BadUse):
        write_whole(path, page(facts, chosen.lang).encode())
    holds = _holds(folder, facts)
    say(str(path))
    return EXIT_COMPLETED if holds else EXIT_FAILED


def _refuse_another(path: Path) -> None:
    """Refuse a file other than a report that is there, such as a journal named by mistake."""
    with looking(path):
        if not path.is_file():
            return
    with suppress(OSError), path.open("rb") as file:  # one that is not read is not written either
        if f'content="{GENERATOR}"'.encode() not in file.read(HEAD_BYTES):
            raise BadUse("cli.no_report_there", path=str(path))


def _holds(folder: Path, facts: RunFacts) -> bool:
    """Return whether a run's files are unchanged; warn of those that are not."""
    if not facts.chain.ok:
        warn(Text("pair", what=str(folder / JOURNAL_NAME), why=facts.chain.reason))
    changed = [each.name for each in facts.artifacts if not each.holds]
    if changed:
        warn(Text("cli.artifacts_changed", folder=str(folder), names=changed))
    return facts.chain.ok and not changed


def history(chosen: argparse.Namespace) -> int:
    """Print one line for each run; return 1 if one cannot be read."""
    runs = Path(chosen.runs)
    with looking(runs):
        if not runs.is_dir():
            raise BadUse("cli.no_runs_folder", runs=str(runs))
        folders = sorted(runs.iterdir())
    journals: list[Path] = []
    unread = 0
    for journal in (folder / JOURNAL_NAME for folder in folders):
        try:
            with looking(journal):
                journals += [journal] if journal.is_file() else []
        except BadPath as why:  # of another account, perhaps
            warn(str(why))
            unread += 1
    if not journals:
        say(Text("cli.no_run_readable" if unread else "cli.no_run", runs=f"{runs}{os.sep}"))
        return EXIT_FAILED if unread else EXIT_COMPLETED
    rows: list[tuple[str, ...]] = [tuple(map(Text, COLUMNS))]
    for journal in journals:
        try:
            summary = read_summary(results_in(journal.parent, "summary"))
            rows.append(_row(journal.parent.name, summary))
            if summary["damage"]:
                warn(Text("pair", what=str(journal), why=summary["damage"]))
                unread += 1
        except (JournalFailed, AccessNotLogged) as why:
            warn(str(why))
            unread += 1
    say_each(aligned([[_cell(each) for each in row] for row in rows]))
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
        return Text("cli.by_hand")
    state, ending = summary["state"], str(summary["ending"]).removeprefix("task_")
    if ending == "none" and state:
        return Text("cli.held") if state == "PAUSED" else Text("cli.left_in", state=state.lower())
    return ending


def _by_hand(summary: Mapping[str, Any]) -> str:
    refused = Text("cli.refused", count=summary["refused"]) if summary["refused"] else ""
    return several(refused, *summary["by_hand"])


def _answer(answer: Mapping[str, Any]) -> str:
    outputs = answer.get("outputs")
    if isinstance(outputs, Mapping):
        if referred_in(outputs):
            return Text("data.withheld")
        plain = (each for each in outputs.items() if isinstance(each[1], int | float | str))
        return ", ".join(output_text(name, value) for name, value in plain)
    return str(answer.get("error_code") or answer.get("reason_code") or "")


def compare(chosen: argparse.Namespace) -> int:
    """Print each difference between two runs; return 1 if there is one."""
    from labharness.faces.report.both_runs import both_runs, differences

    one, other = Path(chosen.one), Path(chosen.other)
    both = read_run(results_in(one, "report")), read_run(results_in(other, "report"))
    page = None if chosen.out is None else Path(chosen.out)
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
        say(Text("cli.no_difference"))
    holds = [_holds(*each) for each in zip((one, other), both, strict=True)]
    if page is not None:
        with looking(page, BadUse):
            write_whole(page, both_runs(*both, (str(one), str(other)), chosen.lang).encode())
        say(str(page))
    return EXIT_COMPLETED if all(holds) and not found else EXIT_FAILED


def _cell(text: str) -> str:
    clean = one_line(text)
    too_long = len(clean) > CELL_CHARACTERS_MAX
    return clean[: CELL_CHARACTERS_MAX - 1] + "…" if too_long else clean
