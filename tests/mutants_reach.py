"""Which functions each test runs, and how long it takes: measured once, so that few tests are run.

A mutant is tried by the tests that run the function it is in. `measure` runs each test of the rooms
once under coverage, in this process and in those that it starts, and writes what it saw to
``build/mutants_reach.json``. What a fixture of a wider scope runs counts for every test that uses
it. A function is known by its name, so that what was measured outlives an edit of other lines.
"""

import ast
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from mutated import FUNCTIONS, ROOT

REACH = ROOT / "build" / "mutants_reach.json"
MODULE = "module"
"""The name of what runs when a file is imported."""
CODE = ("labharness", "drivers")
Function = ast.FunctionDef | ast.AsyncFunctionDef
MEASURE_S_MAX = 1800.0  # of one file
CHILD = "reach_in_a_child"  # what the tests let every Python load at its start imports it
IN_A_CHILD = """
import os
import coverage
test = os.environ.get("PYTEST_CURRENT_TEST", "")
if test and os.getpid() != int(os.environ["REACH_PID"]):
    seen = coverage.Coverage(
        data_file=os.environ["REACH_DATA"], data_suffix=True, config_file=False,
        source=os.environ["REACH_SOURCE"].split(os.pathsep), context=test.rpartition(" (")[0],
    )
    seen.set_option("run:sigterm", True)
    seen._warn_no_data = False
    seen.start()
    import atexit
    atexit.register(lambda: (seen.stop(), seen.save()))
"""


@dataclass(slots=True)
class Reach:
    """What one test runs.

    Attributes:
        seconds: What it takes, with its fixtures, s.
        alone: It has a deadline in real time.
        functions: What it runs, ``file::name``.
    """

    seconds: float = 0.0
    alone: bool = False
    functions: set[str] = field(default_factory=set)


def read_reach() -> dict[str, Reach]:
    """Return what was measured of each test.

    Raises:
        FileNotFoundError: Nothing was measured.
    """
    rows = json.loads(REACH.read_text("utf-8"))
    names = rows["functions"]
    return {
        test: Reach(seconds, alone, {names[each] for each in functions})
        for test, (seconds, alone, functions) in rows["tests"].items()
    }


def functions_of(tree: ast.AST) -> Iterator[tuple[str, Function]]:
    """Return the functions of a module with their names, the outer before the inner."""
    waiting: list[tuple[str, ast.AST]] = [("", tree)]
    while waiting:
        outer, node = waiting.pop(0)
        for child in ast.iter_child_nodes(node):
            name = outer
            if isinstance(child, (ast.ClassDef, *FUNCTIONS)):
                name = f"{outer}.{child.name}" if outer else child.name
            if isinstance(child, FUNCTIONS):
                yield name, child
            waiting.append((name, child))


def measure(tests: Iterable[str]) -> None:
    """Run files of tests under coverage and keep what each test ran, beside what is known."""
    REACH.parent.mkdir(exist_ok=True)
    for file in tests:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, f"{CHILD}.py").write_text(IN_A_CHILD, "utf-8")
            drawers = ("", "drivers", "simulators", "envelopes", "tests")
            env = {
                **os.environ,
                "PYTHONPATH": os.pathsep.join([folder, *(str(ROOT / each) for each in drawers)]),
                "REACH_DATA": str(Path(folder, "seen")),
                "REACH_SOURCE": os.pathsep.join(str(ROOT / each) for each in CODE),
            }
            run = [sys.executable, __file__, folder, file]
            subprocess.run(run, check=True, cwd=ROOT, env=env, timeout=MEASURE_S_MAX)
            found = _collect(Path(folder))
        known = read_reach() if REACH.exists() else {}
        others = {test: each for test, each in known.items() if test.partition("::")[0] != file}
        _write(others | found)


def _write(reach: dict[str, Reach]) -> None:
    names = sorted({name for each in reach.values() for name in each.functions})
    number = {name: at for at, name in enumerate(names)}
    tests = {
        test: (round(each.seconds, 3), each.alone, sorted(number[name] for name in each.functions))
        for test, each in sorted(reach.items())
    }
    REACH.write_text(json.dumps({"functions": names, "tests": tests}), "utf-8")


