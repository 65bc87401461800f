"""Planted bugs in the guard: what keeps a byte from leaving without its reason, and makes safe."""

from planted_bug import PlantedBug

IN_THE_GUARD = (
    PlantedBug(
        "a guard that tries in vain told by nobody",
        "labharness.lab.doctor.machine:look",
        "_not_safe(plan) if latch.trip is not None else ()",
        "()",
        "tests/lab/doctor/test_doctor_ports.py::test_a_guard_that_tries_in_vain_is_found_by_port_and_since_when_until_it_has_made_safe",
        promise=46,
    ),
    PlantedBug(
        "an echo taken for an answer",
        "labharness.safety.guard.port:Port.put",
        "frame if self.echoes else b''",
        "b''",
        "tests/safety/guard/test_echoes.py::test_an_echo_alone_is_never_an_answer",
        promise=4,
        detector="byte log",
    ),
    PlantedBug(
        "latch not saved",
        "labharness.safety.guard.shell:LoopGuard.trip",
        "self.latch.close(trip)",
        "self.core.latched = True",
        "tests/safety/guard/test_guard_shell.py::test_a_trip_writes_its_bytes_before_its_latch",
        promise=14,
    ),
    PlantedBug(
        "read set too wide",
        "labharness.safety.guard.core:GuardCore.send",
        "request.frame not in port.reads",
        "not any((request.frame[:2] == each[:2] for each in port.reads))",
        "tests/safety/guard/test_guard_core.py::test_a_read_with_any_byte_changed_added_or_left_out_is_refused",
        promise=4,
        detector="byte log",
        dear=True,
    ),
    PlantedBug(
        "late reply accepted",
        "labharness.safety.guard.port:Port._bad",
        "self._quiet_s",
        "0.0",
        "tests/safety/guard/test_guard_ports.py::"
        "test_a_late_reply_of_the_right_shape_is_never_taken_for_a_fresh_one",
        promise=11,
        detector="byte log",
    ),
    PlantedBug(
        "permit outlives its epoch",
        "labharness.safety.guard.core:GuardCore.new_epoch",
        "self.epoch += 1\nself._permits.clear()",
        "self.epoch += 0",
        "tests/safety/guard/test_guard_core.py::test_whatever_moves_the_epoch_voids_every_permit",
        promise=5,
        daily=True,
    ),
    PlantedBug(
        "end of the harness's socket not heeded",
        "labharness.safety.guard.harness:HarnessSession.hear",
        "self._part(f'the socket of the harness closed ({why})')",
        "self.close()",
        "tests/safety/guard/test_guard_process.py::test_the_end_of_a_socket_is_heeded_before_any_silence",
        promise=1,
        detector="deadline",
        dear=True,
    ),
    PlantedBug(
        "heartbeat not heeded",
        "labharness.safety.guard.harness:HarnessWatch.overdue",
        "now > self.due_s",
        "False",
        "tests/safety/guard/test_guard_process.py::test_heartbeats_that_waited_in_the_socket_prove_nothing",
        promise=2,
        detector="deadline",
        dear=True,
    ),
    PlantedBug(
        "old heartbeats count as fresh",
        "labharness.safety.guard.harness:HarnessWatch.heartbeat",
        "max(self.heard_s, min(made_s, now))",
        "now",
        "tests/safety/guard/test_guard_process.py::test_heartbeats_that_waited_in_the_socket_prove_nothing",
        promise=2,
        detector="deadline",
        dear=True,
    ),
    PlantedBug(
        "stale frame after a lost harness",
        "labharness.safety.guard.process:ProcessGuard._lose",
        "self._send_procedure(procedure)\nself.latch.hold(trip)\nself.core.disarm()",
        "self.ports.repeat(self.core.procedures[procedure])\nself.latch.close(trip)",
        "tests/safety/guard/test_guard_kills.py::test_a_harness_that_wakes_up_cannot_use_what_it_had",
        promise=1,
        detector="byte log",
        dear=True,
    ),
    PlantedBug(
        "guard forgets one safe frame",
        "labharness.safety.guard.armed:_read_procedure",
        "(messages.read_safe(Fields(each, where)) for each in values)",
        "(messages.read_safe(Fields(each, where)) for each in values[:-1])",
        "tests/safety/guard/test_guard_process.py::test_the_end_of_a_socket_is_heeded_before_any_silence",
        promise=1,
        detector="byte log",
        daily=True,
    ),
    PlantedBug(
        "permit used twice",
        "labharness.safety.guard.core:GuardCore.admit",
        "permit.number <= self.permit_count",
        "False",
        "tests/safety/guard/test_guard_permits.py::test_a_permit_passes_once",
        promise=5,
        detector="byte log",
    ),
    PlantedBug(
        "epoch of a permit not checked",
        "labharness.safety.guard.core:GuardCore._use",
        "permit.epoch != self.epoch",
        "False",
        "tests/safety/guard/test_guard_permits.py::test_what_moves_the_epoch_voids_a_permit_on_its_way[epoch]",
        promise=5,
        detector="byte log",
    ),
    PlantedBug(
        "seal of a permit not checked",
        "labharness.safety.guard.harness:HarnessSession._permitted",
        "not messages.fits(self._key, permit, request, said['seal'])",
        "False",
        "tests/safety/guard/test_guard_permits.py::test_no_forged_permit_passes",
        promise=4,
        detector="byte log",
        dear=True,
    ),
    PlantedBug(
        "null taken for any field of a message",
        "labharness.safety.guard.messages:read_fields",
        "kind[-1] == '?' and fields.null(name)",
        "fields.null(name)",
        "tests/safety/guard/test_guard_fields.py::test_a_request_is_held_to_its_bounds",
        promise=4,
    ),
    PlantedBug(
        "time to settle of an armed request without a bound",
        "labharness.safety.guard.messages",
        "_REQUEST = kinds_of('frame raw, reply rule, timeout_s seconds, settle_s seconds, "
        "transaction transaction?, obeyed raw')",
        "_REQUEST = kinds_of('frame raw, reply rule, timeout_s seconds, settle_s number, "
        "transaction transaction?, obeyed raw')",
        "tests/safety/guard/test_guard_fields.py::test_a_request_is_held_to_its_bounds",
        promise=4,
    ),
    PlantedBug(
        "field of a message that nobody knows passed over",
        "labharness.safety.guard.messages:read_all",
        "fields.end()",
        "",
        "tests/safety/guard/test_guard_fields.py::test_a_request_is_held_to_its_bounds",
        promise=4,
    ),
    PlantedBug(
        "safe table not sent after a crash",
        "labharness.safety.guard.process:ProcessGuard._begin",
        "trip is None",
        "True",
        "tests/safety/guard/test_guard_process.py::test_a_guard_that_comes_back_begins_with_the_safe_table[armed]",
        promise=3,
        detector="byte log",
        daily=True,
    ),
    PlantedBug(
        "armed while the guard leaves",
        "labharness.safety.guard.process:ProcessGuard.arm",
        "self._leaving_s < NEVER",
        "False",
        "tests/safety/guard/test_guard_leaves.py::test_a_guard_that_is_told_to_stop_is_not_armed_any_more[15]",
        promise=3,
    ),
    PlantedBug(
        "armed line left by its guard",
        "labharness.safety.guard.process:ProcessGuard.run",
        "self.core.armed",
        "False",
        "tests/safety/guard/test_guard_leaves.py::test_a_guard_that_ends_with_its_line_armed_makes_it_safe",
        promise=3,
        detector="byte log",
        dear=True,
    ),
    PlantedBug(
        "refusal taken for obedience",
        "labharness.safety.guard.port:Port._proven",
        "'' if self._safe_sent is None else disobeyed(request, reply)",
        '""""""',
        "tests/chaos/test_chaos_found.py::"
        "test_each_way_is_off_though_one_safe_frame_was_lost_or_refused_when_the_harness_died"
        "[relays-write_refused]",
        promise=12,
        detector="referee",
    ),
    PlantedBug(
        "refused frame sent again after ten seconds",
        "labharness.safety.guard.process",
        "REPEAT_S = 1.0",
        "REPEAT_S = 10.0",
        "tests/safety/guard/test_kills_while_refused.py::"
        "test_after_a_kill_with_one_frame_lost_or_refused_every_way_is_off[relays-write_refused]",
        promise=1,
        detector="deadline",
        dear=True,
    ),
    PlantedBug(
        "only the frame that failed is sent again, not what follows it",
        "labharness.safety.guard.duty:_OnPort.again",
        "() if first is None else self.frames[first:]",
        "tuple((frame for frame in self.frames if frame in self.open))",
        "tests/safety/guard/test_guard_core.py::"
        "test_a_port_is_sent_its_frames_from_the_first_that_failed_and_in_their_order",
        promise=12,
        detector="byte log",
    ),
    PlantedBug(
        "guard that is alone reads nothing back",
        "labharness.safety.guard.process:ProcessGuard._repeat",
        "self._alone",
        "False",
        "tests/safety/guard/test_guard_alone.py::test_a_guard_that_is_alone_goes_on_until_the_reading_shows_it",
        promise=12,
        detector="byte log",
        dear=True,
    ),
    PlantedBug(
        "reading that belies a frame not heeded",
        "labharness.safety.guard.duty:Duty.ended",
        "on.open.add",
        "on.unseen.discard",
        "tests/safety/guard/test_guard_core.py::"
        "test_whatever_is_lost_or_refused_on_the_way_all_is_off_when_nothing_is_left_to_do",
        promise=12,
    ),
    PlantedBug(
        "procedure of a driver that does not say what obedience is",
        "labharness.line.procedures:_compile",
        "not (request.obeyed or isinstance(request.reply, Nothing))",
        "False",
        "tests/line/test_procedures_fail.py::"
        "test_a_driver_that_does_not_say_what_obedience_is_is_in_no_procedure",
        promise=12,
    ),
    PlantedBug(
        "unanswered safe frame not sent again",
        "labharness.safety.guard.duty:Duty.ended",
        "if on is not None and (not finished.error):\n    on.open.discard(frame)",
        "if on is not None:\n    on.open.discard(frame)",
        "tests/safety/guard/test_guard_process.py::test_a_guard_for_one_run_ends_with_it_when_its_work_is_done",
        promise=12,
        detector="byte log",
        dear=True,
    ),
    PlantedBug(
        "unanswered safe frame left behind by a harness that goes",
        "labharness.safety.guard.process:ProcessGuard._drop",
        "if self.core.latched and self.ports.duty.left(reading=False):\n    self._look_again(REPEAT_S, alone=True)",
        "",
        "tests/safety/guard/test_guard_alone.py::"
        "test_what_a_living_harness_left_unanswered_is_sent_again_when_it_has_gone"
        "[tripped, and took its leave]",
        promise=12,
        detector="byte log",
        dear=True,
    ),
    PlantedBug(
        "unanswered safe frame left to who only looks on",
        "labharness.safety.guard.process:ProcessGuard.heartbeat",
        "self._marker.wanted = procedure",
        "self._look_again(PUTS_OFF_S, alone=False)\nself._marker.wanted = procedure",
        "tests/safety/guard/test_guard_alone.py::test_who_only_looks_on_takes_no_duty_from_the_guard",
        promise=12,
        detector="byte log",
        dear=True,
    ),
    PlantedBug(
        "unanswered safe frame kept back by another port",
        "labharness.safety.guard.ports:Ports.insist",
        "self._send_again(self.duty.due(at_it, reading=reading))",
        "if not (at_it or self.busy):\n    self._send_again(self.duty.due(at_it, reading=reading))",
        "tests/safety/guard/test_guard_alone.py::"
        "test_polls_that_nobody_answers_keep_no_safe_frame_back_on_another_port",
        promise=12,
        detector="byte log",
    ),
    PlantedBug(
        "first trip's procedure run after a graver one",
        "labharness.safety.guard.latch:joined",
        "replace(first, procedure=later.procedure)",
        "first",
        "tests/safety/guard/test_guard_alone.py::"
        "test_a_graver_trip_leaves_the_first_cause_and_its_own_procedure_in_the_latch",
        promise=15,
        detector="byte log",
        dear=True,
    ),
    PlantedBug(
        "procedure of silence run after a trip",
        "labharness.safety.guard.process:ProcessGuard._begin",
        "self._known(trip.procedure)",
        "self._known(self.latch.marker or trip.procedure)",
        "tests/safety/guard/test_guard_alone.py::"
        "test_a_guard_that_comes_back_runs_what_ran_last_and_not_what_silence_would_have_run",
        promise=15,
        detector="byte log",
        dear=True,
    ),
    PlantedBug(
        "overruled safe frame sent again",
        "labharness.safety.guard.duty:Duty.add",
        "[old for old in self.open() if wanted.get(old.channel, old.value) == old.value]",
        "[old for old in self.open() if wanted]",
        "tests/safety/guard/test_guard_alone.py::"
        "test_frames_that_a_later_procedure_overrules_are_not_sent_again[repeat]",
        promise=12,
        detector="byte log",
    ),
    PlantedBug(
        "trip waits for the disk of a heartbeat before it",
        "labharness.safety.guard.process:ProcessGuard.heartbeat",
        "self._marker.wanted = procedure",
        "if self.core.armed:\n    self.latch.set_marker(procedure)",
        "tests/safety/guard/test_guard_first_wave.py::"
        "test_a_disk_that_stands_still_at_a_heartbeat_s_mark_holds_up_no_trip",
        promise=13,
        detector="deadline",
        dear=True,
    ),
    PlantedBug(
        "trip waits for the log of a link lost before it",
        "labharness.safety.guard.process:ProcessGuard._write_down",
        "return",
        "self.log.flush()",
        "tests/safety/guard/test_guard_first_wave.py::"
        "test_a_disk_that_stands_still_at_an_armed_line_s_log_holds_up_no_trip",
        promise=13,
        detector="deadline",
        dear=True,
    ),
    PlantedBug(
        "first wave put off",
        "labharness.safety.guard.shell:LoopGuard.trip",
        "self._send_safe(port)",
        "self._loop.call_later(1.0, self._send_safe, port)",
        "tests/line/test_deadlines_burdened.py::"
        "test_a_trip_keeps_its_software_time_under_any_burden[ten_thousand_commands]",
        promise=13,
        detector="deadline",
        dear=True,
    ),
    PlantedBug(
        "latch not looked at after a restart",
        "labharness.safety.guard.shell:LoopGuard.__init__",
        "if latch.trip is not None:\n    core.latched = True",
        "",
        "tests/line/test_failpoints.py::"
        "test_after_a_failing_write_a_restart_finds_the_line_as_it_is"
        "[ramp: replace latch.json 1: dies before]",
        promise=16,
        daily=True,
    ),
    PlantedBug(
        "mark taken away where no latch is",
        "labharness.safety.guard.latch:Latch.clear_marker",
        "if self.write_error:\n    return",
        "",
        "tests/safety/guard/test_latch_lost.py::test_a_mark_stays_for_as_long_as_it_stands_for_a_latch",
        promise=14,
        daily=True,
    ),
    PlantedBug(
        "mark that does not go ends the guard",
        "labharness.safety.guard.latch:Latch.clear_marker",
        "with suppress(OSError):\n"
        "    self._marker_file.unlink(missing_ok=True)\n"
        "    self.marker = None\n"
        "    if self._ports is not None and self.trip is None:\n"
        "        self._ports.clear()",
        "if True:\n"
        "    self._marker_file.unlink(missing_ok=True)\n"
        "    self.marker = None\n"
        "    if self._ports is not None and self.trip is None:\n"
        "        self._ports.clear()",
        "tests/safety/guard/test_guard_process.py::test_a_mark_that_does_not_go_neither_holds_up_nor_ends_the_guard",
        promise=12,
        dear=True,
    ),
    PlantedBug(
        "procedure waits for the disk",
        "labharness.safety.guard.process:ProcessGuard._keep_time",
        "if now >= self._disk_s:\n    self._write_down(now)",
        "self._write_down(now)",
        "tests/safety/guard/test_guard_first_wave.py::"
        "test_a_disk_that_stands_still_holds_up_no_frame_of_a_procedure[asked for-latch.new]",
        promise=13,
        detector="deadline",
        dear=True,
    ),
    PlantedBug(
        "offline log thrown away at a farewell",
        "labharness.safety.guard.process:ProcessGuard.goodbye",
        "kept and (not armed)",
        "not armed",
        "tests/safety/guard/test_guard_process.py::"
        "test_what_a_guard_did_alone_stays_until_a_harness_has_it[goes on]",
        promise=20,
        detector="journal audit",
        dear=True,
    ),
    PlantedBug(
        "lost guard given up",
        "labharness.safety.guard.remote:RemoteGuard._return",
        "await asyncio.sleep(RETURN_S)",
        "return",
        "tests/safety/guard/test_remote_guard.py::"
        "test_a_guard_that_cannot_begin_at_first_is_tried_for_as_long_as_the_line_is_open",
        promise=3,
        detector="byte log",
        dear=True,
    ),
    PlantedBug(
        "guard that comes back told of a milder trip",
        "labharness.safety.guard.remote:RemoteGuard.trip",
        "self._trip = trip",
        "self._trip = self._trip or trip",
        "tests/safety/guard/test_remote_guard.py::"
        "test_a_guard_that_comes_back_is_told_of_the_gravest_trip_and_not_of_the_first",
        promise=15,
        detector="byte log",
        dear=True,
    ),
    PlantedBug(
        "guard that stands still waited for",
        "labharness.safety.guard.remote:RemoteGuard.heartbeat",
        "self._child.end()",
        "pass",
        "tests/line/test_guarded_line.py::"
        "test_a_guard_that_stands_still_is_replaced_by_one_that_makes_safe",
        promise=3,
        detector="deadline",
        dear=True,
    ),
    PlantedBug(
        "dead address waited for",
        "labharness.safety.guard.process:_open_links.open_one",
        "links[name].open(OWED_S_MAX if owed else OPEN_S_MAX)",
        "links[name].open(OPEN_S_MAX)",
        "tests/safety/guard/test_guard_process.py::"
        "test_an_address_that_does_not_answer_holds_up_no_safe_table_on_another",
        promise=3,
        detector="deadline",
        dear=True,
    ),
    PlantedBug(
        "port that does not open keeps all others back",
        "labharness.safety.guard.process:_open_links",
        "failed and len(failed) == len(links) and (not owed)",
        "failed and (not owed)",
        "tests/line/test_guarded_line.py::"
        "test_an_adapter_that_is_pulled_out_keeps_no_other_port_from_being_made_safe",
        promise=12,
        dear=True,
    ),
    PlantedBug(
        "armed with a port that is not open",
        "labharness.safety.guard.process:ProcessGuard.arm",
        "if shut:\n    raise NotPermitted(f\"not all ports are open: {', '.join(shut)}\")",
        "if False:\n    raise NotPermitted(f\"not all ports are open: {', '.join(shut)}\")",
        "tests/safety/guard/test_remote_guard.py::"
        "test_a_link_that_does_not_open_is_lost_alone_and_keeps_the_line_from_being_armed",
        promise=3,
        detector="byte log",
        dear=True,
    ),
    PlantedBug(
        "lost link opened between two frames",
        "labharness.safety.guard.ports:Ports.reopen",
        "opening.start",
        "opening.run",
        "tests/safety/guard/test_guard_links.py::"
        "test_links_that_are_gone_hold_up_no_frame_of_the_others_and_are_opened_again",
        promise=13,
        detector="deadline",
        dear=True,
    ),
    PlantedBug(
        "all links at the guard's door at once",
        "labharness.safety.guard.remote:RemoteGuard.open",
        "async with self._opening:\n    if self._transport is None:\n        await self._open()",
        "if True:\n    if self._transport is None:\n        await self._open()",
        "tests/line/test_guarded_line.py::"
        "test_a_line_that_nobody_owns_is_made_safe_through_a_guard_of_its_own[quick]",
        promise=12,
        dear=True,
    ),
    PlantedBug(
        "reason read before the first byte",
        "labharness.safety.guard.process:ProcessGuard.trip",
        "self._send_procedure(procedure)\n"
        "self._look_again(PUTS_OFF_S, alone=False)\n"
        "try:\n"
        "    trip = read()\n"
        "except BadFields as why:\n"
        "    self.latch.hold(self._trip_of('harness', str(why), procedure))\n"
        "    raise",
        "self._look_again(PUTS_OFF_S, alone=False)\n"
        "try:\n"
        "    trip = read()\n"
        "    self._send_procedure(procedure)\n"
        "except BadFields as why:\n"
        "    self.latch.hold(self._trip_of('harness', str(why), procedure))\n"
        "    raise",
        "tests/safety/guard/test_guard_first_wave.py::test_a_reason_that_cannot_be_read_still_latches",
        promise=13,
        detector="byte log",
        daily=True,
    ),
    PlantedBug(
        "frame of a procedure on the wire that is not seen as making safe",
        "labharness.safety.guard.port:Port.makes_safe",
        "self._safe_sent is not None",
        "False",
        "tests/safety/guard/test_guard_ports.py::"
        "test_a_port_makes_safe_until_its_last_frame_has_ended_whatever_gave_way_to_it",
        promise=13,
        detector="byte log",
    ),
    PlantedBug(
        "lost link told between two frames",
        "labharness.safety.guard.ports:Ports._send_safe",
        "lost.append((name, why))",
        "self._end(name, why, now)",
        "tests/safety/guard/test_guard_first_wave.py::test_a_link_that_is_lost_is_told_of_after_the_last_byte",
        promise=13,
        detector="byte log",
    ),
    PlantedBug(
        "permit outlives its link",
        "labharness.safety.guard.process:ProcessGuard._link_lost",
        "self.core.new_epoch()",
        "",
        "tests/safety/guard/test_guard_links.py::"
        "test_what_was_permitted_before_a_link_was_lost_is_void_on_the_next",
        promise=5,
        detector="byte log",
    ),
)
