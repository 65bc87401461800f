"""The arguments that several commands share."""

from typing import Any, Final

from labharness.core.languages import ENGLISH, LANGUAGES
from labharness.faces.cli.parser import Argument
from labharness.faces.cli.values import day, lasting, one_of, positive, speed, words


def word(name: str, metavar: str, **settings: Any) -> Argument:  # noqa: ANN401 - argparse's
    """Return an argument without a name of its own on the line."""
    return Argument(name, {"metavar": metavar, **settings})


def option(
    name: str,
    metavar: str,
    told: str,
    **settings: Any,  # noqa: ANN401 - argparse's
) -> Argument:
    """Return an option with a value."""
    return Argument(name, {"metavar": metavar, "help": told, **settings})


def flag(name: str, told: str) -> Argument:
    """Return an option without a value."""
    return Argument(name, {"action": "store_true", "help": told})


def choice(name: str, allowed: tuple[str, ...], told: str, default: str | None) -> Argument:
    """Return an option with one of several values."""
    return option(name, "|".join(allowed), told, type=one_of(allowed), default=default)


TASK = word("task", "TASK.json")
FOLDER = word("folder", "DIR")
LAB_FILE = word("lab", "LAB.toml")
REQUEST = word("id", "ID")
STEP = word("step", "STEP", help="the step that the task waits for, as tasks show names it")
INSTRUMENT = word("instrument", "INSTRUMENT")
SEGMENTS = word("file", "FILE.toml")
LAB = option("--lab", "FILE", "lab file (default: the simulated lab)")
SPEED = option(
    "--speed",
    "fast|real|N",
    "lab seconds per second (default: fast for a simulated lab, else real)",
    type=speed,
)
RUNS = option("--runs", "DIR", "folder of the runs (default runs)", default="runs")
LASER = option("--laser-nm", "NM", "laser wavelength, if no file states it", type=positive)
DATE = option("--date", "YYYY-MM-DD", "day of the measurement (default today)", type=day)
FOR = option("--for", "SECONDS", "end after this time", type=lasting(1.0), dest="for_s")
JSON = flag("--json", "print JSON")
SIGNED = (
    option("--name", "NAME", "name of the person who decides", type=words, required=True),
    option("--reason", "TEXT", "why; it is recorded", type=words, required=True),
)
CHECKED = flag("--clock-checked", "you have compared this computer's clock with another one")
BY = (
    option("--name", "NAME", "your name (default: this account)", type=words),
    option("--reason", "TEXT", "why; it is recorded", default=""),
)
WHY = option("--reason", "TEXT", "why; it is recorded", default="")
NEEDED = option("--reason", "TEXT", "why; it is recorded", type=words, required=True)
KIND = word("kind", "KIND", help="such as blocked_by, child, source_task, evidence")
OTHER = word("target", "OTHER")
BROKER_OF = (
    LAB,
    option("--account", "NAME", "account of the lab itself (default: the id of the lab)"),
    flag("--callers-passive", "callers may not declare the exchanges, and so not delete them"),
    flag("--quorum", "quorum queues also where the broker is not a cluster"),
    option(
        "--management",
        "URL",
        "http(s)://administrator@host:port (default: the variable LABHARNESS_MANAGEMENT)",
    ),
    option("--ca", "FILE", "certificates of the broker's authority, for https"),
)
ROLES = ("operator", "maintainer")
ROLE = choice("--role", ROLES, "your role (default operator)", "operator")
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
        type=lasting(1.0),
    ),
)
"""The options of a command about a lab behind a broker."""
EVERY: Final = (
    choice("--lang", LANGUAGES, "language of messages and pages (default en)", ENGLISH),
)
"""The options of every command."""
ALARM = (word("alarm", "ALARM"), *SIGNED, ROLE, LAB)
