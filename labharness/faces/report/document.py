"""Pages made from templates: one file each, without script or network, in both languages."""

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from labharness.core.texts import LANGUAGES
from labharness.faces.report.markup import Html, clock, escaped, joined
from labharness.faces.report.words import both, known, phrase, say

if TYPE_CHECKING:
    from jinja2 import Environment

GENERATOR: Final = "labharness"
"""A page with this generator may be written over."""

ROOM: Final = "labharness.faces.report"
TITLE_CHARACTERS_MAX: Final = 200


def document(
    template: str, title: str, language: str, *, pictures: bool = False, **values: object
) -> str:
    """Return a whole page.

    Args:
        template: Its name; it extends ``document.html.j2``.
        title: Of the window; plain text.
        language: The one of ``LANGUAGES`` that is shown first; the page holds all.
        pictures: Whether it holds pictures beside drawings; they stand in the page itself.
        values: The values of the template.
    """
    page = render(
        template,
        title=title[:TITLE_CHARACTERS_MAX],
        language=language,
        languages=dict(zip(LANGUAGES, phrase("language") or (), strict=True)),
        generator=GENERATOR,
        style=style(),
        pictures=pictures,
        **values,
    )
    return f"{page}\n"


def render(template: str, **values: object) -> Html:
    """Fill a template; values that are not ``Html`` are escaped.

    Raises:
        jinja2.UndefinedError: The template names a value that is missing.
    """
    return Html(_templates().get_template(template).render(values))


def section(key: str, *parts: Html) -> Html:
    """Return one section under the phrase of a key."""
    return render("section.html.j2", key=key, body=joined(*parts))


@cache
def style() -> Html:
    """Return the style of the page on a screen, a phone and paper."""
    return Html((files(ROOM) / "templates" / "style.css").read_text("utf-8"))


@cache
def _templates() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader(ROOM),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=escaped,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals |= {"both": both, "clock": clock, "known": known, "phrase": phrase, "say": say}
    return made
