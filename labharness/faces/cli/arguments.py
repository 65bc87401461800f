"""The arguments of every command, and the errors that show in an argument alone."""

import argparse
from functools import cache

from labharness.core.vocabulary.texts import ENGLISH, LANGUAGES
from labharness.faces.cli import BY_HAND
from labharness.faces.cli.parser import Parser, Version
from labharness.faces.cli.values import (
    day,
    number,
    positive,
    rate,
    seed,
    speed,
    times,
    window,
    words,
    workers,
)

__all__ = ["make_parser"]


@cache  # sixty parsers take 20 ms to make; tests call many commands in one process
def make_parser() -> Parser:
    """Make the parser of the whole command line."""
    parser = Parser(
        prog="labharness",
        description="Run laboratory instruments behind a safety envelope.",
        epilog="Exit codes: 0 completed, 1 failed or findings, 2 rejected, 3 aborted, 64 usage. "
        "docs/reference/command-line.md says more of each command.",
    )
    parser.add_argument("--version", action=Version, nargs=0, help="tell which version this is")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    run = commands.add_parser(
        "run", help="run one task, from an HCP task_submit message to its answer"
    )
    run.add_argument("task", metavar="TASK.json")
    _add_lab(run)
    _add_language(run)
    run.add_argument(
        "--out",
        metavar="DIR",
        help="write answer, journal and report there (default runs/<time>-<session>)",
    )
    run.add_argument(
        "--speed",
        type=speed,
        default=None,
        metavar="fast|real|N",
        help="lab seconds per second; fast runs a simulated lab without waiting",
    )
    run.add_argument("--seed", type=seed, help="seed of a simulated run (default 1)")
    run.add_argument(
        "--json", action="store_true", help="print the answer as one HCP message, and nothing else"
    )
    run.add_argument(
        "--approval-timeout",
        type=positive,
        metavar="SECONDS",
        help="how long to wait for an approval (default a day; no wait at --speed fast)",
    )

    plan = commands.add_parser(
        "plan", help="predict one task on the simulated plant; nothing is submitted"
    )
    plan.add_argument("task", metavar="TASK.json")
    _add_lab(plan)
    plan.add_argument(
        "--dry-run", action="store_true", help="changes nothing: a plan is always a dry run"
    )
    plan.add_argument("--json", action="store_true", help="print the prediction as JSON")

    commands.add_parser(
        "example", help="print a task to begin with: labharness example > task.json"
    )

    commands.add_parser("drivers", help="list the instrument kinds that are installed")

    offered = commands.add_parser("capabilities", help="list or show the capabilities of a lab")
    verbs = offered.add_subparsers(dest="verb", required=True, metavar="list|show")
    verbs.add_parser("list", help="print one line for each")
    verbs.add_parser("show", help="print one declaration").add_argument("name")

    lab = commands.add_parser("lab", help="check a lab file and its wires")
    check = lab.add_subparsers(dest="verb", required=True, metavar="check").add_parser(
        "check", help="check the files; compute wire times and the age of readings"
    )
    _add_lab(check)
    check.add_argument(
        "--connect",
        action="store_true",
        help="ask every instrument who it is, and compare with the lab file",
    )

    envelope = commands.add_parser("envelope", help="check or show the safety envelope of a lab")
    verbs = envelope.add_subparsers(dest="verb", required=True, metavar="check|show")
    for name, text in (("check", "print every contradiction"), ("show", "print every rule")):
        _add_lab(verbs.add_parser(name, help=text))

    doctor = commands.add_parser("doctor", help="list what prevents a run, each with its remedy")
    _add_lab(doctor)
    doctor.add_argument("--json", action="store_true", help="print one JSON array")

    reset = commands.add_parser("reset", help="open the latch after a trip, when its cause is gone")
    reset.add_argument("--name", type=words, required=True, help="name of the person who resets it")
    reset.add_argument(
        "--reason", type=words, required=True, help="why it may be reset; it is recorded"
    )
    _add_lab(reset)

    commands.add_parser(
        "arm", help="write the file from which the guard process arms itself"
    ).add_argument("lab", metavar="LAB.toml")
    guard = commands.add_parser(
        "guard", help="run the guard process, which owns a lab's ports and latch"
    )
    guard.add_argument("lab", metavar="LAB.toml")
    guard.add_argument("--once", action="store_true", help="end after one run")
    approvals = commands.add_parser(
        "approvals", help="list, approve or reject requests that wait for a person"
    )
    verbs = approvals.add_subparsers(dest="verb", required=True, metavar="list|show|approve|reject")
    _add_lab(verbs.add_parser("list", help="print one line for each"))
    for name, text in (
        ("show", "print one request with its plan, prediction and hazards"),
        ("approve", "approve exactly this plan"),
        ("reject", "reject this plan"),
    ):
        verb = verbs.add_parser(name, help=text)
        verb.add_argument("id", metavar="ID")
        _add_lab(verb)
        if name != "show":
            verb.add_argument(
                "--name", type=words, required=True, help="name of the person who decides"
            )
            verb.add_argument("--reason", type=words, required=True, help="why")

    _add_by_hand(commands)
    _add_program(commands.add_parser("program", help="run a program of segments in an instrument"))
    _add_alarms(commands.add_parser("alarms", help="list, acknowledge or shelve alarms"))
    _add_hazards(
        commands.add_parser("hazards", help="list hardware safeguards, or record a proof test")
    )
    simulate = commands.add_parser("simulate", help="serve a simulated lab on real ports")
    simulate.add_argument("lab", metavar="LAB.toml")
    simulate.add_argument(
        "--speed", type=times, default=1.0, metavar="N", help="lab seconds per second (default 1)"
    )
    simulate.add_argument(
        "--seed", type=seed, default=1, help="seed of plant and noise (default 1)"
    )
    simulate.add_argument("--folder", metavar="DIR", help="where the served ports stand")
    simulate.add_argument(
        "--write-lab",
        metavar="OUT.toml",
        help="write the lab file that leads to the served ports (default DIR/lab.toml)",
    )
    simulate.add_argument(
        "--tcp",
        action="append",
        metavar="PORT=NUMBER",
        help="serve a port of the lab at this TCP port (default: a free one); may be repeated",
    )

    simulated = commands.add_parser(
        "simulated", help="read the true state of a served lab, or inject a fault"
    )
    simulated.add_argument("folder", metavar="DIR", help="the folder where the lab is served")
    simulated.add_argument(
        "asked",
        metavar="WHAT",
        help="status, truth, faults, fault NAME=VALUE, bus PORT NAME=VALUE, operate ACTION "
        "NAME=VALUE, bytes since=ROW, quit",
    )
    simulated.add_argument("details", nargs="*", default=[], metavar="NAME=VALUE")

    journal = commands.add_parser("journal", help="verify, show or export a run's journal")
    verbs = journal.add_subparsers(dest="verb", required=True, metavar="verify|show|export")
    for name, text in (
        ("verify", "check the hash chain, and name the first bad record"),
        ("show", "print the records as text"),
        ("export", "print the records as JSON Lines"),
    ):
        verb = verbs.add_parser(name, help=text)
        verb.add_argument("folder", metavar="DIR")
        if name == "show":
            _add_language(verb)

    artifact = commands.add_parser("artifact", help="find the file of an artifact's URI")
    artifact.add_argument("uri", metavar="URI")
    artifact.add_argument(
        "--runs", default="runs", metavar="DIR", help="folder of the runs (default runs)"
    )
    artifact.add_argument("--cat", action="store_true", help="print the file instead of its path")

    report = commands.add_parser("report", help="write the report of a run as one HTML page")
    report.add_argument("folder", metavar="DIR")
    _add_language(report, "language shown first (default en)")
    report.set_defaults(lang=ENGLISH)
    report.add_argument("--out", metavar="FILE", help="where to write it (default DIR/report.html)")

    history = commands.add_parser("history", help="list the runs of a folder")
    history.add_argument(
        "--runs", default="runs", metavar="DIR", help="folder of the runs (default runs)"
    )

    compare = commands.add_parser("compare", help="list the differences between two runs")
    compare.add_argument("one", metavar="DIR")
    compare.add_argument("other", metavar="DIR")
    compare.add_argument("--out", metavar="FILE", help="also draw both runs on one HTML page")
    _add_language(compare, "language shown first on the page (default en)")

    analyse = commands.add_parser(
        "analyse", help="analyse spectra: lines, materials, layers of MoS2"
    )
    analyse.add_argument("files", nargs="+", metavar="FILE")
    analyse.add_argument("--json", action="store_true", help="print one JSON array")
    analyse.add_argument("--peaks", action="store_true", help="print the lines of each spectrum")
    analyse.add_argument(
        "--table", metavar="OUT", help="write the lines of all FILEs into one .csv or .parquet file"
    )
    analyse.add_argument("--report", metavar="OUT.html", help="write one HTML page about all FILEs")
    analyse.add_argument("--plot", action="store_true", help="draw FILE.svg beside each FILE")
    analyse.add_argument(
        "--save", metavar="OUT", help="write the spectra of one FILE as .csv, .nxs or .h5"
    )
    analyse.add_argument(
        "--overwrite", action="store_true", help="also write over files that analyse did not write"
    )
    analyse.add_argument(
        "--laser-nm",
        type=positive,
        metavar="NM",
        help="laser wavelength, if the file does not state it",
    )
    analyse.add_argument(
        "--film",
        choices=("unknown", "cvd", "exfoliated"),
        default="unknown",
        help="how the film was made (default unknown)",
    )
    analyse.add_argument(
        "--a1g-si",
        type=positive,
        metavar="RATIO",
        help="height ratio A1g/silicon of one layer on this microscope",
    )
    analyse.add_argument("--material", metavar="NAME", help="measure the lines of this material")
    analyse.add_argument(
        "--window",
        type=window,
        action="append",
        default=[],
        metavar="LOW-HIGH",
        help="fit the lines within this window, in cm⁻¹; may be repeated",
    )
    analyse.add_argument(
        "--baseline",
        choices=("straight", "arpls"),
        default="straight",
        help="fit a straight baseline with the lines, or subtract a smooth one first",
    )
    analyse.add_argument("--pl", metavar="FILE", help="photoluminescence spectrum of the same film")

    calibrate = commands.add_parser(
        "calibrate", help="calibrate a microscope by spectra of a known monolayer"
    )
    calibrate.add_argument("files", nargs="+", metavar="FILE")
    calibrate.add_argument(
        "--on", required=True, metavar="SAMPLE", help="the sample and its oxide, as text"
    )
    calibrate.add_argument(
        "--date", type=day, metavar="YYYY-MM-DD", help="day of the measurement (default today)"
    )
    calibrate.add_argument(
        "--laser-nm",
        type=positive,
        metavar="NM",
        help="laser wavelength, if the file does not state it",
    )
    calibrate.add_argument(
        "--write", metavar="LAB.toml", help="write the result into this lab file"
    )

    chaos = commands.add_parser(
        "chaos", help="search for combinations of faults that cause harm, on a simulated line"
    )
    chaos.add_argument(
        "--hours",
        type=positive,
        default=10.0,
        metavar="H",
        help="lab time to search, in hours (default 10)",
    )
    chaos.add_argument("--seed", type=seed, default=1, help="seed of the search (default 1)")
    chaos.add_argument(
        "--faults",
        type=rate,
        default=1.0,
        metavar="RATE",
        help="factor on the rates of faults (default 1)",
    )
    chaos.add_argument("--line", metavar="FILE", help="lab file (default: the simulated lab)")
    chaos.add_argument(
        "--state", metavar="FILE", help="file of the search's progress (default chaos-SEED.json)"
    )
    chaos.add_argument("--workers", type=workers, metavar="N", help="processes (default 2)")
    chaos.add_argument(
        "--replay", metavar="FILE|SEED/N", help="play one scenario and print what happens"
    )
    chaos.add_argument(
        "--shrink",
        action="store_true",
        help="with --replay: find the fewest faults that still cause harm",
    )
    return parser


