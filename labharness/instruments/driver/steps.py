"""The steps of an encoding: a value between two goes to the nearer one, but never to nothing."""

import math


def kept(what: str, value: float, written: float, step: float) -> None:
    """Refuse to write a value that is not zero as zero, which most often means *off*.

    Args:
        what: Name of the setting, with its unit if it is known.
        value: The value that was asked for, and judged.
        written: The value on the wire.
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
