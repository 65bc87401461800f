"""The tools of an agent: what it may read, propose and stop of a lab, as one of its callers.

An agent has the rights of its caller and no more, whatever its model says: nothing here sets a
channel, approves, acknowledges, resets, or writes a file. A task that it submits goes the way of
any other, and persons agree to it elsewhere.
"""

import json
import logging
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

from labharness.core.clock import pause, steady_s, utc_text, wall_clock_utc
from labharness.core.errors import LabError
from labharness.core.operations import Kind
from labharness.core.vocabulary.digests import digest_of
from labharness.core.vocabulary.texts import CodedError, Text
from labharness.faces.dialogue.plugins import loaded
from labharness.faces.report.facts import RunFacts
from labharness.faces.report.reading import read_run
from labharness.instruments.link.conversation import LineControl, NoOwner, house_door
from labharness.journal import access_log
from labharness.journal.chain import canonical
from labharness.lab.config.address import account_home, read_address
from labharness.lab.config.channels import check_readable
from labharness.lab.config.lab_facts import lab_facts_of
from labharness.lab.config.lab_plan import LabPlan
from labharness.lab.config.lock import LineBusy
from labharness.lab.house.orders import WORKER, runs_of
from labharness.lab.house.owner_client import line_state
from labharness.lab.house.screening import LabFiles
from labharness.lab.operate.idle_line import read_now
from labharness.lab.wiring.preflight import forecast
from labharness.protocols.hcp.codec import HCP_VERSION, decode
from labharness.protocols.hcp.messages import TaskSubmit
from labharness.protocols.hcp.terms import DATA_CLASSES, DataClass, Rejected
from labharness.protocols.strict_json import Json
from labharness.work.admission.audit import UNDECLARED
from labharness.work.admission.confidential import declared_class
from labharness.work.admission.schemas import input_fault
from labharness.work.desk.explained import explained
from labharness.work.desk.facts import facts_for
from labharness.work.desk.folder import JOURNAL_NAME
from labharness.work.dialogue.course import ASKS
from labharness.work.task.kept import HOUSE_JOURNAL, read_tasks
from labharness.work.task.record import Task, Tasks
from labharness.work.task.snapshot import task_of, utc
from labharness.work.task.states import TERMINAL

LOG = logging.getLogger(__name__)

GROUP: Final = "labharness.agent_tools"
"""Entry points of further tools: the name, and a value `AgentTool` of kind ``read``."""

ANSWER_BYTES_MAX: Final = 65_536
"""Size (bytes) of the largest answer to a model."""

POINTS_MAX: Final = 200
"""Most points of one trend; each stands for as many readings as the next."""

TASKS_TOLD_MAX: Final = 50
"""Most tasks of a list, the newest."""

WAIT_S_MAX: Final = 50.0
"""Longest wait (s) of one call for the end of a task: programs of agents give up after a minute."""

LOOK_S: Final = 0.25
"""Time (s) between two looks at a task that is waited for."""

REASON_CHARACTERS_MAX: Final = 240
"""Most characters of a reason in a list, so that long ones do not keep the list back."""

REFUSAL_CHARACTERS_MAX: Final = 2_000
"""Most characters of the sentence of a refusal."""

HIDDEN: Final = re.compile(
    r"\x1b\[[0-9;?]*[ -/]*[@-~]"
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]"
    r"|[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\uffa0\ufff0-\ufffb]"
    r"|[\ufe00-\ufe0f\ud800-\udfff\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Characters that a person does not see and a model reads: controls, marks of direction, those
