"""``labharness journal`` and ``labharness artifact``: what runs left behind."""

import argparse
import os
from pathlib import Path

from labharness.core.vocabulary.durations import clock_text
from labharness.core.vocabulary.texts import in_language
from labharness.faces.cli import EXIT_COMPLETED, EXIT_FAILED, EXIT_USAGE
from labharness.faces.cli.line_writer import TERMINAL
from labharness.faces.cli.show import complain, looking, output, say
from labharness.journal.artifacts import ArtifactRefused, resolve_all
from labharness.journal.reading import export_jsonl, read, verify_file
from labharness.work.desk.folder import ARTIFACTS_NAME, JOURNAL_NAME

__all__ = ["records"]

VALUE_CHARACTERS_MAX = 120


def records(chosen: argparse.Namespace) -> int:
    """Carry out one of the two commands."""
    if chosen.command == "artifact":
        return _artifact(chosen.uri, Path(chosen.runs), chosen.cat)
    path = Path(chosen.folder) / JOURNAL_NAME
    with looking(path):
        there = path.is_file()
    if not there:
        complain(f"labharness journal: {chosen.folder} holds no {JOURNAL_NAME}")
        return EXIT_USAGE
    if chosen.verb == "verify":
        return _verify(path)
    if chosen.verb == "export":
        with output() as out:
            export_jsonl(path, out)
        return EXIT_COMPLETED
    return _show(path)


def _verify(path: Path) -> int:
    report = verify_file(path)
    if report.ok:
        say(f"{path}: the chain of {report.head.seq} records holds, head {report.head.hash}")
        if not report.tail_known:
            say("cannot tell whether records are missing at the end: no head is kept elsewhere")
        return EXIT_COMPLETED
    say(f"{path}: record {report.first_bad_seq} is bad: {report.reason}")
    return EXIT_FAILED


def _show(path: Path) -> int:
    for record in read(path):
        body = ", ".join(f"{name}={_in_language(value)}" for name, value in record.body.items())
        if len(body) > VALUE_CHARACTERS_MAX:
            body = body[: VALUE_CHARACTERS_MAX - 1] + "…"
        say(f"{record.seq:6} {clock_text(record.at_s):>9} {record.kind:14} {body}")
    return EXIT_COMPLETED


def _in_language(value: object) -> object:
    """Return a value of a record with every text in it in the language that was asked for."""
    if isinstance(value, str):
        return in_language(value, TERMINAL.language)
    if isinstance(value, dict):
        return {name: _in_language(each) for name, each in value.items()}
    return list(map(_in_language, value)) if isinstance(value, list) else value


def _artifact(uri: str, runs: Path, cat: bool) -> int:
    try:
        with looking(runs):
            found = resolve_all(uri, _artifact_folders(runs))
    except ArtifactRefused as why:
        complain(f"labharness artifact: {why}; looked in {runs}")
        return EXIT_USAGE
    if len(set(found.values())) > 1:
        holders = [str(each.parent.parent) for each in found]
        complain(
            f"labharness artifact: {len(holders)} runs have this address: {', '.join(holders)}; "
            f"name one with --runs {holders[0]}"
        )
        return EXIT_FAILED
    path = next(iter(found))
    if not cat:
        say(str(path))
        return EXIT_COMPLETED
    try:
        data = path.read_bytes()
    except OSError as why:
        complain(f"labharness artifact: {path}: {why.strerror}")
        return EXIT_FAILED
    with output() as out:
        out.write(data)
    return EXIT_COMPLETED


def _artifact_folders(runs: Path) -> list[Path]:
    """Find where the artifacts of one run lie, or those of many."""
    if (runs / JOURNAL_NAME).is_file():
        return [runs / ARTIFACTS_NAME]
    if not runs.is_dir():
        return []
    os.scandir(runs).close()  # to glob, a folder that may not be read is an empty one
    return sorted(runs.glob(f"*/{ARTIFACTS_NAME}"), reverse=True)
