"""Spectra drawn line by line from published positions, sharing no number with the analysis."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from labharness.analysis.formats import Recording

__all__ = ["MATERIALS", "OTHERS", "SILICON", "Lines", "draw", "recording"]

Array = NDArray[np.float64]
Lines = tuple[tuple[float, float, float], ...]
"""Position in cm⁻¹, full width at half maximum in cm⁻¹, height in counts."""

SILICON: Lines = ((520.7, 3.6, 20_000), (303.0, 12.0, 500), (960.0, 50.0, 600))
SAPPHIRE: Lines = (
    (418.0, 5.0, 3000),
    (379.0, 5.0, 600),
    (432.0, 5.0, 300),
    (449.0, 5.0, 300),
    (578.0, 7.0, 400),
    (645.0, 7.0, 900),
    (751.0, 7.0, 1200),
)
GLASS: Lines = ((440.0, 180.0, 1500), (490.0, 30.0, 500), (606.0, 25.0, 250), (800.0, 60.0, 400))
MOS2: Lines = ((384.5, 3.2, 1200), (404.2, 5.0, 1800), (454.0, 30.0, 500))
WS2: Lines = ((351.0, 9.0, 3000), (356.0, 4.0, 1500), (418.0, 5.0, 900), (176.0, 8.0, 500))

MATERIALS: dict[str, tuple[str, Lines]] = {
    "MoS2 on silicon": ("MoS2", (*MOS2, *SILICON)),
    "MoS2 on sapphire, whose line at 418 is beside A1g": ("MoS2", (*MOS2, *SAPPHIRE)),
    "MoS2 on glass": ("MoS2", (*MOS2, *GLASS)),
    "WS2 on silicon": ("WS2", (*WS2, *SILICON)),
    "WS2 on sapphire": ("WS2", (*WS2, *SAPPHIRE)),
    "bulk WS2": ("WS2", ((351.0, 9.0, 700), (355.5, 4.0, 1200), (420.5, 5.0, 1900), *SILICON)),
    "one layer of MoSe2": ("MoSe2", ((240.8, 3.0, 2500), (287.0, 6.0, 200), *SILICON)),
    "one layer of MoSe2 whose E is lost in noise": (
        "MoSe2",
        ((240.8, 3.0, 900), (287.0, 6.0, 20), *SILICON),
    ),
    "few layers of MoSe2": (
        "MoSe2",
        ((242.3, 3.0, 2500), (286.0, 6.0, 200), (353.0, 4.0, 150), *SILICON),
    ),
    "one layer of WSe2": (
        "WSe2",
        ((249.8, 5.0, 3000), (260.0, 10.0, 1500), (373.0, 10.0, 200), *SILICON),
    ),
    "bulk WSe2": ("WSe2", ((249.8, 5.0, 3000), (258.0, 10.0, 600), (309.0, 4.0, 150), *SILICON)),
    "few layers of MoTe2": (
        "MoTe2",
        ((171.5, 4.0, 500), (235.0, 4.0, 2000), (289.0, 4.0, 900), *SILICON),
    ),
    "bulk MoTe2": ("MoTe2", ((174.0, 4.0, 900), (233.5, 4.0, 2000))),
    "graphene without D": ("graphene", ((1583.0, 14.0, 1000), (2672.0, 30.0, 2700), *SILICON)),
    "graphene with D": (
        "graphene",
        ((1345.0, 25.0, 300), (1583.0, 14.0, 1000), (1620.0, 8.0, 60), (2672.0, 30.0, 2200)),
    ),
    "graphene of two layers": (
        "graphene",
        (
            (1582.0, 14.0, 1000),
            (2655.0, 28.0, 200),
            (2685.0, 28.0, 600),
            (2700.0, 28.0, 600),
            (2715.0, 28.0, 200),
        ),
    ),
    "graphene full of defects": (
        "graphene",
        ((1345.0, 30.0, 1500), (1585.0, 30.0, 1000), (1620.0, 15.0, 300), (2680.0, 50.0, 500)),
    ),
    "graphite": ("graphite", ((1581.0, 14.0, 2000), (2685.0, 45.0, 300), (2725.0, 35.0, 850))),
    "graphite with D": (
        "graphite",
        ((1350.0, 45.0, 500), (1581.0, 18.0, 2000), (2695.0, 70.0, 900)),
    ),
    "nanotubes": (
        "graphitic carbon",
        ((165.0, 8.0, 300), (1345.0, 40.0, 150), (1591.0, 15.0, 2500), (2660.0, 40.0, 700)),
    ),
    "soot": ("disordered carbon", ((1340.0, 150.0, 1000), (1595.0, 80.0, 1100), *SILICON)),
    "hBN on silicon": ("hBN", ((1366.0, 9.0, 900), *SILICON)),
    "hBN alone": ("hBN", ((1366.0, 9.0, 900),)),
    "bare sapphire": ("sapphire", SAPPHIRE),
    "bare glass": ("SiO2", GLASS),
    "bare silicon": ("silicon", SILICON),
}
"""What it is, the name it must get, and its lines."""

OTHERS: dict[str, Lines] = {
    "polystyrene": (
        (391.8, 14.0, 60),
        (414.6, 14.0, 60),
        (621.0, 9.0, 800),
        (1001.0, 8.0, 5000),
        (1031.0, 9.0, 1500),
        (1602.0, 12.0, 2000),
        (3054.0, 15.0, 3000),
    ),
    "MoO3": (
        (158.0, 6.0, 1000),
        (245.0, 5.0, 200),
        (284.0, 6.0, 1200),
        (338.0, 6.0, 600),
        (379.0, 6.0, 300),
        (666.0, 10.0, 1500),
        (819.0, 8.0, 6000),
        (996.0, 7.0, 3000),
    ),
    "MoO2": (
        (204.0, 8.0, 800),
        (229.0, 8.0, 900),
        (345.0, 10.0, 500),
        (363.0, 10.0, 700),
        (495.0, 10.0, 800),
        (744.0, 15.0, 900),
    ),
    "ReS2": (
        (151.0, 4.0, 1500),
        (212.0, 4.0, 2000),
        (235.0, 4.0, 700),
        (307.0, 5.0, 900),
        (349.0, 5.0, 300),
        (377.0, 5.0, 200),
        (407.0, 5.0, 250),
        (418.0, 5.0, 400),
    ),
    "anatase": (
        (144.0, 10.0, 9000),
        (399.0, 20.0, 1500),
        (515.0, 22.0, 1500),
        (639.0, 25.0, 2000),
    ),
    "hematite": (
        (226.0, 8.0, 1500),
        (246.0, 8.0, 400),
        (293.0, 10.0, 2000),
        (412.0, 12.0, 1200),
        (500.0, 20.0, 300),
        (613.0, 18.0, 900),
    ),
    "black phosphorus": ((362.0, 3.0, 2000), (439.0, 3.0, 1500), (467.0, 3.0, 3500)),
    "sulfur": ((153.0, 5.0, 3000), (219.0, 5.0, 3000), (246.0, 5.0, 300), (473.0, 5.0, 3500)),
    "calcite": ((155.0, 6.0, 500), (281.0, 8.0, 1500), (711.0, 6.0, 600), (1086.0, 5.0, 5000)),
    "quartz": ((128.0, 6.0, 900), (206.0, 20.0, 1300), (464.0, 7.0, 4000)),
    "diamond": ((1332.0, 5.0, 4000),),
    "fluorescence": ((600.0, 900.0, 20_000),),
}
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
