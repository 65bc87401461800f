"""Inject a fault into a simulated lab (plant, wires, the harness's disk), and undo it."""

import errno
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from labharness.chaos.scenario import Fault
from labharness.chaos.table import FaultTable
from labharness.journal import JournalFailed
from labharness.lab import Lab
from labharness.lab.wiring.simulated_lab import SimulatedLab

Undo = Callable[[], None]


def inject(
    table: FaultTable,
    fault: Fault,
    sim_lab: SimulatedLab,
    lab: Lab | None,
    chance: random.Random,
) -> Undo:
    """Begin a fault; return the function that ends it.

    Args:
        table: The faults of the line.
        fault: The fault; ``kill`` and ``pause`` are handled by ``world``.
        sim_lab: The simulated lab.
        lab: The living harness, for faults of its clock and disk.
        chance: Source of the fault's random values.

    Raises:
        ValueError: The kind of fault is unknown.
    """
    kind, target = fault.kind, fault.target
    plant = sim_lab.plant
    if kind.startswith("sensor_"):
        plant.faults.lie(target, kind.removeprefix("sensor_"), fault.amount, chance)
        lie = plant.faults.sensors[target]

        def honest() -> None:
            if plant.faults.sensors.get(target) is lie:  # another lie may have replaced it
                _forget(plant.faults.sensors, target)

        return honest
    row = table.rows.get(kind)
    if row is not None and row.sets is not None:
        flag = not row.amounts and row.between is None
        now, healthy = (True, False) if flag else (fault.amount, 0.0)
        return _set(plant.faults, row.sets, now, healthy)
    if kind.startswith("reply_"):
        share = f"{kind.removeprefix('reply_')}_share"
        return _set(sim_lab.buses[target].faults, share, fault.amount, 0.0)
    if kind == "bus_cut":
        return _set(sim_lab.buses[target].faults, "cut", True, False)
    if kind in ("write_lost", "write_refused"):
        return _set(sim_lab.buses[target].faults, kind, int(fault.amount), 0)
    if kind == "writes_refused":
        return _set(sim_lab.buses[target].faults, kind, True, False)
    if kind == "contact_stuck":
        number = table.contacts.index(target)
        plant.parts["relays"].stick(number)
        return lambda: _forget(plant.faults.stuck, number)
    if kind == "flow_drift":
        return _set(plant.parts[target], "drift", fault.amount, 1.0)
    if kind == "power_dip":
        plant.lose_power()
        undone = [_set(bus.faults, "cut", True, False) for bus in sim_lab.buses.values()]

        def power_back() -> None:
            for each in undone:
                each()

        return power_back
    if lab is None:
        return lambda: None
    if kind == "clock_jump":
        return _set(lab.clock, "jumped_s", fault.amount, 0.0)
    if kind == "disk_full":
        return _fill_disk(lab)
    raise ValueError(f"no such fault: {kind}")


def _set(owner: object, name: str, value: object, healthy: object) -> Undo:
    setattr(owner, name, value)
    return lambda: setattr(owner, name, healthy)


def _forget(table: dict[Any, Any], key: object) -> None:
    table.pop(key, None)


def _fill_disk(lab: Lab) -> Undo:
    journal: Any = lab.line.journal
    latch: Any = lab.guard.latch
    commit, write = journal.commit, latch.write

    def full_journal() -> None:
        raise JournalFailed("no space left on device")

    def full_latch(path: Path, text: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    journal.commit, latch.write = full_journal, full_latch

    def undo() -> None:
        journal.commit, latch.write = commit, write

    return undo
