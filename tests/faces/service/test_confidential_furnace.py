"""A confidential task on real ports: its line owner is killed, it goes on, and its line trips."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from broker import NEEDS_BROKER
from canary import found_in
from commands import say
from confidential import GROWER, confidential_furnace
from labharness.core.clock import pause, steady_s
from labharness.journal import JournalFailed
from labharness.journal.reading import read, verify_file
from plain_caller import PlainCaller, Told, history_faults
from secured import CALLEE, Secured, secured_broker
from served import Served
from serving import Service, approve
from up_lab import until

CALLEE_ID = "annealing-furnace-simulated-served"
TEMPERATURE_C = 207.7319
CANARY = str(TEMPERATURE_C)
SAFE_S_MAX = 3.0
"""Of promise 1, after which nothing may heat."""

TRIES = 5
"""Of a kill between a checkpoint and the first command that heats, some 0.1 s after it."""

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(300), NEEDS_BROKER]


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secured_broker(tmp_path_factory.mktemp("tls")) as made:
        yield made


class Furnace:
    """A furnace behind a guard, a lab that is served over TLS, and one caller of it."""

    def __init__(self, folder: Path, secured: Secured, served: Served, asked: Path) -> None:
        self.folder, self.served, self.asked = folder, served, asked
        self.lab = served.lab_file
        options = ("--ca", str(secured.ca))
        self.service = Service(self.lab, secured.url(CALLEE), folder / "runs", "1", *options)
        self.asks = PlainCaller(secured.url(GROWER), GROWER, CALLEE_ID, tls=secured.tls())

    def begin(self, **resume: Any) -> str:
        """Submit, and have a person agree; return the session once it runs."""
        payload = {
            "capability": "annealing",
            "caller_id": GROWER,
            "intent": "Anneal as the file says",
            "inputs": {"inputs_uri": self.asked.as_uri()},
            "constraints": {"data_classification": "T3"},
            **resume,
        }
        self.asks.submit(payload)
        opened = self.asks.until(lambda told: told.is_("session_created"))
        waits = self.asks.until(
            lambda told: (
                told["type"] == "task_rejected" or told.is_("progress", stage="awaiting_approval")
            )
        )
        assert waits["type"] == "event", waits
        until(lambda: "R3" in say("approvals", "list", "--lab", self.lab).out)
        approve(self.lab)
        self.asks.until(lambda told: told.is_("state_changed", to_state="RUNNING"))
        return str(opened["session_id"])

    def killed_at_checkpoint(self, session_id: str) -> Told:
        """Kill the line owner as soon as its run has a checkpoint; return the caller's answer."""
        journal, owner = self.folder / "runs" / session_id / "journal.sqlite", self.service.owner()
        end_s = steady_s() + 60.0
        while "checkpoint_created" not in events(journal):
            assert steady_s() < end_s
            pause(0.005)
        os.kill(owner, signal.SIGKILL)
        began_s = steady_s()
        while self.served.truth()["furnace_heating"]:
            assert steady_s() - began_s < SAFE_S_MAX
        return self.asks.ended()

    def heated(self, session_id: str) -> bool:
        """Whether a command that heats came before the kill: from there nothing goes on."""
        found = read(self.folder / "runs" / session_id / "journal.sqlite")
        asked = [each.body for each in found if each.kind == "intent"]
        return any(each["channel"] == "furnace.setpoint" and each["value"] > 0.0 for each in asked)

    def reset(self) -> None:
        name = ("--name", "Olga", "--reason", "looked at it")
        until(lambda: say("reset", "--lab", self.lab, *name).code == 0)


def events(journal: Path) -> list[str]:
    try:
        return [str(each.body["event_type"]) for each in read(journal) if each.kind == "event"]
    except JournalFailed:
        return []


@pytest.mark.promise(71)
def test_a_killed_line_owner_and_a_trip_leave_nothing_of_a_confidential_task_in_clear(
    tmp_path: Path, secured: Secured, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    asked = tmp_path / "inputs" / "anneal.json"
    asked.parent.mkdir()
    asked.write_text(json.dumps({"temperature_c": TEMPERATURE_C, "duration_s": 60.0}), "utf-8")
    lab = confidential_furnace(tmp_path / "lab", asked.parent)
    with Served(tmp_path / "sim", lab=lab) as served:
        furnace = Furnace(tmp_path, secured, served, asked)
        try:
            for _ in range(TRIES):
                session_id = furnace.begin()
                failed = furnace.killed_at_checkpoint(session_id)
                assert failed["type"] == "task_failed"
                details = failed.payload["error_details"]
                assert details["last_checkpoint"] == "ckpt-001"
                furnace.reset()
                if not furnace.heated(session_id):
                    break
            point = {"session_id": session_id, "checkpoint_id": "ckpt-001"}
            later = furnace.begin(resume_from=point)
            furnace.asks.until(lambda told: told.is_("progress", stage="heating"))
            served.ask("fault", set={"furnace_sensor_broken": True})
            tripped = furnace.asks.ended()
            assert tripped["type"] == "task_failed"
            assert tripped.payload["error_code"] == "safety_violation"
            for each in (session_id, later):
                heard = [told for told in furnace.asks.heard if told["session_id"] == each]
                assert history_faults(heard) == []
            assert CANARY not in json.dumps(furnace.asks.heard)
            furnace.asks.purge()
            furnace.asks.close()
        finally:
            furnace.service.down()
    for each in (session_id, later):
        assert verify_file(tmp_path / "runs" / each / "journal.sqlite").ok
    with secured.at_rest():
        places = [tmp_path / each for each in ("lab", "sim", "runs", "tmp", "serve.log")]
        assert found_in(*places, secured.broker.home, canary=CANARY) == []
