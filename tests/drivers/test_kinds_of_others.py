"""A package of somebody else: its kinds are there, and what is broken in it is one plain error."""

import asyncio
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commands import ROOT, edited_lab, spawn_with
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
from rig import HERE, SHORT_LINE

POINTS = """
[labharness.drivers]
theirs = their_drivers
[labharness.simulators]
theirs = their_simulators
[labharness.envelopes]
theirs = their_envelopes
"""
OFFERS = "[labharness.capabilities]\ntheirs = their_capabilities\n"


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """An installed package with one kind, as the page on drivers says: no plant, no lab."""
    home = tmp_path / "site"
    for drawer, ending in (("drivers", "py"), ("simulators", "py"), ("envelopes", "toml")):
        package = home / f"their_{drawer}"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text('"""Theirs."""\n', "utf-8")
        kind = ROOT / drawer / f"labharness_{drawer}" / f"mks_910.{ending}"
        shutil.copy(kind, package / f"their_gauge.{ending}")
    about = home / "theirs-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n", "utf-8")
    (about / "entry_points.txt").write_text(POINTS, "utf-8")
    return home


def test_a_kind_of_another_package_is_listed_and_measures(theirs: Path, tmp_path: Path) -> None:
    assert "their_gauge          their_drivers.their_gauge" in spawn_with(theirs, "drivers").out
    lab = edited_lab(tmp_path, 'kind = "mks_910"', 'kind = "their_gauge"')
    said = spawn_with(theirs, "read", "gauge.pressure", "--lab", lab)
    assert said.code == 0, said.err
    assert said.out.startswith("gauge.pressure 7")


@pytest.mark.parametrize(
    ("broken", "text", "words"),
    [
        ("their_drivers/their_gauge.py", "def (", "SyntaxError: invalid syntax"),
        ("their_simulators/their_gauge.py", "", "their_simulators.their_gauge has no Simulator"),
        ("their_drivers/__init__.py", "import not_there", "No module named 'not_there'"),
    ],
)
def test_what_is_broken_in_another_package_is_one_plain_error_that_names_it(
    theirs: Path, tmp_path: Path, broken: str, text: str, words: str
) -> None:
    (theirs / broken).write_text(text, "utf-8")
    lab = edited_lab(tmp_path, 'kind = "mks_910"', 'kind = "their_gauge"')
    module = broken.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    said = spawn_with(theirs, "read", "gauge.pressure", "--lab", lab)
    said.is_one_plain_error(module, words)


@pytest.mark.parametrize(
    ("code", "wrong"),
    [
        ("", "their_capabilities.alchemy has no CAPABILITY"),
        ("CAPABILITY = object()", "its CAPABILITY lacks declaration, formats, verbs, misfits"),
    ],
)
def test_a_broken_capability_of_another_package_is_one_plain_error_that_names_it(
    theirs: Path, code: str, wrong: str
) -> None:
    (theirs / "theirs-1.0.dist-info" / "entry_points.txt").write_text(OFFERS, "utf-8")
    package = theirs / "their_capabilities"
    for folder in (package, package / "alchemy"):
        folder.mkdir()
        (folder / "__init__.py").write_text("" if folder is package else code, "utf-8")
    for asked in (("capabilities", "list"), ("lab", "check", "--lab", SHORT_LINE)):
        said = spawn_with(theirs, *asked)
        said.is_one_plain_error(wrong)


@pytest.mark.parametrize(
    ("written", "wrong"),
    [
        ('[their.few] # too few\nen = "x"\n', "a header is [code] alone on its line"),
        ('[their.few]\nen = "x"\n [their.many]\nen = "y"\n', "a header is [code] alone"),
        ('[their.few]\nzh = "x"\n', "below it are en and"),
        ('[their.few]\nen = "x\n', "cannot be read: "),
    ],
)
def test_a_broken_text_of_another_package_is_one_plain_error_that_names_its_file(
    theirs: Path, written: str, wrong: str
) -> None:
    points = "[labharness.texts]\ntheirs = their_drivers\n"
    (theirs / "theirs-1.0.dist-info" / "entry_points.txt").write_text(points, "utf-8")
    (theirs / "their_drivers" / "texts.toml").write_text(written, "utf-8")
    said = spawn_with(theirs, "capabilities", "list")
    said.is_one_plain_error("their.few", "their_drivers/texts.toml", wrong)


PLANTS = """
from labharness_simulators.plant.cvd_tube import CvdTube

class Theirs(CvdTube):
    pass

PLANTS = {"KIND": Theirs}
"""


def plant_of(theirs: Path, kind: str) -> None:
    """Put a plant into the package, in a module of its own."""
    folder = theirs / "their_simulators" / "plant"
    folder.mkdir()
    (folder / "__init__.py").write_text(PLANTS.replace("KIND", kind), "utf-8")


def test_a_plant_of_another_package_stands_beside_ours(theirs: Path, tmp_path: Path) -> None:
    plant_of(theirs, "their_tube")
    said = spawn_with(theirs, "read", "gauge.pressure", "--lab", SHORT_LINE)
    assert said.code == 0, said.err
    lab = edited_lab(tmp_path, 'kind = "cvd_tube"', 'kind = "their_tube"')
    said = spawn_with(theirs, "read", "gauge.pressure", "--lab", lab)
    assert said.code == 0, said.err
    assert said.out.startswith("gauge.pressure 7")


def test_two_plants_of_one_kind_are_one_plain_error_that_names_both(theirs: Path) -> None:
    plant_of(theirs, "cvd_tube")
    said = spawn_with(theirs, "lab", "check", "--lab", SHORT_LINE)
    said.is_one_plain_error(
        "plant 'cvd_tube' is doubled: labharness_simulators.plant and their_simulators.plant"
    )


def test_the_shipped_lab_says_what_keeps_it_from_being_found(theirs: Path) -> None:
    (theirs / "their_envelopes" / "__init__.py").write_text("1 / 0", "utf-8")
    spawn_with(theirs, "safe").is_one_plain_error("their_envelopes cannot be imported")


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
