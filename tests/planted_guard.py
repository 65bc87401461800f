"""Planted bugs in the guard: what keeps a byte from leaving without its reason, and makes safe."""

from planted_bug import PlantedBug

__all__ = ["IN_THE_GUARD"]

IN_THE_GUARD = (
    PlantedBug(
        "latch not saved",
        "labharness/guard/shell.py",
        "self.latch.close(trip)",
        "self.core.latched = True",
        "tests/test_guard_shell.py::test_a_trip_writes_its_bytes_before_its_latch",
    ),
    PlantedBug(
        "read set too wide",
        "labharness/guard/core.py",
        "if request.frame not in port.reads:",
        "if not any(request.frame[:2] == each[:2] for each in port.reads):",
        "tests/test_guard_core.py::test_a_read_with_any_byte_changed_added_or_left_out_is_refused",
        dear=True,
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
        "permit outlives its epoch",
        "labharness/guard/core.py",
        "        self.epoch += 1\n        self._permits.clear()\n",
        "        self.epoch += 0\n",
        "tests/test_guard_core.py::test_whatever_moves_the_epoch_voids_every_permit",
    ),
    PlantedBug(
        "end of the harness's socket not heeded",
        "labharness/guard/session.py",
        '            self._part(f"the socket of the harness closed ({why})")',
        "            self.close()",
        "tests/test_guard_process.py::test_the_end_of_a_socket_is_heeded_before_any_silence",
        dear=True,
    ),
    PlantedBug(
        "heartbeat not heeded",
        "labharness/guard/watch.py",
        "        return now > self.due_s",
        "        return False",
        "tests/test_guard_process.py::test_beats_that_waited_in_the_socket_prove_nothing",
        dear=True,
    ),
    PlantedBug(
        "old beats count as fresh",
        "labharness/guard/watch.py",
        "max(self.heard_s, min(made_s, now))",
        "now",
        "tests/test_guard_process.py::test_beats_that_waited_in_the_socket_prove_nothing",
        dear=True,
    ),
    PlantedBug(
        "stale frame after a lost harness",
        "labharness/guard/process.py",
        "        self._run_procedure(trip, procedure)\n        self.core.disarm()\n",
        "        self.ports.repeat(self.core.procedures[procedure])\n"
        "        self.latch.close(trip)\n",
        "tests/test_guard_kills.py::test_a_harness_that_wakes_up_cannot_use_what_it_had",
        dear=True,
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
        dear=True,
    ),
    PlantedBug(
        "safe table not sent after a crash",
        "labharness/guard/process.py",
        "        if trip is None:\n            return\n",
        "        if True:\n            return\n",
        "tests/test_guard_process.py::test_a_guard_that_comes_back_begins_with_the_safe_table[armed]",
    ),
    PlantedBug(
        "armed while the guard leaves",
        "labharness/guard/process.py",
        "        if self._leaving_s < NEVER:\n            raise",
        "        if False:\n            raise",
        "tests/test_guard_leaves.py::test_a_guard_that_is_told_to_stop_is_not_armed_any_more[15]",
    ),
    PlantedBug(
        "armed line left by its guard",
        "labharness/guard/process.py",
        "        if self.core.armed:  # nothing lets it be",
        "        if False:  # nothing lets it be",
        "tests/test_guard_leaves.py::test_a_guard_that_ends_with_its_line_armed_makes_it_safe",
        dear=True,
    ),
    PlantedBug(
        "refusal taken for obedience",
        "labharness/guard/core.py",
        'error = "" if self._safe_sent is None else disobeyed(request, reply)',
        'error = ""',
        "tests/test_chaos_found.py::"
        "test_each_way_is_off_though_one_safe_frame_was_lost_or_refused_when_the_harness_died"
        "[relays-write_refused]",
    ),
    PlantedBug(
        "refused frame sent again after ten seconds",
        "labharness/guard/process.py",
        "REPEAT_S = 1.0  # a frame",
        "REPEAT_S = 10.0  # a frame",
        "tests/test_kills_while_refused.py::"
        "test_after_a_kill_with_one_frame_lost_or_refused_every_way_is_off[relays-write_refused]",
        dear=True,
    ),
    PlantedBug(
        "only the frame that failed is sent again, not what follows it",
        "labharness/guard/duty.py",
        "tail = () if first is None else self.frames[first:]",
        "tail = tuple(frame for frame in self.frames if frame in self.open)",
        "tests/test_guard_duty.py::"
        "test_a_port_is_sent_its_frames_from_the_first_that_failed_and_in_their_order",
    ),
    PlantedBug(
        "guard that is alone reads nothing back",
        "labharness/guard/process.py",
        "            self.ports.insist(reading=self._alone)",
        "            self.ports.insist(reading=False)",
        "tests/test_guard_alone.py::test_a_guard_that_is_alone_goes_on_until_the_reading_shows_it",
        dear=True,
    ),
    PlantedBug(
        "reading that belies a frame not heeded",
        "labharness/guard/duty.py",
        "            elif on is not None and finished.reply is not None:\n"
        "                on.open.add(each)",
        "            elif on is not None and finished.reply is not None:\n"
        "                on.unseen.discard(each)",
        "tests/test_guard_duty.py::"
        "test_whatever_is_lost_or_refused_on_the_way_all_is_off_when_nothing_is_left_to_do",
    ),
    PlantedBug(
        "procedure of a driver that does not say what obedience is",
        "labharness/line/procedures.py",
        "if not (request.obeyed or isinstance(request.reply, Nothing)):",
        "if False:",
        "tests/test_procedures_fail.py::"
        "test_a_driver_that_does_not_say_what_obedience_is_is_in_no_procedure",
    ),
    PlantedBug(
        "unanswered safe frame not sent again",
        "labharness/guard/duty.py",
        "            if on is not None and not finished.error:\n"
        "                on.open.discard(frame)",
        "            if on is not None:\n                on.open.discard(frame)",
        "tests/test_guard_process.py::test_a_guard_for_one_run_ends_with_it_when_its_work_is_done",
        dear=True,
    ),
    PlantedBug(
        "unanswered safe frame left behind by a harness that goes",
        "labharness/guard/process.py",
        "            if self.core.latched and self.ports.duty.left(reading=False):\n"
        "                self._be_alone()\n",
        "",
        "tests/test_guard_alone.py::"
        "test_what_a_living_harness_left_unanswered_is_sent_again_when_it_has_gone"
        "[tripped, and took its leave]",
        dear=True,
    ),
    PlantedBug(
        "unanswered safe frame left to who only looks on",
        "labharness/guard/process.py",
        "            return\n        self._marking.wanted = procedure\n",
        "            return\n        self._put_off()\n        self._marking.wanted = procedure\n",
        "tests/test_guard_alone.py::test_who_only_looks_on_takes_no_duty_from_the_guard",
        dear=True,
    ),
    PlantedBug(
        "unanswered safe frame kept back by another port",
        "labharness/guard/ports.py",
        "        self._send_again(self.duty.due(at_it, reading=reading))",
        "        if not (at_it or self.busy):\n"
        "            self._send_again(self.duty.due(at_it, reading=reading))",
        "tests/test_guard_alone.py::"
        "test_polls_that_nobody_answers_keep_no_safe_frame_back_on_another_port",
    ),
    PlantedBug(
        "first trip's procedure run after a graver one",
        "labharness/guard/latch.py",
        "later if first is None else replace(first, procedure=later.procedure)",
        "later if first is None else first",
        "tests/test_guard_alone.py::"
        "test_a_graver_trip_leaves_the_first_cause_and_its_own_procedure_in_the_latch",
        dear=True,
    ),
    PlantedBug(
        "procedure of silence run after a trip",
        "labharness/guard/process.py",
        "        procedure = self._known(trip.procedure)\n        self._send_procedure(procedure)",
        "        procedure = self._known(self.latch.marked or trip.procedure)\n"
        "        self._send_procedure(procedure)",
        "tests/test_guard_alone.py::"
        "test_a_guard_that_comes_back_runs_what_ran_last_and_not_what_silence_would_have_run",
        dear=True,
    ),
    PlantedBug(
        "overruled safe frame sent again",
        "labharness/guard/duty.py",
        "if wanted.get(old.channel, old.value) == old.value]",
        "if wanted]",
        "tests/test_guard_alone.py::"
        "test_frames_that_a_later_procedure_overrules_are_not_sent_again[repeat]",
    ),
    PlantedBug(
        "trip waits for the disk of a beat before it",
        "labharness/guard/process.py",
        "        self._marking.wanted = procedure\n\n    def reset",
        "        if self.core.armed:\n            self.latch.mark(procedure)\n\n    def reset",
        "tests/test_guard_first_wave.py::"
        "test_a_disk_that_stands_still_at_a_beat_s_mark_holds_up_no_trip",
        dear=True,
    ),
    PlantedBug(
        "trip waits for the log of a road lost before it",
        "labharness/guard/process.py",
        "            return  # the log waits in memory",
        "            self.log.flush()  # the log waits in memory",
        "tests/test_guard_first_wave.py::"
        "test_a_disk_that_stands_still_at_an_armed_line_s_log_holds_up_no_trip",
        dear=True,
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
        "latch not looked at after a restart",
        "labharness/guard/shell.py",
        "        if latch.trip is not None:\n            core.latched = True\n",
        "",
        "tests/test_failpoints.py::"
        "test_after_a_failing_write_a_restart_finds_the_line_as_it_is"
        "[ramp: replace latch.json 1: dies before]",
    ),
    PlantedBug(
        "mark taken away where no latch is",
        "labharness/guard/latch.py",
        "        if self.write_error:\n            return\n",
        "",
        "tests/test_latch_lost.py::test_a_mark_stays_for_as_long_as_it_stands_for_a_latch",
    ),
    PlantedBug(
        "mark that does not go ends the guard",
        "labharness/guard/latch.py",
        "        with suppress(OSError):\n            self._mark.unlink",
        "        if True:\n            self._mark.unlink",
        "tests/test_guard_process.py::test_a_mark_that_does_not_go_neither_holds_up_nor_ends_the_guard",
        dear=True,
    ),
    PlantedBug(
        "procedure waits for the disk",
        "labharness/guard/process.py",
        "        elif now >= self._disk_s:\n",
        "        else:\n",
        "tests/test_guard_first_wave.py::"
        "test_a_disk_that_stands_still_holds_up_no_frame_of_a_procedure[asked for-latch.new]",
        dear=True,
    ),
    PlantedBug(
        "log of an absence thrown away at a farewell",
        "labharness/guard/process.py",
        "        if kept and not armed:\n",
        "        if not armed:\n",
        "tests/test_guard_process.py::"
        "test_what_a_guard_did_alone_stays_until_a_harness_has_it[goes on]",
        dear=True,
    ),
    PlantedBug(
        "lost guard given up",
        "labharness/guard/remote.py",
        "            await asyncio.sleep(RETURN_S)\n",
        "            return\n",
        "tests/test_remote_guard.py::"
        "test_a_guard_that_cannot_begin_at_first_is_tried_for_as_long_as_the_line_is_open",
        dear=True,
    ),
    PlantedBug(
        "guard that comes back told of a milder trip",
        "labharness/guard/remote.py",
        "        self._trip = trip\n",
        "        self._trip = self._trip or trip\n",
        "tests/test_remote_guard.py::"
        "test_a_guard_that_comes_back_is_told_of_the_gravest_trip_and_not_of_the_first",
        dear=True,
    ),
    PlantedBug(
        "guard that stands still waited for",
        "labharness/guard/remote.py",
        "            self._child.end()\n",
        "            pass\n",
        "tests/test_guarded_line.py::"
        "test_a_guard_that_stands_still_is_replaced_by_one_that_makes_safe",
        dear=True,
    ),
    PlantedBug(
        "dead address waited for",
        "labharness/guard/start.py",
        "OWED_S_MAX if owed else OPEN_S_MAX",
        "OPEN_S_MAX",
        "tests/test_guard_process.py::"
        "test_an_address_that_does_not_answer_holds_up_no_safe_table_on_another",
        dear=True,
    ),
    PlantedBug(
        "port that does not open keeps all others back",
        "labharness/guard/start.py",
        "    if failed and len(failed) == len(roads) and not owed:\n",
        "    if failed and not owed:\n",
        "tests/test_guarded_line.py::"
        "test_an_adapter_that_is_pulled_out_keeps_no_other_port_from_being_made_safe",
        dear=True,
    ),
    PlantedBug(
        "armed with a port that is not open",
        "labharness/guard/process.py",
        "        if shut:\n            raise",
        "        if False:\n            raise",
        "tests/test_remote_guard.py::"
        "test_a_road_that_does_not_open_is_lost_alone_and_keeps_the_line_from_being_armed",
        dear=True,
    ),
    PlantedBug(
        "lost road opened between two frames",
        "labharness/guard/ports.py",
        "                    opening.start()\n",
        "                    opening.run()\n",
        "tests/test_guard_roads.py::"
        "test_roads_that_are_gone_hold_up_no_frame_of_the_others_and_are_opened_again",
        dear=True,
    ),
    PlantedBug(
        "all roads at the guard's door at once",
        "labharness/guard/remote.py",
        "        async with self._opening:  # many roads are opened at once, and it has one door\n",
        "        if True:\n",
        "tests/test_guarded_line.py::"
        "test_a_line_that_nobody_owns_is_made_safe_through_a_guard_of_its_own[quick]",
        dear=True,
    ),
    PlantedBug(
        "reason read before the first byte",
        "labharness/guard/process.py",
        "        self._send_procedure(procedure)\n        self._put_off()\n        try:\n"
        "            trip = read()\n",
        "        self._put_off()\n        try:\n            trip = read()\n"
        "            self._send_procedure(procedure)\n",
        "tests/test_guard_first_wave.py::test_a_reason_that_cannot_be_read_still_latches",
    ),
    PlantedBug(
        "lost road told between two frames",
        "labharness/guard/ports.py",
        "                    lost.append((name, why))",
        "                    self._end(name, why, now)",
        "tests/test_guard_first_wave.py::test_a_road_that_is_lost_is_told_of_after_the_last_byte",
    ),
    PlantedBug(
        "permit outlives its road",
        "labharness/guard/process.py",
        '        self.core.new_epoch()\n        self.log.add("road lost"',
        '        self.log.add("road lost"',
        "tests/test_guard_roads.py::"
        "test_what_was_permitted_before_a_road_was_lost_is_void_on_the_next",
    ),
)
