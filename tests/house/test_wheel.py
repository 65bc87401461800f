"""The wheel: what it holds, what it declares, and that an empty environment runs the example."""

import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from commands import COMMAND, ROOT, edited_lab, say
from labharness.core.vocabulary.extras import EXTRAS
from rig import EXAMPLE, SHORT_LINE

HELD = (  # what no package's own Python files are, and a plain install cannot do without
    "labharness/examples/mos2-monolayer.json",
    "labharness/faces/report/templates/page.html.j2",
    "labharness/faces/report/templates/style.css",
    "labharness/line/texts.toml",
    "labharness/py.typed",
    "labharness_envelopes/labs/cvd_mos2/approval.toml",
    "labharness_envelopes/labs/cvd_mos2/callers.toml",
    "labharness_envelopes/labs/cvd_mos2/hazards.toml",
    "labharness_envelopes/labs/cvd_mos2/lab.toml",
    "labharness_envelopes/labs/repository.key",
    "labharness_envelopes/lines/cvd_mos2.toml",
)

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

ONLY_DECLARED = """
import json, sys
from importlib.abc import MetaPathFinder
from importlib.metadata import packages_distributions, requires
from re import match, sub

def plain(name):
    return sub("[-_.]+", "-", name).lower()

brought, waiting = {"labharness"}, json.loads(sys.argv.pop(1))
while waiting:
    row = waiting.pop()
    name = plain(match(r"[\\w.-]+", row)[0])
    if "extra ==" not in row and name not in brought:
        brought.add(name)
        try:
            waiting += requires(name) or ()
        except Exception:  # of another Python or system
            continue
mine = packages_distributions()

class OnlyDeclared(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if path is None and name in mine and not brought & {plain(each) for each in mine[name]}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, OnlyDeclared())
from labharness.faces.cli import main
sys.exit(main(sys.argv[1:]))
"""
"""Finds nothing but the standard library, labharness, and what its plain dependencies bring."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of this checkout, as its build backend makes it."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=60)
    (found,) = folder.glob("*.whl")
    return found


def test_the_wheel_holds_what_a_plain_install_runs_and_nothing_of_the_checkout(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        example = archive.read(HELD[0])
    assert [each for each in HELD if each not in names] == []
    assert example == EXAMPLE.read_bytes()
    tops = {name.split("/")[0] for name in names if ".dist-info" not in name}
    assert tops == {
        "labharness",
        "labharness_drivers",
        "labharness_simulators",
        "labharness_envelopes",
    }


def test_a_plain_install_takes_the_same_on_every_system(wheel: Path) -> None:
    """The doctor found that tzdata was missing, which a condition kept from all but one system."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [each for each in archive.namelist() if each.endswith(".dist-info/METADATA")]
        said = archive.read(name).decode().splitlines()
    rows = [each for each in said if each.startswith("Requires-Dist: ") and "extra ==" not in each]
    assert "Requires-Dist: tzdata" in {row.partition(">")[0] for row in rows}
    assert [row for row in rows if ";" in row] == []


@pytest.mark.thorough
def test_the_default_job_runs_on_the_plain_dependencies_alone(tmp_path: Path) -> None:
    words = ["run", EXAMPLE, "--lab", SHORT_LINE, "--out", tmp_path / "run"]
    plain = json.dumps(PROJECT["dependencies"])
    command = [sys.executable, "-c", ONLY_DECLARED, plain, *map(str, words)]
    state = {**os.environ, "LABHARNESS_STATE": str(tmp_path / "state")}
    said = subprocess.run(
        command, capture_output=True, encoding="utf-8", timeout=110, check=False, env=state
    )
    assert said.returncode == 0, said.stderr
    assert (tmp_path / "run" / "report.html").is_file()


def test_the_example_is_printed_as_it_ships() -> None:
    said = say("example")
    assert (said.code, said.out, said.err) == (0, EXAMPLE.read_text("utf-8"), "")


@pytest.mark.parametrize("module", ["labharness", "labharness.faces.cli"])
def test_python_runs_the_package_as_the_command(module: str) -> None:
    command = [sys.executable, "-m", module, "--version"]
    said = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert re.fullmatch(r"labharness \S+\n", said.stdout)


