"""The Prior ProScan driver and its simulator: a move is over when the stage has arrived."""

import asyncio
import random
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from faced import exchange
from hand_clock import Clock
from labharness.core.vocabulary import BadReply, DeviceFault, Request
from labharness.instruments.driver import Identity, Scan
from labharness.instruments.simulation import LoopEnvironment, SimulatedBus
from labharness_drivers.prior_proscan import PriorProscan
from labharness_simulators.plant.stage import MicroscopeStage
from labharness_simulators.prior_proscan import Simulator


class Bench:
    """A controller, its stage and a clock that the test moves."""

    def __init__(self, steps_per_um: float = 1.0) -> None:
        clock: Any = Clock()
        self.clock = clock
        self.env = LoopEnvironment(clock)
        self.stage = MicroscopeStage()
        self.face = Simulator(self.env, self.stage, random.Random(1), steps_per_um=steps_per_um)
        self.driver = PriorProscan(steps_per_um=steps_per_um)

    def exchange(self, request: Request) -> bytes:
        self.env.sync()
        return exchange(request, self.face)

    def read(self, name: str) -> tuple[float, ...]:
        scan = next(each for each in self.driver.scans() if each.name == name)
        return scan.decode(self.exchange(scan.request))

    def move(self, channel: str, value: float) -> float:
        (request,) = self.driver.write(channel, value)
        self.driver.accept(channel, self.exchange(request))
        return self.face.latency_s


def scan(name: str) -> Scan:
    return next(each for each in PriorProscan().scans() if each.name == name)


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_a_move_is_answered_when_the_stage_has_arrived(bench: Bench) -> None:
    delay_s = bench.move("x", 10_000)
    assert delay_s == pytest.approx(2.01)  # 10 mm at 5 mm/s, and the controller's own 10 ms
    assert bench.read("moving") == (1.0,)
    bench.clock.now_s = delay_s
    assert bench.read("moving") == (0.0,)
    assert bench.read("position") == (10_000.0, 0.0)
    assert bench.face.latency_s == pytest.approx(0.01)


def test_one_axis_moves_and_the_other_stays(bench: Bench) -> None:
    bench.clock.now_s += bench.move("x", 300)
    bench.clock.now_s += bench.move("y", -200)
    assert bench.read("position") == (300.0, -200.0)


def test_the_frames_are_the_published_ones() -> None:
    driver = PriorProscan()
    assert driver.write("x", 12.4)[0].frame == b"GX,12\r"
    assert driver.write("y", -1500)[0].frame == b"GY,-1500\r"
    assert [each.request.frame for each in driver.scans()] == [b"P\r", b"$\r"]
    assert driver.write("x", 1)[0].timeout_s >= 30.0


@given(st.floats(-100_000, 100_000), st.sampled_from([0.5, 1.0, 10.0]))
@settings(max_examples=50, deadline=None)
def test_every_position_reads_back_within_the_resolution(x_um: float, steps_per_um: float) -> None:
    assume(x_um == 0 or abs(x_um) * steps_per_um >= 1)  # smaller is refused
    bench = Bench(steps_per_um)
    bench.clock.now_s += bench.move("x", x_um)
    assert abs(bench.read("position")[0] - x_um) <= bench.driver.channels["x"].resolution


def test_a_move_while_another_runs_is_refused_and_changes_nothing(bench: Bench) -> None:
    delay_s = bench.move("x", 10_000)
    with pytest.raises(DeviceFault, match="not idle"):
        bench.move("y", 500)
    bench.clock.now_s = delay_s
    assert bench.read("position") == (10_000.0, 0.0)


@pytest.mark.parametrize("reply", [b"r\r", b"0\r", b"RR\r", b"1,2,3\r", b"\r"])
def test_a_move_ends_with_r_alone(reply: bytes) -> None:
    with pytest.raises(BadReply):
        PriorProscan().accept("x", reply)


@pytest.mark.parametrize("reply", [b"R\r", b"1,2\r", b"1,2,3,4\r", b"1.5,2,3\r", b"1,,3\r"])
def test_a_late_end_of_move_is_never_taken_for_a_position(reply: bytes) -> None:
    with pytest.raises(BadReply):
        scan("position").decode(reply)


def test_the_controllers_errors_are_named() -> None:
    face = Bench().face
    assert face.receive(b"WHAT\r") == b"E,5\r"
    assert face.receive(b"GX,one\r") == b"E,4\r"
    assert face.receive(b"G,1\r") == b"E,4\r"
    with pytest.raises(DeviceFault, match="command not found"):
        scan("moving").decode(b"E,5\r")


