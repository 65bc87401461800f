"""A service that is traced: real tasks over a real broker, and a collector that the test serves."""

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from broker import NEEDS_BROKER, Broker, running
from collector import Collector, collecting
from commands import ROOT
from labharness.core.clock import steady_s
from labharness.faces.service.traces import FLUSH_S_MAX
from plain_caller import PlainCaller, Told
from requested import PAPER
from rig import SHIPPED
from serving import Service, services
from up_lab import until

MAP = json.loads((ROOT / "examples" / "raman-map.json").read_text())["payload"]
CALLEE, CALLER = "callee", "harness-alpha-001"
TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"  # of the specification
CANARY = "canary-7f3a"
END_S_MAX = 10.0

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(300), NEEDS_BROKER]


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as kept:
        yield kept


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with running(tmp_path / "b", (CALLEE, CALLER)) as made:
        yield made


@pytest.fixture
def serve(broker: Broker, tmp_path: Path) -> Iterator[Callable[..., Service]]:
    with services(broker.url(CALLEE), tmp_path / "runs") as begin:
        yield partial(begin, SHIPPED, "fast")


def asked(asks: PlainCaller, payload: dict[str, Any], key: str, **properties: Any) -> Told:
    asks.named.add(CALLER)
    body = {**payload, "caller_id": CALLER, "intent": f"{CANARY} {payload['intent']}"}
    asks.send("task_submit", None, body, key, **properties)
    return asks.ended()


@pytest.mark.promise(72)
def test_a_task_is_a_part_of_its_callers_trace_from_its_receipt_to_its_answer(
    serve: Callable[..., Service], broker: Broker, collector: Collector
) -> None:
    service = serve("--traces", collector.url, "--http", "0")
    asks = PlainCaller(broker.url(CALLER), CALLER, "cvd-mos2-simulated")
    headers = {"traceparent": TRACE}
    mapped = asked(asks, MAP, "map", headers=headers)
    assert mapped["type"] == "task_completed", mapped.payload
    read = asked(asks, PAPER, "paper")
    assert read["type"] == "task_completed", read.payload
    refused = asked(asks, {**MAP, "inputs": {CANARY: 1}}, "refused", headers=headers)
    assert refused["type"] == "task_rejected"
    again = asked(asks, MAP, "map", headers={"traceparent": TRACE.replace("4b", "5c")})
    assert again == mapped, "a repetition is the same task, whatever its trace"
    until(lambda: len(collector.named("task")) == 3)
    until(lambda: len(collector.named("receipt")) == 3)
    names = {
        *("task", "receipt", "queue", "audit", "preflight", "approval", "run", "answer"),
        *("stage arming", "stage transfer", "stage characterisation", "stage analysis"),
    }
    of_map = [e for e in collector.spans if session_of(collector, e) == mapped["session_id"]]
    assert {each.name for each in of_map} == names
    assert {each.trace_id.hex() for each in of_map} == {TRACE[3:35]}
    (root,) = [each for each in of_map if each.name == "task"]
    assert root.parent_span_id.hex() == TRACE[36:52]
    ids = {each.span_id for each in of_map}
    assert all(each.parent_span_id in ids for each in of_map if each is not root)
    told = attributes(root)
    assert told["hcp.capability"] == "raman-characterization"
    assert (told["hcp.risk_level"], told["hcp.end"]) == ("R3", "task_completed")
    (other,) = [e for e in collector.named("task") if not e.parent_span_id]
    assert attributes(other)["hcp.session_id"] == read["session_id"]
    whole = b"".join(collector.bodies)
    for word in (CANARY, "exfoliated", CALLER, "layer", str(ROOT)):
        assert word.encode() not in whole, word
    sent = len(collector.spans)
    counted = f'trace_spans_total{{end="sent"}} {sent:.1f}\n'.encode()
    until(lambda: counted in service.page("/metrics")[1])
    asks.close()


@pytest.mark.promise(72)
def test_no_task_waits_for_a_collector_that_hangs(
    serve: Callable[..., Service], broker: Broker, collector: Collector
) -> None:
    collector.hangs.set()
    service = serve("--traces", collector.url, "--http", "0")
    asks = PlainCaller(broker.url(CALLER), CALLER, "cvd-mos2-simulated")
    for number in range(3):
        done = asked(asks, PAPER, f"paper {number}", headers={"traceparent": b"\xff\x00"})
        assert done["type"] == "task_completed", done.payload
    begun_s = steady_s()
    service.end()
    assert steady_s() - begun_s < FLUSH_S_MAX + END_S_MAX
    assert "Traceback" not in service.said()
    asks.close()


def session_of(collector: Collector, span: Any) -> str:
    """Return the session of a span, which its root names."""
    by_id = {each.span_id: each for each in collector.spans}
    while span.name != "task":
        span = by_id[span.parent_span_id]
    return str(attributes(span)["hcp.session_id"])


def attributes(span: Any) -> dict[str, str | int]:
    return {e.key: e.value.string_value or e.value.int_value for e in span.attributes}
