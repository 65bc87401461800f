"""A lab that takes confidential data, and submissions with a canary in all that they hold."""

import json
import re
from pathlib import Path
from typing import Any

from canary import CANARY, NUMBER
from labharness.core.files.data_key import make_data_key
from labharness.lab import LabPlan
from rig import EXAMPLE, IV, approved_copy

CALLEE_ID = "iv-bench-simulated"
CALLER = "alpha"
PAPER = f"""# Results

The film of {CANARY} grew at 750 °C for 10 min and reached a coverage of 85 % on the substrate.
"""
SPECTRA = [{"raman_shift": [380.0, 400.0, NUMBER], "intensity": [1.0, NUMBER, 2.0]}]

GROWER = "harness-alpha-001"
DWELL_S = 901.7319
"""A canary among the inputs of a growth; its plan, and the texts of its steps, quote it."""

FLUSH_S = 3.0

CALLERS = """
[callers.{name}]
capabilities = [{may}]
risk_max = "R3"
data_class_max = "T4"
"""

ON_BENCH = ["iv-curve", "document-analysis", "raman-characterization"]

OFFERED = """
[capability.document-analysis]
folders = [{docs}]

[capability.raman-characterization]
"""


def confidential_lab(
    folder: Path, *, keyed: bool = True, docs: Path | None = None, inputs: Path | None = None
) -> Path:
    """Write a lab whose caller may submit restricted data; return its file."""
    folder.mkdir(parents=True)
    head = f'callers = "callers.toml"\nstate_dir = {json.dumps(str(folder.parent / "state"))}\n'
    text = IV.read_text("utf-8").replace('attended = "always"\n', f'attended = "always"\n{head}')
    text += OFFERED.format(docs=json.dumps(str(docs or folder / "docs")))
    if keyed:
        make_data_key(folder / "data.key")
        folders = json.dumps([] if inputs is None else [str(inputs)])
        text += f'\n[data]\nkey = "data.key"\nfolders = {folders}\n'
    (folder / "callers.toml").write_text(
        CALLERS.format(name=CALLER, may=json.dumps(ON_BENCH)[1:-1]), "utf-8"
    )
    (folder / "lab.toml").write_text(text, "utf-8")
    return folder / "lab.toml"


def confidential_task(
    inputs: dict[str, Any],
    data_class: str = "T3",
    capability: str = "document-analysis",
    **changes: Any,
) -> dict[str, Any]:
    """Return the payload of a submission."""
    return {
        "capability": capability,
        "caller_id": CALLER,
        "intent": "Find what the data say",
        "inputs": inputs,
        "constraints": {"data_classification": data_class},
        **changes,
    }


def confidential_line(folder: Path, *, keyed: bool = True, inputs: Path | None = None) -> LabPlan:
    """Write the short line with a key, and an approval of it; return it, read.

    Args:
        folder: Where; its state directory stands beside it.
        keyed: It has a key for confidential data.
        inputs: A folder of files with inputs.
    """
    folder.mkdir(parents=True)
    make_data_key(folder / "data.key")
    named = GROWER, '"cvd-material-synthesis"'
    (folder / "callers.toml").write_text(CALLERS.format(name=named[0], may=named[1]), "utf-8")
    home = json.dumps(str(folder.parent / "state"))
    head = f'callers = "callers.toml"\nstate_dir = {home}'
    folders = json.dumps([] if inputs is None else [str(inputs)])

    def edited(text: str) -> str:
        if 'id = "short-line"' not in text:
            return text
        data = f'\n[data]\nkey = "data.key"\nfolders = {folders}\n' if keyed else ""
        return re.sub(r'^callers = ".*"$', lambda _: head, text, flags=re.M) + data

    return approved_copy(folder, edit=edited)


APPROVALS = 'approvals = ["approval.toml", "approval-sequence.toml"]\n'


def confidential_furnace(folder: Path, inputs: Path, *others: str) -> Path:
    """Write a furnace with a key and without an approval, which flushes for seconds only.

    Args:
        folder: Where.
        inputs: A folder of files with inputs.
        others: Callers beside `GROWER`, who may ask for the same.
    """
    folder.mkdir(parents=True)
    make_data_key(folder / "data.key")
    callers = [CALLERS.format(name=each, may='"annealing"') for each in (GROWER, *others)]
    (folder / "callers.toml").write_text("".join(callers).replace('"R3"', '"R4"'), "utf-8")
    shipped = IV.parent.parent / "annealing_furnace"
    hazards = (shipped / "hazards.toml").read_text("utf-8")
    (folder / "hazards.toml").write_text(hazards, "utf-8")
    text = (shipped / "lab.toml").read_text("utf-8")
    for old, new in (
        (APPROVALS, f"state_dir = {json.dumps(str(folder / 'state'))}\n"),
        ("[capability.annealing]\n", f"[capability.annealing]\nflush_s = {FLUSH_S}\n"),
    ):
        assert old in text
        text = text.replace(old, new)
    text += f'\n[data]\nkey = "data.key"\nfolders = {json.dumps([str(inputs)])}\n'
    (folder / "lab.toml").write_text(text, "utf-8")
    return folder / "lab.toml"


def confidential_growth(data_class: str = "T3", **changes: Any) -> dict[str, Any]:
    """Return the payload of the example's growth, with canaries in all that its caller may say."""
    payload: dict[str, Any] = json.loads(EXAMPLE.read_text("utf-8"))["payload"]
    payload["constraints"]["data_classification"] = data_class
    recipe = {"dwell_s": DWELL_S, "sample_id": CANARY}
    payload["inputs"]["recipe"] = recipe
    return {**payload, "intent": f"Grow {CANARY}", "context": {"project": CANARY}, **changes}
