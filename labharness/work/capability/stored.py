"""Artifacts of earlier runs as the input of a task: those of the same caller alone.

The inputs of a task by reference: a JSON object in a file of the lab, or in an artifact. A broker
keeps what passes through it. So the inputs of a confidential task do not, and its message says
where they are.
"""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from labharness.core.files.allowed import allowed_file
from labharness.core.files.named import open_named
from labharness.core.vocabulary.texts import Text
from labharness.journal.access_log import AccessNotLogged, log_access
from labharness.journal.artifacts import ArtifactRefused, resolve
from labharness.journal.encryption import KeyMissing, kept
from labharness.protocols.hcp.terms import DATA_CLASSES
from labharness.work.admission.declaration import INPUTS_URI
from labharness.work.capability import CannotDo, ReasonCode, Surroundings

SUBMIT_BYTES_MAX: Final = 8 * 1_024 * 1_024
RUNS_MAX: Final = 10_000
"""Most folders of runs that are looked through for an artifact."""


def artifact_of_caller(
    uri: str, around: Surroundings, via: str, most: int
) -> tuple[str, bytes] | None:
    """Return name and content of an artifact of a run of the same caller; log the read.

    Args:
        uri: ``hcp://session-<id>/artifacts/<file>``.
        around: Of the task; its data class bounds that of the run.
        via: The capability, for the log.
        most: Bytes that are read at most.

    Returns:
        ``None``, whatever the reason: a caller is not told what there is of others.
    """
    session = uri.removeprefix("hcp://session-").partition("/")[0]
    near = [around.runs / session] if session and "/" not in session and session != ".." else []
    for run in (*near, *_runs(around.runs)):
        try:
            path = resolve(uri, [run / around.artifacts])
        except (ArtifactRefused, KeyMissing):
            continue
        held = _readable_class(run, around)
        if not held:
            return None
        try:
            log_access(run, data_class=held, reader=around.caller_id, via=via, what=uri)
            return path.name, kept(path, most)
        except (AccessNotLogged, KeyMissing, OSError):
            return None
    return None


def content_of(
    uri: str, around: Surroundings, folders: Sequence[str], via: str, most: int
) -> tuple[str, bytes] | str:
    """Return name and content of the file or artifact at an address; it may wait for a disk.

    Args:
        uri: A ``file:`` or ``hcp:`` address.
        around: Of the task.
        folders: Beside the lab file or absolute, below which a file may lie.
        via: The capability, for the log.
        most: Bytes that are wanted at most; of a longer one a byte more is read.

    Returns:
        ``no_artifact``, ``no_folder`` or ``not_there`` where there is none for this caller.
    """
    if urlsplit(uri).scheme != "file":
        return artifact_of_caller(uri, around, via, most + 1) or "no_artifact"
    try:
        path = allowed_file(uri, [(around.lab_folder / each).resolve() for each in folders])
        if path is None:
            return "no_folder"  # the same whether it is there or not
        with open_named(path) as file:
            return path.name, file.read(most + 1)
    except OSError:
        return "not_there"


def _runs(root: Path) -> list[Path]:
    try:
        with os.scandir(root) as found:
            return [Path(each.path) for _, each in zip(range(RUNS_MAX), found, strict=False)]
    except OSError:
        return []


def _readable_class(run: Path, around: Surroundings) -> str:
    """Return the data class of a run of the same caller; ``""`` for a higher one, or another's."""
    try:
        payload = json.loads(kept(run / around.submit, SUBMIT_BYTES_MAX))["payload"]
        held = (payload.get("constraints") or {}).get("data_classification") or "T2"
        below = DATA_CLASSES.index(held) <= DATA_CLASSES.index(around.data_classification)
        return held if payload["caller_id"] == around.caller_id and below else ""
    except (OSError, ValueError, KeyError, TypeError, AttributeError, KeyMissing):
        return ""


NOT_FOR_CALLER: Final[Mapping[str, tuple[ReasonCode, str]]] = {
    "no_artifact": ("forbidden", "reference.no_artifact"),
    "no_folder": ("forbidden", "reference.no_folder"),
    "not_there": ("invalid_input", "reference.not_there"),
}
"""The rejection for each reason of `content_of`."""

INPUTS_BYTES_MAX: Final = 2**20
"""Longest document with the inputs of a task."""


def refers(inputs: Mapping[str, Any]) -> bool:
    """Return whether inputs say where the inputs are."""
    return INPUTS_URI in inputs


def is_artifact(inputs: Mapping[str, Any]) -> bool:
    """Return whether they are an artifact of a run, which is looked for when the task begins."""
    uri = inputs[INPUTS_URI]
    return isinstance(uri, str) and uri.startswith("hcp:")


def inputs_of(
    inputs: Mapping[str, Any], around: Surroundings, folders: Sequence[str]
) -> Mapping[str, Any] | CannotDo:
    """Return the inputs that others refer to, or why there are none.

    Args:
        inputs: They hold the address and nothing else.
        around: Of the task; its data class bounds that of an artifact.
        folders: Beside the lab file or absolute, below which a file may lie.
    """
    uri = inputs[INPUTS_URI]
    if len(inputs) != 1:
        return _refused("invalid_input", "reference.alone")
    if not isinstance(uri, str) or not uri.isprintable():
        return _refused("invalid_input", "reference.scheme")
    if urlsplit(uri).scheme not in ("file", "hcp"):
        return _refused("invalid_input", "reference.scheme")
    found = content_of(uri, around, folders, "inputs", INPUTS_BYTES_MAX)
    if isinstance(found, str):
        return _refused(*NOT_FOR_CALLER[found])
    return _read(found[1])


def _read(data: bytes) -> Mapping[str, Any] | CannotDo:
    """Read a document; numbers that are not JSON's make it none."""
    try:
        if len(data) > INPUTS_BYTES_MAX:
            raise ValueError(len(data))
        found = json.loads(data, parse_constant=_no_number)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or refers(found):
        return _refused("invalid_input", "reference.no_object", most=INPUTS_BYTES_MAX)
    return found


def _no_number(name: str) -> float:
    raise ValueError(name)


def _refused(code: ReasonCode, why: str, **params: int) -> CannotDo:
    return CannotDo(code, Text(why, **params), Text("reference.form"))
