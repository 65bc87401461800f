"""The mutants of a module: every operator, constant, boundary, branch or statement, wrong once."""

import ast
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
DROPPABLE = (ast.Assign, ast.AugAssign, ast.Expr, ast.Continue, ast.Break, ast.Raise)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
BLOCKS = (
    *FUNCTIONS,
    ast.If,
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.With,
    ast.AsyncWith,
    ast.Try,
    ast.ExceptHandler,
)


class Mutant(NamedTuple):
    """One change: where, what it says, and which of the module's nodes it changes.

    Attributes:
        file: Which.
        line: Where in it, 0 if it is nowhere.
        what: The change in words.
        node: The number of the node in a walk of the module.
        change: The number of the change among those of the node.
    """

    file: str
    line: int
    what: str
    node: int
    change: int

    @property
    def name(self) -> str:
        """What the list of reasons calls it: by its words, as lines move."""
        return f"{self.file}: {self.what}"

    def text(self) -> str:
        """Return the whole mutated file."""
        tree = ast.parse((ROOT / self.file).read_text("utf-8"))
        node = next(each for number, each in enumerate(ast.walk(tree)) if number == self.node)
        list(_changes(node, _encodes(self.file)))[self.change].carry_out()
        return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def mutants_of(file: str) -> Iterator[Mutant]:
    """Return every mutant of a file, in the order of its text."""
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    encodes = _encodes(file)
    quiet = _docstrings(tree) | _annotations(tree, encodes)
    at = _places(tree)
    for number, node in enumerate(list(ast.walk(tree))):
        if id(node) in quiet:
            continue
        before = ""
        for which, change in enumerate(_changes(node, encodes)):
            before = before or ast.unparse(node)
            dropped = change.dropped()
            if dropped:
                inside = getattr(node, "name", at[number])
                what = f"{inside}: `{_short(dropped)}` dropped"
            else:
                change.carry_out()
                what = f"{at[number]}: `{_short(before)}` -> `{_short(ast.unparse(node))}`"
                change.undo()
            yield Mutant(file, getattr(node, "lineno", 0), what, number, which)


def _encodes(file: str) -> bool:
    """Return whether the file writes frames: there a format or a rounding is no mere word."""
    return "driver" in file


def _changes(node: ast.AST, encodes: bool) -> Iterator["Change"]:
    """Return the ways in which one node may be wrong."""
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
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield Change(node, "op", ast.UAdd())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield Change(node, "operand", ast.UnaryOp(ast.Not(), node.operand))
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            yield Change(node, "value", not node.value)
        elif isinstance(node.value, int | float):
            yield Change(node, "value", node.value + 1)
        elif isinstance(node.value, bytes) and encodes:
            yield Change(node, "value", node.value[:-1] if node.value else b"?")
    elif isinstance(node, ast.FormattedValue) and encodes and node.format_spec is not None:
        yield from _formats(node.format_spec)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.func.id in SWAPPED:
            yield Change(node.func, "id", SWAPPED[node.func.id])
        elif node.func.id == "round" and len(node.args) == 1:
            yield Change(node.func, "id", "int")
    elif isinstance(node, ast.If):
        yield Change(node, "test", ast.Constant(True))
        yield Change(node, "test", ast.Constant(False))
    elif isinstance(node, ast.Return) and not isinstance(node.value, ast.Constant | None):
        yield Change(node, "value", ast.Constant(None))
    for body in ("body", "orelse", "finalbody"):
        if isinstance(node, BLOCKS) and isinstance(getattr(node, body, None), list):
            yield from _dropped(getattr(node, body))


def _formats(spec: ast.expr) -> Iterator["Change"]:
    """Return one digit less, or the next base."""
    for part in getattr(spec, "values", ()):
        for right, wrong in ((".3", ".2"), (".2", ".1"), (".1", ".0"), ("04", "03"), ("02", "01")):
            if isinstance(part, ast.Constant) and right in str(part.value):
                yield Change(part, "value", str(part.value).replace(right, wrong))


def _dropped(body: list[ast.stmt]) -> Iterator["Change"]:
    """Leave single statements out of a body."""
    for at, statement in enumerate(body):
        plain = isinstance(statement, DROPPABLE) or (
            isinstance(statement, ast.Return) and statement.value is None
        )
        if plain and not (
            isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        ):
            yield Change(body, at, ast.Pass())


class Change:
    """One attribute, or one place of a list, that gets another value."""

    def __init__(self, owner: object, where: str | int, value: object) -> None:
        self._owner, self._where, self._value = owner, where, value

    def dropped(self) -> str:
        """Return which statement it leaves out, if it does."""
        owner, where = self._owner, self._where
        if isinstance(self._value, ast.Pass) and isinstance(owner, list) and isinstance(where, int):
            return ast.unparse(owner[where])
        return ""

    def carry_out(self) -> None:
        """Do it, and keep what was there."""
        if isinstance(self._where, int) and isinstance(self._owner, list):
            was, self._owner[self._where] = self._owner[self._where], self._value
            self._value = was
        elif isinstance(self._where, str):
            was = getattr(self._owner, self._where)
            setattr(self._owner, self._where, self._value)
            self._value = was

    undo = carry_out  # what was there and what is there change places


def _places(tree: ast.Module) -> list[str]:
    """For each node as it is walked, the function or class it is in and its statement's words."""
    place: dict[int, str] = {id(tree): "module"}
    for node in ast.walk(tree):
        here = place.get(id(node), "module")
        if isinstance(node, (ast.ClassDef, *FUNCTIONS)):
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


def _annotations(tree: ast.AST, encodes: bool) -> set[int]:
    """Types, words of messages and lists of names decide nothing."""
    found = set()
    for node in ast.walk(tree):
        for field in ("annotation", "returns"):
            part = getattr(node, field, None)
            if isinstance(part, ast.AST):
                found |= {id(each) for each in ast.walk(part)}
        if isinstance(node, ast.JoinedStr):
            parts = {id(each) for each in ast.walk(node)}
            formats = {id(each) for each in ast.walk(node) if isinstance(each, ast.FormattedValue)}
            found |= parts - formats if encodes else parts
        if isinstance(node, (ast.ClassDef, *FUNCTIONS)):
            for each in node.decorator_list:
                found |= {id(part) for part in ast.walk(each)}
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in ("Condition", "Bound"):
            found |= {id(part) for part in ast.walk(node)}
    return found


def _short(text: str) -> str:
    first = " ".join(text.split())
    return first if len(first) <= 90 else first[:87] + "..."
