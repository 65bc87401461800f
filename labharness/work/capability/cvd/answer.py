"""From the record of a growth to its outputs: those of its film, and the growth log.

The thickness that a caller's words name, compared with the film. Words are never obeyed: they
choose no recipe and fail no task. They are read so that a caller who wrote "monolayer" does not
take another film for one.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from labharness.core.vocabulary.texts import Text
from labharness.work.capability import Answer, NoAnswer, declared
from labharness.work.capability.raman_answer import film_answer
from labharness.work.plan import Instruction, StepRecord


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
        done = [(each.instruction, each.result) for each in members if each.result is not None]
        first_s = members[0].started_s or 0.0
        last_s = members[-1].ended_s
        rows.append(
            {
                "phase": phase,
                "started_at": round(first_s - start_s, 3),
                "duration_s": None if last_s is None else round(last_s - first_s, 3),
                "status": members[-1].status.value,
                "steps": len(members),
                "setpoints": dict(pair for each in done for pair in _set(*each)),
                "measured": dict(pair for each in done for pair in _measured(*each)),
            }
        )
    return rows


def _set(what: Instruction, result: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    if what.action == "set":
        yield result["channel"], result["value"]
    elif what.action == "ramp":
        yield what.parameters["setpoint"], result["to"]


def _measured(what: Instruction, result: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    asked = what.parameters
    match what.action:
        case "hold":
            yield from result["measured"].items()
        case "wait":
            yield asked["channel"], result["value"]
        case "ramp":
            yield asked["process"], result["reached"]
        case "rate_of_rise":
            yield f"{asked['channel']} rise per minute", result["per_minute"]
        case "purge":
            yield f"volumes purged of {asked['contaminant']}", result["volumes"]


WORDS: tuple[tuple[str, tuple[int, ...]], ...] = tuple(
    (words, tuple(range(int(low), int(high) + 1)))
    for each in getattr(declared(__file__).spoken, "input", ())
    if each.kind == "count"
    for value, words in each.values.items()
    for low, high in (each.ends(value),)
)
"""English and Chinese; a word that is not here is not read."""

DENIED = re.compile(
    r"\b(?:no|not|non|without|avoid\w*|never|prevent\w*|suppress\w*|except|than|instead of|from)"
    r"[\s-]+(?:\w+[\s-]+){0,2}$|(?:不|无|避免)\s*$",
    re.IGNORECASE,
)
"""Words before a thickness that is not wanted, or that another one is compared with."""


WHOLE = SURE = 0.75
"""Share of a film that a claim on all of it needs, and probability that a claim needs
(`analysis.shares`, which is not imported to read words)."""

NONE: Mapping[str, float] = {"high": 0.0}


def named(text: str) -> tuple[str, tuple[int, ...]] | None:
    """Return the words that name a thickness and the classes they mean; None where none does.

    Several are each as good as the other ("monolayer or bilayer"). Where one is denied nothing is
    read at all: a sentence like that is not for a program.
    """
    said: list[str] = []
    named: set[int] = set()
    for pattern, classes in WORDS:
        for found in re.finditer(rf"(?<![A-Za-z-])(?:{pattern})", text, re.IGNORECASE):
            if DENIED.search(text[max(0, found.start() - 40) : found.start()]):
                return None
            said.append(found.group())
            named.update(classes)
    if not said:
        return None
    return " / ".join(dict.fromkeys(each.lower() for each in said)), tuple(sorted(named))


def met(
    text: str, film: Mapping[str, Any], layer_count: int | None, confidence: float
) -> dict[str, Any]:
    """Compare the thickness in the words with the film.

    Args:
        text: The intent.
        film: Of the outputs: headline, kind of claim, and share of each class.
        layer_count: The predominant class.
        confidence: Probability that the claim is right.

    Returns:
        ``words`` that name a thickness, ``met``, and ``said``: a sentence, empty where it was met.
        Where no thickness is named ``words`` is empty and ``met`` None; it is None as well where
        the film was neither shown to be so nor not to be. A mixed film meets no word.
    """
    wish = named(text)
    if wish is None:
        return {"words": "", "met": None, "said": ""}
    words, classes = wish
    if film["claim"] in ("film", "place") and layer_count in classes:
        return {"words": words, "met": True, "said": ""}
    most = sum(film["of_film"].get(str(each), NONE)["high"] for each in classes)
    other = layer_count not in classes and confidence >= SURE
    not_met = film["claim"] == "mixed" or other or most < WHOLE
    code = "film.not_as_intended" if not_met else "film.not_shown"
    said = Text(code, words=words, headline=film["headline"])
    return {"words": words, "met": False if not_met else None, "said": said}
