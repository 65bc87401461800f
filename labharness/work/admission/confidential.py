"""Confidential data (T3, T4): by which way a task of them comes, and what is told in clear."""

from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal

from labharness.core.vocabulary.texts import Text
from labharness.protocols.hcp.messages import Constraints, TaskSubmit
from labharness.protocols.hcp.terms import CONFIDENTIAL, OPEN, PRIORITIES, Rejected
from labharness.work.admission.declaration import Declaration

Way = Literal["local", "tls", "plain"]
"""Of a message: within this machine, through a broker over TLS, or through one without."""

CLASS_CHARACTERS_MAX: Final = 16
"""Of a class that is not known, so that it is refused by its name."""

TOLD: Final = (
    *("data.", "caller.", "capability.", "choose.", "policy.", "reference."),
    *("approvals.agree", "approvals.sign", "line.latched", "line.unusable"),
    *("advice.reset_it", "advice.which_instrument", "advice.loopback"),
)
"""Beginnings of the codes of texts that quote no input."""


def declared_class(payload: TaskSubmit) -> str:
    """Return the data class that a submission declares, known or not; ``""`` for none."""
    return (payload.constraints and payload.constraints.data_classification) or ""


def is_confidential(payload: TaskSubmit) -> bool:
    """Return whether nothing of a task may be kept in clear; a class that is not known counts."""
    declared = declared_class(payload)
    return bool(declared) and declared not in OPEN


def refused_on_way(
    payload: TaskSubmit, way: Way, declarations: Iterable[Declaration]
) -> Rejected | None:
    """Return why a confidential task is not taken by a way; ``None`` where it may be.

    A broker keeps what passes through it on its disk, so that the data themselves may not; what
    comes over TLS may refer to them.

    Args:
        payload: Of the submission.
        way: How it came.
        declarations: The declarations of this laboratory's capabilities.
    """
    if way == "local" or not is_confidential(payload):
        return None
    found = declared_class(payload)
    if way == "plain":
        return Rejected("forbidden", Text("data.plain", found=found), None, Text("data.amqps"))
    known = next((each for each in declarations if each.name == payload.capability), None)
    may = () if known is None else known.by_reference
    inline = [name for name in payload.inputs if name not in may]
    if not inline and not payload.context:
        return None
    return Rejected(
        "forbidden",
        Text("data.inline", found=found, most=", ".join(may) or Text("data.no_input")),
        None,
        Text("data.refer"),
    )


def withheld(payload: TaskSubmit) -> TaskSubmit:
    """Return what may be written in clear of a confidential task."""
    declared = declared_class(payload)
    known = declared if len(declared) <= CLASS_CHARACTERS_MAX else CONFIDENTIAL[-1]
    asked = payload.constraints and payload.constraints.priority
    priority = next((each for each in PRIORITIES if each == asked), None)
    bare = TaskSubmit(
        capability=payload.capability,
        caller_id=payload.caller_id,
        intent=Text("data.withheld"),
        inputs={},
        constraints=Constraints(data_classification=known, priority=priority),
    )
    return bare.as_newer() if payload.is_newer else bare


def in_clear(rejected: Rejected) -> Rejected:
    """Return a rejection without the texts that may quote an input."""
    reason = rejected.reason_message
    told = _quotes_nothing(reason)
    ways = [each for each in _parts(rejected.suggestion) if _quotes_nothing(each)]
    if not ways and not (told and rejected.suggestion is None):
        ways = [Text("data.explain")]
    return Rejected(
        rejected.reason_code,
        reason if told else Text("data.reason_withheld", code=rejected.reason_code),
        rejected.assessed_risk_level,
        ways[0] if ways else None,
    )


def _parts(text: str | None) -> Sequence[Any]:
    """Return the sentences of a text."""
    if isinstance(text, Text) and text.code == "sentences":
        return tuple(text.params["parts"])  # type: ignore[arg-type]  # as `Text` was made
    return () if text is None else (text,)


def _quotes_nothing(text: str | None) -> bool:
    return isinstance(text, Text) and text.code.startswith(TOLD)
