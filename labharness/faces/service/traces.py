"""Traces of a house's tasks, made of what the journals say when a session ends, for a collector.

Ids of spans follow from the session, so that a span that is sent again is the same one. Attributes
are codes and names of ours alone: no words, inputs or results of a caller are among them
(https://opentelemetry.io/docs/specs/otel/trace/api/, https://www.w3.org/TR/trace-context/).

Nothing waits for a collector: spans stand in a queue of bounded length, a thread of its own sends
them over OTLP, and what does not fit or is not taken is counted and dropped.
"""

import asyncio
import hashlib
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from datetime import datetime
from importlib.metadata import version
from queue import Empty, Full, Queue
from threading import Thread
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from labharness.core.clock import steady_s, wall_clock_utc
from labharness.core.vocabulary.texts import Text
from labharness.faces.service.counts import Counts
from labharness.faces.service.open_sessions import OpenSessions, is_over
from labharness.journal import JournalFailed
from labharness.journal.chain import Record
from labharness.lab.house.access import HouseAccess
from labharness.lab.house.intake import ReceivedSubmission, Submitted
from labharness.protocols.hcp.codec import HcpMessage
from labharness.protocols.hcp.terms import DATA_CLASSES
from labharness.work.admission.confidential import Way
from labharness.work.task.record import Attempt, Task
from labharness.work.task.states import TERMINAL

LOG = logging.getLogger(__name__)

TRACEPARENT: Final = "traceparent"
"""Key of a task's profile, and of the headers of a message."""

_TRACEPARENT: Final = re.compile(
    r"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?"
)
_WORD: Final = re.compile(r"[A-Za-z0-9_.-]{0,64}")

SPANS_MAX: Final = 4_096
"""Spans that wait to be sent; further ones are dropped."""

BATCH_SPANS: Final = 256
"""Spans of one request at most."""

EXPORT_S_MAX: Final = 10.0
"""Longest time (s) of one request, with its repetitions."""

LOOK_S: Final = 1.0
"""Time (s) between two looks for sessions that have ended."""

FLUSH_S_MAX: Final = 3.0
"""Longest time (s) that a service which ends waits for its last spans."""

CLOCKS_APART_S: Final = 3_600.0
"""A run whose own time is farther from the house's is one in virtual time: its spans then begin
when the house began it, and last as long as they did for the line."""

STAGES_MAX: Final = 256
"""Stages of one run that have a span; a plan has about ten."""


class Context(NamedTuple):
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


class Span(NamedTuple):
    """One span, in seconds since 1970, UTC.

    Attributes:
        parent_id: 0 for none.
        status: Name of an OpenTelemetry status code: ``OK``, ``ERROR`` or ``UNSET``.
    """

    name: str
    span_id: int
    parent_id: int
    begin_s: float
    end_s: float
    attributes: Mapping[str, str | int] = {}
    status: str = "UNSET"


Waiting = tuple[Context, Span]

Take = Callable[[Sequence[Waiting]], bool]
"""Sends spans; returns whether they were taken. It may block, and is called in a thread."""


def traceparent_of(text: object) -> str:
    """Return a caller's ``traceparent`` if it is a valid one, else ``""``: it is never required."""
    if isinstance(text, bytes):
        text = text.decode("ascii", "replace")
    found = _TRACEPARENT.fullmatch(text) if isinstance(text, str) and len(text) <= 256 else None
    if found is None or (found[1] == "00" and found[5]):  # more fields are of higher versions
        return ""
    return f"00-{found[2]}-{found[3]}-{found[4]}"


def context_of(session_id: str, traceparent: str) -> Context:
    """Return where the spans of a session belong.

    Args:
        session_id: Of the session.
        traceparent: Of its caller, as `traceparent_of` returns it.
    """
    root_id = _hashed(8, f"span {session_id} task")
    if not traceparent:
        return Context(_hashed(16, f"trace {session_id}"), root_id)
    _, trace_id, parent_id, flags = traceparent.split("-")
    return Context(int(trace_id, 16), root_id, int(parent_id, 16), bool(int(flags, 16) & 1))


def _hashed(size: int, what: str) -> int:
    return int.from_bytes(hashlib.sha256(what.encode()).digest()[:size]) or 1


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
    end_s = max(begin_s, ended_s or begin_s, seen.at_s.get("last", 0.0))
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
    status = "OK" if well else "ERROR"
    root = Span("task", context.root_id, context.parent_id, begin_s, end_s, told, status)
    if run is None:
        return [root]
    at_s = {**seen.at_s, "begin": begin_s, "started": run.started_at_s}
    return [root, *_children(session_id, context.root_id, at_s, seen.stages)]


def _word(value: object) -> str:
    """Return a code as an attribute; what is no code of ours is left out."""
    return text if _WORD.fullmatch(text := str(value)) else ""


