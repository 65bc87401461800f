"""Drawings of an analysed file: the clearest spectrum with its fits, and maps of all spectra."""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

import numpy as np

from labharness.analysis.analysed import Analysed
from labharness.analysis.arrays import Array
from labharness.analysis.line_table import ratio_of
from labharness.analysis.measured import FittedRange, MeasuredLine, place_columns
from labharness.analysis.photoluminescence import PlBand
from labharness.faces.report import maps, markup
from labharness.faces.report.cvd.film import LAYER_COLOURS
from labharness.faces.report.document import style
from labharness.faces.report.figures import FIT_PX, Fitted, fit_parts, pairs, span_of
from labharness.faces.report.maps import Classes, MappedQuantity
from labharness.faces.report.markup import Html, el, joined
from labharness.faces.report.words import plain, say

In = Callable[[str], Html]
"""Returns the phrase of a key for a drawing: in both languages, or in one."""

BOTH: Final[In] = partial(say, tag="tspan")

WHOLE_WIDTH, WHOLE_HEIGHT = 940.0, 240.0
CURVE_STEPS: Final = 400
HEAD_PX: Final = 52.0
"""Of a picture of its own: room for its title."""

GAP_PX: Final = 16.0
MAPS_A_ROW: Final = 3

RULE_OF_SVG: Final = re.compile(r"^svg [^{}]*\{[^{}]*\}", re.MULTILINE)
SIX_OR_MORE: Final = 6
DIFFERENCE: Final = ("A1g", "E2g")
"""The two lines of MoS2 whose distance grows with the layers."""


def whole_drawn(shown: Analysed) -> Html:
    """Draw the whole of the clearest spectrum, the fitted ranges shaded."""
    return markup.drawing([_whole_parts(shown, BOTH)], WHOLE_WIDTH, WHOLE_HEIGHT)


def fits_drawn(shown: Analysed) -> list[Html]:
    """Draw each fitted range of the clearest spectrum, with its fit and residuals."""
    return [markup.drawing([each], FIT_PX, FIT_PX) for each in _fit_parts(shown, BOTH)]


def pl_drawn(band: PlBand) -> Html:
    """Draw photoluminescence with the fit of its band."""
    return markup.drawing([_pl_parts(band, BOTH)], FIT_PX, FIT_PX)


def maps_drawn(shown: Analysed) -> list[Html]:
    """Draw position, width, ratio and class of all spectra, each where it was measured."""
    size = maps.MAP_WIDTH_PX, maps.MAP_HEIGHT_PX
    return [markup.drawing([each], *size) for each in _map_parts(shown)]


def file_svg(shown: Analysed, title: str, subtitle: str) -> str:
    """Draw the clearest spectrum as a picture of its own, in English: text of an SVG file."""
    whole = _placed(_whole_parts(shown, _english), 0.0, 0.0)
    squares = _fit_parts(shown, _english)
    band = shown.band_of(shown.best)
    if band is not None:
        squares.append(_pl_parts(band, _english))
    side, top = FIT_PX + GAP_PX, WHOLE_HEIGHT + GAP_PX
    height = top + math.ceil(len(squares) / 2) * side
    placed = _in_rows(squares, 2, side, side, top)
    return _own([whole, *placed], WHOLE_WIDTH, height, title, subtitle)


def map_svg(shown: Analysed, title: str, subtitle: str) -> str:
    """Draw all maps as a picture of their own: text of an SVG file."""
    parts, across, down = _map_parts(shown), maps.MAP_WIDTH_PX, maps.MAP_HEIGHT_PX
    width = max(min(len(parts), MAPS_A_ROW) * across, FIT_PX)
    height = math.ceil(len(parts) / MAPS_A_ROW) * down
    return _own(_in_rows(parts, MAPS_A_ROW, across, down), width, height, title, subtitle)


def _fit_parts(shown: Analysed, words: In) -> list[Html]:
    fitted = (_fitted(each, shown.best) for each in _drawn(shown))
    return [fit_parts(each, words, up="intensity") for each in fitted]


def _map_parts(shown: Analysed) -> list[Html]:
    places = maps.places_of(place_columns(shown.recording.places), len(shown.found.spectra))
    return [maps.map_parts(places, each) for each in _quantities(shown)]


