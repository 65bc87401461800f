"""The reports of a run while it runs: its progress, its present step, and its values."""

from collections.abc import Mapping

from labharness.core.vocabulary.texts import Text
from labharness.line import Line
from labharness.work.desk.results import ResultLog, in_short
from labharness.work.desk.session import Session
from labharness.work.plan import Instruction, InstructionSet, Prediction, Progress, Status
from labharness.work.plan.instructions import InstructionKind

PROGRESS_S = 60.0  # lab time between two progress lines within a step


class ProgressReporter:
    """Reports the progress of a session.

    Args:
        session: The session that tells the events, with the record of steps and results.
        line: The source of the values.

    Attributes:
        step: The instruction that is being carried out; of several an operation, if there is one.
        doing: The same in words.
        asked_step: The instruction that waits for a person; ``""`` where none does.
    """

    def __init__(self, session: Session, line: Line) -> None:
        self.step: Instruction | None = None
        self.doing = ""
        self.asked_step = ""
        self._session = session
        self._now_s = session.clock.now_s
        self._results = ResultLog(session.journal, self._now_s)
        self._line = line
        self._steps: Mapping[str, Instruction] = {}
        self._running: dict[str, Instruction] = {}
        self._begins_s: Mapping[str, float] = {}  # of each step, as predicted, and of the whole
        self._lasts_s = 0.0
        self._ends_s = 0.0
        self._told_s = 0.0

    def expect(self, prediction: Prediction) -> None:
        """Take duration and begin of each step from a prediction."""
        self._begins_s = {each.instruction_id: each.started_s for each in prediction.steps}
        self._lasts_s = self._ends_s = prediction.duration_s

    def begin(self, instructions: InstructionSet, duration_s: float, done: int = 0) -> None:
        """Count from now.

        Args:
            instructions: The plan.
            duration_s: Its own estimate, used without a prediction.
            done: The number of instructions that an earlier run completed.
        """
        self._steps = {each.instruction_id: each for each in instructions.instructions}
        over_s = 0.0
        if done and (left := instructions.instructions[done:]):
            over_s = self._begins_s.get(left[0].instruction_id, 0.0)
        self._ends_s = self._now_s() + (self._lasts_s or duration_s) - over_s

    @property
    def holdable(self) -> bool:
        """Whether the line may stand still in all that is being carried out."""
        last = () if self.step is None else (self.step,)
        steps = tuple(self._running.values()) or last
        return bool(steps) and all(each.holdable for each in steps)

    @property
    def left_s(self) -> float:
        """The lab time that is left, by the prediction."""
        return max(0.0, self._ends_s - self._now_s())

    def progress(self, stage: str, percent: float, message: str) -> None:
        """Report the progress."""
        data = {"stage": stage, "percent": round(percent, 1), "message": message}
        self._session.event("progress", data)

    def of_line(self, stage: str, message: str, percent: int = 0) -> None:
        """Report a stage that a task has on a line alone."""
        if self._line.instruments:
            self.progress(stage, percent, message)

    def stepped(self, progress: Progress) -> None:
        """Record the begin or end of a step, and report its begin."""
        name, running = progress.instruction_id, self._running
        step = {"instruction": name, "status": progress.status.value}
        self._session.record("step", {**step, "why": progress.why} if progress.why else step)
        running.pop(name, None)
        if progress.status is Status.RUNNING:
            running[name] = self._steps[name]
        operates = [each for each in running.values() if each.kind is InstructionKind.OPERATION]
        self.step = next(iter(operates or running.values()), self.step)
        if progress.status is Status.RUNNING:
            percent = 100.0 * (progress.index - 1) / progress.total
            begins_s = self._begins_s.get(progress.instruction_id)
            if begins_s is not None and self._lasts_s > 0:
                percent = min(100.0, 100.0 * begins_s / self._lasts_s)
            self._told_s = self._now_s()
            self.doing = progress.description or name
            self.progress(progress.stage, percent, self.doing)
            if not self._line.instruments:  # no poll commits it soon, and others follow the journal
                self._session.journal.commit()

    def ticked(self) -> None:
        """Report the values, once a minute of lab time."""
        if self._line.instruments and self._now_s() - self._told_s >= PROGRESS_S:
            self._told_s = self._now_s()
            self._session.tell("tick", {"values": self._values(), "left_s": self.left_s})

    async def measured(
        self, instrument: str, query: str, about: Mapping[str, object], value: object
    ) -> None:
        """Keep the result of a query, then report it in short, with the number of its record."""
        step = "" if self.step is None else self.step.instruction_id
        record = await self._results.keep(step, instrument, query, about, value)
        data = {"step": step, "instrument": instrument, "record": record, "about": dict(about)}
        data["result"] = in_short(value)
        told = {"result_type": query, "data": data, "is_partial": True}
        self._session.event("intermediate_result", told)

    def asked(self, text: str, about: Mapping[str, object]) -> None:
        """Report the request for a manual step."""
        self.asked_step = "" if self.step is None else self.step.instruction_id
        details = {"required_action": f"confirm:{self.asked_step}", "about": dict(about)}
        self._session.event("log", {"level": "info", "message": text, "details": details})

    def confirmed(self, by: str) -> None:
        """Report who has done it."""
        self.asked_step = ""
        said = {"level": "info", "message": Text("operator.done", by=by)}
        self._session.event("log", {**said, "details": {"confirmed_by": by}})

    def warned(self, text: str) -> None:
        """Report a warning, and keep it for the answer."""
        self._line.events.warnings.append(text)
        self._session.event("warning", {"code": "line", "message": text, "details": {}})

    def _values(self) -> Mapping[str, tuple[float, float]]:
        """Return setpoint and process value of every controller that has a setpoint."""
        line = self._line
        pairs = {}
        for name, instrument in line.instruments.items():
            for process in ("temperature", "flow"):
                if {"setpoint", process} <= instrument.driver.channels.keys():
                    readback = instrument.driver.channels["setpoint"].readback
                    setpoint = line.latest(f"{name}.{readback}")
                    if setpoint > 0:
                        pairs[f"{name}.{process}"] = (setpoint, line.latest(f"{name}.{process}"))
                    break
        return pairs
