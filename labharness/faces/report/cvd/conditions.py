"""The conditions of a growth and of its spectra, as rows of a table."""

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean, stdev
from typing import Any, Final

from labharness.faces.report.facts import RunFacts
from labharness.faces.report.html import Html, joined
from labharness.faces.report.quantities import quantities, unit_text
from labharness.faces.report.svg import exact, number
from labharness.faces.report.words import known, say

GROWN: Final = "material_growth"
LOOKED: Final = "characterisation"
RISE: Final = " rise per minute"
PURGED: Final = "volumes purged of "
KEPT_UNITS: Final = ("degC", "sccm", "Torr")
NOISE_SD: Final = 3.0


def growth_conditions(facts: RunFacts) -> Iterator[tuple[str, object]]:
    """Return the rows of the table, each with the name of its words."""
    log = facts.results.get("growth_log") or []
    grown = list(_grown(facts))
    if grown:
        yield "grown", "\n".join(grown)
    leaks = [
        f"{number(value)} {unit_text(facts.rules.units.get(name.removesuffix(RISE), ''))}/min"
        for row in log
        for name, value in row["measured"].items()
        if name.endswith(RISE)
    ]
    if leaks:
        yield "leak_rate", ", ".join(leaks)
    purges = [
        joined(
            say("purged_of", count=number(value), gas=name.removeprefix(PURGED)),
            " (",
            known("phase", str(row["phase"])),
            ")",
        )
        for row in log
        for name, value in row["measured"].items()
        if name.startswith(PURGED)
    ]
    if purges:
        yield "purged", Html("; ".join(purges))
    if facts.spectra:
        yield from _looked(facts, log)


def _grown(facts: RunFacts) -> Iterator[str]:
    """Return mean and standard deviation of each channel that was kept during the growth."""
    phase = next((each for each in facts.phases if each.name == GROWN), None)
    if phase is None:
        return
    for quantity in quantities(facts):
        for channel in quantity.measured:
            values = [
                value
                for at_s, value in facts.traces[channel]
                if phase.start_s <= at_s <= phase.end_s and not math.isnan(value)
            ]
            if len(values) < 2 or abs(fmean(values)) <= NOISE_SD * stdev(values):
                continue  # a closed valve's noise, or nothing at all
            if quantity.unit in KEPT_UNITS:
                yield (
                    f"{channel} {_spread(values)} {unit_text(quantity.unit)} (n = {len(values)})"
                )


def _spread(values: Sequence[float]) -> str:
    """Write mean and standard deviation, both to the second digit of the deviation."""
    mean, deviation = fmean(values), stdev(values)
    digits = 0 if deviation <= 0 else max(0, 1 - math.floor(math.log10(deviation)))
    return f"{mean:.{digits}f} ± {deviation:.{digits}f}"


def _looked(facts: RunFacts, log: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, object]]:
    spectra = facts.spectra
    laser = spectra.get("laser_nm")
    yield "laser", say("not_stated") if laser is None else f"{exact(float(laser))} nm"
    units = {bar.channel: bar.unit for bar in facts.rules.bars} | dict(facts.rules.units)
    settings = [
        f"{channel} {exact(float(value))} {unit_text(units.get(channel, ''))}".rstrip()
        for row in log
        if row["phase"] == LOOKED
        for channel, value in row["setpoints"].items()
    ]
    if settings:
        yield "optics_set", ", ".join(settings)
    raman, glow = _exposures(spectra.get("raman")), _exposures(spectra.get("photoluminescence"))
    if raman:
        yield "exposure_raman", raman
    if glow:
        yield "exposure_pl", glow
    stated = facts.header.get("raman") or {}
    for key in ("objective", "grating"):
        yield key, stated.get(key) or say("not_stated")


def _exposures(spectra: object) -> str:
    if not isinstance(spectra, list) or not spectra:
        return ""
    times = [float(each["exposure_s"]) for each in spectra]
    low, high = exact(min(times)), exact(max(times))
    return f"{len(times)} × {low if low == high else f'{low}–{high}'} s"