def _in_rows(
    parts: Sequence[Html], a_row: int, width: float, height: float, top: float = 0.0
) -> list[Html]:
    """Place drawings of one size beside and below each other."""
    return [
        _placed(each, at % a_row * width, top + at // a_row * height)
        for at, each in enumerate(parts)
    ]


def _drawn(shown: Analysed) -> list[FittedRange]:
    """Leave out ranges in which nothing stands out, as silicon's is on sapphire; never all."""
    found = [
        each for each in shown.fitted if any(line.stands_out[shown.best] for line in each.lines)
    ]
    return found or list(shown.fitted)


def _english(key: str) -> Html:
    return joined(plain(key))


def _placed(parts: Html, x: float, y: float) -> Html:
    return el("g", parts, transform=f"translate({x:.1f} {HEAD_PX + y:.1f})")


def _own(parts: Sequence[Html], width: float, height: float, title: str, subtitle: str) -> str:
    """Return drawings a file of their own: name space, style, white paper and a title."""
    whole = height + HEAD_PX
    picture = el(
        "svg",
        el("style", Html("\n".join(RULE_OF_SVG.findall(style())))),  # rules for drawings alone
        markup.box(0, 0, width, whole, fill="#fff"),
        markup.words_at(12.0, 20.0, title, font_size=15, font_weight="bold"),
        markup.words_at(12.0, 40.0, subtitle),
        *parts,
        id="labharness-analyse",  # by this it is known as one that may be drawn again
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width:.0f} {whole:.0f}",
        width=width,
        height=whole,
        font_family="system-ui,sans-serif",
    )
    return f"{picture}\n"


def _whole_parts(shown: Analysed, words: In) -> Html:
    row = shown.recording.intensity[shown.best]
    x = shown.found.spectra[shown.best].shift_cm1
    frame = markup.Frame(
        markup.Scale(float(x[0]), float(x[-1]), 64.0, WHOLE_WIDTH - 8),
        markup.Scale(*span_of([float(row.min()), float(row.max())]), WHOLE_HEIGHT - 42, 8.0),
    )
    shaded = [
        markup.box(low, 8.0, high - low, WHOLE_HEIGHT - 50, fill="#eef2f6")
        for low, high in (map(frame.x, each.range_cm1) for each in _drawn(shown))
    ]
    points = pairs(x, row)
    return joined(
        *shaded,
        frame.axes(
            frame.x.ticks(10),
            frame.y.ticks(4),
        ),
        markup.curve(frame, points, math.inf, stroke=markup.COLOURS[0], stroke_width=1.1),
        markup.axis_name(words("shift_axis"), WHOLE_WIDTH / 2, WHOLE_HEIGHT - 6),
        markup.upright_name(words("intensity"), 12.0, (WHOLE_HEIGHT - 42) / 2),
    )


def _fitted(each: FittedRange, index: int) -> Fitted:
    """Take one spectrum of a fitted range, as it is drawn."""
    x, counts, model = each.shift_cm1, each.counts[index], partial(each.model, index)
    steps = np.linspace(*each.range_cm1, CURVE_STEPS + 1)
    labels = []
    for line in each.lines:
        if line.stands_out[index]:
            place, width = float(line.position_cm1[index]), float(line.fwhm_cm1[index])
            height = _height(place, width, x, counts, model)
            labels.append((place, height, f"{line.name} {place:.2f}"))
    return Fitted(
        range=each.range_cm1,
        points=pairs(x, counts),
        residuals=pairs(x, (counts - model(x)) / each.noise_counts[index]),
        fitted=pairs(steps, model(steps)),
        ground=pairs(steps, each.ground(index, steps)),
        labels=labels,
    )


def _height(
    place: float, width: float, x: Array, counts: Array, model: Callable[[Array], Array]
) -> float:
    """Return how high a line is drawn: the highest of its model and of the points near it."""
    near = np.abs(x - place) <= width / 2
    height: float = max(float(model(np.array([place]))[0]), *counts[near].tolist())
    return height


