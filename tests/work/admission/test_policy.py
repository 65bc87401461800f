"""A caller's hours and instruments, held against a plan; and the file that states them."""

from datetime import UTC, datetime

import pytest

from labharness.core.vocabulary.hours import read_hours
from labharness.protocols.hcp.terms import Rejected
from labharness.work.admission.callers import BadCallers, Caller, read_callers, refused_by_policy

MONDAY_9 = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
ENTRY = '[callers.x]\ncapabilities = ["annealing"]\nrisk_max = "R3"\ndata_class_max = "T2"\n'


def asked(hours: str, duration_s: float, allowed: tuple[str, ...] | None = None) -> Rejected | None:
    caller = Caller("x", ("annealing",), "R3", "T2", read_hours(hours), allowed)
    return refused_by_policy(
        caller, now_utc=MONDAY_9, duration_s=duration_s, instruments=("furnace", "mfc")
    )


@pytest.mark.promise(68)
def test_all_of_the_work_lies_within_the_hours_of_its_caller() -> None:
    assert asked("Mon 08:00-10:00 UTC", 3600) is None
    late = asked("Mon 08:00-10:00 UTC", 3601)
    assert late is not None
    assert late.reason_code == "forbidden"
    assert "Mon 08:00-10:00 UTC" in late.reason_message
    assert late.suggestion == "Submit it at 2026-01-12T08:00:00.000Z"
    never = asked("Mon 08:00-10:00 UTC", 7201)
    assert never is not None
    assert str(never.suggestion).startswith("No span of these hours is as long")


@pytest.mark.promise(68)
def test_an_instrument_that_is_not_the_callers_is_named() -> None:
    assert asked("always", 60, ("furnace", "mfc", "laser")) is None
    refused = asked("always", 60, ("mfc",))
    assert refused is not None
    assert (refused.reason_code, "furnace" in refused.reason_message) == ("forbidden", True)
    assert asked("always", 60, ()) is not None


def test_the_file_may_state_hours_and_instruments() -> None:
    (caller,) = read_callers(ENTRY + 'hours = "never"\ninstruments = ["mfc"]\n').values()
    assert (str(caller.hours), caller.instruments) == ("never", ("mfc",))
    (caller,) = read_callers(ENTRY).values()
    assert (str(caller.hours), caller.instruments) == ("always", None)
    with pytest.raises(BadCallers, match=r"\[callers.x\].hours: 'night' states no hours"):
        read_callers(ENTRY + 'hours = "night"\n')
