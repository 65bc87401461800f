"""A simulated wire that is cut and mended."""

from labharness.lab import Lab


def cut(lab: Lab, port: str, *, off: bool = True) -> None:
    assert lab.simulated is not None
    lab.simulated.buses[port].faults.cut = off
