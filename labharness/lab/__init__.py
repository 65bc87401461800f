"""A lab: its files, the line they make, work by hand, and the doctor."""

from typing import TYPE_CHECKING

from labharness.core.on_demand import on_demand

if TYPE_CHECKING:
    from labharness.lab.config.address import (
        BadLabFile,
        LabAddress,
        default_lab_path,
        read_address,
    )
    from labharness.lab.config.lab_plan import LabPlan, read_lab
    from labharness.lab.wiring.lab import Lab

__all__ = [
    "BadLabFile",
    "Lab",
    "LabAddress",
    "LabPlan",
    "default_lab_path",
    "read_address",
    "read_lab",
]

__getattr__ = on_demand(__name__, "config.address", "config.lab_plan", "wiring.lab")
