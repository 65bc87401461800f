"""Files of spectra as makers' programs write them, made anew with numbers of the tests' own.

Their shape is that of files in public repositories, of which nothing is copied: BWSpec 4.11 and
JASCO NRS-5100, LabSpec 6 XML of a LabRAM HR Evolution, TriVista of VistaControl.
"""

import math
from collections.abc import Callable, Sequence

import pytest

from labharness.analysis.formats import BadFile, read_spectra

POINTS = 40
AXIS = [500.0 - 2.5 * n for n in range(POINTS)]
"""Descending, as gratings often give it: 500 to 402.5."""


def refusal(data: bytes) -> str:
    """Return the one line in which a file is refused."""
    with pytest.raises(BadFile) as raised:
        read_spectra(data)
    said = str(raised.value)
    assert "\n" not in said
    return said


def counts(spectrum: int, points: int = POINTS) -> list[float]:
    """Return whole counts: a line at the middle on a level, another height for each spectrum."""
    middle = points / 2
    return [
        100.0 + spectrum + round(50 * (spectrum + 1) * math.exp(-(((n - middle) / 3) ** 2)))
        for n in range(points)
    ]


BWSPEC_COUNTS = ("Raw data #1", "Dark Subtracted #1", "%TR #1")


def shown(values: Sequence[float], mark: str = " ") -> str:
    return mark.join(f"{value:g}" for value in values)


def bwspec(mark: str = ";", comma: bool = True) -> bytes:
    """Write a BWSpec export; the first and last pixels have no calibrated shift."""
    head = ["File Version;BWSpec4.11_1", f"Date{mark}2026-01-20 16:24:49", f"operator{mark}"]
    head += [f"laser_wavelength{mark}532.07", f"laser_powerlevel{mark}100"]
    head += [
        mark.join(["Pixel", "Wavelength", "Wavenumber", "Raman Shift", "Dark", *BWSPEC_COUNTS, ""])
    ]
    rows = []
    for pixel, (shift, value) in enumerate(zip(AXIS[::-1], counts(0), strict=True)):
        places = ["   "] * 3 if pixel in (0, POINTS - 1) else ["540.20", "18510.10", f"{shift:.2f}"]
        numbers = ["1186.0000", f"{value + 1186:.4f}", f"{value:.4f}", "0.0000", ""]
        rows.append(mark.join([str(pixel), *places, *numbers]))
    text = "\n".join([*head, *rows]) + "\n"
    return (text.replace(".", ",").replace("BWSpec4,11", "BWSpec4.11") if comma else text).encode()


def jasco(
    mark: str = ",", encoding: str = "utf-8", laser: str = "励起波長", kind: str = "RAMAN SPECTRUM"
) -> bytes:
    """Write a JASCO export with its footer."""
    head = ["TITLE,film 7", f"DATA TYPE,{kind}", "ORIGIN,JASCO", "OWNER,", "DATE,26/01/20"]
    head += ["SPECTROMETER/DATA SYSTEM,", "XUNITS,1/CM", "YUNITS,INTENSITY"]
    head += [f"FIRSTX,  {AXIS[-1]:.4f}", f"LASTX, {AXIS[0]:.4f}", f"NPOINTS,    {POINTS}", "XYDATA"]
    rows = [f"{x:.4f},{y:g}" for x, y in zip(AXIS[::-1], counts(0), strict=True)]
    foot = ["", "##### Extended Information", "[測定情報]", "機種名,NRS-5100", "積算回数,2"]
    foot += ["CCD,DU420_OE,12", f"{laser},532.05 nm", "レーザー強度,0.7 mW", ""]
    text = "\n".join([*head, *rows, *foot])
    return text.replace(",", mark).encode(encoding)


