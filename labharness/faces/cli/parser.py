"""Read the words of the command line by a table of commands, with the standard argparse."""

import argparse
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

from labharness.core.languages import ENGLISH, LANGUAGES
from labharness.faces.cli import EXIT_USAGE

NEGATIVE = re.compile(r"-(\.?[0-9].*|inf|nan)", re.IGNORECASE)
"""A word that begins with a minus sign and is a value; argparse takes -1e5 and -inf for options."""
MARK = "\0"  # put before such a word, so that it is a value; no operating system passes one on
VERBS_SHOWN = 5  # in the usage line of a command; of more, the first four
ARGPARSE = {
    r"the following arguments are required: (?P<names>.*)": "usage.required",
    r"expected one argument": "usage.one_value",
    r"expected at least one argument": "usage.values",
    r"not allowed with argument (?P<other>.*)": "usage.not_with",
    r"ambiguous option: (?P<name>.*) could match (?P<names>.*)": "usage.ambiguous",
    r"ignored explicit argument (?P<value>.*)": "usage.no_value",
}
"""The code of each sentence of argparse; a sentence of another version is shown as it is."""
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


def parse(
    commands: Mapping[str, Usage], words: Sequence[str], every: Sequence[Argument] = ()
) -> argparse.Namespace:
    """Return the chosen command and its arguments; leave with 64 if a word is wrong.

    Only the parser of the chosen command is made: all sixty would take 20 ms at each start.

    Args:
        commands: Each command by its words; ``""`` is the program.
        words: The words behind the program's name.
        every: The options that each command takes besides its own.

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
    command = Usage(commands[path].help, *commands[path].arguments, *every)
    parser = _Parser(path, command, rest)
    left = parser.read([MARK + word if NEGATIVE.fullmatch(word) else word for word in rest], found)
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
    parser, names = _Parser(path, commands[path], rest), _below(commands, path)
    shown = "|".join(names if len(names) <= VERBS_SHOWN else [*names[:4], "..."])
    below = parser.add_subparsers(
        required=True, metavar=shown if path else "COMMAND", parser_class=argparse.ArgumentParser
    )
    for name in names:
        below.add_parser(name, help=commands[f"{path} {name}".strip()].help, add_help=False)
    if not rest or rest[0] in ("--", *commands[path].options()):
        parser.read(rest[:1], argparse.Namespace())  # leaves
    if rest[0].startswith("-"):
        parser.refuse(rest[0])
    parser.wrong("usage.command", name=repr(rest[0]), hint=_near(rest[0], names), names=names)


class _Parser(argparse.ArgumentParser):
    """argparse with our exit code for wrong usage (its own, 2, means rejected) and our texts."""

    def __init__(self, path: str, command: Usage, words: Sequence[str]) -> None:
        """Make the parser of one command, which is to read these words."""
        text = f"{command.help[:1].upper()}{command.help[1:]}."
        prog = f"labharness {path}".strip()
        epilog = None if path else EPILOG
        super().__init__(prog=prog, description=text, epilog=epilog, exit_on_error=False)
        self._options, self._words = command.options(), words
        for each in command.arguments:
            if isinstance(each, Argument):
                each.add_by(self.add_argument)
            else:
                group = self.add_mutually_exclusive_group()
                for one in each:
                    one.add_by(group.add_argument)

    def read(self, words: Sequence[str], found: argparse.Namespace) -> list[str]:
        """Put the arguments into a namespace; return the words that are left over."""
        try:
            return self.parse_known_args(words, found)[1]
        except argparse.ArgumentError as why:
            if why.argument_name is None:
                self.error(why.message)
            self.wrong("usage.argument", name=why.argument_name, why=_coded(why.message))

    def refuse(self, word: str) -> NoReturn:
        """Leave for a word that was left over, with the nearest known option."""
        name, _, _ = word.partition("=")
        if not name.startswith("-"):
            self.wrong("usage.word", word=repr(word))
        if name in self._options:
            self.wrong("usage.behind", name=repr(name))
        self.wrong("usage.option", name=repr(name), hint=_near(name, self._options))

    def error(self, message: str) -> NoReturn:
        """Print one line, and leave."""
        self.wrong("items", parts=_coded(message))

    def wrong(self, code: str, **params: Any) -> NoReturn:  # noqa: ANN401 - as texts take them
        """Print one line in the language that the words name, and leave."""
        from labharness.core.vocabulary.texts import Text, in_language  # only an error waits for it

        said = Text("usage.wrong", prog=self.prog, why=Text(code, **params))
        self.exit(EXIT_USAGE, in_language(said, self._language()) + "\n")

    def _language(self) -> str:
        """Return the language that the words name, also where another word of them is wrong."""
        named = re.findall(r"--lang[= ](\S+)", " ".join(self._words))
        return named[-1] if named and named[-1] in LANGUAGES else ENGLISH


def _coded(message: str) -> str:
    """Return the text for a sentence of argparse; a text of ours stays."""
    from labharness.core.vocabulary.texts import Text

    for pattern, code in ARGPARSE.items():
        if found := re.fullmatch(pattern, message):
            return Text(code, **found.groupdict())
    return message


class Version(argparse.Action):
    """Print the version, which is looked up only on request."""

    def __call__(self, parser: argparse.ArgumentParser, *asked: object) -> None:
        """Print it, and leave."""
        from importlib.metadata import version

        sys.stdout.write(f"labharness {version('labharness')}\n")
        parser.exit()


def _near(name: str, known: Iterable[str]) -> str:
    from labharness.core.vocabulary.spelling import did_you_mean  # only an error waits for it

    return did_you_mean(name, list(known))
