"""From the record of a growth to its outputs: those of its film, and the growth log."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from labharness.work.capability import Answer, NoAnswer
from labharness.work.capability.cvd.intent import met
from labharness.work.capability.raman_answer import film_answer
from labharness.work.plan import StepRecord


def compose(records: Sequence[StepRecord], threshold: float, intent: str = "") -> Answer | NoAnswer:
    """Return the answer of a run, or why it has none.

    Args:
        records: State and result of each instruction.
        threshold: Least confidence that the caller accepts.
        intent: The caller's words.
    """
    found = film_answer(records, threshold)
    log = growth_log(records)
    if isinstance(found, NoAnswer):
        return replace(found, partial_outputs={**found.partial_outputs, "growth_log": log})
    told = found.outputs
    wish = met(intent, told["film"], told["layer_count"], told["confidence"])
    outputs = {**found.outputs, "growth_log": log, "intent": wish}
    said = (wish["said"],) if wish["said"] else ()
    return replace(found, outputs=outputs, warnings=(*found.warnings, *said))


def growth_log(records: Sequence[StepRecord]) -> list[dict[str, Any]]:
    """Return one row for each phase that was begun: its time, its settings and its readings.

    Times are lab time in s from the beginning of the run.
    """
    begun = [each for each in records if each.started_s is not None]
    start_s = begun[0].started_s or 0.0 if begun else 0.0
    rows = []
    for phase, group in groupby(begun, key=lambda each: each.instruction.stage):
        members = list(group)
        first_s = members[0].started_s or 0.0
        last_s = members[-1].ended_s
        rows.append(
            {
                "phase": phase,
                "started_at": round(first_s - start_s, 3),
                "duration_s": None if last_s is None else round(last_s - first_s, 3),
                "status": members[-1].status.value,
                "steps": len(members),
                "setpoints": dict(pair for each in members for pair in _set(each)),
                "measured": dict(pair for each in members for pair in _measured(each)),
            }
        )
    return rows


def _set(record: StepRecord) -> Iterator[tuple[str, float]]:
    if record.result is None:
        return
    if record.instruction.action == "set":
        yield record.result["channel"], record.result["value"]
    elif record.instruction.action == "ramp":
        yield record.instruction.parameters["setpoint"], record.result["to"]


def _measured(record: StepRecord) -> Iterator[tuple[str, Any]]:
    if record.result is None:
        return
    asked = record.instruction.parameters
    match record.instruction.action:
        case "hold":
            yield from record.result["measured"].items()
        case "wait":
            yield asked["channel"], record.result["value"]
        case "ramp":
            yield asked["process"], record.result["reached"]
        case "rate_of_rise":
            yield f"{asked['channel']} rise per minute", record.result["per_minute"]
        case "purge":
            yield f"volumes purged of {asked['contaminant']}", record.result["volumes"]
