"""Phrases of the report of an annealing, in English and Chinese."""

from typing import Final

PHRASES: Final[dict[str, tuple[str, str]]] = {
    "phase.flush": ("flush", "冲洗"),
    "phase.heating": ("heating", "升温"),
    "phase.dwell": ("dwell", "保温"),
    "phase.cooling": ("cooling", "冷却"),
}
