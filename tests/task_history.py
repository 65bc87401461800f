"""A referee of the history of tasks: from the facts of a house journal alone, without its fold.

It knows the table of statuses and nothing else of the code that made the facts.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from labharness.work.task import facts as f
from labharness.work.task.states import TERMINAL, TRANSITIONS


@dataclass
class _History:
    """What has been told of one task so far."""

    status: str = "draft"
    runs: list[str] = field(default_factory=list)
    open: str = ""
    leased: tuple[str, ...] | None = None
    read: dict[str, int] = field(default_factory=dict)
    steps: list[tuple[str, ...]] = field(default_factory=list)


def faults_of(
    facts: Iterable[f.TaskFact],
    submitted: Iterable[str],
    steps: Mapping[str, Sequence[tuple[str, ...]]] | None = None,
) -> list[str]:
    """Return all that is wrong with a history whose tasks have all ended.

    Args:
        facts: Of the journal of the house, in its order.
        submitted: The tasks that callers were told of.
        steps: Instruction and status of each step that the journals of the runs have, by run.
    """
    referee = _Referee()
    for fact in facts:
        referee.see(fact)
    referee.end(list(submitted), steps or {})
    return referee.faults


class _Referee:
    def __init__(self) -> None:
        self.tasks: dict[str, _History] = {}
        self.faults: list[str] = []
        self.at_s = float("-inf")

    def see(self, fact: f.TaskFact) -> None:
        """Look at one more fact."""
        self._must(fact.at_s >= self.at_s, "time runs backwards", fact)
        self.at_s = max(self.at_s, fact.at_s)
        task_id = getattr(fact, "task_id", "")
        if isinstance(fact, f.TaskCreated):
            self._must(task_id not in self.tasks, "task made twice", fact)
            self.tasks.setdefault(task_id, _History())
        elif isinstance(fact, f.CommandTaken | f.CommandRefused) or not task_id:
            return
        elif task_id not in self.tasks:
            self._must(False, "task that was never made", fact)
        else:
            for what, true in self._of(self.tasks[task_id], fact):
                self._must(true, what, fact)

    def _of(self, task: _History, fact: f.TaskFact) -> Iterator[tuple[str, bool]]:
        """Return each thing that must hold of a fact, and whether it does; then take it in."""
        if isinstance(fact, f.TaskMoved):
            yield f"{task.status} becomes {fact.to}", fact.to in TRANSITIONS[task.status]
            yield "ended with an open attempt", fact.to not in TERMINAL or not task.open
            task.status = fact.to
        elif isinstance(fact, f.AttemptStarted):
            yield "two attempts at once", not task.open
            yield "run begun twice", all(fact.run_id not in t.runs for t in self.tasks.values())
            task.runs.append(fact.run_id)
            task.open = fact.run_id
        elif isinstance(fact, f.AttemptEnded):
            yield "attempt ended that is not open", task.open == fact.run_id
            task.open = ""
        elif isinstance(fact, f.TaskProgressed):
            yield "progress without an attempt", bool(task.open)
            for ref, offset in fact.output_offsets.items():
                if ref.startswith("journal:"):
                    yield "record followed twice", offset > task.read.get(ref, 0)
                    task.read[ref] = offset
            if fact.step:
                task.steps.append((task.open, *fact.step))
        elif isinstance(fact, f.InstrumentsLeased):
            taken = {n for t in self.tasks.values() for n in t.leased or ()}
            yield "instrument with two runs", not taken & set(fact.instruments)
            yield "lease without an attempt", task.open == fact.run_id and task.leased is None
            task.leased = fact.instruments
        elif isinstance(fact, f.InstrumentsReleased):
            yield "lease ended that is not there", task.leased is not None
            yield "lease ended before its attempt", not task.open
            task.leased = None

    def end(self, submitted: list[str], steps: Mapping[str, Sequence[tuple[str, ...]]]) -> None:
        """Compare with what callers were told, and with the journals of the runs."""
        for task_id in submitted:
            self._must(task_id in self.tasks, "lost", task_id)
        self._must(len(set(submitted)) == len(self.tasks), "more tasks than were submitted", "")
        for task_id, task in self.tasks.items():
            self._must(task.status in TERMINAL, f"not ended ({task.status})", task_id)
            self._must(task.leased is None, "lease that nobody ended", task_id)
            for run_id in task.runs:
                followed = [(name, status) for run, name, _, status in task.steps if run == run_id]
                self._must(followed == list(steps.get(run_id, followed)), "other steps", run_id)

    def _must(self, true: bool, what: str, where: object) -> None:
        if not true:
            self.faults.append(f"{what}: {where}")
