"""A line that another process holds: waited for where it is to be made safe, and named always."""

import os
import socket
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import Any

import pytest

from commands import COMMAND, TIMEOUT_S, say
from labharness.faces.cli import owner
from labharness.instruments.link.conversation import LineControl
from labharness.instruments.link.identity import LinkIdentity
from labharness.lab import LabPlan
from labharness.lab.config.lock import LineLock, LockOwner
from platforms import unix
from rig import EXAMPLE, ON_SHORT, SHORT_LINE

ATTEND = ("set", "argon.setpoint", 100, "sccm", "--attend", "--for", "5", "--speed", "fast")
NOBODY = 4_194_305  # above every process id that Linux gives


def looks(does: str) -> LockOwner:
    """What a process that drives nothing leaves for others to find."""
    return LockOwner(NOBODY, "", "", does)


@contextmanager
def held(plan: LabPlan, owner: LockOwner | None, for_s: float) -> Iterator[None]:
    """Hold a line for a while, as another process does that serves no socket."""
    plan.make_state_dir()
    lock = LineLock(plan.state_dir, owner)
    ends = threading.Timer(for_s, lock.release)
    ends.start()
    try:
        yield
    finally:
        ends.cancel()
        lock.release()


@pytest.mark.promise(12)
def test_safe_waits_for_who_only_looks_says_so_and_makes_the_line_safe(
    short_plan: LabPlan,
) -> None:
    with held(short_plan, looks("reads the line"), 2.0):
        said = say("safe", *ON_SHORT)
    assert (said.code, said.out) == (0, "immediate_shutdown: every step verified\n"), said
    (told,) = said.err.splitlines()
    assert told.startswith(f"labharness safe: process {NOBODY} reads the line")
    assert "waiting for at most 30 s" in told
    assert f"kill -9 {NOBODY}" in told


@pytest.mark.parametrize(
    ("owner", "words"),
    [
        (looks("makes the line safe"), "until it has ended\n"),
        (LockOwner(NOBODY, "", "runs/mine"), "stop it at its own, or if it stands still, kill -9 "),
        (None, "another process owns the line ("),
    ],
    ids=["safe", "a run", "unknown"],
)
def test_safe_tells_nobody_to_end_a_process_that_works(
    short_plan: LabPlan, owner: LockOwner | None, words: str
) -> None:
    with held(short_plan, owner, 1.5):
        said = say("safe", *ON_SHORT)
    assert said.code == 0, said
    assert words in said.err


def test_safe_says_nothing_of_who_is_gone_within_a_second(short_plan: LabPlan) -> None:
    with held(short_plan, looks("reads the line"), 0.3):
        said = say("safe", *ON_SHORT)
    assert (said.code, said.err) == (0, ""), said


@pytest.mark.thorough
def test_a_safe_that_waits_in_vain_says_that_nothing_was_sent_and_who_holds_the_line(
    short_plan: LabPlan, monkeypatch: pytest.MonkeyPatch, wires: list[Any]
) -> None:
    monkeypatch.setattr(owner, "TAKEN_S_MAX", 1.5)
    with held(short_plan, looks("checks the line"), TIMEOUT_S):
        said = say("safe", *ON_SHORT)
    assert (said.code, said.out, wires) == (1, "", [])
    last = said.err.splitlines()[-1]
    assert "NOT made safe, nothing was sent: " in last
    assert f"process {NOBODY} checks the line" in last
    assert "after 1.5 s" in last
    assert f"kill -9 {NOBODY}), then: labharness safe --lab {quote(str(SHORT_LINE))}" in last
    with held(short_plan, None, TIMEOUT_S):
        said = say("safe", *ON_SHORT)
    assert said.code == 1
    assert "NOT made safe, nothing was sent: another process owns the line" in said.err


