"""Mutation testing of the kernel and the guard's core: every small wrong must turn a test red.

Run by ``make mutants-kernel``. Each mutant is one changed operator, constant, boundary, branch or
statement of one file. The mutated module is compiled in memory in a forked child, which imports
the tests afresh and runs them until the first that fails, or until its time is up. Survivors are
listed with their reasons in docs/reference/mutants.md; one that is not listed there is an error.

    python tests/mutants_kernel.py [--only FILE] [--every N] [--lines N,N] [--list]
"""

import argparse
import ast
import copy
import io
import os
import select
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, ModuleType
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
CHILD_S_MAX = 60.0
KERNEL_TESTS = (
    "tests/test_kernel.py",
    "tests/test_kernel_states.py",
    "tests/test_kernel_proofs.py",
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
REASONS = ROOT / "docs" / "reference" / "mutants.md"

COMPARE = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
ARITHMETIC = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.BitOr: ast.BitAnd,
}
SWAPPED = {"min": "max", "max": "min", "any": "all", "all": "any"}


class Mutant(NamedTuple):
    """One change: where, what it says, and the whole mutated module."""

    file: str
    line: int
    what: str
    tree: ast.Module

    @property
    def name(self) -> str:
        """What the list of reasons calls it: by its words, as lines move."""
        return f"{self.file}: {self.what}"


def mutants_of(file: str) -> Iterator[Mutant]:
    """Give every mutant of a file, in the order of its text."""
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    quiet = _docstrings(tree) | _annotations(tree)
    at = _places(tree)
    for number, node in enumerate(ast.walk(tree)):
        if id(node) in quiet:
            continue
        for change in range(len(list(_changes(node)))):
            mutated = copy.deepcopy(tree)
            twin = next(each for n, each in enumerate(ast.walk(mutated)) if n == number)
            before = ast.unparse(twin)
            wrong = list(_changes(twin))[change]
            dropped = wrong.dropped()
            wrong()
            after = ast.unparse(twin)
            line = getattr(node, "lineno", 0)
            what = f"{at[number]}: `{_short(before)}` -> `{_short(after)}`"
            if dropped:
                inside = getattr(node, "name", at[number])
                what = f"{inside}: `{_short(dropped)}` dropped"
            yield Mutant(file, line, what, mutated)


def _changes(node: ast.AST) -> Iterator["Change"]:
    """Give the ways in which one node may be wrong; each is carried out by calling it."""
    if isinstance(node, ast.Compare):
        for at, operator in enumerate(node.ops):
            for other in COMPARE.get(type(operator), ()):
                yield Change(node.ops, at, other())
    elif isinstance(node, ast.BoolOp):
        yield Change(node, "op", ast.Or() if isinstance(node.op, ast.And) else ast.And())
        for at in range(len(node.values)):
            yield Change(node.values, at, ast.Constant(isinstance(node.op, ast.And)))
    elif isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in ARITHMETIC:
        if not isinstance(getattr(node, "right", None), ast.JoinedStr):
            yield Change(node, "op", ARITHMETIC[type(node.op)]())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield Change(node, "op", ast.UAdd() if isinstance(node.op, ast.USub) else _Truth())
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            yield Change(node, "value", not node.value)
        elif isinstance(node.value, int | float):
            yield Change(node, "value", node.value + 1)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.func.id in SWAPPED:
            yield Change(node.func, "id", SWAPPED[node.func.id])
    elif isinstance(node, ast.If):
        yield Change(node, "test", ast.Constant(True))
        yield Change(node, "test", ast.Constant(False))
    elif isinstance(node, ast.Return) and node.value is not None:
        if not isinstance(node.value, ast.Constant):
            yield Change(node, "value", ast.Constant(None))
    elif isinstance(node, ast.FunctionDef):
        yield from _dropped(node)
    if isinstance(node, ast.If | ast.For | ast.While):
        yield from _dropped(node)


def _dropped(node: ast.FunctionDef | ast.If | ast.For | ast.While) -> Iterator["Change"]:
    """Leave single statements out of a body."""
    for at, statement in enumerate(node.body):
        plain = isinstance(statement, ast.Assign | ast.AugAssign | ast.Expr | ast.Continue)
        if plain and not (
            isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        ):
            yield Change(node.body, at, ast.Pass())


class Change:
    """One attribute, or one place of a list, that gets another value."""

    def __init__(self, owner: object, where: str | int, value: object) -> None:
        self._owner, self._where, self._value = owner, where, value

    def dropped(self) -> str:
        """Say which statement it leaves out, if it does."""
        if isinstance(self._value, ast.Pass) and isinstance(self._where, int):
            return ast.unparse(self._owner[self._where])  # type: ignore[index]  # a body
        return ""

    def __call__(self) -> None:
        """Carry it out."""
        if isinstance(self._where, int) and isinstance(self._owner, list):
            self._owner[self._where] = self._value
        elif isinstance(self._where, str):
            if isinstance(self._value, _Truth):
                self._value = ast.Not()
                inner = ast.UnaryOp(ast.Not(), self._owner.operand)  # type: ignore[attr-defined]  # a UnaryOp
                self._owner.operand = inner  # type: ignore[attr-defined]  # a UnaryOp
            setattr(self._owner, self._where, self._value)


