"""The command line: arguments here, work in one small module a command, imported when asked for."""

import argparse
import sys
from collections.abc import Sequence
from typing import NoReturn

__all__ = ["EXIT_ABORTED", "EXIT_COMPLETED", "EXIT_FAILED", "EXIT_REJECTED", "EXIT_USAGE", "main"]

EXIT_COMPLETED = 0
EXIT_FAILED = 1  # also check commands with findings
EXIT_REJECTED = 2
EXIT_ABORTED = 3
EXIT_USAGE = 64  # no HCP message, bad lab file, bad output folder, bad arguments


class _Parser(argparse.ArgumentParser):
    """argparse, with our exit code for wrong usage (its own is 2, which means rejected here)."""

    def error(self, message: str) -> NoReturn:
        self.exit(EXIT_USAGE, f"{self.prog}: {message}; see {self.prog} --help\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out one command; give its exit code."""
    chosen = _parser().parse_args(arguments)
    try:
        return _carry_out(chosen)
    except KeyboardInterrupt:  # `run` answers it itself as soon as there is a line to make safe
        sys.stderr.write(f"labharness {chosen.command}: interrupted\n")
        return EXIT_ABORTED
    except BrokenPipeError:  # whoever reads has enough, as `head` has
        from labharness.cli.show import drop_output

        drop_output()
        return EXIT_COMPLETED


def _carry_out(chosen: argparse.Namespace) -> int:
    if chosen.command == "run":
        from labharness.cli.run import run

        return run(chosen)
    if chosen.command == "plan":
        from labharness.cli.plan import plan

        return plan(chosen)
    if chosen.command in ("drivers", "capabilities"):
        from labharness.cli.offers import offers

        return offers(chosen)
    if chosen.command in ("lab", "envelope", "reset"):
        from labharness.cli.labs import labs

        return labs(chosen)
    if chosen.command == "analyse":
        from labharness.cli.analyse import analyse

        return analyse(chosen)
    if chosen.command in ("report", "history", "compare"):
        from labharness.cli.report import report

        return report(chosen)
    if chosen.command == "chaos":
        from labharness.cli.chaos import chaos

        return chaos(chosen)
    from labharness.cli.records import records

    return records(chosen)


def _parser() -> _Parser:
    parser = _Parser(
        prog="labharness",
        description="Run laboratory instruments behind a safety envelope.",
        epilog="Exit codes: 0 completed, 1 failed or findings, 2 rejected, 3 aborted, 64 usage.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    run = commands.add_parser("run", help="run one task (an HCP task_submit message)")
    run.add_argument("task", metavar="TASK.json")
    _add_lab(run)
    run.add_argument("--out", metavar="DIR", help="folder to fill (default runs/<time>-<session>)")
    run.add_argument(
        "--speed", type=_speed, default=None, metavar="fast|real|N", help="lab seconds a second"
    )
    run.add_argument("--seed", type=_seed, help="of a simulated run (default 1)")
    run.add_argument("--json", action="store_true", help="print exactly one HCP message")

    plan = commands.add_parser("plan", help="fly one task on the nominal plant, submitting nothing")
    plan.add_argument("task", metavar="TASK.json")
    _add_lab(plan)
    plan.add_argument("--dry-run", action="store_true", help="what it always is; accepted and kept")
    plan.add_argument("--json", action="store_true", help="print the prediction as JSON")

    commands.add_parser("drivers", help="list the instrument kinds that are installed")

    offered = commands.add_parser("capabilities", help="list or show what the lab offers")
    verbs = offered.add_subparsers(dest="verb", required=True, metavar="list|show")
    verbs.add_parser("list", help="one line each")
    verbs.add_parser("show", help="one declaration").add_argument("name")

    lab = commands.add_parser("lab", help="check a lab file")
    check = lab.add_subparsers(dest="verb", required=True, metavar="check").add_parser(
        "check", help="compute wire times and staleness"
    )
    _add_lab(check)
    check.add_argument("--connect", action="store_true", help="identify every instrument")

    envelope = commands.add_parser("envelope", help="check or show a lab's envelope")
    verbs = envelope.add_subparsers(dest="verb", required=True, metavar="check|show")
    for name, text in (("check", "say what does not hold"), ("show", "print every rule")):
        _add_lab(verbs.add_parser(name, help=text))

    reset = commands.add_parser("reset", help="open the latch, when the cause is gone")
    reset.add_argument("--name", type=_words, required=True, help="who resets it")
    reset.add_argument("--reason", type=_words, required=True, help="why it may be reset")
    _add_lab(reset)

    journal = commands.add_parser("journal", help="verify, show or export a run's journal")
    verbs = journal.add_subparsers(dest="verb", required=True, metavar="verify|show|export")
    for name, text in (
        ("verify", "check the chain; name the first bad record"),
        ("show", "print the records for people"),
        ("export", "print the records as JSON Lines"),
    ):
        verbs.add_parser(name, help=text).add_argument("folder", metavar="DIR")

    artifact = commands.add_parser("artifact", help="find the file of an artifact's URI")
    artifact.add_argument("uri", metavar="URI")
    artifact.add_argument("--runs", default="runs", metavar="DIR", help="where runs are kept")
    artifact.add_argument("--cat", action="store_true", help="print its content")

    report = commands.add_parser("report", help="make a run's report, one page to send")
    report.add_argument("folder", metavar="DIR")
    report.add_argument("--lang", choices=("en", "zh"), default="en", help="shown first")
    report.add_argument("--out", metavar="FILE", help="(default DIR/report.html)")

    history = commands.add_parser("history", help="list the runs of a folder")
    history.add_argument("--runs", default="runs", metavar="DIR", help="where runs are kept")

    compare = commands.add_parser("compare", help="say what differs between two runs")
    compare.add_argument("one", metavar="DIR")
    compare.add_argument("other", metavar="DIR")

    analyse = commands.add_parser("analyse", help="say what spectra show; count layers of MoS2")
    analyse.add_argument("files", nargs="+", metavar="FILE")
    analyse.add_argument("--json", action="store_true", help="print one JSON array")
    analyse.add_argument("--plot", action="store_true", help="draw FILE.svg beside each FILE")
    analyse.add_argument("--save", metavar="OUT", help="write one FILE's spectra: .csv, .nxs, .h5")
    analyse.add_argument("--laser-nm", type=_positive, metavar="NM", help="if the file lacks it")
    analyse.add_argument(
        "--film",
        choices=("unknown", "cvd", "exfoliated"),
        default="unknown",
        help="how it was made",
    )
    analyse.add_argument(
        "--a1g-si", type=_positive, metavar="RATIO", help="A1g over silicon of one layer here"
    )

    chaos = commands.add_parser("chaos", help="search for faults that harm, on a simulated line")
    chaos.add_argument("--hours", type=_positive, default=10.0, metavar="H", help="of lab time")
    chaos.add_argument("--seed", type=_seed, default=1, help="of the search (default 1)")
    chaos.add_argument(
        "--faults", type=_rate, default=1.0, metavar="RATE", help="factor on the drawn rates"
    )
    chaos.add_argument("--line", metavar="FILE", help="lab file (default: the simulated lab)")
    chaos.add_argument("--state", metavar="FILE", help="where it stands (default chaos-SEED.json)")
    chaos.add_argument("--workers", type=int, choices=range(1, 65), metavar="N", help="(default 2)")
    chaos.add_argument("--replay", metavar="FILE|SEED/N", help="play one scenario, and tell it")
    chaos.add_argument("--shrink", action="store_true", help="with --replay: to the fewest faults")
    return parser


def _add_lab(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--lab", metavar="FILE", help="lab file (default: the simulated lab)")


def _speed(text: str) -> float | None:
    if text == "fast":
        return None
    if text == "real":
        return 1.0
    try:
        speed = float(text)
    except ValueError:
        speed = 0.0
    if not 0 < speed < 1e6:
        raise argparse.ArgumentTypeError(f"{text!r} is not fast, real, or a number up to 1000000")
    return speed


def _seed(text: str) -> int:
    if not text.isdecimal() or len(text) > 18:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at most 18 digits")
    return int(text)


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return value


def _rate(text: str) -> float:
    return 0.0 if text == "0" else _positive(text)


def _words(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError("it is empty")
    return text
