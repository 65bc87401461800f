"""The communication loss of a line: what each instrument then does, as its driver states it."""

from collections.abc import Callable, Iterator, Mapping

from labharness.core.vocabulary import OPERATOR, Command, Text
from labharness.core.vocabulary.comm_loss import comm_loss_text
from labharness.core.vocabulary.units import TEMPERATURES
from labharness.instruments.driver import Channel
from labharness.lab.config.lab_plan import LabPlan
from labharness.safety.kernel import Envelope
from labharness.work.plan import Stays

FLOW = "sccm"
HOT = "high_temperature"  # the category of the hazard table
FLOW_SCCM_MIN = 0.2  # a controller at rest on the nominal plant reads 0

Latest = Callable[[str], float]
"""Returns the last reading of a channel; NaN where there is none."""


def if_killed(plan: LabPlan, latest: Latest) -> tuple[str, ...]:
    """Return, by channel, each value that differs from the safe table, and its effect on loss."""
    found = []
    for channel, wanted in plan.safe_values.items():
        spec, value = _shown(plan, channel, latest)
        if value == value and abs(value - wanted) > spec.resolution:
            what = Command(channel, value, spec.unit).text
            found.append(Text("pair", what=what, why=comm_loss_text(spec.on_comm_loss)))
    return tuple(found)


def what_stays(plan: LabPlan, latest: Latest) -> tuple[Stays, ...]:
    """Return heat, switches under power and gas flows of the same moment, in words for a person.

    The envelope says which values energise: those above an interlock whose loss under power runs
    a procedure. A heater counts as off only where a switch that an interlock guards together with
    its setpoint, and with no other heater's, reads as the safe table has it.
    """
    found, told, safe = [], set[str](), plan.safe_values
    for channel in plan.envelope.limits:
        if channel.startswith(f"{OPERATOR}."):
            continue  # a hand valve stays as the person left it
        spec, value = _shown(plan, channel, latest)
        heats = spec.unit in TEMPERATURES
        mains = _switches(plan, channel, safe) if heats else ()
        off = any(_shown(plan, each, latest)[1] == safe[each] for each in mains)
        if heats and _energises(plan.envelope, channel, value) and not off:
            told.update(mains)
            found.append(_stays("heats", channel.partition(".")[0], value, spec))
    flows = []
    for channel, flow_sccm in _flows(plan, latest):
        spec, value = _shown(plan, channel, latest)
        told.update(_switches(plan, channel, safe))
        shown = value if value == value else flow_sccm
        flows.append(_stays("flows", channel.partition(".")[0], shown, spec))
    for channel in safe:
        spec, value = _shown(plan, channel, latest)
        if not spec.unit and channel not in told and _energises(plan.envelope, channel, value):
            found.append(_stays("on", channel, value, spec))
    return (*found, *flows)


def hardware(plan: LabPlan) -> tuple[str, ...]:
    """Name the hardware that the hazard table puts before heat."""
    rows = (row for row in plan.hazards.hazard if HOT in row.categories)
    return tuple(f"{row.name}: {row.safeguard}" for row in rows if row.safeguard.strip())


def _stays(what: str, name: str, value: float, spec: Channel) -> Stays:
    return Stays(what=what, name=name, value=value, unit=spec.unit, does=spec.on_comm_loss)


def _spec(plan: LabPlan, channel: str) -> Channel:
    name, _, own = channel.partition(".")
    for each in plan.instruments:  # without a generator: asked a hundred times a step of a flight
        if each.name == name:
            return each.driver.channels[own]
    raise LookupError(channel)


def _shown(plan: LabPlan, channel: str, latest: Latest) -> tuple[Channel, float]:
    """Return a channel as its driver declares it, and what it reads."""
    name, _, own = channel.partition(".")
    spec = _spec(plan, channel)
    return spec, latest(f"{name}.{spec.readback or own}")


def _energises(envelope: Envelope, channel: str, value: float) -> bool:
    rows = (row for row in envelope.interlocks if row.on_loss and channel in row.guards)
    return any(value > row.above for row in rows)


def _switches(plan: LabPlan, channel: str, safe: Mapping[str, float]) -> tuple[str, ...]:
    """Return the switches of the safe table that an interlock guards with this channel alone."""
    found = dict[str, None]()
    for row in plan.envelope.interlocks:
        if channel not in row.guards:
            continue
        switches = [each for each in row.guards if not _spec(plan, each).unit]
        if len(row.guards) == 1 + len(switches):
            found.update(dict.fromkeys(each for each in switches if each in safe))
    return tuple(found)


def _flows(plan: LabPlan, latest: Latest) -> Iterator[tuple[str, float]]:
    """Return, for each gas that flows, the channel that sets it and the measured flow."""
    for each in plan.instruments:
        for name, spec in each.driver.channels.items():
            bounded = f"{each.name}.{name}" in plan.envelope.limits
            if not (spec.settable and bounded and spec.unit == FLOW):
                continue
            measured = latest(f"{each.name}.flow")
            if measured > FLOW_SCCM_MIN:
                yield f"{each.name}.{name}", measured
                break
