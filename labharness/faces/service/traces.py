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
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, fields
from importlib.metadata import version
from itertools import count
from queue import Empty, Full, Queue
from threading import Thread
from typing import Final
from urllib.parse import urlsplit

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.trace import SpanKind, StatusCode, Tracer, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from labharness.core.clock import steady_s, wall_clock_utc
from labharness.core.vocabulary.texts import Text
from labharness.faces.service.counts import Counts
from labharness.faces.service.open_sessions import OpenSessions, is_over
from labharness.faces.service.session_times import code_in, parts_of, times_in
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

HEADERS: Final = TraceContextTextMapPropagator()

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

Take = Callable[[Sequence[ReadableSpan]], SpanExportResult]
"""Sends spans. It may block, and is called in a thread."""

KEYS: Final[ContextVar[tuple[str, Iterator[object]]]] = ContextVar("KEYS")
"""The session whose spans are made, and what tells them apart within it, in their order."""


class SessionIds(IdGenerator):
    """Ids that follow from the session, by `KEYS`."""

    def generate_trace_id(self) -> int:
        """Return the id of a session's trace."""
        return _hashed(16, f"trace {KEYS.get()[0]}")

    def generate_span_id(self) -> int:
        """Return the id of a session's next span."""
        session_id, keys = KEYS.get()
        return _hashed(8, f"span {session_id} {next(keys)}")


def _hashed(size: int, what: str) -> int:
    return int.from_bytes(hashlib.sha256(what.encode()).digest()[:size]) or 1


def noted_of(stated: object) -> dict[str, str]:
    """Return what is kept of a caller's ``traceparent``: nothing where it is no valid one."""
    text = stated.decode("ascii", "replace") if isinstance(stated, bytes) else stated
    noted: dict[str, str] = {}
    HEADERS.inject(noted, HEADERS.extract({TRACEPARENT: text if isinstance(text, str) else ""}))
    return noted


def tracer_of(lab_id: str, way: SpanProcessor) -> Tracer:
    """Return what makes the spans of a lab's sessions.

    Args:
        lab_id: Id of the lab.
        way: The way of each span that has ended.
    """
    own = {"service.name": "labharness", "service.version": version("labharness")}
    about = Resource({**own, "labharness.lab": lab_id})
    provider = TracerProvider(resource=about, id_generator=SessionIds(), shutdown_on_exit=False)
    provider.add_span_processor(way)
    return provider.get_tracer(own["service.name"], own["service.version"])


def trace_session(
    tracer: Tracer, task: Task, session_id: str, run: Attempt | None, records: Iterable[Record]
) -> None:
    """Make the spans of a session that has ended.

    Args:
        tracer: Makes them.
        task: Its task.
        session_id: The session.
        run: Its run; ``None`` where it was rejected or ended before there was one.
        records: The run's journal; read once, piece by piece.
    """
    ended = task if run is None else run
    begin_s = task.created_at_s if run is None or run.ordinal == 1 else run.started_at_s
    seen = times_in(begin_s if run is None else run.started_at_s, records)
    end_s = max(begin_s, ended.ended_at_s or begin_s, seen.at_s.get("last", 0.0))
    declared = task.constraints.get("data_classification") or "T2"
    attributes: dict[str, str | int] = {
        "hcp.session_id": session_id,
        # of one that was never accepted, both are words of a caller
        "hcp.capability": code_in(task.task_family) if seen.risk_level else "",
        "hcp.data_classification": declared if declared in DATA_CLASSES else "",
        "hcp.attempt": 0 if run is None else run.ordinal,
        "hcp.risk_level": seen.risk_level,
        "hcp.end": seen.end or code_in(task.status),
        "hcp.error_code": code_in(ended.error_code),
    }
    KEYS.set((session_id, count()))
    told = {name: value for name, value in attributes.items() if value != ""}
    root = tracer.start_span(
        "task", HEADERS.extract(task.profile), SpanKind.CONSUMER, told, start_time=_ns(begin_s)
    )
    well = seen.end == "task_completed" or (not seen.end and task.status == "completed")
    root.set_status(StatusCode.OK if well else StatusCode.ERROR)
    parent = set_span_in_context(root)
    queued = {} if run is None else {"begin": begin_s, "started": run.started_at_s}
    for name, since_s, until_s in parts_of(seen.at_s | queued, seen.stages):
        part = tracer.start_span(name, parent, start_time=_ns(since_s))
        part.end(_ns(max(since_s, until_s)))
        parent = set_span_in_context(part) if name == "run" else parent
    root.end(_ns(end_s))


def _ns(at_s: float) -> int:
    return round(at_s * 1e9)


def collector_at(url: str) -> Take:
    """Return what has a collector take spans, one request after the other.

    Args:
        url: Of the collector; without a path, the protocol's own.
    """
    # what is not taken is counted, and told once: not a line for each try
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
    path = urlsplit(url).path.strip("/")
    whole = url if path else f"{url.rstrip('/')}/v1/traces"  # as OTLP has it
    return OTLPSpanExporter(endpoint=whole, timeout=EXPORT_S_MAX).export


