"""The mutants of an envelope's rows: a row, a condition or a step gone, a number wrong by ten."""

import re
import tomllib
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from mutated import ROOT

ENVELOPES = ROOT / "envelopes" / "labharness_envelopes"
LAB = ENVELOPES / "labs" / "cvd_mos2" / "lab.toml"
WORDS = ("source", "description", "line", "kind", "id", "title", "baud", "delay_s")
"""Keys that decide nothing about safety, or nothing on simulated instruments."""
ENDS = ("at_least", "at_most", "low", "high", "rise_min", "span_min", "span_max", "differ_max")
DROPPED = (
    "on_loss",
    "always_safe",
    "unless",
    "expects",
    "role",
    "trips",
    "warns",
    "during",
    "on_foreign",
    "foreign_while",
    "agrees_with",
    "instead",
)
PROCEDURES = ("immediate_shutdown", "close_all_valves_and_alert", "relieve_pressure", "hold_vacuum")
UNITS = {
    "degC": "K",
    "celsius": "kelvin",
    "atm": "torr",
    "Torr": "mbar",
    "sccm": "slm",
    "W": "mW",
    "ppm": "%",
    "": "%",
    "%": "",
}
ENTRY = re.compile(r"([\w.\"]+) = (-?\d+(?:\.\d+)?)(?=[\s,}\]#]|$)")
STEP = re.compile(r'^(\s*\["[\w.]+", )(-?\d+(?:\.\d+)?)(?=[,\]])')
END = re.compile(rf",? ?\b({'|'.join(ENDS)}) = -?[\d.]+")


class RowMutant(NamedTuple):
    """One change of an envelope's text.

    Attributes:
        file: Which.
        line: Where in it.
        what: The change in words.
        wrong: The lines that stand there instead.
        lines: How many lines it takes the place of.
    """

    file: str
    line: int
    what: str
    wrong: tuple[str, ...]
    lines: int

    @property
    def name(self) -> str:
        """What the list of reasons calls it: by its words, as lines move."""
        return f"{self.file}: {self.what}"

    def text(self) -> str:
        """Return the whole mutated file."""
        lines = (ROOT / self.file).read_text("utf-8").splitlines()
        lines[self.line - 1 : self.line - 1 + self.lines] = self.wrong
        return "\n".join(lines) + "\n"


def row_mutants_of(file: str) -> Iterator[RowMutant]:
    """Return every mutant of a file of rows, in the order of its text."""
    lines = (ROOT / file).read_text("utf-8").splitlines()
    own = _own_limits() if "/lines/" in file else {}
    starts = [at for at, line in enumerate(lines) if line.startswith("[")]
    for start, end in pairwise([*starts, len(lines)]):
        header = lines[start].partition("#")[0].strip()
        row = _name(lines[start:end])
        make = partial(_mutant, file, f"{header} {row}".strip())
        if header.startswith("[[") and header not in ("[[port]]", "[[instrument]]"):
            yield make(start, end - start, "dropped")
        for at in range(start + 1, end):
            line = lines[at].partition(" #")[0].rstrip()
            key = line.partition(" = ")[0].strip()
            if not line or line.startswith("#") or key in WORDS:
                continue
            for what, wrong in _wrong(line, key, header):
                yield make(at, 1, what, *wrong)
            widest = own.get(row, {}).get(key)
            if header == "[[limit]]" and key in ("low", "high") and widest is not None:
                wide = f"{key} = {float(widest):g}"
                if wide != line:
                    yield make(at, 1, f"`{line}` -> `{wide}`, its own", wide)
            after = lines[at + 1] if at + 1 < end else ""
            if STEP.match(line) and STEP.match(after):
                both = f"`{line.strip()}` and `{after.strip()}` swapped"
                yield make(at, 2, both, after, line)


def _mutant(file: str, row: str, at: int, count: int, what: str, *wrong: str) -> RowMutant:
    return RowMutant(file, at + 1, f"{row}: {what}", wrong, count)


def _wrong(line: str, key: str, header: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Return the ways in which one line may be wrong: in words, and the lines instead."""
    said = line.strip()
    step = STEP.match(line)
    if step is not None:
        value = float(step[2])
        other = f"{1 - value:g}" if value in (0, 1) else f"{value * 10:g}"
        wrong = f"{step[1]}{other}{line[step.end() :]}"
        yield f"`{said}` -> `{wrong.strip()}`", (wrong,)
    for number in ENTRY.finditer(_without_texts(line)):
        if float(number[2]):
            more = f"{float(number[2]) * 10:g}"
            wrong = f"{line[: number.start(2)]}{more}{line[number.end(2) :]}"
            yield f"`{said}` -> `{wrong.strip()}`", (wrong,)
    if line.lstrip().startswith(("{", "[")):
        yield f"`{said}` dropped", ()
    for bound in END.finditer(line) if "{" in line else ():
        wrong = line[: bound.start()] + line[bound.end() :]
        yield f"`{said}` opened: `{wrong.strip()}`", (wrong.replace("{,", "{"),)
    required = key in ENDS and ("[limit" in header or header == "[purge.backfill]")
    if (key in DROPPED or key in ENDS) and not required and not line.endswith("["):
        yield f"`{said}` dropped", ()
    if key == "unit" and '"' in line:
        unit = line.partition('"')[2].partition('"')[0]
        wrong = f'unit = "{UNITS.get(unit, "m")}"'
        yield f"`{said}` -> `{wrong}`", (wrong,)
    if key in ("cause", "procedure"):
        for_else = "sensor_break" if "over_flow" in line else "over_flow"
        yield f"`{said}` -> `{for_else}`", (f'{key} = "{for_else}"',)
    if header.endswith("emergency_procedures]"):
        for name in PROCEDURES[:3]:
            if name not in line:
                yield f"`{said}` -> `{name}`", (f'{key} = "{name}"',)
    if key in ("guards", "categories", "inert", "require", "forbid", "isolated"):
        yield from _items_dropped(line, key)


def _items_dropped(line: str, key: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Leave one item out of a list of one line."""
    inside = line[line.find("[") + 1 : line.rfind("]")] if "]" in line else ""
    items = re.findall(r'\{[^}]*\}|"[^"]*"', inside)
    for at in range(len(items)):
        left = ", ".join(items[:at] + items[at + 1 :])
        yield f"{key}: `{items[at]}` dropped", (f"{key} = [{left}]",)


def _without_texts(line: str) -> str:
    """Blank what stands in quotes, of the same length."""
    return re.sub(r'"[^"]*"', lambda text: '"' + "_" * (len(text[0]) - 2) + '"', line)


def _name(lines: list[str]) -> str:
    for key in ("name", "channel", "action"):
        for line in lines:
            if line.startswith(f'{key} = "'):
                return line.partition('"')[2].rpartition('"')[0]
    return ""


def _own_limits() -> dict[str, dict[str, float]]:
    """For each channel of the shipped line what its instrument itself allows."""
    lab = tomllib.loads(LAB.read_text("utf-8"))
    found = {}
    for instrument in lab["instrument"]:
        kind = tomllib.loads((ENVELOPES / f"{instrument['kind']}.toml").read_text("utf-8"))
        for channel, limit in kind.get("limits", {}).items():
            found[f"{instrument['name']}.{channel}"] = limit
    return found
