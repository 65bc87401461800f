"""The command line and a lab's own files: its state directory, its wires, its latch."""

import json
import re
import shutil
from pathlib import Path

import pytest

from commands import edited_lab, example, say, submit, wrote
from labharness.core.vocabulary import Cause, Trip
from labharness.lab import Lab, read_lab
from labharness.lab.config.lock import LineLock
from labharness.safety.guard import Latch
from rig import EXAMPLE, SHORT_LINE, approved_copy

WATCHED = 'channel = "furnace.temperature"\nstale_s = 3.5'


def test_a_state_directory_that_cannot_be_made_exits_64(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "state").write_text("a file", "utf-8")
    monkeypatch.setenv("LABHARNESS_STATE", str(tmp_path / "state"))
    lab = ("--lab", SHORT_LINE)
    for command in (
        ("run", EXAMPLE, "--out", tmp_path / "run", "--json", *lab),
        ("reset", "--name", "Ada", "--reason", "x", *lab),
    ):
        say(*command).is_one_plain_error("state directory")


# ---- checking and showing


def test_lab_check_gives_the_cost_of_every_port_and_no_findings() -> None:
    said = say("lab", "check", "--lab", SHORT_LINE)
    assert said.code == 0
    assert "11 instruments on 9 ports" in said.out
    assert re.search(r"^heat +\d\.\d+ s +\d\.\d+ s +\d\.\d+ s$", said.out, re.MULTILINE)
    assert said.out.endswith("no findings\n")


def test_lab_check_exits_1_when_a_single_lost_reply_would_trip_the_line(tmp_path: Path) -> None:
    lab = edited_lab(tmp_path, WATCHED, WATCHED.replace("3.5", "0.5"))
    shutil.copy(SHORT_LINE.with_name("short_line_approval.toml"), tmp_path)
    said = say("lab", "check", "--lab", lab)
    assert said.code == 1
    assert "finding: furnace.temperature" in said.out
    assert said.out.endswith("\n1 finding\n")


def test_lab_check_connect_names_every_instrument_and_writes_to_none(wires: list[Lab]) -> None:
    said = say("lab", "check", "--connect", "--lab", SHORT_LINE)
    assert said.code == 0
    for name in wires[0].line.instruments:
        assert re.search(rf"^{name} +\S", said.out, re.MULTILINE)
    assert wrote(wires) == []


@pytest.mark.parametrize("command", ["reset", "approvals approve 0123456789ab", "alarms ack all"])
def test_a_name_that_cannot_be_written_down_is_one_plain_error(command: str) -> None:
    said = say(*command.split(), "--name", "Ad\udcff", "--reason", "y", "--lab", SHORT_LINE)
    said.is_one_plain_error("cannot be written down")


def test_envelope_check_and_show() -> None:
    assert say("envelope", "check", "--lab", SHORT_LINE).code == 0
    said = say("envelope", "show", "--lab", SHORT_LINE)
    assert said.code == 0
    assert "limit      furnace.setpoint 0 to 950 degC (" in said.out
    heads = {line.split()[0] for line in said.out.splitlines()}
    assert heads == {
        *("line", "room", "contact", "limit", "foreign", "always", "interlock", "purge"),
        *("plausible", "trip", "cause", "watch", "procedure"),
    }


# ---- reset


def latch_of(plan_path: Path) -> Path:
    state_dir = read_lab(plan_path).state_dir
    state_dir.mkdir(parents=True)
    return state_dir / "latch.json"


def test_reset_of_a_line_that_is_not_latched_says_so() -> None:
    said = say("reset", "--name", "Ada", "--reason", "looked", "--lab", SHORT_LINE)
    assert said.code == 0
    assert said.out == "the line was not latched\n"


