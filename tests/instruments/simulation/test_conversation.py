"""One client on one served port, in virtual time: when bytes arrive, what a gone client leaves."""

import asyncio
import json
import random
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labharness.core.clock import Chance, Clock, VirtualLoop, run
from labharness.instruments.simulation import (
    Face,
    LineFace,
    LoopEnvironment,
    ModbusFace,
    ModbusTcpFace,
    SimulatedBus,
)
from labharness.instruments.simulation.control import SimulationControl
from labharness.instruments.simulation.conversation import (
    PENDING_BYTES_MAX,
    ByteLog,
    Conversation,
    Outlet,
    Wire,
)
from labharness.instruments.simulation.faces import checksum
from labharness.lab import LabPlan, read_lab
from labharness.lab.wiring.simulated_lab import SimulatedLab
from rig import SHORT_LINE

BAUD = 9600
BYTE_S = 10 / BAUD
LATENCY_S = 0.005


class Echo(LineFace):
    """Answers each line with itself."""

    latency_s = LATENCY_S

    def answer(self, line: str) -> str:
        return line + "\r"


class Registers(ModbusFace):
    """Has one register, which counts what was written to it."""

    latency_s = LATENCY_S

    def __init__(self) -> None:
        super().__init__(1)
        self.written: list[int] = []

    def write_registers(self, function: int, start: int, words: object) -> None:
        self.written.append(start)


class Scene:
    """A client, an outlet and what was heard on both sides, with the times."""

    def __init__(self, face: Face, baud: int = BAUD) -> None:
        self.loop = asyncio.get_running_loop()
        bus = SimulatedBus(LoopEnvironment(self.loop), [face], baud=0, chance=random.Random(1))
        self.bus = bus
        self.log = ByteLog()
        self.outlet = Outlet(name="p", bus=bus, face=face, baud=baud, speed=1.0, log=self.log)
        self.got: list[tuple[float, bytes]] = []
        self.talk = self.next_client()

    def next_client(self) -> Conversation:
        def send(data: bytes) -> bool:
            self.got.append((self.loop.time(), data))
            return True

        return Conversation(self.outlet, 1, send)

    def heard(self) -> list[bytes]:
        return [row.data for row in self.log.since(0, 10_000) if row.event == "heard"]


async def begun(face: Face, baud: int = BAUD) -> Scene:
    """Return a scene that has stood for a second."""
    made = Scene(face, baud)
    await asyncio.sleep(1.0)
    return made


def rtu(*body: int) -> bytes:
    return bytes(body) + checksum(bytes(body))


WRITE = rtu(1, 6, 0, 2, 0, 9)


# ---- the wire


@given(
    pieces=st.lists(st.tuples(st.floats(0, 0.05), st.binary(min_size=1, max_size=9)), max_size=6),
    byte_s=st.sampled_from([0.0, 10 / 9600, 10 / 115200]),
    taken=st.integers(0, 60),
)
@settings(deadline=None, max_examples=60)
def test_bytes_arrive_in_order_and_never_before_their_time(
    pieces: list[tuple[float, bytes]], byte_s: float, taken: int
) -> None:
    wire, now_s, whole = Wire(byte_s), 0.0, b""
    for wait_s, data in pieces:
        now_s += wait_s
        wire.put(data, now_s)
        whole += data
    assert wire.whole() == whole
    dues = [wire.due_s(count) for count in range(1, len(whole) + 1)]
    assert dues == sorted(dues)
    if dues:
        assert wire.free_s == pytest.approx(dues[-1])
    for count, due_s in enumerate(dues, 1):
        assert wire.arrived(due_s) >= count
        if byte_s:
            assert wire.arrived(due_s - byte_s / 2) == count - 1
    assert wire.take(taken) + wire.whole() == whole
    assert [wire.due_s(n) for n in range(1, len(wire) + 1)] == pytest.approx(dues[taken:])


# ---- a conversation


