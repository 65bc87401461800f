"""Additions of other packages to dialogues, by entry point."""

import logging
from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points
from typing import Any, Final

LOG: Final = logging.getLogger(__name__)


@cache  # the installed packages stay while a process runs
def loaded(kind: type[Any], group: str) -> Mapping[str, Any]:
    """Return the values of a kind under a group, by their names; others are logged and left out."""
    found = {}
    for point in sorted(entry_points(group=group), key=lambda each: each.value):
        try:
            each = point.load()
        except Exception:  # somebody else's package may raise anything
            LOG.exception("%s of %s cannot be imported", point.name, group)
            continue
        if isinstance(each, kind) and point.name not in found:
            found[point.name] = each
        else:
            LOG.error("%s of %s must be one %s of that name", point.name, group, kind.__name__)
    return found
