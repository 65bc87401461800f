"""The exhaust lost over a hot tube: the plant heated."""

from labharness.faces.testing.faults import simulated_of
from labharness.lab import Lab
from rig import part


def heat(lab: Lab, *, furnace_c: float = 25.0, sulfur_c: float = 25.0) -> None:
    """Leave a tube hot, its heaters off: swept as the end of a run has left it."""
    plant = simulated_of(lab).plant
    for name, nodes, celsius in (
        ("furnace", ("heater_k", "tube_k"), furnace_c),
        ("sulfur", ("boat_k",), sulfur_c),
    ):
        for node in (*nodes, "_thermocouple_k"):
            setattr(part(plant, name), node, celsius + 273.15)
