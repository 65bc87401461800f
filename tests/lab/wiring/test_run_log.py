"""The log of a run: what is in it at which level, and what its loss costs."""

import asyncio
import logging
import re
from pathlib import Path

import pytest

from commands import say
from labharness.lab.wiring.runs import run_log
from rig import EXAMPLE, SHORT_LINE

SENT = (
    r"[-0-9T:.]+Z +(?P<lab_s>[0-9.]+) DEBUG   labharness\.line\.\w+: "
    r"(?P<port>\w+) > b['\"].*['\"](?P<permit> by permit)?"
)
LOG = logging.getLogger("labharness.test")


@pytest.mark.promise(55)
@pytest.mark.thorough
def test_a_debug_log_has_each_exchange_with_its_lab_time(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    said = say("run", EXAMPLE, "--lab", SHORT_LINE, "--out", folder, "--log-level", "debug")
    assert said.code == 0
    lines = (folder / "run.log").read_text("utf-8").splitlines()
    sent = [re.fullmatch(SENT, line) for line in lines if " > " in line]
    assert all(sent)
    assert len({found["port"] for found in sent if found}) > 3
    assert any(found["permit"] for found in sent if found)
    times_s = [float(found["lab_s"]) for found in sent if found]
    assert times_s == sorted(times_s)


@pytest.mark.promise(55)
@pytest.mark.parametrize(
    ("broken", "code"),
    [
        ("labharness.work.capability.cvd.CvdSynthesis.plan", 2),
        ("labharness.lab.wiring.tasks.Lab", 1),
    ],
    ids=["in the desk", "before it"],
)
def test_an_error_of_the_harness_leaves_its_traceback_in_the_log_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str, code: int
) -> None:
    def refuse(*args: object, **named: object) -> None:
        raise RuntimeError("planted")

    monkeypatch.setattr(broken, refuse)
    said = say("run", EXAMPLE, "--lab", SHORT_LINE, "--out", tmp_path / "run")
    assert said.code == code
    assert "Traceback" not in said.out + said.err
    lines = (tmp_path / "run" / "run.log").read_text("utf-8").splitlines()
    assert lines[1] == "Traceback (most recent call last):"
    assert lines[-1] == "RuntimeError: planted"


@pytest.mark.promise(55)
def test_a_log_that_the_disk_does_not_take_costs_its_lines_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = asyncio.new_event_loop()
    monkeypatch.setattr(loop, "time", lambda: 12.5)
    try:
        with run_log(tmp_path / "gone", "debug", loop):
            LOG.debug("%s > %r", "port", b"frame")
        with run_log(tmp_path, "debug", loop):
            LOG.debug("kept")
    finally:
        loop.close()
    assert capsys.readouterr().err == ""
    assert (
        (tmp_path / "run.log")
        .read_text("utf-8")
        .endswith(" 12.500000 DEBUG   labharness.test: kept\n")
    )
    assert logging.getLogger("labharness").handlers == []
