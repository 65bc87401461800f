"""A film in a report: its shares, map, fit and spectra, its growth, and two films compared."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any, Final, TypeVar

from labharness.faces.report import figures, markup
from labharness.faces.report.answer_face import ComparedRun, percent
from labharness.faces.report.document import render
from labharness.faces.report.facts import RunFacts, values_within
from labharness.faces.report.figures import FIT_PX, Drawn
from labharness.faces.report.markup import Html, el, exact, joined, number
from labharness.faces.report.quantities import quantities, unit_text
from labharness.faces.report.words import both, known, phrase, say

if TYPE_CHECKING:
    from labharness.analysis.arrays import Array

SIX_OR_MORE: Final = 6
NAMED_SPOTS_MAX: Final = 60
"""A map of more spots has no room for their numbers; the table has them."""

SIZE_PX: Final = 460.0
FIT_WINDOW_CM1: Final = (360.0, 435.0)
"""Where the analysis fits both lines of MoS2."""

LINES: Final = ("E2g", "A1g")
CURVE_STEPS: Final = 300
COSMIC_SIGMA: Final = figures.RESIDUAL_SIGMA_MAX
"""A pixel further off is a cosmic ray: it is drawn at the edge and left out of the heights."""


def film(facts: RunFacts, *, whole: bool = True) -> Html:
    """Draw shares and map, by which one compares two films; of a whole one also fit and spots."""
    found, shared = facts.results["raman_analysis"], facts.results.get("film") or {}
    spots = found["spots"]
    bars = spots and shared.get("of_film")
    return render(
        "cvd/film.html.j2",
        found=found,
        area=area_parts(shared) if shared else (),
        bars=share_bars(shared["of_film"]) if bars else "",
        map=_map(spots) if spots else "",
        whole=whole,
        fit=_fit(facts) if spots and whole else None,
        spots=[list(_spot_cells(at, each)) for at, each in enumerate(spots, 1)] if whole else (),
    )


def evidence(facts: RunFacts) -> Html:
    """Tabulate the evidence of each term, and of all spots together."""
    found = facts.results["raman_analysis"]
    posterior = found["posterior"]
    terms = []
    for term in found["evidence"] if posterior else ():
        unit = "" if term["unit"] == "1" else term["unit"]
        measured = f"{markup.significant(term['measured'], 4)} {unit}"
        by_class = [f"{term['log_likelihood'][name]:.2f}" for name in LAYER_CLASSES]
        terms.append((term, measured, by_class))
    return render(
        "cvd/evidence.html.j2",
        found=found,
        classes=LAYER_CLASSES,
        terms=terms,
        shares=[_share(posterior[name]) for name in LAYER_CLASSES] if posterior else (),
        quality=number(found["quality"]) if posterior else "",
        beside=of_raman(spectra_beside, facts) or (),
    )


def layers_text(count: int | None) -> Html:
    """Return a number of layers as a chemist says it."""
    if count is None:
        return say("undetermined")
    if count in (1, 2):
        return say(f"layers_{count}")
    return say("layers_many") if count >= SIX_OR_MORE else say("layers_n", count=count)


def _share(value: float) -> str:
    return percent(value) if value >= 1e-4 else "< 0.01 %"


def _map(spots: Sequence[Mapping[str, Any]]) -> Html:
    reach = max([abs(each[axis]) for each in spots for axis in ("x_um", "y_um")], default=100.0)
    reach = reach * 1.3 or 100.0
    frame = markup.Frame(
        markup.Scale(-reach, reach, 50.0, SIZE_PX - 8),
        markup.Scale(-reach, reach, SIZE_PX - 42, 8.0),
    )
    ticks = markup.rounded_ticks(-reach, reach, 6)
    parts = [frame.axes(ticks, ticks)]
    named = len(spots) <= NAMED_SPOTS_MAX
    for each in spots:
        x, y = frame.x(each["x_um"]), frame.y(each["y_um"])
        layers = each["layer_count"]
        colour = LAYER_COLOURS.get(layers, "#999")
        parts.append(el("circle", cx=x, cy=y, r=11.0 if named else 4.0, fill=colour))
        if named:
            label = "?" if layers is None else layers
            place, error = each["peak_distance_cm1"], each["peak_distance_sigma_cm1"]
            parts.append(markup.words_at(x, y + 4, label, anchor="middle", class_="in"))
            for line, what in enumerate((f"{place:.2f}", f"± {error:.2f}")):
                parts.append(
                    markup.words_at(x, y + 22 + 11 * line, what, anchor="middle", class_="small")
                )
    middle = (frame.x.start_px + frame.x.end_px) / 2
    parts.append(markup.axis_name(say("x_axis_um", tag="tspan"), middle, SIZE_PX - 6))
    parts.append(markup.upright_name(say("y_axis_um", tag="tspan"), 12.0, SIZE_PX / 2))
    return markup.drawing(parts, SIZE_PX, SIZE_PX)


def _spot_cells(index: int, spot: Mapping[str, Any]) -> Iterator[object]:
    yield from (index, number(spot["x_um"]), number(spot["y_um"]))
    yield "?" if spot["layer_count"] is None else spot["layer_count"]
    yield f"{spot['peak_distance_cm1']:.2f} ± {spot['peak_distance_sigma_cm1']:.2f}"
    yield from (f"{spot[name]:.2f}" for name in ("e2g_cm1", "a1g_cm1"))
    for name in ("a1g_over_silicon", "pl_over_a1g", "snr", "reduced_chi2"):
        yield "–" if spot[name] is None else markup.significant(spot[name], 3)


def _fit(facts: RunFacts) -> tuple[Html, Html] | None:
    """Draw the fit of the clearest spot, with the sentence on it; None without its spectrum."""
    import numpy as np

    best = clearest(facts)
    if best is None:
        return None
    spot, (low, high) = best.spot, FIT_WINDOW_CM1
    inside = within(best.raman, low, high)
    x, counts = np.array([x for x, _ in inside]), np.array([y for _, y in inside])
    places = np.array([spot["e2g_cm1"], spot["a1g_cm1"]])
    widths = np.array([spot["e2g_fwhm_cm1"], spot["a1g_fwhm_cm1"]])

    def shapes(at: "Array") -> "Array":
        lorentz = 1 / (1 + ((at[:, None] - places) / (widths / 2)) ** 2)
        return np.column_stack([lorentz, np.ones_like(at), at - (low + high) / 2])

    weights = _heights(shapes(x), counts)
    model = shapes(x) @ weights
    steps, ends = np.linspace(low, high, CURVE_STEPS + 1), np.array([low, high])
    labels = zip(places.tolist(), (shapes(places) @ weights).tolist(), LINES, strict=True)
    drawn = figures.Fitted(
        range=FIT_WINDOW_CM1,
        points=figures.pairs(x, counts),
        residuals=figures.pairs(x, (counts - model) / np.sqrt(np.maximum(model, 1.0))),
        fitted=figures.pairs(steps, shapes(steps) @ weights),
        ground=figures.pairs(ends, shapes(ends)[:, 2:] @ weights[2:]),
        labels=[(place, height, f"{name} {place:.2f}") for place, height, name in labels],
    )
    place = f"x {number(spot['x_um'])} µm, y {number(spot['y_um'])} µm"
    distance = f"{spot['peak_distance_cm1']:.2f} cm⁻¹"
    quality = say("chi2", value=f"{spot['reduced_chi2']:.2f}")
    parts = figures.fit_parts(drawn, partial(say, tag="tspan"))
    return markup.drawing([parts], FIT_PX, FIT_PX), joined(place, distance, quality, between=" · ")


def _heights(shapes: "Array", counts: "Array") -> "Array":
    """Find heights and background for recorded places and widths: a linear problem."""
    import numpy as np

    noise = np.sqrt(np.maximum(counts, 1.0))
    kept = np.ones(counts.size, dtype=bool)
    for _ in range(2):  # the second time without the cosmic rays that the first has shown
        ruled = shapes[kept] / noise[kept, None]
        found = np.linalg.lstsq(ruled, counts[kept] / noise[kept], rcond=None)[0]
        weights: Array = np.asarray(found, dtype=np.float64)
        kept = np.abs(counts - shapes @ weights) <= COSMIC_SIGMA * noise
    return weights


LAYER_CLASSES: Final = ("1", "2", "3", "4", "5", "6")
LAYER_COLOURS: Final = {
    1: "#0072b2", 2: "#009e73", 3: "#b8860b", 4: "#d55e00", 5: "#a0448a", 6: "#4d4d4d"
}  # fmt: skip

MENTIONED: Final = 0.05
"""A smaller share does not come into the headline of a mixed film."""

NAMED: Final = 0.005
"""A smaller share of the surveyed area is 0 %."""


def headline(film: Mapping[str, Any], layer_count: object) -> Html:
    """Return the claim of the answer in one sentence."""
    key = f"claim_{film['claim']}"
    if not phrase(key):
        return both(film["headline"])
    name = say(f"film_{layer_count}") if layer_count is not None else ""
    return say(key, name=name, shares=joined(*_shares(film["of_film"]), between=", "))


def _shares(of_film: Mapping[str, Mapping[str, float]]) -> Iterator[Html]:
    named = sorted(of_film.items(), key=lambda each: -each[1]["share"])
    for at, (name, row) in enumerate(named):
        if row["share"] >= MENTIONED or at == 0:
            yield joined(f"{row['share'] * 100:.0f} % ", say(f"class_{name}"))


def area_parts(film: Mapping[str, Any]) -> list[Html]:
    """Return the share of each class in the surveyed area."""
    rows, bare = film["of_area"], film["bare"]
    named = {f"class_{name}": rows.get(name, 0.0) for name in LAYER_CLASSES}
    shown = [_part(key, share) for key, share in named.items() if share >= NAMED]
    shown.append(joined(_part("area_bare", bare["share"]), f" ({_span(bare)})"))
    if rows["not_judged"] >= NAMED:
        shown.append(_part("area_not_judged", rows["not_judged"]))
    return shown


def _part(key: str, share: float) -> Html:
    return joined(say(key), f" {share * 100:.0f} %")


def _span(row: Mapping[str, float]) -> str:
    return f"{row['low'] * 100:.0f}–{row['high'] * 100:.0f} %"


def share_bars(of_film: Mapping[str, Mapping[str, float]]) -> Html:
    """Draw the share of each class in the film, and the interval that holds it with 90 %."""
    parts = []
    for index, name in enumerate(LAYER_CLASSES):
        row, left = of_film[name], 34.0 + 62.0 * index
        height, middle = 70.0 * row["share"], left + 20
        low, high = 88.0 - 70.0 * row["low"], 88.0 - 70.0 * row["high"]
        parts += [
            markup.box(left, 88.0 - height, 40.0, height, fill=LAYER_COLOURS[index + 1]),
            markup.level(88.0, left, left + 40, "axis"),
            markup.upright(middle, low, high, "axis"),
            markup.words_at(middle, high - 4, f"{row['share'] * 100:.0f} %", anchor="middle"),
            markup.words_at(middle, 104.0, name, anchor="middle"),
        ]
    return markup.drawing(parts, 420, 110, class_="posterior")


T = TypeVar("T")

SILICON_REACH_CM1: Final = 18.0
"""To either side of silicon: its line and enough ground."""

Spectrum = tuple[tuple[float, float], ...]
"""Raman shift in cm⁻¹ or wavelength in nm, and counts, the dark ones taken off."""


@dataclass(frozen=True, slots=True)
class Clearest:
    """The spectra of the clearest spot; the Raman axis is set by silicon.

    Attributes:
        spot: Its place and lines, as the answer has them.
        raman: All of the spectrum.
        raman_s: Its exposure.
        glow: Photoluminescence of the same place; empty where it was not taken.
        glow_s: Its exposure.
    """

    spot: Mapping[str, Any]
    raman: Spectrum
    raman_s: float
    glow: Spectrum
    glow_s: float

    @property
    def silicon(self) -> Spectrum:
        """The silicon line and enough ground to both sides."""
        from labharness.analysis.peaks import SILICON_POSITION_CM1 as PLACE

        return within(self.raman, PLACE - SILICON_REACH_CM1, PLACE + SILICON_REACH_CM1)


def of_raman(draw: Callable[[RunFacts], T], facts: RunFacts) -> T | None:
    """Draw something of the Raman part; None where a capability's outputs have another shape."""
    if "raman_analysis" not in facts.results:
        return None
    try:
        return draw(facts)
    except (KeyError, IndexError, TypeError, ValueError):
        return None


