"""A confidential run as its key shows it: events and answer say what those of an open run say."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from labharness.journal.chain import Record
from labharness.work.desk.referred import FAILURE, REMARKS, RESULTS
from labharness.work.desk.session import WHOLE

PARTS = ("outputs", "partial_outputs")


def whole_events(records: Iterable[Record]) -> list[Record]:
    """Return records whose events say all that was kept of them; of an open run as they are."""
    found = list(records)
    told = {each.body["sequence"]: each.body["data"] for each in found if each.kind == WHOLE}
    return [_whole(each, told) for each in found if each.kind != WHOLE]


def _whole(record: Record, told: Mapping[int, Any]) -> Record:
    if record.kind != "event" or record.body.get("sequence") not in told:
        return record
    return replace(record, body={**record.body, "data": told[record.body["sequence"]]})


def whole_answer(
    answer: Mapping[str, Any], content: Callable[[str], bytes | None]
) -> Mapping[str, Any]:
    """Return the payload of a confidential answer with what its artifacts hold.

    Args:
        answer: The payload.
        content: Returns the content of an address; ``None`` where it cannot be read.
    """
    held = {name: _json(answer, name, content) for name in (RESULTS, REMARKS, FAILURE)}
    whole = {name: each for name, each in answer.items() if name not in PARTS}
    for name in PARTS:
        if name in answer:
            whole[name] = {**answer[name], **held[RESULTS]}
    if "execution_summary" in answer:
        whole["execution_summary"] = {**answer["execution_summary"], **held[REMARKS]}
    return {**whole, **held[FAILURE]}


def _json(
    answer: Mapping[str, Any], name: str, content: Callable[[str], bytes | None]
) -> dict[str, Any]:
    """Return what an artifact of an answer holds; nothing where it has none that can be read."""
    uris = [each["uri"] for each in answer.get("artifacts", ()) if each["name"] == name]
    data = content(uris[0]) if uris else None
    try:
        found = json.loads(data or b"{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
