"""Drawings of an analysed file: the clearest spectrum with its fits, and maps of all spectra."""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from labharness.analysis.analysed import Analysed
from labharness.analysis.line_table import ratio_of
from labharness.analysis.measured import FittedRange, MeasuredLine, place_columns
from labharness.analysis.photoluminescence import PlBand
from labharness.faces.report import markup
from labharness.faces.report.cvd.film import LAYER_COLOURS
from labharness.faces.report.document import style
from labharness.faces.report.figures import FIT_PX, Fitted, fit_parts, pairs, span_of
from labharness.faces.report.maps import (
    MAP_HEIGHT_PX,
    MAP_WIDTH_PX,
    Classes,
    MappedQuantity,
    map_parts,
    places_of,
)
from labharness.faces.report.markup import Html, el, joined
from labharness.faces.report.words import plain, say

Array = NDArray[np.float64]

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


def whole_drawn(shown: Analysed, words: In = BOTH) -> Html:
    """Draw the whole of the clearest spectrum, the fitted ranges shaded."""
    return markup.drawing([_whole_parts(shown, words)], WHOLE_WIDTH, WHOLE_HEIGHT)


def fits_drawn(shown: Analysed, words: In = BOTH) -> list[Html]:
    """Draw each fitted range of the clearest spectrum, with its fit and residuals."""
    return [
        markup.drawing(
            [fit_parts(_fitted(each, shown.best), words, up="intensity")], FIT_PX, FIT_PX
        )
        for each in _drawn(shown)
    ]


def pl_drawn(band: PlBand, words: In = BOTH) -> Html:
    """Draw photoluminescence with the fit of its band."""
    return markup.drawing([_pl_parts(band, words)], FIT_PX, FIT_PX)


def maps_drawn(shown: Analysed) -> list[Html]:
    """Draw position, width, ratio and class of all spectra, each where it was measured."""
    places = places_of(place_columns(shown.recording.places), len(shown.found.spectra))
    return [
        markup.drawing([map_parts(places, each)], MAP_WIDTH_PX, MAP_HEIGHT_PX)
        for each in _quantities(shown)
    ]


def file_svg(shown: Analysed, title: str, subtitle: str) -> str:
    """Draw the clearest spectrum as a picture of its own, in English: text of an SVG file."""
    in_english: In = _english
    parts = [_placed(_whole_parts(shown, in_english), 0.0, 0.0)]
    squares = [
        fit_parts(_fitted(each, shown.best), in_english, up="intensity") for each in _drawn(shown)
    ]
    band = shown.band_of(shown.best)
    if band is not None:
        squares.append(_pl_parts(band, in_english))
    top = WHOLE_HEIGHT + GAP_PX
    for at, each in enumerate(squares):
        across, down = at % 2, at // 2
        parts.append(_placed(each, across * (FIT_PX + GAP_PX), top + down * (FIT_PX + GAP_PX)))
    height = top + math.ceil(len(squares) / 2) * (FIT_PX + GAP_PX)
    return _own(parts, WHOLE_WIDTH, height, title, subtitle)


def map_svg(shown: Analysed, title: str, subtitle: str) -> str:
    """Draw all maps as a picture of their own: text of an SVG file."""
    places = places_of(place_columns(shown.recording.places), len(shown.found.spectra))
    quantities = list(_quantities(shown))
    parts = [
        _placed(
            map_parts(places, each),
            at % MAPS_A_ROW * MAP_WIDTH_PX,
            at // MAPS_A_ROW * MAP_HEIGHT_PX,
        )
        for at, each in enumerate(quantities)
    ]
    rows = math.ceil(len(quantities) / MAPS_A_ROW)
    width = min(len(quantities), MAPS_A_ROW) * MAP_WIDTH_PX
    return _own(parts, max(width, FIT_PX), rows * MAP_HEIGHT_PX, title, subtitle)


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
            markup.rounded_ticks(frame.x.low, frame.x.high, 10),
            markup.rounded_ticks(frame.y.low, frame.y.high, 4),
        ),
        markup.curve(frame, points, math.inf, stroke=markup.COLOURS[0], stroke_width=1.1),
        markup.axis_name(words("shift_axis"), WHOLE_WIDTH / 2, WHOLE_HEIGHT - 6),
        markup.upright_name(words("intensity"), 12.0, (WHOLE_HEIGHT - 42) / 2),
    )


def _fitted(each: FittedRange, index: int) -> Fitted:
    """Take one spectrum of a fitted range, as it is drawn."""
    low, high = each.range_cm1
    x, counts = each.shift_cm1, each.counts[index]
    steps = np.linspace(low, high, CURVE_STEPS + 1)
    model, ground = each.model(index, steps), each.ground(index, steps)
    residuals = (counts - each.model(index, x)) / each.noise_counts[index]
    shown = [line for line in each.lines if line.stands_out[index]]
    return Fitted(
        range=(low, high),
        points=pairs(x, counts),
        residuals=pairs(x, residuals),
        fitted=pairs(steps, model),
        ground=pairs(steps, ground),
        labels=[_label(line, each, index) for line in shown],
    )


def _label(line: MeasuredLine, each: FittedRange, index: int) -> tuple[float, float, str]:
    place = float(line.position_cm1[index])
    near = np.abs(each.shift_cm1 - place) <= float(line.fwhm_cm1[index]) / 2
    height = float(each.model(index, np.array([place]))[0])
    height = max(height, *each.counts[index][near].tolist())
    return place, height, f"{line.name} {place:.2f}"


def _pl_parts(band: PlBand, words: In) -> Html:
    x = band.wavelength_nm
    low, high = float(x[0]), float(x[-1])
    steps = np.linspace(low, high, CURVE_STEPS + 1)
    residuals = (band.counts - band.model(x)) / band.noise_counts
    place = band.position_nm
    near = np.abs(x - place) <= band.fwhm_nm / 2
    height = max(float(band.model(np.array([place]))[0]), *band.counts[near].tolist())
    label = (place, height, f"{place:.1f} nm, {band.energy_ev:.3f} eV")
    drawn = Fitted(
        range=(low, high),
        points=pairs(x, band.counts),
        residuals=pairs(x, residuals),
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
        values, sigma = line.position_cm1, line.position_sigma_cm1
        yield MappedQuantity(f"{line.name} position, cm⁻¹", _seen(line, values), _seen(line, sigma))
    for line in lines:
        values, sigma = line.fwhm_cm1, line.fwhm_sigma_cm1
        yield MappedQuantity(f"{line.name} width, cm⁻¹", _seen(line, values), _seen(line, sigma))
    upper, lower = (shown.line(name) for name in DIFFERENCE)
    if upper is not None and lower is not None:
        yield _difference(upper, lower)
    ratio = ratio_of(shown.material)
    if ratio is not None:
        above, below = shown.line(ratio.above), shown.line(ratio.below)
        if above is not None and below is not None:
            yield _ratio(above, below)


def _seen(line: MeasuredLine, values: Array) -> Array:
    return np.where(line.stands_out, values, np.nan)


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
    by_layers = [_layers_name(count) for count in LAYER_COLOURS if _layers_name(count) in names]
    others = sorted(set(names) - set(by_layers), key=names.count, reverse=True)
    known = [*by_layers, *others]
    colours = [
        *(LAYER_COLOURS[count] for count in LAYER_COLOURS if _layers_name(count) in names),
        *(_other_colour(name, at, judged) for at, name in enumerate(others)),
    ]
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
