"""Planted bugs in instruction sets: what runs again, what runs too early, and what a trip ends."""

from planted_bug import PlantedBug

BUGS = (
    PlantedBug(
        "operation of a set that is sent again after its byte left",
        "labharness.work.plan.course:after",
        "kind is InstructionKind.OPERATION and sent",
        "False",
        "test_an_operation_whose_byte_left_is_never_sent_again",
    ),
    PlantedBug(
        "operation of a set that is sent again, as only its second command was refused",
        "labharness.work.plan.set_runner:_Noting.perform",
        "before or outcome.ending is not Ending.REFUSED",
        "False",
        "test_an_operation_that_was_refused_after_its_first_byte_is_not_tried_again",
    ),
    PlantedBug(
        "trip after which a set goes on",
        "labharness.work.plan.course:next_turn",
        "SkipReason.TRIP if tripped else SkipReason.TIMEOUT if late else None",
        "SkipReason.TIMEOUT if late else None",
        "test_a_trip_ends_everything_at_once_and_nothing_is_recovered",
    ),
    PlantedBug(
        "operation of a set that begins before it was judged",
        "labharness.work.plan.set_runner:SetRunner._begin",
        "self._judge(turn.operations) if begins else {}",
        "{}",
        "test_operations_are_judged_together_and_none_is_sent_where_one_is_refused",
    ),
    PlantedBug(
        "number out of its bounds that a reference fills in",
        "labharness.work.plan.instructions:_within",
        "number and bounds['min'] <= found <= bounds['max']",
        "True",
        "test_a_number_out_of_its_bounds_is_never_sent",
    ),
)
