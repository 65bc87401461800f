"""Read the words of the command line by a table of commands, with the standard argparse."""

import argparse
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

from labharness.faces.cli import EXIT_USAGE

__all__ = ["Argument", "Usage", "Version", "parse"]

NEGATIVE = re.compile(r"-(\.?[0-9].*|inf|nan)", re.IGNORECASE)
"""A word that begins with a minus sign and is a value; argparse takes -1e5 and -inf for options."""
MARK = "\0"  # put before such a word, so that it is a value; no operating system passes one on
VERBS_SHOWN = 5  # in the usage line of a command; of more, the first four
EPILOG = (
    "Exit codes: 0 completed, 1 failed or findings, 2 rejected, 3 aborted, 64 usage. "
    "docs/reference/command-line.md says more of each command."
)


class Argument(NamedTuple):
    """One argument or option: name and settings of argparse's ``add_argument``."""

    name: str
    settings: Mapping[str, Any]

    def add_by(self, add: Callable[..., object]) -> None:
        """Add it by a parser's or a group's method; its type gets each word as it was written."""
        settings = dict(self.settings)
        if settings.get("action", "append") == "append":
            kind: Callable[[str], object] = settings.get("type", str)
            settings["type"] = lambda word: kind(word.removeprefix(MARK))
        add(self.name, **settings)


class Usage:
    """A command: one sentence about it, without a capital and a full stop, and its arguments.

    At most one argument of a list of them may be used.
    """

    def __init__(self, told: str, *arguments: Argument | list[Argument]) -> None:
        """Keep both; a dataclass would cost each start 10 ms."""
        self.help, self.arguments = told, arguments

    def options(self) -> list[str]:
        """Return the name of each option."""
        groups = (each if isinstance(each, list) else [each] for each in self.arguments)
        names = ["-h", "--help", *(one.name for group in groups for one in group)]
        return [name for name in names if name.startswith("-")]


def parse(commands: Mapping[str, Usage], words: Sequence[str]) -> argparse.Namespace:
    """Return the chosen command and its arguments; leave with 64 if a word is wrong.

    Only the parser of the chosen command is made: all sixty would take 20 ms at each start.

    Args:
        commands: Each command by its words; ``""`` is the program.
        words: What was typed behind the program's name.

    Returns:
        ``command``, ``verb`` if it has commands below it, and each argument.
    """
    found, path, rest = argparse.Namespace(), "", list(words)
    for dest in ("command", "verb"):
        names = _below(commands, path)
        if names:
            if not rest or rest[0] not in names:
                _leave(commands, path, rest)
            setattr(found, dest, rest[0])
            path = f"{path} {rest.pop(0)}".strip()
    parser = _Parser(path, commands[path])
    marked = [MARK + word if NEGATIVE.fullmatch(word) else word for word in rest]
    _, left = parser.parse_known_args(marked, found)
    if left:
        parser.refuse(left[0].removeprefix(MARK))
    return found


def _below(commands: Mapping[str, Usage], path: str) -> list[str]:
    """Return the names of the commands one level below another."""
    above = path.split()
    rows = [key.split() for key in commands]
    return [row[-1] for row in rows if row and row[:-1] == above]


def _leave(commands: Mapping[str, Usage], path: str, rest: Sequence[str]) -> NoReturn:
    """Print the help that was asked for, or that a command is missing or unknown."""
    parser, names = _Parser(path, commands[path]), _below(commands, path)
    shown = "|".join(names if len(names) <= VERBS_SHOWN else [*names[:4], "..."])
    below = parser.add_subparsers(
        required=True,
        metavar=shown if path else "COMMAND",
        parser_class=argparse.ArgumentParser,
    )
    for name in names:
        below.add_parser(name, help=commands[f"{path} {name}".strip()].help, add_help=False)
    if not rest or rest[0] in ("--", *commands[path].options()):
        parser.parse_known_args(rest[:1])  # leaves
    if rest[0].startswith("-"):
        parser.refuse(rest[0])
    parser.error(f"no {rest[0]!r}{_near(rest[0], names)}; there are {', '.join(names)}")


class _Parser(argparse.ArgumentParser):
    """argparse with our exit code for wrong usage: its own, 2, means rejected here."""

    def __init__(self, path: str, command: Usage) -> None:
        """Make the parser of one command."""
        text = f"{command.help[:1].upper()}{command.help[1:]}."
        prog = f"labharness {path}".strip()
        super().__init__(prog=prog, description=text, epilog=None if path else EPILOG)
        self._options = command.options()
        for each in command.arguments:
            if isinstance(each, Argument):
                each.add_by(self.add_argument)
            else:
                group = self.add_mutually_exclusive_group()
                for one in each:
                    one.add_by(group.add_argument)

    def refuse(self, word: str) -> NoReturn:
        """Leave for a word that was left over, with the nearest known option."""
        name, _, _ = word.partition("=")
        if not name.startswith("-"):
            self.error(f"{word!r} is one word too many")
        if name in self._options:
            self.error(f"{name!r} stands behind --, where nothing is an option; write it before")
        self.error(f"no option {name!r}{_near(name, self._options)}")

    def error(self, message: str) -> NoReturn:
        """Print one line, and leave."""
        self.exit(EXIT_USAGE, f"{self.prog}: {message}; see {self.prog} --help\n")


class Version(argparse.Action):
    """Print which version this is; it is looked up only on request."""

    def __call__(self, parser: argparse.ArgumentParser, *asked: object) -> None:
        """Print it, and leave."""
        from importlib.metadata import version

        sys.stdout.write(f"labharness {version('labharness')}\n")
        parser.exit()


def _near(name: str, known: Iterable[str]) -> str:
    from labharness.core.vocabulary.spelling import meant  # only an error waits for it

    return meant(name, list(known))
