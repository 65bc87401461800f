"""``labharness analyse``: what can honestly be said of anyone's spectra."""

import argparse
import json
from collections import Counter
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from labharness.cli import EXIT_COMPLETED, EXIT_FAILED, EXIT_USAGE
from labharness.cli.show import complain, say, write_whole
from labharness.guard.named import open_named
from labharness.vocabulary import share_text
from labharness.vocabulary.extras import EXTRAS

if TYPE_CHECKING:
    from labharness.analysis.assess import Assessment
    from labharness.analysis.formats import Recording

__all__ = ["analyse"]

SAVED_AS = (".csv", ".nxs", ".h5")
MISSING_H5PY = f"writing HDF5 needs h5py: {EXTRAS['h5py'].command}"


class _Unreadable(Exception):
    """One plain line about a file that cannot be read or written."""


def analyse(chosen: argparse.Namespace) -> int:
    """Judge each file; give 0 if every one has a verdict, 1 if not, 64 if one is unreadable."""
    saved = Path(chosen.save) if chosen.save else None
    if saved is not None and (len(chosen.files) > 1 or saved.suffix not in SAVED_AS):
        complain(
            f"labharness analyse: --save takes one FILE and a name ending in {', '.join(SAVED_AS)}"
        )
        return EXIT_USAGE
    worst = EXIT_COMPLETED
    entries: list[dict[str, Any]] = []
    for name in chosen.files:
        path = Path(name)
        try:
            recording, found = _assess(path, chosen)
            if chosen.plot:
                _plot(path, found)
            if saved is not None:
                _save(saved, path, recording, found)
        except _Unreadable as why:
            complain(f"labharness analyse: {why}")
            worst = EXIT_USAGE
            continue
        worst = max(worst, EXIT_FAILED if found.reasons else EXIT_COMPLETED)
        if chosen.json:
            entries.append(_entry(path, recording, found))
        else:
            _print(path, recording, found)
    if chosen.json:
        say(json.dumps(entries, ensure_ascii=False, indent=2))
    return worst


def _assess(path: Path, chosen: argparse.Namespace) -> "tuple[Recording, Assessment]":
    from labharness.analysis.assess import FILM_ROWS, assess
    from labharness.analysis.evidence import Reference
    from labharness.analysis.formats import BYTES_MAX, read_spectra

    try:
        with open_named(path) as file:
            data = file.read(BYTES_MAX + 1)
    except OSError as why:
        raise _Unreadable(f"{path}: {why.strerror}") from None
    reference = None
    if chosen.a1g_si is not None:
        reference = Reference(a1g_si_monolayer=chosen.a1g_si, source="--a1g-si")
    try:
        recording = read_spectra(data)
        if chosen.laser_nm is not None:
            recording = recording.with_laser(chosen.laser_nm)
        return recording, assess(recording, rows=FILM_ROWS[chosen.film], reference=reference)
    except ValueError as why:  # BadFile is one; so is a spectrum of ten points
        raise _Unreadable(f"{path}: {why}") from None


def _best(found: "Assessment") -> int:
    """Find the clearest MoS2, or the brightest silicon, or the first."""
    clearest = {n: fit.snr_a for n, fit in enumerate(found.fits) if fit is not None}
    if clearest:
        return max(clearest, key=clearest.__getitem__)
    return found.materials.index(found.material)


def _plot(path: Path, found: "Assessment") -> None:
    from labharness.analysis.figure import spectrum_svg

    best = _best(found)
    number = f", spectrum {best + 1} of {len(found.spectra)}" if len(found.spectra) > 1 else ""
    picture = spectrum_svg(
        f"{path.name}{number}", _headline(found), found.spectra[best], found.fits[best]
    )
    target = path.with_name(f"{path.name}.svg")
    _write(target, picture.encode())
    complain(f"drawn: {target}")


def _save(target: Path, path: Path, recording: "Recording", found: "Assessment") -> None:
    from labharness.analysis.formats import NexusNotes, csv_text, nexus_bytes

    if target.exists() and target.samefile(path):
        raise _Unreadable(f"{target} is the file that is read; name another one to save to")
    if target.suffix == ".csv":
        data = csv_text(recording).encode()
    else:
        calibrated = any(line is not None for line in found.silicon)
        notes = NexusNotes(
            program=f"labharness {version('labharness')}",
            sample=path.name,
            offset_cm1=found.offset_cm1 if calibrated else None,
        )
        try:
            data = nexus_bytes(recording, notes)
        except ModuleNotFoundError:
            raise _Unreadable(MISSING_H5PY) from None
    _write(target, data)
    complain(f"written: {target}")