without width, tags, variants, and halves of a character."""

SUBMITS: Final = "submit_task"

Body = dict[str, Any]


class NotForAgent(CodedError, ValueError, code="not_for_agent"):
    """An agent is not told, or does not get, what it asks for; the message says why."""


@dataclass(frozen=True, slots=True)
class AgentTool:
    """A tool for an agent.

    Attributes:
        name: Its name for a model.
        kind: Its effect, which is never ``steer``.
        told: Its use, for the model.
        parameters: The JSON Schema of each parameter.
        required: The names of those that must be given.
        work: Carries it out.
    """

    name: str
    kind: Kind
    told: str
    work: Callable[..., Body]
    parameters: Mapping[str, Body]
    required: tuple[str, ...] = ()

    @property
    def schema(self) -> Body:
        """The JSON Schema of its arguments: no other name is taken."""
        return {
            "type": "object",
            "properties": dict(self.parameters),
            "required": list(self.required),
            "additionalProperties": False,
        }


@dataclass(eq=False)
class Agent:
    """The agent of one caller at one lab.

    Attributes:
        lab: The lab file.
        caller_id: The caller whose rights it has.
        on_loopback: Its model is on this machine.
    """

    lab: Path
    caller_id: str
    on_loopback: bool = False

    def __post_init__(self) -> None:
        self._files = LabFiles(self.lab)
        self._home = read_address(self.lab).state_dir
        self._known: tuple[LabPlan, Body] | None = None

    @property
    def plan(self) -> LabPlan:
        """The lab as its files are now.

        Raises:
            NotForAgent: Its callers file does not know the caller.
        """
        return self._read()[0]

    def _read(self) -> tuple[LabPlan, Body]:
        plan = self._files.current()[0]
        self._home = plan.state_dir
        if self._known is None or self._known[0] is not plan:  # its files have changed
            self._known = plan, self._card(plan)
        return self._known

    def call(self, name: str, arguments: Mapping[str, Any]) -> Body:
        """Return the answer of a tool, as plain JSON without hidden characters.

        Raises:
            NotForAgent: There is no such tool or argument, or the answer is not for this agent.
            LabError: The lab refuses, or is not up.
        """
        tool = known_tools().get(name)
        if tool is None:
            raise NotForAgent("agent.unknown_tool", name=name[:80], known=", ".join(known_tools()))
        has_any = bool(arguments or tool.required)  # a call without any is looked at in no time
        if has_any and (fault := input_fault(tool.schema, arguments)):
            raise NotForAgent("pair", what=fault.where, why=fault.reason)
        found: Body = self._told(json.loads(json.dumps(tool.work(self, **arguments))))
        if (size := len(json.dumps(found, ensure_ascii=False).encode())) > ANSWER_BYTES_MAX:
            raise NotForAgent("agent.answer_size", size=size, most=ANSWER_BYTES_MAX)
        return found

    def answer(
        self, name: str, arguments: Mapping[str, Any], thread_id: str = ""
    ) -> tuple[bool, Body]:
        """Return whether a tool was carried out, with its answer or why not.

        A task that it submits is joined to the dialogue `thread_id`.
        """
        try:
            found = self.call(name, arguments)
            if thread_id and name == SUBMITS:
                edge = {"kind": "assigned_thread", "target_id": thread_id}
                self._ask_house(do="link", by=self.caller_id, task_id=found["task_id"], **edge)
            return True, found
        except LabError as why:
            return False, self.refusal(why.code, str(why))
        except OSError as why:
            return False, self.refusal("os", why.strerror or type(why).__name__)
        except Exception:  # one call does not end the others
            LOG.exception("a call of an agent failed")
            return False, self.refusal("internal_error", Text("agent.failed", what=name[:80]))

    def refusal(self, code: str, why: str) -> Body:
        """Return the answer to a call that is refused, in one line of bounded length."""
        said = " ".join(self._told(why).split())[:REFUSAL_CHARACTERS_MAX]
        return {"outcome": "refused", "code": code, "message": said}

    def _told(self, value: Json) -> Json:
        """Return JSON as a model is given it: the lab's folders have no place on the machine."""
        folders = (self._home, runs_of(self._home), self.lab.parent, self.lab.absolute().parent)
        return plain(value, [each for each in folders if each is not None])

    # ---- read

    def describe_lab(self) -> Body:
        """Return what this caller may ask of the lab, and the limits that the lab enforces."""
        plan, card = self._read()
        return {**card, "line": line_state(plan)}

    def _card(self, plan: LabPlan) -> Body:
        facts = lab_facts_of(plan)
        caller = None if facts.callers is None else facts.callers.get(self.caller_id)
        if facts.callers is not None and caller is None:
            raise NotForAgent("caller.unknown", caller=self.caller_id[:80])
        may = facts.capabilities if caller is None else caller.capabilities
        offered = [each for name, each in facts.capabilities.items() if name in may]
        return {
            "lab": plan.lab_id,
            "title": plan.file.lab.title,
            "caller": self.caller_id,
            "model_class": self._class_most(plan),
            "risk_max": None if caller is None else caller.risk_max,
            "capabilities": [each.declaration.to_json() for each in offered],
            "safety_envelope": plan.safety_envelope,
            "channels": dict(facts.watched),
        }

    def read_channels(self, channels: Sequence[str]) -> Body:
        """Return the present value of each channel with its unit, or why there is none."""
        plan = self.plan
        for each in channels:
            check_readable(plan, each)
        for task in self._tasks().unended_tasks:
            if task.current is not None and task.current.worker == WORKER:
                self._must_be_open(_class_of(task), "a run at work")
        try:
            with LineControl(plan.state_dir) as owner:
                found = [owner.ask(do="read", channel=each) for each in channels]
        except NoOwner:
            try:
                found = read_now(plan, channels)
            except LineBusy:  # which names the run of another
                raise NotForAgent("agent.line_busy") from None
        return {"readings": dict(zip(channels, found, strict=True))}

    def list_runs(self) -> Body:
        """Return this caller's tasks whose class a model may have, the newest first."""
        tasks = self._tasks().by_id.values()
        own = [each for each in tasks if self._is_own(each) and self._is_open(_class_of(each))]
        newest = sorted(own, key=lambda each: each.created_at_s, reverse=True)[:TASKS_TOLD_MAX]
        return {"count": len(own), "tasks": [_row(each) for each in newest]}

    def get_task(self, task_id: str, wait_s: float = 0.0) -> Body:
        """Return the state of one task, as soon as it has ended or the time is over."""
        until_s = steady_s() + wait_s
        while True:
            tasks = self._tasks()
            task = self._shown(tasks, task_id)
            if task.status in TERMINAL or steady_s() >= until_s:
                return task_of(tasks, task)
            pause(LOOK_S)

    def get_run(self, task_id: str) -> Body:
        """Return the answer of a task's last run, and the range of each channel in it."""
        run = self._run(task_id, "answer")
        ranges = {
            channel: {"low": min(values), "high": max(values)}
            for channel, points in run.traces.items()
            if (values := [value for _, value in points if math.isfinite(value)])
        }
        return {
            "state": run.state,
            "duration_s": run.duration_s,
            "answer": run.answer,
            "record_holds": run.chain.ok,
            "ranges": ranges,
        }

    def trend(self, task_id: str, channels: Sequence[str]) -> Body:
        """Return readings of some channels over a task's last run, in seconds from its begin."""
        run = self._run(task_id, "readings")
        for each in channels:
            if each not in run.traces:
                known = ", ".join(run.traces) or "-"
                raise NotForAgent("agent.no_trend", channel=each, known=known)
        units = run.rules.units
        return {
            channel: {"unit": units.get(channel, ""), "points": _thinned(run.traces[channel])}
            for channel in channels
        }

    # ---- propose

    def explain(self, task: Body) -> Body:
        """Return what each gate of admission finds of a task; nothing is submitted."""
        payload, plan = self._payload(task), self.plan
        facts = facts_for(replace(lab_facts_of(plan), predict=None), payload)
        return asdict(explained(payload, facts, plan.envelope, wall_clock_utc))

    def check_plan(self, task: Body) -> Body:
        """Return the prediction for a task on the simulated plant; nothing is submitted."""
        payload, plan = self._payload(task), self.plan
        found = forecast(plan, payload, runs_of(plan.state_dir) or Path("runs"))
        if isinstance(found, Rejected):
            return {"outcome": "rejected", **asdict(found)}
        flown = found.prediction.to_json()
        told = ("asks", "approved", "risk_level", "risk_reasons", "unknown", "warnings")
        kept = {name: flown[name] for name in ("duration_s", "gas_used_cm3", "units")}
        ranges = {
            channel: {"low": min(points)[1], "high": max(value for _, value in points)}
            for channel, points in flown["trajectory"].items()
            if points
        }
        said = {name: getattr(found, name) for name in told}
        return {"outcome": "accepted", **said, **kept, "ranges": ranges}

    def submit_task(self, task: Body, key: str = "") -> Body:
        """Return what the house says of a task; the same task and key are the same request."""
        payload = self._payload(task)
        stated = {"caller": self.caller_id, "key": key, "payload": payload.stated()}
        message_id = digest_of(canonical(stated))
        message = json.dumps(_message(message_id, payload.stated()))
        kept = self._ask_house(do="submit", message=message, message_id=message_id)
        if not kept.pop("rejected"):
            return {"outcome": "kept", **kept}
        why = self._tasks().by_id[kept["task_id"]].status_reason
        return {"outcome": "rejected", **kept, "reason": why[:REASON_CHARACTERS_MAX]}

    # ---- ask

    def ask_person(self, question: str) -> Body:
        """Return that the user's next words are awaited; they agree to no task."""
        return {"outcome": "pending", "question": question}

    # ---- safe

    def request_stop(self, task_id: str, reason: str) -> Body:
        """Have one of this caller's own tasks cancelled, and its line made safe.

        A fault in the lab's files, an end of the caller's rights and a class of data refuse none.
        """
        own = self._own(self._kept(), task_id)
        asked = {"by": self.caller_id, "task_id": own.task_id, "reason": reason}
        return self._ask_house(do="cancel", **asked)

    # ---- what is this caller's

    def _tasks(self) -> Tasks:
        self._read()  # a caller that the lab does not know is told nothing
        return self._kept()

    def _kept(self) -> Tasks:
        path = self._home / HOUSE_JOURNAL
        return read_tasks(path) if path.exists() else Tasks()

    def _is_own(self, task: Task) -> bool:
        return task.requested_by == self.caller_id

    def _own(self, tasks: Tasks, task_id: str) -> Task:
        task = tasks.by_id.get(task_id)
        if task is None or not self._is_own(task):  # which tasks others have is not told
            raise NotForAgent("agent.unknown", caller_id=self.caller_id, task_id=task_id[:80])
        return task

    def _shown(self, tasks: Tasks, task_id: str) -> Task:
        task = self._own(tasks, task_id)
        self._must_be_open(_class_of(task), task_id)
        return task

    def _class_most(self, plan: LabPlan) -> DataClass:
        return plan.file.lab.model_class or ("T2" if self.on_loopback else "T1")

    def _is_open(self, found: str) -> bool:
        most = self._class_most(self.plan)
        return found in DATA_CLASSES[: DATA_CLASSES.index(most) + 1]

    def _must_be_open(self, found: str, what: str) -> None:
        if not self._is_open(found):
            most = self._class_most(self.plan)
            raise NotForAgent("agent.data_class", what=what, found=found[:80], most=most)

    def _run(self, task_id: str, what: str) -> RunFacts:
        task = self._shown(self._tasks(), task_id)
        runs = runs_of(self._home)
        if runs is None or not task.attempts:
            raise NotForAgent("agent.no_run", task_id=task_id, status=task.status)
        path = runs / task.attempts[-1].run_id / JOURNAL_NAME
        access_log.log_access(
            path.parent,
            data_class=access_log.data_class_of(path),
            reader=self.caller_id,
            via="mcp",
            what=what,
            elsewhere=account_home(),
        )
        return read_run(path)

    def _payload(self, task: Body) -> TaskSubmit:
        stated = task.get("caller_id", self.caller_id)
        if stated != self.caller_id:
            raise NotForAgent(
                "agent.other_caller", stated=str(stated)[:80], caller_id=self.caller_id
            )
        body = _message("of-an-agent", {**task, "caller_id": self.caller_id})
        payload = decode(json.dumps(body).encode()).payload
        if not isinstance(payload, TaskSubmit):
            raise TypeError(type(payload))
        self._must_be_open(declared_class(payload) or UNDECLARED, "task")
        return payload

    def _ask_house(self, **asked: object) -> Body:
        with house_door(self._home) as house:
            answer = house.ask(**asked)
        if not answer.pop("ok"):
            raise NotForAgent(answer["error"])
        return answer


