"""What a planted bug is: one protection taken away, and the test that must notice."""

from dataclasses import dataclass

__all__ = ["PlantedBug"]


@dataclass(frozen=True, slots=True)
class PlantedBug:
    """One protection taken away.

    Attributes:
        promise: What no longer holds.
        where: The symbol that protects, ``package.module:Class.method``, or a row of a TOML file,
            ``folder/file.toml:its name``.
        right: The expression, the statements or the line that protects there.
        wrong: What stands there instead; empty where it is only taken away.
        test: The test that must turn red.
        dear: Planted in the long proofs only: its promise has another bug for every day, or it
            takes a whole growth.
    """

    promise: str
    where: str
    right: str
    wrong: str
    test: str
    dear: bool = False
