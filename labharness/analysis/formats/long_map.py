"""Maps in long form, by Renishaw WiRE and others: one row per pixel, with its place first."""

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from labharness.analysis.arrays import Array
from labharness.analysis.formats.recording import BadFile, Recording
from labharness.analysis.formats.rows import Table, left_out, table_of
from labharness.analysis.formats.units import in_other_unit
from labharness.analysis.formats.windows import on_one_axis, runs_of

PLACES = {each: f"{each.lower()}_um" for each in "XYZxyz"} | dict.fromkeys(
    ("Time", "time", "t"), "time_s"
)
NAME = "WiRE text"


def parse_wire_text(text: str) -> Recording:
    """Read Renishaw WiRE text: ``#Wave #Intensity``, in maps after ``#X #Y`` or ``#Time``.

    Raises:
        BadFile: When a column is missing or the spectra do not share one axis.
    """
    lines = text.splitlines()
    columns = [part.strip("# ") for part in lines[0].split("\t") if part.strip("# ")]
    if columns[-2:] != ["Wave", "Intensity"]:
        raise BadFile(f"{NAME}: the columns are {columns}, the last two must be Wave, Intensity")
    table = table_of(NAME, lines[1:], 2)
    if table.values.shape[1] != len(columns):
        raise BadFile(
            f"{NAME}: {table.values.shape[1]} columns of numbers under {len(columns)} headings"
        )
    return parse_long(columns, table, name=NAME)


def parse_long(
    titles: Sequence[str],
    table: Table,
    *,
    name: str = "text of a map",
    header: Mapping[str, str] | None = None,
    laser_nm: float | None = None,
) -> Recording:
    """Read rows of places, axis and intensity; a spectrum begins where the axis jumps back.

    A spectrum whose axis differs from most (a row was cut) is left out and named. If no two axes
    agree, the runs are windows of one spectrum.

    Args:
        titles: Headings of all columns; the last two are axis and intensity.
        table: The rows.
        name: Name of the format.
        header: Entries above the table.
        laser_nm: Wavelength of the laser, if the file names it.

    Raises:
        BadFile: When the spectra do not share one axis.
    """
    wave, counts = table.values[:, -2], table.values[:, -1]
    runs = _runs(wave)
    axes = [wave[run].tobytes() for run in runs]
    common, times = Counter(axes).most_common(1)[0]
    title = titles[-2].lower()
    unit = "nm" if "nm" in title or "wavelength" in title else "1/cm"
    wave, unit = in_other_unit(name, title, wave) or (wave, unit)
    if times == 1 and len(runs) > 1:
        if len(titles) > 2:
            raise BadFile(f"{name}: the spectra of this map do not share one axis")
        axis, rows, notes = on_one_axis(name, [(wave[run], counts[run]) for run in runs])
        notes = (*table.notes, *notes)
        return Recording(name, axis, unit, rows, laser_nm, header=header or {}, notes=notes)
    kept = [n for n, axis in enumerate(axes) if axis == common]
    gone = [n + 1 for n, axis in enumerate(axes) if axis != common]
    if len(gone) > max(1, len(kept)):
        raise BadFile(f"{name}: the spectra of this map do not share one axis")
    starts = [runs[n].start for n in kept]
    places = {
        PLACES.get(title.strip("# "), title.strip("# ")): table.values[starts, column]
        for column, title in enumerate(titles[:-2])
    }
    return Recording(
        name,
        wave[runs[kept[0]]],
        unit,
        np.stack([counts[runs[n]] for n in kept]),
        laser_nm=laser_nm,
        places=places,
        header=header or {},
        notes=(*table.notes, *left_out("spectrum", gone, "on the axis of the others")),
    )


def _runs(wave: Array) -> list[slice]:
    """Split at jumps; a map of very short spectra is split where its first pixel repeats."""
    runs = runs_of(wave)
    again = np.nonzero(wave == wave[0])[0]
    if len(runs) > 1 or again.size < 2:
        return runs
    ends = [*again.tolist(), wave.size]
    return [slice(a, b) for a, b in itertools.pairwise(ends)]