def labspec_xml(
    nx: int = 3, ny: int = 2, unit: str = "1/cm", axis: Sequence[float] = tuple(AXIS)
) -> bytes:
    """Write a LabSpec 6 XML map; ``nx = 0`` makes it one spectrum."""

    def leaf(identity: str, text: str, kind: int = 7) -> str:
        return f'<LSX Format="{kind}" ID="{identity}">{text}</LSX>'

    def holder(identity: str, *parts: str) -> str:
        return f'<LSX Format="9" ID="{identity}" Size="{len(parts)}">{"".join(parts)}</LSX>'

    def axis_of(number: int, name: str, of: str, values: Sequence[float]) -> str:
        listed = f'<LSX Format="6" ID="0x7D6CD4DB" Size="{len(values)}">\n{shown(values)} \n</LSX>'
        return holder(f"0x{number}", listed, leaf("0x6D707974", name), leaf("0x7C696E75", of))

    intensity = holder("0x0", leaf("0x6D707974", "Intens"), leaf("0x7C696E75", "Cnt/sec"))
    axes = [intensity, axis_of(1, "Spectr", unit, axis)]
    if nx:
        axes.append(axis_of(2, "X", "µm", [2.0 * n for n in range(nx)]))
        axes.append(axis_of(3, "Y", "µm", [5.0 * n for n in range(ny)]))
    name, value, exact = "0x6D6D616E", "0x7D6C61DB", "0x8736F70"
    settings = [
        holder("0x6F707865", leaf(value, "3", 5), leaf(name, "Acq. time (s)")),
        holder("0x7CC8E0D0", leaf(name, "Grating"), leaf(value, "600 gr/mm"), leaf(exact, "600")),
        holder("0x6D7361DE", leaf(name, "Laser (nm)"), leaf(value, "532 "), leaf(exact, "532.06")),
    ]
    tree = holder("0x7A74D9D6", holder("0x7B697861", *axes)) + holder(
        "0x6C62D4D9", holder("0x8716361", *settings)
    )
    rows = "".join(
        f'<LSX_Row Format="6" Index="{n}" Size="{len(axis)}">\n{shown(counts(n, len(axis)))} \n'
        "</LSX_Row>\n"
        for n in range(max(nx * ny, 1))
    )
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<LSX_Data>\n<LSX_Tree Format="9">{tree}'
        f'</LSX_Tree>\n<LSX_Matrix Format="6" ID="0x7D6CD4DB">\n{rows}</LSX_Matrix>\n</LSX_Data>\n'
    ).encode()


def trivista(spectra: int = 4, unit: str = "Nanometer", laser: str = "532.100") -> bytes:
    """Write a TriVista map of so many frames, its axis in nm."""
    axis = [540.0 + 0.05 * n for n in range(POINTS)]
    listed = f"{POINTS}|{shown(axis, '|')}"
    attributes = f'Label="" Unit="{unit}" Type="ValueArray" LaserWave="{laser}"'
    frames = "".join(
        f'<Frame xDim="{POINTS}" yDim="1" TimeStamp="63610750581730710{n}" Type="Position" '
        f'ValuePosition="{-50 + 25 * n};-100;0">{shown(counts(n), ";")}</Frame>\n'
        for n in range(spectra)
    )
    return (
        "<!--TriVista-File. (c) S&I GmbH, all rights reserved. -->\n"
        '<XmlMain Version="1.0.1" Filename="D:\\map.tvf" DateTime="06/27/2026 17:47:10">\n'
        '<Hardware Version="2"><Spectrometers Count="0" /></Hardware>\n<Documents Count="1">\n'
        '<Document Label="Intensity" DataLabel="Counts" InfoSerialized="&lt;Info /&gt;">'
        f'<xDim Length="{POINTS}"><Calibration {attributes} ValueArray="{listed}" /></xDim>\n'
        '<yDim Length="1"><Calibration Unit="Nanometer" ValueArray="0" /></yDim>\n'
        f'<Data DataType="Double" Color="#00FFFFFF">\n{frames}</Data></Document>\n'
        "</Documents></XmlMain>\n"
    ).encode()


def grid(mark: str, words: Sequence[str], spectra: int = 5) -> bytes:
    """Write a map whose first row is the axis, below ``words``, and which has two places a row."""
    rows = [mark.join([*words, *(f"{x:.2f}" for x in AXIS)])]
    for n in range(spectra):
        rows.append(mark.join([f"{10.5 * n:.1f}", "20.0", *(f"{y:.1f}" for y in counts(n))]))
    text = "\n".join(rows) + "\n"
    return (text if mark == "," else text.replace(".", ",")).encode()


def wide(mark: str = ",", titles: str = "shift,spot1,spot2,spot3") -> bytes:
    """Write one column a spectrum."""
    columns = [AXIS, *(counts(n) for n in range(len(titles.split(",")) - 1))]
    rows = [mark.join(f"{value:.2f}" for value in row) for row in zip(*columns, strict=True)]
    text = "\n".join([titles.replace(",", mark), *rows]) + "\n"
    return (text if mark == "," else text.replace(".", ",")).encode()


MADE: dict[str, Callable[[], bytes]] = {
    "BWSpec": bwspec,
    "BWSpec with commas": lambda: bwspec(",", comma=False),
    "JASCO": jasco,
    "JASCO of a Japanese Windows": lambda: jasco(encoding="cp932"),
    "LabSpec XML": labspec_xml,
    "TriVista": trivista,
    "wafer map": lambda: grid(";", ["X", "Y"]),
    "LabSpec map with commas": lambda: grid(",", ["", ""]),
    "LabSpec map": lambda: grid("\t", ["", ""]),
    "wide CSV": wide,
    "wide CSV with semicolons": lambda: wide(";"),
}
