"""``labharness calibrate``: the ratios of this microscope from spectra of a known monolayer."""

import argparse
import json
import re
from datetime import date
from pathlib import Path
from typing import Any

from labharness.analysis.assess import assess
from labharness.analysis.calibration import Calibration, Glow, NotOneLayer, a1g_si_of, pl_raman_of
from labharness.analysis.layers import SpotEvidence, la_over_e
from labharness.core.clock import wall_clock_utc
from labharness.core.vocabulary.texts import Text, several
from labharness.faces.cli.analyse import file_bytes, recording_of
from labharness.faces.cli.show import BadUse, looking, say, write_whole
from labharness.lab.config.capability_tables import offered
from labharness.lab.config.lab_file import BadLabFile, LabFile, parse

TABLES = ("a1g_si", "pl_raman")
HOME = "capability.cvd-material-synthesis"  # the table of a lab file that they stand in


def calibrate(chosen: argparse.Namespace) -> None:
    """Print the tables of the lab file, or write them; 1 if the sample is not a monolayer."""
    day: date = chosen.date or wall_clock_utc().date()
    spots: list[SpotEvidence] = []
    shining: list[tuple[SpotEvidence, float]] = []
    glows: list[Glow] = []
    for name in chosen.files:
        data = file_bytes(Path(name))
        found = _spots(Path(name), data, chosen.laser_nm)
        spots += found.values()
        exposures, glow = _glows(data)
        shining += [(spot, exposures[at]) for at, spot in found.items() if at < len(exposures)]
        glows += glow
    tables: dict[str, Calibration] = {"a1g_si": a1g_si_of(spots)}
    pl = pl_raman_of(shining, glows)
    if pl is not None:
        tables["pl_raman"] = pl
    text = _toml(tables, chosen.on, day)
    if chosen.write is None:
        say(text.rstrip("\n"))
        return
    _write(Path(chosen.write), text, tuple(tables))
    for name, row in tables.items():
        value = f"{row.value:.4g} ± {row.uncertainty:.2g}"
        say(Text("calibrate.row", table=f"[{HOME}.{name}]", value=value, spots=row.spots))
    say(Text("calibrate.written", path=chosen.write))


def _spots(path: Path, data: bytes, laser_nm: float | None) -> dict[int, SpotEvidence]:
    """Return the spectra that show MoS2, by their place in the file.

    Raises:
        BadUse: The file cannot be read.
        NotOneLayer: No spectrum shows MoS2.
    """
    try:
        found = assess(recording_of(path, data, laser_nm))
    except ValueError as why:
        raise BadUse("pair", what=str(path), why=str(why)) from None
    spots = {
        at: SpotEvidence(fit, silicon, None, la_over_e(spectrum, fit))
        for at, (fit, silicon, spectrum) in enumerate(
            zip(found.fits, found.silicon, found.spectra, strict=True)
        )
        if fit is not None
    }
    if not spots:
        raise NotOneLayer("calibrate.other", path=str(path), material=found.material)
    return spots


def _glows(data: bytes) -> tuple[list[float], list[Glow]]:
    """Return exposures (s) and PL of a run's raw_spectrum.json; other files have none."""
    try:
        found: Any = json.loads(data)
        dark = float(found["dark_counts"])
        exposures = [float(spot["exposure_s"]) for spot in found["raman"]]
        glows = []
        for each in found["photoluminescence"]:
            counts = [value - dark for value in each["counts"]]
            glows.append(Glow(each["wavelength_nm"], counts, float(each["exposure_s"])))
    except (ValueError, LookupError, TypeError):
        return [], []
    return exposures, glows


def _toml(tables: dict[str, Calibration], on: str, day: date) -> str:
    parts = [
        f"[{HOME}.{name}] # from {row.spots} spots, by labharness calibrate\n"
        f"value = {row.value:.4g}\n"
        f"uncertainty = {row.uncertainty:.2g}\n"
        f"date = {day.isoformat()}\n"
        f"on = {json.dumps(on, ensure_ascii=False)}\n"
        for name, row in tables.items()
    ]
    return "\n".join(parts)


def _write(path: Path, text: str, names: tuple[str, ...]) -> None:
    with looking(path, BadUse):
        try:
            before = path.read_text("utf-8")
        except UnicodeDecodeError:
            raise BadUse("calibrate.binary", path=str(path)) from None
        _read_strictly(before, path)
        after = with_tables(before, text, names)
        _read_strictly(after, path)
        write_whole(path, after.encode())


def _read_strictly(text: str, path: Path) -> None:
    """Refuse a lab file that is invalid, or has no place for a calibration."""
    from labharness.work.capability.cvd import CAPABILITY

    name = CAPABILITY.declaration.name
    tables = parse(LabFile, text, str(path)).capability
    if name not in tables:
        raise BadLabFile(Text("calibrate.no_table", path=str(path), table=f"[{HOME}]"))
    if wrong := offered({name: tables[name]}, {name: CAPABILITY})[1]:
        raise BadLabFile(Text("pair", what=str(path), why=several(*wrong)))


def with_tables(lab: str, text: str, names: tuple[str, ...]) -> str:
    """Put the tables into a lab file's text behind that of growths, in place of older ones."""
    for name in TABLES:
        if name in names:
            lab = _table(f"{HOME}.{name}").sub("", lab)
    if "a1g_si" in names:
        lab = re.sub(r"^(?:a1g_si_monolayer|source) *=.*\n", "", lab, flags=re.MULTILINE)

    def followed(found: re.Match[str]) -> str:
        return "\n\n".join((found.group().rstrip("\n"), text.rstrip("\n"), ""))

    return _table(HOME).sub(followed, lab, count=1)


def _table(name: str) -> re.Pattern[str]:
    """Return what finds a table of TOML: its heading, and all lines up to the next one."""
    return re.compile(rf"^\[{re.escape(name)}\].*\n(?:(?!\[).*\n?)*", re.MULTILINE)