def _add_by_hand(commands: "argparse._SubParsersAction[Parser]") -> None:
    """Add the commands that drive a line by hand."""
    texts = {
        "read": "read channels now",
        "set": "set one channel; the command is judged and read back",
        "watch": "show the readings of a line, live",
        "hold": "pause a run: it sends no further command",
        "resume": "resume a held run",
        "stop": "end the run, and make the line safe",
        "safe": "run the safe procedure now",
    }
    verbs = {name: commands.add_parser(name, help=texts[name]) for name in BY_HAND}
    for name, verb in verbs.items():
        _add_lab(verb)
        if name not in ("read", "watch"):
            verb.add_argument("--name", type=words, help="your name (default: this account)")
            verb.add_argument("--reason", default="", help="why; it is recorded")
        if name in ("set", "watch"):
            verb.add_argument(
                "--for", type=positive, dest="for_s", metavar="SECONDS", help="end after this time"
            )
        if name in ("read", "watch"):
            verb.add_argument("--json", action="store_true", help="print JSON")
    verbs["watch"].add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help="instruments, channels or patterns, such as furnace or '*.flow'",
    )
    verbs["read"].add_argument("channels", nargs="+", metavar="CHANNEL")
    settable = verbs["set"]
    settable.add_argument("channel", metavar="CHANNEL")
    settable.add_argument("value", type=number, metavar="VALUE")
    settable.add_argument("unit", nargs="?", default="", metavar="UNIT")
    settable.add_argument(
        "--attend",
        action="store_true",
        help="open the line, watch it, and leave it safe at the end",
    )
    settable.add_argument("--out", metavar="DIR", help="with --attend: folder of the journal")
    settable.add_argument(
        "--speed",
        type=speed,
        default=1.0,
        metavar="fast|real|N",
        help="lab seconds per second of a simulated lab",
    )


