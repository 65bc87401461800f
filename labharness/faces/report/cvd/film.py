"""What the film looks like: the map, the fit of the clearest spot, and the evidence."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from labharness.faces.report.answer_face import percent
from labharness.faces.report.facts import RunFacts
from labharness.faces.report.fitted import (
    FIT_PX,
    RESIDUAL_SIGMA_MAX,
    Fitted,
    axis_name,
    fit_parts,
    upright_name,
)
from labharness.faces.report.html import Html, el, joined, table
from labharness.faces.report.shares import LAYER_CLASSES, LAYER_COLOURS, area, share_bars
from labharness.faces.report.svg import Frame, Scale, number, rounded_ticks, significant
from labharness.faces.report.words import both, say

__all__ = [
    "FIT_WINDOW_CM1",
    "evidence",
    "film",
    "film_in_brief",
    "layers_text",
    "of_raman",
]

T = TypeVar("T")

SIX_OR_MORE: Final = 6
NAMED_SPOTS_MAX: Final = 60
"""A map of more spots has no room for their numbers; the table has them."""

SIZE_PX: Final = 460.0
FIT_WINDOW_CM1: Final = (360.0, 435.0)
"""Where the analysis fits both lines of MoS2."""

CURVE_STEPS: Final = 300
COSMIC_SIGMA: Final = RESIDUAL_SIGMA_MAX
"""A pixel further off is a cosmic ray: it is drawn at the edge and left out of the heights."""


def of_raman(draw: Callable[[RunFacts], T], facts: RunFacts) -> T | None:
    """Draw something of the Raman part; None where a capability's outputs have another shape."""
    if "raman_analysis" not in facts.results:
        return None
    try:
        return draw(facts)
    except (KeyError, IndexError, TypeError, ValueError):
        return None


def film(facts: RunFacts) -> Html:
    """Draw the map and the fit, and tabulate the spots."""
    found = facts.results["raman_analysis"]
    said = _measured(facts)
    if not found["spots"]:
        return said
    fit = el("figure", el("figcaption", el("b", say("fit"))), *_fit(facts, found))
    drawn = el("div", _map_figure(found), fit, class_="pair")
    return joined(said, drawn, _spot_table(found["spots"]))


def film_in_brief(facts: RunFacts) -> Html:
    """Draw the shares and the map: what one compares of two films."""
    found = facts.results["raman_analysis"]
    return joined(_measured(facts), _map_figure(found) if found["spots"] else Html(""))


def _measured(facts: RunFacts) -> Html:
    """Return where there was film and how the area is shared out, and draw the shares."""
    found = facts.results["raman_analysis"]
    covered = say(
        "covered",
        film=found["places_with_film"],
        places=found["places_surveyed"],
        spots=len(found["spots"]),
    )
    shared = facts.results.get("film") or {}
    said = joined(el("p", covered), area(shared) if shared else Html(""))
    drawn = bool(found["spots"] and shared.get("of_film"))
    return joined(said, share_bars(shared["of_film"]) if drawn else Html(""))


def _map_figure(found: Mapping[str, Any]) -> Html:
    caption = el("figcaption", el("b", say("map")))
    return el("figure", caption, _map(found["spots"]), _note("map_key"))


