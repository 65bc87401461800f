"""The mutants of a module: every operator, constant, boundary, branch or statement, wrong once."""

import ast
import copy
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent

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
        owner, where = self._owner, self._where
        if isinstance(self._value, ast.Pass) and isinstance(owner, list) and isinstance(where, int):
            return ast.unparse(owner[where])
        return ""

    def __call__(self) -> None:
        """Carry it out."""
        if isinstance(self._where, int) and isinstance(self._owner, list):
            self._owner[self._where] = self._value
        elif isinstance(self._where, str):
            if isinstance(self._value, _Truth) and isinstance(self._owner, ast.UnaryOp):
                self._value = ast.Not()
                self._owner.operand = ast.UnaryOp(ast.Not(), self._owner.operand)
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
