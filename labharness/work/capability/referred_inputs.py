"""The inputs of a task by reference: a JSON object in a file of the lab, or in an artifact.

A broker keeps what passes through it. So the inputs of a confidential task do not, and its message
says where they are.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from labharness.core.files.allowed import allowed_file
from labharness.core.files.named import open_named
from labharness.core.vocabulary.texts import Text
from labharness.work.admission.declaration import INPUTS_URI
from labharness.work.capability import CannotDo, Surroundings
from labharness.work.capability.stored import artifact_of_caller

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
    scheme = urlsplit(uri).scheme
    if scheme == "file":
        data = _of_file(uri, [(around.lab_folder / each).resolve() for each in folders])
    elif scheme == "hcp":
        found = artifact_of_caller(uri, around, "inputs", INPUTS_BYTES_MAX + 1)
        data = _refused("forbidden", "reference.no_artifact") if found is None else found[1]
    else:
        return _refused("invalid_input", "reference.scheme")
    return data if isinstance(data, CannotDo) else _read(data)


def _of_file(uri: str, folders: Sequence[Path]) -> bytes | CannotDo:
    try:
        path = allowed_file(uri, folders)
        if path is None:
            return _refused("forbidden", "reference.no_folder")
        with open_named(path) as file:
            return file.read(INPUTS_BYTES_MAX + 1)
    except OSError:
        return _refused("invalid_input", "reference.not_there")


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


def _refused(code: Any, why: str, **params: int) -> CannotDo:  # noqa: ANN401 - a reason code
    return CannotDo(code, Text(why, **params), Text("reference.form"))
