"""``labharness journal``, ``artifact`` and ``retention``: the records and files of runs."""

import argparse
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path

from labharness.core.clock import utc_text, wall_clock_utc
from labharness.core.vocabulary.durations import clock_text
from labharness.core.vocabulary.persons import bad_name
from labharness.core.vocabulary.texts import Text, in_language
from labharness.faces.cli import EXIT_COMPLETED, EXIT_FAILED
from labharness.faces.cli.approvals import signer
from labharness.faces.cli.line_writer import TERMINAL
from labharness.faces.cli.show import (
    BadUse,
    CommandFailed,
    chosen_lab,
    looking,
    output,
    say,
    say_each,
    warn,
)
from labharness.journal import JournalFailed, access_log
from labharness.journal.artifacts import ArtifactRefused, resolve_all
from labharness.journal.chain import VerifyReport
from labharness.journal.encryption import kept, stated_class
from labharness.journal.heads import HEADS_NAME, verify_with_heads
from labharness.journal.parquet import export_parquet
from labharness.journal.reading import about, export_jsonl, read, run_header, verify_file
from labharness.lab import LabPlan
from labharness.lab.config.account import account
from labharness.lab.config.address import account_home, state_home
from labharness.lab.config.approvers import approvers_of
from labharness.lab.house.intake import forget
from labharness.lab.operate.retention import (
    KeptRun,
    kept_runs,
    log_clock,
    remove_left_over,
    remove_run,
    why_clock_is_doubted,
)
from labharness.protocols.hcp.terms import CONFIDENTIAL
from labharness.work.admission.approval import Approver, decision_bytes, why_not_by
from labharness.work.desk.folder import ARTIFACTS_NAME, JOURNAL_NAME
from labharness.work.task.kept import HOUSE_JOURNAL, read_tasks

ANSWER = "answer"
"""A confidential answer holds no results: it names the artifact that does."""

VALUE_CHARACTERS_MAX = 120
PARQUET = b"PAR1"  # the first bytes of such a file: https://parquet.apache.org/docs/file-format/
ABOUT = {
    (True, False): "cli.about_known",
    (False, True): "cli.about_changed",
    (False, False): "cli.about_unknown",
}


def journal(chosen: argparse.Namespace) -> int:
    """Show or export the records that hold; return 1 if the journal is damaged."""
    path = results_in(Path(chosen.folder))
    report = verify_file(path)
    if chosen.verb == "show":
        _show(path, report.head.seq)
    elif chosen.parquet is not None:
        _to_parquet(path, Path(chosen.parquet), report.head.seq)
    else:
        with output() as out:
            export_jsonl(path, out, report.head.seq)
    for each in _damage(path, report):
        warn(each)
    return EXIT_COMPLETED if report.ok else EXIT_FAILED


def journal_in(folder: Path) -> Path:
    """Return the journal of a run's folder.

    Raises:
        BadPath: It may not be looked at.
        BadUse: The folder holds none.
    """
    path = folder / JOURNAL_NAME
    with looking(path):
        if not path.is_file():
            raise BadUse("cli.no_journal", folder=str(folder), name=JOURNAL_NAME)
    return path


def results_in(folder: Path, what: str = "records") -> Path:
    """Return a run's journal, whose results are about to be shown: the read is logged before.

    Args:
        folder: The run's folder.
        what: The address of an artifact, or the kind of result.

    Raises:
        BadUse: The folder holds none.
        AccessNotLogged: The read cannot be logged.
    """
    path = journal_in(folder)
    access_log.log_access(
        folder,
        data_class=access_log.data_class_of(path),
        reader=account(),
        via=f"labharness {TERMINAL.command}",
        what=what,
        of_results=what != ANSWER,
        elsewhere=account_home(),
    )
    return path


def journal_access(chosen: argparse.Namespace) -> None:
    """Print who was approved to read, and each read of a result."""
    folder, count = journal_in(Path(chosen.folder)).parent, 0
    with looking(folder, CommandFailed):
        for one in access_log.grants(folder):
            at, reader, name, own, why = one.at, one.approved, one.by, one.account, one.reason
            how = Text("cli.signed") if one.signature else Text("cli.on_trust")
            say(Text("cli.grant", at=at, reader=reader, name=name, account=own, how=how, why=why))
        for each in access_log.accesses(folder):
            at, data_class, reader = each.at, each.data_class, each.reader
            via, what = each.via, each.what
            say(Text("cli.access", at=at, data_class=data_class, reader=reader, via=via, what=what))
            count += 1
    if not count:
        say(Text("cli.no_access"))


