"""The reaction of an instrument to silence: ``safe(<seconds>)``, ``hold`` or ``unknown``."""

import re

from labharness.core.vocabulary.texts import Text


def safe_within_s(on_comm_loss: str) -> float | None:
    """Return after how many seconds the instrument is safe; ``None`` if it is not stated to be."""
    found = re.fullmatch(r"safe\(([0-9.]+)\)", on_comm_loss)
    return float(found[1]) if found else None


def comm_loss_text(on_comm_loss: str) -> str:
    """Return what a driver states of a channel as a text."""
    within_s = safe_within_s(on_comm_loss)
    return on_comm_loss if within_s is None else Text("comm_loss.safe", within_s=within_s)
