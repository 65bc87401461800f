"""Every kind, with its simulator's real bytes: no answer is taken for one to another question.

All questions of an instrument, and some commands, pass a wire that adds a stray line, or doubles,
delays, loses or cuts a reply, at any place. An instrument answers in the order of the questions.
"""

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labharness.core.clock import Chance, Clock, VirtualLoop, run
from labharness.core.vocabulary import BadReply, DeviceFault, Request, same_frame
from labharness.instruments.link.loopback import LoopbackLink
from labharness.instruments.simulation import Face
from labharness.lab import LabPlan, read_lab
from labharness.lab.config.kinds import driver_kinds
from labharness.lab.wiring.simulated_lab import SimulatedLab
from labharness.line.exchanges import Exchanges, NoReply
from labharness.line.instrument import Instrument, read_frames, step_frames
from labharness.safety.guard import GuardCore, Latch
from labharness.safety.guard.shell import LoopGuard
from rig import HERE

LABS = HERE.parent / "envelopes" / "labharness_envelopes" / "labs"
KINDS = sorted(driver_kinds())
FAULTS = ("stray before", "stray after", "doubled", "late", "lost", "cut")
WAITS_S = (0.0, 0.001, 0.05, 0.7, 1.4, 3.0)
STRAYS = (b"0", b"1", b"OK", b"0.25", b"R", b"VOLT", b"1,2,3", b"+1.000000E-03")
SETS = {"cobolt_laser": ("power", 0.02), "keithley_2400": ("voltage", 0.5)}
SETS |= {"prior_proscan": ("x", 25.0), "alicat_mc": ("setpoint", 2.0)}
PLACES = 30  # of a burst: its questions, and what the guard asks between them


@dataclass
class Fault:
    """One fault of the wire, at one reply.

    Attributes:
        stray: A line that comes by itself.
        wait_s: How long after (or how much later) it comes.
    """

    place: int
    what: str
    stray: bytes
    wait_s: float


@dataclass
class Wire:
    """The far end of a link: a simulated instrument, and one fault."""

    face: Face
    fault: Fault | None = None
    said: list[tuple[bytes, bytes]] = field(default_factory=list)
    _free_s: float = 0.0

    def transmit(self, data: bytes, deliver: Callable[[bytes], None]) -> None:
        reply = self.face.receive(data)
        if reply is None:
            return
        fault = self.fault if self.fault and self.fault.place == len(self.said) else None
        self.said.append((data, reply))
        if fault is None:
            self._bring(deliver, reply, self.face.latency_s)
            return
        stray, wait_s = fault.stray + reply[-1:], fault.wait_s
        loop = asyncio.get_running_loop()
        if fault.what == "stray before":
            loop.call_soon(deliver, stray)
        if fault.what == "late":
            self._bring(deliver, reply, self.face.latency_s + wait_s)
        elif fault.what == "cut":
            self._bring(deliver, reply[: len(reply) // 2], self.face.latency_s)
        elif fault.what != "lost":
            self._bring(deliver, reply, self.face.latency_s)
        if fault.what == "stray after":
            loop.call_at(self._free_s + wait_s, deliver, stray)
        elif fault.what == "doubled":
            self._bring(deliver, reply, min(wait_s, 0.001))

    def _bring(self, deliver: Callable[[bytes], None], data: bytes, after_s: float) -> None:
        """Deliver bytes after all that were sent before."""
        loop = asyncio.get_running_loop()
        self._free_s = max(self._free_s, loop.time() + after_s) + 1e-5
        loop.call_at(self._free_s, deliver, data)


@cache
def plans() -> tuple[LabPlan, ...]:
    return tuple(read_lab(LABS / name / "lab.toml") for name in ("cvd_mos2", "iv_bench"))


def found(kind: str) -> tuple[Instrument, LabPlan]:
    return next((e, plan) for plan in plans() for e in plan.instruments if e.kind == kind)


async def believed(kind: str, fault: Fault | None, folder: Path) -> tuple[int, list[str]]:
    """Ask everything; return how many answers there were, and those that are another's."""
    instrument, plan = found(kind)
    driver, port = instrument.driver, instrument.port
    clock = Clock(asyncio.get_running_loop())
    face = SimulatedLab(plan.file, clock, Chance(1), wire_time=False).faces[instrument.name]
    wire = Wire(face, fault)
    link = LoopbackLink(wire)
    steps = step_frames((instrument,))
    guard = LoopGuard(
        GuardCore(read_frames((instrument,)), {}, steps), {port: link}, Latch(folder / "latch")
    )
    await link.open()
    await guard.arm()
    exchanges = Exchanges(guard, asyncio.get_running_loop())
    wrong: list[str] = []
    count = 0

    def take(request: Request, reply: bytes) -> None:
        nonlocal count
        count += 1
        own = [
            there
            for frame, there in wire.said
            if same_frame(Request(frame, request.reply, 0.0, 0.0, request.transaction), request)
        ]
        if not steps[port] and request.transaction is None:  # an address does not count answers
            own = [each for each in own if each == reply]
        if not own or own[-1] != reply:
            wrong.append(f"{request.frame!r} was answered {own[-1:]}, taken is {reply!r}")

    async def ask(request: Request, decode: Callable[[bytes], object]) -> None:
        def both(reply: bytes) -> bytes:
            decode(reply)
            return reply

        for _ in range(2):
            try:
                take(request, await exchanges.ask(port, request, both))
                return
            except (BadReply, DeviceFault, NoReply):
                continue

    async def command(channel: str, value: float) -> None:
        (request,) = driver.write(channel, value)
        try:
            async with exchanges.lease(port) as lease:
                await lease.settle()
                reply = await lease.send(request, command=True)
                driver.accept(channel, reply)
                if steps[port]:
                    take(request, reply)
        except (BadReply, DeviceFault, NoReply):
            pass

    for each in (driver.identify(), *driver.queries()):
        await ask(each.request, each.decode)
    for _ in range(2):
        for scan in driver.scans():
            if scan.only_while is None:  # else it may be silent, and a stray line its only answer
                await ask(scan.request, scan.decode)
        if kind in SETS:
            await command(*SETS[kind])
        await asyncio.sleep(0.5)
    guard.close()
    for step in steps[port]:
        for frame, reply in wire.said:
            if frame != step.frame and step.obeyed and re.fullmatch(step.obeyed, reply):
                wrong.append(f"{reply!r} to {frame!r} is in the form of {step.frame!r}")
    return count, wrong


def outcome(kind: str, fault: Fault | None) -> tuple[int, list[str]]:
    with TemporaryDirectory() as folder:
        return run(believed(kind, fault, Path(folder)), VirtualLoop())


@pytest.mark.parametrize("kind", KINDS)
def test_a_wire_without_faults_answers_every_question_it_is_asked(kind: str) -> None:
    count, wrong = outcome(kind, None)
    answered = [each for each in found(kind)[0].driver.scans() if each.only_while is None]
    assert wrong == []
    assert count >= (5 if kind == "horiba_icl" else 2 * len(answered))  # its devices are shut


@pytest.mark.promise(76)
@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@settings(deadline=None, max_examples=60)
def test_no_answer_to_another_question_is_believed(kind: str, data: st.DataObject) -> None:
    fault = Fault(
        data.draw(st.integers(0, PLACES)),
        data.draw(st.sampled_from(FAULTS)),
        data.draw(st.sampled_from(STRAYS)),
        data.draw(st.sampled_from(WAITS_S)),
    )
    assert outcome(kind, fault)[1] == []
