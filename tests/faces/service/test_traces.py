"""Traces: made of a session's records, sent beside the work, and without a word of a caller."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from threading import Event
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.trace import StatusCode, Tracer

from collector import Collector, collecting
from commands import Said, say
from labharness.core.clock import steady_s
from labharness.core.errors import LabError
from labharness.faces.service.counts import Counts
from labharness.faces.service.pages import exposed
from labharness.faces.service.traces import (
    BATCH_SPANS,
    FLUSH_S_MAX,
    HEADERS,
    KEYS,
    SPANS_MAX,
    TRACEPARENT,
    Traces,
    collector_at,
    noted_of,
    trace_session,
    tracer_of,
)
from labharness.journal.chain import Record
from labharness.work.task.record import Attempt, Task
from rig import SHIPPED
from up_lab import until

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"  # of the specification
CANARY = "canary-7f3a"
PUT_S_MAX = 10.0  # it hangs for 60 s; the computer may be busy


# ---- pure


HEX = "0123456789abcdef"


@given(
    st.text(HEX, min_size=32, max_size=32),
    st.text(HEX, min_size=16, max_size=16),
    st.integers(0, 255),
)
def test_a_callers_trace_is_taken_as_it_states_it(trace: str, span: str, flags: int) -> None:
    stated = f"00-{trace}-{span}-{flags:02x}"
    found = noted_of(stated)
    if not (int(trace, 16) and int(span, 16)):
        assert not found
        return
    assert found == {TRACEPARENT: stated}
    kept = Kept()
    some(tracer_of("lab", kept), 1, stated)
    assert [(each.context.trace_id, each.parent.span_id) for each in kept.spans] == (
        [(int(trace, 16), int(span, 16))] if flags & 1 else []
    )


@given(st.none() | st.integers() | st.text(max_size=60) | st.binary(max_size=60))
def test_what_is_no_trace_is_passed_over(stated: object) -> None:
    assert not noted_of(stated)


@pytest.mark.parametrize("wrong", [TRACE.upper(), f"{TRACE}-x", f"ff{TRACE[2:]}", f"{TRACE}0"])
def test_a_trace_that_the_specification_forbids_is_passed_over(wrong: str) -> None:
    assert noted_of(TRACE) == {TRACEPARENT: TRACE}
    assert not noted_of(wrong)
    higher = noted_of(f"cc{TRACE[2:]}-more")
    assert higher == {TRACEPARENT: TRACE}, "a higher version may have more"


WORDS = st.text(max_size=8).map(lambda text: f"{CANARY} {text}")
EVENTS = st.builds(
    lambda kind, stage, words: (
        "event",
        {"event_type": kind, "data": {"stage": stage, "message": words, "reason": words}},
    ),
    st.sampled_from(["progress", "warning", "state_changed"]),
    st.sampled_from(["growth", "awaiting_approval", "arming", f"{CANARY} x", f"{CANARY}/x"]),
    WORDS,
)
OTHERS = st.builds(
    lambda kind, words: (kind, {"payload": {"intent": words}, "risk_level": words}),
    st.sampled_from(["submitted", "planned", "prediction", "approved", "task_accepted", "step"]),
    WORDS,
)
ENDS = st.sampled_from(["task_completed", "task_failed", "task_rejected"]).map(
    lambda kind: ("terminal", {"type": kind, "payload": {"error_message": CANARY}})
)
TIMES = st.lists(st.floats(0.0, 50.0), min_size=12, max_size=12)


BEGAN_S = 1_793_534_400.0  # 2026-11-01T12:00:00Z


class Kept(SpanProcessor):
    """Keeps the spans that have ended."""

    def __init__(self) -> None:
        self.spans: list[Any] = []

    def on_end(self, span: ReadableSpan) -> None:
        self.spans.append(span)


def spans_of(task: Task, run: Attempt, records: list[Record]) -> list[Any]:
    kept = Kept()
    trace_session(tracer_of("lab", kept), task, "s", run, records)
    return kept.spans


def task_of(run: Attempt, created_at_s: float, **told: Any) -> Task:
    return Task(
        **{"task_id": "t", "objective": "", "requested_by": "", "root_task_id": "t", **told},
        created_at_s=created_at_s,
        updated_at_s=BEGAN_S,
        last_activity_s=BEGAN_S,
        attempts=(run,),
    )


def test_spans_of_a_run_at_another_speed_are_by_the_calendar() -> None:
    """Hours of lab time are seconds of it: no span ends in a time to come."""
    lab = {"metadata": {"lab_time": "2026-01-01T08:00:00.000Z"}}
    told: list[tuple[str, dict[str, Any], int]] = [
        ("event", {"event_type": "session_created", "data": {}}, 0),
        ("task_accepted", {"risk_level": "R3"}, 0),
        ("event", {"event_type": "progress", "data": {"stage": "ramp"}}, 1),
        ("step", {}, 1),
        ("event", {"event_type": "progress", "data": {"stage": "growth"}}, 2),
        ("terminal", {"type": "task_completed", "payload": {}}, 3),
    ]
    records = [
        Record(
            seq=seq,
            at_s=3_600.0 * seq,
            kind=kind,
            body={**body, **lab, "timestamp": f"2026-11-01T12:00:{second:02}.000Z"}
            if kind in ("event", "terminal")
            else body,
            hash="",
        )
        for seq, (kind, body, second) in enumerate(told)
    ]
    run = Attempt("s", 1, "completed", "line", BEGAN_S, ended_at_s=BEGAN_S + 3.0)
    spans = spans_of(task_of(run, BEGAN_S), run, records)
    assert max(each.end_time for each in spans) == (BEGAN_S + 3.0) * 1e9
    assert min(each.start_time for each in spans) == BEGAN_S * 1e9


@pytest.mark.promise(72)
@given(st.lists(EVENTS | OTHERS, max_size=10), ENDS, TIMES, st.booleans())
def test_spans_lie_within_their_parents_and_hold_no_word_of_a_caller(
    middle: list[tuple[str, dict[str, Any]]],
    end: tuple[str, dict[str, Any]],
    waits: list[float],
    virtual: bool,
) -> None:
    first = {"event_type": "session_created", "data": {}}
    first["timestamp"] = "2025-01-15T09:00:00Z" if virtual else "2026-11-01T12:00:01Z"
    at_s, records = 0.0, []
    for seq, ((kind, body), wait_s) in enumerate(
        zip([("event", first), *middle, end], waits, strict=False)
    ):
        at_s += wait_s
        records.append(Record(seq=seq, at_s=at_s, kind=kind, body=body, hash=""))
    run = Attempt("s", 1, "completed", "line", BEGAN_S, ended_at_s=BEGAN_S + 1.0)
    words = dict.fromkeys(("objective", "requested_by", "title", "task_family"), CANARY + " x")
    task = task_of(
        run,
        BEGAN_S - 1.0,
        **words,
        constraints={"data_classification": CANARY},
        profile=noted_of(TRACE),
    )
    found = spans_of(task, run, records)
    *children, root = found
    assert (root.name, root.parent.span_id) == ("task", int(TRACE[36:52], 16))
    known = {each.context.span_id: each for each in found}
    assert len(known) == len(found)
    for each in children:
        above = known[each.parent.span_id]
        assert above.start_time - 1_000 <= each.start_time <= each.end_time
        assert each.end_time <= above.end_time + 1_000
    told = [each.to_json() for each in found]
    assert CANARY not in repr(told)
    again = [each.to_json() for each in spans_of(task, run, records)]
    assert told == again, "sent again it is the same"
    assert root.start_time == task.created_at_s * 1e9


# ---- on their way


def some(tracer: Tracer, count: int, stated: str = "") -> None:
    KEYS.set(("s", iter(range(count))))
    above = HEADERS.extract(noted_of(stated))
    told: dict[str, str | int] = {"hcp.attempt": 1, "hcp.end": "task_failed"}
    for _ in range(count):
        span = tracer.start_span("task", above, attributes=told, start_time=1_500_000_000)
        span.set_status(StatusCode.ERROR)
        span.end(2_250_000_000)


@pytest.mark.promise(72)
def test_a_collector_that_hangs_holds_up_nothing_and_what_does_not_fit_is_counted() -> None:
    over, counts = Event(), Counts()
    told: list[str] = []

    def hangs(spans: Sequence[object]) -> SpanExportResult:
        over.wait(60)
        return SpanExportResult.FAILURE

    traces = Traces(hangs, NO_HOUSE, counts, told.append)
    more = 1_000
    begun_s = steady_s()
    some(traces.tracer, SPANS_MAX + BATCH_SPANS + more)
    assert steady_s() - begun_s < PUT_S_MAX
    assert more <= counts.spans["dropped"] <= more + BATCH_SPANS
    begun_s = steady_s()
    traces.end()
    assert steady_s() - begun_s < FLUSH_S_MAX + PUT_S_MAX
    over.set()
    until(lambda: counts.spans["dropped"] == SPANS_MAX + BATCH_SPANS + more)
    assert len(told) == 1, "people are told once"
    assert b'labharness_trace_spans_total{end="sent"} 0.0\n' in exposed(counts, {}, 0, "idle")


class NoHouse:
    lab_id = "lab"

    def tasks(self) -> object:
        raise LabError("there is none")


NO_HOUSE: Any = NoHouse()


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as kept:
        yield kept


def test_a_collector_gets_each_span_as_it_is_and_what_it_refuses_is_dropped(
    collector: Collector,
) -> None:
    counts = Counts()
    told: list[str] = []
    traces = Traces(collector_at(collector.url), NO_HOUSE, counts, told.append)
    some(traces.tracer, 1, TRACE)
    some(traces.tracer, 1, f"{TRACE[:-2]}00")  # its caller samples it out
    until(lambda: counts.spans["sent"] == 1)
    (seen,) = collector.spans
    assert (seen.name, seen.trace_id.hex()) == ("task", TRACE[3:35])
    assert seen.parent_span_id.hex() == TRACE[36:52]
    assert (seen.start_time_unix_nano, seen.end_time_unix_nano) == (1_500_000_000, 2_250_000_000)
    assert seen.status.code == 2
    attributes = {e.key: e.value.string_value or e.value.int_value for e in seen.attributes}
    assert attributes == {"hcp.attempt": 1, "hcp.end": "task_failed"}
    assert collector.paths == ["/v1/traces"]
    about = collector.resources[0]
    assert (about["service.name"], about["labharness.lab"]) == ("labharness", "lab")
    collector.status = 400
    some(traces.tracer, 1, TRACE)
    until(lambda: counts.spans["dropped"] == 1)
    collector.status = 200
    some(traces.tracer, 1, TRACE)
    traces.end()
    assert counts.spans == {"sent": 2, "dropped": 1}
    assert len(told) == 1


@pytest.mark.parametrize("url", ["", "localhost:4318", "ftp://x", "http://", "http://x:99999"])
def test_an_address_that_is_none_is_one_plain_error(url: str) -> None:
    said = say("serve", "--lab", SHIPPED, "--stdio", "--traces", url)
    said.is_one_plain_error("--traces", "http://127.0.0.1:4318")


def test_without_the_extra_it_is_one_plain_error_that_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['opentelemetry'] = None; "
        "from labharness.faces.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    words = ("serve", "--lab", SHIPPED, "--stdio", "--traces", "http://127.0.0.1:4318")
    words_of = [sys.executable, "-c", code, *map(str, words)]
    done = subprocess.run(words_of, capture_output=True, text=True, timeout=60, check=False)
    said = Said(done.returncode, done.stdout, done.stderr)
    said.is_one_plain_error("pip install 'labharness[telemetry]'")
