"""The HTTP pages of a service: agent card, health and metrics."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from prometheus_client import generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from labharness.faces.service.card import CARD_PATH
from labharness.faces.service.counts import LINE_STATES, Counts
from labharness.work.task.record import Tasks
from labharness.work.task.states import TERMINAL

METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
"""The format of `generate_latest`."""

HEALTHY: Final = ("idle", "running")
"""The states of a line in which tasks are carried out."""


def pages_of(
    card: Mapping[str, Any],
    counts: Counts,
    tasks: Callable[[], Tasks],
    line: Callable[[], str],
) -> list[Route]:
    """Return the pages.

    Args:
        card: The agent card.
        counts: Of the service.
        tasks: Returns the tasks as they are.
        line: Returns the state of the line; it may block for some seconds.
    """

    async def health(_: Request) -> Response:
        state = await asyncio.to_thread(line)
        well = counts.connected and state in HEALTHY
        body = {"healthy": well, "broker_connected": counts.connected, "line": state}
        return _json(body, HTTPStatus.OK if well else HTTPStatus.SERVICE_UNAVAILABLE)

    async def metrics(_: Request) -> Response:
        state = await asyncio.to_thread(line)
        statuses = Counter(each.status for each in tasks().by_id.values())
        open_now = sum(count for status, count in statuses.items() if status not in TERMINAL)
        return Response(exposed(counts, statuses, open_now, state), media_type=METRICS_TYPE)

    cards = Route(CARD_PATH, _json(card), methods=["GET"])
    return [cards, Route("/healthz", health), Route("/metrics", metrics)]


def exposed(counts: Counts, tasks: Mapping[str, int], sessions: int, line: str) -> bytes:
    """Return all numbers as Prometheus reads them.

    Args:
        counts: Of the service.
        tasks: Number of tasks in each status.
        sessions: Number of sessions that have not ended.
        line: State of the line, one of `LINE_STATES`.
    """
    states = {each: int(each == line) for each in LINE_STATES}
    rows: tuple[Row, ...] = (
        ("broker_connected", "Whether the broker is there.", "", counts.connected),
        ("messages_taken_total", "Messages taken.", "kind", counts.taken),
        ("messages_rejected_total", "Submissions refused on receipt.", "", counts.rejected),
        ("messages_dead_lettered_total", "Messages put among dead letters.", "", counts.dead),
        ("messages_sent_total", "Messages confirmed.", "type", counts.sent),
        ("outbox_waiting", "Messages that wait to be sent.", "", counts.waiting),
        ("trace_spans_total", "Spans of traces.", "end", counts.spans),
        ("sessions", "Sessions that have not ended.", "", sessions),
        ("tasks", "Tasks by status.", "status", tasks),
        ("line_state", "State of the line: 1 where it is.", "state", states),
    )
    return generate_latest(_Numbers(rows))


Row = tuple[str, str, str, int | Mapping[str, int]]
"""Name and meaning of a number, the label that tells its values apart, and these."""


@dataclass(frozen=True, slots=True)
class _Numbers:
    rows: tuple[Row, ...]

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        for name, told, label, values in self.rows:
            kind = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
            found = kind(f"labharness_{name}", told, labels=[label] if label else [])
            each = values if isinstance(values, Mapping) else {"": values}
            for word, value in sorted(each.items()):
                found.add_metric([word] if label else [], value)
            yield found


def _json(body: Mapping[str, Any], status: HTTPStatus = HTTPStatus.OK) -> Response:
    text = json.dumps(body, ensure_ascii=False, indent=2)
    return Response(f"{text}\n", status, media_type="application/json")
