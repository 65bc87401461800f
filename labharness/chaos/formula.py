"""A formula of a faults file: comparisons and sums of named values, and nothing else."""

import ast
import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import PlainValidator

from labharness.chaos.times import KILL_S, PAUSE_S, POLL_S, REPEATS_S, TRIP_S

TEXT_MAX = 500
TIMES: Mapping[str, float] = {
    "trip_s": TRIP_S,
    "kill_s": KILL_S,
    "pause_s": PAUSE_S,
    "poll_s": POLL_S,
    "repeats_s": REPEATS_S,
    "for_ever": math.inf,
}
NOTHING_BUILT_IN: Mapping[str, Any] = MappingProxyType({})
ALLOWED = (
    *(ast.Expression, ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.USub),
    *(ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Compare, ast.Lt, ast.LtE, ast.Gt, ast.GtE),
    *(ast.Eq, ast.NotEq, ast.In, ast.NotIn, ast.Name, ast.Load, ast.Constant),
)


class Formula:
    """A formula such as ``"o2_fraction > 0.01 and not lid_open"``.

    Args:
        text: The formula, in a part of Python's syntax.

    Attributes:
        text: The same text.
        names: The names of the values that it takes.

    Raises:
        ValueError: It is not a formula; the message says why.
    """

    def __init__(self, text: str) -> None:
        if len(text) > TEXT_MAX:
            raise ValueError(f"a formula has at most {TEXT_MAX} characters")
        try:
            tree = ast.parse(text.strip(), mode="eval")
        except (SyntaxError, RecursionError, MemoryError) as why:
            raise ValueError(f"{text!r} is not a formula: {why}") from None
        for node in ast.walk(tree):
            if not isinstance(node, ALLOWED):
                told = "it takes names, numbers, texts, and, or, not, in, + - *, and comparisons"
                raise ValueError(f"{text!r} is not a formula: {told}")
        self.text = text
        self.names = frozenset(each.id for each in ast.walk(tree) if isinstance(each, ast.Name))
        self._code = compile(tree, f"<{text}>", "eval")

    def __call__(self, values: Mapping[str, Any]) -> Any:  # noqa: ANN401 - a number or a truth
        """Return its result for named values."""
        return eval(self._code, {"__builtins__": NOTHING_BUILT_IN}, values)


def _condition(value: object) -> Formula:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not a formula: write it in quotes")
    return Formula(value)


def _seconds(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"{value!r} is not a time in seconds")
    formula = Formula(str(value))
    unknown = sorted(formula.names - set(TIMES))
    if unknown:
        raise ValueError(f"no time {', '.join(unknown)}; there are {', '.join(TIMES)}")
    seconds = float(formula(TIMES))
    if not seconds >= 0:
        raise ValueError(f"{value!r} is not a time from 0")
    return seconds


Condition = Annotated[Formula, PlainValidator(_condition)]
Seconds = Annotated[float, PlainValidator(_seconds)]