def _add_program(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(
        dest="verb", required=True, metavar="check|upload|start|hold|reset"
    )
    for name, text in (
        ("check", "print a program and what the envelope refuses of it; nothing is sent"),
        ("upload", "store it in the instrument; each segment is judged and read back"),
        ("start", "start the uploaded program, or resume a held one"),
        ("hold", "hold it at its present value; the heat stays on"),
        ("reset", "end it; the instrument returns to its own setpoint"),
    ):
        verb = verbs.add_parser(name, help=text)
        verb.add_argument("instrument", metavar="INSTRUMENT")
        if name in ("check", "upload"):
            verb.add_argument("file", metavar="FILE.toml")
        _add_lab(verb)
        verb.add_argument("--name", type=words, help="your name (default: this account)")
        verb.add_argument("--reason", default="", help="why; it is recorded")


def _add_language(
    parser: argparse.ArgumentParser, text: str = "language of what is printed (default en)"
) -> None:
    parser.add_argument("--lang", choices=LANGUAGES, help=text)


def _add_alarms(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="list|test|ack|shelve|...")
    listed = verbs.add_parser(
        "list", help="print the alarms that are active, unacknowledged or silenced"
    )
    _add_lab(listed)
    _add_language(listed)
    _add_lab(verbs.add_parser("test", help="send a test message on every alert channel"))
    for name, text in (
        ("ack", "acknowledge one alarm, or all"),
        ("shelve", "silence an alarm for a while"),
        ("unshelve", "end that"),
        ("suppress", "silence an alarm by design (maintainer)"),
        ("unsuppress", "end that (maintainer)"),
        ("remove", "take an alarm out of service (maintainer)"),
        ("place", "put it back into service (maintainer)"),
    ):
        verb = verbs.add_parser(name, help=text)
        verb.add_argument("alarm", metavar="ALARM|all" if name == "ack" else "ALARM")
        verb.add_argument("--name", type=words, required=True, help="your name")
        verb.add_argument("--reason", type=words, required=True, help="why")
        roles = ("operator", "maintainer")
        verb.add_argument(
            "--role", choices=roles, default="operator", help="your role (default operator)"
        )
        if name == "shelve":
            length = verb.add_mutually_exclusive_group()
            length.add_argument(
                "--minutes", type=positive, metavar="MIN", help="for how long (default 480)"
            )
            length.add_argument("--once", action="store_true", help="until its cause is gone")
        _add_lab(verb)


def _add_hazards(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="list|proof")
    _add_lab(verbs.add_parser("list", help="print the hazards and their hardware safeguards"))
    proof = verbs.add_parser("proof", help="record a proof test of a safeguard")
    proof.add_argument("hazard", metavar="HAZARD")
    proof.add_argument(
        "--date", type=day, metavar="YYYY-MM-DD", help="day of the test (default today)"
    )
    proof.add_argument("--name", type=words, required=True, help="name of the person who tested it")
    proof.add_argument(
        "--reason", type=words, required=True, help="how it was tested, and the result"
    )
    proof.add_argument("--failed", action="store_true", help="the safeguard did not pass")
    _add_lab(proof)


def _add_lab(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--lab", metavar="FILE", help="lab file (default: the simulated lab)")
