"""``labharness simulate`` and ``simulated``: serve a lab's simulators, and control them."""

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from labharness.core.errors import LabError
from labharness.core.vocabulary.texts import Text
from labharness.faces.cli.show import BadPath, CommandFailed, say
from labharness.faces.cli.values import PORT_MAX, json_or_word
from labharness.instruments.simulation.control import BadRequest, NoSimulatedLab, ask
from labharness.lab import read_lab
from labharness.lab.wiring.serve_simulated import CONTROL_NAME, serve

ANSWER_S = 10.0
NAMED = {
    "bus": ("port", "set"),
    "panel": ("instrument", "set"),
    "operate": ("action", "details"),
}
"""The fields of a request for its first word, and for the others."""
STEP_S = 3_600.0  # a manual step takes minutes of lab time


def simulate(chosen: argparse.Namespace) -> None:
    """Serve the simulators of a lab."""
    with _no_traceback():
        plan = read_lab(Path(chosen.lab))
        serve(
            plan,
            speed=chosen.speed,
            seed=chosen.seed,
            folder=Path(chosen.folder) if chosen.folder else plan.state_dir / "served",
            write_lab=Path(chosen.write_lab) if chosen.write_lab else None,
            tcp=_numbers(chosen.tcp or ()),
            ready=lambda status: say(json.dumps({"ready": True, **status})),
        )


def simulated(chosen: argparse.Namespace) -> None:
    """Ask the simulators that are served from a folder."""
    with _no_traceback():
        request = _request(chosen.asked, chosen.details)
        timeout_s = STEP_S if chosen.asked == "operate" else ANSWER_S
        say(json.dumps(ask(_address(Path(chosen.folder)), request, timeout_s)))


@contextmanager
def _no_traceback() -> Iterator[None]:
    """Print in one line that a plant broke."""
    try:
        yield
    except (ModuleNotFoundError, LabError):
        raise
    except Exception as why:  # noqa: BLE001 - a plant of others breaks in any way
        raise CommandFailed("cli.broke", error=type(why).__name__, why=str(why)) from None


def _numbers(words: Sequence[str]) -> Mapping[str, int]:
    """Read ``PORT=NUMBER`` words."""
    found: dict[str, int] = {}
    for word in words:
        name, _, number = word.partition("=")
        if not name or not number.isascii() or not number.isdecimal():
            raise BadRequest("cli.tcp", word=repr(word))
        if not 1 <= int(number) <= PORT_MAX:
            raise BadRequest("cli.tcp_range", word=repr(word), most=PORT_MAX)
        if name in found:
            raise BadRequest("cli.tcp_twice", name=repr(name))
        found[name] = int(number)
    return found


def _address(folder: Path) -> str:
    try:
        return (folder / CONTROL_NAME).read_text("utf-8").strip()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as why:
        raise NoSimulatedLab("cli.unserved", folder=str(folder), why=why.strerror) from None
    except OSError as why:  # a lab may well be served there
        raise BadPath("pair", what=str(folder), why=why.strerror) from None
    except UnicodeDecodeError:
        binary = Text("cli.control_binary")
        raise NoSimulatedLab("cli.unserved", folder=str(folder), why=binary) from None


def _request(asked: str, details: Sequence[str]) -> dict[str, Any]:
    """Read the words of ``simulated`` as one request."""
    if asked == "fault":
        return {"ask": asked, "set": _pairs(details)}
    if asked == "bytes":
        return {"ask": asked, **_pairs(details)}
    if asked in NAMED:
        what, where = NAMED[asked]
        first, *pairs = details or [""]
        return {"ask": asked, what: first, where: _pairs(pairs)}
    if details:
        raise BadRequest("cli.nothing_more", word=repr(asked), got=repr(" ".join(details)))
    return {"ask": asked}


def _pairs(words: Sequence[str]) -> Mapping[str, Any]:
    """Read ``name=value`` words; a value is JSON, or else text."""
    found: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise BadRequest("cli.name_value", word=repr(word))
        found[name] = json_or_word(value)
    return found
