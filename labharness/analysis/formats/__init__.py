"""Files of spectrometers and databases: bytes in, spectra out, and back."""

import zlib

from labharness.analysis.formats.jcamp import parse_jcamp
from labharness.analysis.formats.labspec import parse_labspec
from labharness.analysis.formats.nexus import NexusNotes, nexus_bytes
from labharness.analysis.formats.own import parse_own
from labharness.analysis.formats.recording import BadFile, Recording
from labharness.analysis.formats.rod import SHIFT, parse_rod
from labharness.analysis.formats.spc import is_spc, parse_spc
from labharness.analysis.formats.tables import parse_bwtek, parse_columns, parse_wire_text
from labharness.analysis.formats.wdf import MAGIC, parse_wdf
from labharness.analysis.formats.witec import parse_witec

__all__ = [
    "BYTES_MAX",
    "BadFile",
    "NexusNotes",
    "Recording",
    "csv_text",
    "nexus_bytes",
    "read_spectra",
]

BYTES_MAX = 256 * 1024 * 1024
"""A map of 16,000 spectra of 1,024 points is 67 MB; more than this is no file of spectra."""

GZIP = b"\x1f\x8b"
HDF5 = b"\x89HDF"
HEAD_BYTES = 4096


def read_spectra(data: bytes) -> Recording:
    """Read a file of spectra; its content says which format it is, not its name.

    Knows two-column text and CSV, WiRE text, LabSpec text, WITec ASCII, B&W Tek exports, ROD CIF,
    JCAMP-DX, Galactic SPC (new format), Renishaw WDF and a run's own raw_spectrum.json, each also
    inside gzip.

    Raises:
        BadFile: When the content is none of these or does not hold together.
    """
    if data.startswith(GZIP):
        data = _unzip(data)
    if len(data) > BYTES_MAX:
        raise BadFile(f"it has {len(data)} bytes; at most {BYTES_MAX} are read")
    if data.startswith(MAGIC):
        return parse_wdf(data)
    if is_spc(data):
        return parse_spc(data)
    if data.startswith(HDF5):
        raise BadFile("it is HDF5, which is written here and not read")
    return _parse_text(_text(data))


def _parse_text(text: str) -> Recording:
    head = text[:HEAD_BYTES].lstrip()
    if not head:
        raise BadFile("it is empty")
    if head.startswith("{"):
        return parse_own(text)
    if head.startswith("##"):
        return parse_jcamp(text)
    if SHIFT in text:
        return parse_rod(text)
    if head.startswith("//Exported ASCII") or "[Header]" in head:
        return parse_witec(text)
    if head.startswith("File Version;BWRam"):
        return parse_bwtek(text)
    first = head.splitlines()[0]
    if first.startswith("#") and "Wave" in first and "Intensity" in first:
        return parse_wire_text(text.lstrip())
    if (first.startswith("#") and "=\t" in first) or text.startswith("\t"):
        return parse_labspec(text)
    return parse_columns(text)


def _unzip(data: bytes) -> bytes:
    unzip = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    try:
        plain = unzip.decompress(data, BYTES_MAX + 1)
    except zlib.error as why:
        raise BadFile(f"gzip: {why}") from None
    if not unzip.eof and len(plain) <= BYTES_MAX:
        raise BadFile("gzip: the file ends too early")
    return plain


def _text(data: bytes) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace")
    if b"\0" in data[:HEAD_BYTES]:
        raise BadFile("it is neither text nor a binary format that is read here (SPC, WDF)")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:  # LabSpec and WiRE write µ and ° in the Windows code page
        return data.decode("latin-1")


def csv_text(recording: Recording) -> str:
    """Write the axis and every spectrum as CSV; `read_spectra` reads it back to the last bit.

    Lines beginning with ``#`` say what is known of the measurement.
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
