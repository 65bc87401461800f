"""What a planted bug is: one protection taken away, and the test that must notice."""

from dataclasses import dataclass

from marked import NAMED_OF, file_of_test, promises_of


@dataclass(frozen=True, slots=True)
class PlantedBug:
    """One protection taken away.

    Attributes:
        name: What no longer holds.
        where: The symbol that protects, ``package.module:Class.method``, or a row of a TOML file,
            ``folder/file.toml:its name``.
        right: The expression, the statements or the line that protects there.
        wrong: What stands there instead; empty where it is only taken away.
        noticed_by: The test that must turn red, by its name, which no other file has; one case of
            it with its id.
        of_promise: The promise that it breaks, where its test is marked with several.
        detector: What notices it, mostly the verdict; the page says what each looks at.
        dear: Planted in the long proofs only, because it takes a whole growth.
    """

    name: str
    where: str
    right: str
    wrong: str
    noticed_by: str
    of_promise: int = 0
    detector: str = "verdict"
    dear: bool = False

    @property
    def _test(self) -> str:
        return self.noticed_by.partition("[")[0]

    @property
    def test(self) -> str:
        """The test that must turn red, as pytest is asked for it."""
        return f"{file_of_test(self._test)}::{self.noticed_by}"

    @property
    def promise(self) -> int:
        """Number of the promise that it breaks: the one of its test's mark."""
        (number,) = (self.of_promise,) if self.of_promise else promises_of(self._test)
        return number

    @property
    def named(self) -> bool:
        """Whether the page of promises names it: one of each promise."""
        return self.name in NAMED_OF.values()
