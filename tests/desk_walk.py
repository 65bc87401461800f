"""Walks of persons over runs of two lines, and their transcripts: what the desk wrote and answered.

As `task_walk`, for the desk: persons ask by hand for whatever can be asked, in virtual time, while
a task is taken from its arrival to its answer. A line has what was asked or recorded, and a digest
of the answer, or of the record. To write it anew, and read which lines have changed:

    python tests/desk_walk.py
"""

import asyncio
import json
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

from attempts import Attempts, going_on
from commands import ROOT
from labharness.core.clock.loops import finish
from labharness.core.vocabulary import Cause
from labharness.core.vocabulary.texts import Text, coded
from labharness.core.vocabulary.trips import Trip
from labharness.faces.testing.bench import Bench, VirtualTime
from labharness.journal.reading import read
from labharness.lab import Lab, read_lab
from labharness.lab.config.lab_facts import lab_facts_of
from labharness.lab.wiring.tasks import TaskRun, lab_facts_without_line
from labharness.work.capability import document_analysis
from labharness.work.capability.document_analysis.source import NotFetched, document_of
from labharness.work.desk.by_hand import ByHand, Nobody
from labharness.work.desk.left_behind import left_behind
from programmed import ANNEAL, prepared, programmed
from rig import SHORT_LINE, Injection, as_submit, cut, submission
from task_walk import line

TRANSCRIPTS = Path(__file__).parent / "data" / "desk_walk"
LABS = ROOT / "envelopes" / "labharness_envelopes" / "labs"
FURNACE = LABS / "annealing_furnace" / "lab.toml"
TASKS = {"annealing": FURNACE, "mos2-monolayer": SHORT_LINE}
SHORT: Mapping[str, Any] = {"temperature_c": 120, "duration_s": 120}
WALKS = (
    *(f"annealing-{seed}" for seed in range(7)),
    "mos2-monolayer-0",
    "otherwise",
    "resumed",
    "documents",
    "waited",
    "programs",
)
CUT = cut("spectrometer")
HERE = re.compile(
    f"'{re.escape(str(ROOT))}([^']*)'" if " " in str(ROOT) else re.escape(str(ROOT)) + "()"
)
DIGEST = re.compile("[0-9a-f]{64}")  # of files that may be edited for other reasons
AT_S = (1.0, 4.0, 60.0, 300.0)
OF_THE_LINE = frozenset(
    {
        *("stream", "samples", "intent", "outcome", "reading", "identified", "opening", "mode"),
        *("armed", "disarmed", "safe_frame", "make_safe", "verified", "trip", "alarm"),
    }
)
ASKED: tuple[Mapping[str, Any], ...] = (
    {"do": "status"},
    {"do": "status"},
    {"do": "read", "channel": "furnace.temperature"},
    {"do": "read", "channel": "furnace.nothing"},
    {"do": "read", "channel": 3},
    {"do": "set", "channel": "furnace.setpoint", "value": 60, "unit": "degC"},
    {"do": "set", "channel": "furnace.setpoint", "value": 60, "unit": "degC", "reason": "warmer"},
    {"do": "set", "channel": "furnace.setpoint", "value": 60, "unit": "K"},
    {"do": "set", "channel": "furnace.setpoint", "value": 5000, "unit": "degC"},
    {"do": "set", "channel": "furnace.setpoint", "value": True},
    {"do": "set", "channel": "furnace.setpoint", "value": "60"},
    {"do": "set", "channel": "furnace.setpoint", "value": 10**400},
    {"do": "set", "channel": "furnace.setpoint", "value": 60, "unit": "a\nb"},
    {"do": "set", "channel": "furnace.setpoint", "value": 60, "reason": "x" * 501},
    {"do": "set", "channel": "furnace.setpoint", "value": 60, "by": " "},
    {"do": "set", "channel": "furnace.setpoint", "value": 60, "by": "a\x07"},
    {"do": "program", "instrument": "furnace", "act": "start"},
    {"do": "program", "instrument": "furnace", "act": "odd"},
    {"do": "program", "instrument": "furnace", "act": "upload", "program": {}},
    {"do": "cooling"},
    {"do": "confirm", "step": "load"},
    {"do": "odd"},
    {"do": 3},
)
HOLDS: tuple[Mapping[str, Any], ...] = (
    {"do": "hold", "reason": "a look"},
    {"do": "hold"},
    *({"do": "resume", "reason": "seen"},) * 4,
)
ENDING: tuple[Mapping[str, Any], ...] = (
    {"do": "stop", "reason": "en\x07ough"},
    {"do": "safe", "reason": "smoke"},
    {"do": "trip"},
    {"do": "time_out"},
    {"do": "abort"},
    {"do": "cut"},
)
OTHERWISE: tuple[Mapping[str, Any], ...] = (
    {"caller_id": "nobody"},
    {"capability": "brewing"},
    {"capability_version": "9.x"},
    {"inputs": {"temperature_c": 5000, "duration_s": 120}},
    {"inputs": {"temperature_c": 120, "duration_s": -1}},
    {"inputs": {"temperature_c": 120, "duration_s": 10**7}},
    {"inputs": {"temperatur_c": 120}},
    {"inputs": {"temperature_c": "hot"}},
    {"inputs": {"temperature_c": 120, "duration_s": 120, "flow_sccm": 10**6}},
    {"constraints": {"max_duration": "PT1M"}},
    {"constraints": {"data_classification": "T3"}},
    {"constraints": {"priority": "soon"}},
    {"constraints": {"confidence_threshold": 0.5, "max_risk": "R1"}},
    {"expected_output": {"required_fields": ["beauty"]}},
    {"expected_output": {"format": "odd"}},
    {"expected_output": {"schema": {"type": 3}}},
    {"resume_from": {"session_id": "s", "checkpoint_id": "c"}},
)
"""What is asked otherwise than in the example, most of it in vain."""

