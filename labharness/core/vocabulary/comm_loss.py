"""The reaction of an instrument to silence: ``safe(<seconds>)``, ``hold`` or ``unknown``."""

import re
from typing import Final

from labharness.core.vocabulary.texts import Text

COMM_LOSS_S_MAX: Final = 5.0
"""Time (s) in which an instrument must become safe by itself to run unattended: Klipper's bound for
a heater (klippy, MAX_HEAT_TIME)."""

UNKNOWN: Final = "unknown"


def safe_within_s(on_comm_loss: str) -> float | None:
    """Return after how many seconds the instrument is safe; ``None`` if it is not stated to be."""
    found = re.fullmatch(r"safe\(([0-9.]+)\)", on_comm_loss)
    return float(found[1]) if found else None


def safe_in_time(on_comm_loss: str) -> bool:
    """Return whether ``safe(<s>)``, ``hold`` or ``unknown`` will do unattended."""
    within_s = safe_within_s(on_comm_loss)
    return within_s is not None and within_s <= COMM_LOSS_S_MAX


def comm_loss_text(on_comm_loss: str) -> str:
    """Return what a driver states of a channel as a text."""
    within_s = safe_within_s(on_comm_loss)
    return on_comm_loss if within_s is None else Text("comm_loss.safe", within_s=within_s)
