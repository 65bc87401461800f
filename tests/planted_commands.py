"""Planted bugs of commands: what shows one, permits it, verifies it, and how it is written."""

from planted_bug import PlantedBug

BUGS = (
    PlantedBug(
        "command of several frames shown by one read-back",
        "labharness.line.command:Writer._read_back",
        "spec.readback is None or (trouble and many)",
        "spec.readback is None or False",
        "test_a_read_back_of_one_frame_does_not_show_the_others[second]",
        dear=True,
    ),
    PlantedBug(
        "frame sent again after no answer",
        "labharness.line.command:Writer._exchange",
        "reply = await lease.send(request, command=True)",
        "try:\n"
        "    reply = await lease.send(request, command=True)\n"
        "except NoReply:\n"
        "    reply = await lease.send(request, command=True)",
        "test_one_frame_that_is_not_answered_is_shown_by_its_read_back_and_is_not_sent_again",
        detector="byte log",
        dear=True,
    ),
    PlantedBug(
        "ten steps of tolerance in a read-back",
        "labharness.line.command:Writer._read_back",
        "abs(found - asked) <= spec.resolution",
        "abs(found - asked) <= 10 * spec.resolution",
        "test_what_is_read_back_is_what_was_asked_to_within_one_step[9.0-mismatch]",
    ),
    PlantedBug(
        "ten steps of tolerance in verification",
        "labharness.line.trip_response:TripResponse._states",
        "abs(value - wanted.value) <= spec.resolution",
        "abs(value - wanted.value) <= 10 * spec.resolution",
        "test_a_step_is_verified_within_its_resolution_and_not_beyond[9.0-False]",
    ),
    PlantedBug(
        "permit outlives a change of an interlock's truth",
        "labharness.line.poll:Monitor.take",
        "self.guard.new_epoch()",
        "",
        "test_a_permit_ends_with_what_it_rested_on[the_lid_is_opened-]",
        detector="byte log",
    ),
    PlantedBug(
        "permit outlives a call to make safe",
        "labharness.line.trip_response:TripResponse.make_safe",
        "self.guard.new_epoch()",
        "",
        "test_a_permit_ends_with_what_it_rested_on[the_line_is_made_safe-]",
        detector="byte log",
    ),
    PlantedBug(
        "stale reading a cause for ever",
        "labharness.line.hindrances:_active_rows",
        "not row.procedure or value != value or (not track.fresh(now))",
        "not row.procedure or value != value",
        "test_a_reading_that_is_stale_is_no_cause_and_is_told_as_not_known",
    ),
    PlantedBug(
        "armed by a prepare that nothing shows",
        "labharness.line.preparing:Reconnecting.prepare",
        "outcome.ending is not Ending.CONFIRMED",
        "outcome.ending not in (Ending.CONFIRMED, Ending.UNCONFIRMED)",
        "test_a_line_is_not_armed_by_a_prepare_that_nothing_shows[unconfirmed]",
    ),
    PlantedBug(
        "settle time left out of what a permit takes",
        "labharness.safety.guard.harness:HarnessSession._permitted",
        "request.timeout_s + request.settle_s",
        "request.timeout_s",
        "test_a_port_is_taken_for_no_longer_than_it_was_armed_for_the_silence_after_it_counted[0.3-0.21]",
        detector="deadline",
    ),
    PlantedBug(
        "settle time left out of the longest exchange",
        "labharness.lab.wiring.arming:_port",
        "each.timeout_s + each.settle_s",
        "each.timeout_s",
        "test_the_arming_of_a_real_lab_is_complete",
        detector="deadline",
    ),
    PlantedBug(
        "value cut off where it is written",
        "labharness.instruments.driver.modbus:ModbusRow._whole",
        "round",
        "int",
        "test_what_a_register_carries_is_the_nearest_step[0.1]",
        detector="byte log",
    ),
    PlantedBug(
        "position cut off where it is written",
        "labharness.instruments.driver.ascii_table:Ascii.written",
        "f'{value * self.per:.{self.decimals}f}'",
        "f'{int(value * self.per):.{self.decimals}f}'",
        "test_no_value_is_cut_off_at_the_step_below[prior_proscan-more7-x-0.999-1.0]",
        detector="byte log",
    ),
    PlantedBug(
        "next level called for the youngest alarm",
        "labharness.safety.alarm.board:longest_s",
        "max",
        "min",
        "test_the_longest_wait_of_a_group_says_who_is_due_not_the_youngest",
        detector="alarm audit",
    ),
)