CLOSED = {"properties": {"findings": {"type": "array"}}, "additionalProperties": False}
DOCUMENTS: tuple[tuple[Mapping[str, Any], Exception | None], ...] = (
    ({}, None),
    ({"x_mood": "calm"}, None),
    ({"caller_id": "nobody"}, None),
    ({"inputs": {}}, None),
    ({"capability_version": "2.x"}, None),
    ({"resume_from": {"session_id": "s", "checkpoint_id": "c"}}, None),
    ({"constraints": {"data_classification": "T3"}}, None),
    ({"expected_output": {"schema": {"properties": {"findings": {"minItems": 1}}}}}, None),
    ({"expected_output": {"schema": CLOSED}}, None),
    ({}, NotFetched("the server is away")),
    ({}, ZeroDivisionError("ours")),
    ({"context": "it is aborted"}, None),
)
"""What is asked of a desk without a line, and what fails then."""

OF_NOW = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|20[0-9T:.-]{15,}Z|PT[0-9.]+S")
"""Ids, times and durations of a run in real time."""


class DeskWalk:
    """One task, and one stream of chance for all that persons ask meanwhile."""

    def __init__(self, folder: Path, task: str, seed: int) -> None:
        self.random, self.folder, self.seed = Random(seed), folder, seed
        self.asks = (*ASKED, *(HOLDS if seed else ())) + (ENDING if seed % 3 else ())
        self.steps_done: list[str] = []
        self.lines: list[tuple[str, list[Any]]] = []
        asked = json.loads((ROOT / "examples" / f"{task}.json").read_text("utf-8"))
        if task == "annealing":
            asked["payload"]["inputs"] |= SHORT
        self.plan = replace(read_lab(TASKS[task]), state_dir=folder / "state")
        self.work = TaskRun(
            self.plan,
            *as_submit(asked),
            speed=None,
            seed=seed,
            out=folder / "run",
            prepare=self.begin,
        )

    def transcript(self) -> list[tuple[str, list[Any]]]:
        """Carry the task out; return the lines, each with all that its digest is of."""
        result = self.work.execute()
        self.lines += recorded(self.folder / "run", self.folder)
        left = left_behind(self.folder / "run", lab_facts_of(self.plan))
        self.say("left behind, had it been killed", asdict(left))
        self.say(result.message.type, [self.steps_done, repr(result.cooled)])
        return self.lines

    def say(self, name: str, told: Any) -> None:
        self.lines.append(line(name, [rounded(told)], self.folder))

    def begin(self, lab: Lab) -> None:
        lab.clock.loop.call_soon(self.act, lab)

    def act(self, lab: Lab) -> None:
        asked = {"by": "Ann", **self.random.choice(self.asks)}
        desk, loop = self.work._desk, lab.clock.loop
        if desk is None or desk.session.closed:
            return
        if asked["do"] == "trip" and desk.session.state == "RUNNING":
            cause = Cause.STOP_REQUEST
            trip = Trip(cause, lab.plan.safe_procedure, "x", None, lab.clock.now_s(), "a test")
            lab.line.trip_response.trip(trip)
        elif asked["do"] == "cut" and lab.simulated is not None:
            bus = self.random.choice(sorted(lab.simulated.buses))
            lab.simulated.buses[bus].faults.cut = True
        elif asked["do"] in ("abort", "time_out"):
            getattr(desk, asked["do"])("a person")
        else:
            self.asking = asyncio.ensure_future(self.asked(lab, asked), loop=loop)
        loop.call_later(self.random.choice(AT_S) * (30.0 if self.seed == 0 else 1.0), self.act, lab)

    async def asked(self, lab: Lab, asked: Mapping[str, Any]) -> None:
        desk = self.work._desk
        assert desk is not None
        by_hand = ByHand(lab.line, desk, self.random.choice((None, self.steps_done.append)))
        told = await by_hand.answer(asked)
        about = dict(desk.about())
        self.say(f"{asked['do']}: {_said(told)}", [asked, told, about])


