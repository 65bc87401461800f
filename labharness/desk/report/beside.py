"""The spectra beside the fit that the answer leans on: silicon, and photoluminescence."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from labharness.desk.report.facts import RunFacts
from labharness.desk.report.html import Html, el, joined
from labharness.desk.report.svg import Frame, Scale, curve, exact, rounded_ticks
from labharness.desk.report.words import say

__all__ = ["spectra_beside"]

WIDTH_PX, HEIGHT_PX = 460.0, 250.0
SILICON_REACH_CM1: Final = 18.0
"""To either side of silicon: its line and enough ground."""


def spectra_beside(facts: RunFacts) -> Html:
    """Draw the silicon line and the photoluminescence of the clearest spot."""
    from labharness.analysis.peaks import SILICON_POSITION_CM1

    found = facts.results["raman_analysis"]
    index = found["best_spot"]
    raman = facts.spectra.get("raman") or []
    if index is None or not 0 <= index < len(raman):
        return Html("")
    spot, spectrum = found["spots"][index], raman[index]
    dark = float(facts.spectra["dark_counts"])
    offset_cm1 = spot["silicon_offset_cm1"] or 0.0
    shifted = [x + offset_cm1 for x in spectrum["raman_shift"]]
    drawn = [
        _figure("silicon", "shift_axis", _points(shifted, spectrum, dark), SILICON_POSITION_CM1)
    ]
    glow = _same_place(facts.spectra.get("photoluminescence") or [], spot)
    if glow is not None:
        drawn.append(_figure("pl", "wavelength_axis", _points(glow["wavelength_nm"], glow, dark)))
    return el("div", *drawn, class_="pair")


def _points(
    axis: Sequence[float], spectrum: Mapping[str, Any], dark: float
) -> list[tuple[float, float]]:
    return [(x, counts - dark) for x, counts in zip(axis, spectrum["counts"], strict=True)]


def _same_place(
    spectra: Sequence[Mapping[str, Any]], spot: Mapping[str, Any]
) -> Mapping[str, Any] | None:
    here = spot["x_um"], spot["y_um"]
    return next((each for each in spectra if (each["x_um"], each["y_um"]) == here), None)


def _figure(
    key: str, axis: str, points: list[tuple[float, float]], middle: float | None = None
) -> Html:
    if middle is not None:
        points = [each for each in points if abs(each[0] - middle) <= SILICON_REACH_CM1]
    if len(points) < 2:
        return Html("")
    places, heights = [x for x, _ in points], [y for _, y in points]
    frame = Frame(
        Scale(min(places), max(places), 62.0, WIDTH_PX - 8),
        Scale(min(0.0, *heights), max(heights) * 1.1 or 1.0, HEIGHT_PX - 42, 8.0),
    )
    ticks = rounded_ticks(frame.x.low, frame.x.high, 6)
    parts = [
        frame.axes(ticks, rounded_ticks(frame.y.low, frame.y.high, 5)),
        curve(frame, tuple(points), math.inf, stroke="#0072b2", class_="trace"),
    ]
    if middle is not None:
        x = frame.x(middle)
        line = el("line", x1=x, x2=x, y1=8.0, y2=HEIGHT_PX - 42, class_="ground")
        label = el("text", exact(middle), x=x + 4, y=20.0)
        parts += [line, label]
    centre = (frame.x.start_px + frame.x.end_px) / 2
    name = say(axis, tag="tspan")
    parts.append(el("text", name, x=centre, y=HEIGHT_PX - 6, text_anchor="middle"))
    turned = f"translate(12 {HEIGHT_PX / 2 - 16:.0f}) rotate(-90)"
    parts.append(el("text", say("counts", tag="tspan"), transform=turned, text_anchor="middle"))
    size = f"0 0 {WIDTH_PX:.0f} {HEIGHT_PX:.0f}"
    drawing = el("svg", *parts, viewBox=size, role="img")
    return el("figure", el("figcaption", el("b", say(f"spectrum_{key}"))), joined(drawing))
