"""The planted bugs of the referee's kind: each takes away one protection against a harm.

A bug is a text replaced in the line's own files, or a name replaced in the code; the search must
find it within so many hours. Where further layers stand behind a protection, its loss alone harms
nobody; a bug takes them all away then.
"""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from labharness.chaos.world import GuardLeft
from labharness.lab import LabPlan
from labharness.lab.config import lab_plan as config
from labharness.line.procedures import Verification
from labharness.line.trip_response import TripResponse
from labharness.safety.guard import port as guard_port
from labharness.safety.guard.shell import LoopGuard
from labharness.safety.kernel.proofs.purged import PurgeProof
from labharness.work.capability.steps import Steps
from rig import approved_copy

HOURS_MAX = 200.0

Patch = Callable[[], contextlib.AbstractContextManager[object]]


@dataclass(frozen=True, slots=True)
class Harm:
    """One protection taken away.

    Attributes:
        name: What no longer holds.
        growth: Which growth of seed 1 found it first, searched from the first on: 184 take 131 h.
        edits: Texts of the lab file or its envelope, and what stands there instead, everywhere.
        patch: What is replaced in the code.
    """

    name: str
    growth: int
    edits: tuple[tuple[str, str], ...] = ()
    patch: Patch = contextlib.nullcontext


def _counts_hundredfold(
    proof: PurgeProof, meter: Any, track: Any, flow_sccm: float, now: float
) -> None:
    for _ in range(100):
        _count_flow(proof, meter, track, flow_sccm, now)


_count_flow = PurgeProof.count_flow


async def _nobody(world: object, *args: object) -> None:
    """A guard that is not there."""


def _trip_but_not_latched(guard: LoopGuard, trip: Any) -> None:
    for port in guard.core.trip(trip.procedure):
        guard._send_safe(port)
    guard.core.latched = False


async def _make_safe_not(trip_response: TripResponse, procedure: str) -> Verification:
    return Verification(procedure, (), 0.0)


def _add_unflushed(steps: Steps, instruction_id: str, *rest: Any, **more: Any) -> None:
    if instruction_id != "load_flush_hydrogen":
        _add_step(steps, instruction_id, *rest, **more)


_add_step = Steps.add


def _unproven() -> contextlib.AbstractContextManager[object]:
    """Let a line be armed whose procedures leave something on."""
    return mock.patch.object(config, "unproven", return_value=())


def _procedure_without(channel: str, value: int) -> tuple[str, str]:
    return (f'    ["{channel}", {value}],\n', "")


EXTRACTION = '    { channel = "box.exhaust_flow", at_least = 1 },\n'
EXTRACTION_WHILE_HOT = (
    'require = [{ channel = "box.exhaust_flow", at_least = 1 }]\n',
    'require = [{ channel = "furnace.temperature", at_least = -300 }]\n',  # as it always is
)
LID = '    { channel = "box.lid_shut", at_least = 1 },\n'
CARRIED = """    { channel = "box.lid_shut", at_least = 1 }, # who carries the sample has both open
]
"""
LID_ALONE = """[[interlock]]
name = "a hot furnace keeps its lid"
during = { channel = "furnace.temperature", at_least = 150 }
require = [{ channel = "box.lid_shut", at_least = 1 }]
on_loss = "immediate_shutdown"
source = "the tube is opened below 60 to 80 C; air over hot sources burns them"
"""
LID_AND_AIR = (
    '[[purge.present.air]]\nchannel = "box.lid_shut"\nat_most = 0.5\n',
    '[[purge.present.air]]\nchannel = "furnace.temperature"\nat_most = -300\n',  # as it never is
)
FLUSHED = '    { purged_of = "hydrogen", volumes = 5 },\n'
ARGON_UNTIL_FLUSHED = (
    'require = [{ purged_of = "hydrogen", volumes = 5 }]\n',
    'require = [{ channel = "argon.setpoint", at_least = 0 }]\n',
)
VENTED = 'unless = { channel = "box.vent", at_least = 1 }\n'
VACUUM = """when = [
    { channel = "gauge.pressure", at_most = -60, unit = "Torr gauge" },
    { channel = "box.pump_isolation", at_least = 1 }, # the gauge is read once a second
]
unless = { channel = "box.vent", at_least = 1 }
instead = "hold_vacuum"
"""