async def test_a_frame_acts_when_its_last_byte_has_come_and_its_reply_at_the_lines_pace() -> None:
    made = await begun(Echo())
    made.talk.hear(b"0123456\r")
    await asyncio.sleep(1.0)
    acted_s = 1.0 + 8 * BYTE_S
    assert b"".join(data for _, data in made.got) == b"0123456\r"
    arrived = 0
    for at_s, data in made.got:
        arrived += len(data)
        assert at_s >= acted_s + LATENCY_S + arrived * BYTE_S - 2e-6
    assert made.got[-1][0] == pytest.approx(acted_s + LATENCY_S + 8 * BYTE_S, abs=1e-5)
    assert len(made.got) > 4, "a reply trickles in"


@given(cuts=st.lists(st.integers(1, 15), max_size=5))
@settings(deadline=None, max_examples=25)
def test_however_a_line_is_cut_its_frames_are_heard_whole_and_in_order(cuts: list[int]) -> None:
    async def main() -> None:
        text = b"first\rsecond\r3\r"
        made = await begun(Echo())
        for start, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(text)], strict=True):
            made.talk.hear(text[start:end])
            await asyncio.sleep(0.004)
        await asyncio.sleep(1.0)
        assert made.heard() == [b"first\r", b"second\r", b"3\r"]
        assert b"".join(data for _, data in made.got) == text

    run(main(), VirtualLoop())


@pytest.mark.parametrize(("pause_s", "answers"), [(0.1, 1), (0.0, 0)])
async def test_silence_ends_half_a_modbus_frame_and_without_it_the_next_one_is_spoilt(
    pause_s: float, answers: int
) -> None:
    face = Registers()
    made = await begun(face)
    made.talk.hear(WRITE[:5])
    await asyncio.sleep(pause_s)
    made.talk.hear(WRITE)
    await asyncio.sleep(1.0)
    assert len(face.written) == answers
    assert bool(made.got) == bool(answers)


async def test_a_gone_clients_whole_frames_act_and_its_half_frame_and_replies_are_dropped() -> None:
    face = Registers()
    made = await begun(face)
    made.talk.hear(WRITE + WRITE + WRITE[:5])
    await asyncio.sleep(0.001)
    made.talk.end()
    made.talk = made.next_client()
    await asyncio.sleep(0.5)
    assert len(face.written) == 2, "the system sends what it was given"
    assert made.got == []
    made.talk.hear(WRITE)
    await asyncio.sleep(0.5)
    assert b"".join(data for _, data in made.got) == WRITE, "a write is answered by its echo"


async def test_a_reply_under_way_is_fenced_from_the_next_client() -> None:
    made = await begun(Echo())
    made.talk.hear(b"a long line for the first\r")
    await asyncio.sleep(26 * BYTE_S + LATENCY_S + 10 * BYTE_S)
    made.talk.end()
    before = len(made.got)
    assert before
    await asyncio.sleep(0.5)
    assert len(made.got) == before


async def test_a_wire_that_is_cut_in_mid_reply_passes_no_more_of_it() -> None:
    made = await begun(Echo())
    made.talk.hear(b"0123456789abcdef\r")
    await asyncio.sleep(17 * BYTE_S + LATENCY_S + 5.5 * BYTE_S)
    made.bus.faults.cut = True
    await asyncio.sleep(0.5)
    assert 3 <= sum(len(data) for _, data in made.got) <= 6


async def test_a_flood_without_a_frame_is_bounded_takes_its_time_and_is_forgotten() -> None:
    made = await begun(Echo())
    for _ in range(3):
        made.talk.hear(b"x" * made.talk.space)
        assert made.talk.space == 0
        await asyncio.sleep((PENDING_BYTES_MAX - 1) * BYTE_S)
        assert made.talk.space == 0
        await asyncio.sleep(2 * BYTE_S)
        assert made.talk.space == PENDING_BYTES_MAX
    made.talk.hear(b"A\r")
    await asyncio.sleep(1.0)
    assert made.heard() == [b"A\r"]


