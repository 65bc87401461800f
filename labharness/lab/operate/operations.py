"""The operations on a line by hand, and how long its runs are kept."""

from functools import partial

from labharness.core.operations import (
    BEYOND,
    CALLEE,
    JSON,
    LAB,
    NAME,
    RUNS,
    SIGNED,
    WHY,
    flag,
    heading,
    option,
    read,
    row,
    steer,
    word,
)

INSTRUMENT = word("instrument", "INSTRUMENT")
CHANNELS = word("channels", "CHANNEL", many="+")
SEGMENTS = word("file", "FILE.toml")
FOR = option("--for", "SECONDS", "end after this time", value="seconds", stored="for_s")
CHECKED = flag("--clock-checked", "you have compared this computer's clock with another one")
BY = (NAME, WHY)
PROGRAM = (INSTRUMENT, LAB, *BY)

of_line = partial(row, where="line owner", group="line")
of_program = partial(steer, where="line owner")

OPERATIONS = (
    steer(
        "reset",
        "open the latch after a trip, when its cause is gone",
        *(*SIGNED, LAB),
        right="person",
        group="line",
        where="guard",
    ),
    of_line("read", "read channels now", *(LAB, JSON, CHANNELS), kind="read"),
    of_line(
        "set",
        "set one channel; the command is judged and read back",
        word("channel", "CHANNEL"),
        word("value", "VALUE", value="number"),
        word("unit", "UNIT", many="?", default=""),
        *(LAB, *BY, FOR),
        flag("--attend", "open the line, watch it, and leave it safe at the end"),
        option("--out", "DIR", "with --attend: folder of the journal"),
        option(
            "--speed",
            "fast|real|N",
            "lab seconds per second of a simulated lab",
            value="speed",
            default=1.0,
        ),
        kind="steer",
    ),
    of_line(
        "watch",
        "show the readings of a line, live; or what a task of a lab behind a broker tells",
        word(
            "names",
            "NAME",
            many="*",
            told="instruments, channels or patterns, such as furnace or '*.flow'; "
            "with --callee: a task",
        ),
        *(LAB, FOR, JSON, option("--callee", "ID", CALLEE), *BEYOND),
        kind="read",
    ),
    of_line("hold", "pause a run: it sends no further command", LAB, *BY, kind="steer"),
    of_line("resume", "resume a held run", LAB, *BY, kind="steer"),
    of_line("stop", "end the run, and make the line safe", LAB, *BY, kind="safe"),
    of_line("safe", "run the safe procedure now", LAB, *BY, kind="safe"),
    heading("program", "run a program of segments in an instrument", group="line"),
    read(
        "program check",
        "print a program and what the envelope refuses of it; nothing is sent",
        *(INSTRUMENT, SEGMENTS, LAB, *BY),
    ),
    of_program(
        "program upload",
        "store it in the instrument; each segment is judged and read back",
        *(INSTRUMENT, SEGMENTS, LAB, *BY),
    ),
    of_program("program start", "start the uploaded program, or resume a held one", *PROGRAM),
    of_program("program hold", "hold it at its present value; the heat stays on", *PROGRAM),
    of_program("program reset", "end it; the instrument returns to its own setpoint", *PROGRAM),
    heading(
        "retention", "list how long runs are kept, or remove those that are over", group="records"
    ),
    read("retention list", "print one line for each run", RUNS, LAB),
    steer(
        "retention apply",
        "remove and log the runs that are over",
        *(RUNS, LAB, *SIGNED, CHECKED),
        right="person",
    ),
)
