"""A text that carries its code and parameters: programs read those, people read any language.

A `Text` is its English sentence wherever a string is wanted: in an error, an HCP message, a log.
The journal keeps code and parameters; a face renders them in the reader's language.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from labharness.core.errors import LabError
from labharness.core.texts import ENGLISH, LANGUAGES, shipped, templates, words

shipped()  # now: a line that trips waits for no disk

SEPARATORS: Final = (", ", "、")
CAPITAL: Final = "C"
"""Format of a parameter that begins a sentence."""

FIELDS: Final = frozenset({"code", "with"})
"""Of a text in JSON."""

Param = str | int | float | None | Sequence["Param"]


class Text(str):
    """A code of a `texts.toml` with its parameters, and the English sentence that they make.

    Args:
        code: Its table there, for example ``limit.outside``.
        params: The values for its templates: JSON scalars, other texts, or sequences of these.
    """

    __slots__ = ("code", "params")
    code: str
    params: Mapping[str, Param]

    def __new__(cls, code: str, /, **params: Param) -> "Text":
        """Render the English sentence; an unknown code is shown as it is."""
        self = super().__new__(cls, _rendered(code, params, ENGLISH))
        self.code, self.params = code, params
        return self

    def __str__(self) -> str:
        """Keep code and parameters where a string is made sure of."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy a text by its code and parameters."""
        return _made, (self.code, dict(self.params))


class Said:
    """A code and its parameters of which no sentence is made yet: what judges a command is quick.

    Args:
        code: As of a `Text`.
        params: As of a `Text`; also what has its sentence as ``str``, such as another one of these.
    """

    __slots__ = ("code", "params")

    def __init__(self, code: str, /, **params: object) -> None:
        self.code, self.params = code, params

    @property
    def text(self) -> Text:
        """The text."""
        return _made(self.code, {name: _sentence(each) for name, each in self.params.items()})

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return repr(self.text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Said) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.code)


def _sentence(value: object) -> Param:
    if isinstance(value, list | tuple):
        return [_sentence(each) for each in value]
    return value if value is None or isinstance(value, str | int | float) else str(value)


class CodedError(LabError):
    """An error whose sentence is a text.

    Args:
        said: The code of the text, or a text, or the words of somebody else.
        params: The parameters of a code.
    """

    def __init__(self, said: str, /, **params: Param) -> None:
        coded = bool(params) or (not isinstance(said, Text) and templates(said) is not None)
        super().__init__(Text(said, **params) if coded else said)


def _made(code: str, params: Mapping[str, Param]) -> Text:
    return Text(code, **params)


def in_language(value: str, language: str) -> str:
    """Return a text in one of `LANGUAGES`; of plain strings known words alone."""
    if isinstance(value, Text):
        return value[:] if language == ENGLISH else _rendered(value.code, value.params, language)
    return words().get(value, value) if language != ENGLISH else value


def several(*said: str) -> str:
    """Return several texts as one; those that are empty say nothing."""
    parts = [each for each in said if each]
    if len(parts) > 1:
        return Text("parts", parts=parts)
    return parts[0] if parts else ""


def texts_in(value: object) -> Iterator[Text]:
    """Return a text and every text that its parameters hold; of a plain string none."""
    if isinstance(value, Text):
        yield value
        for each in value.params.values():
            yield from texts_in(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from texts_in(each)


def coded(value: object) -> object:
    """Return a JSON value in which each text is an object of its code and parameters."""
    if isinstance(value, str):
        if not isinstance(value, Text):
            return value
        return {
            "code": value.code,
            "with": {key: _scalar(each) for key, each in value.params.items()},
        }
    if isinstance(value, Mapping):
        return {key: coded(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [coded(each) for each in value]
    return value


def revived(fields: dict[str, Any]) -> object:
    """Return the text that an object of JSON stands for; any other object as it is."""
    if fields.keys() != FIELDS:
        return fields
    code, params = fields["code"], fields["with"]
    if not isinstance(code, str) or not isinstance(params, dict):
        return fields
    return _made(code, {key: _alive(each) for key, each in params.items()})


def to_json(value: object) -> bytes:
    """Return a value as JSON for another process, each text in it as its code and parameters."""
    return json.dumps(coded(value)).encode()


def from_json(data: bytes) -> object:
    """Return what `to_json` has made, each text alive again.

    Raises:
        ValueError: It is not JSON.
    """
    return json.loads(data, object_hook=revived)


def words_of(asked: Mapping[str, object], name: str) -> str:
    """Return the words in a field of a request; ``""`` where the field is missing or no text.

    A field is never made a text by ``str``: people would read the form of an object.
    """
    value = asked.get(name)
    return value if isinstance(value, str) else ""


def _alive(value: Any) -> Any:  # noqa: ANN401 - a parameter, as JSON has it
    if isinstance(value, dict):
        return revived(value)
    return [_alive(each) for each in value] if isinstance(value, list) else value


def _scalar(value: object) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        return f"{value:g}"  # JSON has no such number
    return coded(value)


def _rendered(code: str, params: Mapping[str, Param], language: str) -> str:
    fields = {key: _Shown(each, language) for key, each in params.items()}
    found = templates(code)
    if found is None and not params:
        return code
    if found is not None:
        try:
            return found[LANGUAGES.index(language)].format_map(fields)
        except (KeyError, TypeError, ValueError):  # another version's parameters
            pass
    return f"{code} {dict(sorted(params.items()))}"


class _Shown:
    """A parameter as a template shows it: a number by its format, all else in the language."""

    __slots__ = ("_language", "_value")

    def __init__(self, value: Param, language: str) -> None:
        self._value, self._language = value, language

    def __format__(self, spec: str) -> str:
        if isinstance(self._value, str):
            shown = in_language(self._value, self._language)
            return shown[:1].upper() + shown[1:] if spec == CAPITAL else shown
        if isinstance(self._value, Sequence):
            joint = spec or SEPARATORS[LANGUAGES.index(self._language)]
            return joint.join(format(_Shown(each, self._language)) for each in self._value)
        return format(self._value, spec)

    def __repr__(self) -> str:
        return repr(self._value)

    def __str__(self) -> str:
        """Return names as they are, for ``{name!s}``: one may look like a word."""
        if isinstance(self._value, str) or not isinstance(self._value, Sequence):
            return str(self._value)
        return SEPARATORS[LANGUAGES.index(self._language)].join(map(str, self._value))
