"""What argparse is for these commands: their exit code, and the nearest of what is not there."""

import argparse
import re
import sys
from collections.abc import Iterable
from typing import Any, NoReturn

from labharness.faces.cli import EXIT_USAGE

__all__ = ["Parser", "Version"]

NEGATIVE = re.compile(r"-([0-9]*\.?[0-9]+(e[+-]?[0-9]+)?|inf|nan)", re.IGNORECASE)
"""A value and no option; argparse's own pattern takes -1e5 and -inf for options."""


class _Commands(argparse._SubParsersAction):  # type: ignore[type-arg]  # generic in its stub only
    """Commands below another, each with what it does on its own page of help too."""

    def add_parser(self, name: str, **options: Any) -> Any:  # noqa: ANN401 - passed on as it came
        text = options.get("help", "")
        return super().add_parser(name, description=f"{text[:1].upper()}{text[1:]}.", **options)


class Parser(argparse.ArgumentParser):
    """argparse, with our exit code for wrong usage (its own is 2, which means rejected here).

    A command, a choice or an option that is not there is told with the one that is nearest.
    """

    def __init__(self, **options: Any) -> None:  # noqa: ANN401 - passed on as it came
        super().__init__(**options)
        self.register("action", "parsers", _Commands)
        self._negative_number_matcher = NEGATIVE

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:  # noqa: ANN401 - argparse overloads it
        """Parse, and refuse at the command it was written behind whatever is left."""
        found, left = super().parse_known_args(args, namespace)
        for word in left:
            name, _, _ = word.partition("=")
            if not name.startswith("-"):
                self.error(f"{word!r} is one word too many")
            if name in self._option_string_actions:
                self.error(
                    f"{name!r} stands behind --, where nothing is an option; write it before"
                )
            self.error(f"no option {name!r}{_near(name, self._option_string_actions)}")
        return found, left

    def _check_value(self, action: argparse.Action, value: object) -> None:
        there = None if action.choices is None else [str(each) for each in action.choices]
        if there is not None and value not in there:
            text = f"no {value!r}{_near(str(value), there)}; there are {', '.join(there)}"
            raise argparse.ArgumentError(action, text)

    def error(self, message: str) -> NoReturn:
        """Say one line, and leave."""
        self.exit(EXIT_USAGE, f"{self.prog}: {message}; see {self.prog} --help\n")


class Version(argparse.Action):
    """Tells which version this is; it is looked up when somebody asks."""

    def __call__(self, parser: argparse.ArgumentParser, *asked: object) -> None:
        """Tell it, and leave."""
        from importlib.metadata import version

        sys.stdout.write(f"labharness {version('labharness')}\n")
        parser.exit()


def _near(name: str, known: Iterable[str]) -> str:
    from labharness.core.vocabulary.spelling import meant  # only who errs waits for it

    return meant(name, list(known))
