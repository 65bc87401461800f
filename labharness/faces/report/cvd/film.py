"""The section on the film: its map, the fit of the clearest spot, and the evidence."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from labharness.faces.report import svg
from labharness.faces.report.answer_face import percent
from labharness.faces.report.cvd.beside import of_raman, spectra_beside
from labharness.faces.report.cvd.shares import LAYER_CLASSES, LAYER_COLOURS, area_parts, share_bars
from labharness.faces.report.document import render
from labharness.faces.report.facts import RunFacts
from labharness.faces.report.fitted import FIT_PX, RESIDUAL_SIGMA_MAX, Fitted, fit_parts, pairs
from labharness.faces.report.html import Html, el, joined
from labharness.faces.report.words import say

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

SIX_OR_MORE: Final = 6
NAMED_SPOTS_MAX: Final = 60
"""A map of more spots has no room for their numbers; the table has them."""

SIZE_PX: Final = 460.0
FIT_WINDOW_CM1: Final = (360.0, 435.0)
"""Where the analysis fits both lines of MoS2."""

LINES: Final = ("E2g", "A1g")
CURVE_STEPS: Final = 300
COSMIC_SIGMA: Final = RESIDUAL_SIGMA_MAX
"""A pixel further off is a cosmic ray: it is drawn at the edge and left out of the heights."""


def film(facts: RunFacts) -> Html:
    """Draw the map and the fit, and tabulate the spots."""
    return _film(facts, whole=True)


def film_in_brief(facts: RunFacts) -> Html:
    """Draw the shares and the map, by which one compares two films."""
    return _film(facts, whole=False)


def _film(facts: RunFacts, *, whole: bool) -> Html:
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
        fit=_fit(facts, found) if spots and whole else None,
        spots=[list(_spot_cells(at, each)) for at, each in enumerate(spots, 1)] if whole else (),
    )


def evidence(facts: RunFacts) -> Html:
    """Tabulate the evidence of each term, and of all spots together."""
    found = facts.results["raman_analysis"]
    posterior = found["posterior"]
    terms = [
        (
            term,
            f"{svg.significant(term['measured'], 4)} {_unit(term['unit'])}",
            [f"{term['log_likelihood'][name]:.2f}" for name in LAYER_CLASSES],
        )
        for term in (found["evidence"] if posterior else ())
    ]
    return render(
        "cvd/evidence.html.j2",
        found=found,
        classes=LAYER_CLASSES,
        terms=terms,
        shares=[_share(posterior[name]) for name in LAYER_CLASSES] if posterior else (),
        quality=svg.number(found["quality"]) if posterior else "",
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


def _unit(unit: str) -> str:
    return "" if unit == "1" else unit


def _map(spots: Sequence[Mapping[str, Any]]) -> Html:
    reach = max([abs(each[axis]) for each in spots for axis in ("x_um", "y_um")], default=100.0)
    reach = reach * 1.3 or 100.0
    frame = svg.Frame(
        svg.Scale(-reach, reach, 50.0, SIZE_PX - 8), svg.Scale(-reach, reach, SIZE_PX - 42, 8.0)
    )
    ticks = svg.rounded_ticks(-reach, reach, 6)
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
            parts.append(svg.words_at(x, y + 4, label, anchor="middle", class_="in"))
            for line, what in enumerate((f"{place:.2f}", f"± {error:.2f}")):
                parts.append(
                    svg.words_at(x, y + 22 + 11 * line, what, anchor="middle", class_="small")
                )
    middle = (frame.x.start_px + frame.x.end_px) / 2
    parts.append(svg.axis_name(say("x_axis_um", tag="tspan"), middle, SIZE_PX - 6))
    parts.append(svg.upright_name(say("y_axis_um", tag="tspan"), 12.0, SIZE_PX / 2))
    return svg.drawing(parts, SIZE_PX, SIZE_PX)


def _spot_cells(index: int, spot: Mapping[str, Any]) -> Iterator[object]:
    yield from (index, svg.number(spot["x_um"]), svg.number(spot["y_um"]))
    yield "?" if spot["layer_count"] is None else spot["layer_count"]
    yield f"{spot['peak_distance_cm1']:.2f} ± {spot['peak_distance_sigma_cm1']:.2f}"
    yield from (f"{spot[name]:.2f}" for name in ("e2g_cm1", "a1g_cm1"))
    for name in ("a1g_over_silicon", "pl_over_a1g", "snr", "reduced_chi2"):
        yield "–" if spot[name] is None else svg.significant(spot[name], 3)


def _fit(facts: RunFacts, found: Mapping[str, Any]) -> tuple[Html, Html] | None:
    """Draw the fit of the clearest spot, with the sentence on it; None without its spectrum."""
    import numpy as np

    index = found["best_spot"]
    spectra = facts.spectra.get("raman", ())
    if index is None or not 0 <= index < len(spectra):
        return None
    spot, spectrum = found["spots"][index], spectra[index]
    low, high = FIT_WINDOW_CM1
    shift = np.array(spectrum["raman_shift"]) + (spot["silicon_offset_cm1"] or 0.0)
    inside = (shift >= low) & (shift <= high)
    x, counts = shift[inside], np.array(spectrum["counts"])[inside] - facts.spectra["dark_counts"]
    places = np.array([spot["e2g_cm1"], spot["a1g_cm1"]])
    widths = np.array([spot["e2g_fwhm_cm1"], spot["a1g_fwhm_cm1"]])

    def shapes(at: "Array") -> "Array":
        lorentz = 1 / (1 + ((at[:, None] - places) / (widths / 2)) ** 2)
        return np.column_stack([lorentz, np.ones_like(at), at - (low + high) / 2])

    weights = _heights(shapes(x), counts)
    model = shapes(x) @ weights
    steps, ends = np.linspace(low, high, CURVE_STEPS + 1), np.array([low, high])
    labels = zip(places.tolist(), (shapes(places) @ weights).tolist(), LINES, strict=True)
    drawn = Fitted(
        range=FIT_WINDOW_CM1,
        points=pairs(x, counts),
        residuals=pairs(x, (counts - model) / np.sqrt(np.maximum(model, 1.0))),
        fitted=pairs(steps, shapes(steps) @ weights),
        ground=pairs(ends, shapes(ends)[:, 2:] @ weights[2:]),
        labels=[(place, height, f"{name} {place:.2f}") for place, height, name in labels],
    )
    place = f"x {svg.number(spot['x_um'])} µm, y {svg.number(spot['y_um'])} µm"
    distance = f"{spot['peak_distance_cm1']:.2f} cm⁻¹"
    quality = say("chi2", value=f"{spot['reduced_chi2']:.2f}")
    parts = fit_parts(drawn, partial(say, tag="tspan"))
    return svg.drawing([parts], FIT_PX, FIT_PX), joined(place, distance, quality, between=" · ")


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