def _write(target: Path, data: bytes) -> None:
    try:
        write_whole(target, data)
    except OSError as why:
        raise _Unreadable(f"{target}: {why.strerror}") from None


def _headline(found: "Assessment") -> str:
    verdict = found.verdict
    if verdict is None:
        return f"{found.material}; no layer count"
    if verdict.layer_count is None:
        chosen = ", ".join(map(_class_name, verdict.credible_set))
        return f"MoS2; layers undetermined, with 90 % one of {chosen}"
    name = _class_name(verdict.layer_count)
    layers = "layer" if verdict.layer_count == 1 else "layers"
    return f"MoS2; {name} {layers}, confidence {share_text(verdict.confidence, 2)}"


def _class_name(layer_class: int) -> str:
    return "6 or more" if layer_class == 6 else str(layer_class)


def _print(path: Path, recording: "Recording", found: "Assessment") -> None:
    count = len(found.spectra)
    axis = found.spectra[0].shift_cm1
    say(f"{path}: {_headline(found)}")
    say(
        f"  read as {recording.format}: {count} {'spectrum' if count == 1 else 'spectra'} "
        f"of {axis.size} points, {axis[0]:.0f}–{axis[-1]:.0f} cm⁻¹"
    )
    if count > 1:
        shown = Counter(found.materials).most_common()
        say("  shows " + ", ".join(f"{name} in {number}" for name, number in shown))
    lines = [line for line in found.silicon if line is not None]
    if lines:
        position = median(line.position_cm1 for line in lines)
        fwhm = median(line.fwhm_cm1 for line in lines)
        say(f"  silicon at {position:.2f} cm⁻¹, {fwhm:.1f} cm⁻¹ wide")
    verdict = found.verdict
    if verdict is not None:
        if verdict.peak_distance_cm1 is not None:
            sigma = verdict.peak_distance_sigma_cm1
            say(f"  A1g - E2g: {verdict.peak_distance_cm1:.2f} ± {sigma:.2f} cm⁻¹")
        posterior = (f"{_class_name(name)}: {p:.2f}" for name, p in verdict.posterior.items())
        say("  probability of layers: " + ", ".join(posterior))
        for term in verdict.evidence:
            say(f"  evidence: {term.name} {term.measured:.3g} {term.unit} ({term.systematic})")
    for reason in found.reasons:
        say(f"  no layer count: {reason}")
    for note in found.notes:
        say(f"  note: {note}")


def _entry(path: Path, recording: "Recording", found: "Assessment") -> dict[str, Any]:
    verdict = found.verdict
    return {
        "file": str(path),
        "format": recording.format,
        "spectra": len(found.spectra),
        "laser_nm": recording.laser_nm,
        "material": found.material,
        "materials": list(found.materials),
        "layer_count": None if found.reasons or verdict is None else verdict.layer_count,
        "confidence": None if verdict is None else verdict.confidence,
        "posterior": None if verdict is None else _by_name(verdict.posterior),
        "credible_set": None if verdict is None else list(verdict.credible_set),
        "peak_distance_cm1": None if verdict is None else verdict.peak_distance_cm1,
        "peak_distance_sigma_cm1": None if verdict is None else verdict.peak_distance_sigma_cm1,
        "evidence": []
        if verdict is None
        else [
            {
                "name": term.name,
                "measured": term.measured,
                "unit": term.unit,
                "log_likelihood": _by_name(term.log_likelihood),
                "systematic_error": term.systematic,
            }
            for term in verdict.evidence
        ],
        "reasons": list(found.reasons),
        "notes": list(found.notes),
        "silicon": [
            None
            if line is None
            else {
                "position_cm1": line.position_cm1,
                "position_sigma_cm1": line.position_sigma_cm1,
                "fwhm_cm1": line.fwhm_cm1,
            }
            for line in found.silicon
        ],
        "axis_moved_by_cm1": found.offset_cm1,
    }


def _by_name(values: Mapping[int, float]) -> dict[str, float]:
    return {str(name): value for name, value in values.items()}