def clearest(facts: RunFacts) -> Clearest | None:
    """Return the spectra of the clearest spot; None where no spot was judged.

    Raises:
        KeyError: The outputs are those of another capability.
    """
    found = facts.results["raman_analysis"]
    index = found["best_spot"]
    raman = facts.spectra.get("raman") or []
    if index is None or not 0 <= index < len(raman):
        return None
    spot, spectrum = found["spots"][index], raman[index]
    dark = float(facts.spectra["dark_counts"])
    offset_cm1 = spot["silicon_offset_cm1"] or 0.0
    shifted = [x + offset_cm1 for x in spectrum["raman_shift"]]
    here = spot["x_um"], spot["y_um"]
    glows = facts.spectra.get("photoluminescence") or []
    glow = next((each for each in glows if (each["x_um"], each["y_um"]) == here), None)
    return Clearest(
        spot=spot,
        raman=_points(shifted, spectrum, dark),
        raman_s=float(spectrum["exposure_s"]),
        glow=() if glow is None else _points(glow["wavelength_nm"], glow, dark),
        glow_s=1.0 if glow is None else float(glow["exposure_s"]),
    )


def spectra_beside(facts: RunFacts) -> list[tuple[str, Html]]:
    """Draw the silicon line and the photoluminescence of the clearest spot: key and drawing."""
    from labharness.analysis.peaks import SILICON_POSITION_CM1

    spot = clearest(facts)
    if spot is None:
        return []
    silicon = spectra_drawn("shift_axis", [Drawn(spot.silicon)], middle=SILICON_POSITION_CM1)
    glow = spectra_drawn("wavelength_axis", [Drawn(spot.glow)])
    found = (("spectrum_silicon", silicon), ("spectrum_pl", glow))
    return [(key, drawing) for key, drawing in found if drawing]


