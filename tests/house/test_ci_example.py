"""The CI example: its commands run as the workflow has them, and a wrong layer count is red."""

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from rig import EXAMPLE, HERE, SHORT_LINE

ROOT = HERE.parent
WORKFLOW = ROOT / "examples" / "ci" / "workflow.yml"
CHECK = ROOT / "examples" / "ci" / "check_layers.py"
RUN_LINE = re.compile(r"^ +run: (?!\|)(.*)$", re.MULTILINE)
PINNED = re.compile(
    r"^([a-z0-9-]+)==(\S+) \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", re.M
)
COMMAND_S_MAX = 60.0


def commands() -> list[list[str]]:
    """The workflow's own two commands: the synthesis, and the check of its answer."""
    return [shlex.split(line) for line in RUN_LINE.findall(WORKFLOW.read_text("utf-8"))]


def check(answer: Path, *options: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, str(CHECK), str(answer), *options],
        capture_output=True,
        text=True,
        timeout=COMMAND_S_MAX,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout.count("\n") == 1
    return done.returncode, done.stdout


@pytest.fixture(scope="module")
def answer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the workflow's synthesis prints, on the short line instead of the shipped one."""
    folder = tmp_path_factory.mktemp("job")
    (program, *arguments), (_, _, name, *_) = commands()
    at = arguments.index(">")
    assert (program, arguments[at + 1]) == ("labharness", name)
    command = [
        sys.executable,
        "-m",
        "labharness.faces.cli",
        *arguments[:at],
        "--lab",
        str(SHORT_LINE),
    ]
    command[command.index("examples/mos2-monolayer.json")] = str(EXAMPLE)
    with (folder / name).open("wb") as out:
        subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, "LABHARNESS_STATE": str(folder)},
            stdout=out,
            timeout=COMMAND_S_MAX,
            check=True,
        )
    assert (folder / "run" / "journal.sqlite").exists(), "the folder that the workflow keeps"
    return folder / name


@pytest.mark.thorough
def test_the_answer_of_the_workflows_synthesis_is_green(answer: Path) -> None:
    _, (_, script, _, *options) = commands()
    assert ROOT / script == CHECK
    assert check(answer, *options) == (0, f"{answer}: as expected\n")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("outputs", "words"),
    [
        ({"layer_count": 2}, "layer_count 2, confidence 0.979: expected 1"),
        ({"confidence": 0.5}, "confidence 0.500: expected a confidence of at least 0.9"),
        ({"confidence": float("nan")}, "confidence nan: expected a confidence of at least 0.9"),
    ],
)
def test_a_wrong_layer_count_or_a_doubtful_one_is_red(
    tmp_path: Path, answer: Path, outputs: dict[str, object], words: str
) -> None:
    message = json.loads(answer.read_text("utf-8"))
    message["payload"]["outputs"] |= outputs
    path = tmp_path / "answer.json"
    path.write_text(json.dumps(message), "utf-8")
    code, said = check(path, *commands()[1][3:])
    assert code == 1
    assert words in said


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no answer of a synthesis"),
        ("[]", "no answer of a synthesis"),
        ('{"type": "task_completed"}', "no answer of a synthesis"),
        (
            '{"type": "task_rejected", "payload": {"reason_message": "hot", "suggestion": "cool"}}',
            "task_rejected: hot; cool",
        ),
        (
            '{"type": "task_failed", "payload": {"error_message": "sensor broken"}}',
            "task_failed: sensor broken",
        ),
    ],
)
def test_whatever_is_no_answer_is_red_in_one_line(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "answer.json").write_text(text, "utf-8")
    code, said = check(tmp_path / "answer.json", "--layers", "1")
    assert code == 1
    assert words in said


def test_a_missing_answer_is_red(tmp_path: Path) -> None:
    code, said = check(tmp_path / "none.json", "--layers", "1")
    assert code == 1
    assert "FileNotFoundError" in said


def pins(name: str) -> dict[str, str]:
    text = (ROOT / "requirements" / name).read_text("utf-8")
    found = {each[1]: each[2] for each in PINNED.finditer(text)}
    assert len(found) == len(re.findall(r"^[^#\s]", text, re.MULTILINE)), "a line without a hash"
    return found


def named(requirement: str) -> str:
    """The name in a requirement, as the pinned sets write it."""
    name = re.split(r"[^\w.-]", requirement, maxsplit=1)[0]
    return re.sub(r"[-_.]+", "-", name).lower()


def needed(requirements: list[str], extras: dict[str, list[str]]) -> set[str]:
    """The names of what is required, with the project's own extras resolved."""
    found = set()
    for each in requirements:
        if named(each) == "labharness":
            inner = re.findall(r"\w+", each)[1:]
            found |= {name for extra in inner for name in needed(extras[extra], extras)}
        else:
            found.add(named(each))
    return found


def test_the_pinned_sets_hold_all_that_is_declared_and_agree() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    project, extras = declared["project"], declared["project"]["optional-dependencies"]
    # editables is what the build asks for when a checkout is installed in place
    always = [*project["dependencies"], *declared["build-system"]["requires"], "editables"]
    of_all, of_dev = pins("all.txt"), pins("dev.txt")
    assert needed([*always, *extras["all"]], extras) - of_all.keys() == set(), "run `make lock`"
    assert needed([*always, *extras["dev"]], extras) - of_dev.keys() == set(), "run `make lock`"
    assert of_all.items() <= of_dev.items()


@pytest.mark.parametrize("name", ["all.txt", "dev.txt"])
def test_a_pinned_set_names_no_host_and_is_of_the_oldest_python(name: str) -> None:
    text = (ROOT / "requirements" / name).read_text("utf-8")
    assert "://" not in text
    assert "--index" not in text
    assert "--extra-index" not in text
    assert "--find-links" not in text
    oldest = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert f"with Python {oldest['requires-python'].removeprefix('>=')}\n" in text
