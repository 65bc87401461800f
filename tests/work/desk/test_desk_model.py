"""Whatever persons do to a run, in any order: its session goes by a reference, and ends safe."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

from commands import ROOT
from labharness.core.errors import LabError
from labharness.core.vocabulary import Cause
from labharness.core.vocabulary.trips import Trip
from labharness.journal.reading import read
from labharness.lab import Lab, read_lab
from labharness.lab.wiring.tasks import TaskRun
from rig import ANNEALING_LAB, as_submit

EXAMPLE = ROOT / "examples" / "annealing.json"
WALKS = 7
WEIGHED = {"hold": 3, "resume": 4, "wait": 3}
ENDING = {"abort": 1, "trip": 1}  # of three walks in four
AT_S = (0.0, 3.0, 60.0, 300.0, 900.0)
MAY: Mapping[str, tuple[str, ...]] = {
    "PENDING": ("RUNNING", "REJECTED"),
    "RUNNING": ("PAUSED", "COMPLETED", "FAILED", "ABORTING"),
    "PAUSED": ("RUNNING", "ABORTING"),
    "ABORTING": ("ABORTED",),
}
"""HCP layer 2: what a session may become."""

ENDS = {"COMPLETED": "task_completed", "FAILED": "task_failed", "REJECTED": "task_rejected"}
ENDS["ABORTED"] = "event"


class Persons:
    """Persons who hold, resume, abort and trip a run by chance, and what must become of it."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.random = Random(seed)
        self.weighed = WEIGHED | (ENDING if seed % 4 else {})
        self.folder, self.lab = folder, list[Lab]()
        self.did: list[tuple[str, str, bool]] = []  # what, in which state, and whether it was done
        self.asking: list[asyncio.Future[None]] = []
        self.events: list[tuple[str, Mapping[str, Any]]] = []
        asked = json.loads(EXAMPLE.read_text("utf-8"))
        asked["payload"]["inputs"] |= {"temperature_c": 120, "duration_s": 120}
        self.work = TaskRun(
            read_lab(ANNEALING_LAB),
            *as_submit(asked),
            speed=None,
            seed=seed,
            out=folder,
            prepare=self.begin,
            tell=lambda kind, data: self.events.append((kind, data)),
        )

    def begin(self, lab: Lab) -> None:
        self.lab.append(lab)
        lab.clock.loop.call_soon(self.act)

    def act(self) -> None:
        (what,) = self.random.choices([*self.weighed], [*self.weighed.values()])
        desk, loop = self.work._desk, self.lab[0].clock.loop
        if desk is not None and not desk.session.closed:
            if what in ("hold", "resume"):
                self.asking.append(asyncio.ensure_future(self.asked(what), loop=loop))
            elif what == "abort":
                self.did.append((what, desk.session.state, True))
                self.work.abort("a person")
            elif what == "trip" and desk._executing:
                self.did.append((what, desk.session.state, True))
                line = self.lab[0].line
                cause = Trip(
                    Cause.STOP_REQUEST, self.lab[0].plan.safe_procedure, "x", None, 0.0, ""
                )
                line.trip_response.trip(cause)
            loop.call_later(self.random.choice(AT_S) + 1.0, self.act)

    async def asked(self, what: str) -> None:
        desk = self.work._desk
        assert desk is not None
        state = desk.session.state
        try:
            await getattr(desk, what)("a person")
        except LabError:
            self.did.append((what, state, False))
        else:
            self.did.append((what, state, True))


@pytest.mark.promise(75)
@pytest.mark.parametrize("seed", range(WALKS))
def test_whatever_persons_do_a_session_goes_by_its_table_and_ends_once_and_safe(
    tmp_path: Path, seed: int
) -> None:
    persons = Persons(tmp_path / "run", seed)
    answer = persons.work.execute().message
    path = [data for kind, data in persons.events if kind == "state_changed"]
    state = "PENDING"
    for each in path:
        assert each["from_state"] == state
        assert each["to_state"] in MAY[state]
        state = each["to_state"]
    assert ENDS[state] == answer.type
    ends = [(what, was) for what, was, _ in persons.did if what in ("abort", "trip")]
    if not ends:
        assert state == "COMPLETED", answer
    elif ends[0][0] == "abort":
        assert state == ("REJECTED" if ends[0][1] == "PENDING" else "ABORTED")
    else:
        assert state == "FAILED" or "abort" in dict(ends)
    for what, was, done in persons.did:
        if what == "resume":
            assert done is (was == "PAUSED"), "a hold here takes less than two events"
        elif what == "hold" and done:
            assert was == "RUNNING"
    holds = [done for what, _, done in persons.did if what == "hold"]
    assert [each["to_state"] for each in path].count("PAUSED") == sum(holds)
    records = list(read(tmp_path / "run" / "journal.sqlite"))
    assert [each.kind for each in records].count("terminal") == 1
    held = False
    for record in records:
        if record.kind == "event" and record.body["event_type"] == "state_changed":
            held = record.body["data"]["to_state"] == "PAUSED"
        assert not (held and record.kind == "intent"), "a command during a hold"
    simulated = persons.lab[0].simulated
    assert simulated is not None
    assert not simulated.plant.truth()["furnace_heating"]
