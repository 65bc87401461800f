"""A person's approval: asked for, shown, given by another, bound to the plan, and used once."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from commands import COMMAND, TIMEOUT_S, say, submit, wrote
from labharness.journal.reading import read
from labharness.lab import Lab
from labharness.lab.wiring.approvals import ApprovalFolder, BadDecision, Decision
from labharness.work.admission.approval import Approved
from platforms import unix
from requested import hot, request, waiting
from rig import ON_SHORT, SHORT_LINE


@pytest.mark.thorough
def test_a_virtual_run_is_rejected_with_the_way_to_an_approval_and_runs_once_after_it(
    tmp_path: Path, wires: list[Lab]
) -> None:
    said = submit(tmp_path, hot())
    assert said.code == 2
    assert said.answer["payload"]["reason_code"] == "approval_expired"
    name = waiting()
    assert f"labharness approvals approve {name}" in said.answer["payload"]["suggestion"]
    assert wrote(wires) == []

    shown = say("approvals", "show", name, *ON_SHORT)
    assert shown.code == 0
    for words in ("R4", "harness-alpha-001", "degC", "no standing approval", "STAYS ON"):
        assert words in shown.out
    agreed = say(
        "approvals", "approve", name, "--name", "Ada", "--reason", "shown to me", *ON_SHORT
    )
    assert agreed.code == 0
    assert "counts once" in agreed.out

    done = submit(tmp_path, hot())
    assert done.answer["type"] in ("task_completed", "task_failed"), done.out
    folder = next(tmp_path.glob("submission-1/run"))
    approved = [each.body for each in read(folder / "journal.sqlite") if each.kind == "approved"]
    (body,) = approved
    assert (body["by"], body["reason"]) == (["Ada"], "shown to me")
    assert body["agreement"].startswith("sha256:"), "it is used up, wherever the log comes from"
    assert say("approvals", "list", *ON_SHORT).out == "nothing waits for approval\n"

    again = submit(tmp_path, hot())
    assert again.answer["payload"]["reason_code"] == "approval_expired", "an approval counts once"


@pytest.mark.thorough
def test_another_plan_does_not_profit_from_an_approval(tmp_path: Path) -> None:
    submit(tmp_path, hot())
    say("approvals", "approve", waiting(), "--name", "Ada", "--reason", "fine", *ON_SHORT)
    other = hot()
    other["payload"]["inputs"]["temperature_range"]["max"] = 840
    said = submit(tmp_path, other)
    assert said.answer["payload"]["reason_code"] == "approval_expired"


@pytest.mark.parametrize(
    "name",
    [
        "harness-alpha-001",
        " Harness-Alpha-001 ",
        "\uff28\uff41\uff52\uff4e\uff45\uff53\uff53-alpha-001",  # full width
        "harness\u2011alpha\u2011001",  # a hyphen that does not break
        "harness-alpha-OOl",
    ],
)
def test_whoever_asked_cannot_approve(tmp_path: Path, name: str) -> None:
    submit(tmp_path, hot())
    said = say("approvals", "approve", waiting(), "--name", name, "--reason", "mine", *ON_SHORT)
    assert said.code == 1
    assert "asked for it and cannot approve it" in said.err


def test_a_refusal_is_told_to_who_submits_again(tmp_path: Path, wires: list[Lab]) -> None:
    submit(tmp_path, hot())
    said = say("approvals", "reject", waiting(), "--name", "Ada", "--reason", "no hood", *ON_SHORT)
    assert said.code == 0
    again = submit(tmp_path, hot())
    assert again.answer["payload"]["reason_code"] == "approval_denied"
    assert again.answer["payload"]["reason_message"].startswith("Ada refused it: no hood")
    assert wrote(wires) == []


@pytest.mark.parametrize("name", ["000000000000", "../../etc", "", "x" * 400])
def test_an_unknown_request_is_one_plain_error_that_names_what_waits(name: str) -> None:
    said = say("approvals", "show", name, *ON_SHORT)
    assert said.code == 1
    assert said.err.count("\n") == 1
    assert "there are: none" in said.err


def test_waiting_in_virtual_time_is_refused_because_nobody_keeps_up(tmp_path: Path) -> None:
    said = submit(tmp_path, hot(), "--approval-timeout", "60")
    assert said.code == 64
    assert "--speed real" in said.err


@pytest.fixture
def paced(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A run at 10 times real time that waits for a person."""
    path = tmp_path / "task.json"
    path.write_text(json.dumps(hot()), "utf-8")
    arguments = ["--lab", str(SHORT_LINE), "--speed", "2", "--out", str(tmp_path / "run")]
    run = subprocess.Popen(
        [*COMMAND, "run", str(path), *arguments, "--approval-timeout", "40"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    try:
        yield run
    finally:
        run.kill()
        run.communicate(timeout=TIMEOUT_S)


def until(run: subprocess.Popen[str], words: str) -> str:
    if run.stderr is None:
        raise RuntimeError("no standard error")
    for line in run.stderr:
        if words in line:
            return line
    raise AssertionError(f"the run ended without saying {words!r}")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows ends a process without asking it")
def test_a_paced_run_waits_for_a_person_and_goes_on_when_one_agrees(
    paced: subprocess.Popen[str], tmp_path: Path
) -> None:
    until(paced, "approvals approve")
    agreed = say("approvals", "approve", waiting(), "--name", "Ada", "--reason", "seen", *ON_SHORT)
    assert agreed.code == 0
    until(paced, "accepted at R4")
    until(paced, "arming")
    paced.send_signal(signal.SIGINT)
    paced.communicate(timeout=TIMEOUT_S)
    assert paced.returncode == 3


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform == "win32", reason="Windows ends a process without asking it")
def test_a_stop_request_while_waiting_withdraws_the_request(
    paced: subprocess.Popen[str], tmp_path: Path
) -> None:
    until(paced, "approvals approve")
    name = waiting()
    paced.send_signal(signal.SIGINT)
    out, err = paced.communicate(timeout=TIMEOUT_S)
    assert paced.returncode == 2, err
    assert "rejected (aborted)" in out
    assert say("approvals", "show", name, *ON_SHORT).code == 1
    journal = list(read(tmp_path / "run" / "journal.sqlite"))
    assert not [each for each in journal if each.kind in ("intent", "safe_frame")]


@pytest.mark.thorough
@unix
def test_a_line_made_safe_while_its_run_waits_is_latched_and_both_terminals_are_told(
    paced: subprocess.Popen[str],
) -> None:
    until(paced, "approvals approve")
    said = say("safe", "--name", "Ann", "--reason", "smell of gas", *ON_SHORT)
    assert (said.code, said.err) == (0, ""), said
    assert "immediate_shutdown: every step verified" in said.out
    assert "the program that was about to drive the line was ended" in said.out
    assert "the line is latched" in said.out
    out, err = paced.communicate(timeout=TIMEOUT_S)
    assert paced.returncode == 2, err
    assert "made safe by hand (Ann): smell of gas" in out + err
    assert say("reset", "--name", "Ann", "--reason", "aired", *ON_SHORT).out.startswith(
        "reset by Ann"
    )


# ---- the folder itself, at any hour


def test_who_may_not_look_is_not_told_that_nothing_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = ApprovalFolder(tmp_path)
    folder.ask(request())

    def refuses(path: Path) -> list[str]:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "listdir", refuses)  # root may look into any folder
    with pytest.raises(PermissionError):
        folder.pending()


