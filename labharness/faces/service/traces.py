"""Sends the traces of a house's tasks to a collector, over OTLP by HTTP, when their sessions end.

Nothing waits for a collector: spans stand in a queue of bounded length, a thread of its own sends
them, and what does not fit or is not taken is counted and dropped.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from importlib.metadata import version
from itertools import takewhile
from queue import Empty, Full, Queue
from threading import Thread
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from labharness.core.clock import steady_s, wall_clock_utc
from labharness.core.errors import LabError
from labharness.core.vocabulary.texts import Text
from labharness.faces.service.counts import Counts
from labharness.faces.service.spans import (
    OK,
    UNSET,
    Context,
    Span,
    context_of,
    receipt_span,
    spans_of,
    traceparent_of,
)
from labharness.journal import JournalFailed
from labharness.lab.house.access import HouseAccess
from labharness.lab.house.house_commands import Submitted
from labharness.lab.house.intake import ReceivedSubmission
from labharness.lab.house.sessions import session_of
from labharness.protocols.hcp.codec import HcpMessage
from labharness.work.admission.confidential import Way
from labharness.work.task.record import Attempt, Task, Tasks
from labharness.work.task.states import TERMINAL

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

LOG = logging.getLogger(__name__)

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

TRACES_PATH: Final = "/v1/traces"
"""The path of the protocol, for an address without one."""

Waiting = tuple[Context, Span]


class BadCollector(LabError, ValueError, code="bad_collector"):
    """The address of a collector of traces cannot be used; the message says why."""


class Collector:
    """The far end: takes spans, one request after the other.

    Args:
        url: Of the collector, with its path.
        lab_id: Id of the lab.

    Raises:
        ModuleNotFoundError: The extra ``telemetry`` is not installed.
    """

    def __init__(self, url: str, lab_id: str) -> None:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource

        # what is not taken is counted, and told once: not a line for each try
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
        self._exporter = OTLPSpanExporter(endpoint=url, timeout=EXPORT_S_MAX)
        about = {
            "service.name": "labharness",
            "service.version": version("labharness"),
            "labharness.lab": lab_id,
        }
        self._resource = Resource(about)

    def take(self, spans: Sequence[Waiting]) -> bool:
        """Return whether the collector has taken the spans."""
        from opentelemetry.sdk.trace.export import SpanExportResult

        made = [_readable(context, span, self._resource) for context, span in spans]
        return self._exporter.export(made) is SpanExportResult.SUCCESS


def _readable(context: Context, span: Span, resource: Any) -> "ReadableSpan":  # noqa: ANN401 - of an extra
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope
    from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

    flags = TraceFlags(TraceFlags.SAMPLED)
    codes = {OK: StatusCode.OK, UNSET: StatusCode.UNSET}
    remote = span.parent_id == context.parent_id
    parent = SpanContext(context.trace_id, span.parent_id, remote, flags)
    root = span.span_id == context.root_id
    return ReadableSpan(
        span.name,
        context=SpanContext(context.trace_id, span.span_id, False, flags),
        parent=parent if span.parent_id else None,
        resource=resource,
        attributes=span.attributes,
        kind=SpanKind.CONSUMER if root else SpanKind.INTERNAL,
        status=Status(codes.get(span.status, StatusCode.ERROR)),
        start_time=round(span.begin_s * 1e9),
        end_time=round(span.end_s * 1e9),
        instrumentation_scope=InstrumentationScope("labharness", version("labharness")),
    )


def collector_of(url: str) -> str:
    """Return the address of a collector with its path.

    Raises:
        BadCollector: It is no address of a web server.
    """
    try:
        parts = urlsplit(url)
        fits = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fits = False
    if not fits:
        raise BadCollector(Text("traces.url", url=url))
    return url if parts.path.strip("/") else f"{url.rstrip('/')}{TRACES_PATH}"


class Traces:
    """The spans of one house on their way.

    Args:
        take: Sends spans; returns whether they were taken. It may block, and is called in a thread.
        counts: Where sent and dropped spans are counted.
        tell: Called with a line for people when a collector stops taking spans.
    """

    def __init__(
        self,
        take: Callable[[Sequence[Waiting]], bool],
        counts: Counts,
        tell: Callable[[str], None],
    ) -> None:
        self._take = take
        self._counts = counts
        self._tell = tell
        self._queue: Queue[Waiting] = Queue(SPANS_MAX)
        self._taken = True
        self._ending = False
        self._newest: str | None = None  # of the sessions that were looked at
        self._open: dict[str, None] = {}  # sessions that have not ended, or are not known to have
        self._thread = Thread(target=self._send, name="traces", daemon=True)
        self._thread.start()

    def put(self, context: Context, spans: Iterable[Span]) -> None:
        """Have spans sent some time; it never waits."""
        if not context.sampled:
            return
        for span in spans:
            try:
                self._queue.put_nowait((context, span))
            except Full:
                self._counts.spans["dropped"] += 1

    def _send(self) -> None:
        """Send what waits, in a thread: a collector may take its time."""
        while not (self._ending and self._queue.empty()):
            batch = self._next_batch()
            if batch:
                self._sent(len(batch), self._try(batch))

    def _next_batch(self) -> list[Waiting]:
        batch: list[Waiting] = []
        with suppress(Empty):
            batch.append(self._queue.get(timeout=LOOK_S))
            while len(batch) < BATCH_SPANS:
                batch.append(self._queue.get_nowait())
        return batch

    def _try(self, batch: Sequence[Waiting]) -> bool:
        try:
            return self._take(batch)
        except Exception:  # whatever an exporter does, no run is to notice
            LOG.warning("spans could not be sent", exc_info=True)
            return False

    def _sent(self, count: int, taken: bool) -> None:
        self._counts.spans["sent" if taken else "dropped"] += count
        if self._taken and not taken:
            self._tell(Text("traces.away"))
        self._taken = taken

    def end(self, house: HouseAccess) -> None:
        """Send what is left, for a bounded time; what is left after it is dropped."""
        with suppress(Exception):  # a trace is never worth a service
            self.look(house)
        self._ending = True
        self._thread.join(FLUSH_S_MAX)

    # ---- the sessions of a house

    async def follow(self, house: HouseAccess) -> None:
        """Send the spans of each session that ends, until it is cancelled."""
        while True:
            try:
                await asyncio.to_thread(self.look, house)
            except Exception:  # a trace is never worth a service
                LOG.warning("sessions could not be traced", exc_info=True)
            await asyncio.sleep(LOOK_S)

    def look(self, house: HouseAccess) -> None:
        """Send the spans of the sessions that have ended since the last look."""
        tasks = house.tasks()
        self._note(tasks)
        for session_id in list(self._open):
            task, run = session_of(tasks, session_id)
            if task is None or (run is None and task.attempts):
                self._open.pop(session_id)
            elif _ended(task, run):
                self._open.pop(session_id)
                self._put_session(house, task, session_id, run)

    def _note(self, tasks: Tasks) -> None:
        """Note the sessions that were opened since the last look; at first those still open."""
        if self._newest is None:
            known = {task.session_id for task in tasks.unended_tasks}
            known |= {run.run_id for task in tasks.unended_tasks for run in task.attempts}
            new = [each for each in tasks.sessions if each in known]
        else:
            newest = self._newest
            new = list(takewhile(lambda each: each != newest, reversed(tasks.sessions)))[::-1]
        self._open |= dict.fromkeys(new)
        self._newest = next(reversed(tasks.sessions), "")

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


TRACEPARENT: Final = "traceparent"
"""Key of a task's profile, and of the headers of a message."""


def _ended(task: Task, run: Attempt | None) -> bool:
    return task.status in TERMINAL if run is None else run.ended_at_s is not None


@dataclass(frozen=True, slots=True)
class TracedHouse(HouseAccess):
    """A house whose submissions have a span of their receipt, and keep their caller's trace."""

    traces: Traces

    @classmethod
    def of(cls, house: HouseAccess, traces: Traces) -> "TracedHouse":
        """Return a house that is traced."""
        kept = {each.name: getattr(house, each.name) for each in fields(HouseAccess)}
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
            span = receipt_span(session_id, began, began + steady_s() - began_s)
            self.traces.put(context_of(session_id, stated), [span])
        return kept
