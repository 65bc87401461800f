"""Every command of the command line, with its arguments: one table."""

from typing import Any, Final

from labharness.core.languages import ENGLISH, LANGUAGES
from labharness.faces.cli.parser import Argument, Usage, Version
from labharness.faces.cli.values import (
    day,
    number,
    one_of,
    positive,
    rate,
    seed,
    speed,
    times,
    window,
    words,
    workers,
)

__all__ = ["COMMANDS", "EVERY"]


def _word(name: str, metavar: str, **settings: Any) -> Argument:  # noqa: ANN401 - argparse's
    return Argument(name, {"metavar": metavar, **settings})


def _option(
    name: str,
    metavar: str,
    told: str,
    **settings: Any,  # noqa: ANN401 - argparse's
) -> Argument:
    return Argument(name, {"metavar": metavar, "help": told, **settings})


def _flag(name: str, told: str) -> Argument:
    return Argument(name, {"action": "store_true", "help": told})


def _choice(name: str, allowed: tuple[str, ...], told: str, default: str | None) -> Argument:
    return _option(name, "|".join(allowed), told, type=one_of(allowed), default=default)


TASK = _word("task", "TASK.json")
FOLDER = _word("folder", "DIR")
LAB_FILE = _word("lab", "LAB.toml")
REQUEST = _word("id", "ID")
INSTRUMENT = _word("instrument", "INSTRUMENT")
SEGMENTS = _word("file", "FILE.toml")
LAB = _option("--lab", "FILE", "lab file (default: the simulated lab)")
SPEED = _option(
    "--speed",
    "fast|real|N",
    "lab seconds per second (default: fast for a simulated lab, else real)",
    type=speed,
)
RUNS = _option("--runs", "DIR", "folder of the runs (default runs)", default="runs")
LASER = _option("--laser-nm", "NM", "laser wavelength, if no file states it", type=positive)
DATE = _option("--date", "YYYY-MM-DD", "day of the measurement (default today)", type=day)
FOR = _option("--for", "SECONDS", "end after this time", type=positive, dest="for_s")
JSON = _flag("--json", "print JSON")
SIGNED = (
    _option("--name", "NAME", "name of the person who decides", type=words, required=True),
    _option("--reason", "TEXT", "why; it is recorded", type=words, required=True),
)
BY = (
    _option("--name", "NAME", "your name (default: this account)", type=words),
    _option("--reason", "TEXT", "why; it is recorded", default=""),
)
WHY = _option("--reason", "TEXT", "why; it is recorded", default="")
NEEDED = _option("--reason", "TEXT", "why; it is recorded", type=words, required=True)
KIND = _word("kind", "KIND", help="such as blocked_by, child, source_task, evidence")
OTHER = _word("target", "OTHER")
BROKER_OF = (
    LAB,
    _option("--account", "NAME", "account of the lab itself (default: the id of the lab)"),
    _flag("--callers-declare", "callers may declare the exchanges too, and so delete them"),
    _option(
        "--management",
        "URL",
        "http(s)://administrator@host:port (default: the variable LABHARNESS_MANAGEMENT)",
    ),
    _option("--ca", "FILE", "certificates of the broker's authority, for https"),
)
ROLES = ("operator", "maintainer")
ROLE = _choice("--role", ROLES, "your role (default operator)", "operator")
EVERY: Final = (
    _choice("--lang", LANGUAGES, "language of messages and pages (default en)", ENGLISH),
)
"""The options of every command."""
ALARM = (_word("alarm", "ALARM"), *SIGNED, ROLE, LAB)