def evidence(facts: RunFacts) -> Html:
    """Tabulate what each term says, and what all spots say together."""
    found = facts.results["raman_analysis"]
    if not found["posterior"]:
        return el("ul", *(el("li", both(each)) for each in found["reasons"]))
    rows = []
    for term in found["evidence"]:
        shares = term["log_likelihood"]
        rows.append(
            el(
                "tr",
                el("td", both(term["name"])),
                el(
                    "td",
                    f"{significant(term['measured'], 4)} {_unit(term['unit'])}",
                    class_="number",
                ),
                *(el("td", f"{shares[name]:.2f}", class_="number") for name in LAYER_CLASSES),
                el("td", both(term["systematic_error"]), class_="said"),
            )
        )
    posterior = found["posterior"]
    rows.append(
        el(
            "tr",
            el("th", say("mean_share")),
            el("td"),
            *(el("td", _share(posterior[name]), class_="number") for name in LAYER_CLASSES),
            el("td"),
            class_="total",
        )
    )
    above = el(
        "tr",
        el("th", say("term"), rowspan=2),
        el("th", say("value"), rowspan=2),
        el("th", say("log_likelihood"), colspan=6),
        el("th", say("systematic"), rowspan=2, class_="wordy"),
    )
    below = el("tr", *(el("th", name, class_="number") for name in LAYER_CLASSES))
    terms = el("div", el("table", el("thead", above, below), el("tbody", *rows)), class_="scroll")
    said = [*found["reasons"], *found["notes"]]
    notes = el("ul", *(el("li", both(each)) for each in said)) if said else Html("")
    key = el("p", say("evidence_key", quality=number(found["quality"])), class_="note")
    return joined(terms, key, notes)


def layers_text(count: int | None) -> Html:
    """Return a number of layers as a chemist says it."""
    if count is None:
        return say("undetermined")
    if count in (1, 2):
        return say(f"layers_{count}")
    return say("layers_many") if count >= SIX_OR_MORE else say("layers_n", count=count)


def _share(value: float) -> str:
    return percent(value) if value >= 1e-4 else "< 0.01 %"


def _unit(unit: str) -> str:
    return "" if unit == "1" else unit


def _note(key: str) -> Html:
    return el("p", say(key), class_="note")


def _map(spots: Sequence[Mapping[str, Any]]) -> Html:
    reach = max([abs(each[axis]) for each in spots for axis in ("x_um", "y_um")], default=100.0)
    reach = reach * 1.3 or 100.0
    frame = Frame(
        Scale(-reach, reach, 50.0, SIZE_PX - 8),
        Scale(-reach, reach, SIZE_PX - 42, 8.0),
    )
    ticks = rounded_ticks(-reach, reach, 6)
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
            parts.append(el("text", label, x=x, y=y + 4, text_anchor="middle", class_="in"))
            for line, what in enumerate((f"{place:.2f}", f"± {error:.2f}")):
                below = y + 22 + 11 * line
                parts.append(el("text", what, x=x, y=below, text_anchor="middle", class_="small"))
    middle = (frame.x.start_px + frame.x.end_px) / 2
    parts.append(axis_name(say("x_axis_um", tag="tspan"), middle, SIZE_PX - 6))
    parts.append(upright_name(say("y_axis_um", tag="tspan"), 12.0, SIZE_PX / 2))
    return el("svg", *parts, viewBox=f"0 0 {SIZE_PX:.0f} {SIZE_PX:.0f}", role="img")


def _spot_table(spots: Sequence[Mapping[str, Any]]) -> Html:
    rows = []
    for index, each in enumerate(spots, 1):
        distance = f"{each['peak_distance_cm1']:.2f} ± {each['peak_distance_sigma_cm1']:.2f}"
        layers = "?" if each["layer_count"] is None else each["layer_count"]
        values = [index, number(each["x_um"]), number(each["y_um"]), layers, distance]
        for name in ("e2g_cm1", "a1g_cm1"):
            values.append(f"{each[name]:.2f}")
        for name in ("a1g_over_silicon", "pl_over_a1g", "snr", "reduced_chi2"):
            values.append("–" if each[name] is None else significant(each[name], 3))
        rows.append(el("tr", *(el("td", value, class_="number") for value in values)))
    heads: list[object] = [say("spot"), "x, µm", "y, µm", say("layers"), "A1g − E2g, cm⁻¹"]
    heads += ["E2g, cm⁻¹", "A1g, cm⁻¹", "A1g/Si", "PL/A1g", "S/N", "χ²"]
    return table(heads, rows, class_="figures")


