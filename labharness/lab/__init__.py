"""The composition root: what a lab's files say, and the lab they make."""

from labharness.lab.config import LabPlan, default_lab_path, read_lab
from labharness.lab.files import BadLabFile
from labharness.lab.lab import Lab

__all__ = ["BadLabFile", "Lab", "LabPlan", "default_lab_path", "read_lab"]
