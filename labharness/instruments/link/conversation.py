"""A conversation with a process of the lab on this machine, over the socket that it serves.

One JSON object a line each way; a request is answered before the next one is.
"""

import select
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from labharness.core.errors import LabError
from labharness.core.vocabulary.texts import Text, from_json, to_json
from labharness.instruments.link import local

LINE_BYTES_MAX: Final = 64 * 1024
CONNECT_S_MAX: Final = 2.0
LATE_S: Final = 3.0
"""A person who waits longer for an answer is told so."""

ANSWER_S_MAX: Final = 120.0
"""The longest a command may take to settle, be read back, and be told."""

OWNER_S_MAX: Final = 15.0
"""Longest wait (s) for an answer of the line owner; a hold takes some seconds."""

Late = Iterable[tuple[float, Callable[[], None]]]


class NoOwner(LabError, ConnectionError, code="no_owner"):
    """No process owns the line, or it does not answer; the message says which."""


@dataclass(eq=False)
class LineControl:
    """One conversation with the owner of a line, for a terminal.

    Attributes:
        state_dir: The lab's state directory.
        late: Functions to call after so many seconds without an answer, the soonest first: a
            person may know why. They are asked for as time goes on.
        name: Of the socket's file.
        absent: Code of the text for a socket without a process.
        answer_s_max: Longest time (s) to wait for an answer.

    Raises:
        NoOwner: No process serves the socket.
        PermissionError: This account may not know whether one does.
    """

    state_dir: Path
    late: Late = ()
    name: str = local.CONTROL
    absent: str = "control.nobody"
    answer_s_max: float = ANSWER_S_MAX

    def __post_init__(self) -> None:
        path = self.state_dir / self.name
        if not local.SUPPORTED:
            raise NoOwner(Text("control.unsupported"))
        try:
            self._socket = local.connected_to(path, CONNECT_S_MAX)
        except PermissionError as why:
            text = f"{why.strerror}: the line is driven by the account that this folder belongs to"
            raise PermissionError(why.errno, text, str(path)) from None
        except OSError as why:
            text = Text(self.absent, path=str(path), why=why.strerror or str(why))
            raise NoOwner(text) from None
        self._socket.settimeout(self.answer_s_max)
        self._lines = self._socket.makefile("rb")

    def ask(self, **asked: object) -> dict[str, Any]:
        """Send one request and return the answer.

        Raises:
            NoOwner: The owner went away, or takes too long.
        """
        try:
            self._socket.sendall(line_of(asked))
            waited_s = 0.0
            for at_s, tell in self.late:
                if select.select([self._socket], [], [], at_s - waited_s)[0]:
                    break
                waited_s = at_s
                tell()
            text = self._lines.readline(16 * LINE_BYTES_MAX)
        except TimeoutError:
            raise NoOwner(Text("control.slow", most_s=self.answer_s_max)) from None
        except OSError as why:
            raise NoOwner(Text("control.gone_why", why=why.strerror)) from None
        if not text.endswith(b"\n"):
            raise NoOwner(Text("control.gone"))
        return cast("dict[str, Any]", from_json(text))

    def close(self) -> None:
        """Close the connection."""
        with suppress(OSError):
            self._lines.close()
        self._socket.close()

    def __enter__(self) -> "LineControl":
        return self

    def __exit__(self, *ended: object) -> None:
        self.close()


def house_door(home: Path) -> LineControl:
    """Return a conversation with a lab's house; raises `NoOwner` where none is up."""
    return LineControl(home, (), local.HOUSE, "house.not_up")


def owner_door(home: Path) -> LineControl:
    """Return a conversation with a lab's line owner; raises `NoOwner` where there is none."""
    return LineControl(home, (), local.OWNER, "house.no_owner", OWNER_S_MAX)


def is_up(state_dir: Path) -> bool:
    """Return whether a house answers for a lab."""
    return is_served(state_dir, local.HOUSE)


def is_served(state_dir: Path, name: str = local.CONTROL) -> bool:
    """Return whether a process answers for a lab: the one that drives its line, or another."""
    if not (state_dir / name).exists():
        return False
    try:
        LineControl(state_dir, (), name).close()
    except (NoOwner, PermissionError):
        return False
    return True


def line_of(body: Mapping[str, Any]) -> bytes:
    """Write an object as one line, in ASCII: every text can be encoded."""
    return to_json(body) + b"\n"
