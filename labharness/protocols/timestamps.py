"""Moments as messages of protocols have them: ISO 8601 in UTC."""

import re
from datetime import datetime
from typing import Final

TIMESTAMPS: Final = (
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?(?:Z|\+00:00)"
)
"""ISO 8601 in UTC, as a regular expression of the whole text (ruling 24)."""

_TIMESTAMP: Final = re.compile(TIMESTAMPS)


def moment_of(text: str) -> datetime | None:
    """Return the moment of a timestamp, or None where it is not one or no calendar has its day."""
    if not _TIMESTAMP.fullmatch(text):
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None