def spectra_drawn(
    across: str, curves: Sequence[Drawn], *, up: str = "counts", middle: float | None = None
) -> Html:
    """Draw spectra over each other; nothing where there are none.

    Args:
        across: Key of the name of the axis across.
        curves: The spectra.
        up: Key of the name of the axis upwards.
        middle: The place where a line is expected.
    """
    frame = figures.axes_of(curves)
    if frame is None:
        return Html("")
    marks = []
    if middle is not None:
        x = frame.x(middle)
        marks.append(markup.upright(x, frame.y.end_px, frame.y.start_px, "ground"))
        marks.append(markup.words_at(x + 4, 20.0, exact(middle)))
    return figures.curves_drawn(frame, curves, marks, across=across, up=up)


def within(spectrum: Spectrum, low: float, high: float) -> Spectrum:
    """Return the part of a spectrum between two places of its axis."""
    return tuple(each for each in spectrum if low <= each[0] <= high)


def _points(axis: Sequence[float], spectrum: Mapping[str, Any], dark: float) -> Spectrum:
    return tuple((x, counts - dark) for x, counts in zip(axis, spectrum["counts"], strict=True))


def growths_compared(runs: Sequence[ComparedRun]) -> Iterator[Html]:
    """Return the sections of spectra and of films; neither where no run has any."""
    spectra = list(_spectra(runs))
    films = [(run, of_raman(partial(film, whole=False), run.facts)) for run in runs]
    if spectra or any(film for _, film in films):
        yield render("cvd/compared.html.j2", runs=runs, spectra=spectra, films=films)


