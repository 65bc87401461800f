"""The planted bugs: each takes one protection away, and one named test must notice.

A promise without such a control proves nothing: a crash test once passed here with the protection
removed. A bug names a symbol and what becomes of it in a copy; if that is not there any more,
the list is wrong and says so.
"""

from planted_answer import IN_THE_ANSWER
from planted_broker import AT_THE_BROKER
from planted_bug import PlantedBug
from planted_callers import TO_CALLERS
from planted_commands import OF_COMMANDS
from planted_confidential import OF_CONFIDENTIAL_DATA
from planted_documents import IN_DOCUMENTS
from planted_doors import AT_THE_OTHER_DOORS
from planted_envelopes import IN_THE_ENVELOPES
from planted_gate import IN_THE_GATE
from planted_growth import IN_THE_GROWTH
from planted_guard import IN_THE_GUARD
from planted_house import IN_THE_HOUSE
from planted_in_step import IN_STEP
from planted_journal import IN_THE_JOURNAL
from planted_labs import IN_THE_SMALL_LABS
from planted_latch import IN_LATCH_AND_LOCK
from planted_proof import IN_THE_PROOF
from planted_retention import OF_RETENTION
from planted_rights import IN_THE_RIGHTS
from planted_sets import IN_INSTRUCTION_SETS
from planted_spectra import IN_SPECTRA
from planted_stored import IN_STORED_SPECTRA
from planted_tasks import IN_THE_TASKS
from planted_texts import IN_THE_TEXTS
from planted_together import KEPT_TOGETHER
from planted_watch import IN_THE_WATCH
from planted_words import IN_THE_WORDS
from planted_work import IN_WORK_THAT_SURVIVES

__all__ = ["PlantedBug"]  # passed on

