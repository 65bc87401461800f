"""The counters of a service, and their text in Prometheus format.

The format is https://prometheus.io/docs/instrumenting/exposition_formats/ (text, version 0.0.4).
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

LINE_STATES: Final = ("idle", "running", "latched", "down")
"""The states of a line, as a service sees it: its owner has no run, has one, or does not answer."""


@dataclass(slots=True)
class Counts:
    """The numbers of one service since its start.

    Attributes:
        connected: Whether the broker is there.
        taken: Messages that were taken, by what they are.
        rejected: Submissions that were refused on receipt, and not kept as tasks.
        dead: Messages that went to the dead letters.
        sent: Messages that the broker confirmed and that reached a queue, by type.
        waiting: Messages that were read to be sent and still wait, as of the last look.
        spans: Spans of traces that a collector has taken (``sent``) or that were ``dropped``.
    """

    connected: bool = False
    taken: Counter[str] = field(default_factory=Counter)
    rejected: int = 0
    dead: int = 0
    sent: Counter[str] = field(default_factory=Counter)
    waiting: int = 0
    spans: Counter[str] = field(default_factory=lambda: Counter(sent=0, dropped=0))


def exposed(counts: Counts, tasks: Mapping[str, int], sessions: int, line: str) -> str:
    """Return all numbers as Prometheus reads them.

    Args:
        counts: Of the service.
        tasks: Number of tasks in each status.
        sessions: Number of sessions that have not ended.
        line: State of the line, one of `LINE_STATES`.
    """
    return "".join(f"{row}\n" for row in _rows(counts, tasks, sessions, line))


def _rows(counts: Counts, tasks: Mapping[str, int], sessions: int, line: str) -> Iterator[str]:
    yield from _one("broker_connected", "gauge", "Whether the broker is there.", counts.connected)
    yield from _each("messages_taken_total", "counter", "Messages taken.", "kind", counts.taken)
    yield from _one(
        "messages_rejected_total", "counter", "Submissions refused on receipt.", counts.rejected
    )
    yield from _one(
        "messages_dead_lettered_total", "counter", "Messages put among dead letters.", counts.dead
    )
    yield from _each("messages_sent_total", "counter", "Messages confirmed.", "type", counts.sent)
    yield from _one("outbox_waiting", "gauge", "Messages that wait to be sent.", counts.waiting)
    yield from _each("trace_spans_total", "counter", "Spans of traces.", "end", counts.spans)
    yield from _one("sessions", "gauge", "Sessions that have not ended.", sessions)
    yield from _each("tasks", "gauge", "Tasks by status.", "status", tasks)
    states = {each: int(each == line) for each in LINE_STATES}
    yield from _each("line_state", "gauge", "State of the line: 1 where it is.", "state", states)


def _one(name: str, kind: str, told: str, value: int) -> Iterator[str]:
    yield from _head(name, kind, told)
    yield f"labharness_{name} {int(value)}"


def _each(name: str, kind: str, told: str, label: str, values: Mapping[str, int]) -> Iterator[str]:
    yield from _head(name, kind, told)
    for word, value in sorted(values.items()):
        yield f'labharness_{name}{{{label}="{word}"}} {value}'


def _head(name: str, kind: str, told: str) -> Iterator[str]:
    yield f"# HELP labharness_{name} {told}"
    yield f"# TYPE labharness_{name} {kind}"