def _spectra(runs: Sequence[ComparedRun]) -> Iterator[tuple[str, Html]]:
    """Draw the spectra of both clearest spots over each other, in counts a second."""
    spots = [(run, of_raman(clearest, run.facts)) for run in runs]
    shown = [(run, spot) for run, spot in spots if spot is not None]
    lines = [_a_second(run, within(one.raman, *FIT_WINDOW_CM1), one.raman_s) for run, one in shown]
    silicon = [_a_second(run, one.silicon, one.raman_s) for run, one in shown]
    glow = [_a_second(run, one.glow, one.glow_s) for run, one in shown]
    for key, across, curves in (
        ("spectrum_raman", "shift_axis", lines),
        ("spectrum_silicon_two", "shift_axis", silicon),
        ("spectrum_pl_two", "wavelength_axis", glow),
    ):
        there = [each for each in curves if each.points]
        if drawing := spectra_drawn(across, there, up="counts_a_second"):
            yield key, drawing


def _a_second(run: ComparedRun, spectrum: Spectrum, exposure_s: float) -> Drawn:
    if not exposure_s > 0 or not math.isfinite(exposure_s):
        return Drawn(())
    points = [(x, counts / exposure_s) for x, counts in spectrum]
    return Drawn(points, run.colour, run.trace)


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
    measured = [(row, name, value) for row in log for name, value in row["measured"].items()]
    units = facts.rules.units
    leaks = [
        f"{number(value)} {unit_text(units.get(name.removesuffix(RISE), ''))}/min"
        for _, name, value in measured
        if name.endswith(RISE)
    ]
    if leaks:
        yield "leak_rate", ", ".join(leaks)
    purges = []
    for row, name, value in measured:
        if name.startswith(PURGED):
            said = say("purged_of", count=number(value), gas=name.removeprefix(PURGED))
            purges.append(joined(said, " (", known("phase", str(row["phase"])), ")"))
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
            values = values_within(facts.traces[channel], phase)
            if len(values) < 2 or abs(fmean(values)) <= NOISE_SD * stdev(values):
                continue  # a closed valve's noise, or nothing at all
            if quantity.unit in KEPT_UNITS:
                kept = f"{channel} {_spread(values)} {unit_text(quantity.unit)}"
                yield f"{kept} (n = {len(values)})"


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
    for key, kind in (("exposure_raman", "raman"), ("exposure_pl", "photoluminescence")):
        if exposures := _exposures(spectra.get(kind)):
            yield key, exposures
    stated = facts.header.get("raman") or {}
    for key in ("objective", "grating"):
        yield key, stated.get(key) or say("not_stated")


def _exposures(spectra: object) -> str:
    if not isinstance(spectra, list) or not spectra:
        return ""
    times = [float(each["exposure_s"]) for each in spectra]
    low, high = exact(min(times)), exact(max(times))
    return f"{len(times)} × {low if low == high else f'{low}–{high}'} s"