@given(
    st.floats(-20_000, 20_000), st.floats(-20_000, 20_000), st.floats(0.0, 100.0, exclude_min=True)
)
@settings(max_examples=200, deadline=None)
def test_when_r_has_come_the_stage_stands_and_takes_the_next_move(
    x_um: float, y_um: float, start_s: float
) -> None:
    bench = Bench(10.0)
    bench.clock.now_s = start_s
    for channel, value in (("x", x_um), ("y", y_um), ("x", y_um), ("y", x_um)):
        assume(value == 0 or abs(value) >= 0.1)
        bench.clock.now_s += bench.move(channel, value)
        assert bench.read("moving") == (0.0,)


def test_what_usual_clients_send_first_is_answered() -> None:
    bench = Bench(10.0)
    for line, said in [
        (b"COMP 0", b"0"),
        (b"COMP", b"0"),
        (b"SMS", b"100"),
        (b"SMS,50", b"0"),
        (b"SMS", b"50"),
        (b"SAS", b"100"),
        (b"SCS", b"100"),
        (b"RES,s", b"0.1"),
        (b"PX", b"0"),
        (b"PY", b"0"),
        (b"PZ", b"0"),
        (b"PS", b"0,0"),
        (b"K", b"R"),
        (b"FILTER 1", b"FILTER_1 = NONE\rEND"),
        (b"SMS,101", b"E,8"),
        (b"SMS,fast", b"E,4"),
        (b"COMP 1", b"E,8"),
        (b"RES,s,1.0", b"E,8"),
        (b"Z", b"E,5"),
    ]:
        assert bench.face.receive(line + b"\r") == said + b"\r", line
    stage = bench.face.receive(b"STAGE\r")
    assert stage is not None
    assert stage.startswith(b"STAGE = ")
    assert stage.endswith(b"\rEND\r")


def test_a_relative_move_goes_on_from_where_the_stage_is_and_sis_comes_back(bench: Bench) -> None:
    for line, place in [(b"GR,100,-50", (100.0, -50.0)), (b"gr 10 0", (110.0, -50.0))]:
        assert bench.face.receive(line + b"\r") == b"R\r"
        bench.clock.now_s += bench.face.latency_s
        assert bench.read("position") == place
    assert bench.face.receive(b"SIS\r") == b"R\r"
    bench.clock.now_s += bench.face.latency_s
    assert bench.read("position") == (0.0, 0.0)


def test_a_stage_that_is_stopped_stands_where_it_is(bench: Bench) -> None:
    bench.move("x", 10_000)
    bench.clock.now_s = 1.0
    assert bench.read("moving") == (1.0,)
    assert bench.face.receive(b"I\r") == b"R\r"
    assert bench.read("moving") == (0.0,)
    assert bench.read("position")[0] == pytest.approx(5000, abs=20)
    bench.clock.now_s = 5.0
    assert bench.read("position")[0] == pytest.approx(5000, abs=20)


def test_any_delimiter_of_the_manual_parts_the_words(bench: Bench) -> None:
    assert bench.face.receive(b"G,,100 200\r") == b"R\r"
    bench.clock.now_s = 1.0
    assert bench.read("position") == (100.0, 200.0)


def test_it_says_that_a_stage_is_fitted(bench: Bench) -> None:
    query = bench.driver.identify()
    identity = query.decode(bench.exchange(query.request))
    assert isinstance(identity, Identity)
    assert identity.details["STAGE"] == "H101A"
    assert bench.driver.expects(identity) == ""
    none = Identity("ProScan", details={"STAGE": "NONE"})
    assert "no stage" in bench.driver.expects(none)


async def test_on_the_bus_the_end_of_a_move_arrives_late_and_the_stage_stands_by_then() -> None:
    loop = asyncio.get_running_loop()
    env = LoopEnvironment(loop)
    stage = MicroscopeStage()
    chance = random.Random(1)
    bus = SimulatedBus(env, [Simulator(env, stage, chance)], baud=9600, chance=chance)
    arrived: asyncio.Future[bytes] = loop.create_future()
    start_s = loop.time()
    bus.transmit(PriorProscan().write("x", 5000)[0].frame, arrived.set_result)
    assert await arrived == b"R\r"
    elapsed_s, moving = (loop.time() - start_s, stage.moving)
    assert 1.0 < elapsed_s < 1.1
    assert not moving
