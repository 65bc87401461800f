"""The line the kernel's tests are made on: few channels, one row of each kind."""

import math
from typing import Any

from labharness.core.vocabulary import Cause, Command, Refused, Trip, Verdict
from labharness.safety.kernel import (
    Backfill,
    Bound,
    Envelope,
    Interlock,
    LeakCheck,
    LeakTight,
    Limit,
    Memory,
    Mode,
    Plausible,
    Procedure,
    Purge,
    PurgedOf,
    Role,
    Step,
    TripRow,
    Watch,
    judge,
    observe,
)

STALE_S = 5.0
SHUTDOWN = Procedure(
    name="shutdown",
    steps=(Step(channel="furnace.setpoint", value=20.0, unit="degC"),),
    wire_s_max=1.0,
    verify_s_max=10.0,
)

BACKFILL = Backfill(
    channel="gauge.pressure",
    cycles=3,
    low=10.0,
    high=700.0,
    atmosphere=760.0,
    unmeasured_max=0.05,
    dilution_min=1000.0,
)
LEAK_CHECK = LeakCheck(
    channel="gauge.pressure",
    isolated=(Bound("box.pump_isolation", high=0.0),),
    inlets=(),
    below=1.0,
    over_s=60.0,
    leak_max=0.75,
)
STUCK = Plausible(
    name="thermocouple is stuck",
    channel="furnace.temperature",
    found_s=20.0,
    cause=Cause.SENSOR_BREAK,
    procedure="shutdown",
    source="test",
    during=(Bound("furnace.temperature", low=100.0),),
    span_min=0.1,
)


def limit(channel: str, unit: str, low: float, high: float, **more: Any) -> Limit:
    return Limit(channel=channel, unit=unit, low=low, high=high, source="test", **more)


def parts() -> dict[str, Any]:
    limits = [
        limit("furnace.setpoint", "degC", 20.0, 1000.0, step_max=500.0),
        limit("furnace.rate", "degC/min", 0.0, 20.0, role=Role.PREPARE),
        limit("box.contactor", "", 0.0, 1.0),
        limit("hydrogen.setpoint", "sccm", 0.0, 100.0, readback="hydrogen.flow"),
        limit("argon.setpoint", "sccm", 0.0, 500.0),
        limit("nitrogen.setpoint", "sccm", 0.0, 500.0),
        limit("methane.setpoint", "sccm", 0.0, 50.0),
        limit("oven.setpoint", "degC", 0.0, 900.0),
        limit("oven.off", "", 0.0, 1.0, role=Role.PREPARE, always_safe=(0.0,)),
    ]
    watches = [
        Watch(channel=channel, stale_s=STALE_S, procedure="shutdown")
        for channel in ("furnace.temperature", "box.exhaust", "hydrogen.flow", "argon.flow")
    ]
    watches.append(Watch(channel="argon.setpoint", stale_s=STALE_S, procedure=""))
    more = ("gauge.pressure", "box.pump_isolation", "oven.setpoint", "methane.flow")
    watches += [Watch(channel=channel, stale_s=STALE_S, procedure="") for channel in more]
    watches.append(Watch(channel="box.lid_shut", stale_s=STALE_S, procedure=""))
    return {
        "line": "test",
        "limits": {each.channel: each for each in limits},
        "interlocks": (
            Interlock(
                name="power only with exhaust",
                guards=("box.contactor",),
                require=(Bound("box.exhaust", low=0.5),),
                source="test",
                on_loss="shutdown",
            ),
            Interlock(
                name="heat only while flow is small",
                guards=("furnace.setpoint",),
                require=(Bound("box.exhaust", low=0.5), Bound("hydrogen.flow", high=50.0)),
                source="test",
                above=60.0,
            ),
            Interlock(
                name="hydrogen only into a purged tube",
                guards=("hydrogen.setpoint",),
                require=(PurgedOf("air", 5.0),),
                source="test",
                on_loss="shutdown",
            ),
            Interlock(
                name="methane only into a tight tube that is not warm",
                guards=("methane.setpoint",),
                require=(LeakTight("air"),),
                forbid=(Bound("furnace.temperature", 100.0, 540.0),),
                source="test",
            ),
            Interlock(
                name="no ramp through the band over hydrogen",
                guards=("oven.setpoint",),
                forbid=(Bound("hydrogen.flow", low=0.5),),
                source="test",
                above=100.0,
                upto=400.0,
            ),
            Interlock(
                name="a hot furnace keeps its lid",
                guards=(),
                require=(Bound("box.lid_shut", low=1.0),),
                during=Bound("furnace.temperature", low=300.0),
                source="test",
                on_loss="shutdown",
            ),
            Interlock(
                name="nitrogen stays while hot",
                guards=("nitrogen.setpoint",),
                forbid=(Bound("methane.flow", low=0.5),),
                during=Bound("furnace.temperature", low=300.0),
                source="test",
                above=math.inf,
                below=1.0,
            ),
        ),
        "watches": {each.channel: each for each in watches},
        "trips": (
            TripRow(
                name="too hot",
                channel="furnace.temperature",
                cause=Cause.OVER_TEMPERATURE,
                procedure="shutdown",
                unit="degC",
                source="test",
                high=1050.0,
            ),
            TripRow(
                name="sensor broken",
                channel="furnace.temperature",
                cause=Cause.SENSOR_BREAK,
                procedure="shutdown",
                unit="degC",
                source="test",
                low=-50.0,
            ),
            TripRow(
                name="rather hot",
                channel="furnace.temperature",
                cause=Cause.OVER_TEMPERATURE,
                procedure="",
                unit="degC",
                source="test",
                high=1020.0,
            ),
        ),
        "procedures": {"shutdown": SHUTDOWN},
        "procedure_of": dict.fromkeys(Cause, "shutdown"),
        "purge": Purge(
            volume_cm3=100.0,
            inert={"argon.flow": "argon.setpoint"},
            present={
                "air": (Bound("box.lid_shut", high=0.5),),
                "hydrogen": (Bound("hydrogen.flow", low=0.5),),
            },
            outside="air",
            backfill=BACKFILL,
            leak_check=LEAK_CHECK,
        ),
        "plausible": (STUCK,),
    }


ENVELOPE = Envelope(**parts())


def running(mode: Mode = Mode.RUNNING) -> Memory:
    memory = Memory(ENVELOPE)
    memory.mode = mode
    return memory


def see(memory: Memory, now: float, **values: float) -> tuple[Trip, ...]:
    """Observe readings; ``box__exhaust=1`` stands for channel ``box.exhaust``."""
    tracks = [memory.track(name.replace("__", ".")) for name in values]
    return observe(memory, tracks, list(values.values()), now)


def healthy(memory: Memory, now: float) -> None:
    see(
        memory,
        now,
        furnace__temperature=25.0,
        furnace__setpoint=25.0,
        box__exhaust=1.0,
        box__lid_shut=1.0,
        hydrogen__flow=0.0,
        argon__flow=0.0,
    )


def ask(
    memory: Memory, channel: str, value: float, unit: str | None = None, now: float = 0.0
) -> Verdict:
    if unit is None:
        unit = ENVELOPE.limits[channel].unit
    return judge(Command(channel, value, unit), memory, now)


def rule_of(verdict: Verdict) -> str:
    """Name the rule that refused; ``""`` when allowed."""
    return verdict.rule if isinstance(verdict, Refused) else ""
