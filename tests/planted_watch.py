"""Planted bugs in what a line looks at: what it reads, keeps, and waits for."""

from planted_bug import PlantedBug

BUGS = (
    PlantedBug(
        "first command judged by a reading from before prepare",
        "labharness.line.preparing:Reconnecting.prepare",
        "await read_all(polled, FULL_POLL_S_MAX)",
        "dict.fromkeys(polled)",
        "test_nothing_that_is_listened_to_was_read_before_prepare[0.13]",
    ),
    PlantedBug(
        "value that somebody else set overlooked",
        "labharness.safety.kernel.observing:observe",
        "abs(value - track.told) > track.within",
        "False",
        "test_a_foreign_write_that_defeats_a_limit_of_a_heated_furnace_trips_within_two_polls[35-3000-furnace.setpoint_rate reads 300 degC/min, and 20 was confirmed]",
        detector="referee",
    ),
    PlantedBug(
        "rate limit looked at every half a minute",
        "labharness_drivers.eurotherm_2400:Eurotherm2400",
        "ReadBlock('bounds', 30, 6)",
        "ReadBlock('bounds', 30, 6, every_s=30.0)",
        "test_a_foreign_write_that_defeats_a_limit_of_a_heated_furnace_trips_within_two_polls[35-300-furnace.setpoint_rate reads 30 degC/min, and 20 was confirmed]",
        detector="referee",
    ),
    PlantedBug(
        "foreign value that is at stake only warned of",
        "labharness.safety.kernel.observing:_foreign",
        "limit.on_foreign if at_stake else ''",
        '""""""',
        "test_a_foreign_master_in_flowing_hydrogen_trips_within_two_polls[where0-514-2000-6-close_all_valves_and_alert]",
        detector="referee",
    ),
    PlantedBug(
        "procedure taken for somebody else",
        "labharness.line.trip_response:TripResponse._count",
        "expect(self.memory, step.channel, math.nan)",
        "pass",
        "test_what_a_procedure_prepare_or_a_person_at_a_disarmed_line_sets_is_nobody_elses",
    ),
    PlantedBug(
        "nobody looks at what a verified line is set to",
        "labharness.line.trip_response:TripResponse._tell",
        "state is StepState.VERIFIED",
        "False",
        "test_a_line_that_is_held_safe_or_has_tripped_goes_on_looking",
    ),
    PlantedBug(
        "readings kept only minute by minute",
        "labharness.lab.wiring.runs:open_journal",
        "block_lab_s(clock.speed)",
        "block_lab_s(None)",
        "test_a_session_that_is_killed_keeps_its_outcomes_and_all_but_the_last_five_seconds",
        detector="journal audit",
        dear=True,
    ),
    PlantedBug(
        "full disk met only by the next command",
        "labharness.journal.store:SqliteJournal.sample",
        "ended",
        "False",
        "test_an_idle_line_meets_a_full_disk_within_five_seconds",
        detector="journal audit",
    ),
    PlantedBug(
        "hold by hand without end",
        "labharness.lab.operate.attend:Attendance._stay",
        "line.holding.check()",
        "pass",
        "test_a_hold_by_hand_that_nobody_ends_is_over_after_an_hour_and_leaves_the_line_safe",
        dear=True,
    ),
    PlantedBug(
        "warning of a second channel taken for the first one's",
        "labharness.line.poll:Monitor._answer",
        "(each.channel, _rule(each.detail))",
        "('', _rule(each.detail))",
        "test_each_channel_above_a_limit_that_only_warns_is_shown_and_journaled",
        detector="journal audit",
    ),
)
