"""The documents' console blocks: what each command prints, held against the page.

``make pages`` runs every command and writes the numbers that it prints into the page. Read the
difference before you keep it. ``python tests/pages.py`` writes all commands and options into
``build/pages/command-line.md``.
"""

import json
import re
import shlex
import shutil
from collections.abc import Iterator
from functools import cache
from math import isclose
from pathlib import Path
from random import Random

import numpy as np

from commands import ROOT, say
from labharness.analysis.spectrum import shift_from_wavelength
from labharness.core.vocabulary import Cause, Trip
from labharness.lab import read_lab
from labharness.safety.guard import Latch
from labharness_simulators.plant.optics import LASER_NM, Spectrometer
from labharness_simulators.plant.sample import Sample
from labharness_simulators.plant.spectrum import Light, light_of
from rig import EXAMPLE
from strange_spectra import KINDS

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

COMMANDS = ROOT / "build" / "pages" / "command-line.md"

RUN = {
    "README.md": "thorough",  # five flights of the shipped line
    "docs/tutorial/first-growth.md": "soak",  # four more flights
    "docs/reference/command-line.md": "thorough",
    "docs/reference/journal.md": "thorough",
    "docs/how-to/a-furnace-of-your-own.md": "thorough",  # an annealing
    "docs/how-to/add-a-driver.md": "",
    "docs/how-to/approve-a-task.md": "thorough",
    "docs/how-to/data-and-python.md": "thorough",  # the example
    "docs/how-to/drive-a-line-by-hand.md": "",
    "docs/how-to/read-a-report.md": "thorough",
    "docs/how-to/record-a-proof-test.md": "",
    "docs/how-to/reset-a-latched-line.md": "",
    "docs/how-to/analyse-your-own-spectra.md": "",
}
"""The pages whose commands are run, and the mark of their test."""

BEFORE = {
    "runs/first": "labharness run examples/mos2-monolayer.json --seed 1 --out runs/first",
    "runs/warmer": "labharness run warmer.json --lab tests/short_line.toml --out runs/warmer",
}
"""Runs that pages look at, whichever page is read first."""

