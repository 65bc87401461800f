"""The spans of one session, made of what its journals say: a trace is a projection of facts.

Their ids follow from the session, so that a span that is sent again is the same one. Their
attributes are codes and names of ours alone: no words, inputs or results of a caller are among
them (https://opentelemetry.io/docs/specs/otel/trace/api/, https://www.w3.org/TR/trace-context/).
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from labharness.journal.chain import Record
from labharness.protocols.hcp.terms import DATA_CLASSES
from labharness.work.task.record import Attempt, Task

_TRACEPARENT: Final = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
SAMPLED: Final = 0x01

CLOCKS_APART_S: Final = 3_600.0
"""A run whose own time is farther from the house's is one in virtual time: its spans then begin
when the house began it, and last as long as they did for the line."""

STAGES_MAX: Final = 256
"""Stages of one run that have a span; a plan has about ten."""

WORD_CHARACTERS: Final = 64

OK, FAILED, UNSET = "ok", "error", "unset"


@dataclass(frozen=True, slots=True)
class Context:
    """Where the spans of a session belong.

    Attributes:
        trace_id: Of the whole trace.
        root_id: Of the span of the session.
        parent_id: Of the caller's span; 0 where the caller gave none.
        sampled: Whether the spans are wanted: a caller's own sampling is honoured.
    """

    trace_id: int
    root_id: int
    parent_id: int = 0
    sampled: bool = True


@dataclass(frozen=True, slots=True)
class Span:
    """One span, in seconds since 1970, UTC.

    Attributes:
        parent_id: 0 for none.
        status: ``ok``, ``error`` or ``unset``.
    """

    name: str
    span_id: int
    parent_id: int
    begin_s: float
    end_s: float
    attributes: Mapping[str, str | int] = field(default_factory=dict)
    status: str = UNSET


def traceparent_of(text: object) -> str:
    """Return a caller's ``traceparent`` if it is a valid one, else ``""``: it is never required."""
    if isinstance(text, bytes):
        text = text.decode("ascii", "replace")
    found = _TRACEPARENT.fullmatch(text) if isinstance(text, str) and len(text) <= 256 else None
    if found is None or found[1] == "ff" or not (int(found[2], 16) and int(found[3], 16)):
        return ""
    if found[1] == "00" and found[5]:  # more fields belong to higher versions
        return ""
    return f"00-{found[2]}-{found[3]}-{found[4]}"


def context_of(session_id: str, traceparent: str) -> Context:
    """Return where the spans of a session belong.

    Args:
        session_id: Of the session.
        traceparent: Of its caller, as `traceparent_of` returns it.
    """
    root_id = _span_id(session_id, "task")
    if not traceparent:
        trace = hashlib.sha256(f"trace {session_id}".encode()).digest()[:16]
        return Context(int.from_bytes(trace) or 1, root_id)
    _, trace_id, parent_id, flags = traceparent.split("-")
    sampled = bool(int(flags, 16) & SAMPLED)
    return Context(int(trace_id, 16), root_id, int(parent_id, 16), sampled)


def _span_id(session_id: str, what: str) -> int:
    digest = hashlib.sha256(f"span {session_id} {what}".encode()).digest()
    return int.from_bytes(digest[:8]) or 1


def receipt_span(session_id: str, begin_s: float, end_s: float) -> Span:
    """Return the span of a submission from its delivery until it is on the disk."""
    parent_id = _span_id(session_id, "task")
    return Span("receipt", _span_id(session_id, "receipt"), parent_id, begin_s, end_s)


def spans_of(
    task: Task, session_id: str, run: Attempt | None, records: Iterable[Record], context: Context
) -> list[Span]:
    """Return the spans of a session that has ended, that of the session itself first.

    Args:
        task: Its task.
        session_id: The session.
        run: Its run; ``None`` where it was rejected or ended before there was one.
        records: The run's journal; read once, piece by piece.
        context: Where they belong.
    """
    begin_s = task.created_at_s if run is None or run.ordinal == 1 else run.started_at_s
    seen = _seen(run, records)
    ended_s = task.ended_at_s if run is None else run.ended_at_s
    end_s = max(begin_s, ended_s or begin_s, seen.last_s)
    make = _Made(session_id, context.root_id)
    children = list(_children(make, begin_s, run, seen))
    declared = task.constraints.get("data_classification") or "T2"
    attributes: dict[str, str | int] = {
        "hcp.session_id": session_id,
        # of one that was never accepted, both are words of a caller
        "hcp.capability": _word(task.task_family) if seen.risk_level else "",
        "hcp.data_classification": declared if declared in DATA_CLASSES else "",
        "hcp.attempt": 0 if run is None else run.ordinal,
        "hcp.risk_level": seen.risk_level,
        "hcp.end": seen.end or _word(task.status),
        "hcp.error_code": _word(task.error_code if run is None else run.error_code),
    }
    told = {name: value for name, value in attributes.items() if value != ""}
    well = seen.end == "task_completed" or (not seen.end and task.status == "completed")
    status = OK if well else FAILED
    root = Span("task", context.root_id, context.parent_id, begin_s, end_s, told, status)
    return [root, *children]


