"""The limits in a chart: one line each, with a label that names instrument and effect."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from labharness.core.languages import LANGUAGES
from labharness.core.vocabulary.channels import owner_of
from labharness.faces.report.html import Html, el, joined
from labharness.faces.report.quantities import ChartedQuantity, acting
from labharness.faces.report.svg import Frame, exact, level, words_at
from labharness.faces.report.words import plain, say
from labharness.work.desk.rules_record import Bar

CHARACTER_PX, CHINESE_PX = 6.6, 12.5
CJK_FIRST: Final = "\u2e80"
LINE_PX: Final = 13.0
LABEL_PX_MAX: Final = 260.0


@dataclass(frozen=True, slots=True)
class _Line:
    """One line: its effect, its value and the instruments that it concerns."""

    does: str
    value: float
    owners: tuple[str, ...]
    whole: bool

    @property
    def key(self) -> str:
        """The key of its label, which names no instrument where it concerns all of them."""
        return f"limit.{self.does}.all" if self.whole else f"limit.{self.does}"

    @property
    def fields(self) -> dict[str, str]:
        """The values of the blanks of its label."""
        return {"who": ", ".join(self.owners), "value": exact(self.value)}


def text_px(text: str) -> float:
    """Estimate how wide a text is at 12 px."""
    return sum(CHINESE_PX if each >= CJK_FIRST else CHARACTER_PX for each in text)


def label_px(drawn: Iterable[ChartedQuantity]) -> float:
    """Return the room that the longest label of some charts takes beside them."""
    widths = [
        text_px(plain(line.key, language, **line.fields))
        for quantity in drawn
        for line in _lines(quantity)
        for language in LANGUAGES
    ]
    return min(max(widths, default=0.0), LABEL_PX_MAX)


def limits(frame: Frame, quantity: ChartedQuantity, *, beside: bool) -> Html:
    """Draw all lines with their labels.

    Args:
        frame: Of the chart.
        quantity: The quantity of the chart.
        beside: The labels have room to the right of the plot; else they stand within it.
    """
    lines = sorted(_lines(quantity), key=lambda line: -line.value)
    left, right = frame.x.start_px, frame.x.end_px
    offset = 4.0 if beside else -4.0  # a label within stands on its line, one outside beside it
    wanted = [frame.y(each.value) + offset for each in lines]
    places = apart(wanted, frame.y.end_px + offset, frame.y.start_px)
    parts = []
    for line, label_y in zip(lines, places, strict=True):
        at = frame.y(line.value)
        owner = line.owners[0] if len(line.owners) == 1 else ""
        stroke = quantity.colour(owner) if line.does == "set" else None
        parts.append(level(at, left, right, f"limit {line.does}", stroke=stroke))
        index = quantity.colour_index(owner)
        style = "halo" if index is None else f"halo c{index}"
        said = say(line.key, tag="tspan", **line.fields)
        if beside:
            leader = {"x1": right, "x2": right + 6, "y1": at, "y2": label_y - 4}
            parts.append(el("line", **leader, class_="leader"))
            parts.append(words_at(right + 9, label_y, said, class_=style))
        else:
            parts.append(words_at(right - 3, label_y, said, anchor="end", class_=style))
    return joined(*parts)


def _lines(quantity: ChartedQuantity) -> Iterator[_Line]:
    grouped: dict[tuple[str, float], list[Bar]] = {}
    warns = (bar for bar in quantity.watched if not bar.trips)
    for does, bars in (
        ("trips", acting(quantity.watched)),
        ("warns", warns),
        ("set", quantity.settable),
    ):
        for bar in bars:
            grouped.setdefault((does, bar.value), []).append(bar)
    for (does, value), bars in grouped.items():
        owners = tuple(dict.fromkeys(owner_of(bar.channel) for bar in bars))
        whole = len(owners) > 1 and set(owners) == set(quantity.owners)
        yield _Line(does, value, owners, whole)


def apart(places: Sequence[float], top: float, bottom: float) -> list[float]:
    """Move labels (the highest first) apart, so that none lies on another or below the plot."""
    found: list[float] = []
    for at in places:
        wanted = max(at, top)
        found.append(max(wanted, found[-1] + LINE_PX) if found else wanted)
    floor = bottom
    for index in reversed(range(len(found))):
        found[index] = min(found[index], floor)
        floor = found[index] - LINE_PX
    return found
