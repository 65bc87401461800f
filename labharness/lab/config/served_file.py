"""Writes the lab file of a served lab: each loopback becomes the link on which it is served."""

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import tomli_w

from labharness.lab.config.address import state_home
from labharness.lab.config.lab_file import BadLabFile
from labharness.lab.config.lab_plan import LabPlan

FIRST_LINE = "# Written by `labharness simulate`; it is written again at its next start.\n"
ID_CHARACTERS_MAX = 63
SUFFIX = "-served"


def check_target(target: Path, source: Path) -> None:
    """Refuse to overwrite a file that labharness did not write.

    Raises:
        BadLabFile: Such a file is there.
    """
    try:
        with target.open("r", encoding="utf-8") as file:
            first = file.readline(len(FIRST_LINE))
    except FileNotFoundError:
        return
    except (OSError, UnicodeDecodeError):
        first = ""
    if first != FIRST_LINE:
        raise BadLabFile("simulate.in_the_way", path=str(target))


def served_text(plan: LabPlan, control: str, ports: Mapping[str, str], target: Path) -> str:
    """Write the lab file for the harness's side.

    Its id is another one, and its state directory is that of its own path, so that its latch is;
    its approvals are gone, because they are bound to the file they were given for. The plant stays
    in it: pre-flight flies on it.

    Args:
        plan: The lab that is served.
        control: Address of its control port.
        ports: Address of each port: a path, ``host:port`` or ``ws://host:port``.
        target: The path of the lab file.
    """
    body: dict[str, Any] = plan.file.model_dump(exclude_unset=True, exclude_none=True)
    head = body["lab"]
    head["id"] = head["id"][: ID_CHARACTERS_MAX - len(SUFFIX)] + SUFFIX
    head["state_dir"] = str(state_home(head["id"], None, target).absolute())
    head.pop("approvals", None)
    for name in ("callers", "hazards", "approvers", "line"):
        if name in head and (name != "line" or head[name].endswith(".toml")):
            head[name] = str(plan.beside(head[name]).resolve())
    if plan.hazards.proof:
        head["hazards"] = served_hazards_path(target).name
    if plan.data_key is not None:
        folders = [str(plan.beside(each).resolve()) for each in plan.input_folders]
        body["data"] = {"key": str(plan.data_key.resolve()), "folders": folders}
    if plan.file.operator.kind == "simulated":
        body["operator"].update(kind="served", control=control)
    for row in body.get("alert", ()):
        row["url"] = row["url"].get_secret_value()  # it is shown nowhere else
    for row in body["port"]:
        if row["name"] in ports:
            row.update(_link(row, ports[row["name"]]))
    return FIRST_LINE + tomli_w.dumps(body)


def served_hazards_path(target: Path) -> Path:
    """Return the path of the hazard table of a served lab whose own table is simulated."""
    return target.with_suffix(".hazards.toml")


def served_hazards(plan: LabPlan, today: date) -> str:
    """Write that table: its links count as real, and what is simulated is tested as it begins."""
    rows = [row.model_dump(exclude_none=True) for row in plan.hazards.hazard]
    body = {"hazard": [{**row, "proof_tested": today} for row in rows]}
    return FIRST_LINE + tomli_w.dumps(body)


def _link(row: Mapping[str, Any], address: str) -> dict[str, Any]:
    if row.get("baud"):
        return {"link": "serial", "path": address}
    if address.startswith("ws://"):
        return {"link": "websocket", "url": address}
    host, _, port = address.rpartition(":")
    return {"link": "tcp", "host": host, "port": int(port)}
