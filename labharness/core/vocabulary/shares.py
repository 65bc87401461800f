"""Text of a probability: rounded down, and never shown as certainty."""

KEPT = 12  # decimals before truncation: 0.57 stays 0.57, although its binary value is a little less


def share_text(share: float, decimals: int = 3) -> str:
    """Write a probability with fixed decimals: 0.99998 is 0.999, and so is 1."""
    if share >= 1.0 - 10.0**-KEPT:
        return "0." + "9" * decimals
    return f"{max(share, 0.0):.{KEPT}f}"[: 2 + decimals]
