"""HTML whose text is escaped unless it was made here: a hostile string has no way in."""

import re
from collections.abc import Iterable
from typing import Final

__all__ = ["TEXT_CHARACTERS_MAX", "Html", "el", "joined", "table", "text"]

TEXT_CHARACTERS_MAX: Final = 4000
"""Characters of one recorded text that a page shows; the journal keeps all of it."""

VOID: Final = {"br", "input", "meta"}

# Controls break markup, lone surrogates have no UTF-8, and direction overrides (Unicode TR 36) can
# make a reader see another text than the one that was recorded.
_UNSHOWABLE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
_ESCAPES: Final = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"}
)


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


def text(raw: object) -> Html:
    """Return any value as text that is safe between tags and within quotes, bounded in length."""
    shown = str(raw)
    if len(shown) > TEXT_CHARACTERS_MAX:
        shown = f"{shown[:TEXT_CHARACTERS_MAX]}… (+{len(shown) - TEXT_CHARACTERS_MAX})"
    return Html(_UNSHOWABLE.sub("\ufffd", shown).translate(_ESCAPES))


def joined(*parts: object) -> Html:
    """Put parts one after the other; what is not ``Html`` is escaped."""
    return Html("".join(part if isinstance(part, Html) else text(part) for part in parts))


def el(tag: str, *children: object, **attributes: object) -> Html:
    """Return one element.

    Args:
        tag: Its name; from this program, never from a file.
        children: What is in it; escaped unless it is ``Html``.
        attributes: ``class_`` is ``class``, ``stroke_width`` is ``stroke-width``; ``None`` is
            left out; a float is written to a tenth, which is finer than a pixel. ``Html`` is
            written as it is, so it must hold no quotes: the points of a curve.
    """
    written = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{_attribute(value)}"'
        for name, value in attributes.items()
        if value is not None
    )
    if tag in VOID:
        return Html(f"<{tag}{written}>")
    return Html(f"<{tag}{written}>{joined(*children)}</{tag}>")


def table(heads: Iterable[object], rows: Iterable[Html], class_: str | None = None) -> Html:
    """Return a table that scrolls by itself where the page is narrow."""
    head = el("thead", el("tr", *(el("th", each) for each in heads)))
    return el("div", el("table", head, el("tbody", *rows), class_=class_), class_="scroll")


def _attribute(value: object) -> str:
    if isinstance(value, Html):
        return value
    if isinstance(value, float):
        return f"{value:.1f}".removesuffix(".0")
    return text(value)
