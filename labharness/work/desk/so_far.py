"""Partial results of a run that did not finish, out of its steps and its journal."""

import json
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from labharness.journal.chain import canonical
from labharness.work.capability import ArtifactContent, Capability, PartialResults, QueryResult
from labharness.work.desk.results import results
from labharness.work.plan import StepRecord

LOG = logging.getLogger(__name__)


def so_far(capability: Capability, records: Sequence[StepRecord], journal: Path) -> PartialResults:
    """Return the results so far, as the capability makes them.

    Without a function of the capability for it, or when that one breaks, the measured values
    are one artifact as they are.

    Args:
        capability: The capability of the run.
        records: The record of each step.
        journal: The run's journal, committed.

    Raises:
        JournalFailed: The journal cannot be read.
    """
    measured = tuple(results(journal))
    made = getattr(capability, "so_far", None)
    if made is not None:
        try:
            found: PartialResults = made(records, measured)
            canonical(found.outputs)
        except Exception:  # the task fails for another reason, which its answer must give
            LOG.exception("the capability made no partial results")
        else:
            return found
    return _as_they_are(measured)


def _as_they_are(measured: Sequence[QueryResult]) -> PartialResults:
    if not measured:
        return PartialResults({})
    text = json.dumps({"measured": [asdict(each) for each in measured]})
    names = [f"{each.instrument}.{each.query}" for each in measured]
    outputs: Mapping[str, Any] = {"measured": dict(Counter(names))}
    return PartialResults(
        outputs, (ArtifactContent("partial_measured", "application/json", text.encode()),)
    )