def _name(body: Any) -> str:
    names = ("event_type", "instruction", "status", "type", "text")
    found = [body.get(each, "") for each in names] if isinstance(body, dict) else []
    if isinstance(body, dict) and body.get("event_type") == "state_changed":
        found.append(body["data"]["to_state"])
    return " ".join(each for each in found if isinstance(each, str) and not isinstance(each, Text))


def _said(told: Mapping[str, Any]) -> str:
    said = told.get("error", told.get("ending", told.get("state", "")))
    return said.code if isinstance(said, Text) else str(said)[:30]


def rounded(told: Any) -> Any:
    """Return it with numbers as a person reads them: the last digits are those of a machine."""
    if isinstance(told, float):
        return float(f"{told:.4g}")
    if isinstance(told, Text):
        return [told.code, rounded(dict(told.params))]
    if isinstance(told, str):
        return DIGEST.sub("digest", HERE.sub(r"here\1", told).replace(str(ROOT), "here"))
    if isinstance(told, Mapping):
        return {key: rounded(each) for key, each in told.items()}
    return [rounded(each) for each in told] if isinstance(told, list | tuple) else told


def transcript(folder: Path, walk: str) -> list[tuple[str, list[Any]]]:
    """Carry a walk out; return its lines, each with all that its digest is of."""
    if walk == "otherwise":
        return [each for number, _ in enumerate(OTHERWISE) for each in otherwise(folder, number)]
    if walk == "documents":
        return [each for number, _ in enumerate(DOCUMENTS) for each in document(folder, number)]
    if walk in BY_NAME:
        return list(BY_NAME[walk](folder))
    task, _, seed = walk.rpartition("-")
    return DeskWalk(folder, task, int(seed)).transcript()


def otherwise(folder: Path, number: int) -> Iterator[tuple[str, list[Any]]]:
    """Ask for the example otherwise, of nobody but the desk."""
    asked = json.loads((ROOT / "examples" / "annealing.json").read_text("utf-8"))
    for name, change in OTHERWISE[number].items():
        merged = isinstance(change, Mapping) and name != "resume_from"
        whole = {**asked["payload"].get(name, {}), **change} if merged else change
        asked["payload"][name] = whole
    plan = replace(read_lab(FURNACE), state_dir=folder / "state")
    out = folder / f"run-{number}"
    TaskRun(plan, *as_submit(asked), speed=None, seed=number, out=out).execute()
    yield from recorded(out, folder)
    left = left_behind(out, lab_facts_of(plan))
    yield line("left behind, had it been killed", [rounded(asdict(left))], folder)


