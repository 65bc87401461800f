"""The command line on whatever standard streams it is given: closed, full, of another encoding."""

import io
import math
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from commands import COMMAND, ROOT, TIMEOUT_S, say
from labharness.faces.cli.line_writer import LINES_MAX, LineWriter
from labharness.journal.artifacts import Artifacts
from rig import EXAMPLE, SHORT_LINE

SESSION = "00000000-0000-4000-8000-000000000000"

posix = pytest.mark.skipif(sys.platform == "win32", reason="a shell closes streams here")


@pytest.fixture
def driven(tmp_path: Path) -> Path:
    """The folder of a line that was driven by hand for a second, with an artifact beside it."""
    folder = tmp_path / "by-hand"
    command = ["set", "argon.setpoint", "90", "sccm", "--attend", "--for", "1", "--speed", "fast"]
    assert say(*command, "--lab", SHORT_LINE, "--out", folder).code == 0
    Artifacts(folder / "artifacts", SESSION).put("notes", "notes.txt", "text/plain", b"x" * 9999)
    return folder


@posix
@pytest.mark.parametrize("words", ["lab check --lab nowhere.toml", "nonsense"])
def test_with_every_stream_closed_a_command_does_the_same(words: str) -> None:
    closed = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *COMMAND, *words.split()]
    assert subprocess.run(closed, cwd=ROOT, timeout=TIMEOUT_S, check=False).returncode == 64


@posix
def test_nothing_is_printed_into_a_file_that_took_the_number_of_a_closed_stream(
    tmp_path: Path,
) -> None:
    words = [*COMMAND, "set", "argon.setpoint", "90", "sccm", "--attend", "--for", "1"]
    words += ["--speed", "fast", "--lab", str(SHORT_LINE), "--out", str(tmp_path / "run")]
    closed = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *words]
    assert subprocess.run(closed, cwd=ROOT, timeout=TIMEOUT_S, check=False).returncode == 0
    assert say("journal", "verify", tmp_path / "run").code == 0


@pytest.mark.thorough
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device here")
def test_what_a_full_disk_does_not_take_is_said_in_one_line(driven: Path) -> None:
    uri = f"hcp://session-{SESSION}/artifacts/notes.txt"
    for words in (
        ["journal", "export", driven],
        ["artifact", uri, "--runs", driven, "--cat"],
        ["approvals", "list", "--lab", SHORT_LINE],
    ):
        command = [*COMMAND, *map(str, words)]
        with Path("/dev/full").open("wb") as full:
            said = subprocess.run(
                command, stdout=full, stderr=subprocess.PIPE, timeout=TIMEOUT_S, check=False
            )
        assert said.returncode == 1, words
        assert said.stderr.decode().count("\n") == 1, said.stderr.decode()
        assert b"standard output cannot be written: No space left on device" in said.stderr


@pytest.mark.parametrize("encoding", ["ascii", "utf-8:strict"])
def test_a_terminal_of_another_encoding_gets_every_line(tmp_path: Path, encoding: str) -> None:
    folder = tmp_path / (os.fsdecode(b"\xff") if os.name == "posix" else "\u2077")
    folder.mkdir()
    film, chance = folder / "film.txt", Random(1)
    silicon = ((x, math.exp(-(((x - 520) / 3) ** 2))) for x in range(100, 1000))
    film.write_text("".join(f"{x} {y + 0.01 * chance.gauss():.4f}\n" for x, y in silicon))
    said = subprocess.run(
        [*COMMAND, "analyse", str(film)],
        env={**os.environ, "PYTHONIOENCODING": encoding},
        capture_output=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert b"Traceback" not in said.stderr, said.stderr.decode()
    assert said.returncode == 1
    assert b"no layer count" in said.stdout


@pytest.mark.thorough
@posix
def test_a_run_ends_by_itself_before_a_terminal_that_stands_still(tmp_path: Path) -> None:
    fcntl = pytest.importorskip("fcntl")
    run = ["run", EXAMPLE, "--lab", SHORT_LINE, "--out", tmp_path / "run"]
    words = [*COMMAND, *map(str, run)]
    reads, writes = os.pipe()
    try:
        with suppress(OSError, AttributeError):
            fcntl.fcntl(writes, fcntl.F_SETPIPE_SZ, 4096)
        fill(writes)
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=writes, timeout=TIMEOUT_S)
    finally:
        os.close(reads)
        os.close(writes)
    assert done.returncode == 0
    assert done.stdout.startswith(b"completed: layer_count 1")


def fill(number: int) -> None:
    """Fill a pipe that nobody reads."""
    os.set_blocking(number, False)
    with suppress(BlockingIOError):
        while True:
            os.write(number, b"." * 512)
    with suppress(BlockingIOError):
        while True:
            os.write(number, b".")
    os.set_blocking(number, True)


@posix
def test_of_the_lines_that_nobody_takes_the_oldest_are_left_out_and_counted() -> None:
    reads, writes = os.pipe()
    fill(writes)
    beside = LineWriter()
    with os.fdopen(writes, "w") as stream:
        beside.put(stream, "first")  # on its way, so it is not left out
        while beside._lines.qsize():
            time.sleep(0.001)
        for number in range(LINES_MAX + 50):
            beside.put(stream, f"line {number}")
        taken = b""
        while not taken.endswith(f"line {LINES_MAX + 49}\n".encode()):
            taken += os.read(reads, 65536)
        beside.flush()
    os.close(reads)
    lines = taken.lstrip(b".").decode().splitlines()
    assert lines[:3] == ["first", "(50 lines were left out: nobody took them)", "line 50"]
    assert lines[2:] == [f"line {number}" for number in range(50, LINES_MAX + 50)]


def test_lines_keep_their_order_over_two_streams() -> None:
    beside, stream = LineWriter(), io.StringIO()
    beside.put(stream, "one")
    beside.put(stream, "two")
    beside.flush()
    assert stream.getvalue() == "one\ntwo\n"
