"""A JSON value in a report: one line for each scalar."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final

from labharness.faces.report.html import Html, el, text
from labharness.faces.report.svg import exact

LINES_MAX: Final = 100
LIST_SHOWN_MAX: Final = 20
"""Lines of a JSON value, and items of a list of numbers or words, that the page shows."""


def data(value: object) -> Html:
    """Show a JSON value: a line for each scalar, what it is part of before it."""
    if isinstance(value, str) or value in ({}, []):
        return text(value or "–")
    lines = islice(_lines(value, ""), LINES_MAX + 1)
    return el("pre", "\n".join("…" if at == LINES_MAX else one for at, one in enumerate(lines)))


def _lines(value: object, name: str) -> Iterator[str]:
    if isinstance(value, Mapping) and value:
        for each, part in value.items():
            yield from _lines(part, f"{name}.{each}" if name else str(each))
    elif isinstance(value, list) and any(isinstance(each, dict | list) for each in value):
        for index, part in enumerate(value):
            yield from _lines(part, f"{name}[{index}]")
    else:
        yield f"{name}: {_scalar(value)}" if name else _scalar(value)


def _scalar(value: object) -> str:
    if isinstance(value, list):
        more = [] if len(value) <= LIST_SHOWN_MAX else [f"… ({len(value)})"]
        return ", ".join([*map(_scalar, value[:LIST_SHOWN_MAX]), *more])
    return exact(value) if isinstance(value, float) else str(value)
