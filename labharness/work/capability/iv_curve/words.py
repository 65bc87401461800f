"""Phrases of the report of a curve of current against voltage, in English and Chinese."""

from typing import Final

PHRASES: Final[dict[str, tuple[str, str]]] = {
    "phase.sweep": ("sweep", "扫描"),
}
