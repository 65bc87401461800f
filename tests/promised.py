"""The page of promises, and of each the tests and planted bugs from the code.

``python tests/promised.py`` writes their lists into ``build/pages/promises.md``.
"""

from marked import PROMISES, ROOT, held_by
from planted_bug import PlantedBug
from planted_bugs import PLANTED
from planted_harms import HARMS

LISTS = ROOT / "build" / "pages" / "promises.md"
"""The lists; what a program prints is not kept."""

OF_HARMS, REFEREE = 6, "referee"


def bugs_of(number: int) -> dict[str, str]:
    """Return the planted bugs of a promise, each with what detects it."""
    planted: list[PlantedBug] = [bug for bug in PLANTED if bug.promise == number]
    harms = HARMS if number == OF_HARMS else ()
    return {bug.name: bug.detector for bug in planted} | {harm.name: REFEREE for harm in harms}


def lists() -> str:
    """Return the tests and the planted bugs of each promise, as the code has them."""
    told = ["# The tests and planted bugs of each promise\n"]
    for number, (promise, _) in PROMISES.items():
        tests = "".join(f"- `{each}`\n" for each in held_by(number))
        bugs = "".join(f"- {bug} ({detector})\n" for bug, detector in bugs_of(number).items())
        told.append(f"## {number}\n\n{promise}\n\nTests:\n\n{tests}\nPlanted bugs:\n\n{bugs}")
    return "\n".join(told)


if __name__ == "__main__":
    LISTS.parent.mkdir(parents=True, exist_ok=True)
    LISTS.write_text(lists(), "utf-8")