class _Truth:
    """Stands for ``not not x``: the negation taken away."""


def _places(tree: ast.Module) -> list[str]:
    """For each node as it is walked, the function or class it is in and its statement's words."""
    place: dict[int, str] = {id(tree): "module"}
    for node in ast.walk(tree):
        here = place.get(id(node), "module")
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            here = node.name
        elif isinstance(node, ast.AnnAssign | ast.Assign | ast.AugAssign) and "=" not in here:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            here = f"{here}, {_short(ast.unparse(target))} ="
        for child in ast.iter_child_nodes(node):
            place[id(child)] = here
    return [place.get(id(node), "module") for node in ast.walk(tree)]


def _docstrings(tree: ast.AST) -> set[int]:
    return {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }


def _annotations(tree: ast.AST) -> set[int]:
    """Types, words of messages and lists of names decide nothing."""
    found = set()
    for node in ast.walk(tree):
        for field in ("annotation", "returns"):
            part = getattr(node, field, None)
            if isinstance(part, ast.AST):
                found |= {id(each) for each in ast.walk(part)}
        if isinstance(node, ast.JoinedStr):
            found |= {id(each) for each in ast.walk(node)}
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            for each in node.decorator_list:
                found |= {id(part) for part in ast.walk(each)}
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in ("Condition", "Bound"):
            found |= {id(part) for part in ast.walk(node)}
    return found


def _short(text: str) -> str:
    first = " ".join(text.split())
    return first if len(first) <= 90 else first[:87] + "..."


def killed(mutant: Mutant) -> str:
    """Run the tests against a mutant in a child; say what killed it, ``""`` if nothing did.

    Raises:
        RuntimeError: The child broke before it had a verdict; a mutant that kills this tool is not
            a mutant that the tests killed.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            said = _run(mutant)
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
    os.waitpid(child, 0)
    if not said or said.startswith("BROKEN"):
        raise RuntimeError(f"{mutant.name}: {said or 'the child died'}")
    return "" if said == "survived" else said


def _run(mutant: Mutant) -> str:
    import pytest

    module = mutant.file.removesuffix(".py").replace("/", ".")
    code = compile(ast.fix_missing_locations(mutant.tree), mutant.file, "exec")
    sys.meta_path.insert(0, _Finder(module, code))
    quiet = io.StringIO()
    options = [
        "-q",
        "-x",
        "--noconftest",
        "--tb=no",
        "--assert=plain",
        "-p",
        "no:cacheprovider",
        "-m",
        "not soak",
    ]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    with redirect_stdout(quiet), redirect_stderr(quiet):
        ended = pytest.main([*options, *(str(ROOT / each) for each in TARGETS[mutant.file])])
    if ended == pytest.ExitCode.OK:
        return "survived"
    if ended not in (pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED):
        raise RuntimeError(f"pytest ended with {ended!r}: {quiet.getvalue()[-300:]}")
    lines = [line for line in quiet.getvalue().splitlines() if line.startswith(("FAILED", "ERROR"))]
    return (lines or ["ERROR"])[0][:200]


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


def main() -> int:
    """Run all mutants, or each n-th; give 1 if one survives without a reason."""
    ask = argparse.ArgumentParser(description=__doc__)
    ask.add_argument("--only", default="", help="part of a file's name")
    ask.add_argument("--every", type=int, default=1, help="each n-th mutant")
    ask.add_argument("--lines", default="", help="of these lines, with commas between")
    ask.add_argument("--list", action="store_true", help="name them, run nothing")
    chosen = ask.parse_args()
    import hypothesis  # noqa: F401 - imported once, and not again in each child
    import pytest  # noqa: F401 - as above

    reasons = REASONS.read_text("utf-8") if REASONS.exists() else ""
    total = dead = 0
    unlisted = []
    lines = {int(each) for each in chosen.lines.split(",") if each}
    started_s = time.monotonic()
    for file in TARGETS:
        if chosen.only not in file:
            continue
        alive = count = 0
        healthy = Mutant(file, 0, "nothing", ast.parse((ROOT / file).read_text("utf-8")))
        if not chosen.list and (red := killed(healthy)):
            raise RuntimeError(f"{file}: its tests are red without a mutant: {red}")
        for number, mutant in enumerate(mutants_of(file)):
            if number % chosen.every or (lines and mutant.line not in lines):
                continue
            count += 1
            if chosen.list:
                say(f"{mutant.file}:{mutant.line} {mutant.what}")
                continue
            if killed(mutant):
                continue
            alive += 1
            listed = mutant.name in reasons
            say(f"survived{' (listed)' if listed else ''} at line {mutant.line} {mutant.name}")
            if not listed:
                unlisted.append(mutant)
        total, dead = total + count, dead + count - alive
        say(f"{file}: {count - alive} of {count} killed")
    share = dead / total if total else 1.0
    seconds = time.monotonic() - started_s
    say(f"{dead} of {total} killed ({share:.1%}) in {seconds:.0f} s; {len(unlisted)} unlisted")
    return 1 if unlisted and not chosen.list else 0


if __name__ == "__main__":
    raise SystemExit(main())
