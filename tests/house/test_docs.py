"""The documents: their commands run, their output is real, and their links lead somewhere."""

import json
import re
import shlex
import shutil
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest

from commands import ROOT, say
from labharness.analysis import shift_from_wavelength
from labharness.core.vocabulary import Cause, Trip
from labharness.lab import read_lab
from labharness.lab.config.kinds import driver_kinds, load_driver
from labharness.safety.guard import Latch
from labharness_simulators.plant.optics import LASER_NM, Spectrometer
from labharness_simulators.plant.sample import Sample
from labharness_simulators.plant.spectrum import Light, light_of
from rig import EXAMPLE

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
RUN = (
    pytest.param("README.md", marks=pytest.mark.thorough),  # five flights of the shipped line
    pytest.param("docs/tutorial/first-growth.md", marks=pytest.mark.soak),  # four more flights
    pytest.param("docs/reference/command-line.md", marks=pytest.mark.thorough),
    pytest.param("docs/reference/journal.md", marks=pytest.mark.thorough),
    "docs/how-to/add-a-driver.md",
    pytest.param("docs/how-to/approve-a-task.md", marks=pytest.mark.thorough),
    "docs/how-to/drive-a-line-by-hand.md",
    pytest.param("docs/how-to/read-a-report.md", marks=pytest.mark.thorough),
    "docs/how-to/record-a-proof-test.md",
    "docs/how-to/analyse-your-own-spectra.md",
)
RUNS = {
    "runs/first": "labharness run examples/mos2-monolayer.json --out runs/first",
    "runs/warmer": "labharness run warmer.json --lab tests/short_line.toml --out runs/warmer",
}
"""Runs that pages look at, whichever page is read first."""

BLOCK = re.compile(r"^```(\w+) ?(.*?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)[)#]")

VARIES = re.compile(
    r"\d{4}-\d\d-\d\dT[\d:.]+Z|[0-9a-f]{8,}(?:-[0-9a-f]{4,})*|\d+\.\d+|\d+ bytes|PT[0-9HMS]+"
    r"|of \d+ records|\d+:\d\d:\d\d|\d+ %"
)
"""What another version of a library or of a lab's files may change without making a page wrong."""

SETTINGS: dict[str, dict[str, Any]] = {
    "alicat_mc": {"unit": "A", "gas": "Ar", "full_scale_sccm": 100.0},
    "eurotherm_2400": {"program": 1},
}


def blocks_of(page: Path) -> list[tuple[str, str, str]]:
    """Return language, the rest of the info string, and the text of each fenced block."""
    return [(m[1], m[2], m[3]) for m in BLOCK.finditer(page.read_text("utf-8"))]


def commands_of(text: str) -> list[tuple[str, list[str]]]:
    """Return each command of a console block and the lines that are to follow it."""
    found: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def masked(line: str) -> str:
    return " ".join(VARIES.sub("#", line).split())


