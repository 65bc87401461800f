"""An agreement is used once, whatever a backup brings back; a damaged log lets nothing begin."""

import asyncio
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from commands import say, submit, wrote
from labharness.core.clock import Clock, VirtualLoop, run, wall_clock_utc
from labharness.journal import SqliteJournal
from labharness.lab import Lab, LabPlan
from labharness.lab.wiring.approvals import VALID_S, ApprovalFolder, BadDecision, Decision, Persons
from labharness.protocols.hcp.terms import Rejected
from labharness.work.admission.approval import ApprovalRequest, Approved
from requested import hot, request, waiting
from rig import ON_SHORT, SHORT_LINE

LOG = "approvals.jsonl"
ANOTHER: dict[str, Any] = {"instructions": {"instructions": [{"instructionId": "b"}]}}


def use(folder: ApprovalFolder, asked: ApprovalRequest) -> Approved | Rejected:
    """Look once for an agreement, as a run in virtual time does."""
    loop = VirtualLoop()
    persons = Persons(folder, Clock(loop), 0.0, lambda name: None)
    return run(persons.decide(asked), loop)


def agreed(folder: ApprovalFolder, asked: ApprovalRequest, who: str = "Ada") -> str:
    name = folder.ask(asked)
    folder.decide(name, who, "seen", agrees=True, account="a")
    return name


@pytest.mark.promise(24)
@pytest.mark.thorough
@pytest.mark.parametrize("whole", [False, True], ids=["approvals", "state directory"])
def test_files_that_come_back_from_a_backup_let_no_second_run_begin(
    tmp_path: Path, short_plan: LabPlan, wires: list[Lab], whole: bool
) -> None:
    state, backup, runs = short_plan.state_dir, tmp_path / "backup", tmp_path / "runs"
    submit(tmp_path, hot())
    name = waiting()
    assert (
        say("approvals", "approve", name, "--name", "Ada", "--reason", "seen", *ON_SHORT).code == 0
    )
    shutil.copytree(state, backup)
    ran = submit(tmp_path, hot(), "--out", runs / "first")
    assert ran.answer["type"] in ("task_completed", "task_failed")

    driven = len(wires)
    if whole:
        shutil.rmtree(state)
        shutil.copytree(backup, state)
        assert submit(tmp_path, hot(), "--out", runs / "second").answer["type"] == "task_rejected"
        assert wrote(wires[driven:]) == []
        return
    shutil.copytree(backup / "approvals", state / "approvals", dirs_exist_ok=True)
    shown = say("approvals", "show", name, *ON_SHORT)
    assert shown.code == 1
    assert "used by session" in shown.err
    again = submit(tmp_path, hot())
    assert again.answer["payload"]["reason_code"] == "approval_expired"
    assert "1 said so of an earlier request" in again.answer["payload"]["reason_message"]
    assert wrote(wires[driven:]) == []


def used_in(run: Path, ticket: str) -> None:
    """Leave the journal of a run that has used an agreement and was killed."""
    run.mkdir(parents=True)
    with SqliteJournal(run / "journal.sqlite") as journal:
        journal.append("submitted", {}, 0.0)
        approved = Approved(by=("Ada",), reason="seen", agreement=ticket)
        journal.append("approved", approved.to_json(), 1.0)


@pytest.mark.promise(24)
@pytest.mark.parametrize("when", ["before it is asked for", "while it waits"])
def test_a_state_directory_that_comes_back_whole_makes_no_used_agreement_count(
    tmp_path: Path, when: str
) -> None:
    runs, state, backup = (tmp_path / each for each in ("runs", "state", "backup"))
    folder = ApprovalFolder(state, runs=runs)
    asked = request()
    name = agreed(folder, asked)
    shutil.copytree(state, backup)
    used = use(folder, asked)
    assert isinstance(used, Approved)
    used_in(runs / "other", "another ticket")
    (runs / "empty").mkdir()
    used_in(runs / "first", used.agreement)
    shutil.rmtree(state)
    shutil.copytree(backup, state)
    if when == "while it waits":
        assert "used by the run first" in str(folder.verdict(name, asked))
    refused = use(folder, asked)
    assert isinstance(refused, Rejected)
    assert "1 said so of an earlier request" in refused.reason_message
    folder.decide(name, "Ada", "seen again", agrees=True, account="a")
    assert isinstance(use(folder, asked), Approved), "what is agreed to now counts"