def test_a_latched_line_takes_no_task_until_a_named_person_resets_it(
    tmp_path: Path, wires: list[Lab]
) -> None:
    path = latch_of(SHORT_LINE)
    Latch(path).close(
        Trip(
            cause=Cause.STOP_REQUEST,
            procedure="immediate_shutdown",
            channel="box.estop_closed",
            value=0.0,
            detail="somebody asked to stop",
            at_s=1.0,
        )
    )
    said = submit(tmp_path, example())
    assert said.code == 2
    assert said.answer["payload"]["reason_code"] == "resource_unavailable"
    assert "somebody asked to stop" in said.answer["payload"]["reason_message"]
    assert wrote(wires) == []
    said = say("reset", "--name", "Ada", "--reason", "looked", "--lab", SHORT_LINE)
    assert said.code == 0
    assert said.out == "reset by Ada: somebody asked to stop\n"
    assert not path.exists()
    rows = path.with_name("resets.jsonl").read_text("utf-8").splitlines()
    for row, what in zip(map(json.loads, rows), ["asked", "opened"], strict=True):
        assert (row["what"], row["name"], row["reason"]) == (what, "Ada", "looked")


def test_a_reset_that_cannot_be_recorded_leaves_the_line_latched() -> None:
    path = latch_of(SHORT_LINE)
    Latch(path).close(Trip(Cause.STOP_REQUEST, "immediate_shutdown", "test", None, 1.0, "test"))
    path.with_name("resets.jsonl").mkdir()  # a disk that takes nothing
    said = say("reset", "--name", "Ada", "--reason", "looked", "--lab", SHORT_LINE)
    assert said.code == 1
    assert said.err == (
        "labharness reset: resets.jsonl cannot be written: Is a directory [latch_not_reset]\n"
    )
    assert path.exists()


def test_a_latch_that_cannot_be_read_stays_shut_and_is_told_in_one_line(tmp_path: Path) -> None:
    path = latch_of(SHORT_LINE)
    path.write_text("garbage", "utf-8")
    said = say("reset", "--name", "Ada", "--reason", "x", "--lab", SHORT_LINE)
    assert said.code == 1
    assert said.err.count("\n") == 1
    assert "the line stays latched until a person" in said.err
    assert "has removed the file by hand" in said.err
    for look in (("read", "furnace.temperature"), ("lab", "check", "--connect")):
        assert say(*look, "--lab", SHORT_LINE).code == 0, "who only looks is not kept out"
    rejected = submit(tmp_path, example()).answer["payload"]
    assert rejected["reason_code"] == "resource_unavailable"
    assert rejected["suggestion"].startswith("Then: labharness reset ")
    assert path.exists()


@pytest.mark.parametrize(
    ("state_dir", "words"),
    [("~nobody-of-this-name/x", "home directory"), ("\\u0000", "the character 0")],
)
def test_a_guard_of_a_lab_whose_state_can_be_nowhere_is_one_plain_error(
    tmp_path: Path, state_dir: str, words: str
) -> None:
    lab = edited_lab(tmp_path, "[lab]\n", f'[lab]\nstate_dir = "{state_dir}"\n')
    say("guard", lab).is_one_plain_error("labharness guard: ", str(lab), words)


# ---- a line that somebody owns


def test_a_line_that_somebody_owns_is_neither_identified_nor_armed_anew(tmp_path: Path) -> None:
    serial = 'link = "serial"\npath = "/dev/no-such-port"'
    lab = edited_lab(tmp_path, 'name = "heat"\nlink = "loopback"', f'name = "heat"\n{serial}')
    plan = read_lab(lab)
    plan.make_state_dir()
    armed = plan.state_dir / "armed.json"
    with LineLock(plan.state_dir):
        for command in (("arm", lab), ("lab", "check", "--connect", "--lab", lab)):
            said = say(*command)
            assert said.code == 1
            assert "owns the line" in said.err
    (plan.state_dir / "guard.armed").write_text("immediate_shutdown\n", "utf-8")
    said = say("arm", lab)
    assert (said.code, armed.exists()) == (1, False)
    assert "left armed" in said.err
    (plan.state_dir / "guard.armed").unlink()
    assert say("arm", lab).code == 0
    assert armed.exists()


@pytest.mark.promise(12)
def test_a_procedure_that_may_take_longer_on_a_wire_than_its_envelope_allows_is_a_finding(
    tmp_path: Path,
) -> None:
    approved_copy(tmp_path, edit=lambda text: text.replace("wire_s_max = 2.0", "wire_s_max = 0.01"))
    said = say("lab", "check", "--lab", tmp_path / "lab.toml")
    assert said.code == 1
    (late,) = re.findall(r"finding: port relays: immediate_shutdown may take (.*)", said.out)
    assert late.endswith(" s on the wire, the envelope allows 0.01 s")
