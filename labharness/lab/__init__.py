"""A lab: its files, the line they make, work by hand, and the doctor."""

from typing import TYPE_CHECKING

from labharness.core.on_demand import on_demand

if TYPE_CHECKING:
    from labharness.lab.config.address import BadLabFile as BadLabFile
    from labharness.lab.config.address import LabAddress as LabAddress
    from labharness.lab.config.address import default_lab_path as default_lab_path
    from labharness.lab.config.address import read_address as read_address
    from labharness.lab.config.lab_plan import LabPlan as LabPlan
    from labharness.lab.config.lab_plan import read_lab as read_lab
    from labharness.lab.wiring.lab import Lab as Lab

__getattr__ = on_demand(__name__, "config.address", "config.lab_plan", "wiring.lab")
