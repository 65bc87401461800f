"""The phrases of a report in both languages: texts whose codes are ``report.<key>``.

The text ``phase.<stage>`` names a stage of a capability's plans.
"""

from typing import Final

from labharness.core.texts import LANGUAGES, templates
from labharness.core.vocabulary.texts import in_language
from labharness.faces.report.markup import Html, el, escaped, joined, text

STAGE: Final = "phase."


def phrase(key: str) -> tuple[str, str] | None:
    """Return a phrase in English and in Chinese; ``None`` where there is no such phrase."""
    return templates(key if key.startswith(STAGE) else f"report.{key}")


def say(key: str, *, tag: str = "span", **fields: object) -> Html:
    """Return a phrase in both languages; the page's style shows one.

    Args:
        key: Of the phrase.
        tag: ``tspan`` within a drawing.
        fields: Values of the phrase's blanks; escaped unless they are ``Html``.

    Raises:
        KeyError: There is no such phrase.
    """
    safe = {name: escaped(each) for name, each in fields.items()}
    return _in_both(tag, *(Html(text(each).format(**safe)) for each in _phrase(key)))


def known(group: str, word: str, *, tag: str = "span") -> Html:
    """Return a recorded word in both languages where it is known, else as it was recorded."""
    key = f"{group}.{word}"
    return say(key, tag=tag) if phrase(key) else text(word)


def plain(key: str, language: str = "en", **fields: object) -> str:
    """Return a phrase in one language as plain text: a page's title, a line of a terminal.

    Raises:
        KeyError: There is no such phrase or language.
    """
    return dict(zip(LANGUAGES, _phrase(key), strict=True))[language].format(**fields)


def both(raw: object) -> Html:
    """Return a recorded text in both languages; one that has no code, as it was recorded."""
    recorded = raw if isinstance(raw, str) else str(raw)
    english, chinese = (in_language(recorded, each) for each in LANGUAGES)
    return text(recorded) if english == chinese else _in_both("span", english, chinese)


def phase_text(name: str, language: str = "en") -> str:
    """Return a recorded phase by its name in the report; an unknown one as it was recorded."""
    key = STAGE + name
    return plain(key, language) if phrase(key) else name


def _phrase(key: str) -> tuple[str, str]:
    found = phrase(key)
    if found is None:
        raise KeyError(key)
    return found


def _in_both(tag: str, *said: str) -> Html:
    languages = zip(LANGUAGES, said, strict=True)
    return joined(*(el(tag, each, class_=name, lang=name) for name, each in languages))
