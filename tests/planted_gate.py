"""Planted bugs in the gate: kernel, line, links and envelopes."""

from planted_bug import PlantedBug

IN_THE_GATE = (
    PlantedBug(
        "limit check removed",
        "labharness.safety.kernel.judging:judge",
        "not limit.low <= value <= limit.high",
        "False",
        "tests/safety/kernel/test_kernel.py::test_a_limit_is_exact_to_the_last_bit",
        promise=9,
        daily=True,
    ),
    PlantedBug(
        "trip removed",
        "labharness.safety.kernel.observing:observe",
        "not row.low <= value <= row.high",
        "False",
        "tests/safety/kernel/test_kernel.py::test_a_reading_outside_its_bounds_trips_in_every_mode",
        promise=11,
        daily=True,
    ),
    PlantedBug(
        "stale reading accepted",
        "labharness.safety.kernel.tracks:lacking",
        "now - track.at_s > track.stale_s or not bound.low <= track.value <= bound.high",
        "not bound.low <= track.value <= bound.high",
        "tests/safety/kernel/test_kernel.py::test_a_reading_counts_up_to_its_bound_exactly",
        promise=9,
    ),
    PlantedBug(
        "a command that takes away what heat needs confirmed, and then tripped",
        "labharness.safety.kernel.judging:_takes_away",
        "not memory.energised(rule, now)",
        "True",
        "tests/safety/kernel/test_kernel_plausible.py::"
        "test_a_command_is_refused_just_where_its_confirmed_value_would_trip",
        promise=10,
    ),
    PlantedBug(
        "a value confirmed whose own reading then trips",
        "labharness.safety.kernel.judging:_trips",
        "(limit.readback or limit.channel, *limit.moves)",
        "(limit.channel,)",
        "tests/safety/kernel/test_kernel_plausible.py::"
        "test_a_value_is_refused_just_where_its_own_reading_would_trip[argon.flow]",
        promise=11,
    ),
    PlantedBug(
        "setpoint left over from before that trips as soon as the line is armed",
        "labharness.line.line:Line.hindrances",
        "found += left_over(self.memory, self.instruments, safe_table, self._loop.time())",
        "pass",
        "tests/work/desk/test_what_stands.py::"
        "test_a_setpoint_left_over_is_refused_before_approval_and_never_trips",
        promise=9,
    ),
    PlantedBug(
        "plan approved that heats a controller in manual",
        "labharness.line.effects:idle_steps",
        "not any(map(acts, (first, *planned.get(setter, ()))))",
        "False",
        "tests/work/desk/test_what_stands.py::"
        "test_a_controller_that_stays_in_manual_is_refused_before_approval_with_the_cure",
        promise=9,
    ),
    PlantedBug(
        "what a setpoint moves forgotten",
        "labharness.lab.config.kernel_envelope:build_envelope",
        "follows.get(row.channel, ())",
        "()",
        "tests/lab/config/test_follows.py::"
        "test_gas_is_not_taken_from_under_heat_on_any_shipped_lab",
        promise=10,
    ),
    PlantedBug(
        "purge by timer instead of flow",
        "labharness.safety.kernel.proofs.purged:PurgeProof.count_flow",
        "min(before_sccm, meter.counted_sccm)",
        "500",
        "tests/line/test_trips.py::test_a_purge_whose_flow_does_not_come_is_never_proven",
        promise=10,
        detector="referee",
        dear=True,
    ),
    PlantedBug(
        "a meter believed beyond its setpoint",
        "labharness.safety.kernel.proofs.purged:PurgeProof.count_flow",
        "min(flow_sccm, setpoint.value) if known else 0.0",
        "flow_sccm",
        "tests/envelopes/test_proofs_on_the_line.py::"
        "test_a_meter_that_reads_garbage_proves_no_purge_while_nothing_flows",
        promise=10,
        detector="referee",
        dear=True,
    ),
    PlantedBug(
        "a failed leak check forgotten",
        "labharness.safety.kernel.proofs.leak:LeakProof.take",
        "shut and self.first <= check.below < pressure",
        "False",
        "tests/safety/kernel/test_kernel_proofs.py::"
        "test_a_shut_tube_that_fills_by_itself_takes_back_an_earlier_pass",
        promise=10,
        daily=True,
    ),
    PlantedBug(
        "a filling taken for a leak",
        "labharness.safety.kernel.proofs.proofs:Proofs.sent",
        "self.leak.restart(math.inf, math.inf)",
        "pass",
        "tests/safety/kernel/test_kernel_proofs.py::"
        "test_gas_that_the_line_lets_in_never_takes_back_a_pass_in_whatever_order_it_is_read",
        promise=10,
    ),
    PlantedBug(
        "a value judged as it was asked, not as it goes out",
        "labharness.line.gate:Gate._judge",
        "isinstance(verdict, Refused) or encoded.value == command.value",
        "True",
        "tests/line/test_encoded_values.py::"
        "test_a_voltage_between_two_steps_is_judged_as_the_step_that_is_sent",
        promise=9,
    ),
    PlantedBug(
        "a real number written with its words the other way round",
        "labharness.instruments.driver.modbus:ModbusRow.encode",
        "words[::-1] if self.low_first else words",
        "words",
        "tests/instruments/driver/test_words_of_modbus.py::"
        "test_a_setpoint_of_two_words_goes_out_in_its_order",
        promise=42,
        detector="byte log",
    ),
    PlantedBug(
        "a reading in another unit judged",
        "labharness.line.poll:Monitor.take",
        "self._otherwise.get(scan.instrument)",
        "None",
        "tests/line/test_monitor.py::"
        "test_no_reading_counts_while_a_proof_of_the_settings_is_refused",
        promise=11,
    ),
    PlantedBug(
        "a unit that is changed in a run overlooked",
        "labharness.line.poll:Monitor.fault",
        "not scan.proves or known",
        "True",
        "tests/line/test_set_otherwise.py::"
        "test_a_unit_that_is_changed_in_a_run_is_found_within_a_minute_and_ends_it",
        promise=11,
    ),
    PlantedBug(
        "settings not asked with the identity",
        "labharness.line.exchanges:Reader.meet",
        "await self.prove(name)",
        "()",
        "tests/line/test_set_otherwise.py::"
        "test_a_unit_that_is_not_the_rows_is_found_before_anything_is_read"
        "[argon-flow_unit-SLPM-argon.flow]",
        promise=11,
    ),
    PlantedBug(
        "a spoilt reading told as a number",
        "labharness.line.instrument:spoilt",
        "shown not in sound.values",
        "False",
        "tests/line/test_spoilt_readings.py::"
        "test_a_spoilt_reading_is_told_and_is_no_number[furnace.temperature]",
        promise=11,
    ),
    PlantedBug(
        "a reply whose own checksum is wrong taken",
        "labharness.core.vocabulary.requests:Checked.take",
        "self.put(self.cut(reply)) != reply",
        "False",
        "tests/instruments/driver/test_frames_of_others.py::"
        "test_a_binary_frame_with_one_byte_changed_never_passes",
        promise=4,
        detector="byte log",
    ),
    PlantedBug(
        "an answer enquired for that was not acknowledged",
        "labharness.line.poll:_Chain._done",
        "disobeyed(scan.scan.requests[self._step], reply)",
        "''",
        "tests/line/test_line_poll.py::"
        "test_the_second_step_of_a_read_is_sent_after_the_first_was_acknowledged_alone[21-False]",
        promise=4,
        detector="byte log",
    ),
    PlantedBug(
        "a small value written as off",
        "labharness.instruments.driver.driver:kept",
        "value != 0 and written == 0",
        "False",
        "tests/instruments/driver/test_driver_steps.py::test_what_is_not_zero_is_never_written_as_zero",
        promise=9,
        detector="byte log",
    ),
    PlantedBug(
        "interlock not asked",
        "labharness.safety.kernel.judging:_held_up",
        "condition is not None",
        "False",
        "tests/safety/kernel/test_kernel.py::test_an_interlock_holds_at_its_bound_and_not_below",
        promise=10,
    ),
    PlantedBug(
        "dead bus not noticed",
        "labharness.safety.kernel.ticking:_silent",
        "age_s > watch.stale_s",
        "False",
        "tests/safety/kernel/test_kernel.py::test_silence_trips_where_the_line_is_live_and_the_watch_says_so",
        promise=11,
    ),
    PlantedBug(
        "tube filled with what no meter saw taken for purged",
        "labharness.safety.kernel.proofs.proofs:Proofs._fill",
        "self.purged.unmeasured_cm3(fill, track, pressure, now) > share * volume_cm3",
        "False",
        "tests/safety/kernel/test_kernel_proofs.py::"
        "test_a_fill_that_no_meter_saw_is_no_backfill_and_takes_back_what_was_proven_of_air[340.0-0]",
        promise=10,
    ),
    PlantedBug(
        "one odd low reading taken for a vacuum",
        "labharness.safety.kernel.proofs.purged:PurgeProof.count_cycle",
        "max(pressure, track.value)",
        "pressure",
        "tests/safety/kernel/test_kernel_proofs.py::test_one_odd_low_reading_is_no_vacuum_and_two_are_one",
        promise=10,
        dear=True,
    ),
    PlantedBug(
        "what was heard last forgotten once its port is silent",
        "labharness.safety.kernel.memory:Memory.procedure",
        "map(state.holds, self.tracks[state.channel].possible())",
        "map(state.holds, self.tracks[state.channel].unconfirmed)",
        "tests/safety/kernel/test_kernel_states.py::test_a_procedure_gives_way_while_its_state_was_heard_last",
        promise=10,
        dear=True,
    ),
    PlantedBug(
        "open vent not asked before a vacuum is believed",
        "labharness.safety.kernel.memory:Memory.procedure",
        "row.unless is not None and all(map(row.unless.holds, "
        "self.tracks[row.unless.channel].possible()))",
        "False and all(map(row.unless.holds, self.tracks[row.unless.channel].possible()))",
        "tests/safety/kernel/test_kernel_states.py::test_a_state_that_another_reading_belies_is_not_believed",
        promise=10,
        dear=True,
    ),
    PlantedBug(
        "argon that went to the pump taken for what fills the tube",
        "labharness.safety.kernel.proofs.purged:PurgeProof.unmeasured_cm3",
        "min(measured_cm3, max(risen_cm3, 0.0))",
        "measured_cm3",
        "tests/safety/kernel/test_kernel_proofs.py::"
        "test_inert_gas_that_went_to_the_pump_explains_no_rise_after_it",
        promise=10,
    ),
    PlantedBug(
        "forbidden state overlooked",
        "labharness.safety.kernel.memory:Memory.missing",
        "may_be(rule.forbidden, now) if rule.forbidden else None",
        "None",
        "tests/safety/kernel/test_kernel_states.py::test_a_ramp_through_a_forbidden_band_is_refused",
        promise=10,
    ),
    PlantedBug(
        "vent opened on a vacuum",
        "envelopes/labharness_envelopes/lines/cvd_mos2.toml:vent only at atmosphere, pump shut off",
        'guards = ["box.vent"]',
        'guards = ["box.pump"]',
        "tests/envelopes/test_model.py::test_no_hazard_of_the_tube_is_reachable",
        promise=10,
    ),
    PlantedBug(
        "any reply taken for the last one",
        "labharness.line.poll:_Chain._decode",
        "last is not None and last[0] == reply",
        "last is not None",
        "tests/line/test_line_poll.py::"
        "test_a_reply_that_is_the_same_as_the_last_counts_again_and_any_other_is_decoded",
        promise=11,
    ),
    PlantedBug(
        "heartbeats that go on without the tick",
        "labharness.line.poll:Poller._feed",
        "next_s < until_s",
        "True",
        "tests/line/test_line_poll.py::test_a_tick_that_breaks_ends_the_heartbeats_before_the_next[3]",
        promise=2,
        detector="deadline",
        daily=True,
    ),
    PlantedBug(
        "port open to who does not ask",
        "labharness.instruments.link.descriptors:open_port",
        "fcntl.ioctl(port.fileno(), termios.TIOCEXCL)",
        "termios.tcgetattr(port.fileno())",
        "tests/safety/guard/test_guard_process.py::test_its_ports_are_its_own",
        promise=4,
        detector="byte log",
        daily=True,
    ),
    PlantedBug(
        "wrong unit accepted",
        "labharness.safety.kernel.judging:judge",
        "command.unit != unit",
        "False",
        "tests/safety/kernel/test_kernel_states.py::test_commands_at_the_limits_are_never_clipped",
        promise=9,
        dear=True,
    ),
    PlantedBug(
        "stuck sensor believed",
        "labharness.safety.kernel.ticking:_moves",
        "rise < row.rise_min or span < row.span_min",
        "False",
        "tests/safety/kernel/test_kernel_plausible.py::"
        "test_a_stuck_sensor_is_found_within_its_time_wherever_it_began_to_stick",
        promise=11,
        dear=True,
    ),
    PlantedBug(
        "reset that is a start",
        "labharness.safety.kernel.modes",
        "CHANGES: dict[Mode, frozenset[Mode]] = {Mode.DISARMED: "
        "frozenset({Mode.ARMING, Mode.TRIPPED}), Mode.ARMING: frozenset({Mode.HELD, "
        "Mode.DISARMED, Mode.TRIPPED}), Mode.HELD: frozenset({Mode.RUNNING, "
        "Mode.DISARMED, Mode.TRIPPED}), Mode.RUNNING: frozenset({Mode.HELD, "
        "Mode.DISARMED, Mode.TRIPPED}), Mode.TRIPPED: frozenset({Mode.DISARMED})}",
        "CHANGES: dict[Mode, frozenset[Mode]] = {Mode.DISARMED: "
        "frozenset({Mode.ARMING, Mode.TRIPPED}), Mode.ARMING: frozenset({Mode.HELD, "
        "Mode.DISARMED, Mode.TRIPPED}), Mode.HELD: frozenset({Mode.RUNNING, "
        "Mode.DISARMED, Mode.TRIPPED}), Mode.RUNNING: frozenset({Mode.HELD, "
        "Mode.DISARMED, Mode.TRIPPED}), Mode.TRIPPED: frozenset({Mode.DISARMED, Mode.RUNNING})}",
        "tests/safety/kernel/test_kernel.py::test_the_table_of_modes_is_this_one",
        promise=14,
        dear=True,
    ),
    PlantedBug(
        "offline log thrown away by who keeps none",
        "labharness.line.poll:Monitor.keep",
        "self.journal.keeps",
        "True",
        "tests/line/test_guarded_line.py::test_what_the_guard_did_alone_outlives_a_reset",
        promise=20,
        detector="journal audit",
        dear=True,
    ),
    PlantedBug(
        "nothing made safe past a latch that cannot be read",
        "labharness.lab.operate.idle_line:_with_lab.main",
        "Latch.or_shut",
        "Latch",
        "tests/line/test_guarded_line.py::"
        "test_a_latch_that_cannot_be_read_keeps_nobody_from_making_safe[latch.json]",
        promise=12,
        daily=True,
    ),
    PlantedBug(
        "who watches keeps others from making safe",
        "labharness.lab.operate.idle_line:watch.look",
        "async with served(plan.state_dir, answer, lab.clock, lambda text: None):\n"
        "    going_on = True\n"
        "    while going_on:\n"
        "        await _identify_others(lab, unknown)\n"
        "        going_on = show(await answer({'do': 'status'}))\n"
        "        if going_on:\n"
        "            await lab.line.next_tick()",
        "if True:\n"
        "    going_on = True\n"
        "    while going_on:\n"
        "        await _identify_others(lab, unknown)\n"
        "        going_on = show(await answer({'do': 'status'}))\n"
        "        if going_on:\n"
        "            await lab.line.next_tick()",
        "tests/faces/cli/test_two_terminals.py::test_who_only_watches_a_line_keeps_nobody_from_making_it_safe",
        promise=12,
        dear=True,
    ),
    PlantedBug(
        "safe refused while somebody looks",
        "labharness.faces.cli.owner:_made_safe",
        "waited_s >= TAKEN_S_MAX",
        "True",
        "tests/lab/operate/test_line_taken.py::"
        "test_safe_waits_for_who_only_looks_says_so_and_makes_the_line_safe",
        promise=12,
        dear=True,
    ),
    PlantedBug(
        "made safe while a run waits, and latched nowhere",
        "labharness.work.desk.by_hand:ByHand._safe",
        "line.trip_response.trip(trip, disarmed=owned)",
        "line.trip_response.trip(trip)",
        "tests/lab/operate/test_safe_before_arming.py::"
        "test_a_run_that_waits_for_an_approval_is_ended_latched_and_told",
        promise=14,
        dear=True,
    ),
    PlantedBug(
        "kernel reaches out of its room",
        "labharness.safety.kernel.judging",
        "from collections.abc import Sequence",
        "import os\nfrom collections.abc import Sequence",
        "tests/house/test_tidy.py::test_the_kernel_imports_only_what_is_listed",
        promise=33,
        detector="lint",
        daily=True,
    ),
    PlantedBug(
        "nitrogen let into a shut tube",
        "envelopes/labharness_envelopes/lines/cvd_mos2.toml:nitrogen only into a vented tube",
        'require = [{ channel = "box.vent", at_least = 1 }]',
        'require = [{ channel = "box.vent", at_least = 0 }]',
        "tests/faces/cli/test_by_hand_dangers.py::test_a_shut_tube_is_not_filled_with_nitrogen[shipped]",
        promise=10,
        dear=True,
    ),
    PlantedBug(
        "vent shut while nitrogen comes in",
        "envelopes/labharness_envelopes/lines/cvd_mos2.toml:the vent shuts only on "
        "argon that its gauge would show",
        '    { channel = "nitrogen.setpoint", at_most = 0 },\n',
        "",
        "tests/faces/cli/test_by_hand_dangers.py::test_the_vent_is_not_shut_while_nitrogen_comes_in",
        promise=10,
        dear=True,
    ),
    PlantedBug(
        "nitrogen left on over a vacuum",
        "envelopes/labharness_envelopes/lines/cvd_mos2.toml:[procedures.hold_vacuum]",
        '    ["nitrogen.setpoint", 0],\n',
        "",
        "tests/faces/cli/test_by_hand_dangers.py::test_nitrogen_set_at_its_own_keys_in_a_shut_tube_trips_and_stops[490.0-shipped]",
        promise=10,
        detector="referee",
        dear=True,
    ),
    PlantedBug(
        "trickle into a shut tube taken for nothing",
        "envelopes/labharness_envelopes/lines/cvd_mos2.toml:a shut tube is filled by a trickle",
        'expects = { channel = "argon.setpoint", at_least = 10 }',
        'expects = { channel = "argon.setpoint", at_least = 0 }',
        "tests/faces/cli/test_by_hand_dangers.py::test_a_trickle_of_argon_into_a_shut_tube_trips[4.0-shipped]",
        promise=10,
        dear=True,
    ),
    PlantedBug(
        "hydrogen let in without its watchdog",
        "envelopes/labharness_envelopes/lines/cvd_mos2.toml:hydrogen only with its watchdog",
        '{ channel = "hydrogen.watchdog_ms", at_least = 2000 },',
        '{ channel = "hydrogen.watchdog_ms", at_least = 0 },',
        "tests/faces/cli/test_by_hand_dangers.py::test_hydrogen_takes_the_watchdog_of_its_controller",
        promise=10,
        dear=True,
    ),
    PlantedBug(
        "prepare not repeated after a reconnection",
        "labharness.line.preparing:Reconnecting._prepare",
        "await self._perform_all(port, losses)",
        '""""""',
        "tests/line/test_reconnecting.py::test_an_instrument_is_prepared_again_before_its_next_command",
        promise=3,
        detector="referee",
    ),
    PlantedBug(
        "link lost after an end left as one before it",
        "labharness.line.preparing:Reconnecting.lost",
        "self._left.discard(port)",
        "",
        "tests/line/test_reconnecting.py::test_a_link_that_is_lost_after_the_end_of_a_run_trips",
        promise=3,
        detector="referee",
    ),
)
