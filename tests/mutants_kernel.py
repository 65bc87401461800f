"""Mutation testing of the kernel and the guard's core: every small wrong must turn a test red.

Run by ``make mutants-kernel``. First the tests of each file must take every branch of it. Then each
mutant is one changed operator, constant, boundary, branch or statement of one file. The mutated
module is compiled in memory in a forked child, which imports the tests afresh and runs them until
the first that fails, or until its time is up; properties come last, the tests that killed lately
first, and each property tries the same examples every time. Survivors are listed with their reasons
in docs/reference/mutants.md; one that is not listed there is an error, and so are too many.

    python tests/mutants_kernel.py [--only FILE] [--every N] [--lines N,N] [--list]
"""

import argparse
import ast
import importlib
import io
import os
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType
from typing import NamedTuple

from mutated import ROOT, Mutant, mutants_of

CHILD_S_MAX = 60.0
CHILD_CPU_S_MAX = 20  # all tests of a file take a third of it
BRANCHES_S_MAX = 600.0
KILLED_MIN = 0.95  # of all mutants of a file
KILLERS_MAX = 30  # that are tried first
KERNEL_TESTS = (
    "tests/test_kernel.py",
    "tests/test_kernel_states.py",
    "tests/test_kernel_proofs.py",
    "tests/test_kernel_leak_check.py",
    "tests/test_kernel_meters.py",
    "tests/test_kernel_plausible.py",
    "tests/test_kernel_and_guard.py",
    "tests/test_kernel_envelope.py",
)
ENVELOPE_FIRST = tuple(reversed(KERNEL_TESTS))
TARGETS = {
    "labharness/kernel/conditions.py": ENVELOPE_FIRST,
    "labharness/kernel/envelope.py": ENVELOPE_FIRST,
    "labharness/kernel/memory.py": KERNEL_TESTS,
    "labharness/kernel/modes.py": KERNEL_TESTS,
    "labharness/kernel/purge.py": ENVELOPE_FIRST,
    "labharness/kernel/rows.py": ENVELOPE_FIRST,
    "labharness/kernel/rules.py": KERNEL_TESTS,
    "labharness/guard/core.py": (
        "tests/test_guard_core.py",
        "tests/test_guard_ports.py",
        "tests/test_kernel_and_guard.py",
    ),
}
OPTIONS = ["-q", "--noconftest", "--tb=no", "--assert=plain", "-p", "no:cacheprovider"]
OPTIONS += ["-m", "not soak", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
REASONS = ROOT / "docs" / "reference" / "mutants.md"


def killed(mutant: Mutant, killers: Sequence[str] = ()) -> str:
    """Run the tests against a mutant in a child; say which killed it, ``""`` if none did.

    Args:
        mutant: The module as it is to be.
        killers: Tests to run first.

    Raises:
        RuntimeError: The child broke before it had a verdict; a mutant that kills this tool is not
            a mutant that the tests killed.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        resource.setrlimit(resource.RLIMIT_CPU, (CHILD_CPU_S_MAX, CHILD_CPU_S_MAX + 1))
        try:
            said = _run(mutant, killers)
        except BaseException as why:  # noqa: BLE001 - told to the parent, and this process ends
            said = f"BROKEN {why!r}"
        os.write(writer, said.encode())
        os._exit(0)
    os.close(writer)
    ready, _, _ = select.select([reader], [], [], CHILD_S_MAX)
    said = os.read(reader, 4096).decode() if ready else "time"
    os.close(reader)
    if not ready:
        os.kill(child, signal.SIGKILL)
    _, ended = os.waitpid(child, 0)
    if os.WIFSIGNALED(ended) and os.WTERMSIG(ended) == signal.SIGXCPU:
        said = "time"
    if not said or said.startswith("BROKEN"):
        raise RuntimeError(f"{mutant.name}: {said or 'the child died'}")
    return "" if said == "survived" else said


def _run(mutant: Mutant, killers: Sequence[str]) -> str:
    import hypothesis
    import pytest

    module = mutant.file.removesuffix(".py").replace("/", ".")
    code = compile(ast.fix_missing_locations(mutant.tree), mutant.file, "exec")
    sys.meta_path.insert(0, _Finder(module, code))
    phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)  # the least example is no news
    hypothesis.settings.register_profile(
        "same", derandomize=True, database=None, deadline=None, phases=phases
    )
    hypothesis.settings.load_profile("same")
    quiet, order = io.StringIO(), _Order(killers)
    with redirect_stdout(quiet), redirect_stderr(quiet):
        ended = pytest.main([*OPTIONS, "-x", *TARGETS[mutant.file]], plugins=[order])
    if ended == pytest.ExitCode.OK:
        return "survived"
    if ended not in (pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED):
        raise RuntimeError(f"pytest ended with {ended!r}: {quiet.getvalue()[-300:]}")
    return order.failed or "no test could be read"


class _Order:
    """A plugin of pytest: properties last, the latest killers first; who killed is noted."""

    def __init__(self, killers: Sequence[str]) -> None:
        self._rank = {killer: number for number, killer in enumerate(killers)}
        self.failed = ""

    def pytest_collection_modifyitems(self, items: list[object]) -> None:
        """Run what tries many examples last, and among equals first what killed lately."""
        items.sort(key=self._place)

    def pytest_runtest_logreport(self, report: object) -> None:
        """Note who killed."""
        if getattr(report, "failed", False):
            self.failed = str(getattr(report, "nodeid", ""))

    def _place(self, item: object) -> tuple[bool, int]:
        rank = self._rank.get(getattr(item, "nodeid", ""), len(self._rank))
        return hasattr(getattr(item, "function", None), "hypothesis"), rank


def branches_left() -> int:
    """Run the tests without a mutant, and say which branches they do not take; 0 for none."""
    tests = sorted({each for tests in TARGETS.values() for each in tests})
    with tempfile.TemporaryDirectory() as folder:
        tool = [sys.executable, "-m", "coverage"]
        data = f"--data-file={folder}/branches"
        run = [*tool, "run", data, "--branch", f"--include={','.join(TARGETS)}", "-m", "pytest"]
        run += [*OPTIONS, *tests]
        subprocess.run(run, check=True, cwd=ROOT, timeout=BRANCHES_S_MAX)
        report = [*tool, "report", data, "--show-missing", "--fail-under=100"]
        ended = subprocess.run(report, check=False, cwd=ROOT, timeout=BRANCHES_S_MAX)
    return ended.returncode


class _Finder(MetaPathFinder, Loader):
    """Imports one module from code that was mutated, all others as they are."""

    def __init__(self, module: str, code: CodeType) -> None:
        self._module, self._code = module, code

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Give the mutated module's own loader."""
        return ModuleSpec(name, self, origin="mutant") if name == self._module else None

    def create_module(self, spec: ModuleSpec) -> None:
        """Let an ordinary module be made."""

    def exec_module(self, module: ModuleType) -> None:
        """Run the mutated code as the module."""
        exec(self._code, module.__dict__)


def say(line: str) -> None:
    """Write a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


class Score(NamedTuple):
    """How one file came out."""

    file: str
    mutants: int
    killed: int
    listed: int

    @property
    def share(self) -> float:
        """Share of the mutants that were killed."""
        return self.killed / self.mutants if self.mutants else 1.0

    def __str__(self) -> str:
        numbers = f"{self.mutants:7} {self.killed:6} {self.listed:6} {self.share:8.1%}"
        return f"{self.file:34} {numbers}"


def score(file: str, mutants: Iterable[Mutant], reasons: set[str]) -> Score:
    """Run the mutants of one file, name those that survive, and take them off the reasons."""
    healthy = Mutant(file, 0, "nothing", ast.parse((ROOT / file).read_text("utf-8")))
    if red := killed(healthy):
        raise RuntimeError(f"{file}: its tests are red without a mutant: {red}")
    killers: list[str] = []
    count = dead = listed = 0
    needed = set()
    for mutant in mutants:
        count += 1
        killer = killed(mutant, killers)
        if killer:
            dead += 1
            killers = [killer, *(each for each in killers if each != killer)][:KILLERS_MAX]
            continue
        known = mutant.name in reasons
        needed.add(mutant.name)
        listed += known
        say(f"survived{' (listed)' if known else ''} at line {mutant.line} {mutant.name}")
    reasons -= needed
    return Score(file, count, dead, listed)


def main() -> int:
    """Run all mutants, or each n-th; give 1 if one survives without a reason, or too many do."""
    ask = argparse.ArgumentParser(description=__doc__)
    ask.add_argument("--only", default="", help="part of a file's name")
    ask.add_argument("--every", type=int, default=1, help="each n-th mutant")
    ask.add_argument("--lines", default="", help="of these lines, with commas between")
    ask.add_argument("--list", action="store_true", help="name them, run nothing")
    chosen = ask.parse_args()
    files = [file for file in TARGETS if chosen.only in file]
    if not files:
        ask.error(f"{chosen.only!r} is part of none of {', '.join(TARGETS)}")
    for name in ("hypothesis", "pytest"):  # once, and not again in each child
        importlib.import_module(name)
    os.chdir(ROOT)
    whole = not (chosen.only or chosen.lines or chosen.list or chosen.every > 1)
    if whole and branches_left():
        say("not every branch is taken")
        return 1
    lines = {int(each) for each in chosen.lines.split(",") if each}
    text = REASONS.read_text("utf-8")
    reasons = {line[2:] for line in text.splitlines() if line.startswith("* labharness/")}
    scores = []
    started_s = time.monotonic()
    for file in files:
        mutants = (
            each
            for number, each in enumerate(mutants_of(file))
            if not (number % chosen.every or (lines and each.line not in lines))
        )
        if chosen.list:
            for each in mutants:
                say(f"{each.file}:{each.line} {each.what}")
            continue
        scores.append(score(file, mutants, reasons))
        say(str(scores[-1]))
    if chosen.list:
        return 0
    every = Score(
        "all", *(sum(column) for column in zip(*(each[1:] for each in scores), strict=True))
    )
    say(f"\n{'file':34} mutants killed listed per cent")
    for row in (*scores, every):
        say(str(row))
    unlisted = every.mutants - every.killed - every.listed
    few = [row.file for row in scores if row.share < KILLED_MIN]
    say(f"{unlisted} unlisted, in {time.monotonic() - started_s:.0f} s")
    for name in sorted(reasons) if whole else ():
        say(f"listed, and killed or gone: {name}")
    if whole and few:
        say(f"fewer than {KILLED_MIN:.0%} killed in {', '.join(few)}")
    return 1 if unlisted or (whole and few) else 0


if __name__ == "__main__":
    raise SystemExit(main())