@pytest.mark.parametrize("pdu", [b"", b"\x10", b"\x10\0\1\0\1", b"\x10\0\1\0\1\4\0\7"])
def test_a_modbus_tcp_frame_that_is_too_short_for_its_function_is_refused(pdu: bytes) -> None:
    reply = ModbusTcpFace(1).receive(b"\0\1\0\0\0" + bytes([len(pdu) + 1, 1]) + pdu)
    assert reply is None if not pdu else reply[-2:] == b"\x90\x03"  # type: ignore[index]  # there


@pytest.fixture(scope="module")
def short_line() -> LabPlan:
    return read_lab(SHORT_LINE)


@given(data=st.data())
@settings(deadline=None, max_examples=25)
def test_no_bytes_of_a_client_bring_an_instrument_down(
    short_line: LabPlan, data: st.DataObject
) -> None:
    junk = st.binary(max_size=30)
    framed = (
        st.binary(min_size=1, max_size=12)
        .map(lambda body: b"\x01" + body)
        .map(lambda body: body + checksum(body))
    )
    tcp = st.binary(max_size=9).map(
        lambda pdu: b"\0\1\0\0" + (len(pdu) + 1).to_bytes(2, "big") + b"\1" + pdu
    )
    text = st.text(alphabet="AB@253?!;FRSLV0-9., \r", max_size=20).map(str.encode)
    values = st.recursive(st.none() | st.integers() | st.floats() | st.text(max_size=3), st.lists)
    sent = data.draw(st.lists(junk | framed | tcp | text, max_size=6))
    message = data.draw(st.dictionaries(st.sampled_from(["id", "command", "parameters"]), values))

    async def main() -> None:
        loop = asyncio.get_running_loop()
        sim_lab = SimulatedLab(short_line.file, Clock(loop), Chance(1), wire_time=False)
        for name, face in sim_lab.framings.items():
            outlet = Outlet(
                name=name, bus=sim_lab.buses[name], face=face, baud=0, speed=1.0, log=ByteLog()
            )
            talk = Conversation(outlet, 1, lambda reply: True)
            for each in [*sent, json.dumps(message).encode()]:
                talk.hear(each[: talk.space])
        await asyncio.sleep(5.0)

    run(main(), VirtualLoop())


def test_a_log_is_asked_from_any_row_on_and_gives_what_there_is() -> None:
    log = ByteLog()
    for number in range(3):
        log.note(number, "heat", 1, "sent", b"x")
    for since, rows in ((0, [0, 1]), (2, [2]), (3, []), (10**30, [])):
        assert [each.number for each in log.since(since, 2)] == rows


def test_no_request_ends_a_room_in_which_others_work(
    short_line: LabPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: list[Mapping[str, object]] = []

    def broken() -> None:
        raise KeyError("a bug")

    async def main() -> None:
        clock = Clock(asyncio.get_running_loop())
        sim_lab = SimulatedLab(short_line.file, clock, Chance(1), wire_time=False)
        control = SimulationControl(sim_lab, ByteLog(), dict, lambda: None)
        monkeypatch.setattr(sim_lab.plant, "truth", broken)
        for asked in (b'{"ask": "truth"}', b'{"ask": "status"}'):
            control.take(asked, answers.append)

    run(main(), VirtualLoop())
    assert answers == [{"error": "it breaks on that: KeyError: 'a bug'"}, {}]


def test_a_plant_that_breaks_is_no_bad_request(
    short_line: LabPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        clock = Clock(asyncio.get_running_loop())
        sim_lab = SimulatedLab(short_line.file, clock, Chance(1), wire_time=False)
        control = SimulationControl(sim_lab, ByteLog(), dict, lambda: None)
        monkeypatch.setattr(sim_lab.plant, "step", lambda dt_s: 1 / 0)
        await asyncio.sleep(5.0)
        control.take(b'{"ask": "status"}', lambda answer: None)

    with pytest.raises(ZeroDivisionError):
        run(main(), VirtualLoop())
