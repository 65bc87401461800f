"""The table of materials: the lines of each, with the sources of the numbers.

Shifts in cm⁻¹ at room temperature and 457–785 nm. Windows allow for one layer to bulk, strain and
doping of films, and some 3 cm⁻¹ of an uncalibrated axis. Widths include an instrument of up to
about 8 cm⁻¹.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from labharness.analysis.lines import LineWindow
from labharness.analysis.peaks import (
    A_LINE,
    A_LINE_BESIDE,
    E_LINE,
    PEAK_WINDOW_CM1,
    PEAKS_NEED_CM1,
    THIRD_LINE,
)


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
    source: str = ""


def _line(name: str, low: float, high: float, fwhm: float, widest: float, room: float) -> LineGroup:
    """Return a group of one line, with this much background on either side."""
    return LineGroup(
        (name,),
        (LineWindow(low, high, fwhm, widest),),
        (low - room, high + room),
        (low - room / 2, high + room / 2),
    )


def _limits(rows: Mapping[str, tuple[float, float]]) -> tuple[LayerLimit, ...]:
    """Return limits of widths (``G``), ratios of heights (``2D/G``) and distances (``A1g-E2g``)."""
    limits = []
    for name, (low, high) in rows.items():
        line, over = (*re.split("[/-]", name), "")[:2]
        limits.append(LayerLimit(line, over, low, high, distance="-" in name))
    return tuple(limits)


def _also(text: str) -> tuple[tuple[float, float, float, float], ...]:
    """Return rows of lines from ``low-high most`` or ``low-high most least_width``, by commas."""
    rows = ([float(n) for n in re.split("[- ]", row)] for row in text.split(", "))
    return tuple((row[0], row[1], row[2], row[3] if row[3:] else 0.0) for row in rows)


NOT_COUNTED = "it shows {}, which is named, not counted: only MoS2 has a table of layers here"

MOS2_LIMITS = _limits({"E2g": (0, 12), "A1g": (0, 13), "A1g-E2g": (17, 28)})
MOS2_PAIR = LineGroup(("E2g", "A1g"), (E_LINE, A_LINE), PEAK_WINDOW_CM1, PEAKS_NEED_CM1)
MOS2_BESIDE = LineGroup(
    ("E2g", "A1g", "a line near 418"),
    (E_LINE, A_LINE_BESIDE, THIRD_LINE),
    PEAK_WINDOW_CM1,
    PEAKS_NEED_CM1,
)
"""On sapphire, or under a red laser: see ``peaks.THIRD_LINE``."""

MOS2 = Material(
    "MoS2",
    "",
    (Form((MOS2_PAIR,), MOS2_LIMITS), Form((MOS2_BESIDE,), MOS2_LIMITS)),
    ratios=(("A1g", "E2g"),),
    speaks_cm1=(150.0, 500.0),
    also=_also(
        "170-240 1, 280-290 0.3, 340-440 0.35, 440-475 2, 490-535 0.2, 560-660 0.6, 700-850 0.2"
    ),
    source="E' 384.5–385.5 to E2g 382–383, A1' 402.8–404 to A1g 407.5–408.5: Lee 2010, "
    "10.1021/nn1003937; Li 2012, 10.1002/adfm.201102111",
)

WS2_E = LineGroup(
    ("2LA(M) + E2g",), (LineWindow(345.0, 358.0, 8.0),), (320.0, 385.0), (332.0, 370.0)
)
WS2_A = LineGroup(("A1g",), (LineWindow(413.0, 423.0, 5.0),), (400.0, 440.0), (406.0, 430.0))
WS2_A_BESIDE = LineGroup(
    ("a line near 404", "A1g"),
    (LineWindow(398.0, 411.0, 5.0), LineWindow(413.0, 423.0, 5.0)),
    (392.0, 440.0),
    (406.0, 430.0),
    shoulders=("a line near 404",),
)
"""Beside MoS2."""

WS2_LIMITS = _limits({"A1g-2LA(M) + E2g": (58, 69), "A1g/2LA(M) + E2g": (0.08, 5)})
WS2 = Material(
    "WS2",
    NOT_COUNTED.format("WS2")
    + "; a ratio 2LA(M)/A1' above 2 at 514–532 nm suggests one layer (Berkdemir 2013, "
    "10.1038/srep01755)",
    (Form((WS2_E, WS2_A), WS2_LIMITS), Form((WS2_E, WS2_A_BESIDE), WS2_LIMITS)),
    ratios=(("2LA(M) + E2g", "A1g"),),
    speaks_cm1=(150.0, 500.0),
    also=_also(
        "140-240 0.7, 258-275 0.2, 285-345 0.5, 359-395 0.2, 475-490 0.1, 515-540 0.2, "
        "570-600 0.3, 690-780 0.3"
    ),
    source="2LA(M) 351–352 with E' 356–357, A1' 417.5 to A1g 420.5: Berkdemir 2013, "
    "10.1038/srep01755",
)

MOSE2_A = _line("A1g", 237.5, 245.0, 3.0, 12.0, 14.0)
MOSE2_E = _line("E2g", 282.0, 291.0, 5.0, 14.0, 10.0)
MOSE2_B = _line("B2g", 349.5, 356.5, 4.0, 12.0, 12.0)
MOSE2 = Material(
    "MoSe2",
    NOT_COUNTED.format("MoSe2") + "; a B2g line at 353 cm⁻¹ is absent in one layer and in bulk",
    (
        Form((MOSE2_A, MOSE2_E), _limits({"A1g": (0, 10), "E2g/A1g": (0, 1)})),
        Form((MOSE2_A, MOSE2_B), _limits({"A1g": (0, 10), "B2g/A1g": (0, 1)})),
        Form((MOSE2_A,), _limits({"A1g": (0, 8)}), alone=True, calibrated=True),
    ),
    besides=(MOSE2_B,),
    ratios=(("E2g", "A1g"), ("B2g", "A1g")),
    speaks_cm1=(150.0, 500.0),
    also=_also("100-175 0.4, 246-260 0.3, 295-325 0.3, 340-375 0.3, 410-470 0.4"),
    source="A1' 240.5–241 to A1g 242.5, E' 287–288 to E2g 286, B2g 353: Tonndorf 2013, "
    "10.1364/OE.21.004908",
)

WSE2_A = _line("A1g + E2g", 246.5, 253.5, 4.0, 12.0, 14.0)
WSE2_A_2LA = LineGroup(
    ("A1g + E2g", "2LA(M)"),
    (LineWindow(246.5, 253.0, 4.0, 12.0), LineWindow(255.5, 265.0, 8.0, 20.0)),
    (230.0, 280.0),
    (240.0, 272.0),
    shoulders=("2LA(M)",),
)
WSE2_373 = _line("373", 369.0, 378.0, 8.0, 25.0, 10.0)
WSE2_395 = _line("395", 391.0, 400.0, 8.0, 25.0, 10.0)
WSE2 = Material(
    "WSe2",
    NOT_COUNTED.format("WSe2") + "; a B2g line at 308–310 cm⁻¹ is absent in one layer",
    (
        Form((WSE2_A_2LA,), _limits({"2LA(M)/A1g + E2g": (0.15, 2)})),
        Form((WSE2_A, WSE2_373), _limits({"373/A1g + E2g": (0, 0.15)})),
        Form((WSE2_A, WSE2_395), _limits({"395/A1g + E2g": (0, 0.15)})),
        Form((WSE2_A,), _limits({"A1g + E2g": (0, 9)}), alone=True, calibrated=True),
    ),
    ratios=(("2LA(M)", "A1g + E2g"),),
    speaks_cm1=(150.0, 500.0),
    also=_also("90-245 0.4, 255-268 0.9, 300-315 0.3, 340-410 0.4, 485-540 0.2"),
    source="A1' and E' together 249.5–250.5, 2LA(M) 258–261, B2g 308–310: Tonndorf 2013, "
    "10.1364/OE.21.004908; second order 373 and 395: del Corro 2014, 10.1021/nn504088g",
)

MOTE2_A = _line("A1g", 167.5, 177.0, 3.0, 12.0, 12.0)
MOTE2_E = _line("E2g", 230.0, 239.0, 4.0, 12.0, 12.0)
MOTE2_B = _line("B2g", 285.0, 294.0, 4.0, 12.0, 8.0)
MOTE2 = Material(
    "MoTe2",
    NOT_COUNTED.format("MoTe2") + "; a B2g line near 290 cm⁻¹ is absent in one layer and in bulk",
    (Form((MOTE2_E, MOTE2_A)), Form((MOTE2_E, MOTE2_B))),
    besides=(MOTE2_A, MOTE2_B),
    ratios=(("B2g", "E2g"), ("A1g", "E2g")),
    speaks_cm1=(150.0, 500.0),
    also=_also("90-165 0.8, 178-229 0.3, 260-284 0.3, 320-360 0.3"),
    source="2H: A1g 171–174, E2g 232–236, B2g 288–291: Yamamoto 2014, 10.1021/nn5007607; "
    "Froehlicher 2015, 10.1021/acs.nanolett.5b02683",
)

D = _line("D", 1290.0, 1375.0, 30.0, 80.0, 60.0)
G = _line("G", 1560.0, 1625.0, 15.0, 60.0, 70.0)
D_G = LineGroup(
    ("D", "G"),
    (LineWindow(1290.0, 1430.0, 80.0, 450.0), LineWindow(1490.0, 1625.0, 40.0, 260.0)),
    (1050.0, 1800.0),
    (1250.0, 1660.0),
    shoulders=("D",),
)
TWO_D = LineGroup(
    ("2D",), (LineWindow(2570.0, 2760.0, 40.0, 150.0),), (2540.0, 2850.0), (2630.0, 2750.0)
)
"""2D moves by some 100 cm⁻¹ per eV of the laser, D by 50: 2600 at 785 nm, 2670–2690 at 532."""

CARBON_CM1 = (1000.0, 3400.0)
CARBON_ALSO = _also(
    "100-350 1.5, 1080-1260 0.4 30, 1430-1558 0.6 30, 1612-1632 0.4, 2380-2520 0.4, "
    "2560-2760 5, 2880-2980 0.8 40, 3150-3260 0.5"
)
"""Radial modes of nanotubes; D4 and D3 of disordered carbon, G- of nanotubes, D'; D + D'', 2D,
D + D' and 2D': Ferrari and Basko 2013; Sadezky 2005, 10.1016/j.carbon.2005.02.018."""

GRAPHENE_HINT = (
    "; a single 2D line of 24–35 cm⁻¹, two to four times as high as G, suggests one layer, but "
    "turbostratic layers look alike and doping lowers it (Ferrari 2006, "
    "10.1103/PhysRevLett.97.187401)"
)
GRAPHENE = Material(
    "graphene",
    NOT_COUNTED.format("graphene") + GRAPHENE_HINT,
    (
        Form((G, TWO_D), _limits({"G": (0, 35), "2D": (0, 45), "2D/G": (0.7, 50)})),
        # Two layers and more: a wider 2D of several parts. In bulk graphite 2D is lower than G;
        # between 0.7 and 0.8 of it a spectrometer's own response decides, and it may be either.
        Form((G, TWO_D), _limits({"G": (0, 35), "2D": (45, 85), "2D/G": (0.8, 50)})),
        # Defects lower 2D long before they widen G.
        Form(
            (G, TWO_D, D),
            _limits({"G": (0, 45), "2D": (0, 60), "2D/G": (0.2, 1), "D/G": (0.3, 5)}),
        ),
        Form(
            (G, TWO_D, D),
            _limits({"G": (0, 45), "2D": (60, 75), "2D/G": (0.2, 0.7), "D/G": (0.6, 5)}),
        ),
    ),
    besides=(D,),
    ratios=(("2D", "G"), ("D", "G")),
    speaks_cm1=CARBON_CM1,
    also=CARBON_ALSO,
    source="G 1581–1587, 2D 24–35 wide in one layer and 45–60 in two, I2D/IG: Ferrari 2006, "
    "10.1103/PhysRevLett.97.187401; Ferrari and Basko 2013, 10.1038/nnano.2013.46; D/G: Cançado "
    "2011, 10.1021/nl201432g",
)

GRAPHITE = Material(
    "graphite",
    NOT_COUNTED.format("graphite, or graphene of more than about four layers"),
    (
        Form(
            (G, TWO_D),
            _limits({"G": (0, 35), "2D": (47, 120), "2D/G": (0.15, 0.7), "D/G": (0, 0.6)}),
        ),
    ),
    besides=(D,),
    ratios=(("2D", "G"), ("D", "G")),
    speaks_cm1=CARBON_CM1,
    also=CARBON_ALSO,
    source="2D of two parts 2690 and 2725, lower than G: Ferrari 2006, "
    "10.1103/PhysRevLett.97.187401; D/G: Ferrari and Robertson 2000, 10.1103/PhysRevB.61.14095",
)

GRAPHITIC = Material(
    "graphitic carbon",
    NOT_COUNTED.format("graphene, graphite or nanotubes")
    + "; a file that reaches to 2750 cm⁻¹ tells the first two apart",
    (
        Form((G, D), _limits({"G": (0, 30), "D/G": (0, 0.5)}), without=TWO_D),
        Form((G,), _limits({"G": (0, 30)}), alone=True, without=TWO_D),
        Form((G, TWO_D), _limits({"G": (0, 40), "2D": (0, 120)})),
    ),
    besides=(D, TWO_D),
    ratios=(("2D", "G"), ("D", "G")),
    speaks_cm1=CARBON_CM1,
    most=0.2,
    most_beyond=1.5,
    also=CARBON_ALSO,
    source=GRAPHITE.source,
)

CARBON = Material(
    "disordered carbon",
    "it shows disordered carbon: neither graphene nor MoS2, so no layers",
    (Form((D_G,), _limits({"D": (45, 400), "G": (40, 200), "D/G": (0.2, 4)})),),
    ratios=(("D", "G"),),
    speaks_cm1=CARBON_CM1,
    most=0.35,
    most_beyond=3.0,
    also=CARBON_ALSO,
    broad_cm1=100.0,
    source="D 1330–1345 with the laser's colour, G 1581–1605, wide: Ferrari and Robertson 2000, "
    "10.1103/PhysRevB.61.14095",
)

HBN = Material(
    "hBN",
    NOT_COUNTED.format("hBN")
    + "; its line moves from 1366 in bulk to 1369–1370 in one layer, less than strain moves it",
    (Form((_line("E2g", 1360.0, 1374.0, 10.0, 30.0, 40.0),), _limits({"E2g": (6, 28)}), True),),
    speaks_cm1=(700.0, 1800.0),
    most=0.5,
    most_beyond=1.0,
    source="E2g 1366–1370, 8–13 wide: Gorbachev 2011, 10.1002/smll.201001628",
)

SAPPHIRE_A = _line("A1g", 414.5, 421.5, 4.0, 14.0, 10.0)
SAPPHIRE_WITNESSES = (
    _line("Eg 379", 375.0, 383.0, 5.0, 16.0, 10.0),
    _line("A1g 645", 641.0, 649.0, 6.0, 18.0, 14.0),
    _line("Eg 751", 746.0, 755.0, 6.0, 18.0, 14.0),
)
"""Eg 578 is weaker than any of these, and no witness."""

SAPPHIRE = Material(
    "sapphire",
    "it shows sapphire",
    tuple(
        Form((SAPPHIRE_A, each), _limits({f"{each.names[0]}/A1g": (0, 1)}))
        for each in SAPPHIRE_WITNESSES
    ),
    speaks_cm1=(150.0, 800.0),
    also=_also("375-455 1, 570-585 1, 640-655 2, 745-757 2, 4350-4430 99"),
    source="A1g 418 and 645, Eg 379, 432, 449, 578, 751: Porto and Krishnan 1967, "
    "J. Chem. Phys. 47, 1009",
)

SILICA_D1 = _line("D1", 480.0, 500.0, 25.0, 60.0, 22.0)
SILICA_D2 = _line("D2", 596.0, 614.0, 22.0, 60.0, 36.0)
SILICA = Material(
    "SiO2",
    "it shows silica",
    (Form((SILICA_D1, SILICA_D2), _limits({"D1": (12, 60), "D2": (10, 60), "D2/D1": (0.2, 0.9)})),),
    speaks_cm1=(150.0, 1200.0),
    most=0.7,
    also=_also("300-480 9 20, 780-840 1 20, 1020-1220 0.6 30"),
    source="D1 490 and D2 606 of fused silica on its band at 440: Galeener 1979, "
    "10.1103/PhysRevB.19.4292",
)

SILICON = Material(
    "silicon",
    "it shows silicon",
    speaks_cm1=(100.0, 1100.0),
    also=_also(
        "222-245 0.03 8, 285-320 0.3 6, 420-485 0.03 8, 505-536 9, 605-690 0.05, 810-840 0.03 8, "
        "900-1010 0.4 12, 1420-1470 0.03"
    ),
    source="520.7 ± 0.2, 2.7–3.0 wide: Parker 1967, 10.1103/PhysRev.155.712",
)
UNKNOWN = Material(
    "unknown", "no line of MoS2 stands out, nor of another material that is known here"
)

MATERIALS = (MOS2, WS2, MOSE2, WSE2, MOTE2, GRAPHENE, GRAPHITE, GRAPHITIC, CARBON, HBN)
"""Films in the order in which they are tried: the most reliable first."""

SUBSTRATES = (SAPPHIRE, SILICA)
"""Substrates, tried if no film was found; silicon comes before them."""
