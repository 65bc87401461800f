"""A lab: its files, the line they make, work by hand, and the doctor."""

from labharness.lab.config.lab_file import BadLabFile
from labharness.lab.config.lab_plan import LabPlan, default_lab_path, read_lab
from labharness.lab.wiring.lab import Lab

__all__ = ["BadLabFile", "Lab", "LabPlan", "default_lab_path", "read_lab"]
