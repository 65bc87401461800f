"""A stop request at the command line: exit code 3, and the line made safe first."""

import signal
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from commands import TIMEOUT_S, example, start, submit
from labharness.faces.cli import run as run_command
from labharness.journal.reading import read
from labharness.lab import Lab
from rig import EXAMPLE, SHORT_LINE

SAFE_COILS = {
    "box.furnace_contactor": 0.0,
    "box.sulfur_contactor": 0.0,
    "box.hydrogen_valve": 0.0,
    "box.vent": 1.0,
    "box.argon_valve": 1.0,
    "laser.emission": 0.0,
    "furnace.output": 0.0,
}


def made_safe(folder: Path) -> None:
    """The journal shows the line made safe after the stop request, each step by read-back."""
    records = list(read(folder / "journal.sqlite"))
    asked = [each.seq for each in records if each.body.get("event_type") == "state_changed"]
    made = next(each.seq for each in records if each.kind == "make_safe")
    verified = [each.body for each in records if each.kind == "verified" and each.seq > made]
    assert any(seq < made for seq in asked)
    assert verified[0]["complete"] is True
    steps = {name: (found, ending) for name, _, found, ending in verified[0]["steps"]}
    for name, value in SAFE_COILS.items():
        assert steps[name] == (value, "verified")
    assert [each.kind for each in records if each.kind in ("terminal", "cooled")] == [
        "terminal",
        "cooled",
    ]


@pytest.mark.parametrize(
    "stop",
    ["SIGINT", *(pytest.param(each, marks=pytest.mark.thorough) for each in ("SIGTERM", "SIGHUP"))],
)
@pytest.mark.skipif(sys.platform == "win32", reason="Windows ends a process without asking it")
def test_a_stop_signal_while_heating_exits_3_with_the_line_made_safe(
    tmp_path: Path, stop: str
) -> None:
    folder = tmp_path / "run"
    asked = signal.Signals[stop]
    words = ("run", EXAMPLE, "--lab", SHORT_LINE, "--out", folder)
    run = start(*words, preexec_fn=lambda: signal.signal(asked, signal.SIG_DFL))
    assert run.stderr is not None
    for line in run.stderr:
        if " ramp " in line:
            run.send_signal(asked)
            break
    out, err = run.communicate(timeout=TIMEOUT_S)
    assert run.returncode == 3, err
    assert out.startswith(f"aborted: stop request ({stop}); the line is in its safe state")
    assert "stop request: bringing the line to its safe state" in err
    assert "Traceback" not in err
    made_safe(folder)


def _in_the_background() -> None:
    """Ignore what a shell ignores for a command in a script's background, and nohup."""
    for each in ("SIGINT", "SIGHUP"):
        signal.signal(getattr(signal, each), signal.SIG_IGN)


@pytest.mark.skipif(sys.platform == "win32", reason="it is Unix that hands signals down")
def test_a_run_in_the_background_outlives_its_terminal_and_can_be_stopped_all_the_same(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "run"
    words = ("run", EXAMPLE, "--lab", SHORT_LINE, "--out", folder)
    run = start(*words, preexec_fn=_in_the_background)
    assert run.stderr is not None
    for line in run.stderr:
        if "leak check" in line:
            run.send_signal(signal.SIGHUP)
        if " ramp " in line:
            run.send_signal(signal.SIGINT)
            break
    out, err = run.communicate(timeout=TIMEOUT_S)
    assert run.returncode == 3, err
    assert out.startswith("aborted: stop request (SIGINT); the line is in its safe state")
    made_safe(folder)


@pytest.mark.parametrize(
    "moment",
    [
        *("safe table", "Pump down", "Heat the furnace"),
        *(pytest.param(each, marks=pytest.mark.thorough) for each in ("Grow for", "Take Raman")),
    ],
)
def test_ctrl_c_at_any_moment_ends_in_one_session_closed_message(
    tmp_path: Path, wires: list[Lab], monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    def tell(self: object, kind: str, data: Mapping[str, Any]) -> None:
        if kind == "progress" and data["message"].startswith(moment):
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(run_command, "_Progress", partial(_Watched, tell=tell))
    before = signal.getsignal(signal.SIGINT)
    said = submit(tmp_path, example())
    assert said.code == 3, said
    assert said.answer["type"] == "event"
    body = said.answer["payload"]
    assert body["event_type"] == "session_closed"
    kept = body["data"].pop("artifacts", [])  # what was measured, once a spectrum was taken
    assert bool(kept) == (moment == "Take Raman")
    assert body["data"] == {"final_state": "ABORTED", "reason": "stop request (SIGINT)"}
    assert wires[0].simulated is not None
    truth = wires[0].simulated.plant.truth()
    assert truth["substrate_c"] < 65  # told cold at 60 by its own thermocouple
    assert signal.getsignal(signal.SIGINT) is before


class _Watched:
    """Stands for the printer of progress."""

    def __init__(
        self, *, quiet: bool, fast: bool, lab_option: str, live: object, tell: Callable[..., None]
    ) -> None:
        self.head = ""
        self.tell = partial(tell, self)


def test_ctrl_c_before_there_is_a_line_exits_3_with_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(path: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(run_command, "read_submit", interrupted)
    said = submit(tmp_path, example())
    assert (said.code, said.out, said.err) == (3, "", "labharness run: interrupted\n")
