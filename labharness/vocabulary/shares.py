"""How a probability is written where people read it: rounded down, and never as certainty."""

from decimal import ROUND_FLOOR, Decimal

__all__ = ["share_text"]


def share_text(share: float, decimals: int = 3) -> str:
    """Write a probability with fixed decimals: 0.99998 is 0.999, and so is 1."""
    step = Decimal(1).scaleb(-decimals)
    # repr, not the binary value: 0.57 is no 0.56999
    floored = Decimal(repr(float(share))).quantize(step, ROUND_FLOOR)
    return str(min(floored, 1 - step))
