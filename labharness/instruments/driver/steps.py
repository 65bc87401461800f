"""The steps of an encoding: a value between two goes to the nearer one, but never to nothing."""

import math

__all__ = ["kept"]


def kept(what: str, value: float, written: float, step: float) -> None:
    """Refuse to write a value that is not zero as zero, which most often means *off*.

    Args:
        what: What is set, with its unit where it is known.
        value: What was asked, and judged.
        written: What the wire would carry.
        step: Step of the encoding.

    Raises:
        ValueError: It would be written as zero.
    """
    if value != 0 and written == 0:
        near = math.copysign(step, value)
        raise ValueError(
            f"{what}: asked {value:g}, which would be written as 0; it takes steps of {step:g}, "
            f"so 0 or {near:g}"
        )
