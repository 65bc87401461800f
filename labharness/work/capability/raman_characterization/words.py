"""Phrases of the report of a Raman characterisation, in English and Chinese."""

from typing import Final

PHRASES: Final[dict[str, tuple[str, str]]] = {
    "phase.spectra": ("spectra", "光谱"),
    "phase.transfer": ("transfer", "转移"),
    "phase.characterisation": ("characterisation", "表征"),
    "phase.analysis": ("analysis", "分析"),
}
