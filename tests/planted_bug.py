"""What a planted bug is: one protection taken away, and the test that must notice."""

from dataclasses import dataclass

__all__ = ["PlantedBug"]


@dataclass(frozen=True, slots=True)
class PlantedBug:
    """One protection taken away.

    Attributes:
        promise: What no longer holds.
        file: Where.
        right: The text that protects.
        wrong: What stands there instead.
        test: The test that must turn red.
        dear: Planted in the long proofs only: its promise has another bug for every day, or it
            takes a whole growth.
    """

    promise: str
    file: str
    right: str
    wrong: str
    test: str
    dear: bool = False
