"""Every error has a code of its own, and the page of errors lists them all."""

import importlib
import pkgutil
from collections.abc import Iterator

import pytest

import labharness
from commands import say
from labharness.core.errors import LabError
from labharness.core.vocabulary.texts import CodedError
from labharness.faces import cli
from labharness.lab import BadLabFile
from rig import HERE

PAGE = HERE.parent / "docs" / "reference" / "errors.md"


def raised() -> Iterator[type[BaseException]]:
    """Return each public exception class of the package."""
    for module in pkgutil.walk_packages(labharness.__path__, "labharness."):
        runs = module.name.endswith("__main__")
        for each in () if runs else vars(importlib.import_module(module.name)).values():
            ours = isinstance(each, type) and each.__module__ == module.name
            if ours and issubclass(each, BaseException) and not each.__name__.startswith("_"):
                yield each


BASES = (LabError, CodedError)
"""Raised by nobody: others refine them."""

Errors = list[type[BaseException]]


@pytest.fixture(scope="module")
def errors() -> Errors:
    """Import all modules here: that takes a second, which each worker would lose as it reads."""
    return sorted((each for each in raised() if each not in BASES), key=lambda each: str(each))


def code_of(error: type[BaseException]) -> str:
    assert issubclass(error, LabError), f"{error} has no code"
    return error.code


def test_every_public_error_has_a_code_that_it_states_itself(errors: Errors) -> None:
    assert [each for each in errors if "code" not in vars(each)] == []
    assert [c for c in map(code_of, errors) if not (c.isidentifier() and c.islower())] == []


def test_no_code_names_two_errors(errors: Errors) -> None:
    codes = [code_of(each) for each in errors]
    assert sorted(codes) == sorted(set(codes))


def test_an_error_without_a_code_of_its_own_has_that_of_the_one_it_refines() -> None:
    class Worse(BadLabFile):
        """Somebody else's."""

    class Other(BadLabFile, code="other"):
        """One with a code, which says nothing of its use."""

    assert code_of(Worse) == code_of(BadLabFile)
    assert (BadLabFile.usage, Other.usage) == (True, False)


def test_the_page_of_errors_lists_every_code(errors: Errors) -> None:
    rows = ["| code | exit code | meaning |", "|---|---|---|"]
    for each in sorted(errors, key=code_of):
        meaning = (each.__doc__ or "").splitlines()[0]
        assert issubclass(each, LabError)
        ends = cli.EXIT_USAGE if each.usage else cli.EXIT_FAILED
        rows.append(f"| `{code_of(each)}` | {ends} | {meaning} |")
    table = "\n".join(rows)
    assert PAGE.read_text("utf-8").endswith(f"\n\n{table}\n"), f"it should end with\n{table}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("one line", "labharness lab: one line [bad_lab_file]\n"),
        ("what is wrong\npaste = 1", "labharness lab: what is wrong [bad_lab_file]\npaste = 1\n"),
    ],
)
def test_a_command_prints_the_code_behind_the_first_line(
    text: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(chosen: object) -> int:
        raise BadLabFile(text)

    monkeypatch.setattr(cli, "_carry_out", fails)
    said = say("lab", "check")
    assert (said.code, said.out, said.err) == (cli.EXIT_USAGE, "", expected)