def _pl_parts(band: PlBand, words: In) -> Html:
    x, place = band.wavelength_nm, band.position_nm
    low, high = float(x[0]), float(x[-1])
    steps = np.linspace(low, high, CURVE_STEPS + 1)
    height = _height(place, band.fwhm_nm, x, band.counts, band.model)
    label = (place, height, f"{place:.1f} nm, {band.energy_ev:.3f} eV")
    drawn = Fitted(
        range=(low, high),
        points=pairs(x, band.counts),
        residuals=pairs(x, (band.counts - band.model(x)) / band.noise_counts),
        fitted=pairs(steps, band.model(steps)),
        ground=pairs(x, band.ground_counts),
        labels=[label] if band.stands_out else [],
    )
    return fit_parts(drawn, words, "wavelength_axis", "intensity")


# ---- what is mapped


def _quantities(shown: Analysed) -> Iterator[MappedQuantity | Classes]:
    yield _classes(shown)
    lines = [each for each in shown.lines() if each.stands_out.any()]
    for line in lines:
        yield _of_line(line, "position", line.position_cm1, line.position_sigma_cm1)
    for line in lines:
        yield _of_line(line, "width", line.fwhm_cm1, line.fwhm_sigma_cm1)
    upper, lower = (shown.line(name) for name in DIFFERENCE)
    if upper is not None and lower is not None:
        yield _difference(upper, lower)
    ratio = ratio_of(shown.material)
    if ratio is not None:
        above, below = map(shown.line, ratio)
        if above is not None and below is not None:
            yield _ratio(above, below)


def _of_line(line: MeasuredLine, what: str, *columns: Array) -> MappedQuantity:
    seen = (np.where(line.stands_out, each, np.nan) for each in columns)
    return MappedQuantity(f"{line.name} {what}, cm⁻¹", *seen)


def _difference(upper: MeasuredLine, lower: MeasuredLine) -> MappedQuantity:
    both = upper.stands_out & lower.stands_out
    return MappedQuantity(
        f"{upper.name} − {lower.name}, cm⁻¹",
        np.where(both, upper.position_cm1 - lower.position_cm1, np.nan),
        np.hypot(upper.position_sigma_cm1, lower.position_sigma_cm1),
    )


def _ratio(above: MeasuredLine, below: MeasuredLine) -> MappedQuantity:
    both = above.stands_out & below.stands_out
    share = np.divide(
        above.height_counts, below.height_counts, out=np.full(both.size, np.nan), where=both
    )
    relative = np.hypot(
        np.divide(above.height_sigma_counts, above.height_counts, where=both, out=share * np.nan),
        np.divide(below.height_sigma_counts, below.height_counts, where=both, out=share * np.nan),
    )
    return MappedQuantity(f"height {above.name} / {below.name}", share, share * relative)


def _classes(shown: Analysed) -> Classes:
    """Classify by layers where a count is claimed, and by material everywhere else.

    Where the layers of a film are undetermined, no place has a number: the answer claims none.
    """
    verdict = shown.found.verdict
    claimed = verdict is not None and verdict.layer_count is not None
    layers = shown.layer_classes() if claimed else (None,) * len(shown.found.materials)
    judged = any(each is not None for each in layers)
    film = shown.found.material
    names = [
        _layers_name(count)
        if count is not None
        else f"{material}, not judged"
        if judged and material == film
        else material
        for count, material in zip(layers, shown.found.materials, strict=True)
    ]
    layered = {_layers_name(count): colour for count, colour in LAYER_COLOURS.items()}
    by_layers = [name for name in layered if name in names]
    others = sorted(set(names) - set(by_layers), key=names.count, reverse=True)
    known = [*by_layers, *others]
    colours = [layered[name] for name in by_layers]
    colours += [_other_colour(name, at, judged) for at, name in enumerate(others)]
    index = np.array([known.index(name) for name in names], dtype=np.intp)
    title = "most likely layers at each place" if judged else "what each spectrum shows"
    return Classes(title, known, colours, index)


BARE: Final = ("silicon", "unknown", "not judged", "sapphire", "SiO2")
GREYS: Final = ("#b9c0c7", "#d9dde1", "#8b949e", "#6b7580", "#a5acb3")


def _other_colour(name: str, at: int, judged: bool) -> str:
    """Return colours to films, and greys to bare substrate and to what is beside the layers."""
    if judged or name in BARE:
        return GREYS[at % len(GREYS)]
    return markup.COLOURS[at % len(markup.COLOURS)]


def _layers_name(count: int) -> str:
    if count >= SIX_OR_MORE:
        return "6 or more layers"
    return "1 layer" if count == 1 else f"{count} layers"
