"""Read the spectra in files of spectrometers and databases, and write them."""

import zlib
from collections.abc import Callable
from dataclasses import replace

from labharness.analysis.formats.bwtek import MARK as BWTEK
from labharness.analysis.formats.bwtek import parse_bwtek
from labharness.analysis.formats.columns import NoTable, parse_columns
from labharness.analysis.formats.guess import known_other, seems_text
from labharness.analysis.formats.jasco import is_jasco, jasco_text, parse_jasco
from labharness.analysis.formats.jcamp import is_jcamp, parse_jcamp
from labharness.analysis.formats.labspec import is_labspec, parse_labspec
from labharness.analysis.formats.labspec_xml import MARK as LABSPEC_XML
from labharness.analysis.formats.labspec_xml import parse_labspec_xml
from labharness.analysis.formats.maps import is_grid, parse_grid, parse_wire_text
from labharness.analysis.formats.nexus import MARK as HDF5
from labharness.analysis.formats.nexus import NexusNotes as NexusNotes
from labharness.analysis.formats.nexus import nexus_bytes as nexus_bytes
from labharness.analysis.formats.nexus import parse_nexus
from labharness.analysis.formats.own import parse_own
from labharness.analysis.formats.recording import BadFile as BadFile
from labharness.analysis.formats.recording import Recording as Recording
from labharness.analysis.formats.rod import SHIFT, parse_rod
from labharness.analysis.formats.spc import is_spc, parse_spc
from labharness.analysis.formats.table import plain_numerals
from labharness.analysis.formats.trivista import MARK as TRIVISTA
from labharness.analysis.formats.trivista import parse_trivista
from labharness.analysis.formats.wdf import MAGIC, parse_wdf
from labharness.analysis.formats.witec import parse_witec
from labharness.core.vocabulary.extras import EXTRAS

BYTES_MAX = 256 * 1024 * 1024
"""Size (bytes) of the largest file. A map of 16,000 spectra of 1,024 points has 67 MB."""

GZIP = b"\x1f\x8b"
HEAD_BYTES = 4096


def read_spectra(data: bytes) -> Recording:
    """Read a file of spectra; the format is recognised by the content, not by the file name.

    Known are text in columns (one spectrum or many) and CSV, maps whose first row is the axis, WiRE
    text, LabSpec text and XML, WITec ASCII, B&W Tek exports, JASCO text, TriVista XML, ROD CIF,
    JCAMP-DX, Galactic SPC, Renishaw WDF, NeXus, and a run's own raw_spectrum.json, each also inside
    gzip.

    Raises:
        BadFile: When the format is unknown or the content is inconsistent; the message says what
            the file seems to be.
    """
    if data.startswith(GZIP):
        data = _unzip(data)
    if len(data) > BYTES_MAX:
        raise BadFile("spectra.bytes", bytes=len(data), most=BYTES_MAX)
    if data.startswith(MAGIC):
        return parse_wdf(data)
    if data.startswith(HDF5):
        try:
            return parse_nexus(data)
        except ModuleNotFoundError:
            raise BadFile("spectra.h5py", command=EXTRAS["h5py"].command) from None
    other = known_other(data)
    if other is not None:
        raise BadFile(other)
    if is_spc(data):
        return parse_spc(data)
    if is_jasco(data):
        return parse_jasco(jasco_text(data))
    return _parse_text(_text(data))


def _is_wire(text: str, head: str) -> bool:
    first = head.splitlines()[0]
    return first.startswith("#") and "Wave" in first and "Intensity" in first


FORMATS: tuple[tuple[Callable[[str, str], bool], Callable[[str], Recording]], ...] = (
    (lambda text, head: head.startswith("{"), parse_own),
    (lambda text, head: is_jcamp(text), parse_jcamp),
    (lambda text, head: SHIFT in text, parse_rod),
    (lambda text, head: head.startswith("//Exported ASCII") or "[Header]" in head, parse_witec),
    (lambda text, head: head.startswith(BWTEK), parse_bwtek),
    (lambda text, head: LABSPEC_XML in head, parse_labspec_xml),
    (lambda text, head: TRIVISTA in head, parse_trivista),
    (_is_wire, parse_wire_text),
    (lambda text, head: is_labspec(text), parse_labspec),
)
"""The test of a text and its first characters that recognises a format, and its reader."""


def _parse_text(text: str) -> Recording:
    head = text[:HEAD_BYTES].lstrip()
    if not head:
        raise BadFile("spectra.empty")
    for is_it, parse in FORMATS:
        if is_it(text, head):
            return parse(text)
    text, notes = plain_numerals(text)
    lines = text.splitlines()
    try:
        found = parse_grid(lines) if is_grid(lines) else parse_columns(text)
    except NoTable:
        raise BadFile(seems_text(text)) from None
    return replace(found, notes=(*found.notes, *notes)) if notes else found


def _unzip(data: bytes) -> bytes:
    unzip = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    try:
        plain = unzip.decompress(data, BYTES_MAX + 1)
    except zlib.error:
        raise BadFile("spectra.gzip_damaged") from None
    if not unzip.eof and len(plain) <= BYTES_MAX:
        raise BadFile("spectra.gzip_short")
    return plain


def _text(data: bytes) -> str:
    if data.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff")):
        return data.decode("utf-32", "replace")
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace")
    head = data[:HEAD_BYTES]
    if b"\0" in head:
        if not any(head[1::2]):  # every second byte is zero: UTF-16 without its mark
            return data.decode("utf-16-le", "replace")
        if not any(head[0::2]):
            return data.decode("utf-16-be", "replace")
        raise BadFile("spectra.unknown")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:  # LabSpec and WiRE write µ and ° in the Windows code page
        return data.decode("latin-1")


def csv_text(recording: Recording) -> str:
    """Return the axis and every spectrum as CSV; `read_spectra` reads it back bit by bit.

    Lines that begin with ``#`` hold the facts about the measurement.
    """
    axis = "wavelength_nm" if recording.axis_unit == "nm" else "raman_shift_cm1"
    lines = [f"# read_from={recording.format}"]
    if recording.laser_nm is not None:
        lines.append(f"# laser_nm={recording.laser_nm!r}")
    lines.append(
        ",".join([axis, *(f"intensity_{n}" for n in range(1, len(recording.intensity) + 1))])
    )
    for pixel, row in zip(recording.axis.tolist(), recording.intensity.T.tolist(), strict=True):
        lines.append(",".join(map(repr, [pixel, *row])))
    return "\n".join(lines) + "\n"
