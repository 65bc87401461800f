"""A lab that takes confidential data, and submissions with a canary in all that they hold."""

import json
from pathlib import Path
from typing import Any

from canary import CANARY, NUMBER
from labharness.core.files.data_key import make_data_key
from rig import HERE

__all__ = ["CALLEE_ID", "CALLER", "PAPER", "SPECTRA", "confidential_lab", "confidential_task"]

IV = HERE.parent / "envelopes" / "labharness_envelopes" / "labs" / "iv_bench" / "lab.toml"
CALLEE_ID = "iv-bench-simulated"
CALLER = "alpha"
PAPER = f"""# Results

The film of {CANARY} grew at 750 °C for 10 min and reached a coverage of 85 % on the substrate.
"""
SPECTRA = [{"raman_shift": [380.0, 400.0, NUMBER], "intensity": [1.0, NUMBER, 2.0]}]

CALLERS = """
[callers.{name}]
capabilities = ["iv-curve", "document-analysis", "raman-characterization"]
risk_max = "R3"
data_class_max = "T4"
"""

OFFERED = """
[capability.document-analysis]
folders = [{docs}]

[capability.raman-characterization]
"""


def confidential_lab(folder: Path, *, keyed: bool = True, docs: Path | None = None) -> Path:
    """Write a lab whose caller may submit restricted data; return its file."""
    folder.mkdir(parents=True)
    head = f'callers = "callers.toml"\nstate_dir = {json.dumps(str(folder.parent / "state"))}\n'
    text = IV.read_text("utf-8").replace('attended = "always"\n', f'attended = "always"\n{head}')
    text += OFFERED.format(docs=json.dumps(str(docs or folder / "docs")))
    if keyed:
        make_data_key(folder / "data.key")
        text += '\n[data]\nkey = "data.key"\n'
    (folder / "callers.toml").write_text(CALLERS.format(name=CALLER), "utf-8")
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
