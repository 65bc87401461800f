"""A walk through the control plane of tasks, and its transcript: what became of each command.

The walk is drawn from a seed. A line of the transcript has a command, its actor and its refusal,
and a digest of its facts and of the events that they make; some lines are a look at all that the
tasks show. Whoever means to change what these say writes it anew, and reads which lines changed:

    python tests/task_walk.py
"""

import hashlib
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from labharness.core.vocabulary.texts import Text, coded
from labharness.journal.chain import Record
from labharness.work.task import commands as c
from labharness.work.task import jobs, queue
from labharness.work.task.commands import UPDATABLE, expired, readable, silent
from labharness.work.task.events import events_of
from labharness.work.task.facts import TaskFact, fact_to_json, folded
from labharness.work.task.following import followed, found_again, read_up_to
from labharness.work.task.queue import Need
from labharness.work.task.record import (
    DELIVERY_STATES,
    EDGE_KINDS,
    WITHOUT_LINE,
    RetryPolicy,
    Task,
    Tasks,
)
from labharness.work.task.snapshot import snapshot, unfollowed
from labharness.work.task.states import STATUSES, TRANSITIONS
from line_world import ARTIFACT
from tasks_alone import ANA, BEN, OLGA, RUNTIME, TasksAlone

TRANSCRIPT = Path(__file__).parent / "data" / "task_walk.txt"
STEPS, SEEDS, LOOK_EVERY = 600, (17, 18), 25
Drawn = TypeVar("Drawn")
BEGIN_S = 1_790_000_000.0
KINDS: dict[str, int] = {
    "create": 6,
    "report": 8,
    "start": 14,
    "progress": 9,
    "records": 20,
    "person": 14,
    "end": 10,
    "link": 8,
    "lease": 6,
    "job": 8,
    "due": 5,
    "queue": 2,
    "silent": 3,
}


def _event(kind: str, **data: Any) -> tuple[str, dict[str, Any]]:
    return "event", {"event_type": kind, "data": data}


def _state(before: str, to: str) -> tuple[str, dict[str, Any]]:
    return _event("state_changed", from_state=before, to_state=to, reason=f"{to} it is")


def _log(**details: Any) -> tuple[str, dict[str, Any]]:
    return _event("log", level="info", message="load it", details=details)


def _end(kind: str, **payload: Any) -> tuple[str, dict[str, Any]]:
    return "terminal", {"type": kind, "payload": payload}


SAID: tuple[tuple[str, dict[str, Any]], ...] = (
    ("submitted", {}),
    ("planned", {"instructions": {"instructions": [{}, {}]}}),
    *(("step", {"instruction": "heat", "status": each}) for each in ("RUNNING", "COMPLETED")),
    ("queried", {}),
    ("checkpoint", {}),
    _state("PENDING", "RUNNING"),
    _state("RUNNING", "PAUSED"),
    _state("PAUSED", "RUNNING"),
    _state("RUNNING", "COMPLETED"),
    _log(required_action="confirm:load", about={"sample": "S1"}),
    _log(required_action="confirm:unload"),
    _log(confirmed_by="Ann"),
    _event("progress", stage="heating", percent=5, message="hot"),
    _event("progress", stage="awaiting_approval", percent=0, message=Text("approval.waiting")),
    _event("checkpoint_created", checkpoint_id="c1"),
)
"""What a run writes while it is at work."""

ENDS = (
    _state("RUNNING", "ABORTING"),
    _end("task_completed", outputs={"raman": 1}, artifacts=[ARTIFACT]),
    _end("task_failed", error_code="timeout", error_message="too slow"),
    _end("task_failed", error_code="safety_violation", artifacts=[ARTIFACT]),
    _end("task_rejected", reason_code="forbidden", reason_message="not yours"),
    _end("task_rejected", reason_code="aborted", reason_message="asked"),
    _end("event", data={"reason": "asked"}),
)
"""How it ends."""


