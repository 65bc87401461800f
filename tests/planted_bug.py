"""What a planted bug is: one protection taken away, and the test that must notice."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PlantedBug:
    """One protection taken away.

    Attributes:
        name: What no longer holds.
        where: The symbol that protects, ``package.module:Class.method``, or a row of a TOML file,
            ``folder/file.toml:its name``.
        right: The expression, the statements or the line that protects there.
        wrong: What stands there instead; empty where it is only taken away.
        test: The test that must turn red.
        promise: Number of the promise that it breaks, in ``docs/reference/promises.md``.
        detector: What notices it, mostly the verdict; the page says what each looks at.
        daily: Planted at every change; one bug of each promise is.
        dear: Planted in the long proofs only, because it takes a whole growth.
    """

    name: str
    where: str
    right: str
    wrong: str
    test: str
    promise: int
    detector: str = "verdict"
    daily: bool = False
    dear: bool = False