def journal_grant(chosen: argparse.Namespace) -> None:
    """Approve a reader; where the run's lab has approvers, with the key of one of them."""
    path = journal_in(Path(chosen.folder))
    with looking(path, CommandFailed):
        approvers = approvers_of(chosen_lab(chosen.lab or about(path).get("lab_file")))
        if approvers is None and chosen.key:
            raise BadUse("approvers.on_trust")
        session_id = str(run_header(path).get("session_id", ""))
        at = utc_text(wall_clock_utc())
        grant = access_log.Grant(
            at, chosen.reader, chosen.name, account(), chosen.reason, session_id
        )
        if chosen.key:
            signed = signer(chosen.key)(decision_bytes(asdict(grant)))
            grant = replace(grant, signature=signed.hex())
        if approvers is not None and (why := _why_not(approvers, grant)):
            raise access_log.BadGrant(why)
        access_log.grant_access(path.parent, grant)
    say(Text("cli.granted", reader=chosen.reader, path=str(path.parent)))


def _why_not(approvers: Mapping[str, Approver], grant: access_log.Grant) -> str:
    """Return why an approval of a reader does not count; ``""`` where it does."""
    if grant.by in approvers and not grant.signature:
        return Text("approvers.needs_key", name=grant.by)
    return why_not_by(
        approvers,
        grant.by,
        risk_level="R1",
        fields=asdict(grant),
        signature=grant.signature,
    )


def journal_verify(chosen: argparse.Namespace) -> int:
    """Verify a journal's chain, and its signed heads."""
    path = journal_in(Path(chosen.folder))
    places = _places(path) if chosen.heads is None else [Path(chosen.heads)]
    found = verify_with_heads(path, places, chosen.key or "")
    report = found.report
    if report.ok:
        say(Text("cli.chain", path=str(path), count=report.head.seq, head=report.head.hash))
    say_each(_damage(path, report))
    if found.vouched is not None:
        signed, where = found.vouched
        seq, at = signed.seq, signed.at
        say(Text("cli.head_kept", seq=seq, at=at, key=signed.key, where=str(where)))
        if report.ok:
            say(Text("cli.tail_known" if report.tail_known else "cli.tail_after", seq=seq))
    elif report.ok:
        say(Text("cli.tail_unknown"))
    say(Text(ABOUT[found.about_known, found.about_changed]))
    return EXIT_COMPLETED if found.ok else EXIT_FAILED


def _places(path: Path) -> list[Path]:
    """Return the folders in which heads of a journal may be: what it says, and the user's own."""
    stated: list[Path] = []
    with suppress(JournalFailed, KeyError, TypeError):
        stated = [Path(about(path)["heads"])]
    user = state_home("lab", None, path).parent
    return [*stated, *(each for each in sorted(user.glob(f"*/{HEADS_NAME}")) if each not in stated)]


def _damage(path: Path, report: VerifyReport) -> Iterator[Text]:
    """Return what is bad, and what is left; of a sound journal nothing."""
    if report.ok:
        return
    where, good, rows = str(path), report.head.seq, report.rows_lost
    yield Text("cli.bad_record", path=where, seq=report.first_bad_seq, why=str(report.reason))
    if rows is None:
        yield Text("cli.rows_lost_uncounted", path=where, good=good)
    else:
        yield Text("cli.rows_lost", path=where, good=good, rows=rows)


def _to_parquet(path: Path, out: Path, until_seq: int) -> None:
    """Write the file whole or not at all, and over none that is something else."""
    with looking(out, CommandFailed):
        if out.exists() and not (out.is_file() and _is_parquet(out)):
            raise BadUse("cli.no_parquet_there", path=str(out))
        part = out.with_name(f".{out.name}.part")
        try:
            count = export_parquet(path, part, until_seq)
            part.replace(out)
        finally:
            part.unlink(missing_ok=True)
    say(Text("cli.parquet", path=str(out), count=count))