class Walk:
    """The tasks, and one stream of chance for all that is done to them."""

    def __init__(self, seed: int) -> None:
        self.random, self.lab = Random(seed), TasksAlone()
        self.lab.now_s, self.made, self.runs = BEGIN_S, 0, 0

    def transcript(self, steps: int) -> Iterator[tuple[str, list[Any]]]:
        """Return the lines, each with all that its digest is of."""
        for number in range(1, steps + 1):
            self.lab.now_s += self.random.choice((0.0, 0.5, 30.0, 900.0))
            (kind,) = self.random.choices([*KINDS], [*KINDS.values()])
            for command, actor in list(getattr(self, kind)()):
                yield self.given(command, actor)
            if number % LOOK_EVERY == 0:
                yield self.look()

    def given(self, command: c.TaskCommand, actor: c.TaskActor) -> tuple[str, list[Any]]:
        """Give a command; return its line."""
        before, known = self.lab.tasks, len(self.lab.facts)
        said = self.lab(command, actor) or "taken"
        name = f"{command.word} {command.concerns} by {actor.name}: {said}"
        return line(name, list(_told(self.lab.facts[known:], before)))

    def look(self) -> tuple[str, list[Any]]:
        """Look at everything that the tasks show; return its line."""
        tasks, now_s = self.lab.tasks, self.lab.now_s
        about = [(jobs.standing(tasks, j), *jobs.untold(tasks, j)) for j in tasks.jobs.values()]
        made = [{**asdict(each), "told": sorted(each.told)} for each in tasks.jobs.values()]
        mine = [each.task_id for each in readable(tasks, ANA)]
        next_ = queue.next_task(tasks, _need)
        below = [tasks.descendants(each) for each in tasks.by_id]
        shown = [snapshot(each, "house", now_s) for each in (tasks, unfollowed(tasks))]
        turns = (mine, next_ and next_.task_id, queue.is_full(tasks), tasks.refusals, below)
        return line("look", [*shown, about, turns, made])

    # ---- what is done: commands with their actors

    def task(self) -> Task | None:
        every = list(self.lab.tasks.by_id.values())[-8:]
        at_work = [each for each in every if each.current is not None]
        return self.random.choice((*every, *at_work, *at_work)) if every else None

    def name(self) -> str:
        task = self.task()
        return "nobody" if task is None or self.random.random() < 0.03 else task.task_id

    def rarely(self, usual: Drawn, *odd: Drawn) -> Drawn:
        return self.random.choice(odd) if self.random.random() < 0.07 else usual

    def actor(self, usual: c.TaskActor = RUNTIME) -> c.TaskActor:
        return self.rarely(usual, ANA, BEN, OLGA, RUNTIME)

    def create(self) -> Iterator[tuple[c.TaskCommand, c.TaskActor]]:
        choice = self.random.choice
        self.made += self.random.random() < 0.95
        owner = choice([each for each in self.lab.tasks.jobs.values() if each.owed] or [None])
        owned: dict[str, Any] = {}
        if owner is not None and choice((True, False)):
            owned = {"job_id": owner.job_id, "job_run": choice(owner.owed)}
        retry = RetryPolicy(
            choice((1, 4, 4)), choice((0.0, 900.0)), ("timeout",), choice((None, 900.0))
        )
        fresh = c.CreateTask(
            task_id=f"t{self.made}",
            objective=self.rarely("grow", ""),
            parent_task_id=choice(("", "", "", self.name())),
            session_id=choice(("", f"s{self.made}")),
            title=self.rarely("a film", "", "x" * 500, "x" * 501),
            task_family=choice(("cvd", "raman")),
            visibility=self.rarely("foreground", "hidden", "odd"),
            priority=choice((*queue.PRIORITIES, "soon")),
            acceptance=choice(((), ("raman",))),
            profile=choice(({}, {"via": "hcp"}, {"via": "hcp"}, {WITHOUT_LINE: True})),
            key=self.random.choice(("", "", "", f"k{self.made}", "k1")),
            retry=retry,
            **owned,
        )
        actor = choice((ANA, ANA, BEN, OLGA))
        yield fresh, actor
        if fresh.key and choice((True, False)):
            yield replace(fresh, task_id="again"), actor
        if self.random.random() < 0.7:
            yield c.ReportStatus(task_id=f"t{self.made}", to="accepted"), RUNTIME

    def report(self) -> Iterator[tuple[c.TaskCommand, c.TaskActor]]:
        name = self.name()
        known = self.lab.tasks.by_id.get(name)
        may = TRANSITIONS[known.status] if known is not None else ()
        to = self.random.choice((*may, *may, *may, *STATUSES))
        action = self.random.choice(("", "confirm"))
        reason = self.random.choice(("", "because"))
        yield (
            c.ReportStatus(task_id=name, to=to, reason=reason, required_action=action),
            self.actor(),
        )

    def start(self) -> Iterator[tuple[c.TaskCommand, c.TaskActor]]:
        every, chance = self.lab.tasks.by_id.values(), self.random
        ready = [
            each.task_id
            for each in every
            if not each.attempts and each.status in ("accepted", "queued")
        ]
        over = [each.task_id for each in every if each.status in ("failed", "timed_out", "lost")]
        name = chance.choice((self.name(), *ready[-3:], *over[-3:]))
        self.runs += chance.random() < 0.9
        run: dict[str, Any] = {
            "run_id": self.rarely(f"r{self.runs}", "", "r1"),
            "worker": self.rarely("line", ""),
        }
        known = self.lab.tasks.by_id.get(name)
        if known is not None and known.attempts:
            why = chance.choice(("once more", "once more", "once more", ""))
            refs = chance.choice(((), ("c1",)))
            again = c.RetryTask(task_id=name, reason=why, input_refs=refs, **run)
            yield again, chance.choice((RUNTIME, OLGA))
        yield c.StartTask(task_id=name, **run), self.actor()
        if chance.random() < 0.5:
            yield c.ReportStatus(task_id=name, to="running"), RUNTIME

    def progress(self) -> Iterator[tuple[c.TaskCommand, c.TaskActor]]:
        choice, name = self.random.choice, self.name()
        if choice((True, False, False)):
            yield (
                c.AppendProgress(
                    task_id=name, delivery=self.rarely(choice(DELIVERY_STATES), "odd")
                ),
                RUNTIME,
            )
        said = c.AppendProgress(
            task_id=name,
            phase=choice(("", "working")),
            current_step=choice(("", "heat")),
            counters=choice(({}, {"steps": 3})),
            output_offsets={"log": choice((2, 4, 4, 6, 8)), "map": choice((3, 5, 5, 7))},
            checkpoint_refs=choice(((), ("c1",))),
            covered=self.rarely((), ("raman",), ("beauty",)),
            step=self.rarely(("heat", "instruction", "RUNNING"), (), ("heat", "RUNNING")),
            plan=self.rarely((("1", "look", "done"), ("2", "heat", "open")), (), (("1", "look"),)),
        )
        yield choice((said, said, c.AppendProgress(task_id=name))), self.actor()

    def records(self) -> Iterator[tuple[c.TaskCommand, c.TaskActor]]:
        """A run that is open has written more records; or it was lost, and is found again."""
        open_ = [each for each in self.lab.tasks.unended_tasks if each.current is not None]
        if not open_:
            return
        task, chance = self.random.choice(open_), self.random
        run = task.current
        assert run is not None
        written = chance.choices(SAID, k=chance.randrange(5))
        written += [chance.choice(ENDS)] if chance.random() < 0.15 else []
        first = read_up_to(run) + 1
        new = [Record(first + i, 0.0, *each, "") for i, each in enumerate(written)]
        follows = list(found_again(task)) if chance.random() < 0.05 else []
        for each in (*follows, *followed(task, run, new)):
            yield each, RUNTIME

    def person(self) -> Iterator[tuple[c.TaskCommand, c.TaskActor]]:
        choice, name, why = self.random.choice, self.name(), self.random.choice(("", "asked"))
        changes = choice(
            (
                {},
                {"status": "completed"},
                {"title": 3},
                {"objective": ""},
                {"objective": "look", "title": "a look"},
                {next(iter(UPDATABLE)): "new", "acceptance": ("raman",), "scope": {"a": 1}},
            )
        )
        given = (
            *(c.PauseTask(task_id=name, reason=why), c.ResumeTask(task_id=name)) * 3,
            *(c.CancelTask(task_id=name, reason=why), c.UpdateTask(task_id=name, changes=changes))
            * 2,
            c.ArchiveTask(task_id=name),
            *(c.GetTask(task_id=name), c.ListTasks(task_id="")),
        )
        yield replace(choice(given), key=choice(("", "", "", "k3"))), self.actor(OLGA)

    def end(self) -> Iterator[tuple[c.TaskCommand, c.TaskActor]]:
        name, choice = self.name(), self.random.choice
        code = choice(("cold", "timeout", "inactivity", ""))
        if choice((True, False, False)):
            self.runs += 1
            again: dict[str, Any] = {
                "run_id": f"r{self.runs}",
                "worker": "line",
                "reason": "at once",
            }
            yield c.FailTask(task_id=name, error_code=code, reason=choice(("", "it was"))), RUNTIME
            yield c.RetryTask(task_id=name, **again), RUNTIME
            return
        yield c.ReportStatus(task_id=name, to="running"), RUNTIME
        done: list[c.TaskCommand] = [
            c.AppendProgress(task_id=name, covered=("raman",), output_offsets={"map": 9}),
            c.AppendProgress(task_id=name, delivery="delivered"),
        ]
        known = self.lab.tasks.by_id.get(name)
        for run in known.attempts if known is not None else ():
            for ref in {"map": 9, **run.output_offsets}:
                made = {"kind": "produced_artifact", "target_id": ref}
                done.append(c.LinkTasks(task_id=name, **made))
        for each in done:
            if self.random.random() < 0.75:
                yield each, RUNTIME
        yield c.CompleteTask(task_id=name), self.actor()

    def link(self) -> Iterator[tuple[c.TaskCommand, c.TaskActor]]:
        choice = self.random.choice
        pairs = ("child", "parent", "blocks", "blocked_by")
        kind = choice((*pairs * 3, *EDGE_KINDS, "odd"))
        name = {
            "task_id": self.name(),
            "kind": kind,
            "target_id": choice((self.name(),) * 4 + ("log", "")),
        }
        made = choice((c.LinkTasks, c.LinkTasks, c.UnlinkTasks))
        yield made(reason=choice(("", "so")), **name), self.actor(OLGA)
        if self.random.random() < 0.1 and (
            edges := [each for each in self.lab.tasks.edges if each.status == "active"]
        ):
            one = choice(edges)
            end = {"task_id": one.source_id, "kind": one.kind, "target_id": one.target_id}
            yield c.UnlinkTasks(**end), OLGA

    def lease(self) -> Iterator[tuple[c.TaskCommand, c.TaskActor]]:
        choice, held = self.random.choice, list(self.lab.tasks.leases.values())
        if held and self.random.random() < 0.5:
            one = choice(held)
            name = choice((one.task_id, one.task_id, self.name()))
            yield c.ReleaseInstruments(task_id=name, run_id=one.run_id), self.actor()
        open_ = [each for each in self.lab.tasks.unended_tasks if each.current is not None]
        if open_:
            task = choice(open_)
            run = task.current.run_id if task.current is not None else ""
            need = _need(task)
            taken: dict[str, Any] = {
                "run_id": choice((run, run, "r1")),
                "instruments": need.instruments,
            }
            yield c.LeaseInstruments(task_id=task.task_id, places=need.places, **taken), RUNTIME

    def job(self) -> Iterator[tuple[c.TaskCommand, c.TaskActor]]:
        choice, every = self.random.choice, list(self.lab.tasks.jobs)
        name = choice((*every[-4:], f"j{len(every) + 1}"))
        batch = ({"a": 1}, {"a": 2})
        times = ("PT20M", "day@07:00", "sunday@23:59", "odd")
        schedule, runs = choice((*((each, ()) for each in times), ("", batch), ("", batch)))
        schedule = self.rarely(schedule, "", "PT20M")
        fresh = jobs.CreateJob(
            job_id=choice((f"j{len(every) + 1}",) * 5 + (name,)),
            title=self.rarely("check", "x" * 501, ""),
            every=schedule,
            runs=runs,
        )
        owed = [(j.job_id, r) for j in self.lab.tasks.jobs.values() for r in j.owed]
        job_id, run = choice(owed or [(name, "1")])
        told = [
            (j.job_id, u)
            for j in self.lab.tasks.jobs.values()
            for u, _ in jobs.untold(self.lab.tasks, j)
        ]
        about, what = choice(told or [(name, "odd")])
        drop = jobs.DropRun(job_id=job_id, run=choice((run, run, "9")), reason="bad_job")
        ends = jobs.EndJob(job_id=name, reason=choice(("", "enough")))
        tell = jobs.TellJob(job_id=about, name=what)
        given = choice((fresh, fresh, fresh, drop, tell, tell, ends))
        usual = OLGA if isinstance(given, jobs.CreateJob | jobs.EndJob) else RUNTIME
        yield given, self.actor(usual)

    def due(self) -> Iterator[tuple[c.TaskCommand, c.TaskActor]]:
        full = self.random.random() < 0.2
        for job in self.lab.tasks.jobs.values():
            if job.every and self.random.random() < 0.5:
                schedule = jobs.schedule_of(job.every, job.created_at_s)
                self.lab.now_s = schedule.after(self.lab.now_s) + self.random.choice((1.0, 61.0))
            for each in list(jobs.due(self.lab.tasks, job, self.lab.now_s, full=full)):
                yield each, RUNTIME
                if self.random.random() < 0.1:
                    yield each, RUNTIME

    def queue(self) -> Iterator[tuple[c.TaskCommand, c.TaskActor]]:
        held, away = self.random.choice((("", ""), ("", ""), ("latched", ""), ("", "away")))
        for each in list(queue.reviewed(self.lab.tasks)):
            yield each, RUNTIME
        for each in list(queue.waits(self.lab.tasks, _need, held, away)):
            yield each, RUNTIME

    def silent(self) -> Iterator[tuple[c.TaskCommand, c.TaskActor]]:
        late = [each.task_id for each in silent(self.lab.tasks, self.lab.now_s)]
        made = expired(self.lab.tasks, self.lab.now_s)
        for fact in made:
            self.lab.tasks = folded((fact,), self.lab.tasks)
        self.lab.facts += made
        for each in late:
            yield c.GetTask(task_id=each), RUNTIME


def _need(task: Task) -> Need:
    cvd = task.task_family == "cvd"
    return Need(("furnace", "gas"), 2) if cvd else Need((), 1)


def _told(facts: list[TaskFact], before: Tasks) -> Iterator[Any]:
    for number, fact in enumerate(facts):
        after = folded((fact,), before)
        yield fact_to_json(fact)
        yield events_of(fact, before, after, str(number))
        before = after


def line(name: str, told: list[Any], home: Path = Path("/nowhere")) -> tuple[str, list[Any]]:
    """Return a line of a transcript: a name, and the digest of all that it tells."""
    body = json.dumps(coded(told), sort_keys=True, default=str).replace(str(home), "home")
    return f"{name} {hashlib.sha256(body.encode()).hexdigest()[:8]}", told


def walks() -> Iterator[tuple[str, list[Any]]]:
    """Return the lines of a walk for each seed."""
    for seed in SEEDS:
        yield from Walk(seed).transcript(STEPS)


if __name__ == "__main__":
    lines = [each for each, _ in walks()]
    TRANSCRIPT.write_text("\n".join(lines) + "\n", "utf-8")
    sys.stdout.write(f"{len(lines)} lines\n")
