"""Files of spectra that a command names: read, or refused in one line."""

from pathlib import Path
from typing import TYPE_CHECKING

from labharness.core.files.named import open_named
from labharness.faces.cli.show import BadUse, looking

if TYPE_CHECKING:
    from labharness.analysis.formats import Recording


def file_bytes(path: Path) -> bytes:
    """Return the content of a file, up to a byte more than any reader takes.

    Raises:
        BadUse: It cannot be read.
    """
    from labharness.analysis.formats import BYTES_MAX

    with looking(path, BadUse), open_named(path) as file:
        return file.read(BYTES_MAX + 1)


def recording_of(path: Path, data: bytes, laser_nm: float | None = None) -> "Recording":
    """Return the spectra in the content of a file.

    Args:
        path: The name of the file.
        data: Its content.
        laser_nm: Laser wavelength, if the file states none.

    Raises:
        BadUse: It holds no spectra, or they do not fit to that laser.
    """
    from labharness.analysis.formats import read_spectra

    try:
        recording = read_spectra(data)
        return recording if laser_nm is None else recording.with_laser(laser_nm)
    except ValueError as why:  # BadFile is one
        raise BadUse("pair", what=str(path), why=str(why)) from None
