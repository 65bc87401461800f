"""What somebody may have meant by a name that is not there."""

from collections.abc import Iterable, Mapping

__all__ = ["meant"]

NAME_CHARACTERS_MAX = 80
"""A longer name is no slip of the finger, and comparing it takes its length squared."""


def meant(name: str, known: Mapping[str, str] | Iterable[str]) -> str:
    """Return `` (did you mean X?)`` where one of the known names is near, else ``""``.

    Args:
        name: What was written.
        known: The names there are; a mapping gives, for each, how it is to be shown.
    """
    shown = known if isinstance(known, Mapping) else {each: each for each in known}
    if len(name) > NAME_CHARACTERS_MAX:
        return ""
    from difflib import get_close_matches

    near = get_close_matches(name, list(shown), n=1)
    return f" (did you mean {shown[near[0]]}?)" if near else ""
