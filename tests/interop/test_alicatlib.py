"""alicatlib on the simulated Alicat MC; it takes a newer Python, so it runs apart."""

import json
import subprocess
from pathlib import Path

import pytest

from interop.conftest import terminal
from served import Served

HERE = Path(__file__).resolve().parent
PYTHON = HERE.parents[1] / "build" / "interop-newer" / "bin" / "python"
TALK_S_MAX = 30.0

pytestmark = pytest.mark.skipif(
    not PYTHON.exists(),
    reason="alicatlib takes Python 3.13 or later: `make interop` found none on PATH",
)


def test_it_reads_sets_and_is_told_what_is_refused(lab: Served) -> None:
    said = subprocess.run(
        [PYTHON, "-I", HERE / "alicatlib_talk.py", terminal(lab, "inert")],
        capture_output=True,
        text=True,
        timeout=TALK_S_MAX,
    )
    assert said.returncode == 0, said.stderr
    found = json.loads(said.stdout)
    assert (found["kind"], found["model"]) == ("FlowController", "MC-500SCCM-D")
    assert (found["unit"], found["gas"], found["firmware"]) == ("A", "Ar", "10v20")
    assert (found["set"], found["shown"], found["ended"]) == (12.5, 12.5, 0.0)
    kind, why = found["refused"]
    assert kind == "AlicatCommandRejectedError"
    assert "ADCA" in why
