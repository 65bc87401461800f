"""The languages in which a person can read what the harness says."""

from typing import Final

ENGLISH: Final = "en"
LANGUAGES: Final = (ENGLISH, "zh")
