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
        "outcome.ending is not Ending.REFUSED",
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
    PlantedBug(
        "number out of its bounds for which an operation waits while its siblings begin",
        "labharness.work.plan.course:_Pass._offer",
        "operates and isinstance(why, OutOfBounds)",
        "False",
        "test_an_operation_whose_number_is_out_of_its_bounds_is_refused_and_its_siblings_with_it",
    ),
    PlantedBug(
        "fall-back that begins against its condition",
        "labharness.work.plan.course:_Pass._look_at",
        "not record.has_ended() and self._decided(record)",
        "not (record.has_ended() or record.fell_back) and self._decided(record)",
        "test_a_fall_back_takes_no_place_against_the_condition_or_where_that_is_not_known[fail-False-condition]",
    ),
    PlantedBug(
        "fall-back that begins where its condition is not known",
        "labharness.work.plan.course:next_turn",
        "name in step.undecided",
        "False",
        "test_a_fall_back_takes_no_place_against_the_condition_or_where_that_is_not_known[skip-None-FAILED]",
    ),
    PlantedBug(
        "trip at the end of a pause, after which an instruction of a set begins",
        "labharness.work.plan.set_runner:SetRunner.run",
        "self._operations.check()",
        "None",
        "test_a_trip_in_a_pause_ends_the_set_and_nothing_begins_after_it",
    ),
    PlantedBug(
        "operation of a set that is sent again while its other command is under way",
        "labharness.work.plan.set_runner:_Noting.sent",
        "self._open > 0",
        "False",
        "test_one_of_two_commands_at_once_that_was_sent_is_not_sent_again[values3]",
    ),
    PlantedBug(
        "instruction that may not be held, and may once its set is read again",
        "labharness.work.plan.set_reading:_instruction",
        "about.holdable",
        "True",
        "test_a_set_that_we_wrote_is_read_again_as_it_was",
    ),
    PlantedBug(
        "loop whose id stands twice, so that what waits for it begins too early",
        "labharness.work.plan.set_reading:_unrolled",
        "name in made",
        "False",
        "test_the_id_of_a_loop_stands_once_so_that_no_dependency_on_it_is_lost",
    ),
)
