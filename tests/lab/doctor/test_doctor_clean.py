"""A real lab as the doctor first finds it, and its remedies followed until nothing is found.

The instruments are simulated ones on real serial, TCP and WebSocket links.
"""

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from commands import Said, say
from examined import alert
from labharness.lab import read_lab
from labharness.lab.doctor import findings as doctor
from labharness.safety.guard import port_records
from rig import SHORT_LINE
from served import Served

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(os.name != "posix", reason="pseudo-terminals"),
]

ROUNDS_MAX = 4


@pytest.fixture
def on_disk() -> Iterator[Path]:
    """A folder on a disk: the doctor finds a state directory that lies in memory."""
    with TemporaryDirectory(prefix="lab", dir="/var/tmp") as folder:
        yield Path(folder)


@pytest.fixture
def lab_file(on_disk: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A lab file of its own on served links, where no run and no latch was ever kept."""
    kept = on_disk / "var" / "ports"
    monkeypatch.setattr(doctor, "KEPT_PLACE", kept)
    monkeypatch.setattr(port_records, "KEPT_PLACE", kept)
    monkeypatch.setattr(port_records, "LATCH_PLACES", (kept, *port_records.LATCH_PLACES[1:]))
    with Served(on_disk / "served") as served:
        text = served.lab_file.read_text("utf-8")
        plan = read_lab(SHORT_LINE)
        shutil.copy(plan.beside(str(plan.file.lab.hazards)), on_disk / "hazards.toml")
        for key, place in (("state_dir", "state"), ("hazards", "hazards.toml")):
            text, count = re.subn(f'(?m)^{key} = "[^"]*"$', f'{key} = "{on_disk / place}"', text)
            assert count == 1, key
        own = on_disk / "lab.toml"
        own.write_text(text, "utf-8")
        yield own


def findings(said: Said) -> list[tuple[str, str]]:
    """Return what each finding is about, and what it says to do."""
    rows = [line for line in said.out.splitlines() if line.startswith("finding")]
    return [(line[9:28].strip(), line.partition(" Do: ")[2]) for line in rows]


def follow(lab_file: Path, about: str, fix: str) -> None:
    """Do what one finding says, as a person would."""
    text = lab_file.read_text("utf-8")
    if about == "drivers":
        told = re.search(r"under \[\[instrument\]\] (\w+): (accepted = .*)$", fix)
        assert told is not None, fix
        name, line = told[1], told[2].replace('"NAME"', '"Ada Lovelace"')
        head = f'[[instrument]]\nname = "{name}"\n'
        assert text.count(head) == 1
        lab_file.write_text(text.replace(head, f"{head}{line}\n"), "utf-8")
    elif about == "proof tests":
        command = fix.partition("then: labharness ")[2]
        filled = command.replace("NAME", "'Ada Lovelace'").replace("HOW", "'tried it'")
        said = say(*shlex.split(filled))
        assert said.code == 0, said
    elif about == "alerts":
        lab_file.write_text(f"{text}\n{alert('mail')}{alert('chat')}", "utf-8")
    elif about == "latch of ports":
        rights, *words = shlex.split(fix.replace("GROUP", str(os.getgid())))
        assert rights == "sudo"  # not needed for a place of the test
        subprocess.run(words, check=True)
    else:
        pytest.fail(f"nothing is known of {about}: {fix}")


def test_its_own_remedies_bring_a_real_lab_to_no_finding(lab_file: Path) -> None:
    said = say("doctor", "--lab", lab_file)
    assert said.code == 1
    about = {each for each, _ in findings(said)}
    assert about - {"proof tests"} == {"drivers", "alerts", "latch of ports"}
    for _ in range(ROUNDS_MAX):
        if said.code == 0:
            break
        for each in findings(said):
            follow(lab_file, *each)
        said = say("doctor", "--lab", lab_file)
    assert findings(said) == []
    assert said.code == 0
    assert said.out.splitlines()[-1] == "no findings"
    assert "accepted by Ada Lovelace" in said.out
    checked = say("lab", "check", "--connect", "--lab", lab_file)
    assert checked.code == 0, checked