@dataclass(slots=True)
class _Seen:
    """What a journal says: times in seconds since 1970 by the kinds of records, and stages."""

    at_s: dict[str, float] = field(default_factory=dict)
    stages: list[tuple[str, float]] = field(default_factory=list)
    end: str = ""
    risk_level: str = ""


def _seen(run: Attempt | None, records: Iterable[Record]) -> _Seen:
    found = _Seen()
    for each, at_s in _timed(run, records):
        found.at_s.setdefault("first", at_s)
        found.at_s["last"] = at_s
        accepted = "task_accepted" in found.at_s
        if each.kind == "event" and each.body["event_type"] == "progress":
            stage = _word(each.body["data"].get("stage", ""))
            if not accepted:
                found.at_s.setdefault(stage, at_s)
            elif [s for s, _ in found.stages[-1:]] != [stage] and len(found.stages) < STAGES_MAX:
                found.stages.append((stage, at_s))
        elif each.kind == "task_accepted" and not accepted:
            found.at_s.pop("step", None)
            found.at_s[each.kind] = at_s
            found.risk_level = _word(each.body.get("risk_level", ""))
        elif each.kind == "terminal":
            found.end = _word(each.body["type"])
            break  # what follows is the watch of a line that cools
        elif each.kind in ("planned", "prediction", "step"):
            found.at_s[each.kind] = at_s
    return found


def _timed(run: Attempt | None, records: Iterable[Record]) -> Iterator[tuple[Record, float]]:
    """Return each record with its time; of a run in lab time each event states its own."""
    began_s, base_s, last_s, lab_time = 0.0 if run is None else run.started_at_s, None, 0.0, False
    for each in records:
        own_s: float | None = None
        with suppress(KeyError, ValueError):
            own_s = datetime.fromisoformat(str(each.body["timestamp"])).timestamp()
        if base_s is None:  # the second since 1970 at which the run's own time was 0
            near = own_s is not None and abs(own_s - began_s) <= CLOCKS_APART_S
            base_s = (max(own_s or 0.0, began_s) if near else began_s) - each.at_s
            last_s = base_s + each.at_s
        lab_time = lab_time or "metadata" in each.body
        last_s = max(last_s, own_s or 0.0) if lab_time else base_s + each.at_s
        yield each, last_s


PARTS: Final = (
    ("queue", "begin", ("started",)),
    ("audit", "first", ("planned", "task_accepted", "last")),
    ("preflight", "planned", ("prediction",)),
    ("approval", "awaiting_approval", ("task_accepted", "last")),
    ("run", "task_accepted", ("last",)),
)
"""Spans of a session: the name, where it begins, and where it ends, whichever there is first."""


def _children(
    session_id: str, root_id: int, at_s: Mapping[str, float], stages: Sequence[tuple[str, float]]
) -> Iterator[Span]:
    parts: list[tuple[str, float, float]] = []
    for name, begin, ends in PARTS:
        end = next((each for each in ends if each in at_s), "")
        if begin in at_s and end:
            parts.append((name, at_s[begin], at_s[end]))
    within_run = len(parts)
    if "task_accepted" in at_s:
        done_s = at_s.get("step", at_s["last"])
        ends_s = [*(each for _, each in stages[1:]), done_s]
        for (stage, since_s), until_s in zip(stages, ends_s, strict=False):
            parts.append((f"stage {stage}", since_s, until_s))
        parts.append(("answer", done_s, at_s["last"]))
    parent_id = root_id
    for number, (name, begin_s, end_s) in enumerate(parts, 1):  # some names come again
        span_id = _hashed(8, f"span {session_id} {number} {name}")
        yield Span(name, span_id, parent_id, begin_s, max(begin_s, end_s))
        if number == within_run:
            parent_id = span_id  # of the run


def collector_at(url: str, lab_id: str) -> Take:
    """Return what has a collector take spans, one request after the other.

    Args:
        url: Of the collector; without a path, the protocol's own.
        lab_id: Id of the lab.

    Raises:
        ModuleNotFoundError: The extra ``telemetry`` is not installed.
    """
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExportResult
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope
    from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

    # what is not taken is counted, and told once: not a line for each try
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
    path = urlsplit(url).path.strip("/")
    whole = url if path else f"{url.rstrip('/')}/v1/traces"  # as OTLP has it
    exporter = OTLPSpanExporter(endpoint=whole, timeout=EXPORT_S_MAX)
    flags, scope = TraceFlags(1), InstrumentationScope("labharness", version("labharness"))
    names = {"service.name": scope.name, "service.version": scope.version}
    resource = Resource({**names, "labharness.lab": lab_id})

    def readable(context: Context, span: Span) -> ReadableSpan:
        remote = span.parent_id == context.parent_id
        parent = SpanContext(context.trace_id, span.parent_id, remote, flags)
        return ReadableSpan(
            span.name,
            context=SpanContext(context.trace_id, span.span_id, False, flags),
            parent=parent if span.parent_id else None,
            resource=resource,
            attributes=span.attributes,
            kind=SpanKind.CONSUMER if span.span_id == context.root_id else SpanKind.INTERNAL,
            status=Status(StatusCode[span.status]),
            start_time=round(span.begin_s * 1e9),
            end_time=round(span.end_s * 1e9),
            instrumentation_scope=scope,
        )

    return lambda spans: (
        exporter.export([readable(*each) for each in spans]) is SpanExportResult.SUCCESS
    )


