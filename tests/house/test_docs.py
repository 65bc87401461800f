"""The documents: their commands run, their output is real, and their links lead somewhere."""

import os
import re
import runpy
from pathlib import Path

import pytest

from commands import ROOT
from labharness.lab.config.kinds import driver_kinds, load_driver
from pages import (
    PAGES,
    RUN,
    blocks_of,
    checkout,
    command_line,
    differing,
    outdated,
    picture,
    updated,
    write,
)
from rig import SETTINGS

LINK = re.compile(r"\]\((?!https?:)([^)#]+)[)#]")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A place that looks like the checkout to the commands of the documents."""
    return checkout(tmp_path_factory.mktemp("checkout") / "here")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=getattr(pytest.mark, mark)) if mark else name
        for name, mark in RUN.items()
    ],
)
def test_every_command_of_a_page_prints_what_the_page_shows(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(folder)
    if os.environ.get("WRITE_PAGES"):
        write(name)
    assert outdated(name) == []
    if name.endswith("data-and-python.md"):
        blocks = [text for language, _, text in blocks_of(ROOT / name) if language == "python"]
        (folder / "page.py").write_text("\n".join(blocks), "utf-8")
        assert runpy.run_path("page.py")["pressures"]
    if name == "README.md":
        assert picture(Path("runs/first/report.html")).count("<polyline") > 1


def test_a_page_that_shows_what_was_not_printed_is_caught() -> None:
    said = ["one 1.5", "two", "three"]
    assert differing(["one 1.5", "...", "three"], said) == ""
    assert differing(["one 1.5", "two", "three"], said) == ""
    assert differing(["one 1.6", "...", "three"], said)
    assert differing(["...", "four", "..."], said)
    assert differing(["one 1.5", "three"], said)
    assert differing(["one 1.5"], said)
    assert differing(["...", "three", "two"], said)


def test_a_page_is_written_with_the_numbers_that_are_printed_and_no_other_words() -> None:
    said = ["one 1.5", "two", "three 3"]
    assert updated(["one 1.6", "...", "three 4"], said) == ["one 1.5", "...", "three 3"]
    assert updated(["four 4"], said) == ["four 4"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_between_the_pages_leads_to_a_file(page: Path) -> None:
    links = LINK.findall(page.read_text("utf-8"))
    assert [each for each in links if not (page.parent / each).is_file()] == []


def test_the_index_names_every_page() -> None:
    index = ROOT / "docs" / "README.md"
    named = {(index.parent / each).resolve() for each in LINK.findall(index.read_text("utf-8"))}
    pages = {page.resolve() for page in PAGES if page.parent.name != "decisions"}
    assert pages - named <= {ROOT / "README.md", index}


def test_the_documents_stay_as_long_as_a_person_reads() -> None:
    def lines(*pages: Path) -> int:
        return sum(len(page.read_text("utf-8").splitlines()) for page in pages)

    assert lines(ROOT / "README.md") <= 130
    assert lines(ROOT / "CHANGELOG.md") <= 80
    pages = lines(*(ROOT / "docs").rglob("*.md"))
    # 60: agents; 192: a row for each requirement of MCP-CP; 32: decision 51, five more rulings
    # 30: tools of a user
    assert pages <= 8_814, "what a program prints is made by pages"


def test_readme_and_documents_say_what_a_software_layer_may_claim() -> None:
    for page in ("README.md", "docs/reference/claims.md"):
        text = (ROOT / page).read_text("utf-8")
        for words in (
            "No safety integrity level",
            "stop request",
            "emergency stop",
            "proof",
            "VISA",
        ):
            assert words in text, (page, words)
    for page in ("README.md", "docs/README.md", "docs/tutorial/first-growth.md"):
        assert "reference/claims.md" in (ROOT / page).read_text("utf-8"), page


def test_the_reference_has_a_part_on_every_command_and_names_no_option_that_is_not_there() -> None:
    text = (ROOT / "docs" / "reference" / "command-line.md").read_text("utf-8")
    printed = command_line()
    commands = re.findall(r"^## ([a-z-]+)$", printed, re.MULTILINE)
    assert len(commands) == 52  # labharness itself is the first
    for command in commands:
        assert re.search(rf"^#+ .*\b{command}\b", f"# labharness\n{text}", re.MULTILINE), command
    options = set(re.findall(r"--[a-z0-9][a-z0-9-]+", text))
    assert sorted(options - set(re.findall(r"--[a-z0-9][a-z0-9-]+", printed))) == []


def test_the_reference_names_every_kind_and_each_of_its_channels() -> None:
    text = (ROOT / "docs" / "reference" / "instruments.md").read_text("utf-8")
    readme = (ROOT / "README.md").read_text("utf-8")
    sections = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL))
    assert list(sections) == sorted(driver_kinds())
    for kind, section in sections.items():
        driver = load_driver(kind)(**SETTINGS.get(kind, {}))
        assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == list(driver.channels)
        assert f"| `{kind}` |" in readme
        assert "Clients of others in `make interop`: " in section, kind
        clients = re.findall(r"`(test_\w+)`", section)
        assert clients or "No client" in section, kind
        assert all((ROOT / "tests" / "interop" / f"{each}.py").exists() for each in clients)
