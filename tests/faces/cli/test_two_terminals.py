"""A line that one terminal drives and another watches, holds, sets, stops or makes safe."""

import json
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from shlex import quote
from typing import Any

import pytest

from commands import TIMEOUT_S, say, spawn, start
from labharness.instruments.link.conversation import LINE_BYTES_MAX, LineControl, NoOwner
from labharness.journal.reading import read
from labharness.lab import LabPlan, read_lab
from labharness.lab.wiring.control import CLIENTS_MAX
from platforms import unix
from rig import EXAMPLE, ON_SHORT, SHORT_LINE


class Run:
    """A run at eight times real time, in a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process = start("run", EXAMPLE, *ON_SHORT, "--speed", 8, "--out", folder)

    def until(self, words: str) -> None:
        if self.process.stderr is None:
            raise RuntimeError("no standard error")
        for line in self.process.stderr:
            if words in line:
                return
        raise AssertionError(f"the run ended without saying {words!r}")

    def end(self) -> tuple[int, str]:
        out, _ = self.process.communicate(timeout=TIMEOUT_S)
        return self.process.returncode, out


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Run]:
    run = Run(tmp_path / "run")
    try:
        run.until("Wait until the furnace is cold")
        yield run
    finally:
        run.process.kill()
        run.process.communicate(timeout=TIMEOUT_S)


def status() -> dict[str, Any]:
    said = say("watch", "--for", "1", "--json", *ON_SHORT)
    found: dict[str, Any] = json.loads(said.out.splitlines()[0])
    return found


@unix
def test_a_run_is_watched_held_set_resumed_and_stopped_from_another_terminal(
    running: Run, short_plan: LabPlan
) -> None:
    assert (short_plan.state_dir / "control.sock").stat().st_mode & 0o777 == 0o600
    seen = status()
    assert seen["state"] == "RUNNING"
    assert seen["readings"]["gauge.pressure"][1] == "Torr"

    assert say("hold", "--name", "Ada", "--reason", "thinking", *ON_SHORT).out.startswith(
        "held; unless"
    )
    assert status()["state"] == "PAUSED"
    assert status()["mode"] == "held"
    refused = say("set", "argon.setpoint", 10, "sccm", "--name", "Ada", *ON_SHORT)
    assert refused.code == 2
    assert "while the line is held" in refused.out

    assert say("resume", "--name", "Ada", *ON_SHORT).code == 0
    assert status()["state"] == "RUNNING"
    beyond = say("set", "argon.setpoint", 600, "sccm", "--name", "Ada", *ON_SHORT)
    assert beyond.code == 2
    assert "allowed 0 to 490 sccm" in beyond.out

    assert say("stop", "--name", "Ada", "--reason", "smoke", *ON_SHORT).code == 0
    code, out = running.end()
    assert code == 3
    assert "stop request by hand (Ada): smoke; the line is in its safe state, verified" in out
    records = list(read(running.folder / "journal.sqlite"))
    states = [
        each.body["data"]["to_state"]
        for each in records
        if each.body.get("event_type") == "state_changed"
    ]
    assert states == ["RUNNING", "PAUSED", "RUNNING", "ABORTING", "ABORTED"]
    assert [each.kind for each in records].count("by_hand") == 5


@pytest.mark.thorough
@unix
def test_safe_from_another_terminal_trips_latches_and_takes_a_reset(running: Run) -> None:
    said = say("safe", "--name", "Ada", "--reason", "smoke", *ON_SHORT)
    assert said.code == 0, said
    assert "every step verified" in said.out
    assert "latched" in said.out
    code, out = running.end()
    assert code == 1
    assert "made safe by hand (Ada): smoke" in out
    listed = say("alarms", "list", *ON_SHORT).out
    assert listed.startswith("trip     stop_request/by_hand: active, unacknowledged, latched since")
    assert "made safe by hand (Ada): smoke" in listed
    again = say("run", EXAMPLE, *ON_SHORT, "--out", running.folder.with_name("again"))
    assert again.code == 2
    assert "latched" in again.out
    assert say("reset", "--name", "Ada", "--reason", "aired", *ON_SHORT).code == 0


@pytest.mark.promise(12)
@unix
def test_who_only_watches_a_line_keeps_nobody_from_making_it_safe() -> None:
    with start("watch", "--json", "--for", 60, *ON_SHORT) as watching:
        try:
            assert watching.stdout is not None
            assert "readings" in watching.stdout.readline()
            said = say("stop", *ON_SHORT)
            assert (said.code, said.out) == (1, ""), said
            assert "nobody drives this line" in said.err
            assert say("set", "argon.setpoint", 100, "sccm", *ON_SHORT).code == 1, (
                "nothing is armed"
            )
            said = say("safe", "--name", "Ada", "--reason", "smoke", *ON_SHORT)
            assert said.code == 0, said
            assert "every step verified" in said.out
        finally:
            watching.terminate()


@pytest.mark.thorough
@unix
def test_an_owner_that_was_killed_leaves_no_door_behind(running: Run) -> None:
    running.process.send_signal(signal.SIGKILL)
    running.process.wait(timeout=TIMEOUT_S)
    said = spawn("hold", *ON_SHORT)
    assert said.code == 1
    assert "nothing runs on lab short-line" in said.err
    assert "Traceback" not in said.err
    assert spawn("safe", *ON_SHORT).code == 0


@pytest.mark.thorough
@unix
def test_nonsense_at_the_socket_is_answered_or_hung_up_on_and_hurts_nobody(
    running: Run, short_plan: LabPlan
) -> None:
    path = str(short_plan.state_dir / "control.sock")

    def told(data: bytes) -> bytes:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(10)
            client.connect(path)
            try:
                client.sendall(data)
                return client.makefile("rb").readline()
            except (BrokenPipeError, ConnectionResetError):
                return b""

    deep = b'{"do": ' + b"[" * 20_000 + b"}\n"
    for bad in (b"\n", b"{\n", b"[]\n", b'{"do": 1}\n', b'{"do": "fly"}\n', b"\xff\xfe\n", deep):
        assert json.loads(told(bad))["ok"] is False, bad
    for value in ("true", '"1"', "null", "[]", "NaN"):
        asked = f'{{"do": "set", "by": "x", "channel": "argon.setpoint", "value": {value}}}\n'
        answer = json.loads(told(asked.encode()))
        assert not answer["ok"] or answer["ending"] == "refused"
    assert b"at most" in told(b"x" * (LINE_BYTES_MAX + 10) + b"\n")
    doors = [LineControl(short_plan.state_dir) for _ in range(CLIENTS_MAX)]
    assert all(each.ask(do="status")["ok"] for each in doors)
    with LineControl(short_plan.state_dir) as late:
        assert late.ask(do="status")["ok"], "a stop must find a door: the longest idle one goes"
    with pytest.raises(NoOwner, match="has gone"):
        doors[0].ask(do="status")
    for each in doors:
        each.close()
    assert status()["state"] == "RUNNING"


@pytest.mark.thorough
@unix
@pytest.mark.parametrize(
    "then",
    [
        pytest.param(signal.SIGCONT, id="goes on"),
        pytest.param(signal.SIGKILL, id="is killed", marks=pytest.mark.soak),
    ],
)
def test_safe_tells_of_an_owner_that_stands_still_and_makes_the_line_safe_without_it(
    running: Run, then: signal.Signals
) -> None:
    running.process.send_signal(signal.SIGSTOP)
    with start("safe", "--name", "Ada", "--reason", "smoke", *ON_SHORT) as other:
        if other.stderr is None:
            raise RuntimeError("no standard error")
        late = other.stderr.readline()
        running.process.send_signal(then)
        out, err = other.communicate(timeout=TIMEOUT_S)
    assert late.startswith(f"process {running.process.pid} was told to make the line safe")
    assert "may take 15 s" in late
    assert "kill" not in late, "it may well be verifying"
    assert "immediate_shutdown: every step verified" in out, err


@pytest.mark.thorough
@unix
def test_a_line_attended_in_one_terminal_is_set_from_another(tmp_path: Path) -> None:
    words = ("argon.setpoint", 90, "sccm", "--attend", "--speed", 8, "--name", "Ada")
    first = start("set", *words, *ON_SHORT, "--out", tmp_path)
    try:
        if first.stdout is None:
            raise RuntimeError("no standard output")
        assert first.stdout.readline() == "argon.setpoint confirmed, reads 90\n"
        other = say("set", "argon.setpoint", 120, "sccm", "--name", "Barbara", *ON_SHORT)
        assert other.out == "argon.setpoint confirmed, reads 120\n"
        there = say(
            "set", "argon.setpoint", 110, "sccm", "--attend", "--name", "Barbara", *ON_SHORT
        )
        assert (there.code, there.out) == (0, "argon.setpoint confirmed, reads 110\n")
        assert "this terminal does not attend it" in there.err
        late = spawn("run", EXAMPLE, *ON_SHORT, "--out", tmp_path / "run")
        assert late.code == 2, "one owner"
        busy = f"process {first.pid} owns the line and writes {tmp_path}; see it: labharness watch"
        assert busy in late.out
        lost = say("stop")
        assert lost.code == 1
        here = f"{read_lab(SHORT_LINE).state_dir.name}: use --lab {quote(str(SHORT_LINE))}"
        assert f"lab cvd-mos2-simulated (the default); running now: {here}" in lost.err
        assert say("stop", "--name", "Barbara", *ON_SHORT).code == 0
        out, _ = first.communicate(timeout=TIMEOUT_S)
        assert first.returncode == 0
        assert out.startswith("stop request by hand (Barbara); the line is in its safe state")
    finally:
        first.kill()
        first.communicate(timeout=TIMEOUT_S)
