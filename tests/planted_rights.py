"""Planted bugs in the rights of a caller: hours, instruments, and edits of the files that state them."""

from planted_bug import PlantedBug

FILES = "labharness.lab.house.screening:LabFiles"

BUGS = (
    PlantedBug(
        "hours held against the beginning of a run alone",
        "labharness.core.vocabulary.hours:Hours.cover",
        "ends is not None and start + timedelta(seconds=duration_s) <= ends",
        "ends is not None",
        "test_all_of_the_work_lies_within_the_hours_of_its_caller",
    ),
    PlantedBug(
        "hours that do not follow summer time",
        "labharness.core.vocabulary.hours:_at",
        "(monday + timedelta(minutes=minute)).astimezone(UTC)",
        "monday.astimezone(UTC) + timedelta(minutes=minute)",
        "test_a_time_is_covered_when_all_of_it_lies_within",
    ),
    PlantedBug(
        "caller without instruments that may use all",
        "labharness.work.admission.callers:refused_by_policy",
        "caller.instruments is not None",
        "caller.instruments",
        "test_an_instrument_that_is_not_the_callers_is_named",
    ),
    PlantedBug(
        "run that is attended at its beginning alone",
        "labharness.work.desk.admitting:Admitting._risk_context",
        "facts.attended.cover(now, planned.duration_s)",
        "facts.attended.cover(now, 0.0)",
        "test_hours_that_passed_while_a_person_was_asked_count",
    ),
    PlantedBug(
        "hours held against a plan that takes longer in its pre-flight",
        "labharness.work.desk.admitting:Admitting.predict",
        "planned = replace(weighed.planned, duration_s=prediction.duration_s)",
        "planned = weighed.planned",
        "test_the_duration_that_the_pre_flight_shows_lies_within_the_hours",
    ),
    PlantedBug(
        "edit of the callers that nobody sees",
        f"{FILES}._signature",
        "each.name.endswith('.toml')",
        "each.name == self._lab.name",
        "test_an_edit_of_the_callers_counts_for_the_next_task",
    ),
    PlantedBug(
        "edit that the house's turn overlooks",
        f"{FILES}.look",
        "self._looked()",
        "pass",
        "test_a_house_that_looks_finds_an_edit_before_anybody_asks",
    ),
    PlantedBug(
        "rights that outlive a file that cannot be honoured",
        f"{FILES}._looked",
        "self._known = None",
        "pass",
        "test_a_house_that_looks_finds_an_edit_before_anybody_asks",
    ),
)