PLANTED = (
    *OF_COMMANDS,
    *OF_CONFIDENTIAL_DATA,
    *IN_DOCUMENTS,
    *IN_THE_ENVELOPES,
    *IN_THE_GATE,
    *IN_THE_GROWTH,
    *IN_THE_GUARD,
    *IN_STEP,
    *IN_THE_JOURNAL,
    *IN_THE_SMALL_LABS,
    *IN_LATCH_AND_LOCK,
    *IN_THE_PROOF,
    *IN_THE_HOUSE,
    *IN_INSTRUCTION_SETS,
    *IN_SPECTRA,
    *IN_STORED_SPECTRA,
    *IN_THE_TASKS,
    *KEPT_TOGETHER,
    *TO_CALLERS,
    *AT_THE_BROKER,
    *AT_THE_OTHER_DOORS,
    *OF_RETENTION,
    *IN_THE_RIGHTS,
    *IN_THE_TEXTS,
    *IN_THE_WATCH,
    *IN_THE_WORDS,
    *IN_THE_ANSWER,
    *IN_WORK_THAT_SURVIVES,
    PlantedBug(
        "procedure step not verified",
        "labharness.line.trip_response:TripResponse._states",
        "abs(value - wanted.value) <= spec.resolution",
        "True",
        "tests/line/test_trips.py::test_a_step_that_does_not_take_is_reported_as_it_is",
        promise=12,
        dear=True,
    ),
    PlantedBug(
        "unverified end taken for safe",
        "labharness.line.line:Line.settle",
        "not verification.complete and self.memory.trip is None",
        "False and self.memory.trip is None",
        "tests/line/test_failures.py::"
        "test_a_stopped_line_that_nothing_verifies_latches_and_keeps_out_the_next_run",
        promise=12,
        dear=True,
    ),
    PlantedBug(
        "nothing sent after a procedure's own time",
        "labharness.line.trip_response:TripResponse._verify_in_force",
        "self._open and (not self._closed)",
        "False",
        "tests/line/test_trip_response_again.py::"
        "test_a_port_that_comes_back_long_after_is_made_safe_and_told_of_once",
        promise=12,
        detector="byte log",
        dear=True,
    ),
    PlantedBug(
        "way down goes on over a trip",
        "labharness.line.trip_response:TripResponse.bring_down",
        "if self.memory.trip is not None:\n    break",
        "if False:\n    break",
        "tests/line/test_trip_response_again.py::test_the_way_down_ends_at_a_trip_that_comes_meanwhile[laser]",
        promise=15,
    ),
    PlantedBug(
        "another procedure sent over the one in force",
        "labharness.line.trip_response:TripResponse.make_safe",
        "self.memory.trip is not None",
        "False",
        "tests/line/test_trip_response_again.py::"
        "test_nothing_but_the_procedure_in_force_is_sent_while_a_trip_stands",
        promise=15,
        detector="byte log",
    ),
    PlantedBug(
        "what made a latched line safe by hand undone by the next guard",
        "labharness.line.trip_response:TripResponse.make_safe",
        "self.guard.trip(replace(latched, procedure=procedure))",
        "self.guard.repeat(list(self.guard.procedures[procedure]))",
        "tests/line/test_guarded_line.py::"
        "test_what_was_made_safe_by_hand_stays_so_when_another_guard_begins",
        promise=15,
        detector="byte log",
        dear=True,
    ),
    PlantedBug(
        "verified by what was read before another procedure",
        "labharness.line.trip_response:TripResponse._verify_in_force",
        "self._since_s is not None and self.memory.trip is not None",
        "self._since_s is not None and self.memory.trip is not None and (not "
        "any((self.memory.trip.procedure == each.procedure for each in self.verifications)))",
        "tests/line/test_trip_response_again.py::"
        "test_a_procedure_that_comes_back_is_verified_by_what_is_read_after_it[0.05]",
        promise=12,
    ),
    PlantedBug(
        "complete by several looks",
        "labharness.line.trip_response:TripResponse._verify",
        "for _ in range(TRIES_MAX - 1):\n"
        "    open_steps = [each for each, seen in found.items() if seen[1] is not "
        "StepState.VERIFIED]\n"
        "    late = self.loop.time() + 2 * LOOK_S >= until_s\n"
        "    if not open_steps or late or self._wave != wave:\n"
        "        break\n"
        "    self.guard.repeat(tails(frames, {wanted[step].channel for step in open_steps}))\n"
        "    await asyncio.sleep(LOOK_S)\n"
        "    found = await self._states(name, until_s - self.loop.time())",
        "for _ in range(TRIES_MAX - 1):\n"
        "    open_steps = [each for each, seen in found.items() if seen[1] is not "
        "StepState.VERIFIED]\n"
        "    late = self.loop.time() + 2 * LOOK_S >= until_s\n"
        "    if not open_steps or late or self._wave != wave:\n"
        "        break\n"
        "    self.guard.repeat(tails(frames, {wanted[step].channel for step in open_steps}))\n"
        "    await asyncio.sleep(LOOK_S)\n"
        "    looked = await self._states(name, until_s - self.loop.time())\n"
        "    found |= {each: looked[each] for each in open_steps}",
        "tests/line/test_trip_response_again.py::test_complete_is_what_one_look_shows",
        promise=12,
    ),
    PlantedBug(
        "predicted violation overlooked",
        "labharness.lab.wiring.preflight:_Flight.fly",
        "self._violation(executor, why)",
        "None",
        "tests/lab/wiring/test_preflight.py::"
        "test_a_plan_that_would_trip_is_refused_before_anything_is_written",
        promise=9,
        detector="byte log",
        dear=True,
    ),
    PlantedBug(
        "trip of the guard told to nobody",
        "labharness.line.trip_response:TripResponse.__post_init__",
        "self.trip",
        "self._run",
        "tests/safety/alarm/test_alarm_of_a_trip.py::"
        "test_a_trip_that_the_guard_raises_calls_and_is_gone_when_all_is_read_again[guard]",
        promise=23,
        detector="alarm audit",
        daily=True,
    ),
    PlantedBug(
        "trip alarm shelved",
        "labharness.safety.alarm.board",
        "HIDEABLE: Final = frozenset({Severity.FAULT, Severity.WARNING})",
        "HIDEABLE: Final = frozenset(Severity)",
        "tests/safety/alarm/test_alarm_board.py::"
        "test_a_trip_alarm_cannot_be_shelved_suppressed_or_taken_out_of_service",
        promise=21,
        detector="alarm audit",
        daily=True,
    ),
    PlantedBug(
        "graver alarm swallowed by its group",
        "labharness.safety.alarm.board:_grouped",
        "alarm.gravity < group.gravest and recent < CALLS_MAX",
        "False",
        "tests/safety/alarm/test_alarm_board.py::test_a_gas_leak_hours_into_another_trip_calls",
        promise=22,
        detector="alarm audit",
        daily=True,
    ),
    PlantedBug(
        "dead alert channel not told",
        "labharness.line.alarms:LineAlarms._ended",
        "self._raise(CHANNEL + channel, Severity.FAULT, text, source=HOUSE)",
        "pass",
        "tests/safety/alarm/test_alarm_line.py::test_a_channel_that_never_ends_is_dead_after_ten_seconds",
        promise=23,
        detector="alarm audit",
    ),
    PlantedBug(
        "reset without a look at the readings",
        "labharness.line.hindrances:causes_of",
        "found = active_trips(memory, now) + _unknown(memory, trip.channel, now)",
        "found: tuple[str, ...] = ()",
        "tests/lab/operate/test_reset.py::"
        "test_no_reset_opens_the_latch_while_its_cause_stands_or_is_not_known[emergency stop]",
        promise=14,
    ),
    PlantedBug(
        "what was not read taken for gone",
        "labharness.line.hindrances:causes_of",
        "active_trips(memory, now) + _unknown(memory, trip.channel, now)",
        "active_trips(memory, now)",
        "tests/lab/operate/test_reset.py::"
        "test_no_reset_opens_the_latch_while_its_cause_stands_or_is_not_known[gas not read]",
        promise=14,
    ),
    PlantedBug(
        "reset that asks for the first cause alone",
        "labharness.line.hindrances:causes_of",
        "return found + _lost_contacts(memory, instruments, now)",
        "asked = trip.cause is Cause.INTERLOCK_LOST\n"
        "return found + (_lost_contacts(memory, instruments, now) if asked else ())",
        "tests/lab/operate/test_reset.py::"
        "test_no_reset_opens_the_latch_while_its_cause_stands_or_is_not_known"
        "[exhaust lost after the first cause]",
        promise=14,
    ),
    PlantedBug(
        "reset though its cause stands",
        "labharness.lab.operate.idle_line:reset.open_latch",
        "if active:\n    raise NotReset('reset.stands', active=active)",
        "if False:\n    raise NotReset('reset.stands', active=active)",
        "tests/lab/operate/test_reset.py::"
        "test_no_reset_opens_the_latch_while_its_cause_stands_or_is_not_known[gas leak]",
        promise=14,
    ),
    PlantedBug(
        "unattended on instruments that hold",
        "labharness.work.admission.risk:_refusal",
        "context.stays_energised and (not context.attended)",
        "False",
        "tests/envelopes/test_unattended.py::"
        "test_unattended_heating_is_refused_when_an_instrument_would_stay_as_it_is",
        promise=3,
        detector="byte log",
        dear=True,
    ),
    PlantedBug(
        "values set after a stop",
        "labharness.line.line:Line.settle",
        "self.memory.mode is Mode.RUNNING",
        "False",
        "tests/line/test_operate_by_hand_during_a_run.py::test_after_a_stop_nothing_is_set_any_more_by_whomever[stop]",
        promise=14,
        dear=True,
    ),
    PlantedBug(
        "stop refused for its words",
        "labharness.work.desk.by_hand:ByHand._stop",
        "self._active.abort(text)",
        "self._by_hand(asked, 'stop')\nself._owner.abort(text)",
        "tests/line/test_operate_by_hand_during_a_run.py::test_a_stop_is_never_refused_for_its_words[no name]",
        promise=13,
        dear=True,
    ),
    PlantedBug(
        "hold with the laser on",
        "labharness.work.capability.raman_map:add_look",
        "False",
        "True",
        "tests/line/test_operate_by_hand_during_a_run.py::test_no_hold_leaves_the_laser_standing_on_one_spot",
        promise=12,
        dear=True,
    ),
    PlantedBug(
        "hold while a shut tube fills",
        "labharness.work.capability.cvd.planner:_Growth._fill",
        "False",
        "True",
        "tests/line/test_operate_by_hand_during_a_run.py::"
        "test_a_hold_asked_for_while_a_shut_tube_fills_waits_and_can_be_withdrawn",
        promise=10,
        dear=True,
    ),
    PlantedBug(
        "refusal swallowed by half a line",
        "labharness.core.files.durable:append_durably",
        "b'\\n' if cut_short else b''",
        "b''",
        "tests/lab/wiring/test_approvals.py::test_what_is_said_after_a_decision_that_was_cut_short_is_heard",
        promise=20,
        detector="journal audit",
        daily=True,
    ),
    PlantedBug(
        "chance of another process",
        "labharness.core.clock.chance:Chance.stream",
        "random.Random(f'{self.seed}/{path}')",
        "random.Random(f'{self.seed}/{hash(path)}')",
        "tests/chaos/test_chaos.py::"
        "test_the_same_scenario_gives_the_same_digest_here_and_in_a_process_of_other_hashes",
        promise=7,
        detector="referee",
        daily=True,
    ),
    PlantedBug(
        "command that asks whether it is simulated",
        "labharness.line.command:Writer.perform",
        "self._waiting >= WAITING_MAX",
        "self._waiting >= WAITING_MAX and (not self.simulated)",
        "tests/house/test_tidy.py::test_nothing_but_what_wires_the_lab_asks_whether_it_is_simulated",
        promise=8,
        detector="lint",
        daily=True,
    ),
    PlantedBug(
        "over-temperature answered late",
        "labharness.line.poll:Monitor.take",
        "self._answer(trips)",
        "self.loop.call_later(0.5, self._answer, trips)",
        "tests/line/test_deadlines_of_causes.py::"
        "test_a_limit_that_is_passed_trips_within_a_poll_and_a_quarter_second",
        promise=11,
        detector="deadline",
    ),
    PlantedBug(
        "sample kept before the trip it shows",
        "labharness.line.poll:Monitor.take",
        "self._answer(trips)",
        "self.journal.sample(scan.stream, now, values)\nself._answer(trips)",
        "tests/line/test_monitor.py::test_a_trip_goes_before_the_sample_that_showed_it_is_kept",
        promise=13,
        detector="deadline",
    ),
    PlantedBug(
        "writer waits for a foreign lock",
        "labharness.journal.store",
        "BUSY_TIMEOUT_S: Final = 0.01",
        "BUSY_TIMEOUT_S: Final = 1.0",
        "tests/line/test_deadlines_burdened.py::"
        "test_a_trip_keeps_its_software_time_under_any_burden[locked_database]",
        promise=13,
        detector="deadline",
        dear=True,
    ),
    PlantedBug(
        "record that fails stops making safe",
        "labharness.line.poll:Monitor.note",
        "self.journal_lost = str(why)",
        "self.journal_lost = str(why)\nraise",
        "tests/line/test_procedures_fail.py::test_a_trip_waits_for_no_disk[disk full]",
        promise=13,
        detector="deadline",
        dear=True,
    ),
    PlantedBug(
        "planner keeps who waits for it",
        "labharness.line.line:Line.unless_tripped",
        "asyncio.wait((task, tick), return_when=asyncio.FIRST_COMPLETED)",
        "asyncio.wait((task,))",
        "tests/line/test_procedures_fail.py::test_a_trip_does_not_wait_for_a_planner_in_mid_thought",
        promise=13,
        detector="deadline",
        dear=True,
    ),
    PlantedBug(
        "milder trip takes over",
        "labharness.line.trip_response:TripResponse.trip",
        "trip.cause.overrules(None if in_force is None else in_force.cause)",
        "True",
        "tests/line/test_procedures_fail.py::test_of_three_trips_in_any_order_the_worst_is_in_force",
        promise=15,
        daily=True,
    ),
    PlantedBug(
        "too much pressure overruled",
        "labharness.core.vocabulary.trips:Cause",
        "OVER_PRESSURE = 'over_pressure'\n"
        "GAS_LEAK = 'gas_leak_detected'\n"
        "EMERGENCY_STOP_LOOP = 'emergency_stop_loop'",
        "GAS_LEAK = 'gas_leak_detected'\n"
        "EMERGENCY_STOP_LOOP = 'emergency_stop_loop'\n"
        "OVER_PRESSURE = 'over_pressure'",
        "tests/envelopes/test_over_pressure.py::"
        "test_a_tube_whose_outlet_clogs_is_relieved_whatever_else_trips_before_or_after",
        promise=15,
        detector="referee",
    ),
    PlantedBug(
        "relieved tube filled by a stop request",
        "labharness.line.hindrances:stop_procedure",
        "named |= {answers[Cause.STOP_REQUEST], '' if latched is None else latched.procedure}",
        "named = {answers[Cause.STOP_REQUEST], '' if latched is None else latched.procedure}",
        "tests/envelopes/test_over_pressure.py::"
        "test_a_line_that_nobody_owns_is_made_safe_as_the_gravest_cause_asks",
        promise=15,
        detector="referee",
    ),
    PlantedBug(
        "command sent before its intent is on disk",
        "labharness.line.command:Writer.intend",
        "await self.journal.durable(intent)",
        "",
        "tests/line/test_failpoints.py::"
        "test_after_any_failing_write_a_restart_grows_again"
        "[purge: journal commit 1: dies within]",
        promise=16,
        detector="journal audit",
        dear=True,
    ),
    PlantedBug(
        "answer lost to a full disk",
        "labharness.lab.wiring.tasks:TaskRun._keep",
        "OSError",
        "ZeroDivisionError",
        "tests/line/test_failpoints.py::"
        "test_after_any_failing_write_a_restart_grows_again"
        "[ramp: fsync answer.new 1: full]",
        promise=20,
        detector="referee",
        dear=True,
    ),
    PlantedBug(
        "samples with something hidden behind them",
        "labharness.journal.reading:_unpacked",
        "packed.eof and not packed.unused_data",
        "packed.eof",
        "tests/journal/test_journal_store.py::"
        "test_a_block_that_is_not_the_one_measured_is_named[twice]",
        promise=20,
    ),
    PlantedBug(
        "samples unpacked without a bound",
        "labharness.journal.reading:_unpacked",
        "packed.decompress(block, layout.BLOCK_BYTES_MAX)",
        "packed.decompress(block)",
        "tests/journal/test_journal_store.py::test_a_block_is_unpacked_up_to_a_bound",
        promise=20,
    ),
    PlantedBug(
        "record acknowledged before the disk has it",
        "labharness.journal.store:SqliteJournal._open",
        '"""PRAGMA synchronous=FULL"""',
        '"""PRAGMA synchronous=OFF"""',
        "tests/journal/test_journal_store.py::test_a_commit_waits_for_the_disk_itself",
        promise=20,
        detector="journal audit",
    ),
    PlantedBug(
        "record acknowledged into a file that nobody finds",
        "labharness.journal.store:SqliteJournal._commit_queue",
        "file_ids(self.path) != self._opened_ids",
        "False",
        "tests/journal/test_journal_store.py::"
        "test_a_journal_that_was_taken_away_says_that_nothing_is_durable[folder-False]",
        promise=20,
        detector="journal audit",
        dear=True,
    ),
    PlantedBug(
        "failed commit forgets its queue",
        "labharness.journal.store:SqliteJournal._commit_queue",
        "self._block_end_s = -math.inf",
        "self._queue.clear()\nself._block_end_s = -math.inf",
        "tests/journal/test_journal_store.py::test_a_full_disk_stops_the_journal_until_there_is_room",
        promise=20,
        detector="journal audit",
        dear=True,
    ),
    PlantedBug(
        "lost journal overlooked",
        "labharness.line.poll:Monitor.lose_journal",
        "procedure = self.memory.envelope.procedure_of[Cause.JOURNAL_LOST]",
        "return\nprocedure = self.memory.envelope.procedure_of[Cause.JOURNAL_LOST]",
        "tests/line/test_failures.py::test_a_journal_that_is_lost_trips_the_line",
        promise=20,
        dear=True,
    ),
    PlantedBug(
        "latch that a power cut takes back",
        "labharness.core.files.durable:write_durably",
        "sync_folder(path.parent)",
        "",
        "tests/safety/guard/test_latch.py::"
        "test_a_latch_and_its_opening_are_in_their_folder_before_anybody_goes_on",
        promise=14,
        detector="journal audit",
        dear=True,
    ),
    PlantedBug(
        "alarm that a power cut takes back",
        "labharness.safety.alarm.outlets:AlarmFile.append",
        "os.fsync(handle)",
        "",
        "tests/core/files/test_appending.py::test_a_line_is_on_the_disk_before_anybody_goes_on[an alarm]",
        promise=20,
        detector="journal audit",
        dear=True,
    ),
    PlantedBug(
        "refusal that a power cut takes back",
        "labharness.core.files.durable:append_durably",
        "os.fsync(file.fileno())",
        "",
        "tests/core/files/test_appending.py::test_a_line_is_on_the_disk_before_anybody_goes_on[a decision]",
        promise=20,
        detector="journal audit",
        dear=True,
    ),
    PlantedBug(
        "alarm hidden unrecorded",
        "labharness.line.alarms:LineAlarms._take",
        "group = self.board.group_of(fact.alarm)",
        "if self.board.alarms[fact.alarm].state.suppressed_or_shelved:\n"
        "    return\n"
        "group = self.board.group_of(fact.alarm)",
        "tests/safety/alarm/test_alarm_line.py::test_whoever_hides_an_alarm_of_a_run_stands_in_its_journal",
        promise=21,
        detector="journal audit",
        dear=True,
    ),
    PlantedBug(
        "second dead channel told to nobody",
        "labharness.safety.alarm.board:_grouped",
        "alarm.source == HOUSE",
        "False",
        "tests/safety/alarm/test_alarm_line.py::test_a_second_channel_that_dies_is_told_as_the_first_was",
        promise=23,
        detector="alarm audit",
        dear=True,
    ),
    PlantedBug(
        "disk waited for before anybody is told",
        "labharness.line.alarms:LineAlarms._save",
        "self._saving = loop.run_in_executor(None, self.file.append, facts)",
        "self._saving = loop.create_future()\nself._saving.set_result(self.file.append(facts))",
        "tests/safety/alarm/test_alarm_channels.py::test_a_disk_that_stands_still_keeps_nobody_from_being_told",
        promise=23,
        detector="deadline",
        dear=True,
    ),
    PlantedBug(
        "level told by the calendar",
        "labharness.line.alarms:LineAlarms._waited_s",
        "self.clock.now_s()",
        "self.clock.now_s() + self.clock.jumped_s",
        "tests/safety/alarm/test_alarm_line.py::"
        "test_whoever_sets_the_calendar_does_not_change_who_is_told_and_when",
        promise=23,
        detector="alarm audit",
        dear=True,
    ),
    PlantedBug(
        "trip silenced by one that an earlier watch left",
        "labharness.line.alarms:LineAlarms._saw",
        "if name in self._active(name):\n    self._end_unheard(name)",
        "",
        "tests/safety/alarm/test_alarm_line.py::"
        "test_a_trip_calls_though_its_alarm_was_left_standing_by_an_earlier_watch",
        promise=23,
        detector="alarm audit",
        dear=True,
    ),
    PlantedBug(
        "nobody further called for a line that was left",
        "labharness.lab.operate.attend:Attendance._main",
        "await somebody_knows(alarms, clock, self.tell)",
        "",
        "tests/safety/alarm/test_alarm_unanswered.py::"
        "test_the_next_level_is_called_though_the_owner_has_left_the_line",
        promise=23,
        detector="alarm audit",
        dear=True,
    ),
    PlantedBug(
        "shelf without end",
        "labharness.safety.alarm.board:take",
        "not 0 <= fact.shelve_s <= SHELVED_MAX.total_seconds()",
        "False",
        "tests/safety/alarm/test_alarm_board.py::test_no_shelf_lasts_longer_than_the_bound",
        promise=21,
        detector="alarm audit",
        dear=True,
    ),
    PlantedBug(
        "every alarm of a group calls",
        "labharness.safety.alarm.board:_grouped",
        "alarm.gravity < group.gravest and recent < CALLS_MAX",
        "True",
        "tests/safety/alarm/test_alarm_board.py::test_what_follows_a_first_out_joins_its_group_silently",
        promise=22,
        detector="alarm audit",
        dear=True,
    ),
    PlantedBug(
        "overdue proof test overlooked",
        "labharness.lab.config.hazards:HazardRow.missing",
        "age > self.proof_days",
        "False",
        "tests/envelopes/test_unattended.py::"
        "test_unattended_work_is_refused_without_hardware_that_was_tested[overdue]",
        promise=35,
        detector="byte log",
        dear=True,
    ),
    PlantedBug(
        "program started though one segment was not read back",
        "labharness.line.command:Programs._write",
        "found != block.holds",
        "False",
        "tests/line/test_programs.py::"
        "test_a_value_that_was_altered_on_the_way_ends_the_upload_with_one_plain_error",
        promise=9,
    ),
    PlantedBug(
        "half a program left in the instrument",
        "labharness.line.command:Programs._store",
        "(programmer.empty, *rest, blocks[-1])",
        "(*rest, blocks[-1])",
        "tests/line/test_programs.py::"
        "test_a_harness_that_dies_in_an_upload_leaves_a_program_that_ends_at_once",
        promise=1,
        detector="byte log",
    ),
)