def _word(value: object) -> str:
    """Return a code as an attribute; what is no code of ours is left out."""
    text = str(value)
    return text if re.fullmatch(r"[A-Za-z0-9_.-]*", text) and len(text) <= WORD_CHARACTERS else ""


@dataclass(slots=True)
class _Seen:
    """The times of a run that have a span, in seconds since 1970."""

    first_s: float = 0.0
    last_s: float = 0.0
    planned_s: float | None = None
    flown_s: float | None = None
    asked_s: float | None = None
    accepted_s: float | None = None
    step_s: float | None = None
    stages: list[tuple[str, float]] = field(default_factory=list)
    end: str = ""
    risk_level: str = ""


def _seen(run: Attempt | None, records: Iterable[Record]) -> _Seen:
    found = _Seen()
    base_s: float | None = None
    lab_time = False
    for each in records:
        if base_s is None:
            base_s = _base_s(run, each)
            found.first_s = base_s + each.at_s
        at_s = base_s + each.at_s
        if lab_time := lab_time or "metadata" in each.body:  # then each event has its own time
            own = each.body.get("timestamp")
            at_s = datetime.fromisoformat(str(own)).timestamp() if own else found.last_s
            at_s = max(at_s, found.last_s, found.first_s)
        found.last_s = at_s
        _take(found, each, at_s)
        if each.kind == "terminal":
            break  # what follows is the watch of a line that cools
    return found


def _base_s(run: Attempt | None, first: Record) -> float:
    """Return the second since 1970 at which the run's own time was 0."""
    began_s = 0.0 if run is None else run.started_at_s
    try:
        own_s = datetime.fromisoformat(str(first.body["timestamp"])).timestamp()
    except (KeyError, ValueError):
        own_s = began_s
    near = abs(own_s - began_s) <= CLOCKS_APART_S
    return (max(own_s, began_s) if near else began_s) - first.at_s


def _take(found: _Seen, record: Record, at_s: float) -> None:
    body = record.body
    if record.kind == "planned":
        found.planned_s = at_s
    elif record.kind == "prediction":
        found.flown_s = at_s
    elif record.kind == "step":
        found.step_s = at_s
    elif record.kind == "task_accepted" and found.accepted_s is None:
        found.accepted_s, found.step_s = at_s, None
        found.risk_level = _word(body.get("risk_level", ""))
    elif record.kind == "terminal":
        found.end = _word(body["type"])
    elif record.kind == "event" and body["event_type"] == "progress":
        _stage(found, _word(body["data"].get("stage", "")), at_s)


def _stage(found: _Seen, stage: str, at_s: float) -> None:
    if found.accepted_s is None:
        if stage == "awaiting_approval" and found.asked_s is None:
            found.asked_s = at_s
    elif [name for name, _ in found.stages[-1:]] != [stage] and len(found.stages) < STAGES_MAX:
        found.stages.append((stage, at_s))


class _Made:
    """Makes spans of one session; names that come again get a number."""

    def __init__(self, session_id: str, root_id: int) -> None:
        self._session_id = session_id
        self.root_id = root_id
        self._count = 0

    def __call__(self, name: str, begin_s: float, end_s: float, parent_id: int = 0) -> Span:
        self._count += 1
        span_id = _span_id(self._session_id, f"{self._count} {name}")
        return Span(name, span_id, parent_id or self.root_id, begin_s, max(begin_s, end_s))


def _children(make: _Made, begin_s: float, run: Attempt | None, seen: _Seen) -> Iterator[Span]:
    if run is None:
        return
    yield make("queue", begin_s, run.started_at_s)
    if not seen.first_s:  # it left no journal
        return
    yield make("audit", seen.first_s, _first(seen.planned_s, seen.accepted_s, seen.last_s))
    if seen.planned_s is not None and seen.flown_s is not None:
        yield make("preflight", seen.planned_s, seen.flown_s)
    if seen.asked_s is not None:
        yield make("approval", seen.asked_s, _first(seen.accepted_s, seen.last_s))
    if seen.accepted_s is None:
        return
    carried = make("run", seen.accepted_s, seen.last_s)
    yield carried
    done_s = _first(seen.step_s, seen.last_s)
    ends = [at_s for _, at_s in seen.stages[1:]]
    for (stage, at_s), until_s in zip(seen.stages, [*ends, done_s], strict=False):
        yield make(f"stage {stage}", at_s, until_s, carried.span_id)
    yield make("answer", done_s, seen.last_s, carried.span_id)


def _first(*times_s: float | None) -> float:
    return next((each for each in times_s if each is not None), 0.0)
