"""``labharness simulate`` and ``simulated``: serve a lab's simulators, and control them."""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from labharness.core.errors import LabError
from labharness.core.vocabulary.texts import Text
from labharness.faces.cli import EXIT_COMPLETED
from labharness.faces.cli.show import BadPath, CommandFailed, say
from labharness.instruments.simulation.control import BadRequest, NoSimulatedLab, ask
from labharness.lab import read_lab
from labharness.lab.wiring.serve_simulated import CONTROL_NAME, serve

ANSWER_S = 10.0
TCP_MAX = 65_535
STEP_S = 3_600.0  # a manual step takes minutes of lab time


def simulate(chosen: argparse.Namespace) -> int:
    """Carry out one of the two commands."""
    try:
        if chosen.command == "simulated":
            request = _request(chosen.asked, chosen.details)
            timeout_s = STEP_S if chosen.asked == "operate" else ANSWER_S
            say(json.dumps(ask(_address(Path(chosen.folder)), request, timeout_s)))
            return EXIT_COMPLETED
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
    except (ModuleNotFoundError, LabError):
        raise
    except Exception as why:  # noqa: BLE001 - a plant that broke; no traceback reaches a user
        raise CommandFailed(Text("cli.broke", error=type(why).__name__, why=str(why))) from None
    return EXIT_COMPLETED


def _numbers(words: Sequence[str]) -> Mapping[str, int]:
    """Read ``PORT=NUMBER`` words."""
    found: dict[str, int] = {}
    for word in words:
        name, _, number = word.partition("=")
        if not name or not number.isascii() or not number.isdecimal():
            raise BadRequest("cli.tcp", word=repr(word))
        if not 1 <= int(number) <= TCP_MAX:
            raise BadRequest("cli.tcp_range", word=repr(word), most=TCP_MAX)
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
        raise BadPath(Text("pair", what=str(folder), why=why.strerror)) from None
    except UnicodeDecodeError:
        binary = Text("cli.control_binary")
        raise NoSimulatedLab("cli.unserved", folder=str(folder), why=binary) from None


def _request(asked: str, details: Sequence[str]) -> dict[str, Any]:
    """Read the words of ``simulated`` as one request."""
    if asked == "fault":
        return {"ask": asked, "set": _pairs(details)}
    if asked == "bytes":
        return {"ask": asked, **_pairs(details)}
    first, *pairs = details or [""]
    if asked == "bus":
        return {"ask": asked, "port": first, "set": _pairs(pairs)}
    if asked == "panel":
        return {"ask": asked, "instrument": first, "set": _pairs(pairs)}
    if asked == "operate":
        return {"ask": asked, "action": first, "details": _pairs(pairs)}
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
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = value
    return found
