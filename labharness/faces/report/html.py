"""Elements of markup; recorded text in them is escaped and cannot become markup."""

import re
from typing import Final

TEXT_CHARACTERS_MAX: Final = 4000
"""Characters of one recorded text that a page shows; the journal keeps all of it."""

# Controls break markup, lone surrogates have no UTF-8, and direction overrides (Unicode TR 36) can
# make a reader see another text than the one that was recorded.
_UNSHOWABLE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
_ESCAPES: Final = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"}
)


class Html(str):
    """Text that is markup already; templates know it by `__html__`."""

    __slots__ = ()

    def __html__(self) -> str:
        """Return it as it is."""
        return self


def text(raw: object) -> Html:
    """Return any value as text that is safe between tags and within quotes, bounded in length."""
    shown = str(raw)
    if len(shown) > TEXT_CHARACTERS_MAX:
        shown = f"{shown[:TEXT_CHARACTERS_MAX]}… (+{len(shown) - TEXT_CHARACTERS_MAX})"
    return Html(_UNSHOWABLE.sub("\ufffd", shown).translate(_ESCAPES))


def escaped(value: object) -> object:
    """Return a value as a page shows it: markup unchanged, anything else as safe text."""
    return value if hasattr(value, "__html__") else text(value)


def joined(*parts: object, between: str = "") -> Html:
    """Put parts one after the other; what is not ``Html`` is escaped."""
    return Html(between.join(str(escaped(part)) for part in parts))


def el(tag: str, *children: object, **attributes: object) -> Html:
    """Return one element of a drawing or a sentence; pages and tables are templates.

    Args:
        tag: Its name; from this program, never from a file.
        children: Its content; escaped unless it is ``Html``.
        attributes: ``class_`` is ``class``, ``stroke_width`` is ``stroke-width``; ``None`` is
            left out; a float is written to a tenth, which is finer than a pixel. ``Html`` is
            written unchanged, so it must hold no quotes: the points of a curve.
    """
    written = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{_attribute(value)}"'
        for name, value in attributes.items()
        if value is not None
    )
    return Html(f"<{tag}{written}>{joined(*children)}</{tag}>")


def _attribute(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.1f}".removesuffix(".0")
    return str(escaped(value))