def resumed(folder: Path) -> Iterator[tuple[str, list[Any]]]:
    """Cut the wires of a spectrometer, join them, and go on from the checkpoint."""
    plan = replace(read_lab(SHORT_LINE), state_dir=folder / "state")
    attempts = Attempts(plan, folder)
    attempts.run("first", submission(), inject=(Injection("characterisation", 300.0, CUT),))
    attempts.mend()
    attempts.run("second", going_on(submission(), folder / "first"), earlier="first")
    finish(attempts.loop)
    for name in ("first", "second"):
        yield from recorded(folder / name, folder)


def waited(folder: Path) -> Iterator[tuple[str, list[Any]]]:
    """Ask for hydrogen, to which no standing approval agrees, and wait for a person."""
    plan = replace(read_lab(SHORT_LINE), state_dir=folder / "state")
    asked = submission(recipe={"hydrogen_sccm": 20})
    TaskRun(plan, *asked, speed=None, seed=1, out=folder / "run").execute()
    yield from recorded(folder / "run", folder)


def programs(folder: Path) -> Iterator[tuple[str, list[Any]]]:
    """Store, start, hold and end a program by hand, on a line that a person has prepared."""
    lines: list[tuple[str, list[Any]]] = []

    async def by_hand() -> None:
        async with Bench(programmed(folder), folder, state=folder).running() as lab:
            lab.line.events.on_warning = warned.append
            await prepared(lab)
            for act in ("upload", "start", "hold", "reset", "upload"):
                asked: dict[str, Any] = {"do": "program", "instrument": "furnace", "act": act}
                asked |= {"by": "Ann", "program": ANNEAL, "reason": "a look"}
                told = await ByHand(lab.line, Nobody()).answer(asked)
                lines.append(line(f"{act}: {_said(told)}", [rounded([told, warned])], folder))
                await lab.line.next_tick()

    warned: list[str] = []
    VirtualTime().run(by_hand())
    yield from lines


BY_NAME = {"resumed": resumed, "waited": waited, "programs": programs}


def document(folder: Path, number: int) -> Iterator[tuple[str, list[Any]]]:
    """Have a document analysed by a desk without a line, in real time, or fail."""

    async def found(*given: object) -> Mapping[str, Any]:
        await asyncio.sleep(60.0 if "context" in changes else 0.0)
        return {"findings": [], "growth": None, "sections": 1}

    changes, fault = DOCUMENTS[number]
    asked = json.loads((ROOT / "examples" / "document-analysis.json").read_text("utf-8"))
    asked["payload"] |= changes
    asked["hcp_version"] = "1.7" if "x_mood" in changes else "1.0"
    plan = replace(read_lab(LABS / "cvd_mos2" / "lab.toml"), state_dir=folder / "state")
    out, facts, told = folder / f"run-{number}", lab_facts_without_line(plan), list[Any]()

    def tell(*said: Any) -> None:
        told.append(said)
        if said[0] == "task_accepted" and "context" in changes:
            run.abort("enough")

    run = TaskRun(plan, *as_submit(asked), without_line=facts, out=out, tell=tell)
    patched: Any = {"side_effect": fault} if fault else {"wraps": document_of}
    with (
        patch.object(document_analysis, "read_apart", found),
        patch.object(document_analysis, "document_of", **patched),
    ):
        run.execute()
    for name, body in [*_records(out), *told]:
        plain = json.loads(OF_NOW.sub("now", json.dumps(coded(rounded(body)))))
        yield line(f"{name} {_name(plain)}", [plain], folder)


def _records(out: Path) -> list[tuple[str, Any]]:
    records = read(out / "journal.sqlite")
    return [(each.kind, each.body) for each in records if each.kind not in OF_THE_LINE]


def recorded(out: Path, home: Path) -> Iterator[tuple[str, list[Any]]]:
    """Return a line for each record of the desk in the journal of a run."""
    for kind, body in _records(out):
        yield line(f"{kind} {_name(body)}", [rounded(body)], home)


def transcript_of(walk: str) -> Path:
    """Return the file of a walk."""
    return TRANSCRIPTS / f"{walk}.txt"


if __name__ == "__main__":
    for one in WALKS:
        with tempfile.TemporaryDirectory() as at:
            lines = [each for each, _ in transcript(Path(at), one)]
        transcript_of(one).write_text("\n".join(lines) + "\n", "utf-8")
        sys.stdout.write(f"{len(lines)} lines of {one}\n")