def _is_parquet(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(PARQUET)) == PARQUET


def _show(path: Path, until_seq: int) -> None:
    for record in read(path, until_seq):
        body = ", ".join(f"{name}={_in_language(value)}" for name, value in record.body.items())
        if len(body) > VALUE_CHARACTERS_MAX:
            body = body[: VALUE_CHARACTERS_MAX - 1] + "…"
        say(f"{record.seq:6} {clock_text(record.at_s):>9} {record.kind:14} {body}")


def _in_language(value: object) -> object:
    """Return a value of a record with every text in it in the chosen language."""
    if isinstance(value, str):
        return in_language(value, TERMINAL.language)
    if isinstance(value, dict):
        return {name: _in_language(each) for name, each in value.items()}
    return list(map(_in_language, value)) if isinstance(value, list) else value


def artifact(chosen: argparse.Namespace) -> None:
    """Print where the file behind an address is, or its content."""
    uri, runs = chosen.uri, Path(chosen.runs)
    try:
        with looking(runs):
            found = resolve_all(uri, _artifact_folders(runs))
    except ArtifactRefused as why:
        raise BadUse("cli.artifact_refused", why=str(why), runs=str(runs)) from None
    if len(set(found.values())) > 1:
        holders = [str(each.parent.parent) for each in found]
        count, one = len(holders), holders[0]
        raise CommandFailed("cli.artifact_in_many", count=count, runs=holders, one=one)
    path = next(iter(found))
    results_in(path.parent.parent, uri)
    if not chosen.cat:
        say(str(path))
        if stated_class(path.parent.parent):
            warn(Text("encrypted.cat"))
        return
    with looking(path, CommandFailed):
        data = kept(path)
    with output() as out:
        out.write(data)


def _artifact_folders(runs: Path) -> list[Path]:
    """Return the artifact folders of one run, or of many runs."""
    if (runs / JOURNAL_NAME).is_file():
        return [runs / ARTIFACTS_NAME]
    if not runs.is_dir():
        return []
    os.scandir(runs).close()  # glob takes a folder that may not be read for an empty one
    return sorted(runs.glob(f"*/{ARTIFACTS_NAME}"), reverse=True)


def retention(chosen: argparse.Namespace) -> None:
    """List the runs with their dates, or remove those that are over."""
    plan, runs = chosen_lab(chosen.lab), Path(chosen.runs)
    now = wall_clock_utc()
    with looking(runs, CommandFailed):
        if not runs.is_dir():
            raise BadUse("cli.no_runs_folder", runs=str(runs))
        found = list(kept_runs(runs, plan.file.retention))
        if chosen.verb == "list":
            say_each(map(_kept_run, found))
            return
        if why := bad_name(chosen.name):
            raise BadUse(why)
        over = [each for each in found if each.over(now)]
        if not chosen.clock_checked and (why := why_clock_is_doubted(over, found, runs, now)):
            raise CommandFailed(why)
        remove_left_over(runs)
        log_clock(runs, checked=chosen.clock_checked, by=chosen.name, now=now)
        for each in over:
            if each.data_class in CONFIDENTIAL:
                _forget(plan, each.session_id)
            remove_run(each, by=chosen.name, reason=chosen.reason, now=now)
            say(Text("retention.removed", run=each.folder.name, data_class=each.data_class))
        say(Text("retention.count", removed=len(over), kept=len(found) - len(over)))


def _forget(plan: LabPlan, session_id: str) -> None:
    """Destroy the key of a confidential run's submission, which a house has kept."""
    house = plan.state_dir / HOUSE_JOURNAL
    if house.exists():
        forget(plan.state_dir, read_tasks(house), session_id)


def _kept_run(run: KeptRun) -> str:
    until = Text("retention.always") if run.until is None else utc_text(run.until)[:10]
    stays = Text("retention.stays", why=run.why) if run.why else ""
    return Text(
        "retention.run",
        run=run.folder.name,
        data_class=run.data_class,
        ended=utc_text(run.ended_at)[:10],
        until=until,
        stays=stays,
    )
