"""Phrases of the report of an analysed document, in English and Chinese."""

from typing import Final

PHRASES: Final[dict[str, tuple[str, str]]] = {
    "phase.document": ("document", "文档"),
    "phase.analysis": ("analysis", "分析"),
}