def _message(message_id: str, payload: Body) -> Body:
    return {
        "hcp_version": HCP_VERSION,
        "message_id": message_id,
        "timestamp": utc_text(wall_clock_utc()),
        "session_id": None,
        "type": "task_submit",
        "payload": payload,
    }


def _class_of(task: Task) -> str:
    return str(task.constraints.get("data_classification") or UNDECLARED)


def _row(task: Task) -> Body:
    return {
        "task_id": task.task_id,
        "title": task.title,
        "status": task.status,
        "reason": task.status_reason[:REASON_CHARACTERS_MAX],
        "created_at": utc(round(task.created_at_s)),
    }


def _thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    every = -(-len(points) // POINTS_MAX) or 1
    return [(round(at_s, 1), value) for at_s, value in points[::every] if math.isfinite(value)]


def plain(value: Json, folders: Iterable[Path] = ()) -> Json:
    """Return JSON without numbers that it has not, whose texts hide nothing from a person.

    Args:
        value: As Python reads it.
        folders: Of the machine; a text has the name of each, and not where it is.
    """
    names = {str(each): each.name for each in folders if each.is_absolute() and each.name}
    return _plain(value, tuple(names.items()))


def _plain(value: Json, names: Sequence[tuple[str, str]]) -> Json:
    if isinstance(value, dict):
        return {_plain(key, names): _plain(each, names) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each, names) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if not isinstance(value, str):
        return value
    for place, name in names:
        value = value.replace(place, name)
    return value if value.isascii() and value.isprintable() else HIDDEN.sub("", value)


_TASK: Final = {
    "type": "object",
    "description": "an HCP task_submit payload: capability, intent, inputs, and if need be "
    "constraints and expected_output; describe_lab has the schema of each capability's inputs",
    "properties": {"capability": {"type": "string"}, "intent": {"type": "string"}},
    "required": ["capability", "intent", "inputs"],
}
_TASK_ID: Final = {"type": "string", "maxLength": 128}
_CHANNELS: Final = {
    "type": "array",
    "items": {"type": "string", "maxLength": 128},
    "minItems": 1,
    "maxItems": 32,
    "description": "instrument.channel",
}
_WAIT_S: Final = {"type": "number", "minimum": 0, "maximum": WAIT_S_MAX}
_REASON: Final = {"type": "string", "minLength": 1, "maxLength": 500}

TOOLS: Final = {
    each.name: each
    for each in (
        AgentTool(
            "describe_lab",
            "read",
            "Capabilities with the schemas of their inputs, enforced limits, and channels.",
            Agent.describe_lab,
            {},
        ),
        AgentTool(
            "read_channels",
            "read",
            "Present readings, each with its unit, or why there is none.",
            Agent.read_channels,
            {"channels": _CHANNELS},
            ("channels",),
        ),
        AgentTool("list_runs", "read", "Your own tasks, the newest first.", Agent.list_runs, {}),
        AgentTool(
            "get_task",
            "read",
            "The state of one of your tasks; with wait_s, as soon as it has ended.",
            Agent.get_task,
            {"task_id": _TASK_ID, "wait_s": _WAIT_S},
            ("task_id",),
        ),
        AgentTool(
            "get_run",
            "read",
            "The answer of a task's last run, and the range of each channel in it.",
            Agent.get_run,
            {"task_id": _TASK_ID},
            ("task_id",),
        ),
        AgentTool(
            "trend",
            "read",
            f"Readings of channels over a task's last run, at most {POINTS_MAX} of each.",
            Agent.trend,
            {"task_id": _TASK_ID, "channels": _CHANNELS},
            ("task_id", "channels"),
        ),
        AgentTool(
            "explain",
            "read",
            "What each gate of admission finds of a task. Nothing is submitted.",
            Agent.explain,
            {"task": _TASK},
            ("task",),
        ),
        AgentTool(
            "check_plan",
            "propose",
            "The prediction for a task on the simulated plant, and its risk. Nothing is submitted.",
            Agent.check_plan,
            {"task": _TASK},
            ("task",),
        ),
        AgentTool(
            SUBMITS,
            "propose",
            "Give a task to the lab. The answer has its id at once; a person may have to agree "
            "first. The same task again is the same request, unless another key is given.",
            Agent.submit_task,
            {"task": _TASK, "key": {"type": "string", "maxLength": 64}},
            ("task",),
        ),
        AgentTool(
            ASKS,
            "ask",
            "Put a question to your user; the next input is the answer. It agrees to no task.",
            Agent.ask_person,
            {"question": {"type": "string", "minLength": 1, "maxLength": 500}},
            ("question",),
        ),
        AgentTool(
            "request_stop",
            "safe",
            "Cancel one of your own tasks; its line is made safe.",
            Agent.request_stop,
            {"task_id": _TASK_ID, "reason": _REASON},
            ("task_id", "reason"),
        ),
    )
}
"""The tools by name. That none of them sets, approves, acknowledges, resets or arms is meant."""


@cache
def known_tools() -> Mapping[str, AgentTool]:
    """Return the tools by name: ours, and those that other packages add, which read alone."""
    others = loaded(AgentTool, GROUP).items()
    return {**{name: each for name, each in others if each.kind == "read"}, **TOOLS}
