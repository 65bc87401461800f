"""Planting a bug: in a named symbol, one expression or some statements become others.

Python is compared as its syntax tree, so that neither formatting nor a comment stands in the way.
Of a TOML file a row is named, and a line in it.
"""

import ast
import re
import textwrap
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

SYMBOLS = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
BLOCKS = ("body", "orelse", "finalbody")
HEADER = re.compile(r"^\[", re.MULTILINE)
DRAWER_OF = {
    "labharness": "",
    "labharness_drivers": "drivers/",
    "labharness_simulators": "simulators/",
    "labharness_envelopes": "envelopes/",
}

Place = Sequence[ast.stmt] | Sequence[ast.expr]
_parsed = lru_cache(maxsize=8)(ast.parse)  # most bugs stand beside others of their file


def file_of(where: str) -> str:
    """Return the file that a symbol (``package.module:Class.method``) or a row stands in."""
    module = where.partition(":")[0]
    if "/" in module:
        return module
    return f"{DRAWER_OF[module.partition('.')[0]]}{module.replace('.', '/')}.py"


def plant(text: str, where: str, right: str, wrong: str) -> str:
    """Return the text of a file with a bug in it.

    Args:
        text: The file as it is.
        where: The symbol, as ``package.module:Class.method``; the module itself without a colon. In
            a TOML file a row, as ``folder/file.toml:some of its header, its name or its channel``.
        right: The expression, the statements or the line that protects.
        wrong: What stands there instead; empty where it is only taken away.

    Raises:
        LookupError: The symbol is not there, or does not hold what protects exactly once.
    """
    _, _, scope = where.partition(":")
    if file_of(where).endswith(".toml"):
        return _plant_in_row(text, where, right, wrong)
    found = list(_places(_symbol(_parsed(text), scope), right, wrong))
    if len(found) != 1:
        raise LookupError(f"{where} holds {right!r} {len(found)} times, not once")
    first, last = found[0][0], found[0][-1]
    if isinstance(first, ast.expr):
        instead = f"({wrong})"
    else:
        indent = " " * first.col_offset
        instead = textwrap.indent(_plain(wrong) or "pass", indent).removeprefix(indent)
    lines = text.encode().splitlines(keepends=True)  # columns are counted in bytes
    assert last.end_lineno is not None
    assert last.end_col_offset is not None
    before = b"".join(lines[: first.lineno - 1]) + lines[first.lineno - 1][: first.col_offset]
    after = lines[last.end_lineno - 1][last.end_col_offset :] + b"".join(lines[last.end_lineno :])
    return (before + instead.encode() + after).decode()


def _plain(text: str) -> str:
    return textwrap.dedent(text).strip("\n")


def _symbol(tree: ast.Module, scope: str) -> ast.AST:
    node: ast.AST = tree
    for name in scope.split(".") if scope else ():
        inner = (each for each in ast.walk(node) if isinstance(each, SYMBOLS) and each.name == name)
        found = next(inner, None)  # the outermost: what is inside it is not walked over
        if found is None:
            raise LookupError(f"there is no {scope}: {name} is missing")
        node = found
    return node


def _places(scope: ast.AST, right: str, wrong: str) -> Iterator[Place]:
    wanted, instead = ast.parse(_plain(right)).body, ast.parse(_plain(wrong)).body
    if _is_expression(wanted) and _is_expression(instead):
        shape = ast.dump(ast.parse(_plain(right), mode="eval").body)
        for node in ast.walk(scope):
            if isinstance(node, ast.expr) and ast.dump(node) == shape:
                yield [node]
        return
    shapes = [ast.dump(each) for each in wanted]
    for node in ast.walk(scope):
        for block in (getattr(node, name, None) for name in BLOCKS):
            if isinstance(block, list):
                held = [ast.dump(each) for each in block]
                for at in range(len(held) - len(shapes) + 1):
                    if held[at : at + len(shapes)] == shapes:
                        yield block[at : at + len(shapes)]


def _is_expression(body: Sequence[ast.stmt]) -> bool:
    return len(body) == 1 and isinstance(body[0], ast.Expr)


def _plant_in_row(text: str, where: str, right: str, wrong: str) -> str:
    row = where.partition(":")[2]
    starts = [found.start() for found in HEADER.finditer(text)]
    blocks = [text[start:end] for start, end in pairwise([*starts, len(text)])]
    named = [block for block in blocks if any(row in line for line in _names(block))]
    if len(named) != 1 or named[0].count(right) != 1:
        held = [block.count(right) for block in named]
        raise LookupError(f"{where}: rows of that name hold {right!r} so often: {held}")
    return text.replace(named[0], named[0].replace(right, wrong))


def _names(block: str) -> Iterator[str]:
    """Return what a row is called by: its header, and the values of these keys."""
    lines = block.splitlines()
    yield lines[0]
    yield from (line for line in lines if line.startswith(('name = "', 'channel = "')))
