"""The pytest plugin as somebody else uses it: the how-to's own tests, and tests that must fail."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pytest

from labharness.faces.testing.faults import bus_faults, plant_faults
from labharness.faces.testing.keeping import JOURNAL, RUN, WIRES, folder_of
from labharness.instruments.simulation import BusFaults
from labharness.journal.reading import read, verify_file
from labharness.lab import LabPlan
from rig import HERE

ROOT = HERE.parent
PAGE = ROOT / "docs" / "how-to" / "test-with-simulated-instruments.md"
BLOCK = re.compile(r"^```python (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SESSION_S_MAX = 100.0

FAIL = """
import pytest

from labharness.core.vocabulary import Command


def test_that_fails_in_the_middle_of_a_run(simulated_lab, virtual_time):
    async def scene():
        async with simulated_lab.on(simulated_lab.plan, seed=41).running() as lab:
            await lab.line.perform(Command("argon.setpoint", 80.0, "sccm"))
            assert await lab.line.read("argon.flow") == "a flow that it is not"

    virtual_time.run(scene())


def test_that_goes_past_the_guard(simulated_lab, virtual_time):
    async def scene():
        async with simulated_lab.running() as lab:
            lab.links["inert"].write(b"AS50\\r")

    virtual_time.run(scene())


def test_that_misspells_a_fault(inject):
    inject("furnace_sensor_brokn")


def test_that_gives_a_bus_no_port(inject):
    inject("cut")


def test_that_gives_a_switch_a_number(inject):
    inject("lid_open", 2.0)


def test_that_gives_a_number_no_level(inject):
    inject("h2_detector_offset_ppm")


def test_that_misspells_a_port(inject):
    inject("cut", port="heet")


def test_whose_fault_never_comes(simulated_lab, virtual_time, inject):
    async def scene():
        async with simulated_lab.opened():
            pass

    inject("lid_open", after_s=3600)
    virtual_time.run(scene())


def test_that_asks_for_an_unknown_port(simulated_lab, virtual_time, wire_log):
    async def scene():
        async with simulated_lab.opened():
            pass

    virtual_time.run(scene())
    wire_log.heard("heet")


@pytest.mark.xfail(reason="on purpose")
def test_that_is_expected_to_fail(simulated_lab, virtual_time):
    async def scene():
        async with simulated_lab.opened():
            raise RuntimeError("as expected")

    virtual_time.run(scene())


def test_that_takes_its_labs_out_of_the_proof(simulated_lab, virtual_time, watched_labs):
    async def scene():
        async with simulated_lab.opened():
            watched_labs.labs.clear()
            assert False

    virtual_time.run(scene())


def test_that_fails_without_a_lab():
    assert False
"""


@dataclass(frozen=True, slots=True)
class Session:
    """One pytest session of somebody else's: what it printed, and how each test ended."""

    folder: Path
    said: str
    ends: dict[str, str]
    words: dict[str, str]

    def kept(self, test: str) -> Path:
        return folder_of(self.folder / "kept", test)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    """Run the how-to's tests, and those above, in a folder that has only the short line."""
    folder = tmp_path_factory.mktemp("theirs")
    labs = Path("envelopes/labharness_envelopes/labs")
    shutil.copytree(ROOT / "examples", folder / "examples")
    shutil.copytree(ROOT / labs, folder / labs)
    (folder / "tests").mkdir()
    for each in HERE.glob("short_line*.toml"):
        shutil.copy(each, folder / "tests")
    for name, text in BLOCK.findall(PAGE.read_text("utf-8")):
        (folder / name).write_text(text, "utf-8")
    (folder / "test_fail.py").write_text(FAIL, "utf-8")
    (folder / "pytest.ini").write_text("[pytest]\n", "utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "labharness.faces.testing.plugin"]
    command += ["-p", "no:cacheprovider", "-W", "error", "--junitxml", "junit.xml"]
    command += ["--labharness-keep", "kept"]
    left = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "LABHARNESS"))}
    done = subprocess.run(
        command,
        cwd=folder,
        env=left,
        capture_output=True,
        text=True,
        timeout=SESSION_S_MAX,
        check=False,
    )
    assert (folder / "junit.xml").exists(), done.stdout + done.stderr
    ends, words = {}, {}
    for case in ElementTree.parse(folder / "junit.xml").iter("testcase"):
        said = [each for each in case if each.tag in ("failure", "error", "skipped")]
        name = f"{case.get('classname')}.py::{case.get('name')}"
        ends[name] = " ".join(each.tag for each in said) or "passed"
        words[name] = " ".join(each.get("message") or "" for each in said)
    return Session(folder, done.stdout, ends, words)


