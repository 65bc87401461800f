"""The table of materials, read from ``materials.toml``: the lines of each, with their sources."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from labharness.analysis.arrays import Array
from labharness.analysis.lines import LineWindow
from labharness.analysis.peaks import (
    A_LINE,
    A_LINE_BESIDE,
    E_LINE,
    PEAK_WINDOW_CM1,
    PEAKS_NEED_CM1,
    THIRD_LINE,
)
from labharness.analysis.spectrum import covers


class LineGroup(NamedTuple):
    """Lines that are fitted together on one straight background.

    Attributes:
        names: One per line.
        windows: Allowed positions, initial and largest width of each.
        range_cm1: Range of the fit, as far as the axis covers it.
        needs_cm1: Part of the range that the axis must cover.
        shoulders: Lines that may be shoulders of others, without a top of their own.
    """

    names: tuple[str, ...]
    windows: tuple[LineWindow, ...]
    range_cm1: tuple[float, float]
    needs_cm1: tuple[float, float]
    shoulders: tuple[str, ...] = ()

    def fits_on(self, axis_cm1: Array) -> bool:
        """Return whether an axis covers what the lines need, with enough pixels for the fit."""
        return covers(axis_cm1, *self.needs_cm1, 4 * len(self.names) + 4)


class LayerLimit(NamedTuple):
    """Limits of a width, a distance or a ratio of two heights.

    Attributes:
        line: The line of the width, or the upper line of the ratio.
        over: The lower line of the ratio; empty for a width.
        low: Lower limit: cm⁻¹, or 1 for a ratio.
        high: Upper limit.
        distance: Limits the distance from ``over`` up to ``line`` instead of the ratio.
    """

    line: str
    over: str
    low: float
    high: float
    distance: bool = False


class Form(NamedTuple):
    """One way to recognise a material: all these lines stand out, and every limit holds.

    Attributes:
        groups: Lines that must stand out.
        limits: On these lines and on the additional ones; a missing line has height 0.
        alone: There is only one line. It must then be the highest of the spectrum.
        calibrated: The axis must be calibrated by silicon.
        without: A group that the axis must not cover.
    """

    groups: tuple[LineGroup, ...]
    limits: tuple[LayerLimit, ...] = ()
    alone: bool = False
    calibrated: bool = False
    without: LineGroup | None = None


class Material(NamedTuple):
    """One row of the table.

    Attributes:
        name: For people.
        why_no_count: Why its layers are not counted; empty only for MoS2.
        forms: Ways to recognise it; the first that holds names it.
        besides: Additional lines that are measured if present; only limits use them.
        ratios: Informative ratios of heights, each as two names of lines.
        speaks_cm1: Range in which no unexplained line may be higher than ``most`` of its highest.
        most: That share; beyond the range ``most_beyond`` of it.
        also: Further lines that it may have: from, to, greatest height as a share of its highest,
            and least width.
        broad_cm1: Wider lines say nothing against it: they are background.
        witness: The line that shows a film of it first, from one layer to bulk; None of one whose
            thin films are too weak to be ruled out.
        weakest_film: The weakest film to look for on this substrate, relative to its own line (the
            first of its row). One layer of MoS2 has 0.12 of silicon on 285 nm of oxide, and a
            quarter of it on oxide of another thickness. On transparent substrates films are far
            brighter than the substrate. Judgement.
        own_lines_cm1: Its lines beside those of films; there, only naming can tell the two apart.
        source: Source of positions, widths and ratios.
    """

    name: str
    why_no_count: str
    forms: tuple[Form, ...] = ()
    besides: tuple[LineGroup, ...] = ()
    ratios: tuple[tuple[str, str], ...] = ()
    speaks_cm1: tuple[float, float] = (150.0, 800.0)
    most: float = 1.0
    most_beyond: float = 5.0
    also: tuple[tuple[float, float, float, float], ...] = ()
    broad_cm1: float = 40.0
    witness: LineWindow | None = None
    weakest_film: float = 0.03
    own_lines_cm1: tuple[float, ...] = ()
    source: str = ""


NOT_COUNTED = "it shows {}, which is named, not counted: only MoS2 has a table of layers here"

MOS2_PAIR = LineGroup(("E2g", "A1g"), (E_LINE, A_LINE), PEAK_WINDOW_CM1, PEAKS_NEED_CM1)
MOS2_BESIDE = LineGroup(
    ("E2g", "A1g", "a line near 418"),
    (E_LINE, A_LINE_BESIDE, THIRD_LINE),
    PEAK_WINDOW_CM1,
    PEAKS_NEED_CM1,
)
"""On sapphire, or under a red laser: see ``peaks.THIRD_LINE``."""

Row = Mapping[str, Any]
"""A table of the file."""


def _frozen(value: Any) -> Any:  # noqa: ANN401 - a value as the file has it
    """Return a value with tuples for lists, and with no whole numbers."""
    if isinstance(value, list):
        return tuple(map(_frozen, value))
    return float(value) if type(value) is int else value


def _group(row: Row) -> LineGroup:
    windows = tuple(LineWindow(*_frozen(each)) for each in row["lines"].values())
    low, high, room = windows[0].low_cm1, windows[-1].high_cm1, row.get("room", 0.0)
    return LineGroup(
        tuple(row["lines"]),
        windows,
        _frozen(row.get("range_cm1", (low - room, high + room))),
        _frozen(row.get("needs_cm1", (low - room / 2, high + room / 2))),
        _frozen(row.get("shoulders", ())),
    )


def _form(row: Row) -> Form:
    limits = []
    for name, (low, high) in row.get("limits", {}).items():
        line, over = (*re.split("[/-]", name), "")[:2]
        limits.append(LayerLimit(line, over, low, high, distance="-" in name))
    groups, without = _groups(row["groups"]), _GROUPS.get(row.get("without"))
    return Form(groups, tuple(limits), "alone" in row, "calibrated" in row, without)


def _groups(names: Sequence[str]) -> tuple[LineGroup, ...]:
    return tuple(_GROUPS[each] for each in names)


def _material(row: Row) -> Material:
    row = {**_TABLE["kin"].get(row.get("kin"), {}), **row}
    not_counted = NOT_COUNTED.format(row.get("shown", row["name"])) + row.get("hint", "")
    stated = {key: _frozen(row[key]) for key in Material._fields if key in row}
    return Material(**{"why_no_count": not_counted, **stated})._replace(
        forms=tuple(map(_form, row.get("forms", ()))),
        besides=_groups(row.get("besides", ())),
        also=tuple((*each, 0.0)[:4] for each in stated["also"]) if "also" in stated else (),
        witness=LineWindow(*stated["witness"]) if "witness" in stated else None,
    )


_TABLE: Row = tomllib.loads(Path(__file__).with_name("materials.toml").read_text("utf-8"))
_GROUPS = {
    "MoS2": MOS2_PAIR,
    "MoS2_beside": MOS2_BESIDE,
    **{name: _group(row) for name, row in _TABLE["group"].items()},
}

MATERIALS = tuple(map(_material, _TABLE["film"]))
"""Films in the order in which they are tried: the most reliable first."""

SUBSTRATES = tuple(map(_material, _TABLE["substrate"]))
"""Substrates, tried if no film was found; silicon comes before them."""

SILICON = _material(_TABLE["silicon"])
MOS2 = MATERIALS[0]
UNKNOWN = Material(
    "unknown", "no line of MoS2 stands out, nor of another material that is known here"
)