def test_r5_takes_two_persons_and_one_of_them_twice_is_one(tmp_path: Path) -> None:
    folder = ApprovalFolder(tmp_path)
    asked = request(risk_level="R5")
    name = folder.ask(asked)
    folder.decide(name, "Ada", "y", agrees=True, account="a")
    folder.decide(name, "ada ", "y", agrees=True, account="a")
    assert isinstance(folder.verdict(name, asked), str)
    folder.decide(name, "Barbara", "y", agrees=True, account="b")
    assert isinstance(folder.verdict(name, asked), Approved)


@pytest.mark.parametrize(
    "edit",
    [
        lambda body: body["instructions"]["instructions"].append({"instructionId": "hotter"}),
        lambda body: body.update(envelope_digest="another"),
        lambda body: body.update(lab_digest="another"),
        lambda body: body.update(requester="somebody else"),
        lambda body: body.update(risk_level="R1"),
    ],
    ids=["plan", "envelope", "lab", "requester", "risk"],
)
def test_a_request_that_was_edited_where_it_lies_counts_for_nothing(
    tmp_path: Path, edit: Any
) -> None:
    folder = ApprovalFolder(tmp_path)
    name = folder.ask(request())
    path = tmp_path / "approvals" / f"{name}.json"
    body = json.loads(path.read_text("utf-8"))
    edit(body)
    path.write_text(json.dumps(body), "utf-8")
    with pytest.raises(BadDecision, match="does not hold the plan"):
        folder.decide(name, "Ada", "y", agrees=True, account="a")