@pytest.mark.thorough
def test_every_test_of_the_how_to_passes_and_leaves_nothing(session: Session) -> None:
    theirs = {name: end for name, end in session.ends.items() if "test_fail" not in name}
    assert len(theirs) == 8
    assert set(theirs.values()) == {"passed"}, session.said
    assert not any(session.kept(name).exists() for name in theirs)


@pytest.mark.thorough
def test_a_failure_leaves_journal_seed_and_wire_log_and_says_where(session: Session) -> None:
    name = "test_fail.py::test_that_fails_in_the_middle_of_a_run"
    assert session.ends[name] == "failure"
    kept = session.kept(name)
    assert str(kept) in session.said
    assert [each.name for each in kept.iterdir()] == ["0"]
    about = json.loads((kept / "0" / RUN).read_text("utf-8"))
    assert about["seed"] == 41
    assert verify_file(kept / "0" / JOURNAL).ok
    kinds = [record.kind for record in read(kept / "0" / JOURNAL)]
    assert {"identified", "armed", "intent", "outcome"} <= set(kinds)
    lines = (kept / "0" / WIRES).read_text("utf-8").splitlines()
    (setting,) = [line for line in lines if "'AS 80" in line]
    at_s, port, arrow, *_ = setting.split()
    assert (port, arrow) == ("inert", ">")
    times = [float(line.split()[0]) for line in lines]
    assert times == sorted(times)
    assert 0.0 < float(at_s) < about["lab_time_s"]


@pytest.mark.thorough
def test_bytes_past_the_guard_fail_the_test_and_are_named(session: Session) -> None:
    name = "test_fail.py::test_that_goes_past_the_guard"
    assert session.ends[name] == "error", "the proof is made when the test is over"
    assert "41 53 35 30 0D" in session.words[name]
    assert "'AS50" in (session.kept(name) / "0" / WIRES).read_text("utf-8")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("test", "words"),
    [
        ("misspells_a_fault", ("no fault 'furnace_sensor_brokn'", "furnace_sensor_broken", "cut")),
        ("gives_a_bus_no_port", ("'cut' is a bus's fault", "heat", "inert")),
        ("gives_a_switch_a_number", ("lid_open is True or False, not 2.0",)),
        ("gives_a_number_no_level", ("h2_detector_offset_ppm takes a number, not True",)),
        ("misspells_a_port", ("no port 'heet'", "heat")),
        ("asks_for_an_unknown_port", ("no port 'heet'", "heat")),
    ],
)
def test_a_wrong_name_or_level_is_one_error_with_the_right_ones(
    session: Session, test: str, words: tuple[str, ...]
) -> None:
    name = f"test_fail.py::test_that_{test}"
    assert session.ends[name] == "failure"
    for word in words:
        assert word in session.words[name]


@pytest.mark.thorough
def test_a_fault_that_never_comes_fails_the_test(session: Session) -> None:
    name = "test_fail.py::test_whose_fault_never_comes"
    assert session.ends[name] == "failure"
    assert "lid_open was to come 3600 s" in session.words[name]


@pytest.mark.thorough
def test_only_failed_tests_with_a_lab_leave_something(session: Session) -> None:
    kept = {each.name for each in (session.folder / "kept").iterdir()}
    failed = ("fails_in_the_middle_of_a_run", "goes_past_the_guard", "asks_for_an_unknown_port")
    names = [f"test_fail.py::test_that_{each}" for each in failed]
    names.append("test_fail.py::test_whose_fault_never_comes")
    assert kept == {session.kept(name).name for name in names}
    assert session.ends["test_fail.py::test_that_is_expected_to_fail"] == "skipped"
    assert session.ends["test_fail.py::test_that_takes_its_labs_out_of_the_proof"] == "failure"


@pytest.mark.thorough
def test_the_junit_file_says_where_the_evidence_is(session: Session) -> None:
    found = {
        case.get("name"): each.get("value")
        for case in ElementTree.parse(session.folder / "junit.xml").iter("testcase")
        for each in case.iter("property")
    }
    name = "test_that_fails_in_the_middle_of_a_run"
    assert found[name] == str(session.kept(f"test_fail.py::{name}"))


def test_the_page_names_every_fault(short_plan: LabPlan) -> None:
    text = PAGE.read_text("utf-8")
    names = {*plant_faults(short_plan), *bus_faults()}
    assert len(names) == 12 + len(BusFaults.__slots__) - 1
    assert {name for name in names if f"`{name}`" not in text} == set()


def test_pytest_starts_without_the_harness() -> None:
    heavy = [
        "numpy",
        "scipy",
        "simpy",
        "pydantic",
        "labharness.lab",
        "labharness.faces.testing.bench",
    ]
    code = (
        "import sys, labharness.faces.testing.plugin; "
        f"print([each for each in {heavy} if each in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout == "[]\n"


def test_an_installed_labharness_brings_its_plugin() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    name = "labharness.faces.testing.plugin"
    assert project["entry-points"]["pytest11"] == {name: name}
