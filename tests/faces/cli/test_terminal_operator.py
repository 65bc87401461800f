"""The person at the terminal: asked beside the answer, and missed where nobody is there."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from commands import COMMAND, TIMEOUT_S
from rig import EXAMPLE, approved_copy


@pytest.fixture
def terminal_lab(tmp_path: Path) -> Path:
    """The short line, whose manual steps are confirmed by who sits at the terminal."""

    def edit(text: str) -> str:
        simulated = '[operator]\nkind = "simulated"\ndelay_s = 5\n'
        return text.replace(simulated, '[operator]\nkind = "terminal"\n')

    plan = approved_copy(tmp_path, edit=edit)
    assert plan.file.operator.kind == "terminal"
    return plan.path


def asked(lab: Path) -> list[str]:
    out = lab.parent / "run"
    return [*COMMAND, "run", str(EXAMPLE), "--lab", str(lab), "--out", str(out), "--json"]


@pytest.mark.thorough
def test_a_step_that_nobody_can_confirm_ends_the_run_safe_and_says_so(
    terminal_lab: Path,
) -> None:
    said = subprocess.run(
        asked(terminal_lab),
        input="\n\n",
        capture_output=True,
        encoding="utf-8",
        timeout=TIMEOUT_S,
        check=False,
    )
    assert said.returncode == 1, said.stderr
    answer = json.loads(said.stdout)  # one message, and no prompt beside it
    assert answer["type"] == "task_failed"
    assert said.stderr.count("type your name: ") == 3, "an empty name is none"
    why = "nobody is at the terminal to confirm 'load': standard input has ended"
    assert why in answer["payload"]["error_message"]


@pytest.mark.skipif(sys.platform == "win32", reason="a pseudo-terminal is Unix's")
def test_ctrl_d_at_the_terminal_is_no_name_and_ends_nothing(terminal_lab: Path) -> None:
    import pty

    ours, theirs = pty.openpty()
    with subprocess.Popen(asked(terminal_lab), stdin=theirs, stderr=subprocess.PIPE) as runs:
        try:
            os.close(theirs)
            assert runs.stderr is not None
            read_until(runs.stderr.read1, b"type your name: ")  # type: ignore[attr-defined]  # a pipe has it
            os.write(ours, b"\x04")
            read_until(runs.stderr.read1, b"type your name: ")  # type: ignore[attr-defined]  # a pipe has it
            assert runs.poll() is None
        finally:
            runs.kill()
            os.close(ours)


def read_until(read: Callable[[int], bytes], words: bytes) -> None:
    found = b""
    while words not in found:
        piece = read(4096)
        assert piece, found
        found += piece
