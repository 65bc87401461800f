"""Tries one mutant after the other in a copy: which test turns red, and is green without it."""

import ast
import re
from dataclasses import dataclass, field
from functools import cache

from copies import FAILED, LATE, ROOT, UNSIGNED, Copy
from mutant_rooms import Room
from mutants_reach import CODE, Reach, functions_of
from mutated import Mutant
from mutated_rows import RowMutant

AnyMutant = Mutant | RowMutant

BUDGET_S = 60.0
"""What the tests of one mutant may take in all; what they do not kill by then has survived, s."""
TEST_S_MIN = 0.02  # to collect one and set it up
FIRST_TESTS = 12
LIMIT_S = 20  # of one run of tests, besides twice what they take
KILLERS_MAX = 6
TIME_UP = "time is up"
CANNOT_IMPORT = "it cannot be imported"
CANNOT_READ = "its lab is refused when it is read"
INTERRUPTED, USAGE = 2, 4  # pytest's exit codes: a test cannot be imported, nor its fixtures
RED = re.compile(r"^(?:FAILED|ERROR) (tests/\S+?\.py(?:::.*?)?)(?: - .*)?$", re.MULTILINE)


@dataclass(slots=True)
class Trial:
    """Tries mutants in a copy.

    Attributes:
        copy: Where.
        reach: What each test runs.
        killers: For each file the tests that killed lately.
        sound: Tests that were seen to be green without a mutant.
    """

    copy: Copy
    reach: dict[str, Reach]
    killers: dict[str, list[str]] = field(default_factory=dict)
    sound: set[str] = field(default_factory=set)

    def killer(self, room: Room, mutant: AnyMutant) -> str:
        """Try one mutant; return what killed it, ``""`` if nothing did.

        Raises:
            RuntimeError: The tests broke in a way that is no verdict.
        """
        tests = self._in_order(room, mutant)
        for some in (tests[:FIRST_TESTS], tests[FIRST_TESTS:]):
            left = some
            while left:
                red = self._red(mutant, left)
                if not red:
                    break
                if self._counts(red, left):
                    self._remember(mutant.file, red)
                    return red
                if red not in left:
                    break
                left = left[left.index(red) + 1 :]
        return ""

    def _in_order(self, room: Room, mutant: AnyMutant) -> list[str]:
        """The latest killers and then the fastest, until their time is spent."""
        late = self.killers.get(mutant.file, [])
        able = self._able(room, mutant)
        cost = {test: self.reach[test].seconds for test in able}
        known = [test for test in late if test in cost]
        chosen: list[str] = []
        spent_s = 0.0
        for test in (*known, *sorted(able - {*known}, key=lambda each: (cost[each], each))):
            spent_s += max(cost[test], TEST_S_MIN)
            if chosen and spent_s > BUDGET_S:
                break
            chosen.append(test)
        return chosen

    def _able(self, room: Room, mutant: AnyMutant) -> set[str]:
        """The tests that run what is mutated; where that is not known, those of its room."""
        functions = set()
        if isinstance(mutant, Mutant):
            functions = {f"{mutant.file}::{name}" for name in _inside(mutant.file, mutant.line)}
            for name in () if functions else _assigned(mutant.file, mutant.line):
                functions |= _readers().get(name, set())
        able = {test for test, each in self.reach.items() if functions & each.functions}
        inside = isinstance(mutant, Mutant) and _inside(mutant.file, mutant.line)
        if able or inside:
            return able
        files = {*room.test_files}
        return {test for test in self.reach if test.partition("::")[0] in files}

    def _red(self, mutant: AnyMutant, tests: list[str]) -> str:
        """Run tests against a mutant; return which turned red, or what else ended them."""
        with self.copy.holds(mutant.file, mutant.text()):
            code, said = self.copy.run(
                *tests, limit_s=self._limit_s(tests), signed=isinstance(mutant, RowMutant)
            )
        if code == 0:
            return ""
        if code in (LATE, UNSIGNED):
            return TIME_UP if code == LATE else CANNOT_READ
        if code in (INTERRUPTED, USAGE):
            return CANNOT_IMPORT
        found = RED.findall(said)
        if code == FAILED and found:
            return str(found[-1])
        if code < 0:
            return f"it died of signal {-code}"
        raise RuntimeError(f"{mutant.name}: pytest ended with {code}: {said[-2000:]}")

    def _counts(self, red: str, tests: list[str]) -> bool:
        """Run what turned red without the mutant: only then it was the mutant."""
        if red == TIME_UP:
            return self.copy.run(*tests, limit_s=self._limit_s(tests))[0] != LATE
        if red == CANNOT_IMPORT:
            return self.copy.run("--collect-only", *tests)[0] == 0
        if red not in self.reach:
            return True
        if red not in self.sound and self.copy.run(red)[0] != 0:
            return False
        if not self.reach[red].alone:  # a deadline in real time is asked each time
            self.sound.add(red)
        return True

    def _limit_s(self, tests: list[str]) -> int:
        return LIMIT_S + int(2 * sum(self.reach[test].seconds for test in tests))

    def _remember(self, file: str, red: str) -> None:
        if red in self.reach:
            late = self.killers.setdefault(file, [])
            late[:] = [red, *(each for each in late if each != red)][:KILLERS_MAX]


@cache
def _tree(file: str) -> ast.Module:
    return ast.parse((ROOT / file).read_text("utf-8"))


def _inside(file: str, line: int) -> list[str]:
    """Return the innermost function that holds a line."""
    found = [
        name
        for name, node in functions_of(_tree(file))
        if node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    return found[-1:]


def _assigned(file: str, line: int) -> set[str]:
    """Return the names that a statement outside of any function gives a value to."""
    names = set()
    for node in ast.walk(_tree(file)):
        if not isinstance(node, ast.Assign | ast.AnnAssign):
            continue
        if node.lineno <= line <= (node.end_lineno or node.lineno):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                names |= {each.id for each in ast.walk(target) if isinstance(each, ast.Name)}
    return names


@cache
def _readers() -> dict[str, set[str]]:
    """For each name the functions that hold it."""
    found: dict[str, set[str]] = {}
    for drawer in CODE:
        for path in (ROOT / drawer).rglob("*.py"):
            file = path.relative_to(ROOT).as_posix()
            for function, node in functions_of(_tree(file)):
                for each in ast.walk(node):
                    name = getattr(each, "id", getattr(each, "attr", getattr(each, "arg", "")))
                    if name:
                        found.setdefault(name, set()).add(f"{file}::{function}")
    return found