HARMS = (
    Harm(
        "the procedures forget hydrogen",
        5,
        (_procedure_without("box.hydrogen_valve", 0), _procedure_without("hydrogen.setpoint", 0)),
        _unproven,
    ),
    Harm(
        "the procedures forget the furnace",
        5,
        (
            _procedure_without("box.furnace_contactor", 0),
            _procedure_without("furnace.mode", 1),
            _procedure_without("furnace.output", 0),
            _procedure_without("furnace.setpoint", 0),
        ),
        _unproven,
    ),
    Harm(
        "the procedures shut the inert gas",
        2,
        (
            ('    ["box.nitrogen_bypass_shut", 0],\n', '    ["box.nitrogen_bypass_shut", 1],\n'),
            ('    ["box.argon_valve", 1],\n', '    ["box.argon_valve", 0],\n'),
            ('    ["argon.setpoint", 100],\n', '    ["argon.setpoint", 0],\n'),
        ),
    ),
    Harm("no interlock on the extraction", 184, ((EXTRACTION, ""), EXTRACTION_WHILE_HOT)),
    Harm("no interlock on the lid", 14, ((LID, ""), (LID_ALONE, ""), LID_AND_AIR)),
    Harm("silence is stale a hundred times later", 21, (("stale_s = 3.5", "stale_s = 350"),)),
    Harm(
        "over-temperature does not trip",
        61,
        (
            (
                "[safety_envelope.parameters.temperature]\nmax = 1000",
                "[safety_envelope.parameters.temperature]\nmax = 9000",
            ),
            ("span_max = 160 }\n", "span_max = 16000 }\n"),
        ),
    ),
    Harm(
        "a gas leak does not trip",
        115,
        (
            ('high = 4000\nunit = "ppm"', 'high = 4e9\nunit = "ppm"'),
            ('    { channel = "h2_detector.concentration", at_most = 1000 },\n', ""),
        ),
    ),
    Harm("over-pressure does not trip", 37, (("max = 0.15\n", "max = 15\n"),)),
    Harm("a vacuum is vented", 7, ((VACUUM, ""),)),
    Harm(
        "the enclosure does not turn the laser off",
        120,
        ((f'{CARRIED}on_loss = "immediate_shutdown"\n', CARRIED),),
    ),
    Harm(
        "a hot tube may be opened",
        1,
        (
            ("cool_tau_s = 200", "cool_tau_s = 200\nopen_below_c = 140"),
            ('    { channel = "furnace.temperature", at_most = 80 },\n', ""),
            ('    { channel = "sulfur.temperature", at_most = 80 },\n', ""),
        ),
    ),
    Harm(
        "a tube that may hold hydrogen is opened",
        64,
        ((FLUSHED, ""), ARGON_UNTIL_FLUSHED),
        lambda: mock.patch.object(Steps, "add", _add_unflushed),
    ),
    Harm("a gauge that is dead is taken for a vacuum", 184, ((VENTED, ""),)),
    Harm(
        "nothing sees that a gauge is stuck while the tube is filled",
        144,
        (("rise_min = 5\nfound_s = 20\n", "rise_min = -1e6\nfound_s = 20\n"),),
    ),
    Harm(
        "nothing sees that a thermocouple is stuck",
        16,
        (
            ("rise_min = 2\nfound_s = 240\n", "rise_min = -1e6\nfound_s = 240\n"),
            ("span_min = 0.1\nfound_s = 240\n", "span_min = 0\nfound_s = 240\n"),
        ),
    ),
    Harm(
        "the purge is counted a hundredfold",
        64,
        patch=lambda: mock.patch.object(PurgeProof, "count_flow", _counts_hundredfold),
    ),
    Harm(
        "the guard overlooks the harness's end",
        28,
        patch=lambda: mock.patch.object(GuardLeft, "alone", _nobody),
    ),
    Harm(
        "a trip does not latch",
        5,
        patch=lambda: mock.patch.object(LoopGuard, "trip", _trip_but_not_latched),
    ),
    Harm(
        "a refused write passes for an obeyed one",
        62,
        patch=lambda: mock.patch.object(guard_port, "disobeyed", return_value=""),
    ),
    Harm(
        "a run that ends is not made safe",
        1,
        patch=lambda: mock.patch.object(TripResponse, "make_safe", _make_safe_not),
    ),
)


@contextlib.contextmanager
def planted(harm: Harm, folder: Path) -> Iterator[LabPlan]:
    """Return the short line with one protection taken away."""
    missing = dict(harm.edits)

    def edit(text: str) -> str:
        for right, wrong in harm.edits:
            if right in text:
                missing.pop(right, None)
            text = text.replace(right, wrong)
        return text

    folder.mkdir(parents=True, exist_ok=True)
    plan = approved_copy(folder, edit=edit)
    assert not missing, f"{harm.name}: the line has no {missing}"
    with harm.patch():
        yield plan