@pytest.mark.promise(20)
def test_what_is_said_after_a_decision_that_was_cut_short_is_heard(tmp_path: Path) -> None:
    folder = ApprovalFolder(tmp_path)
    name = folder.ask(request())
    folder.decide(name, "Ada", "y", agrees=True, account="a")
    path = tmp_path / "approvals" / f"{name}.decisions"
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        agreed = isinstance(folder.verdict(name, request()), Approved)
        assert agreed == (length == len(whole) - 1), "whole, but for the newline at its end"
        folder.decide(name, "Carl", "n", agrees=False, account="c")
        found = folder.verdict(name, request())
        assert isinstance(found, Decision), length
        assert found.name == "Carl"


@pytest.mark.parametrize(
    "line",
    [
        "null",
        "1",
        "[" * 100_000,
        '{"name": "Ada"}',
        '{"name": "Ada", "reason": "y", "agrees": true, "digest": "d", "account": "a", "at": "x"}',
    ],
)
def test_a_decision_that_nobody_here_wrote_says_nothing(tmp_path: Path, line: str) -> None:
    folder = ApprovalFolder(tmp_path)
    name = folder.ask(request())
    (tmp_path / "approvals" / f"{name}.decisions").write_text(line + "\n", "utf-8")
    assert isinstance(folder.verdict(name, request()), str)


@pytest.mark.parametrize("text", ["null", "1", "[" * 100_000, "{}", "", '{"asked_at": 5}'])
def test_a_request_that_nobody_here_wrote_is_one_plain_error(tmp_path: Path, text: str) -> None:
    folder = ApprovalFolder(tmp_path)
    name = folder.ask(request())
    (tmp_path / "approvals" / f"{name}.json").write_text(text, "utf-8")
    with pytest.raises(BadDecision, match="cannot be read"):
        folder.read(name)
    assert folder.pending() == ()


@pytest.mark.promise(24)
@pytest.mark.parametrize("place", [0, 20, -1], ids=["first", "middle", "last"])
@pytest.mark.parametrize("key", ["digest", "ticket"])
def test_a_decision_for_another_digest_is_not_counted(tmp_path: Path, key: str, place: int) -> None:
    folder = ApprovalFolder(tmp_path)
    name = folder.ask(request())
    folder.decide(name, "Ada", "y", agrees=True, account="a")
    path = tmp_path / "approvals" / f"{name}.decisions"
    said = json.loads(path.read_text("utf-8"))
    digits = list(said[key].removeprefix("sha256:"))
    digits[place] = "1" if digits[place] == "0" else "0"
    said[key] = "sha256:" + "".join(digits)
    path.write_text(json.dumps(said) + "\n", "utf-8")
    assert isinstance(folder.verdict(name, request()), str)


def test_a_refusal_outweighs_any_agreement(tmp_path: Path) -> None:
    folder = ApprovalFolder(tmp_path)
    name = folder.ask(request())
    folder.decide(name, "Ada", "y", agrees=True, account="a")
    folder.decide(name, "Barbara", "n", agrees=False, account="b")
    assert isinstance(folder.verdict(name, request()), Decision)


def test_the_folder_is_nobody_elses(tmp_path: Path) -> None:
    ApprovalFolder(tmp_path).ask(request())
    if os.name == "posix":
        assert (tmp_path / "approvals").stat().st_mode & 0o077 == 0