def _collect(folder: Path) -> dict[str, Reach]:
    """Join what every process saw, and return it to the tests."""
    import coverage

    lines: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for path in folder.glob("seen*"):
        data = coverage.CoverageData(basename=str(path))
        try:
            data.read()
        except coverage.exceptions.CoverageException:  # a child that was killed as it wrote
            continue
        for file in data.measured_files():
            for line, contexts in data.contexts_by_lineno(file).items():
                for context in contexts:
                    lines[context][file].add(line)
    ran = {context: set(_functions(files)) for context, files in lines.items()}
    noted = json.loads((folder / "tests.json").read_text("utf-8"))
    return {
        test: Reach(
            seconds + sum(noted["fixtures"].get(each, 0.0) for each in used),
            alone,
            set().union(*(ran.get(each, set()) for each in (test, *used))),
        )
        for test, (seconds, alone, used) in noted["tests"].items()
    }


def _functions(files: dict[str, set[int]]) -> Iterator[str]:
    for file, lines in files.items():
        if not file.endswith(".py"):  # a template of a page
            continue
        short = Path(file).relative_to(ROOT).as_posix()
        yield f"{short}::{MODULE}"
        for name, node in functions_of(ast.parse(Path(file).read_text("utf-8"))):
            last = node.end_lineno or node.lineno  # its first line runs when it is imported
            if any(node.body[0].lineno <= line <= last for line in lines):
                yield f"{short}::{name}"


class _Noting:
    """A plugin of pytest that tells coverage which test, or which wider fixture, is at work."""

    def __init__(self, seen: Any) -> None:
        self._seen = seen
        self.tests: dict[str, tuple[float, bool, list[str]]] = {}
        self.fixtures: dict[str, float] = defaultdict(float)
        self._inner_s = 0.0

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Time one test, less what its wider fixtures took."""
        self._seen.switch_context(item.nodeid)
        self._inner_s, began_s = 0.0, time.monotonic()
        try:
            return (yield)
        finally:
            took_s = time.monotonic() - began_s - self._inner_s
            alone = any(item.get_closest_marker(each) for each in ("calm", "serial"))
            info = getattr(item, "_fixtureinfo", None)
            found = getattr(info, "name2fixturedefs", {})
            used = [_name(each[-1]) for each in found.values() if each[-1].scope != "function"]
            self.tests[item.nodeid] = (took_s, alone, used)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: Any, request: Any
    ) -> Generator[None, object, object]:
        """Time a fixture that several tests share."""
        if fixturedef.scope == "function":
            return (yield)
        self._seen.switch_context(_name(fixturedef))
        began_s, before_s = time.monotonic(), self._inner_s
        try:
            return (yield)
        finally:
            took_s = time.monotonic() - began_s
            self.fixtures[_name(fixturedef)] += took_s - (self._inner_s - before_s)
            self._inner_s = before_s + took_s
            test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0]
            self._seen.switch_context(test)


def _name(fixturedef: Any) -> str:
    return f"fixture {fixturedef.baseid}::{fixturedef.argname}"


def _run(folder: Path, tests: list[str]) -> None:
    """Run the tests and note what they run; a test that is red is noted as well."""
    import coverage

    os.environ["REACH_PID"] = str(os.getpid())
    source = os.environ["REACH_SOURCE"].split(os.pathsep)
    data = os.environ["REACH_DATA"]
    seen = coverage.Coverage(data_file=data, config_file=False, source=source)
    noting = _Noting(seen)
    seen.start()
    options = ["-q", "-m", "not soak", "-p", "no:cacheprovider", "--assert=plain"]
    pytest.main([*options, *tests], plugins=[noting])
    seen.stop()
    seen.save()
    noted = {"tests": noting.tests, "fixtures": noting.fixtures}
    (folder / "tests.json").write_text(json.dumps(noted), "utf-8")


if __name__ == "__main__":
    _run(Path(sys.argv[1]), sys.argv[2:])
