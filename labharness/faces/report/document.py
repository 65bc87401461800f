"""The skeleton of a page that is one file: no script, no network, both languages."""

from collections.abc import Iterable
from typing import Final

from labharness.faces.report.html import Html, el
from labharness.faces.report.style import STYLE
from labharness.faces.report.words import LANGUAGES, say

__all__ = ["GENERATOR", "POLICY", "document", "section"]

GENERATOR: Final = "labharness"
"""By this a page is known for one that may be written over."""

POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
"""Should a string ever get through as markup, a browser still runs and loads nothing."""

PICTURES: Final = "; img-src data:"
"""For a page with maps, whose pictures stand in the page itself."""

TITLE_CHARACTERS_MAX: Final = 200


def document(
    title: str, sections: Iterable[Html], language: str = "en", *, pictures: bool = False
) -> str:
    """Return a whole page.

    Args:
        title: Of the window; plain text.
        sections: What is on it.
        language: Which of ``LANGUAGES`` is shown first; the page holds all.
        pictures: Whether it holds pictures beside drawings.
    """
    choices = [
        el(
            "input",
            type="radio",
            name="language",
            id=each,
            class_="choice",
            checked="" if each == language else None,
        )
        for each in LANGUAGES
    ]
    labels = [el("label", name, for_=each, lang=each) for each, name in LANGUAGES.items()]
    body = el("body", *choices, el("nav", *labels), "\n", el("main", *sections), "\n")
    policy = POLICY + PICTURES if pictures else POLICY
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", name="generator", content=GENERATOR),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", http_equiv="Content-Security-Policy", content=policy),
        el("title", title[:TITLE_CHARACTERS_MAX]),
        el("style", Html(STYLE)),
    )
    return "<!doctype html>\n" + el("html", head, "\n", body, lang=language) + "\n"


def section(key: str, *parts: Html) -> Html:
    """Return one section under the phrase of a key."""
    return Html(el("section", el("h2", say(key)), *parts) + "\n")
