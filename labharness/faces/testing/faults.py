"""Faults of a simulated lab, by name: those of its plant and those of its buses.

The names are the fields of the plant's own ``faults`` and of ``simulation.BusFaults``; a plant from
another package has its own. The unit stands at the end of each name.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from labharness.core.errors import LabError
from labharness.instruments.simulation import BusFaults
from labharness.instruments.simulation.control import levels_of
from labharness.lab import BadLabFile, Lab, LabPlan
from labharness.lab.config.kinds import plant_kinds
from labharness.lab.wiring.simulated_lab import SimulatedLab

Act = Callable[[Lab], None]
Level = bool | float


class UnknownFault(LabError, LookupError, code="unknown_fault"):
    """An unknown fault, port or level; the message lists the known ones."""


@dataclass
class Injection:
    """A fault, and the time at which it comes.

    Attributes:
        stage: Stage of the run; with ``None`` time counts from the lab's building.
        after_s: Lab time into that stage.
        act: Sets the fault.
        name: Its name in messages.
        done: Whether it has come.
    """

    stage: str | None
    after_s: float
    act: Act
    name: str = "a fault of the test's own"
    done: bool = field(default=False)

    def begin(self, lab: Lab) -> None:
        """Start the wait for the fault; without a delay it comes at once."""
        if self.after_s > 0:
            lab.clock.loop.call_later(self.after_s, self._happen, lab)
        else:
            self._happen(lab)

    def _happen(self, lab: Lab) -> None:
        self.done = True
        self.act(lab)


def plant_faults(plan: LabPlan) -> Mapping[str, Level]:
    """Return the faults of a lab's plant, each with its healthy level."""
    row = plan.file.plant
    plant: Any = None if row is None else plant_kinds()[row.kind](None, **row.settings)
    faults = getattr(plant, "faults", None)
    return {} if faults is None else levels_of(faults)


def bus_faults() -> Mapping[str, Level]:
    """Return the faults of a bus, each with its healthy level."""
    return levels_of(BusFaults())


def fault(plan: LabPlan, name: str, level: Level = True, *, port: str | None = None) -> Act:
    """Return a function that sets one fault.

    Args:
        plan: The lab.
        name: Name of a fault of the plant or, with ``port``, of that port's bus.
        level: Its size, in the unit at the end of the name; ``False`` or 0 ends the fault.
        port: The port of a bus fault.

    Raises:
        UnknownFault: The message lists the known faults, ports or levels.
    """
    of_buses = bus_faults()
    of_plant = plant_faults(plan)
    ports = [row.name for row in plan.file.port]
    if port is None:
        if name in of_buses:
            raise UnknownFault(f"{name!r} is a bus's fault: name its port, of {', '.join(ports)}")
        if name not in of_plant:
            raise UnknownFault(
                f"no fault {name!r}; this lab's plant has {', '.join(of_plant)}; "
                f"a bus, with port=..., has {', '.join(of_buses)}"
            )
        wanted = _level(name, level, of_plant[name])
        return lambda lab: setattr(simulated_of(lab).plant.faults, name, wanted)
    if port not in ports:
        raise UnknownFault(f"no port {port!r}; this lab has {', '.join(ports)}")
    if name not in of_buses:
        raise UnknownFault(f"a bus has no fault {name!r}; it has {', '.join(of_buses)}")
    wanted = _level(name, level, of_buses[name])
    return lambda lab: setattr(simulated_of(lab).buses[port].faults, name, wanted)


def simulated_of(lab: Lab) -> SimulatedLab:
    """Return the simulated lab of a lab.

    Raises:
        BadLabFile: The lab has none.
    """
    sim_lab = lab.simulated
    if sim_lab is None:
        raise BadLabFile(f"{lab.plan.path}: this lab has no simulated lab")
    return sim_lab


def _level(name: str, level: Level, healthy: Level) -> Level:
    """Check a level against the type of the healthy one: a switch, a count or a finite number."""
    if isinstance(healthy, bool):
        if not isinstance(level, bool):
            raise UnknownFault(f"{name} is True or False, not {level!r}")
    elif isinstance(level, bool) or not isinstance(level, int | float) or not math.isfinite(level):
        raise UnknownFault(f"{name} takes a number, not {level!r}")
    elif isinstance(healthy, int) and (level != int(level) or level < 0):
        raise UnknownFault(f"{name} takes a count, not {level!r}")
    return level
