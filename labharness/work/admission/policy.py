"""The hours and the instruments of a caller, held against a plan."""

from collections.abc import Collection
from datetime import datetime

from labharness.core.clock import utc_text
from labharness.core.vocabulary.durations import format_duration
from labharness.core.vocabulary.texts import Text
from labharness.protocols.hcp.terms import Rejected
from labharness.work.admission.callers import Caller


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
            return Rejected(
                "forbidden",
                Text("policy.instruments", caller=caller.id, names=names, allowed=allowed),
                suggestion=Text("policy.other_instruments", names=names),
            )
    if caller.hours.cover(now_utc, duration_s):
        return None
    later = caller.hours.next_start(now_utc, duration_s)
    return Rejected(
        "forbidden",
        Text(
            "policy.hours",
            caller=caller.id,
            hours=caller.hours.text,
            duration=format_duration(round(duration_s)),
        ),
        suggestion=Text("policy.shorter")
        if later is None
        else Text("policy.submit_at", at=utc_text(later)),
    )
