"""Phrases of the report of stored spectra, in English and Chinese."""

from typing import Final

__all__ = ["PHRASES"]

PHRASES: Final[dict[str, tuple[str, str]]] = {
    "phase.spectra": ("spectra", "光谱"),
    "phase.analysis": ("analysis", "分析"),
}
