"""Artifacts of earlier runs as the input of a task: those of the same caller alone."""

import json
import os
from pathlib import Path
from typing import Final

from labharness.journal.access_log import AccessNotLogged, log_access
from labharness.journal.artifacts import ArtifactRefused, resolve
from labharness.journal.encryption import KeyMissing, kept
from labharness.protocols.hcp.terms import DATA_CLASSES
from labharness.work.capability import Surroundings

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