@pytest.mark.promise(24)
def test_a_journal_that_cannot_be_read_may_have_used_what_was_agreed_to_before(
    tmp_path: Path,
) -> None:
    runs, state = tmp_path / "runs", tmp_path / "state"
    folder = ApprovalFolder(state, runs=runs)
    agreed(folder, request())
    (runs / "damaged").mkdir(parents=True)
    (runs / "damaged" / "journal.sqlite").write_bytes(b"not a journal" * 100)
    assert isinstance(use(folder, request()), Rejected)
    long_ago = wall_clock_utc().timestamp() - 3 * VALID_S
    os.utime(runs / "damaged" / "journal.sqlite", (long_ago, long_ago))
    agreed(folder, request())
    assert isinstance(use(folder, request()), Approved), "it ended before anybody agreed"


@pytest.mark.promise(24)
def test_what_was_said_of_an_earlier_request_does_not_count_for_a_later_one(tmp_path: Path) -> None:
    folder = ApprovalFolder(tmp_path)
    name = agreed(folder, request())
    said = tmp_path / "approvals" / f"{name}.decisions"
    backup = said.read_bytes()
    assert isinstance(use(folder, request()), Approved)
    folder.ask(request())
    said.write_bytes(backup)
    assert isinstance(use(folder, request()), Rejected)
    folder.decide(name, "Ada", "seen again", agrees=True, account="a")
    assert isinstance(use(folder, request()), Approved)


def test_a_refusal_of_an_earlier_request_is_none_of_a_later_one(tmp_path: Path) -> None:
    folder = ApprovalFolder(tmp_path)
    name = folder.ask(request())
    folder.decide(name, "Ada", "no hood", agrees=False, account="a")
    said = tmp_path / "approvals" / f"{name}.decisions"
    backup = said.read_bytes()
    assert isinstance(folder.verdict(name, request()), Decision)
    use(folder, request())
    folder.ask(request())
    said.write_bytes(backup)
    assert isinstance(folder.verdict(name, request()), str)


