"""Spectra as they come from elsewhere: of known films, and of what no table holds."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from drawn_spectra import MATERIALS
from labharness.analysis.formats import Recording
from rig import HERE

Array = NDArray[np.float64]
Lines = tuple[tuple[float, float, float], ...]

TABLE: Final = HERE / "data" / "raman" / "published_lines.txt"


def _kinds() -> Iterator[tuple[str, str, Lines]]:
    for line in TABLE.read_text("utf-8").splitlines():
        if not line.startswith("#"):
            name, kind, width, _, lines = (each.strip() for each in line.split("|"))
            numbers = ([float(n) for n in each.split(":")] for each in lines.split())
            yield (
                name,
                kind,
                tuple((each[0], [*each, float(width)][2], each[1]) for each in numbers),
            )


KINDS: Final = {name: (kind, lines) for name, kind, lines in _kinds()}
"""The class of each substance and its lines: position, width, relative height."""

AXES: Final = (
    (100.0, 3300.0, 1.3),
    (150.0, 3400.0, 2.1),
    (80.0, 1800.0, 0.9),
    (200.0, 2000.0, 1.9),
    (120.0, 1250.0, 0.6),
    (100.0, 3300.0, 3.2),
    (60.0, 3500.0, 0.5),
)
"""First and last shift, and the pixel."""

NARROW: Final = ((120.0, 900.0, 0.6), (100.0, 700.0, 0.55), (140.0, 1000.0, 1.1))
CARBON: Final = ((1150.0, 3000.0, 1.4), (900.0, 2900.0, 1.8), (1200.0, 1900.0, 0.9))
FILM_AXES: Final = {
    "graphitic carbon": AXES[0:1] + AXES[5:7],
    "graphene": AXES[0:2] + AXES[5:7] + CARBON[:2],
    "graphite": AXES[0:2] + AXES[6:7] + CARBON[:2],
    "disordered carbon": AXES[:4] + CARBON[:2],
    "hBN": AXES[:4],
}
LAYERED: Final = ("MoS2", "WS2", "MoSe2", "WSe2", "MoTe2")


@dataclass(frozen=True, slots=True)
class Strange:
    """One spectrum, what it is, and its right name."""

    what: str
    name: str
    recording: Recording


def strangers(each: int, seed: int) -> Iterator[Strange]:
    """Draw every substance that is in no table, so many times, on instruments of any kind."""
    rng = np.random.default_rng(seed)
    for what, (_, lines) in KINDS.items():
        for _ in range(each):
            axis = _axis(rng, (*AXES, *NARROW, *CARBON))
            seen = [one for one in lines if axis[0] + 20 < one[0] < axis[-1] - 20]
            if seen:
                scale = float(10 ** rng.uniform(2.3, 4.7)) / max(one[2] for one in lines)
                scaled = [(at, fwhm, scale * height) for at, fwhm, height in lines]
                drawn = _drawn(axis, scaled, rng, offset_cm1=_clip(rng.normal(0, 2.5), 10))
                yield Strange(what, "unknown", drawn)


def films(each: int, seed: int) -> Iterator[Strange]:
    """Draw every material of the table on its substrates; clear enough to have a name."""
    rng = np.random.default_rng(seed)
    for what, (name, lines) in MATERIALS.items():
        for _ in range(each):
            axes = FILM_AXES.get(name, (*AXES[:5], AXES[6], *NARROW))
            axis = _axis(rng, axes)
            scale = float(10 ** rng.uniform(-0.1, 1.2))
            silicon = any(at == 520.7 for at, _, _ in lines) and axis[0] < 490 < axis[-1]
            offset = rng.normal(0, 2.5 if silicon else 1.0)
            scaled = [
                (at, fwhm, scale * height * rng.uniform(0.8, 1.25)) for at, fwhm, height in lines
            ]
            widest = 4.0 if name in LAYERED else 8.0
            yield Strange(
                what,
                name,
                _drawn(
                    axis, scaled, rng, offset_cm1=_clip(offset, 8), widest=widest, brightest=1.0
                ),
            )


def _clip(value: float, most: float) -> float:
    return float(np.clip(value, -most, most))


def _axis(rng: np.random.Generator, axes: tuple[tuple[float, float, float], ...]) -> Array:
    low, high, pixel = axes[int(rng.integers(len(axes)))]
    return np.arange(low + rng.uniform(-10, 10), high, pixel * rng.uniform(0.9, 1.1))


def _drawn(
    axis: Array,
    lines: list[tuple[float, float, float]],
    rng: np.random.Generator,
    *,
    offset_cm1: float,
    widest: float = 11.0,
    brightest: float = 5.0,
) -> Recording:
    """Draw lines on a glow, with an instrument's width, noise, and what a program does."""
    slit = max(rng.uniform(1.0, widest), 1.3 * float(axis[1] - axis[0]))
    top = max(height for _, _, height in lines)
    u = (axis - axis[0]) / (axis[-1] - axis[0])
    glow = brightest * 10 ** rng.uniform(-2.7, 0) * top
    clean = 50 + glow * (0.3 + u * rng.uniform(-0.5, 0.9) + rng.uniform(0, 0.8) * np.exp(-3 * u))
    clean += glow * rng.uniform(0, 0.5) * np.exp(-(((u - rng.uniform(0, 1)) / 0.35) ** 2))
    for position, fwhm, height in lines:
        wide = 0.5346 * fwhm + np.sqrt(0.2166 * fwhm**2 + slit**2)
        clean += (
            height * (fwhm / wide) ** 0.7 / (1 + (2 * (axis - position - offset_cm1) / wide) ** 2)
        )
    counts = rng.poisson(np.maximum(clean, 1.0)) + rng.normal(0, 6, axis.size)
    for _ in range(int(rng.poisson(0.7))):  # cosmic rays
        counts[int(rng.integers(axis.size))] += float(10 ** rng.uniform(2, 4.5))
    made = rng.random()
    if made < 0.2:
        counts = counts / counts.max()
    elif made < 0.3:
        counts = counts - np.poly1d(np.polyfit(axis, counts, 3))(axis)
    elif made < 0.36:
        counts = np.convolve(np.pad(counts, 1, mode="edge"), np.ones(3) / 3, "valid")
    return Recording("drawn", axis, "1/cm", counts[None], 532.0)
