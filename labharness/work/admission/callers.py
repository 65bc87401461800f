"""The callers file: what each caller may ask for, at which risk, when, on which instruments."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Final, TypeVar

from labharness.core.clock import utc_text
from labharness.core.vocabulary.durations import format_duration
from labharness.core.vocabulary.hours import ALWAYS, Hours, NoHours, read_hours
from labharness.core.vocabulary.persons import bad_name
from labharness.core.vocabulary.texts import CodedError, Text
from labharness.protocols.hcp.terms import DataClass, Rejected, RiskLevel

STRICT: Final = {"extra": "forbid", "strict": True}
"""Of a table of a file: an unknown key, and a value of another type, is an error."""

HARMLESS_RISK: RiskLevel = "R3"
"""Physical resources, and nothing graver."""

HARMLESS_DATA: DataClass = "T2"


class BadCallers(CodedError, ValueError, code="bad_callers"):
    """A callers file that cannot be honoured as it stands."""


@dataclass(frozen=True, slots=True)
class Caller:
    """One caller, and the most that it may ask for.

    Attributes:
        id: Its name.
        capabilities: The names of those that it may ask for.
        risk_max: The highest risk.
        data_class_max: The highest data class.
        hours: When its work may go on.
        instruments: The names of those that its work may set; ``None`` for all.
    """

    id: str
    capabilities: tuple[str, ...]
    risk_max: RiskLevel
    data_class_max: DataClass
    hours: Hours = ALWAYS
    instruments: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class _Entry:
    __pydantic_config__: ClassVar = STRICT

    capabilities: tuple[str, ...]
    risk_max: RiskLevel
    data_class_max: DataClass
    hours: str = "always"
    instruments: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class _File:
    __pydantic_config__: ClassVar = STRICT

    callers: dict[str, _Entry]


Model = TypeVar("Model")


def table_of(model: type[Model], text: str, what: str, error: type[CodedError]) -> Model:
    """Return the table of a file; raise ``error`` where it is none."""
    from labharness.core.files.tables import BadTable, read_table

    try:
        return read_table(model, text, what)
    except BadTable as why:
        raise error(str(why)) from None


def anybody(name: str, capabilities: tuple[str, ...]) -> Caller | None:
    """Return the rights of a caller of a lab that cannot harm a person.

    ``None`` where the name would be taken for another's.
    """
    if not name or bad_name(name):
        return None
    return Caller(name, capabilities, HARMLESS_RISK, HARMLESS_DATA)


def read_callers(text: str) -> dict[str, Caller]:
    """Read a callers file: one TOML table ``[callers.<id>]`` for each caller.

    Each table has ``capabilities`` (names), ``risk_max`` (R1 to R5) and ``data_class_max``
    (T1 to T4). It may have ``hours`` (of the week, in which all of its work lies) and
    ``instruments`` (the names of those that its work may set), and nothing else.

    Raises:
        BadCallers: The text is not TOML, lacks a key, has an unknown key, no hours, or an id that
            would be taken for another: a requester must not approve.
    """
    file = table_of(_File, text, "callers file", BadCallers)
    for name in file.callers:
        if why_not := bad_name(name):
            raise BadCallers("callers.name", name=name, why=why_not)
    return {name: _caller(name, entry) for name, entry in file.callers.items()}


def _caller(name: str, entry: _Entry) -> Caller:
    try:
        hours = read_hours(entry.hours)
    except NoHours as why:
        raise BadCallers("callers.hours", name=name, why=str(why)) from None
    return Caller(
        name, entry.capabilities, entry.risk_max, entry.data_class_max, hours, entry.instruments
    )


def refused_by_policy(
    caller: Caller, *, now_utc: datetime, duration_s: float, instruments: Collection[str]
) -> Rejected | None:
    """Return why a caller may not have a plan carried out now; ``None`` where it may.

    Args:
        caller: The caller and its rights.
        now_utc: World time, with its zone; the plan would begin now.
        duration_s: Of the plan.
        instruments: The names of those that the plan sets.
    """
    if caller.instruments is not None:
        beyond = sorted(set(instruments) - set(caller.instruments))
        if beyond:
            names, allowed = ", ".join(beyond), ", ".join(sorted(caller.instruments)) or "none"
            why = Text("policy.instruments", caller=caller.id, names=names, allowed=allowed)
            way_out = Text("policy.other_instruments", names=names)
            return Rejected("forbidden", why, suggestion=way_out)
    if caller.hours.cover(now_utc, duration_s):
        return None
    later = caller.hours.next_start(now_utc, duration_s)
    lasts = format_duration(round(duration_s))
    return Rejected(
        "forbidden",
        Text("policy.hours", caller=caller.id, hours=caller.hours.text, duration=lasts),
        suggestion=Text("policy.shorter")
        if later is None
        else Text("policy.submit_at", at=utc_text(later)),
    )
