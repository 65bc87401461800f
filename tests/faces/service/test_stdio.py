"""``labharness serve --stdio`` as a process: the same service without a broker."""

import json
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from commands import COMMAND, ROOT, say
from plain_caller import Told, answer_in, history_faults
from rig import IV, SHIPPED
from up_lab import until

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(300)]


def is_down(lab: Path) -> bool:
    return json.loads(say("status", "--lab", lab, "--json").out)["line_owner"] is None


Stdio = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def stdio(tmp_path: Path) -> Iterator[Stdio]:
    labs: set[Path] = set()

    def begin(lab: Path) -> "subprocess.Popen[str]":
        labs.add(lab)
        words = ("serve", "--stdio", "--lab", lab, "--runs", tmp_path / "runs")
        with (tmp_path / "err").open("a") as said:
            return subprocess.Popen(
                [*COMMAND, *map(str, words), "--speed", "fast"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                text=True,
            )

    yield begin
    for lab in labs:
        say("down", "--lab", lab, "--stop")
        until(partial(is_down, lab))


def line(name: str, message_id: str = "m-1", **changes: Any) -> str:
    body = json.loads((ROOT / "examples" / f"{name}.json").read_text())
    body["message_id"] = message_id
    body["payload"] |= {"caller_id": "neighbour", **changes}
    return json.dumps(body) + "\n"


def heard(text: str) -> list[Told]:
    return [Told(json.loads(each)) for each in text.splitlines()]


CALLERS = {IV: "operator", SHIPPED: "harness-local-01"}
"""A caller that each lab lets in."""


def test_a_task_goes_in_and_its_history_and_answer_come_out(stdio: Stdio, tmp_path: Path) -> None:
    caller_id = CALLERS[IV]
    told = []
    for _ in range(2):
        with stdio(IV) as process:
            out, _ = process.communicate(line("iv-curve", caller_id=caller_id), timeout=90)
        assert process.returncode == 0, (tmp_path / "err").read_text()
        told.append(heard(out))
    first, again = told
    assert history_faults(first) == []
    assert answer_in(first, "task_accepted").payload["in_reply_to"] == "m-1"
    assert [each["type"] for each in again] == ["task_accepted", "task_completed"]
    assert all(each in first for each in again)
    assert len(list((tmp_path / "runs").iterdir())) == 1


def test_what_cannot_be_read_is_told_and_stops_nothing(stdio: Stdio, tmp_path: Path) -> None:
    caller_id = CALLERS[IV]
    lines = [
        line("iv-curve", "m-2", caller_id=caller_id, intent=7),
        "no JSON\n",
        "\n",
        "a" * 2_000_000 + "\n",
        line("iv-curve", "m-3", caller_id="mallory"),
        line("iv-curve", "m-4", caller_id=caller_id),
    ]
    with stdio(IV) as process:
        out, _ = process.communicate("".join(lines), timeout=90)
    assert process.returncode == 0
    told = heard(out)
    rejected = {
        each.payload["in_reply_to"]: each.payload["reason_code"]
        for each in told
        if each["type"] == "task_rejected"
    }
    assert rejected == {"m-2": "invalid_input", "m-3": "unauthorized"}
    assert answer_in(told, "task_completed")
    said = (tmp_path / "err").read_text()
    assert said.count("a message was not taken") == 2
    assert "1048577 bytes" in said
    assert "Traceback" not in said


def test_a_caller_that_goes_away_gets_the_answer_when_it_comes_again(
    stdio: Stdio, tmp_path: Path
) -> None:
    task = line("document-analysis", caller_id=CALLERS[SHIPPED])
    with stdio(SHIPPED) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(task)
        process.stdin.flush()
        opened = Told(json.loads(process.stdout.readline()))
        process.stdout.close()
        process.stdin.close()
        assert process.wait(60) == 0, (tmp_path / "err").read_text()
    assert "the reader of the output has gone" in (tmp_path / "err").read_text()
    with stdio(SHIPPED) as process:
        out, _ = process.communicate(task, timeout=90)
    assert opened.is_("session_created")
    once = {each["message_id"]: each for each in heard(out)}  # a message may come twice, as it was
    end = answer_in([*once.values()], "task_completed")
    assert end["session_id"] == opened["session_id"]
    assert end.payload["outputs"]["findings"]


def test_what_is_for_a_broker_is_refused_beside_it() -> None:
    for each in ("--broker", "--http"):
        said = say("serve", "--stdio", each, "1")
        said.is_one_plain_error("[bad_use]", each)
