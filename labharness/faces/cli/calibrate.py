"""``labharness calibrate``: the microscope's own ratios from spectra of a known monolayer."""

import argparse
import json
import re
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labharness.core.clock import wall_clock_utc
from labharness.core.files.named import open_named
from labharness.faces.cli import EXIT_COMPLETED, EXIT_USAGE
from labharness.faces.cli.show import complain, say, write_whole
from labharness.lab.config.capability_tables import offered
from labharness.lab.config.lab_file import BadLabFile, LabFile, parse

if TYPE_CHECKING:
    from labharness.analysis import SpotEvidence
    from labharness.analysis.calibration import Calibration, Glow

__all__ = ["HOME", "calibrate", "with_tables"]

TABLES = ("a1g_si", "pl_raman")
HOME = "capability.cvd-material-synthesis"  # the table of a lab file that they stand in


class _Unreadable(Exception):
    """One plain line about a file that cannot be read or written."""


def calibrate(chosen: argparse.Namespace) -> int:
    """Print the tables of the lab file, or write them; 1 where the sample is no monolayer."""
    from labharness.analysis.calibration import a1g_si_of, pl_raman_of

    day: date = chosen.date or wall_clock_utc().date()
    spots: list[SpotEvidence] = []
    shining: list[tuple[SpotEvidence, float]] = []
    glows: list[Glow] = []
    try:
        for name in chosen.files:
            data = _read(Path(name))
            found = _spots(Path(name), data, chosen.laser_nm)
            spots += found.values()
            exposures, glow = _glows(data)
            shining += [(spot, exposures[at]) for at, spot in found.items() if at < len(exposures)]
            glows += glow
        tables: dict[str, Calibration] = {"a1g_si": a1g_si_of(spots)}
        pl = pl_raman_of(shining, glows)
        if pl is not None:
            tables["pl_raman"] = pl
        text = _told(tables, chosen.on, day)
        if chosen.write is None:
            say(text.rstrip("\n"))
            return EXIT_COMPLETED
        _write(Path(chosen.write), text, tuple(tables))
    except _Unreadable as why:
        complain(f"labharness calibrate: {why}")
        return EXIT_USAGE
    for name, row in tables.items():
        say(f"[{HOME}.{name}] {row.value:.4g} ± {row.uncertainty:.2g} from {row.spots} spots")
    say(f"written: {chosen.write}; standing approvals of that lab hold for the file as it was")
    return EXIT_COMPLETED


def _read(path: Path) -> bytes:
    from labharness.analysis.formats import BYTES_MAX

    try:
        with open_named(path) as file:
            return file.read(BYTES_MAX + 1)
    except OSError as why:
        raise _Unreadable(f"{path}: {why.strerror}") from None


def _spots(path: Path, data: bytes, laser_nm: float | None) -> "dict[int, SpotEvidence]":
    """Return the spectra that show MoS2, by their place in the file.

    Raises:
        NotOneLayer: None of them does.
    """
    from labharness.analysis import SpotEvidence, la_over_e
    from labharness.analysis.assess import assess
    from labharness.analysis.calibration import NotOneLayer
    from labharness.analysis.formats import read_spectra

    try:
        recording = read_spectra(data)
        if laser_nm is not None:
            recording = recording.with_laser(laser_nm)
        found = assess(recording)
    except ValueError as why:  # BadFile is one
        raise _Unreadable(f"{path}: {why}") from None
    spots = {
        at: SpotEvidence(fit, silicon, None, la_over_e(spectrum, fit))
        for at, (fit, silicon, spectrum) in enumerate(
            zip(found.fits, found.silicon, found.spectra, strict=True)
        )
        if fit is not None
    }
    if not spots:
        raise NotOneLayer(f"{path}: it shows {found.material}, and a calibration takes MoS2")
    return spots


def _glows(data: bytes) -> "tuple[list[float], list[Glow]]":
    """Return exposures and PL of a run's raw_spectrum.json; other files have none."""
    from labharness.analysis.calibration import Glow

    try:
        found: Any = json.loads(data)
        dark = float(found["dark_counts"])
        exposures = [float(spot["exposure_s"]) for spot in found["raman"]]
        glows = [
            Glow(
                each["wavelength_nm"],
                [value - dark for value in each["counts"]],
                float(each["exposure_s"]),
            )
            for each in found["photoluminescence"]
        ]
    except (ValueError, LookupError, TypeError):
        return [], []
    return exposures, glows


def _told(tables: "dict[str, Calibration]", on: str, day: date) -> str:
    parts = []
    for name, row in tables.items():
        parts.append(
            f"[{HOME}.{name}] # from {row.spots} spots, by labharness calibrate\n"
            f"value = {row.value:.4g}\n"
            f"uncertainty = {row.uncertainty:.2g}\n"
            f"date = {day.isoformat()}\n"
            f"on = {json.dumps(on, ensure_ascii=False)}\n"
        )
    return "\n".join(parts)


def _write(path: Path, text: str, names: tuple[str, ...]) -> None:
    try:
        before = path.read_text("utf-8")
    except OSError as why:
        raise _Unreadable(f"{path}: {why.strerror}") from None
    except UnicodeDecodeError:
        raise _Unreadable(f"{path}: it is no text in UTF-8, as a lab file is") from None
    try:
        _read_strictly(before, path)
        after = with_tables(before, text, names)
        _read_strictly(after, path)
        write_whole(path, after.encode())
    except BadLabFile as why:
        raise _Unreadable(str(why)) from None
    except OSError as why:
        raise _Unreadable(f"{path}: {why.strerror}") from None


def _read_strictly(text: str, path: Path) -> None:
    """Refuse a lab file that cannot be honoured, or that takes no calibration."""
    from labharness.work.capability.cvd import CAPABILITY

    name = CAPABILITY.declaration.name
    tables = parse(LabFile, text, str(path)).capability
    if name not in tables:
        raise BadLabFile(f"{path}: it has no [{HOME}]")
    if wrong := offered({name: tables[name]}, {name: CAPABILITY})[1]:
        raise BadLabFile(f"{path}: {'; '.join(wrong)}")


def with_tables(lab: str, text: str, names: tuple[str, ...]) -> str:
    """Put the tables into a lab file's text: after that of growths, in place of older ones."""
    for name in TABLES:
        if name in names:
            lab = re.sub(
                rf"^\[{re.escape(HOME)}\.{name}\].*\n(?:(?!\[).*\n?)*", "", lab, flags=re.MULTILINE
            )
    if "a1g_si" in names:
        lab = re.sub(r"^(?:a1g_si_monolayer|source) *=.*\n", "", lab, flags=re.MULTILINE)
    return re.sub(
        rf"^\[{re.escape(HOME)}\].*\n(?:(?!\[).*\n?)*",
        lambda found: found.group().rstrip("\n") + "\n\n" + text.rstrip("\n") + "\n\n",
        lab,
        count=1,
        flags=re.MULTILINE,
    )