def follows(shown: list[str], said: list[str]) -> str:
    """Return which line of a page the command did not print, in order; ``...`` skips any number."""
    rest = iter(said)
    skipping = False
    for line in shown:
        if line == "...":
            skipping = True
            continue
        for found in rest:
            if masked(found) == masked(line):
                break
            if not skipping:
                return f"{line!r}, printed was {found!r}"
        else:
            return repr(line)
        skipping = False
    left = list(rest)
    return f"nothing, printed was {left[0]!r}" if left and not skipping else ""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A place that looks like the checkout to the commands of the documents."""
    root = tmp_path_factory.mktemp("checkout")
    labs = Path("envelopes/labharness_envelopes/labs")
    shutil.copytree(ROOT / "examples", root / "examples")
    shutil.copytree(ROOT / labs, root / labs)
    (root / "tests").mkdir()
    for each in (ROOT / "tests").glob("short_line*.toml"):
        shutil.copy(each, root / "tests")
    for page in PAGES:
        for language, info, text in blocks_of(page):
            if language == "json" and info:
                body = json.loads(EXAMPLE.read_text("utf-8"))
                body["payload"]["inputs"]["temperature_range"] = json.loads(text)
                (root / info).write_text(json.dumps(body), "utf-8")
    mine = root / "my-lab"
    shutil.copytree(ROOT / labs / "cvd_mos2", mine)
    edited = (mine / "lab.toml").read_text("utf-8")
    edited = re.sub(r"(?m)^title = .*$", 'title = "My lab"', edited, count=1)
    (mine / "lab.toml").write_text(edited, "utf-8")
    write_film(root / "my-film.txt")
    return root


def write_film(path: Path) -> None:
    """Write the spectrum of a monolayer, as an instrument with errors of its own sees it."""

    def light(exposure_s: float) -> Light:
        return light_of(Sample("film", "SiO2/Si"), 1, 0.0, 0.0, 0.3, exposure_s)

    spectrometer = Spectrometer(light, Random(3))
    shift = shift_from_wavelength(LASER_NM, spectrometer.wavelengths_nm())
    counts = spectrometer.exposure(8.0)
    rows = (
        f"{x:.4f}\t{y - spectrometer.BIAS_COUNTS:.6g}\n" for x, y in zip(shift, counts, strict=True)
    )
    path.write_text("".join(rows), "utf-8")


@cache  # the same command on two pages is run once
def run(command: str) -> list[str]:
    _, *arguments = shlex.split(command)
    said = say(*arguments)
    if arguments[0] in ("run", "set"):  # a person sees both, and progress comes before the result
        return [*said.err.splitlines(), *said.out.splitlines()]
    return [*said.out.splitlines(), *said.err.splitlines()]


@pytest.mark.parametrize("name", RUN)
def test_every_command_of_a_page_prints_what_the_page_shows(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(folder)
    for language, _, text in blocks_of(ROOT / name):
        if language != "console":
            continue
        for command, shown in commands_of(text):
            if command.startswith("labharness "):
                for made in RUNS:
                    if f"{made} " in f"{command} " or "--runs runs" in command:
                        run(RUNS[made])
                missing = follows(shown, run(command))
                assert not missing, f"{name}: $ {command}\nthe page shows {missing}"


def latch(cause: Cause, channel: str, detail: str) -> None:
    """Leave the short line as a trip left it."""
    state_dir = read_lab(Path("tests/short_line.toml")).state_dir
    state_dir.mkdir(parents=True, exist_ok=True)
    trip = Trip(
        cause=cause,
        procedure="immediate_shutdown",
        channel=channel,
        value=0.0,
        at_s=1.0,
        detail=detail,
    )
    Latch(state_dir / "latch.json").close(trip)


def test_a_latched_line_is_reset_as_the_page_shows(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    page = ROOT / "docs" / "how-to" / "reset-a-latched-line.md"
    shown = [each for _, _, text in blocks_of(page) for each in commands_of(text)]
    assert len(shown) == 2
    estop = "emergency-stop loop open: box.estop_closed is 0, at least 0.5"
    latch(Cause.EMERGENCY_STOP_LOOP, "box.estop_closed", estop)
    for command, lines in shown:
        missing = follows(lines, run(command))
        assert not missing, f"$ {command}\nthe page shows {missing}"


def test_a_page_that_shows_what_was_not_printed_is_caught() -> None:
    said = ["one 1.5", "two", "three"]
    assert follows(["one 1.6", "...", "three"], said) == ""
    assert follows(["one 1.5", "two", "three"], said) == ""
    assert follows(["...", "four", "..."], said)
    assert follows(["one 1.5", "three"], said)
    assert follows(["one 1.5"], said)
    assert follows(["...", "three", "two"], said)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_between_the_pages_leads_to_a_file(page: Path) -> None:
    links = LINK.findall(page.read_text("utf-8"))
    assert [each for each in links if not (page.parent / each).is_file()] == []


def test_the_index_names_every_page() -> None:
    index = ROOT / "docs" / "README.md"
    named = {(index.parent / each).resolve() for each in LINK.findall(index.read_text("utf-8"))}
    assert {page.resolve() for page in PAGES} - named <= {ROOT / "README.md", index}


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


def test_the_reference_names_every_command_and_each_of_its_options() -> None:
    text = (ROOT / "docs" / "reference" / "command-line.md").read_text("utf-8")
    said = say("--help").out
    commands = re.findall(r"^    ([a-z]+)(?: |$)", said, re.MULTILINE)
    assert len(commands) == 32
    for command in commands:
        assert re.search(rf"^## .*\b{command}\b", text, re.MULTILINE), command
        for option in sorted(set(re.findall(r"--[a-z0-9-]+", help_below([command])))):
            assert option == "--help" or option in text, (command, option)


def help_below(words: list[str]) -> str:
    said = say(*words, "--help").out
    below = re.findall(r"^    ([a-z]+)(?: |$)", said, re.MULTILINE) if " ...\n" in said else []
    return said + "".join(help_below([*words, each]) for each in below)


def test_the_reference_names_every_kind_and_each_of_its_channels() -> None:
    text = (ROOT / "docs" / "reference" / "instruments.md").read_text("utf-8")
    readme = (ROOT / "README.md").read_text("utf-8")
    sections = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL))
    assert list(sections) == sorted(driver_kinds())
    for kind, section in sections.items():
        driver = load_driver(kind)(**SETTINGS.get(kind, {}))
        assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == list(driver.channels)
        assert f"| `{kind}` |" in readme