# ---- what an extra brings


def test_every_extra_that_is_named_is_one_that_is_declared() -> None:
    for module, extra in EXTRAS.items():
        named = {"serial": "pyserial"}.get(module, module.replace("_", "-"))
        brings = PROJECT["optional-dependencies"][extra.name]
        assert any(row.startswith(named) for row in brings), module


PORTS = {
    "serial": ('link = "serial"\npath = "/dev/ttyUSB0"', "serial"),
    "visa": ('link = "visa"\nresource = "ASRL1::INSTR"', "pyvisa"),
    "websocket": ('link = "websocket"\nurl = "ws://127.0.0.1:9"', "wsproto"),
}


@pytest.mark.parametrize("link", PORTS)
def test_a_link_whose_extra_is_missing_is_told_before_anything_is_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, link: str
) -> None:
    kind, module = PORTS[link]
    lab = edited_lab(tmp_path, 'name = "heat"\nlink = "loopback"', f'name = "heat"\n{kind}')
    monkeypatch.setitem(sys.modules, module, None)  # as if it were not installed
    out = tmp_path / "run"
    asked = ("set", "argon.setpoint", "100", "sccm", "--attend", "--name", "Ada", "--for", "1")
    for command in (("run", EXAMPLE), asked):
        said = say(*command, "--out", out, "--speed", "real", "--lab", lab)
        said.is_one_plain_error(f"for links of kind {link} it takes {module}: pip install 'labh")
        assert not out.exists()


WITHOUT = (
    "import sys; sys.modules[{module!r}] = None; "
    "from labharness.faces.cli import main; sys.exit(main(sys.argv[1:]))"
)


def test_tcp_takes_no_extra() -> None:
    code = "import sys; sys.modules['serial'] = None; import labharness.instruments.link.tcp"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_command_that_meets_a_missing_extra_later_says_what_to_install(tmp_path: Path) -> None:
    """A served WebSocket is opened long after the command began."""
    lab = ROOT / "envelopes" / "labharness_envelopes" / "labs" / "cvd_mos2" / "lab.toml"
    words = ["simulate", str(lab), "--folder", str(tmp_path / "served")]
    command = [sys.executable, "-c", WITHOUT.format(module="wsproto"), *words]
    said = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (said.returncode, said.stdout) == (64, "")
    assert said.stderr == (
        "labharness simulate: for links of kind websocket it takes wsproto: "
        "pip install 'labharness[websocket]'\n"
    )


def test_a_module_of_ours_that_is_missing_is_a_fault_and_no_advice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "labharness.faces.cli.offers", None)
    with pytest.raises(ModuleNotFoundError):
        say("drivers")


# ---- as a new user would


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_a_wheel_in_an_empty_environment_runs_the_example_from_an_empty_folder(
    wheel: Path, tmp_path: Path
) -> None:
    home, folder = tmp_path / "env", tmp_path / "empty"
    folder.mkdir()
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    clean["LABHARNESS_STATE"] = str(tmp_path / "state")

    def run(*words: object) -> str:
        return subprocess.run(
            [str(each) for each in words],
            cwd=folder,
            env=clean,
            check=True,
            capture_output=True,
            encoding="utf-8",
            timeout=1500,
        ).stdout

    run(sys.executable, "-m", "venv", home)
    python = home / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", wheel)
    (folder / "task.json").write_text(run(home / "bin" / "labharness", "example"), "utf-8")
    run(home / "bin" / "labharness", "run", "task.json", "--out", "first")
    assert json.loads((folder / "first" / "answer.json").read_text("utf-8"))["type"] == (
        "task_completed"
    )
    assert run(python, "-m", "labharness", "doctor").endswith("no findings\n")


def test_the_tests_themselves_run_the_command_of_this_checkout() -> None:
    """Else what stands above would prove another installation."""
    code = "import labharness.faces.cli as it; print(it.__file__)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert Path(found.stdout.strip()).is_relative_to(ROOT)
    assert COMMAND[0] == sys.executable
