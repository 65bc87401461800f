"""What ``watch`` shows of a line, how it is scrolled, and what it says when its owner ends."""

import argparse
import json
import math
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pytest

from commands import COMMAND, say
from labharness.faces.cli import watching
from labharness.faces.cli.line_writer import TERMINAL
from labharness.faces.cli.watching import ROWS, bounds_text, how_it_ended, keys, level, watch_line
from labharness.instruments.link.conversation import LineControl, NoOwner
from labharness.lab import LabPlan
from labharness.work.desk.folder import ANSWER_NAME, SUBMIT_NAME
from platforms import has_terminals
from rig import ON_SHORT

# ---- which channels


def test_names_and_patterns_show_these_channels_alone(short_plan: LabPlan) -> None:
    said = say("watch", "gauge", "*.flow", "furnace.temperature", "--for", "1", "--json", *ON_SHORT)
    shown = json.loads(said.out)["readings"]
    assert "gauge.pressure" in shown
    assert "furnace.temperature" in shown
    assert {name.partition(".")[2] for name in shown if not name.startswith("gauge.")} == {
        "flow",
        "temperature",
    }
    assert [name for name in shown if name.endswith(".temperature")] == ["furnace.temperature"]


def test_a_name_that_is_nobodys_is_refused_with_the_nearest(short_plan: LabPlan) -> None:
    said = say("watch", "furnce", "--for", "1", *ON_SHORT)
    said.is_one_plain_error("no channel or instrument 'furnce' (did you mean furnace?)", "argon")


# ---- how a reading stands to the rules


def test_a_reading_has_the_colour_of_the_bound_that_it_is_beyond(short_plan: LabPlan) -> None:
    envelope = short_plan.envelope
    for row in envelope.trips:
        others = [each for each in envelope.trips if each.channel == row.channel]
        for bound, outside in ((row.low, -math.inf), (row.high, math.inf)):
            if math.isfinite(bound):
                beyond = math.nextafter(bound, outside)
                worst = (
                    "trip"
                    if any(
                        each.procedure and not each.low <= beyond <= each.high for each in others
                    )
                    else "warn"
                )
                assert level(envelope, row.channel, beyond) == worst
                word = "trips" if row.procedure else "warns"
                sign = "<" if outside < 0 else ">"
                assert f"{word} {sign} {bound:g}" in bounds_text(envelope, row.channel)
    limit = envelope.limits["argon.setpoint"]
    assert limit.readback is not None
    assert level(envelope, limit.readback, limit.high) == ""
    assert level(envelope, limit.readback, math.nextafter(limit.high, math.inf)) == "warn"
    assert bounds_text(envelope, limit.readback).startswith("set 0 to 490")
    assert level(envelope, "argon.flow", None) == "unknown"


# ---- when the owner ends


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"type": "task_completed", "payload": {"outputs": {}}}, "completed"),
        (
            {"type": "task_failed", "payload": {"error_message": "the pump is off"}},
            "failed: the pump is off",
        ),
        (
            {"type": "task_rejected", "payload": {"reason_message": "too hot"}},
            "rejected: too hot",
        ),
        ({"type": "event", "payload": {"data": {"reason": "by hand"}}}, "aborted: by hand"),
        ({"type": "event"}, "it left no answer in"),
        (None, "it left no answer in"),
    ],
)
def test_an_ending_is_told_by_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: object, said: str
) -> None:
    monkeypatch.setattr(watching, "ANSWER_TRY_S", 0.0)
    (tmp_path / SUBMIT_NAME).touch()
    if body is not None:
        (tmp_path / ANSWER_NAME).write_text(json.dumps(body), "utf-8")
    assert how_it_ended(str(tmp_path)).startswith(said)
    assert str(tmp_path) in how_it_ended(str(tmp_path))


def test_an_owner_that_was_no_run_has_no_answer_to_wait_for(tmp_path: Path) -> None:
    assert how_it_ended(str(tmp_path)) == f"the record of work by hand is in {tmp_path}"
    assert how_it_ended("") == "it drove nothing"


class Gone:
    """An owner that tells of itself once, and ends."""

    def __init__(self) -> None:
        self.told = False

    def __enter__(self) -> "Gone":
        return self

    def __exit__(self, *ended: object) -> None:
        pass

    def ask(self, **asked: object) -> dict[str, Any]:
        if self.told:
            raise NoOwner("the line's owner has gone")
        self.told = True
        readings = {"argon.flow": [1.0, "sccm", 0.1]}
        return {
            "ok": True,
            "state": "RUNNING",
            "mode": "on",
            "trip": None,
            "step": "",
            "readings": readings,
        }


def test_a_watch_says_that_the_run_has_ended_and_how(
    short_plan: LabPlan, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(watching, "WATCH_S", 0.01)
    monkeypatch.setattr(TERMINAL, "command", "watch")
    chosen = argparse.Namespace(names=[], json=False, for_s=None)
    watch_line(short_plan, chosen, cast("LineControl", Gone()))
    TERMINAL.flush()
    out, err = capfd.readouterr()
    assert "argon.flow" in out
    assert err == "labharness watch: the line's owner has ended: it drove nothing\n"


# ---- a terminal


@has_terminals
def test_keys_are_heard_one_by_one_and_the_terminal_is_left_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import termios

    master, slave = os.openpty()
    heard: list[int] = []
    with os.fdopen(slave, "r") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        before = termios.tcgetattr(slave)
        with keys(heard.append):
            assert not termios.tcgetattr(slave)[3] & termios.ICANON
            for key in (b"\x1b[B", b"\x1b[6~", b"x", b"\x1b[A"):
                os.write(master, key)
                time.sleep(0.05)  # a person's: several at once are no key
            deadline = time.monotonic() + 10.0
            while len(heard) < 3 and time.monotonic() < deadline:
                time.sleep(0.01)
        assert heard == [1, 10, -1]
        assert termios.tcgetattr(slave) == before
    os.close(master)


def test_no_other_key_moves_anything() -> None:
    assert not {b"", b"\x1b", b"a", b"\x1b[C"} & ROWS.keys()


@has_terminals
def test_on_a_terminal_the_table_is_scrolled_and_ended_by_a_key(short_plan: LabPlan) -> None:
    master, slave = os.openpty()
    clean = {"TERM": "xterm-256color", "COLUMNS": "100", "LINES": "12"}
    with subprocess.Popen(
        [*COMMAND, "watch", *map(str, ON_SHORT)],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env={**os.environ, **clean},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),  # as a shell does for `&`
    ) as process:
        os.close(slave)
        shown = _read_on(master)
        _until(shown, r"1 to \d of \d+; arrows")
        os.write(master, b"\x1b[6~")
        _until(shown, r"11 to 1\d of \d+; arrows")
        os.write(master, b"q")
        with suppress(OSError):  # at its end; a terminal that nobody reads would stop the table
            list(shown)
        assert process.wait(60) == 0
    os.close(master)


def _read_on(master: int) -> Iterator[str]:
    text = ""
    while select.select([master], [], [], 60.0)[0]:
        text += os.read(master, 65_536).decode(errors="replace")
        yield re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text)


def _until(shown: Iterator[str], pattern: str) -> None:
    assert any(re.search(pattern, text) for text in shown)
