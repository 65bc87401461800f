"""Planted bugs in what is said of a film, and how sure."""

from planted_bug import PlantedBug

BUGS = (
    PlantedBug(
        "steps between classes as rigid as the table's",
        "labharness.analysis.census",
        "CLASS_CM1 = 0.35",
        "CLASS_CM1 = 0.0",
        "test_a_step_is_not_read_off_the_table_as_if_every_film_knew_it",
    ),
    PlantedBug(
        "hypotheses dropped before the second class of a film is seen",
        "labharness.analysis.census",
        "BEAM_BEFORE, BEAM, PRUNED_LN = (512, 128, 12.0)",
        "BEAM_BEFORE, BEAM, PRUNED_LN = (16, 16, 12.0)",
        "test_what_is_dropped_and_merged_changes_no_answer",
        dear=True,
    ),
    PlantedBug(
        "line that waits while spectra are judged",
        "labharness.work.capability.raman_verbs:analyse",
        "await asyncio.to_thread(judge, spots, asked['pl_heights_per_s'], "
        "found['dark_counts'], asked['reference'], asked['threshold'], asked.get('origin'))",
        "judge(spots, asked['pl_heights_per_s'], found['dark_counts'], "
        "asked['reference'], asked['threshold'], asked.get('origin'))",
        "test_the_loop_goes_on_while_spectra_are_judged",
        detector="deadline",
    ),
    PlantedBug(
        "error in the desk that ends without an answer",
        "labharness.work.desk.desk:Desk.run",
        "isinstance(why, JournalFailed) and self.session.state == 'PENDING'",
        "True",
        "test_what_breaks_before_the_task_is_accepted_rejects_it[plan]",
    ),
    PlantedBug(
        "session that is completed before its answer can be kept",
        "labharness.work.desk.closing:Closing._last",
        "canonical(record_body(message))",
        "",
        "test_an_answer_that_no_message_can_hold_fails_the_task[NaN]",
    ),
    PlantedBug(
        "abort that something breaks and nobody answers",
        "labharness.work.desk.desk:Desk._broken",
        "self.session.state == 'ABORTING'",
        "False",
        "test_an_abort_on_whose_way_something_breaks_stays_an_abort",
    ),
    PlantedBug(
        "kelvin compared with a number of degC",
        "labharness.lab.config.consistency:cold",
        "temperature_in(spec.unit, row.below, row.unit)",
        "row.below",
        "test_each_temperature_is_compared_in_its_own_unit",
    ),
    PlantedBug(
        "second stop of a line driven by hand that changes nothing",
        "labharness.lab.operate.attend:Attendance.abort",
        "self._cooling.break_off(self._again)",
        "pass",
        "test_a_second_stop_ends_the_watch_with_the_line_safe_and_latched[after its time]",
        detector="deadline",
    ),
    PlantedBug(
        "safe state that an answer waits for without a bound",
        "labharness.work.desk.making_safe:MakingSafe.wait",
        "asyncio.wait((self._work,), timeout=left_s)",
        "asyncio.wait((self._work,))",
        "test_a_safe_state_that_takes_too_long_is_answered_in_time_and_worked_on_after_it",
        detector="deadline",
    ),
    PlantedBug(
        "answer that waits until the line is cold",
        "labharness.work.desk.desk:Desk._leave_safe",
        "self.watches = True",
        "self.watches = True\nawait line.watch_until_cold()",
        "test_the_answer_is_in_its_folder_before_the_line_is_watched",
        detector="deadline",
    ),
    PlantedBug(
        "line left warm that is not latched",
        "labharness.work.desk.making_safe:Cooling.watch",
        "self._latch(warm)",
        "pass",
        "test_a_watch_that_is_broken_off_latches_the_warm_line",
    ),
    PlantedBug(
        "line whose watch nobody keeps after the answer",
        "labharness.work.desk.desk:Desk.run",
        "self.cooled = await self._cooling.watch()",
        "pass",
        "test_the_answer_is_in_its_folder_before_the_line_is_watched",
    ),
)