def lines_of(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def without_line(number: int) -> Callable[[Path], None]:
    def edit(log: Path) -> None:
        lines = lines_of(log)
        del lines[number]
        log.write_bytes(b"".join(lines))

    return edit


def changed(log: Path) -> None:
    log.write_bytes(log.read_bytes().replace(b"used by", b"seen by", 1))


def put_in(log: Path) -> None:
    lines = lines_of(log)
    asked = {**json.loads(lines[0]), "after": json.loads(lines[-1])["after"]}
    log.write_bytes(b"".join([*lines, json.dumps(asked).encode() + b"\n"]))


def put_in_without_its_digest(log: Path) -> None:
    asked = {k: v for k, v in json.loads(lines_of(log)[0]).items() if k != "after"}
    with log.open("ab") as file:
        file.write(json.dumps(asked).encode() + b"\n")


def a_folder(log: Path) -> None:
    log.unlink()
    log.mkdir()


EDITS = {
    "gone": Path.unlink,
    "first line gone": without_line(0),
    "use gone": without_line(1),
    "use changed": changed,
    "line put in": put_in,
    "line put in without its digest": put_in_without_its_digest,
    "not to be read": a_folder,
}


@pytest.mark.promise(24)
@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_a_log_that_is_not_as_it_was_written_lets_nothing_begin(
    tmp_path: Path, edit: Callable[[Path], None]
) -> None:
    folder = ApprovalFolder(tmp_path)
    agreed(folder, request())
    backup = tmp_path / "backup"
    shutil.copytree(tmp_path / "approvals", backup)
    assert isinstance(use(folder, request()), Approved)
    agreed(folder, request(**ANOTHER))
    shutil.copytree(backup, tmp_path / "approvals", dirs_exist_ok=True)
    edit(tmp_path / LOG)
    for asked in (request(), request(**ANOTHER)):
        refused = use(folder, asked)
        assert isinstance(refused, Rejected)
        assert refused.reason_code == "approval_expired"


def test_a_damaged_log_is_one_plain_error_that_says_where(
    tmp_path: Path, short_plan: LabPlan
) -> None:
    submit(tmp_path, hot())
    log = short_plan.state_dir / LOG
    log.write_bytes(log.read_bytes() * 2)
    said = say("approvals", "list", "--lab", SHORT_LINE)
    assert (said.code, said.err.count("\n")) == (1, 1)
    assert f"{log}, line 2: it does not follow on the line before it" in said.err


def test_a_line_that_a_power_cut_halved_keeps_nobody_from_agreeing(tmp_path: Path) -> None:
    folder = ApprovalFolder(tmp_path)
    name = agreed(folder, request())
    log = tmp_path / LOG
    whole = log.read_bytes()
    half = b'{"at": "2026-01-01T12:00:00.000Z", "id": "2581c303a8e7", "became": "us'
    for length in range(1, len(half), 9):
        log.write_bytes(whole + half[:length])
        assert isinstance(folder.verdict(name, request()), Approved)
        folder.settle(folder.ask(request(**ANOTHER)), "withdrawn")
        assert isinstance(folder.verdict(name, request()), Approved)


def test_a_log_of_an_earlier_version_is_read_and_gone_on_with(tmp_path: Path) -> None:
    old = {"at": "2026-01-01T12:00:00.000Z", "id": "000000000000", "became": "used by session s"}
    (tmp_path / LOG).write_text(json.dumps(old) + "\n", "utf-8")
    folder = ApprovalFolder(tmp_path)
    agreed(folder, request())
    assert isinstance(use(folder, request()), Approved)
    (tmp_path / LOG).write_text((tmp_path / LOG).read_text("utf-8").replace("session s", "nobody"))
    agreed_again = use(folder, request())
    assert isinstance(agreed_again, Rejected)


@pytest.mark.promise(24)
def test_no_run_begins_before_the_use_of_its_agreement_is_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = ApprovalFolder(tmp_path)
    name = agreed(folder, request())

    def full(path: Path, line: str) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("labharness.core.files.chained.append_durably", full)
        refused = use(folder, request())
    assert isinstance(refused, Rejected)
    assert "No space left on device" in refused.reason_message
    assert isinstance(folder.verdict(name, request()), Approved), "nothing was used"


def test_a_wait_that_is_given_up_without_a_disk_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = ApprovalFolder(tmp_path)
    loop = VirtualLoop()
    persons = Persons(folder, Clock(loop), 60.0, lambda name: None)

    async def given_up() -> Any:
        task = loop.create_task(persons.decide(request()))
        await asyncio.sleep(1.5)
        shutil.rmtree(tmp_path / "approvals")
        a_folder(tmp_path / LOG)
        task.cancel()
        return (await asyncio.gather(task, return_exceptions=True))[0]

    assert isinstance(run(given_up(), loop), asyncio.CancelledError)


def test_an_id_is_never_believed_where_the_whole_digest_differs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("labharness.lab.wiring.approvals._id", lambda bound: "0" * 12)
    folder = ApprovalFolder(tmp_path)
    folder.ask(request())
    path = tmp_path / "approvals" / f"{'0' * 12}.json"
    body = json.loads(path.read_text("utf-8"))
    body["instructions"]["instructions"].append({"instructionId": "hotter"})
    path.write_text(json.dumps(body), "utf-8")
    with pytest.raises(BadDecision, match="does not hold the plan"):
        folder.read("0" * 12)
