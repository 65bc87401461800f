"""Read the words of the command line by the table of operations, with the standard argparse."""

import argparse
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from shutil import get_terminal_size
from textwrap import fill, wrap
from typing import Any, Final, NoReturn

from labharness.core.operations import GROUPS, Argument, Operation, choice, row
from labharness.core.texts import ENGLISH, LANGUAGES
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


PROGRAM: Final = row("", "run laboratory instruments behind a safety envelope")
NAMES_CELLS: Final = 18
"""Where the sentences of the first page begin."""

LANG: Final = choice("--lang", LANGUAGES, "language of messages and pages (default en)", ENGLISH)
"""The option of every command."""


def add_by(add: Callable[..., object], one: Argument) -> None:
    """Add a parameter by a parser's or a group's method; each word is read as it was written."""
    if one.name.startswith("--") and not one.shown:
        add(one.name, action="store_true", help=one.told)
        return
    settings: dict[str, Any] = {"help": one.told or None, "default": one.default}
    if one.required:
        settings["required"] = True
    if one.stored:
        settings["dest"] = one.stored
    if one.many:
        settings["action" if one.many == "append" else "nargs"] = one.many

    def value(word: str) -> object:
        from labharness.faces.cli import values  # help needs none

        read = values.one_of(one.allowed) if one.allowed else getattr(values, one.value)
        return read(word.removeprefix(MARK))

    add(one.name, metavar=one.shown, type=value, **settings)


def parse(commands: Mapping[str, Operation], words: Sequence[str]) -> argparse.Namespace:
    """Return the chosen command and its arguments; leave with 64 if a word is wrong.

    Only the parser of the chosen command is made: all sixty would take 20 ms at each start.

    Args:
        commands: The table of operations.
        words: The words behind the program's name.

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
    parser = _Parser(path, commands[path], rest)
    add_by(parser.add_argument, LANG)
    left = parser.read([MARK + word if NEGATIVE.fullmatch(word) else word for word in rest], found)
    if left:
        parser.refuse(left[0].removeprefix(MARK))
    return found


def _below(commands: Mapping[str, Operation], path: str) -> list[str]:
    """Return the names of the commands one level below another."""
    above = path.split()
    rows = [key.split() for key in commands]
    return [row[-1] for row in rows if row and row[:-1] == above]


def _leave(commands: Mapping[str, Operation], path: str, rest: Sequence[str]) -> NoReturn:
    """Print the help that was asked for, or that a command is missing or unknown."""
    above = commands[path] if path else PROGRAM
    parser, names = _Parser(path, above, rest), _below(commands, path)
    shown = "|".join(names if len(names) <= VERBS_SHOWN else [*names[:4], "..."])
    below = parser.add_subparsers(
        required=True,
        metavar=shown if path else "COMMAND",
        parser_class=argparse.ArgumentParser,
        help=None if path else argparse.SUPPRESS,
    )
    for name in names if path else ():
        below.add_parser(name, help=commands[f"{path} {name}"].told, add_help=False)
    if not path:
        parser.add_argument("--version", action="store_true", help="print the version")
        _group(parser, commands)
    if rest[:1] == ["--version"] and not path:
        from importlib.metadata import version  # looked up only on request

        sys.stdout.write(f"labharness {version('labharness')}\n")
        parser.exit()
    if not rest or rest[0] in ("--", "-h", "--help"):
        parser.read(rest[:1], argparse.Namespace())  # leaves
    if rest[0].startswith("-"):
        parser.refuse(rest[0])
    parser.wrong("usage.command", name=repr(rest[0]), hint=_near(rest[0], names), names=names)


def _group(parser: argparse.ArgumentParser, commands: Mapping[str, Operation]) -> None:
    """Have the first page show every command by what a person wants."""
    width = get_terminal_size().columns - 2
    lines = [str(parser.description)]
    for group, title in GROUPS.items():
        lines += ["", f"{title}:"]
        for each in commands.values():
            if each.group == group:
                first, *more = wrap(each.told, width - NAMES_CELLS)
                lines.append(f"    {each.name}".ljust(NAMES_CELLS) + first)
                lines += [" " * NAMES_CELLS + line for line in more]
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.usage = "labharness [-h] [--version] COMMAND ..."
    parser.description, parser.epilog = "\n".join(lines), fill(EPILOG, width)


class _Parser(argparse.ArgumentParser):
    """argparse with our exit code for wrong usage (its own, 2, means rejected) and our texts."""

    def __init__(self, path: str, command: Operation, words: Sequence[str]) -> None:
        """Make the parser of one command, which is to read these words."""
        text = f"{command.told[:1].upper()}{command.told[1:]}."
        super().__init__(prog=f"labharness {path}".strip(), description=text, exit_on_error=False)
        self._words = words
        for each in command.parameters:
            if isinstance(each, Argument):
                add_by(self.add_argument, each)
            else:
                group = self.add_mutually_exclusive_group()
                for one in each:
                    add_by(group.add_argument, one)

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
        known = list(self._option_string_actions)
        if name in known:
            self.wrong("usage.behind", name=repr(name))
        self.wrong("usage.option", name=repr(name), hint=_near(name, known))

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


def _near(name: str, known: Iterable[str]) -> str:
    from labharness.core.vocabulary.spelling import did_you_mean  # only an error waits for it

    return did_you_mean(name, list(known))
