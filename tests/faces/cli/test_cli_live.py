"""How far a run is: one line of a terminal that is written over, plain lines everywhere else."""

import io
import json
import os
import re
import select
import subprocess
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from commands import COMMAND, payload
from labharness.faces.cli.line_writer import ERASED, LineWriter
from labharness.faces.cli.run import drawn
from platforms import has_terminals
from rig import SHORT_LINE

STYLE = re.compile(r"\x1b\[[0-9;]*m")
WORDS = st.dictionaries(st.sampled_from(("phase", "step", "values", "left")), st.text(max_size=120))
FIRST_S_MAX = 20.0  # a busy machine; benchmarks/startup.py measures


@given(percent=st.floats(0.0, 100.0), words=WORDS, width=st.integers(40, 200))
def test_the_line_is_one_line_and_no_wider_than_the_terminal(
    percent: float, words: dict[str, str], width: int
) -> None:
    line = STYLE.sub("", drawn(percent, words, width=width, color_system="truecolor"))
    assert cell_len(line) <= width
    assert "\n" not in line
    assert "\x1b" not in line
    assert f"{percent:.0f} %" in line


def test_the_line_holds_what_was_said() -> None:
    words = {"phase": "growth", "step": "Grow for 600 s", "left": "5:12:03 left"}
    line = STYLE.sub("", drawn(26.0, words, width=100))
    assert line.endswith(" 26 % growth · 5:12:03 left · Grow for 600 s")


def test_lines_stand_above_the_pinned_one_and_it_goes_away() -> None:
    stream, lines = io.StringIO(), LineWriter()
    lines.pin(stream, "first")
    lines.flush()
    lines.put(stream, "a warning")
    lines.flush()
    lines.pin(stream, "second")
    lines.flush()
    lines.unpin()
    lines.flush()
    shown = stream.getvalue().split(ERASED)
    assert shown[0] == "first"
    assert shown[1].startswith("a warning\n")
    assert "second" in "".join(shown)
    assert shown[-1] == ""


def test_what_is_pinned_where_nothing_is_leaves_no_trace() -> None:
    stream, lines = io.StringIO(), LineWriter()
    lines.put(stream, "a line")
    lines.unpin()
    lines.flush()
    assert stream.getvalue() == "a line\n"


@has_terminals
def test_on_a_terminal_something_stands_there_at_once_and_the_answer_stands_alone(
    tmp_path: Path,
) -> None:
    task = tmp_path / "task.json"
    task.write_text(json.dumps(payload(1250, "inputs", "temperature_range", "max")), "utf-8")
    master, slave = os.openpty()
    words = ["run", task, "--lab", SHORT_LINE, "--out", tmp_path / "run"]
    with subprocess.Popen(
        [*COMMAND, *map(str, words)],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "100"},
    ) as process:
        os.close(slave)
        data = b""
        while select.select([master], [], [], FIRST_S_MAX)[0]:
            try:
                found = os.read(master, 65_536)
            except OSError:  # everybody has closed the other end
                break
            data += found
        process.wait(60)
    os.close(master)
    text = data.decode().replace("\r\n", "\n")
    assert process.returncode == 2
    assert text.startswith(f"reading {task}{ERASED}Short line of the tests · session ")
    left = [line.rpartition(ERASED)[2] for line in text.split("\n")]
    assert left[1].startswith("rejected (safety_violation): ")
    assert left[-2:] == [f"open {tmp_path / 'run'}/report.html", ""]
    assert "pre-flight" in text or "awaiting" in text
