"""The sentences that people read, by their codes, from `texts.toml` beside the code that says them.

Each folder of this package may hold a ``texts.toml``, and so may each package that an entry point
of the group ``labharness.texts`` names. A table has the sentence of one code in English and, for
all that people of a laboratory read, in Chinese; the table ``words`` has the Chinese of words that
stand as parameters. A file is only cut into its tables: each is parsed when its code is first said,
because TOML is slow to read and most commands say little.
"""

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from labharness.core.errors import LabError

ENGLISH: Final = "en"
LANGUAGES: Final = (ENGLISH, "zh")
"""The languages in which a person can read what the harness says."""

PACKAGE: Final = Path(__file__).parent.parent
FILE: Final = "texts.toml"
WORDS: Final = "words"
"""The table of words that stand as parameters; every file may have one."""


class TextTable(NamedTuple):
    """A table of a file.

    Attributes:
        text: Its lines, without the header.
        home: The file.
    """

    text: str
    home: Path


class WrongTexts(LabError, LookupError, code="wrong_texts"):
    """The texts of a package cannot be joined to the others.

    Attributes:
        why: Code of the text that says why; this module makes none itself.
        params: Its parameters.
    """

    def __init__(self, why: str, /, **params: str) -> None:
        super().__init__(why, params)
        self.why, self.params = why, params


@cache
def shipped() -> Mapping[str, TextTable]:
    """Return the tables of this package by their codes."""
    return _joined({}, PACKAGE)


@cache  # what is installed does not change while a process runs
def whole() -> Mapping[str, TextTable]:
    """Return the tables of this package and of others that are installed.

    Raises:
        WrongTexts: A package has a code that stands elsewhere too, or cannot be read.
    """
    from importlib.metadata import entry_points  # slow, and only asked where a code is not ours
    from importlib.util import find_spec

    found = dict(shipped())
    for point in sorted(entry_points(group="labharness.texts"), key=lambda each: each.value):
        try:
            spec = find_spec(point.value)
            for folder in (spec and spec.submodule_search_locations) or ():
                joined = _joined(found, Path(folder))
                for code, table in joined.items():
                    if table is not found.get(code):
                        _checked(code, table)
                found = joined
        except WrongTexts:
            raise
        except Exception as why:  # noqa: BLE001 - somebody else's package may raise anything
            kind = type(why).__name__
            raise WrongTexts("kinds.import", name=point.value, error=kind, why=str(why)) from None
    return found


@cache
def templates(code: str) -> tuple[str, str] | None:
    """Return a sentence in English and Chinese; in English twice where it is for administrators."""
    table = shipped().get(code) or _readable().get(code)
    if table is None:
        return None
    said = _parsed(table.text)
    return said["en"], said.get("zh", said["en"])


def known(code: str) -> bool:
    """Return whether a sentence of this code stands anywhere."""
    return code in shipped() or code in _readable()


@cache
def words() -> Mapping[str, str]:
    """Return the words that may stand as parameters, and their Chinese."""
    return _parsed(_readable()[WORDS].text)


def _readable() -> Mapping[str, TextTable]:
    """Return `whole`, or ours where that is wrong: what people read never fails for it."""
    try:
        return whole()
    except WrongTexts:
        return shipped()


def _checked(code: str, table: TextTable) -> None:
    """Raise ``WrongTexts`` where a table of somebody else cannot be said."""
    try:
        said = _parsed(table.text)
    except ValueError as why:
        raise WrongTexts("texts.bad", name=code, where=str(table.home), why=str(why)) from None
    if code != WORDS and not {"en"} <= said.keys() <= {"en", "zh"}:
        raise WrongTexts("texts.keys", name=code, where=str(table.home))


def _parsed(text: str) -> dict[str, str]:
    """Return a table.

    Raises:
        ValueError: It is not TOML.
    """
    import tomllib  # nothing is said by most imports of this module

    return tomllib.loads(text)


def _joined(found: Mapping[str, TextTable], package: Path) -> dict[str, TextTable]:
    """Return tables and those of a package, whose folders are searched.

    Raises:
        WrongTexts: A code stands in two files.
    """
    joined = dict(found)
    for folder, inside, names in os.walk(package):
        inside[:] = sorted(name for name in inside if not name.startswith(("__", ".")))
        if FILE not in names:
            continue
        file = Path(folder, FILE)
        for each in f"\n{file.read_text('utf-8')}".split("\n[")[1:]:
            code, _, text = each.partition("]\n")
            known = joined.get(code)
            if known and code == WORDS:
                text = f"{known.text}\n{text}"  # a doubled word is an error of TOML itself
            elif known:
                raise WrongTexts("texts.doubled", name=code, known=str(known.home), where=str(file))
            joined[code] = TextTable(text, file)
    return joined
