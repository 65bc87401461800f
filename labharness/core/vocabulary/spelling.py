"""Suggest a known name for one that is misspelt."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from labharness.core.vocabulary.texts import Text

NAME_CHARACTERS_MAX = 80
"""A longer name is not a typing error, and the comparison takes time with the square of its
length."""


def did_you_mean(
    name: str, known: Iterable[str], shown: Mapping[str, str] = MappingProxyType({})
) -> str:
    """Return `` (did you mean X?)`` if one of the known names is similar, else ``""``.

    Args:
        name: The name as written.
        known: The known names.
        shown: The text to show for a name where it is not the name.
    """
    if len(name) > NAME_CHARACTERS_MAX:
        return ""
    from difflib import get_close_matches

    near = next(iter(get_close_matches(name, list(known), n=1)), "")
    return Text("did_you_mean", name=shown.get(near, near)) if near else ""