BLOCK = re.compile(r"^```(\w+) ?(.*?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

UNREPEATED = re.compile(
    r"\d{4}-\d\d-\d\dT[\d:.]+Z|[0-9a-f]{8,}(?:-[0-9a-f]{4,})*|\d+ bytes|took \d+\.\d+ s"
)
"""What the same command prints differently the next time: instants, digests, sizes of files."""

DECIMAL = re.compile(r"\d+\.\d+")
DECIMALS_REL = 1e-3

NUMBER = re.compile(r"\d+\.\d+|PT[0-9HMS]+|\d+:\d\d:\d\d|\d+")


def blocks_of(page: Path) -> list[tuple[str, str, str]]:
    """Return language, the rest of the info string, and the text of each fenced block."""
    return [(m[1], m[2], m[3]) for m in BLOCK.finditer(page.read_text("utf-8"))]


def commands_of(text: str) -> list[tuple[str, list[str]]]:
    """Return each command of a console block and the lines that are to follow it."""
    found: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def repeated(line: str) -> str:
    """Return a line without what differs from run to run."""
    return " ".join(UNREPEATED.sub("#", line).split())


def same(one: str, other: str) -> bool:
    """Return whether two lines are alike; another processor's decimals may differ a little."""
    ones, others = repeated(one), repeated(other)
    if DECIMAL.sub("#", ones) != DECIMAL.sub("#", others):
        return False
    pairs = zip(DECIMAL.findall(ones), DECIMAL.findall(others), strict=True)
    return all(isclose(float(a), float(b), rel_tol=DECIMALS_REL) for a, b in pairs)


def shape(line: str) -> str:
    """Return a line without its numbers, by which an outdated line is found again."""
    return NUMBER.sub("#", repeated(line))


def differing(shown: list[str], said: list[str]) -> str:
    """Return which line of a page the command did not print, in order; ``...`` skips any number."""
    rest = iter(said)
    skipping = False
    for line in shown:
        if line == "...":
            skipping = True
            continue
        for found in rest:
            if same(found, line):
                break
            if not skipping:
                return f"{line!r}, printed was {found!r}"
        else:
            return repr(line)
        skipping = False
    left = list(rest)
    return f"nothing, printed was {left[0]!r}" if left and not skipping else ""


def updated(shown: list[str], said: list[str]) -> list[str]:
    """Return the lines of a page with the numbers that were printed; other lines stay."""
    rest, lines = list(said), []
    for line in shown:
        alike = [i for i, found in enumerate(rest) if shape(found) == shape(line)]
        at = max(alike, key=lambda i: _numbers_kept(line, rest[i]), default=None)
        if line == "..." or at is None or same(rest[at], line):
            lines.append(line)
        else:
            lines.append(rest[at].rstrip())
        rest = rest[at + 1 :] if at is not None else rest
    return lines


def _numbers_kept(line: str, found: str) -> int:
    return sum(a == b for a, b in zip(NUMBER.findall(line), NUMBER.findall(found), strict=False))


def checkout(root: Path) -> Path:
    """Make a folder that looks like the checkout to the commands of the documents."""
    labs = Path("envelopes/labharness_envelopes/labs")
    shutil.copytree(ROOT / "examples", root / "examples")
    shutil.copytree(ROOT / labs, root / labs)
    (root / "tests").mkdir()
    for each in (ROOT / "tests").glob("short_line*.toml"):
        shutil.copy(each, root / "tests")
    for page in PAGES:
        for language, info, text in blocks_of(page):
            if info.endswith(".toml") or (language == "json" and "hcp_version" in text and info):
                (root / info).write_text(text, "utf-8")
            elif language == "json" and info:
                body = json.loads(EXAMPLE.read_text("utf-8"))
                body["payload"]["inputs"]["temperature_range"] = json.loads(text)
                (root / info).write_text(json.dumps(body), "utf-8")
    mine = root / "my-lab"
    shutil.copytree(ROOT / labs / "cvd_mos2", mine)
    edited = (mine / "lab.toml").read_text("utf-8")
    edited = re.sub(r"(?m)^title = .*$", 'title = "My lab"', edited, count=1)
    (mine / "lab.toml").write_text(edited, "utf-8")
    _write_film(root / "my-film.txt")
    _write_unknown(root / "unknown.txt")
    return root


def _write_film(path: Path) -> None:
    """Write the spectrum of a monolayer, as an instrument with errors of its own sees it."""

    def light(exposure_s: float) -> Light:
        return light_of(Sample("film", "SiO2/Si"), 1, 0.0, 0.0, 0.3, exposure_s)

    spectrometer = Spectrometer(light, Random(3))
    shift = shift_from_wavelength(LASER_NM, spectrometer.wavelengths_nm())
    counts = spectrometer.exposure(8.0)
    rows = (
        f"{x:.4f}\t{y - spectrometer.BIAS_COUNTS:.6g}\n" for x, y in zip(shift, counts, strict=True)
    )
    path.write_text("".join(rows), "utf-8")


def _write_unknown(path: Path) -> None:
    """Write the spectrum of polystyrene, which is in no table of materials."""
    shift = np.arange(100.0, 3300.0, 1.5)
    _, lines = KINDS["polystyrene"]
    drawn = [600.0 * height / (1 + (2 * (shift - at) / fwhm) ** 2) for at, fwhm, height in lines]
    counts = np.random.default_rng(1).poisson(200.0 + np.sum(drawn, axis=0))
    rows = (f"{x:.1f}\t{y}\n" for x, y in zip(shift, counts, strict=True))
    path.write_text("".join(rows), "utf-8")


def latch() -> None:
    """Leave the short line as an emergency stop left it."""
    state_dir = read_lab(Path("tests/short_line.toml")).state_dir
    state_dir.mkdir(parents=True, exist_ok=True)
    trip = Trip(
        cause=Cause.EMERGENCY_STOP_LOOP,
        procedure="immediate_shutdown",
        channel="box.estop_closed",
        value=0.0,
        at_s=1.0,
        detail="emergency-stop loop open: box.estop_closed is 0, at least 0.5",
    )
    Latch(state_dir / "latch.json").close(trip)


@cache  # the same command on two pages is run once
def run(command: str) -> list[str]:
    """Return the lines that a command prints, those of standard error where a person sees them."""
    _, *arguments = shlex.split(command)
    if arguments[:2] == ["approvals", "approve"]:  # its id is another one on each computer
        arguments[2] = say("approvals", "list", *arguments[-2:]).out.partition(" ")[0]
    said = say(*arguments)
    if arguments[0] in ("run", "set"):  # progress comes before the result
        return [*said.err.splitlines(), *said.out.splitlines()]
    return [*said.out.splitlines(), *said.err.splitlines()]


def printed(name: str) -> Iterator[tuple[str, list[str], list[str]]]:
    """Run the commands of a page; yield each with the lines shown and the lines printed."""
    if name.endswith("reset-a-latched-line.md"):
        latch()
    for language, _, text in blocks_of(ROOT / name):
        if language != "console":
            continue
        for command, shown in commands_of(text):
            if command.startswith("labharness "):
                for made, before in BEFORE.items():
                    if f"{made} " in f"{command} " or "--runs runs" in command:
                        run(before)
                yield command, shown, run(command)


def picture(report: Path) -> str:
    """Return the first traces of a report as a picture of their own, in English."""
    page = report.read_text("utf-8")
    drawn = page[page.index('<svg viewBox="0 0 1040') :].partition("</svg>")[0]
    drawn = re.sub(r'<tspan class="zh".*?</tspan>', "", drawn)
    drawn = re.sub(r'(?<=points=")[^"]+', _thinned, drawn)
    style = re.findall(r"(?:svg |\.c\d)[^{}]*\{[^}]*\}", page)
    head = '<svg xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" '
    ground = '<rect width="100%" height="100%" fill="#fff"/>'
    body = drawn.removeprefix("<svg ").replace(">", f"><style>{' '.join(style)}</style>{ground}", 1)
    return re.sub(r"></(?:rect|line|polyline|polygon)>", "/>", f"{head}{body}</svg>\n")


def helps(*words: str) -> Iterator[tuple[str, str]]:
    """Yield each command below some words, and what its ``--help`` prints."""
    said = say(*words, "--help").out
    yield " ".join(words), said
    if not words or " ...\n" in said:
        for each in re.findall(r"^    ([a-z-]+)(?: |$)", said, re.MULTILINE):
            yield from helps(*words, each)


def command_line() -> str:
    """Return the page of all commands with their arguments and options."""
    told = (f"## {name or 'labharness'}\n\n```text\n{said}```\n" for name, said in helps())
    return "\n".join(["# The commands and their options\n", *told])


def _thinned(points: re.Match[str]) -> str:
    """Return the points of a curve on whole pixels, each once."""
    whole = (",".join(str(round(float(x))) for x in each.split(",")) for each in points[0].split())
    return " ".join(dict.fromkeys(whole))


def outdated(name: str) -> list[str]:
    """Return what a page shows and its commands do not print."""
    return [
        f"{name}: $ {command}\nthe page shows {missing}"
        for command, shown, said in printed(name)
        if (missing := differing(shown, said))
    ]


def write(name: str) -> None:
    """Write the numbers that are printed into a page."""
    page = ROOT / name
    for command, shown, said in printed(name):
        lines = updated(shown, said)
        before = "\n".join([f"$ {command}", *shown, ""])
        text = page.read_text("utf-8")
        page.write_text(text.replace(before, "\n".join([f"$ {command}", *lines, ""])), "utf-8")
    if name == "README.md":
        (ROOT / "docs" / "report.svg").write_text(picture(Path("runs/first/report.html")), "utf-8")


if __name__ == "__main__":
    COMMANDS.parent.mkdir(parents=True, exist_ok=True)
    COMMANDS.write_text(command_line(), "utf-8")
