"""A simulated wire that is cut and mended."""

from labharness.faces.testing.faults import simulated_of
from labharness.lab import Lab


def cut(lab: Lab, port: str, *, off: bool = True) -> None:
    simulated_of(lab).buses[port].faults.cut = off
