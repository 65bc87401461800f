"""The one tree of errors: each kind has a code, which programs read, and a text for people."""

from typing import ClassVar


class LabError(Exception):
    """An error of labharness, which says in one plain sentence why something was not done.

    Attributes:
        code: Names the kind of error, and stays whatever the text says. A class without one of its
            own has that of the class it refines.
        usage: Whether a typed word or a named file is wrong: a command then ends with 64, after
            any other error with 1. It is stated with the code.
    """

    code: ClassVar[str] = "lab_error"
    usage: ClassVar[bool] = False

    def __init_subclass__(cls, *, code: str = "", usage: bool = False) -> None:
        super().__init_subclass__()
        if code:
            cls.code, cls.usage = code, usage
