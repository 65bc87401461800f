"""The trips of a run as the risk events of its summary (ruling 31)."""

from collections.abc import Sequence
from typing import Any, Final

from labharness.core.clock import Clock, utc_text
from labharness.core.vocabulary import Trip
from labharness.core.vocabulary.texts import Text, texts_in

LIMITS: Final = ("bound", "confirmed", "allowed_s")
"""Parameters of a trip's text that are the limit which its value has passed."""


def risk_events(trips: Sequence[Trip], clock: Clock) -> list[dict[str, Any]]:
    """Return the trips of a run, in their order; `limit` is ``None`` where the cause has none."""
    return [
        {
            "code": each.cause.value,
            "channel": each.channel,
            "value": each.value,
            "limit": _limit_of(each.detail),
            "at": utc_text(clock.utc_of(each.at_s)),
            "text": Text("trip.event", cause=each.cause.value, why=each.detail),
        }
        for each in trips
    ]


def _limit_of(detail: str) -> float | None:
    for text in texts_in(detail):
        for name in LIMITS:
            found = text.params.get(name)
            if isinstance(found, int | float):
                return float(found)
    return None
