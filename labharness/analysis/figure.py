"""One spectrum with its fitted lines marked, drawn as SVG text."""

import math
from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import NDArray

from labharness.analysis.peaks import PeakFit
from labharness.analysis.spectrum import Spectrum

__all__ = ["spectrum_svg"]

Array = NDArray[np.float64]

WIDTH, HEIGHT = 900, 460
LEFT, RIGHT, TOP, BOTTOM = 80, 20, 50, 48
FLOOR = HEIGHT - BOTTOM
HEADROOM = 1.12
"""The highest line leaves place for its name."""

GROUPS_MAX = 2000
"""Each group of points is drawn by its lowest and highest, so that no line is lost."""

TICKS_MAX = 8
INK, LINE, MARK, GRID = "#222", "#0b6e99", "#b3261e", "#d5d5d5"


@dataclass(frozen=True, slots=True)
class _Frame:
    """Where numbers lie on the paper."""

    x_low: float
    x_high: float
    y_low: float
    y_high: float

    def x(self, shift_cm1: float) -> float:
        return LEFT + (shift_cm1 - self.x_low) / (self.x_high - self.x_low) * (WIDTH - LEFT - RIGHT)

    def y(self, counts: float) -> float:
        return FLOOR - (counts - self.y_low) / (self.y_high - self.y_low) * (FLOOR - TOP)


def spectrum_svg(title: str, subtitle: str, spectrum: Spectrum, fit: PeakFit | None) -> str:
    """Draw counts against Raman shift, with MoS2 lines marked where they were fitted.

    Args:
        title: Bold line above.
        subtitle: Line below it.
        spectrum: What is drawn.
        fit: The two lines of MoS2, when they were found.
    """
    x, y = _thinned(spectrum.shift_cm1, spectrum.counts)
    low = min(float(y.min()), 0.0)
    top = low + (float(y.max()) - low) * HEADROOM
    frame = _Frame(float(x[0]), float(x[-1]), low, top if top > low else low + 1.0)
    middle = (LEFT + WIDTH - RIGHT) / 2
    points = " ".join(
        f"{frame.x(shift):.1f},{frame.y(counts):.1f}"
        for shift, counts in zip(x.tolist(), y.tolist(), strict=True)
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'font-family="sans-serif" font-size="13" fill="{INK}">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        _text(LEFT, 20, title, "start", ' font-size="15" font-weight="bold"'),
        _text(LEFT, 39, subtitle, "start"),
        *_grid(frame),
        f'<polyline points="{points}" fill="none" stroke="{LINE}" stroke-width="1.1"/>',
        *(_marks(frame, spectrum, fit) if fit is not None else ()),
        _text(middle, HEIGHT - 10, "Raman shift / cm⁻¹"),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _thinned(x: Array, y: Array) -> tuple[Array, Array]:
    """Keep lowest and highest of each group, in order."""
    size = math.ceil(x.size / GROUPS_MAX)
    if size == 1:
        return x, y
    kept: list[int] = []
    for first in range(0, x.size, size):
        group = y[first : first + size]
        kept += sorted({first + int(group.argmin()), first + int(group.argmax())})
    return x[kept], y[kept]


def _grid(frame: _Frame) -> list[str]:
    found = []
    for value in _ticks(frame.x_low, frame.x_high):
        at = frame.x(value)
        found.append(f'<path d="M{at:.1f} {TOP}V{FLOOR}" stroke="{GRID}"/>')
        found.append(_text(at, FLOOR + 18, f"{value:g}"))
    for value in _ticks(frame.y_low, frame.y_high):
        at = frame.y(value)
        found.append(f'<path d="M{LEFT} {at:.1f}H{WIDTH - RIGHT}" stroke="{GRID}"/>')
        found.append(_text(LEFT - 7, at + 4, f"{value:g}", "end"))
    return found


def _ticks(low: float, high: float) -> list[float]:
    """Give round numbers within the range: steps of 1, 2 or 5 times a power of ten."""
    rough = (high - low) / TICKS_MAX
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    first, last = math.ceil(low / step), math.floor(high / step)
    return [number * step for number in range(first, last + 1)]


def _marks(frame: _Frame, spectrum: Spectrum, fit: PeakFit) -> list[str]:
    found = []
    lines = (
        ("E", fit.e_position_cm1, "end", -6),
        ("A", fit.a_position_cm1, "start", 6),
    )
    for name, position, anchor, beside in lines:
        counts = float(np.interp(position, spectrum.shift_cm1, spectrum.counts))
        at, tip = frame.x(position), frame.y(counts)
        found.append(
            f'<path d="M{at:.1f} {tip - 4:.1f}V{tip - 18:.1f}" stroke="{MARK}" stroke-width="1.5"/>'
        )
        text = f"{name} {position:.1f}"
        found.append(_text(at + beside, tip - 10, text, anchor, f' fill="{MARK}"'))
    return found


def _text(x: float, y: float, text: str, anchor: str = "middle", more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{escape(text)}</text>'
