"""The thickness that a caller's words name, compared with the film.

Words are never obeyed: they choose no recipe and fail no task. They are read so that a caller who
wrote "monolayer" does not take another film for one.
"""

import re
from collections.abc import Mapping
from typing import Any

from labharness.core.vocabulary.texts import Text

__all__ = ["met", "named"]

FEW: tuple[int, ...] = (2, 3, 4, 5)
"""Few-layer."""

WORDS: tuple[tuple[str, tuple[int, ...]], ...] = (
    (r"mono-?layers?|single[- ]layers?(?:ed)?|one[- ]layer|\b1L\b|单层", (1,)),
    (r"bi-?layers?|double[- ]layers?|two[- ]layers?|\b2L\b|双层", (2,)),
    (r"tri-?layers?|three[- ]layers?|\b3L\b|三层", (3,)),
    (r"few-?[ ]?layers?(?:ed)?|少层", FEW),
)
"""English and Chinese; a word that is not here is not read."""

DENIED = re.compile(
    r"\b(?:no|not|non|without|avoid\w*|never|prevent\w*|suppress\w*|except|than|instead of|from)"
    r"[\s-]+(?:\w+[\s-]+){0,2}$|(?:不|无|避免)\s*$",
    re.IGNORECASE,
)
"""Words before a thickness that is not wanted, or that another one is compared with."""


def named(text: str) -> tuple[str, tuple[int, ...]] | None:
    """Return the words that name a thickness and the classes they mean; None where none does.

    Several are each as good as the other ("monolayer or bilayer"). Where one is denied nothing is
    read at all: a sentence like that is not for a program.
    """
    said: list[str] = []
    named: set[int] = set()
    for pattern, classes in WORDS:
        for found in re.finditer(rf"(?<![A-Za-z-])(?:{pattern})", text, re.IGNORECASE):
            if DENIED.search(text[max(0, found.start() - 40) : found.start()]):
                return None
            said.append(found.group())
            named.update(classes)
    if not said:
        return None
    return " / ".join(dict.fromkeys(each.lower() for each in said)), tuple(sorted(named))


def met(text: str, film: Mapping[str, Any], layer_count: int | None) -> dict[str, Any]:
    """Compare the thickness in the words with the film.

    Args:
        text: The intent.
        film: Of the outputs: headline and kind of claim.
        layer_count: The predominant class.

    Returns:
        ``words`` that name a thickness, ``met``, and ``said``: a sentence, empty where it was met.
        Where no thickness is named ``words`` is empty and ``met`` None. A mixed film meets no word,
        nor does one that is mainly so.
    """
    wish = named(text)
    if wish is None:
        return {"words": "", "met": None, "said": ""}
    words, classes = wish
    good = film["claim"] in ("film", "place") and layer_count in classes
    said = "" if good else Text("film.not_as_intended", words=words, headline=film["headline"])
    return {"words": words, "met": good, "said": said}
