"""Spectra drawn line by line from published positions, sharing no number with the analysis."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from labharness.analysis.formats import Recording
from rig import HERE

Array = NDArray[np.float64]
Lines = tuple[tuple[float, float, float], ...]
"""Position in cm⁻¹, full width at half maximum in cm⁻¹, height in counts."""


def _drawn() -> Iterator[tuple[str, str, Lines]]:
    parts: dict[str, Lines] = {}
    for row in (HERE / "data" / "raman" / "drawn_lines.txt").read_text("utf-8").splitlines():
        if row.startswith("#"):
            continue
        name, named, words = (each.strip() for each in row.split("|"))
        lines: Lines = ()
        for word in words.split():
            numbers = [float(each) for each in word.split(":")] if ":" in word else []
            lines += ((numbers[0], numbers[1], numbers[2]),) if numbers else parts[word]
        parts[name.removeprefix("part ")] = lines
        yield name, named, lines


_ALL = {name: (named, lines) for name, named, lines in _drawn()}
SILICON, SAPPHIRE, GLASS, MOS2, WS2 = (
    _ALL[f"part {name}"][1] for name in ("silicon", "sapphire", "glass", "MoS2", "WS2")
)
MATERIALS = {name: each for name, each in _ALL.items() if each[0] not in ("", "-")}
"""What it is, the name it must get, and its lines."""

OTHERS = {name: lines for name, (named, lines) in _ALL.items() if named == "-"}
"""What is in no table here, and must get no name from it."""


def draw(
    axis: Array,
    lines: Sequence[tuple[float, float, float]],
    rng: np.random.Generator,
    *,
    background: float = 400.0,
    offset_cm1: float = 0.0,
) -> Array:
    """Return counts with photon and read noise, each line a Lorentz line moved by an offset."""
    clean = np.full(axis.size, float(background))
    for position, fwhm, height in lines:
        clean += height / (1 + (2 * (axis - position - offset_cm1) / fwhm) ** 2)
    counts: Array = rng.poisson(clean) + rng.normal(0, 6, axis.size)
    return counts


def recording(axis: Array, rows: Array, laser_nm: float | None = 532.0) -> Recording:
    """Return the file that these rows would be."""
    return Recording("drawn", axis, "1/cm", np.atleast_2d(rows), laser_nm)