@pytest.mark.parametrize(
    "words",
    [
        ("read", "argon.flow"),
        ("watch", "--for", "1"),
        ("lab", "check", "--connect"),
        ("reset", "--name", "Ada", "--reason", "aired"),
        ("safe",),
    ],
    ids=lambda words: words[0],
)
def test_who_only_looks_says_who_it_is_and_what_it_does(
    short_plan: LabPlan, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    found = []
    take = LineLock.__init__

    def taken(
        lock: LineLock,
        state_dir: Path,
        owner: LockOwner | None = None,
        ports: Sequence[LinkIdentity] = (),
        leases: Sequence[str] = (),
    ) -> None:
        found.append(owner)
        take(lock, state_dir, owner, ports, leases)

    monkeypatch.setattr(LineLock, "__init__", taken)
    assert say(*words, *ON_SHORT).code == 0
    owner = found[0]
    assert owner is not None
    assert owner.pid == os.getpid()
    assert "the line" in owner.does
    assert not (short_plan.state_dir / "owner.json").exists(), "nobody holds it any more"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("reset", "--name", "Ada", "--reason", "aired"), 1),
        (("run", EXAMPLE), 2),
        (("lab", "check", "--connect"), 1),
        (ATTEND, 1),
    ],
    ids=lambda words: words[0] if isinstance(words, tuple) else None,
)
def test_whoever_finds_a_line_taken_by_who_only_looks_is_told_whom_to_end(
    short_plan: LabPlan, tmp_path: Path, words: tuple[object, ...], code: int
) -> None:
    out = () if words[0] in ("reset", "lab") else ("--out", tmp_path / "out")
    with held(short_plan, looks("watches the line"), TIMEOUT_S):
        said = say(*words, *ON_SHORT, *out)
    assert said.code == code
    told = said.out + said.err
    assert f"process {NOBODY} watches the line" in told
    assert f"end it (Ctrl-C there, or kill {NOBODY})" in told
    assert "Wait for the other run" not in told


def test_a_line_that_is_only_looked_at_is_not_said_to_be_driven(short_plan: LabPlan) -> None:
    with held(short_plan, looks("reads the line"), TIMEOUT_S):
        said = say("stop", *ON_SHORT)
    assert said.code == 1
    assert "nothing runs on lab short-line" in said.err
    assert f"process {NOBODY} reads the line" in said.err


@unix
@pytest.mark.parametrize("attend", [(), ATTEND[4:]], ids=["set", "attend"])
def test_a_value_is_not_handed_to_who_only_watches(attend: tuple[str, ...]) -> None:
    command = [*COMMAND, "watch", "--json", "--for", "60", *map(str, ON_SHORT)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as watching:
        try:
            assert watching.stdout is not None
            assert b"readings" in watching.stdout.readline()
            said = say("set", "argon.setpoint", 100, "sccm", *attend, *ON_SHORT)
            assert (said.code, said.out) == (1, ""), said
            told = f"argon.setpoint was not set: process {watching.pid} watches the line"
            assert said.err.startswith(f"labharness set: {told}")
            assert f"kill {watching.pid}" in said.err
        finally:
            watching.terminate()


@unix
def test_who_waits_for_an_answer_is_told_more_the_longer_it_takes(tmp_path: Path) -> None:
    told: list[str] = []
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "control.sock"))
        silent.listen()

        def answers() -> None:
            client, _ = silent.accept()
            with client:
                client.recv(1000)
                ended.wait(0.5)
                client.sendall(b'{"ok": true}\n')

        ended = threading.Event()
        other = threading.Thread(target=answers)
        other.start()
        late = [(each, lambda each=each: told.append(f"{each:g}")) for each in (0.1, 0.3, 9.0)]
        with LineControl(tmp_path, late=late) as control:
            assert control.ask(do="safe") == {"ok": True}
        other.join()
    assert told == ["0.1", "0.3"]


def test_nobody_is_told_to_end_who_may_still_verify(
    short_plan: LabPlan, capsys: pytest.CaptureFixture[str]
) -> None:
    longest_s = max(each.verify_s_max for each in short_plan.envelope.procedures.values())
    with held(short_plan, LockOwner(NOBODY, "", "runs/mine"), TIMEOUT_S):
        late = [(at_s, _told(tell, capsys)) for at_s, tell in owner.late_of_safe(short_plan)]
    (first_s, _), (last_s, _) = late
    assert first_s < longest_s < last_s
    said = [text for _, text in late]
    assert f"process {NOBODY}" in said[0]
    assert "to verify every step may take" in said[0]
    assert "kill" not in said[0]
    assert f"kill -9 {NOBODY})" in said[1], "a process that stands still heeds no milder signal"


def _told(tell: Any, capsys: pytest.CaptureFixture[str]) -> str:
    from labharness.faces.cli.line_writer import TERMINAL

    tell()
    TERMINAL.flush()
    return capsys.readouterr().err
