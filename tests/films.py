"""Files of spectra that tests write: lines that are known, photon noise, and places."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Lines = Sequence[tuple[float, float, float]]

AXIS = np.linspace(300.0, 600.0, 500)
SUBSTRATE: Lines = ((520.7, 3.4, 9000.0),)
"""Position, width and height of each line: silicon."""

MONOLAYER: Lines = (*SUBSTRATE, (384.0, 3.2, 900.0), (403.6, 5.0, 1500.0))
BILAYER: Lines = (*SUBSTRATE, (382.5, 3.2, 1500.0), (404.9, 5.0, 2600.0))


def film(lines: Lines, seed: int = 1, axis: Array = AXIS) -> Array:
    """Return the counts of one spectrum."""
    counts = np.full_like(axis, 250.0)
    for position, width, height in lines:
        counts += height / (1 + ((axis - position) / (width / 2)) ** 2)
    return np.random.default_rng(seed).poisson(counts).astype(np.float64)


def written(path: Path, counts: Array, axis: Array = AXIS) -> Path:
    """Write one spectrum as text in two columns."""
    rows = "".join(f"{x:.4f}\t{y:.6g}\n" for x, y in zip(axis, counts, strict=True))
    path.write_text(rows, "utf-8")
    return path


def written_map(path: Path, spectra: Mapping[tuple[float, float], Array]) -> Path:
    """Write spectra by their x and y in µm, as WiRE exports a map."""
    rows = [
        f"{x:.3f}\t{y:.3f}\t{shift:.4f}\t{counts:.6g}"
        for (x, y), row in spectra.items()
        for shift, counts in zip(AXIS, row, strict=True)
    ]
    path.write_text("\n".join(["#X\t\t#Y\t\t#Wave\t\t#Intensity", *rows]) + "\n", "utf-8")
    return path
