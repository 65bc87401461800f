"""The table of operations: what a person or a program may ask of a lab, one row each.

Here are the form of a row, the parameters that rows share, and the loader. The rows themselves
stand in ``operations.py`` of the room that carries the operation out. Faces are made of them: the
command line with its help and its page, and the rights of callers and operators.
"""

from functools import partial
from importlib import import_module
from typing import Final, Literal, NamedTuple

Kind = Literal["", "read", "propose", "ask", "steer", "safe"]
"""The effect: a look, a prediction, a new task, a change, a safe state; a heading has none.
An agent is offered all but ``steer``."""

Where = Literal["files", "house", "line owner", "guard"]
"""The process that is asked, or the files where none is."""

Many = Literal["", "?", "*", "+", "append"]
"""The number of its values: one; one or none; any; one or more; one each time it is given."""

GROUPS: Final = {
    "first": "to begin with",
    "tasks": "tasks, and who may have them",
    "line": "a line by hand",
    "safety": "alarms, hazards and limits",
    "records": "results and records",
    "spectra": "spectra",
    "lab": "a lab and its processes",
    "elsewhere": "labs behind a broker",
    "simulated": "simulated labs",
}
"""The groups of the first page of help, in its order."""

ROOMS: Final = (
    "protocols.hcp",
    "lab.wiring",
    "faces.report",
    "lab.doctor",
    "lab.config",
    "lab.house",
    "work.task",
    "lab.campaign",
    "lab.operate",
    "safety.guard",
    "journal",
    "faces.service",
    "faces.dialogue",
    "faces.mcp",
    "faces.cli",
)
"""The rooms with rows, in the order in which their rows are listed."""


class Argument(NamedTuple):
    """one argument of an operation.

    Attributes:
        name: Its name; that of an option begins with two dashes.
        shown: The word for its value in texts, such as ``FILE``; ``""`` of a flag.
        told: A text about it, without a capital and a full stop.
        value: The reader that makes its value of a word.
        allowed: The words that it may be; ``()`` for any.
        default: Its value where none is given.
        required: Whether an option must be given.
        many: The number of its values.
        stored: Its name in a program, where that is another one.
    """

    name: str
    shown: str = ""
    told: str = ""
    value: str = "text"
    allowed: tuple[str, ...] = ()
    default: object = None
    required: bool = False
    many: Many = ""
    stored: str = ""


class Operation(NamedTuple):
    """One operation, or a name that has others below it.

    Attributes:
        name: Its words.
        told: One sentence, without a capital and a full stop.
        parameters: In their order; at most one of those that stand together may be given.
        kind: Its effect.
        where: The process that is asked.
        right: The roles that may ask for it: an ``account`` that may read and write the files, a
            ``person`` who signs, or those of the control plane of tasks. It decides where the row
            has a `request`; alarms and approvals decide in their own rooms.
        group: On the first page of help.
        request: The command of the control plane of tasks that it gives.
    """

    name: str
    told: str
    parameters: tuple[Argument | tuple[Argument, ...], ...]
    kind: Kind
    where: Where
    right: tuple[str, ...]
    group: str
    request: str

    def each(self) -> list[Argument]:
        """Return every parameter, those that stand together one after the other."""
        rows = ((one,) if isinstance(one, Argument) else one for one in self.parameters)
        return [one for several in rows for one in several]


def row(
    name: str,
    told: str,
    *parameters: Argument | tuple[Argument, ...],
    kind: Kind = "",
    where: Where = "files",
    right: str = "account",
    group: str = "",
    request: str = "",
) -> Operation:
    """Return a row."""
    roles = tuple(right.split())
    return Operation(name, told, parameters, kind, where, roles, group, request)


heading = row
read = partial(row, kind="read")
ask = partial(row, kind="ask")
steer = partial(row, kind="steer")


word = option = Argument


def flag(name: str, told: str) -> Argument:
    """Return an option without a value."""
    return Argument(name, told=told, default=False)


def choice(name: str, allowed: tuple[str, ...], told: str, default: str | None) -> Argument:
    """Return an option with one of several words."""
    return Argument(name, "|".join(allowed), told, allowed=allowed, default=default)


def operations() -> dict[str, Operation]:
    """Return every row by its name; no room is loaded but for its rows."""
    modules = (import_module(f"labharness.{room}.operations") for room in ROOMS)
    return {one.name: one for module in modules for one in module.OPERATIONS}


NAME = option("--name", "NAME", "your name (default: this account)", value="words")
TASK = word("task", "TASK.json")
FOLDER = word("folder", "DIR")
LAB_FILE = word("lab", "LAB.toml")
REQUEST = word("id", "ID")
LAB = option("--lab", "FILE", "lab file (default: the simulated lab)")
SPEED = option(
    "--speed",
    "fast|real|N",
    "lab seconds per second (default: fast for a simulated lab, else real)",
    value="speed",
)
RUNS = option("--runs", "DIR", "folder of the runs (default runs)", default="runs")
DATE = option("--date", "YYYY-MM-DD", "day of the measurement (default today)", value="day")
JSON = flag("--json", "print JSON")
SIGNED = (
    option("--name", "NAME", "name of the person who decides", value="words", required=True),
    option("--reason", "TEXT", "why; it is recorded", value="words", required=True),
)
WHY = option("--reason", "TEXT", "why; it is recorded", default="")
BROKER = (
    option(
        "--broker",
        "URL|FILE",
        "amqp(s)://account@host/vhost, or a file with an address that has a password "
        "(default: the variable LABHARNESS_BROKER)",
    ),
    option("--ca", "FILE", "certificates of the broker's authority, for amqps"),
    option("--cert", "FILE", "our certificate with its key, for amqps"),
)
CALLEE = "id of a lab behind a broker"
BEYOND = (
    *BROKER,
    option("--file", "FILE", "with --callee: the tasks of your account (default: one a broker)"),
    option(
        "--within",
        "SECONDS",
        "with --callee: longest wait for an answer (default 60)",
        value="seconds",
    ),
)