class Traces(SpanProcessor):
    """The spans of one house on their way.

    Args:
        take: Sends spans.
        house: The house.
        counts: Where sent and dropped spans are counted.
        tell: Called with a line for people when a collector stops taking spans.
    """

    def __init__(
        self, take: Take, house: HouseAccess, counts: Counts, tell: Callable[[str], None]
    ) -> None:
        self._take, self._house, self._tell, self._counts = take, house, tell, counts.spans
        self.tracer = tracer_of(house.lab_id, self)
        self._queue: Queue[ReadableSpan] = Queue(SPANS_MAX)
        self._ending = False
        self._sessions = OpenSessions()
        self._looked = False
        self._thread = Thread(target=self._send, name="traces", daemon=True)
        self._thread.start()

    def on_end(self, span: ReadableSpan) -> None:
        """Have a span sent some time; it never waits."""
        try:
            self._queue.put_nowait(span)
        except Full:
            self._counts["dropped"] += 1

    def _send(self) -> None:
        """Send what waits, in a thread: a collector may take its time."""
        well = True
        while not (self._ending and self._queue.empty()):
            batch: list[ReadableSpan] = []
            with suppress(Empty):
                batch.append(self._queue.get(timeout=LOOK_S))
                while len(batch) < BATCH_SPANS:
                    batch.append(self._queue.get_nowait())
            if not batch:
                continue
            was_well, well = well, False
            try:
                well = self._take(batch) is SpanExportResult.SUCCESS
            except Exception:  # whatever an exporter does, no run is to notice
                LOG.warning("spans could not be sent", exc_info=True)
            self._counts["sent" if well else "dropped"] += len(batch)
            if was_well and not well:
                self._tell(Text("traces.away"))

    def end(self) -> None:
        """Send what is left, for a bounded time; what is left after it is dropped."""
        self.look()
        self._ending = True
        self._thread.join(FLUSH_S_MAX)

    async def follow(self) -> None:
        """Send the spans of each session that ends, until it is cancelled."""
        while True:
            await asyncio.to_thread(self.look)
            await asyncio.sleep(LOOK_S)

    def look(self) -> None:
        """Send the spans of the sessions that have ended since the last look."""
        try:
            before, self._looked = self._looked, True  # at first those still open alone
            for session_id, task, run in self._sessions.look(
                self._house.tasks(), lambda task: before or task.status not in TERMINAL
            ):
                if is_over(task, run):
                    self._sessions.drop(session_id)
                    self._put_session(task, session_id, run)
        except Exception:  # a trace is never worth a service
            LOG.warning("sessions could not be traced", exc_info=True)

    def _put_session(self, task: Task, session_id: str, run: Attempt | None) -> None:
        try:
            records = self._house.runs.records(session_id, 0) if run is not None else ()
            trace_session(self.tracer, task, session_id, run, records)
        except (JournalFailed, OSError) as why:
            LOG.warning("the journal of session %s cannot be traced: %s", session_id, why)
            trace_session(self.tracer, task, session_id, run, ())


@asynccontextmanager
async def traced(
    house: HouseAccess, take: Take, counts: Counts, tell: Callable[[str], None]
) -> AsyncIterator[HouseAccess]:
    """Return a house whose tasks are traced; at its end the last spans are sent."""
    traces = Traces(take, house, counts, tell)
    following = asyncio.ensure_future(traces.follow())
    try:
        kept = {each.name: getattr(house, each.name) for each in fields(house)}
        yield TracedHouse(**kept, traces=traces)
    finally:
        following.cancel()
        await asyncio.to_thread(traces.end)


@dataclass(frozen=True, slots=True)
class TracedHouse(HouseAccess):
    """A house whose submissions have a span of their receipt, and keep their caller's trace."""

    traces: Traces

    async def submit(
        self, data: bytes, decoded: HcpMessage, via: str, way: Way, traceparent: object = None
    ) -> Submitted:
        """Keep a submission; raises as `House.submit`."""
        noted = noted_of(traceparent)
        began, began_s = wall_clock_utc().timestamp(), steady_s()
        asked = ReceivedSubmission(data, decoded, via=via, way=way, noted=noted)
        kept = await self.submitting.submit(asked)
        if kept.fresh:
            KEYS.set((self.tasks().by_id[kept.task_id].session_id, iter(("0", "receipt"))))
            tracer, ended = self.traces.tracer, began + steady_s() - began_s
            root = tracer.start_span("task", HEADERS.extract(noted))  # it is sent when it ends
            receipt = tracer.start_span("receipt", set_span_in_context(root), start_time=_ns(began))
            receipt.end(_ns(ended))
        return kept
