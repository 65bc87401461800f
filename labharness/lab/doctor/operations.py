"""The operations on what a lab lacks."""

from labharness.core.operations import LAB, flag, read

OPERATIONS = (
    read(
        "doctor",
        "list what prevents a run, each with its remedy",
        LAB,
        flag("--json", "print a JSON array"),
        group="first",
    ),
)
