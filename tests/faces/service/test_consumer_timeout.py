"""A broker that cuts consumers which hold a delivery: a run lasts longer, and nothing is held."""

from collections.abc import Iterator
from pathlib import Path

import pika
import pytest

from broker import NEEDS_BROKER, Broker
from labharness.core.clock import steady_s
from plain_caller import PlainCaller, answer_in, history_faults
from requested import GROWTH
from rig import SHORT_LINE
from serving import Service

CALLEE, CALLER = "callee", "harness-alpha-001"
HELD_S_MAX = 90.0
PACED = "4"  # times real time: the growth lasts a quarter of an hour

pytestmark = NEEDS_BROKER


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    made = Broker(tmp_path / "b", (CALLEE, CALLER))
    yield made
    made.stop()


def outlast(broker: Broker, tmp_path: Path, timeout_s: int, margin_s: float) -> None:
    """Run a growth beyond the time after which the broker has cut another consumer."""
    broker.configure(
        f"consumer_timeout = {timeout_s * 1000}", advanced="{channel_tick_interval, 1000}"
    )
    broker.start()
    service = Service(SHORT_LINE, broker.url(CALLEE), tmp_path / "runs", PACED)
    try:
        asks = PlainCaller(broker.url(CALLER) + "?heartbeat=0", CALLER, "short-line")
        asks.submit(GROWTH)
        asks.until(lambda told: told.is_("state_changed", to_state="RUNNING"))
        assert cut_after_s(broker) < timeout_s + margin_s
        session = asks.heard[0]["session_id"]
        asks.abort(session, answer_in(asks.heard, "task_accepted").payload["session_token"])
        assert asks.ended().is_("session_closed", final_state="ABORTED")
        assert history_faults(asks.heard) == []
        assert service.connections() == 1, service.said()
        assert service.said().count("\n") == 1, service.said()
        asks.close()
    finally:
        service.down()


def cut_after_s(broker: Broker) -> float:
    """Hold a delivery until the broker closes the channel; return how long it took."""
    begun_s = steady_s()
    with pika.BlockingConnection(pika.URLParameters(broker.url(CALLER))) as connection:
        channel = connection.channel()
        channel.queue_declare("held", durable=True)
        channel.basic_publish("", "held", b"x")
        channel.basic_consume("held", lambda *_: None)
        while channel.is_open and steady_s() < begun_s + HELD_S_MAX:
            connection.process_data_events(0.5)
        assert not channel.is_open, "the broker cuts who holds a delivery"
    return steady_s() - begun_s


@pytest.mark.thorough
@pytest.mark.timeout(120)
def test_a_consumer_is_not_cut_while_a_run_lasts(broker: Broker, tmp_path: Path) -> None:
    outlast(broker, tmp_path, 4, 5.0)


@pytest.mark.soak
@pytest.mark.timeout(300)
def test_a_consumer_is_not_cut_after_thirty_seconds_of_a_run(
    broker: Broker, tmp_path: Path
) -> None:
    outlast(broker, tmp_path, 30, 10.0)
