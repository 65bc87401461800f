"""What tests of the command line share: commands in this process and in one of their own."""

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from command_server import run_command
from labharness.faces.cli import main
from labharness.lab import Lab, LabPlan
from labharness.lab.config.lab_facts import lab_facts_of
from labharness.protocols.hcp.codec import decode
from labharness.safety.guard import Source
from labharness.work.plan import InstructionSet
from rig import EXAMPLE, HERE, SHORT_LINE, line_texts, submission

ROOT = SHORT_LINE.parent.parent
COMMAND = (sys.executable, "-m", "labharness.faces.cli")
TIMEOUT_S = 60


@dataclass(frozen=True, slots=True)
class Said:
    """What one command said, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def answer(self) -> dict[str, Any]:
        """The one HCP message on standard output."""
        assert self.out.count("\n") == 1
        assert self.out.endswith("\n")
        decode(self.out.encode())
        found: dict[str, Any] = json.loads(self.out)
        return found

    def is_one_plain_error(self, *words: str) -> None:
        assert self.code == 64, self
        assert self.out == ""
        assert self.err.count("\n") == 1, self.err
        assert "Traceback" not in self.err
        for word in words:
            assert word in self.err


def say(*arguments: object) -> Said:
    """Run the command in this process, where the wires are recorded."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    err = io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code = main([str(each) for each in arguments])
        except SystemExit as gone:  # argparse leaves so
            code = int(gone.code or 0)
    out.flush()
    out.seek(0)
    return Said(code, out.read(), err.getvalue())


def spawn(*arguments: object) -> Said:
    """Run the command in a process of its own."""
    return Said(*run_command([str(each) for each in arguments]))


def entry(said: Said) -> dict[str, Any]:
    """Return what `analyse --json` found in one file."""
    found: list[dict[str, Any]] = json.loads(said.out)
    assert len(found) == 1
    return found[0]


def start(
    *arguments: object, preexec_fn: Callable[[], object] | None = None
) -> "subprocess.Popen[str]":
    """Begin the command in a process of its own, whose streams the test holds."""
    return subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        preexec_fn=preexec_fn,
    )


def spawn_on_full_disk(size: int, *arguments: object) -> Said:
    """Run the command where no file may grow beyond a size: what a full disk says, for real."""
    return Said(*run_command([str(each) for each in arguments], disk=size))


def spawn_where_full(mark: Path, *arguments: object) -> Said:
    """Run the command on a disk that has no byte free as long as a file is there."""
    command = (sys.executable, HERE / "full_disk.py", mark, *arguments)
    done = subprocess.run(
        list(map(str, command)), capture_output=True, encoding="utf-8", check=False
    )
    return Said(done.returncode, done.stdout, done.stderr)


def spawn_without_privilege(*arguments: object) -> Said:
    """Run the command in a process of its own, which no file lets in that shuts others out."""
    return Said(*run_command([str(each) for each in arguments], privileged=False))


def submit(folder: Path, body: object, *options: object) -> Said:
    """Run a message on the short line, and ask for the answer as JSON."""
    here = folder / f"submission-{len(list(folder.iterdir()))}"
    here.mkdir()
    path = here / "task.json"
    path.write_text(json.dumps(body), "utf-8")
    lab = () if "--lab" in options else ("--lab", SHORT_LINE)
    return say("run", path, "--out", here / "run", "--json", *lab, *options)


def example() -> dict[str, Any]:
    body: dict[str, Any] = json.loads(EXAMPLE.read_text("utf-8"))
    return body


GONE = object()


def with_(value: object, *path: str) -> dict[str, Any]:
    """The example with one value changed, or with one key gone."""
    body = example()
    place: Any = body
    for each in path[:-1]:
        place = place.setdefault(each, {})
    if value is GONE:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return body


def payload(value: object, *path: str) -> dict[str, Any]:
    return with_(value, "payload", *path)


def wrote(labs: list[Lab]) -> list[str]:
    """Which sources other than reads let a frame out to the instruments."""
    sent = [each for lab in labs for each in lab.guard.core.log or []]
    return [each.source.value for each in sent if each.source is not Source.READ]


REAL = re.compile(r'^link = "(?!loopback)', re.MULTILINE)


def stated(lab: str) -> str:
    """State the directory of a lab that has a real port, as it must be; it is the test's own."""
    if not REAL.search(lab) or "\nstate_dir" in lab:
        return lab
    home = f"{os.environ['LABHARNESS_STATE']}/labharness/short-line"
    return lab.replace("[lab]\n", f'[lab]\nstate_dir = "{home}"\n', 1)


def edited_lab(folder: Path, old: str, new: str) -> Path:
    """The short line with one text changed, in its lab file or in one of its envelope's."""
    texts = line_texts()
    (named,) = [name for name, text in texts.items() if old in text]
    texts[named] = texts[named].replace(old, new, 1)
    for name, text in texts.items():
        (folder / name).write_text(stated(text), "utf-8")
    return folder / "lab.toml"


def spawn_with(packages: Path, *arguments: object) -> Said:
    """Run the command in a process of its own that finds a folder's packages as well."""
    path = os.pathsep.join(filter(None, (str(packages), os.environ.get("PYTHONPATH"))))
    ended = subprocess.run(
        [*COMMAND, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        encoding="utf-8",
        timeout=TIMEOUT_S,
        check=False,
    )
    return Said(ended.returncode, ended.stdout, ended.stderr)


def planned(plan: LabPlan, *, recipe: dict[str, float] | None = None) -> InstructionSet:
    facts = lab_facts_of(plan)
    _, payload = submission(recipe=recipe or {})
    found = facts.capabilities[payload.capability].plan(
        payload.inputs, {}, facts.line_facts[payload.capability]
    )
    instructions: InstructionSet = found.instructions  # type: ignore[union-attr]  # it can be planned
    return instructions
