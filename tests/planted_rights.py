"""Planted bugs in the rights of a caller: hours, instruments, and edits of the files that state them."""

from planted_bug import PlantedBug

HOURS = "tests/core/vocabulary/test_hours.py::"
RIGHTS = "tests/work/admission/test_policy.py::"
POLICY = "tests/work/desk/test_policy_of_a_caller.py::"
DESK = "tests/lab/house/test_desk_work.py::"
FILES = "labharness.lab.house.screening:LabFiles"

IN_THE_RIGHTS = (
    PlantedBug(
        "hours held against the beginning of a run alone",
        "labharness.core.vocabulary.hours:Hours.cover",
        "ends is not None and start + timedelta(seconds=duration_s) <= ends",
        "ends is not None",
        RIGHTS + "test_all_of_the_work_lies_within_the_hours_of_its_caller",
        promise=68,
    ),
    PlantedBug(
        "hours that do not follow summer time",
        "labharness.core.vocabulary.hours:_at",
        "(monday + timedelta(minutes=minute)).astimezone(UTC)",
        "monday.astimezone(UTC) + timedelta(minutes=minute)",
        HOURS + "test_a_time_is_covered_when_all_of_it_lies_within",
        promise=68,
    ),
    PlantedBug(
        "caller without instruments that may use all",
        "labharness.work.admission.callers:refused_by_policy",
        "caller.instruments is not None",
        "caller.instruments",
        RIGHTS + "test_an_instrument_that_is_not_the_callers_is_named",
        promise=68,
    ),
    PlantedBug(
        "run that is attended at its beginning alone",
        "labharness.work.desk.admitting:Admitting._risk_context",
        "facts.attended.cover(now, planned.duration_s)",
        "facts.attended.cover(now, 0.0)",
        POLICY + "test_hours_that_passed_while_a_person_was_asked_count",
        promise=68,
    ),
    PlantedBug(
        "hours held against a plan that takes longer in its pre-flight",
        "labharness.work.desk.admitting:Admitting.predict",
        "planned = replace(weighed.planned, duration_s=prediction.duration_s)",
        "planned = weighed.planned",
        POLICY + "test_the_duration_that_the_pre_flight_shows_lies_within_the_hours",
        promise=68,
    ),
    PlantedBug(
        "edit of the callers that nobody sees",
        f"{FILES}._signature",
        "each.name.endswith('.toml')",
        "each.name == self._lab.name",
        DESK + "test_an_edit_of_the_callers_counts_for_the_next_task",
        promise=68,
    ),
    PlantedBug(
        "edit that the house's turn overlooks",
        f"{FILES}.look",
        "self._looked()",
        "pass",
        DESK + "test_a_house_that_looks_finds_an_edit_before_anybody_asks",
        promise=68,
    ),
    PlantedBug(
        "rights that outlive a file that cannot be honoured",
        f"{FILES}._looked",
        "self._known = None",
        "pass",
        DESK + "test_a_house_that_looks_finds_an_edit_before_anybody_asks",
        promise=68,
    ),
)
