"""JASCO text: ``KEY,value`` lines, ``XYDATA``, pairs, and a footer ``##### Extended Information``.

Written from files of an NRS-5100 in a public repository (Spectra Manager, Japanese and English).
The laser is named only in the footer.
"""

from labharness.analysis.formats.recording import BadFile, Recording
from labharness.analysis.formats.table import entry_of, laser_of, number_of, table_of
from labharness.analysis.formats.windows import split_runs

NAME = "JASCO text"
DATA, FOOTER = "XYDATA", "##### Extended Information"
HEAD_BYTES = 4096
UNITS = {
    **dict.fromkeys(("1/CM", "CM-1", "RAMAN SHIFT", "RAMAN SHIFT [CM-1]"), "1/cm"),
    **dict.fromkeys(("NANOMETERS", "NM", "WAVELENGTH [NM]"), "nm"),
}
LASERS = ("Laser wavelength", "Excitation wavelength", "励起波長")


def is_jasco(data: bytes) -> bool:
    """Recognise the format by its first key and by the line above the data."""
    head = data[:HEAD_BYTES].lstrip(b"\xef\xbb\xbf \r\n")
    return head.startswith((b"TITLE,", b"TITLE\t", b"TITLE;")) and b"XYDATA" in head


def jasco_text(data: bytes) -> str:
    """Decode the file: newer programs write UTF-8, a Japanese Windows its own code page."""
    for encoding in ("utf-8-sig", "cp932"):
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            continue
    return data.decode("latin-1")


def parse_jasco(text: str) -> Recording:
    """Read the spectrum.

    Raises:
        BadFile: On an infrared or other spectrum, an unknown axis, or missing data.
    """
    lines = text.splitlines()
    plain = [line.strip() for line in lines]
    if DATA not in plain:
        raise BadFile("spectra.no_line", format=NAME, line=DATA)
    start = plain.index(DATA)
    stop = next((n for n in range(start, len(plain)) if plain[n].startswith("#####")), len(plain))
    # In some exports only a blank line stands before the footer.
    stop = next((n for n in range(start + 1, stop) if not plain[n]), stop)
    header = dict(_entry(line) for line in [*lines[:start], *lines[stop:]] if line.strip())
    kind = header.get("DATA TYPE", "").upper()
    if kind and "RAMAN" not in kind:
        raise BadFile("spectra.data_type", format=NAME, found=kind[:60])
    stated = header.get("XUNITS", "").upper()
    if stated not in UNITS:
        raise BadFile("spectra.xunits", format=NAME, found=stated[:60], known=", ".join(UNITS))
    table = table_of(NAME, lines[start + 1 : stop], start + 2, header)
    if table.values.shape[1] < 2:
        raise BadFile("spectra.one_below", format=NAME, line=DATA)
    axis, rows, notes = split_runs(NAME, table.values[:, 0], table.values[:, 1])
    notes = (*notes, *_point_count_note(header, len(axis)))
    laser_nm = laser_of(next((header[key] for key in LASERS if key in header), ""))
    return table.recording(axis, UNITS[stated], rows, notes=notes, laser_nm=laser_nm)


def _point_count_note(header: dict[str, str], points: int) -> tuple[str, ...]:
    stated = number_of(header.get("NPOINTS", ""))
    if stated is None or stated == points:
        return ()
    return (f"the file has {points} points and states NPOINTS {stated:g}",)


def _entry(line: str) -> tuple[str, str]:
    return entry_of(line, next((mark for mark in "\t;," if mark in line), ","))