def _fit(facts: RunFacts, found: Mapping[str, Any]) -> list[Html]:
    index = found["best_spot"]
    spectra = facts.spectra.get("raman", ())
    if index is None or not 0 <= index < len(spectra):
        return [el("p", say("no_fit"))]
    spot, spectrum = found["spots"][index], spectra[index]
    offset_cm1 = spot["silicon_offset_cm1"] or 0.0
    dark = facts.spectra["dark_counts"]
    low, high = FIT_WINDOW_CM1
    points = [
        (shift + offset_cm1, counts - dark)
        for shift, counts in zip(spectrum["raman_shift"], spectrum["counts"], strict=True)
        if low <= shift + offset_cm1 <= high
    ]
    lines = [(spot[f"{name}_cm1"], spot[f"{name}_fwhm_cm1"]) for name in ("e2g", "a1g")]
    weights = _heights(points, lines)
    model = [_model(x, lines, weights) for x, _ in points]
    residuals = [
        (x, (y - fit) / math.sqrt(max(fit, 1.0))) for (x, y), fit in zip(points, model, strict=True)
    ]
    said = say("chi2", value=f"{spot['reduced_chi2']:.2f}")
    place = f"x {number(spot['x_um'])} µm, y {number(spot['y_um'])} µm · "
    head = el("p", place, f"{spot['peak_distance_cm1']:.2f} cm⁻¹ · ", said)
    return [_fit_drawing(points, residuals, lines, weights), head, _note("fit_key")]


def _fit_drawing(
    points: Sequence[tuple[float, float]],
    residuals: Sequence[tuple[float, float]],
    lines: Sequence[tuple[float, float]],
    weights: Sequence[float],
) -> Html:
    low, high = FIT_WINDOW_CM1
    steps = [low + (high - low) * each / CURVE_STEPS for each in range(CURVE_STEPS + 1)]
    drawn = Fitted(
        range=FIT_WINDOW_CM1,
        points=points,
        residuals=residuals,
        fitted=[(x, _model(x, lines, weights)) for x in steps],
        ground=[(x, weights[2] + weights[3] * (x - _middle())) for x in (low, high)],
        labels=[
            (place, _model(place, lines, weights), f"{name} {place:.2f}")
            for (place, _), name in zip(lines, ("E2g", "A1g"), strict=True)
        ],
    )
    parts = fit_parts(drawn, partial(say, tag="tspan"))
    return el("svg", parts, viewBox=f"0 0 {FIT_PX:.0f} {FIT_PX:.0f}", role="img")


def _middle() -> float:
    return sum(FIT_WINDOW_CM1) / 2


def _shapes(x: float, lines: Sequence[tuple[float, float]]) -> list[float]:
    lorentz = [1 / (1 + ((x - place) / (width / 2)) ** 2) for place, width in lines]
    return [*lorentz, 1.0, x - _middle()]


def _model(x: float, lines: Sequence[tuple[float, float]], weights: Sequence[float]) -> float:
    return sum(one * share for one, share in zip(_shapes(x, lines), weights, strict=True))


def _heights(
    points: Sequence[tuple[float, float]], lines: Sequence[tuple[float, float]]
) -> list[float]:
    """Find heights and background for recorded places and widths: a linear problem."""
    import numpy as np

    shapes = np.array([_shapes(x, lines) for x, _ in points])
    counts = np.array([y for _, y in points])
    noise = np.sqrt(np.maximum(counts, 1.0))
    kept = np.ones(counts.size, dtype=bool)
    for _ in range(2):  # the second time without the cosmic rays that the first has shown
        ruled = shapes[kept] / noise[kept, None]
        weights = np.linalg.lstsq(ruled, counts[kept] / noise[kept], rcond=None)[0]
        kept = np.abs(counts - shapes @ weights) <= COSMIC_SIGMA * noise
    return [float(each) for each in weights]
