"""Suggest a known name for one that is misspelt."""

from collections.abc import Iterable, Mapping

from labharness.core.vocabulary.texts import Text

__all__ = ["did_you_mean"]

NAME_CHARACTERS_MAX = 80
"""A longer name is not a typing error, and the comparison takes time with the square of its
length."""


def did_you_mean(name: str, known: Mapping[str, str] | Iterable[str]) -> str:
    """Return `` (did you mean X?)`` if one of the known names is similar, else ``""``.

    Args:
        name: The name as written.
        known: The known names; a mapping holds the text to show for each.
    """
    shown = known if isinstance(known, Mapping) else {each: each for each in known}
    if len(name) > NAME_CHARACTERS_MAX:
        return ""
    from difflib import get_close_matches

    near = get_close_matches(name, list(shown), n=1)
    return Text("did_you_mean", name=shown[near[0]]) if near else ""
