"""The operations on the guard process."""

from labharness.core.operations import LAB_FILE, flag, steer

OPERATIONS = (
    steer(
        "guard",
        "run the guard process, which owns a lab's ports and latch",
        LAB_FILE,
        flag("--once", "end after one run"),
        where="guard",
        group="safety",
    ),
)
