"""The languages in which a person can read what the harness says."""

from typing import Final

__all__ = ["ENGLISH", "LANGUAGES"]

ENGLISH: Final = "en"
LANGUAGES: Final = (ENGLISH, "zh")
