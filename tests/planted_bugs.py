"""The planted bugs: each takes one protection away, and one named test must notice.

A promise without such a control proves nothing: a crash test once passed here with the protection
removed. The bug is an exact replacement in a copy of one file; if the text is not there any more,
the list is wrong and says so.
"""

from dataclasses import dataclass

__all__ = ["PLANTED", "PlantedBug"]


@dataclass(frozen=True, slots=True)
class PlantedBug:
    """One protection taken away.

    Attributes:
        promise: What no longer holds.
        file: Where.
        right: The text that protects.
        wrong: What stands there instead.
        test: The test that must turn red.
        dear: Planted in the long proofs only: its promise has another bug for every day, or it
            takes a whole growth.
    """

    promise: str
    file: str
    right: str
    wrong: str
    test: str
    dear: bool = False


PLANTED = (
    PlantedBug(
        "limit check removed",
        "labharness/kernel/rules.py",
        "if not limit.low <= value <= limit.high:",
        "if False:",
        "tests/test_kernel.py::test_a_limit_is_exact_to_the_last_bit",
    ),
    PlantedBug(
        "trip removed",
        "labharness/kernel/rules.py",
        "if not row.low <= value <= row.high:",
        "if False:",
        "tests/test_trips.py::"
        "test_a_fault_in_the_dwell_runs_its_procedure_verified_and_latched[over_temperature]",
    ),
    PlantedBug(
        "latch not saved",
        "labharness/guard/shell.py",
        "self.latch.close(trip)",
        "self.core.latched = True",
        "tests/test_trips.py::"
        "test_a_fault_in_the_dwell_runs_its_procedure_verified_and_latched[emergency_stop_loop]",
    ),
    PlantedBug(
        "read set too wide",
        "labharness/guard/core.py",
        "if request.frame not in port.reads:",
        "if not any(request.frame[:2] == each[:2] for each in port.reads):",
        "tests/test_guard_core.py::test_a_read_with_any_byte_changed_added_or_left_out_is_refused",
    ),
    PlantedBug(
        "late reply accepted",
        "labharness/guard/core.py",
        "drain_s=max(request.timeout_s, DRAIN_S_MIN)",
        "drain_s=0.0",
        "tests/test_guard_ports.py::"
        "test_a_late_reply_of_the_right_shape_is_never_taken_for_a_fresh_one",
    ),
    PlantedBug(
        "stale reading accepted",
        "labharness/kernel/memory.py",
        "return now - track.at_s <= track.stale_s\n\n    def holds",
        "return True\n\n    def holds",
        "tests/test_kernel.py::test_a_reading_counts_up_to_its_bound_exactly",
    ),
    PlantedBug(
        "procedure step not verified",
        "labharness/line/safing.py",
        "elif abs(value - wanted.value) <= spec.resolution:",
        "elif True:",
        "tests/test_trips.py::test_a_step_that_does_not_take_is_reported_as_it_is",
    ),
    PlantedBug(
        "unverified end taken for safe",
        "labharness/line/line.py",
        "if not verification.complete and",
        "if False and",
        "tests/test_failures.py::"
        "test_a_stopped_line_that_nothing_verifies_latches_and_keeps_out_the_next_run",
    ),
    PlantedBug(
        "purge by timer instead of flow",
        "labharness/kernel/rules.py",
        "passed_cm3 = min(track.value, value) / 60 * gap_s",
        "passed_cm3 = 500 / 60 * gap_s",
        "tests/test_trips.py::test_a_purge_whose_flow_does_not_come_is_never_proven",
    ),
    PlantedBug(
        "interlock not asked",
        "labharness/kernel/rules.py",
        "if condition is not None:\n                goes",
        "if False:\n                goes",
        "tests/test_kernel.py::test_an_interlock_holds_at_its_bound_and_not_below",
    ),
    PlantedBug(
        "permit outlives its epoch",
        "labharness/guard/core.py",
        "        self.epoch += 1\n        self._permits.clear()\n",
        "        self.epoch += 0\n",
        "tests/test_guard_core.py::test_whatever_moves_the_epoch_voids_every_permit",
    ),
    PlantedBug(
        "predicted violation overlooked",
        "labharness/lab/preflight.py",
        "            violation = self._violation(executor, why)\n",
        "            violation = None\n",
        "tests/test_preflight.py::"
        "test_a_plan_that_would_trip_is_refused_before_anything_is_written",
    ),
    PlantedBug(
        "dead bus not noticed",
        "labharness/kernel/rules.py",
        "if age_s > watch.stale_s and",
        "if False and",
        "tests/test_trips.py::test_a_dead_heater_bus_leaves_the_furnace_cold_by_its_contactor",
    ),
    PlantedBug(
        "backfill counted without its fill",
        "labharness/kernel/rules.py",
        "if memory.filled_cm3 >= fill.inert_min",
        "if True or memory.filled_cm3 >= fill.inert_min",
        "tests/test_kernel_proofs.py::test_a_fill_that_no_meter_saw_is_no_backfill",
    ),
    PlantedBug(
        "forbidden state overlooked",
        "labharness/kernel/memory.py",
        "for state in row.forbid:",
        "for state in row.forbid[:0]:",
        "tests/test_kernel_states.py::test_a_ramp_through_a_forbidden_band_is_refused",
    ),
    PlantedBug(
        "vent opened on a vacuum",
        "envelopes/labharness_envelopes/lines/cvd_mos2.toml",
        'shut off"\nguards = ["box.vent"]',
        'shut off"\nguards = ["box.pump"]',
        "tests/test_model.py::test_no_hazard_of_the_tube_is_reachable",
    ),
    PlantedBug(
        "end of the harness's socket not heeded",
        "labharness/guard/session.py",
        '            self._part(f"the socket of the harness closed ({why})")',
        "            self.close()",
        "tests/test_guard_process.py::test_the_end_of_a_socket_is_heeded_before_any_silence",
    ),
    PlantedBug(
        "heartbeat not heeded",
        "labharness/guard/watch.py",
        "        return now > self.due_s",
        "        return False",
        "tests/test_guard_process.py::test_beats_that_waited_in_the_socket_prove_nothing",
    ),
    PlantedBug(
        "old beats count as fresh",
        "labharness/guard/watch.py",
        "max(self.heard_s, min(made_s, now))",
        "now",
        "tests/test_guard_process.py::test_beats_that_waited_in_the_socket_prove_nothing",
    ),
    PlantedBug(
        "stale frame after a lost harness",
        "labharness/guard/process.py",
        "        self._run_procedure(trip, procedure)\n        self.core.disarm()\n",
        "        self.ports.repeat(self.core.procedures[procedure])\n"
        "        self.latch.close(trip)\n",
        "tests/test_guard_kills.py::test_a_harness_that_wakes_up_cannot_use_what_it_had",
    ),
    PlantedBug(
        "guard forgets one safe frame",
        "labharness/guard/armed.py",
        "read_safe(Fields(each, where)) for each in values)",
        "read_safe(Fields(each, where)) for each in values[:-1])",
        "tests/test_guard_process.py::test_the_end_of_a_socket_is_heeded_before_any_silence",
    ),
    PlantedBug(
        "permit used twice",
        "labharness/guard/core.py",
        "        if permit.number <= self.permit_count:",
        "        if False:",
        "tests/test_guard_permits.py::test_a_permit_passes_once",
    ),
    PlantedBug(
        "epoch of a permit not checked",
        "labharness/guard/core.py",
        "        if permit.epoch != self.epoch:",
        "        if False:",
        "tests/test_guard_permits.py::test_what_moves_the_epoch_voids_a_permit_on_its_way[epoch]",
    ),
    PlantedBug(
        "seal of a permit not checked",
        "labharness/guard/session.py",
        "        if not fits(self._key, permit, request, given):",
        "        if False:",
        "tests/test_guard_permits.py::test_no_forged_permit_passes",
    ),
    PlantedBug(
        "safe table not sent after a crash",
        "labharness/guard/process.py",
        "        if mark is None and trip is None:",
        "        if True:",
        "tests/test_guard_process.py::test_a_guard_that_comes_back_begins_with_the_safe_table[armed]",
    ),
    PlantedBug(
        "port open to who does not ask",
        "labharness/link/descriptors.py",
        "fcntl.ioctl(port.fileno(), termios.TIOCEXCL)",
        "termios.tcgetattr(port.fileno())",
        "tests/test_guard_process.py::test_its_ports_are_its_own",
    ),
    PlantedBug(
        "unanswered safe frame not sent again",
        "labharness/guard/ports.py",
        "        if not finished.error:\n            self.unanswered.discard(safe)",
        "        self.unanswered.discard(safe)",
        "tests/test_guard_process.py::test_a_guard_for_one_run_ends_with_it_when_its_work_is_done",
    ),
    PlantedBug(
        "trip alarm shelved",
        "labharness/alarm/states.py",
        "HIDEABLE: Final = frozenset({Severity.FAULT, Severity.WARNING})",
        "HIDEABLE: Final = frozenset(Severity)",
        "tests/test_alarm_states.py::"
        "test_a_trip_alarm_cannot_be_shelved_suppressed_or_taken_out_of_service",
    ),
    PlantedBug(
        "graver alarm swallowed by its group",
        "labharness/alarm/board.py",
        "calls = alarm.gravity < group.gravest and recent < CALLS_MAX",
        "calls = False",
        "tests/test_alarm_board.py::test_a_gas_leak_hours_into_another_trip_calls",
    ),
    PlantedBug(
        "dead alert channel not told",
        "labharness/line/alarms.py",
        "self._raise(CHANNEL + channel, Severity.FAULT, text, source=HOUSE)",
        "pass",
        "tests/test_alarm_line.py::test_a_channel_that_never_ends_is_dead_after_ten_seconds",
    ),
    PlantedBug(
        "unattended on instruments that hold",
        "labharness/admission/risk.py",
        "if context.stays_energised and not context.attended:",
        "if False:",
        "tests/test_unattended.py::"
        "test_unattended_heating_is_refused_when_an_instrument_would_stay_as_it_is",
    ),
    PlantedBug(
        "values set after a stop",
        "labharness/line/line.py",
        "        if self.memory.mode is Mode.RUNNING:  # or a value",
        "        if False:  # or a value",
        "tests/test_hands_in_a_run.py::test_after_a_stop_nothing_is_set_any_more_by_whomever[stop]",
    ),
    PlantedBug(
        "stop refused for its words",
        "labharness/desk/by_hand.py",
        "        self._owner.abort(text)  # first",
        '        self._by_hand(asked, "stop")\n        self._owner.abort(text)  # first',
        "tests/test_hands_in_a_run.py::test_a_stop_is_never_refused_for_its_words[no name]",
    ),
    PlantedBug(
        "hold with the laser on",
        "labharness/capability/cvd/looking.py",
        "steps.holdable = False  # the laser",
        "steps.holdable = True  # the laser",
        "tests/test_hands_in_a_run.py::test_no_hold_leaves_the_laser_standing_on_one_spot",
    ),
    PlantedBug(
        "hold while a shut tube fills",
        "labharness/capability/cvd/planner.py",
        "steps.holdable = False  # argon",
        "steps.holdable = True  # argon",
        "tests/test_hands_in_a_run.py::"
        "test_a_hold_asked_for_while_a_shut_tube_fills_waits_and_can_be_withdrawn",
    ),
    PlantedBug(
        "refusal swallowed by half a line",
        "labharness/lab/approvals.py",
        '(b"\\n" if cut_short else b"")',
        'b""',
        "tests/test_approvals.py::test_what_is_said_after_a_decision_that_was_cut_short_is_heard",
    ),
    PlantedBug(
        "chance of another process",
        "labharness/clock/chance.py",
        'return random.Random(f"{self.seed}/{path}")',
        'return random.Random(f"{self.seed}/{hash(path)}")',
        "tests/test_chaos.py::"
        "test_the_same_scenario_gives_the_same_digest_here_and_in_a_process_of_other_hashes",
        dear=True,
    ),
    PlantedBug(
        "command that asks whether it is simulated",
        "labharness/line/command.py",
        "        if self._waiting >= WAITING_MAX:",
        "        if self._waiting >= WAITING_MAX and not self.simulated:",
        "tests/test_tidy.py::test_nothing_but_what_wires_the_lab_asks_whether_it_is_simulated",
        dear=True,
    ),
    PlantedBug(
        "wrong unit accepted",
        "labharness/kernel/rules.py",
        "    if command.unit != unit:",
        "    if False:",
        "tests/test_kernel_states.py::test_commands_at_the_limits_are_never_clipped",
        dear=True,
    ),
    PlantedBug(
        "over-temperature answered late",
        "labharness/line/line.py",
        "            self.guard.new_epoch()\n        if trips:\n            self._answer(trips)\n",
        "            self.guard.new_epoch()\n        if trips:\n"
        "            self._loop.call_later(0.5, self._answer, trips)\n",
        "tests/test_deadlines_of_causes.py::"
        "test_a_limit_that_is_passed_trips_within_a_poll_and_a_quarter_second",
    ),
    PlantedBug(
        "stuck sensor believed",
        "labharness/kernel/rules.py",
        "or (over and (rise < row.rise_min or span < row.span_min))",
        "or False",
        "tests/test_kernel_plausible.py::"
        "test_a_stuck_sensor_is_found_within_its_time_wherever_it_began_to_stick",
        dear=True,
    ),
    PlantedBug(
        "writer waits for a foreign lock",
        "labharness/journal/store.py",
        "BUSY_TIMEOUT_S: Final = 0.01",
        "BUSY_TIMEOUT_S: Final = 1.0",
        "tests/test_deadlines_burdened.py::"
        "test_a_trip_keeps_its_software_time_under_any_burden[locked_database]",
    ),
    PlantedBug(
        "first wave put off",
        "labharness/guard/shell.py",
        "        for port in self.core.trip(trip.procedure):\n            self._send_safe(port)\n",
        "        for port in self.core.trip(trip.procedure):\n"
        "            self._loop.call_later(1.0, self._send_safe, port)\n",
        "tests/test_deadlines_burdened.py::"
        "test_a_trip_keeps_its_software_time_under_any_burden[ten_thousand_commands]",
        dear=True,
    ),
    PlantedBug(
        "record that fails stops making safe",
        "labharness/line/line.py",
        "            self.journal_lost = str(why)\n\n    def _take",
        "            self.journal_lost = str(why)\n            raise\n\n    def _take",
        "tests/test_procedures_fail.py::test_a_trip_waits_for_no_disk[disk full]",
        dear=True,
    ),
    PlantedBug(
        "planner keeps who waits for it",
        "labharness/line/line.py",
        "await asyncio.wait((task, tick), return_when=asyncio.FIRST_COMPLETED)",
        "await asyncio.wait((task,))",
        "tests/test_procedures_fail.py::test_a_trip_does_not_wait_for_a_planner_in_mid_thought",
        dear=True,
    ),
    PlantedBug(
        "reset that is a start",
        "labharness/kernel/modes.py",
        "    Mode.TRIPPED: frozenset({Mode.DISARMED}),",
        "    Mode.TRIPPED: frozenset({Mode.DISARMED, Mode.RUNNING}),",
        "tests/test_kernel.py::test_the_table_of_modes_is_this_one",
        dear=True,
    ),
    PlantedBug(
        "milder trip takes over",
        "labharness/line/safing.py",
        "standing.cause.rank <= trip.cause.rank",
        "False",
        "tests/test_procedures_fail.py::test_of_three_trips_in_any_order_the_worst_is_in_force",
    ),
    PlantedBug(
        "command sent before its intent is on disk",
        "labharness/line/command.py",
        "            await self._journal.durable(intent)\n",
        "",
        "tests/test_failpoints.py::"
        "test_after_a_failing_write_a_restart_finds_the_line_as_it_is"
        "[purge: journal commit 1: dies within]",
        dear=True,
    ),
    PlantedBug(
        "latch not looked at after a restart",
        "labharness/guard/shell.py",
        "        if latch.trip is not None:\n            core.latched = True\n",
        "",
        "tests/test_failpoints.py::"
        "test_after_a_failing_write_a_restart_finds_the_line_as_it_is"
        "[ramp: replace latch.json 1: dies before]",
        dear=True,
    ),
    PlantedBug(
        "answer lost to a full disk",
        "labharness/lab/tasks.py",
        "        except OSError as why:  # who asked",
        "        except ZeroDivisionError as why:  # who asked",
        "tests/test_failpoints.py::"
        "test_after_a_failing_write_a_restart_finds_the_line_as_it_is"
        "[ramp: fsync answer.new 1: full]",
        dear=True,
    ),
    PlantedBug(
        "record acknowledged before the disk has it",
        "labharness/journal/store.py",
        "PRAGMA synchronous=FULL",
        "PRAGMA synchronous=OFF",
        "tests/test_journal_store.py::test_a_commit_waits_for_the_disk_itself",
    ),
    PlantedBug(
        "failed commit forgets its queue",
        "labharness/journal/store.py",
        "            self._failure = str(error)\n",
        "            self._failure = str(error)\n            self._queue.clear()\n",
        "tests/test_journal_store.py::test_a_full_disk_stops_the_journal_until_there_is_room",
        dear=True,
    ),
    PlantedBug(
        "lost journal overlooked",
        "labharness/line/line.py",
        "        procedure = self.envelope.procedure_of[Cause.JOURNAL_LOST]\n",
        "        return\n        procedure = self.envelope.procedure_of[Cause.JOURNAL_LOST]\n",
        "tests/test_failures.py::test_a_journal_that_is_lost_trips_the_line",
        dear=True,
    ),
    PlantedBug(
        "shelf without end",
        "labharness/alarm/board.py",
        "    if not 0 <= fact.shelve_s <= SHELVED_MAX.total_seconds():",
        "    if False:",
        "tests/test_alarm_board.py::test_no_shelf_lasts_longer_than_the_bound",
        dear=True,
    ),
    PlantedBug(
        "every alarm of a group calls",
        "labharness/alarm/board.py",
        "calls = alarm.gravity < group.gravest and recent < CALLS_MAX",
        "calls = True",
        "tests/test_alarm_board.py::test_what_follows_a_first_out_joins_its_group_silently",
        dear=True,
    ),
    PlantedBug(
        "kernel reaches out of its room",
        "labharness/kernel/rules.py",
        "\nimport math\n",
        "\nimport math\nimport os\n",
        "tests/test_tidy.py::test_the_kernel_imports_only_what_is_listed",
    ),
    PlantedBug(
        "overdue proof test overlooked",
        "labharness/lab/hazards.py",
        "        if age > self.proof_days:",
        "        if False:",
        "tests/test_unattended.py::"
        "test_unattended_work_is_refused_without_hardware_that_was_tested[overdue]",
        dear=True,
    ),
    PlantedBug(
        "program started though one segment was not read back",
        "labharness/line/upload.py",
        "        found = await self._found(name, block)\n        if found != block.holds:",
        "        found = await self._found(name, block)\n        if False:",
        "tests/test_programs.py::"
        "test_a_value_that_was_altered_on_the_way_ends_the_upload_with_one_plain_error",
    ),
    PlantedBug(
        "half a program left in the instrument",
        "labharness/line/upload.py",
        "for block in (programmer.empty, *rest, blocks[-1]):",
        "for block in (*rest, blocks[-1]):",
        "tests/test_programs.py::"
        "test_a_harness_that_dies_in_an_upload_leaves_a_program_that_ends_at_once",
    ),
    PlantedBug(
        "reason read before the first byte",
        "labharness/guard/process.py",
        "        self._send_procedure(procedure)\n        try:\n            trip = read()\n",
        "        try:\n            trip = read()\n            self._send_procedure(procedure)\n",
        "tests/test_guard_first_wave.py::test_a_reason_that_cannot_be_read_still_latches",
    ),
    PlantedBug(
        "lost road told between two frames",
        "labharness/guard/ports.py",
        "                    lost.append((name, why))",
        "                    self._end(name, why, now)",
        "tests/test_guard_first_wave.py::test_a_road_that_is_lost_is_told_of_after_the_last_byte",
    ),
)
