"""The operations on the processes of a lab."""

from labharness.core.operations import JSON, LAB, LAB_FILE, RUNS, SPEED, flag, option, read, steer

OPERATIONS = (
    steer(
        "up",
        "start a lab's line owner and house, which outlive this terminal",
        LAB,
        SPEED,
        RUNS,
        where="house",
        group="first",
    ),
    steer(
        "down",
        "end the house, and the line owner as soon as its line is free",
        LAB,
        flag("--stop", "stop the run too; its line is made safe"),
        where="house",
        group="lab",
    ),
    read(
        "status",
        "show line owner, house and tasks of a lab",
        LAB,
        JSON,
        where="house",
        group="first",
    ),
    steer("house", "run the house in this process, as systemd does", LAB_FILE, RUNS, group="lab"),
    steer(
        "line-owner",
        "run the line owner in this process, as systemd does",
        LAB_FILE,
        option("--speed", "fast|real|N", "lab seconds per second (default fast)", value="speed"),
        group="lab",
    ),
)