COMMANDS: Final = {
    "": Usage(
        "run laboratory instruments behind a safety envelope",
        Argument("--version", {"action": Version, "nargs": 0, "help": "print the version"}),
    ),
    "run": Usage(
        "run one task, from an HCP task_submit message to its answer",
        TASK,
        LAB,
        _option(
            "--out", "DIR", "folder of answer, journal, report (default runs/<time>-<session>)"
        ),
        _option(
            "--speed",
            "fast|real|N",
            "lab seconds per second; fast runs a simulated lab without waiting",
            type=speed,
        ),
        _option("--seed", "SEED", "seed of a simulated run (default 1)", type=seed),
        _option("--resume", "DIR", "go on from the newest checkpoint of the run in DIR"),
        _flag("--json", "print the answer as one HCP message, and nothing else"),
        _choice(
            "--log-level",
            ("debug", "info", "warning", "error"),
            "detail of DIR/run.log; debug has each exchange with an instrument (default warning)",
            "warning",
        ),
        _option(
            "--approval-timeout",
            "SECONDS",
            "how long to wait for an approval (default a day; no wait at --speed fast)",
            type=positive,
        ),
    ),
    "up": Usage(
        "start a lab's line owner and house, which outlive this terminal",
        LAB,
        SPEED,
        RUNS,
    ),
    "down": Usage(
        "end the house, and the line owner as soon as its line is free",
        LAB,
        _flag("--stop", "stop the run too; its line is made safe"),
    ),
    "serve": Usage(
        "be the house of a lab for callers over RabbitMQ; starts its line owner if need be",
        LAB,
        _option(
            "--broker",
            "URL",
            "amqp(s)://account:password@host/vhost (default: the variable LABHARNESS_BROKER)",
        ),
        _option("--ca", "FILE", "certificates of the broker's authority, for amqps"),
        _option("--cert", "FILE", "our certificate, for amqps"),
        _option("--key", "FILE", "its key"),
        SPEED,
        RUNS,
    ),
    "broker": Usage("write or check what a lab needs on RabbitMQ"),
    "broker setup": Usage(
        "write accounts, rights and policies; print what is still different",
        *BROKER_OF,
        _option("--passwords", "FILE", "TOML file with passwords (default: new ones are asked)"),
        _flag("--print", "print the lines of rabbitmqctl that do it, and do nothing"),
    ),
    "broker check": Usage("print each difference from that", *BROKER_OF),
    "status": Usage("show line owner, house and tasks of a lab", LAB, JSON),
    "house": Usage("run the house in this process, as systemd does", LAB_FILE, RUNS),
    "line-owner": Usage(
        "run the line owner in this process, as systemd does",
        LAB_FILE,
        _option("--speed", "fast|real|N", "lab seconds per second (default fast)", type=speed),
    ),
    "submit": Usage(
        "give a task to the house of a lab, which queues it",
        TASK,
        LAB,
        _option("--after", "ID", "begin only when this task is completed", action="append"),
        _option("--key", "KEY", "idempotency key; the same key is one task (default: a new one)"),
        _option("--seed", "SEED", "seed of a simulated run (default 1)", type=seed),
        _flag("--wait", "stay until its end, and print its answer"),
        JSON,
    ),
    "tasks": Usage("list, show and steer the tasks of a lab"),
    "tasks list": Usage("print one line for each, or one snapshot as JSON", LAB, JSON),
    "tasks show": Usage("print one task with its attempts", REQUEST, LAB, JSON),
    "tasks graph": Usage("print the relationships of the tasks", LAB, JSON),
    "tasks events": Usage("print what happened to the tasks, as JSON Lines", LAB),
    "tasks result": Usage("print the answer of a task", REQUEST, LAB, JSON),
    "tasks pause": Usage("pause a task; one at work holds its line", REQUEST, LAB, WHY),
    "tasks resume": Usage("resume a paused task", REQUEST, LAB, WHY),
    "tasks cancel": Usage(
        "cancel a task and all below it; its line is made safe", REQUEST, LAB, WHY
    ),
    "tasks retry": Usage(
        "try a failed task once more",
        REQUEST,
        LAB,
        NEEDED,
        _flag("--resume", "go on from its last checkpoint, with the same sample"),
    ),
    "tasks archive": Usage("put an ended task aside; its record stays", REQUEST, LAB, WHY),
    "tasks link": Usage("relate a task to another", REQUEST, KIND, OTHER, LAB),
    "tasks unlink": Usage("end that; the record stays", REQUEST, KIND, OTHER, LAB),
    "jobs": Usage("make and show batches and schedules of tasks"),
    "jobs create": Usage(
        "have the house make a task for each value, or one whenever it is due",
        TASK,
        LAB,
        [
            _option("--vary", "PATH=V1,V2", "values of a place in the payload", action="append"),
            _option("--every", "WHEN", "monday@07:00, day@07:00 (UTC), or a period such as PT6H"),
        ],
        _option("--title", "TEXT", "name of the job (default: the capability)", type=words),
        _option("--key", "KEY", "idempotency key; the same key is one job (default: none)"),
        _option("--seed", "SEED", "seed of simulated runs (default 1)", type=seed),
        JSON,
    ),
    "jobs list": Usage("print one line for each", LAB, JSON),
    "jobs show": Usage("print one job with its tasks and missed runs", REQUEST, LAB, JSON),
    "jobs end": Usage("end a job; its tasks go on", REQUEST, LAB, WHY, JSON),
    "campaign": Usage("carry out one series of tasks over several labs"),
    "campaign run": Usage(
        "begin a campaign, or go on with it, to its end",
        _word("file", "CAMPAIGN.toml"),
        _option("--seed", "SEED", "seed of simulated runs (default 1)", type=seed),
        JSON,
    ),
    "campaign status": Usage(
        "show what is known of each point", _word("file", "CAMPAIGN.toml"), JSON
    ),
    "plan": Usage(
        "predict one task on the simulated plant; nothing is submitted",
        TASK,
        LAB,
        _flag("--dry-run", "changes nothing: a plan is always a dry run"),
        _flag("--json", "print the prediction as JSON"),
    ),
    "policy": Usage("check the callers file, or explain a decision of admission"),
    "policy check": Usage("print the rights of each caller, and those without effect", LAB),
    "policy explain": Usage(
        "print what each gate finds of one task; nothing is submitted",
        TASK,
        LAB,
        _option("--caller", "ID", "as this caller (default: the task's)"),
        JSON,
    ),
    "example": Usage("print a task to begin with: labharness example > task.json"),
    "drivers": Usage("list the instrument kinds that are installed"),
    "capabilities": Usage("list or show the capabilities of a lab"),
    "capabilities list": Usage("print one line for each"),
    "capabilities show": Usage("print one declaration", _word("name", "NAME")),
    "lab": Usage("check a lab file and its wires"),
    "lab check": Usage(
        "check the files; compute wire times and the age of readings",
        LAB,
        _flag("--connect", "ask every instrument who it is, and compare with the lab file"),
    ),
    "envelope": Usage("check or show the safety envelope of a lab"),
    "envelope check": Usage("print every contradiction", LAB),
    "envelope show": Usage("print every rule", LAB),
    "doctor": Usage(
        "list what prevents a run, each with its remedy",
        LAB,
        _flag("--json", "print a JSON array"),
    ),
    "reset": Usage("open the latch after a trip, when its cause is gone", *SIGNED, LAB),
    "arm": Usage("write the file from which the guard process arms itself", LAB_FILE),
    "guard": Usage(
        "run the guard process, which owns a lab's ports and latch",
        LAB_FILE,
        _flag("--once", "end after one run"),
    ),
    "approvals": Usage("list, approve or reject requests that wait for a person"),
    "approvals list": Usage("print one line for each", LAB),
    "approvals show": Usage(
        "print one request with its plan, prediction and hazards", REQUEST, LAB
    ),
    "approvals approve": Usage("approve exactly this plan", REQUEST, LAB, *SIGNED),
    "approvals reject": Usage("reject this plan", REQUEST, LAB, *SIGNED),
    "read": Usage("read channels now", LAB, JSON, _word("channels", "CHANNEL", nargs="+")),
    "set": Usage(
        "set one channel; the command is judged and read back",
        _word("channel", "CHANNEL"),
        _word("value", "VALUE", type=number),
        _word("unit", "UNIT", nargs="?", default=""),
        LAB,
        *BY,
        FOR,
        _flag("--attend", "open the line, watch it, and leave it safe at the end"),
        _option("--out", "DIR", "with --attend: folder of the journal"),
        _option(
            "--speed",
            "fast|real|N",
            "lab seconds per second of a simulated lab",
            type=speed,
            default=1.0,
        ),
    ),
    "watch": Usage(
        "show the readings of a line, live",
        _word(
            "names",
            "NAME",
            nargs="*",
            help="instruments, channels or patterns, such as furnace or '*.flow'",
        ),
        LAB,
        FOR,
        JSON,
    ),
    "hold": Usage("pause a run: it sends no further command", LAB, *BY),
    "resume": Usage("resume a held run", LAB, *BY),
    "stop": Usage("end the run, and make the line safe", LAB, *BY),
    "safe": Usage("run the safe procedure now", LAB, *BY),
    "program": Usage("run a program of segments in an instrument"),
    "program check": Usage(
        "print a program and what the envelope refuses of it; nothing is sent",
        *(INSTRUMENT, SEGMENTS, LAB, *BY),
    ),
    "program upload": Usage(
        "store it in the instrument; each segment is judged and read back",
        *(INSTRUMENT, SEGMENTS, LAB, *BY),
    ),
    "program start": Usage(
        "start the uploaded program, or resume a held one", INSTRUMENT, LAB, *BY
    ),
    "program hold": Usage("hold it at its present value; the heat stays on", INSTRUMENT, LAB, *BY),
    "program reset": Usage(
        "end it; the instrument returns to its own setpoint", INSTRUMENT, LAB, *BY
    ),
    "alarms": Usage("list, acknowledge or shelve alarms"),
    "alarms list": Usage("print the alarms that are active, unacknowledged or silenced", LAB),
    "alarms test": Usage("send a test message on every alert channel", LAB),
    "alarms ack": Usage(
        "acknowledge one alarm, or all", _word("alarm", "ALARM|all"), *SIGNED, ROLE, LAB
    ),
    "alarms shelve": Usage(
        "silence an alarm for a while",
        *ALARM,
        [
            _option("--minutes", "MIN", "for how long (default 480)", type=positive),
            _flag("--once", "until its cause is gone"),
        ],
    ),
    "alarms unshelve": Usage("end that", *ALARM),
    "alarms suppress": Usage("silence an alarm by design (maintainer)", *ALARM),
    "alarms unsuppress": Usage("end that (maintainer)", *ALARM),
    "alarms remove": Usage("take an alarm out of service (maintainer)", *ALARM),
    "alarms place": Usage("put it back into service (maintainer)", *ALARM),
    "hazards": Usage("list hardware safeguards, or record a proof test"),
    "hazards list": Usage("print the hazards and their hardware safeguards", LAB),
    "hazards proof": Usage(
        "record a proof test of a safeguard",
        _word("hazard", "HAZARD"),
        DATE,
        _option("--name", "NAME", "name of the person who tested it", type=words, required=True),
        _option("--reason", "TEXT", "how it was tested; the result", type=words, required=True),
        _flag("--failed", "the safeguard did not pass"),
        LAB,
    ),
    "simulate": Usage(
        "serve a simulated lab on real ports",
        LAB_FILE,
        _option("--speed", "N", "lab seconds per second (default 1)", type=times, default=1.0),
        _option("--seed", "SEED", "seed of plant and noise (default 1)", type=seed, default=1),
        _option("--folder", "DIR", "where the served ports stand"),
        _option("--write-lab", "OUT.toml", "lab file of the served ports (default DIR/lab.toml)"),
        _option(
            "--tcp",
            "PORT=NUMBER",
            "serve a port of the lab at this TCP port (default: a free one); may be repeated",
            action="append",
        ),
    ),
    "simulated": Usage(
        "read the true state of a served lab, or inject a fault",
        _word("folder", "DIR", help="the folder where the lab is served"),
        _word(
            "asked",
            "WHAT",
            help="status, truth, faults, fault NAME=VALUE, bus PORT NAME=VALUE, "
            "operate ACTION NAME=VALUE, bytes since=ROW, quit",
        ),
        _word("details", "NAME=VALUE", nargs="*", default=[]),
    ),
    "journal": Usage("verify, show or export a run's journal"),
    "journal verify": Usage(
        "check the hash chain, and name the first bad record",
        FOLDER,
        _option("--heads", "DIR", "folder of signed heads (default: as the run says, or yours)"),
        _option("--key", "HEX", "public key of the lab, as another check said it"),
    ),
    "journal show": Usage("print the records as text", FOLDER),
    "journal export": Usage(
        "print the records as JSON Lines, or write what was measured as Parquet",
        FOLDER,
        _option("--parquet", "FILE", "write the measured values to this file instead"),
    ),
    "artifact": Usage(
        "find the file of an artifact's URI",
        _word("uri", "URI"),
        RUNS,
        _flag("--cat", "print the file instead of its path"),
    ),
    "report": Usage(
        "write the report of a run as one HTML page",
        FOLDER,
        _option("--out", "FILE", "where to write it (default DIR/report.html)"),
    ),
    "history": Usage("list the runs of a folder", RUNS),
    "compare": Usage(
        "list the differences between two runs",
        _word("one", "DIR"),
        _word("other", "DIR"),
        _option("--out", "FILE", "also draw both runs on one HTML page"),
    ),
    "analyse": Usage(
        "analyse spectra: lines, materials, layers of MoS2",
        _word("files", "FILE", nargs="+"),
        _flag("--json", "print a JSON array"),
        _flag("--peaks", "print the lines of each spectrum"),
        _option("--table", "OUT", "write the lines of all FILEs to one .csv or .parquet file"),
        _option("--report", "OUT.html", "write one HTML page about all FILEs"),
        _flag("--plot", "draw FILE.svg beside each FILE"),
        _option("--save", "OUT", "write the spectra of one FILE as .csv, .nxs or .h5"),
        _flag("--overwrite", "also write over files that analyse did not write"),
        LASER,
        _choice(
            "--film",
            ("unknown", "cvd", "exfoliated"),
            "how the film was made (default unknown)",
            "unknown",
        ),
        _option(
            "--a1g-si",
            "RATIO",
            "height ratio A1g/silicon of one layer on this microscope",
            type=positive,
        ),
        _option("--material", "NAME", "measure the lines of this material"),
        _option(
            "--window",
            "LOW-HIGH",
            "fit the lines within this window, in cm⁻¹; may be repeated",
            type=window,
            action="append",
            default=[],
        ),
        _choice(
            "--baseline",
            ("straight", "arpls"),
            "fit a straight baseline with the lines, or subtract a smooth one first",
            "straight",
        ),
        _option("--pl", "FILE", "photoluminescence spectrum of the same film"),
    ),
    "calibrate": Usage(
        "calibrate a microscope by spectra of a known monolayer",
        _word("files", "FILE", nargs="+"),
        _option("--on", "SAMPLE", "the sample and its oxide, as text", required=True),
        DATE,
        LASER,
        _option("--write", "LAB.toml", "write the result into this lab file"),
    ),
    "chaos": Usage(
        "search for combinations of faults that cause harm, on a simulated line",
        _option(
            "--hours", "H", "lab time to search (default 10 hours)", type=positive, default=10.0
        ),
        _option("--seed", "SEED", "seed of the search (default 1)", type=seed, default=1),
        _option(
            "--faults", "RATE", "factor on the rates of faults (default 1)", type=rate, default=1.0
        ),
        _option("--line", "FILE", "lab file (default: the simulated lab)"),
        _option("--state", "FILE", "file of the search's progress (default chaos-SEED.json)"),
        _option("--workers", "N", "processes (default 2)", type=workers),
        _option("--replay", "FILE|SEED/N", "play one scenario and print what happens"),
        _flag("--shrink", "with --replay: find the fewest faults that still cause harm"),
    ),
}
"""Each command by its words; one that has others below it has no arguments but ``""``'s."""