class Traces:
    """The spans of one house on their way.

    Args:
        take: Sends spans.
        counts: Where sent and dropped spans are counted.
        tell: Called with a line for people when a collector stops taking spans.
    """

    def __init__(self, take: Take, counts: Counts, tell: Callable[[str], None]) -> None:
        self._take, self._tell, self._counts = take, tell, counts.spans
        self._queue: Queue[Waiting] = Queue(SPANS_MAX)
        self._ending = False
        self._sessions = OpenSessions()
        self._looked = False
        self._thread = Thread(target=self._send, name="traces", daemon=True)
        self._thread.start()

    def put(self, context: Context, spans: Iterable[Span]) -> None:
        """Have spans sent some time; it never waits."""
        for span in spans if context.sampled else ():
            try:
                self._queue.put_nowait((context, span))
            except Full:
                self._counts["dropped"] += 1

    def _send(self) -> None:
        """Send what waits, in a thread: a collector may take its time."""
        well = True
        while not (self._ending and self._queue.empty()):
            batch: list[Waiting] = []
            with suppress(Empty):
                batch.append(self._queue.get(timeout=LOOK_S))
                while len(batch) < BATCH_SPANS:
                    batch.append(self._queue.get_nowait())
            if not batch:
                continue
            was_well, well = well, False
            try:
                well = self._take(batch)
            except Exception:  # whatever an exporter does, no run is to notice
                LOG.warning("spans could not be sent", exc_info=True)
            self._counts["sent" if well else "dropped"] += len(batch)
            if was_well and not well:
                self._tell(Text("traces.away"))

    def end(self, house: HouseAccess) -> None:
        """Send what is left, for a bounded time; what is left after it is dropped."""
        self.look(house)
        self._ending = True
        self._thread.join(FLUSH_S_MAX)

    async def follow(self, house: HouseAccess) -> None:
        """Send the spans of each session that ends, until it is cancelled."""
        while True:
            await asyncio.to_thread(self.look, house)
            await asyncio.sleep(LOOK_S)

    def look(self, house: HouseAccess) -> None:
        """Send the spans of the sessions that have ended since the last look."""
        try:
            before, self._looked = self._looked, True  # at first those still open alone
            for session_id, task, run in self._sessions.look(
                house.tasks(), lambda task: before or task.status not in TERMINAL
            ):
                if is_over(task, run):
                    self._sessions.drop(session_id)
                    self._put_session(house, task, session_id, run)
        except Exception:  # a trace is never worth a service
            LOG.warning("sessions could not be traced", exc_info=True)

    def _put_session(
        self, house: HouseAccess, task: Task, session_id: str, run: Attempt | None
    ) -> None:
        context = context_of(session_id, str(task.profile.get(TRACEPARENT, "")))
        try:
            records = house.runs.records(session_id, 0) if run is not None else ()
            found = spans_of(task, session_id, run, records, context)
        except (JournalFailed, OSError) as why:
            LOG.warning("the journal of session %s cannot be traced: %s", session_id, why)
            found = spans_of(task, session_id, run, (), context)
        self.put(context, found)


@dataclass(frozen=True, slots=True)
class TracedHouse(HouseAccess):
    """A house whose submissions have a span of their receipt, and keep their caller's trace."""

    traces: Traces

    @classmethod
    def of(cls, house: HouseAccess, traces: Traces) -> "TracedHouse":
        """Return a house that is traced."""
        kept = {each.name: getattr(house, each.name) for each in fields(house)}
        return cls(**kept, traces=traces)

    async def submit(
        self, data: bytes, decoded: HcpMessage, via: str, way: Way, traceparent: object = None
    ) -> Submitted:
        """Keep a submission; raises as `House.submit`."""
        stated = traceparent_of(traceparent)
        began, began_s = wall_clock_utc().timestamp(), steady_s()
        noted = {TRACEPARENT: stated} if stated else {}
        asked = ReceivedSubmission(data, decoded, via=via, way=way, noted=noted)
        kept = await self.submitting.submit(asked)
        if kept.fresh:
            session_id = self.tasks().by_id[kept.task_id].session_id
            context = context_of(session_id, stated)
            span_id = _hashed(8, f"span {session_id} receipt")
            ended = began + steady_s() - began_s
            self.traces.put(context, [Span("receipt", span_id, context.root_id, began, ended)])
        return kept
