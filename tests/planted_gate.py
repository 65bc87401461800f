"""Planted bugs in the gate: kernel, line, roads and envelopes."""

from planted_bug import PlantedBug

__all__ = ["IN_THE_GATE"]

IN_THE_GATE = (
    PlantedBug(
        "limit check removed",
        "labharness.kernel.rules:judge",
        "not limit.low <= value <= limit.high",
        "False",
        "tests/test_kernel.py::test_a_limit_is_exact_to_the_last_bit",
    ),
    PlantedBug(
        "trip removed",
        "labharness.kernel.rules:observe",
        "not row.low <= value <= row.high",
        "False",
        "tests/test_kernel.py::test_a_reading_outside_its_bounds_trips_in_every_mode",
    ),
    PlantedBug(
        "stale reading accepted",
        "labharness.kernel.memory:Memory.missing",
        "now - track.at_s > track.stale_s or not bound.low <= track.value <= bound.high",
        "not bound.low <= track.value <= bound.high",
        "tests/test_kernel.py::test_a_reading_counts_up_to_its_bound_exactly",
    ),
    PlantedBug(
        "purge by timer instead of flow",
        "labharness.kernel.rules:_count_inert",
        "min(before_sccm, track.inert_sccm)",
        "500",
        "tests/test_trips.py::test_a_purge_whose_flow_does_not_come_is_never_proven",
        dear=True,
    ),
    PlantedBug(
        "a meter believed beyond its setpoint",
        "labharness.kernel.rules:_count_inert",
        "min(value, told.value) if known else 0.0",
        "value",
        "tests/test_proofs_on_the_line.py::"
        "test_a_meter_that_reads_garbage_proves_no_purge_while_nothing_flows",
        dear=True,
    ),
    PlantedBug(
        "a failed leak check forgotten",
        "labharness.kernel.rules:_check_rise",
        "isolated and window.first <= check.below < value",
        "False",
        "tests/test_kernel_leak_check.py::"
        "test_a_shut_tube_that_fills_by_itself_takes_back_an_earlier_pass",
    ),
    PlantedBug(
        "a filling taken for a leak",
        "labharness.kernel.rules:begin",
        "memory.leak.restart(math.inf, math.inf)",
        "pass",
        "tests/test_kernel_leak_check.py::"
        "test_gas_that_the_line_lets_in_never_takes_back_a_pass_in_whatever_order_it_is_read",
    ),
    PlantedBug(
        "a small value written as off",
        "labharness.driver.steps:kept",
        "value != 0 and written == 0",
        "False",
        "tests/test_driver_steps.py::test_what_is_not_zero_is_never_written_as_zero",
    ),
    PlantedBug(
        "interlock not asked",
        "labharness.kernel.rules:judge",
        "condition is not None",
        "False",
        "tests/test_kernel.py::test_an_interlock_holds_at_its_bound_and_not_below",
    ),
    PlantedBug(
        "dead bus not noticed",
        "labharness.kernel.rules:tick",
        "age_s > watch.stale_s and watch.procedure",
        "False and watch.procedure",
        "tests/test_kernel.py::test_silence_trips_where_the_line_is_live_and_the_watch_says_so",
    ),
    PlantedBug(
        "tube filled with what no meter saw taken for purged",
        "labharness.kernel.rules:_count_fill",
        "risen_cm3 - inert_cm3 > fill.unmeasured_max * purge.volume_cm3",
        "False",
        "tests/test_kernel_proofs.py::"
        "test_a_fill_that_no_meter_saw_is_no_backfill_and_takes_back_what_was_proven_of_air[340.0-0]",
    ),
    PlantedBug(
        "one odd low reading taken for a vacuum",
        "labharness.kernel.rules:_count_fill",
        "(memory.envelope.purge, max(value, track.value))",
        "(memory.envelope.purge, value)",
        "tests/test_kernel_proofs.py::test_one_odd_low_reading_is_no_vacuum_and_two_are_one",
        dear=True,
    ),
    PlantedBug(
        "what was heard last forgotten once its port is silent",
        "labharness.kernel.memory:Memory.procedure",
        "map(state.holds, self.tracks[state.channel].possible())",
        "map(state.holds, self.tracks[state.channel].doubt)",
        "tests/test_kernel_states.py::test_a_procedure_gives_way_while_its_state_was_heard_last",
        dear=True,
    ),
    PlantedBug(
        "open vent not asked before a vacuum is believed",
        "labharness.kernel.memory:Memory.procedure",
        "row.unless is not None and all(map(row.unless.holds, "
        "self.tracks[row.unless.channel].possible()))",
        "False and all(map(row.unless.holds, self.tracks[row.unless.channel].possible()))",
        "tests/test_kernel_states.py::test_a_state_that_another_reading_belies_is_not_believed",
        dear=True,
    ),
    PlantedBug(
        "argon that went to the pump taken for what fills the tube",
        "labharness.kernel.rules:_count_fill",
        "min(memory.filled_cm3 * memory.fresh(track, now), max(risen_cm3, 0.0))",
        "memory.filled_cm3 * memory.fresh(track, now)",
        "tests/test_kernel_proofs.py::"
        "test_inert_gas_that_went_to_the_pump_explains_no_rise_after_it",
    ),
    PlantedBug(
        "forbidden state overlooked",
        "labharness.kernel.memory:Memory.missing",
        "self.may_be(forbidden, now) if forbidden else None",
        "None",
        "tests/test_kernel_states.py::test_a_ramp_through_a_forbidden_band_is_refused",
    ),
    PlantedBug(
        "vent opened on a vacuum",
        "envelopes/labharness_envelopes/lines/cvd_mos2.toml:vent only at atmosphere, pump shut off",
        'guards = ["box.vent"]',
        'guards = ["box.pump"]',
        "tests/test_model.py::test_no_hazard_of_the_tube_is_reachable",
    ),
    PlantedBug(
        "beats that go on without the tick",
        "labharness.line.poll:Poller._feed",
        "next_s < until_s",
        "True",
        "tests/test_line_poll.py::test_a_tick_that_breaks_ends_the_beats_before_the_next[3]",
    ),
    PlantedBug(
        "port open to who does not ask",
        "labharness.link.descriptors:open_port",
        "fcntl.ioctl(port.fileno(), termios.TIOCEXCL)",
        "termios.tcgetattr(port.fileno())",
        "tests/test_guard_process.py::test_its_ports_are_its_own",
    ),
    PlantedBug(
        "wrong unit accepted",
        "labharness.kernel.rules:judge",
        "command.unit != unit",
        "False",
        "tests/test_kernel_states.py::test_commands_at_the_limits_are_never_clipped",
        dear=True,
    ),
    PlantedBug(
        "stuck sensor believed",
        "labharness.kernel.rules:_doubt",
        "span > row.span_max or (over and (rise < row.rise_min or span < row.span_min))",
        "span > row.span_max or False",
        "tests/test_kernel_plausible.py::"
        "test_a_stuck_sensor_is_found_within_its_time_wherever_it_began_to_stick",
        dear=True,
    ),
    PlantedBug(
        "reset that is a start",
        "labharness.kernel.modes",
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
        "tests/test_kernel.py::test_the_table_of_modes_is_this_one",
        dear=True,
    ),
    PlantedBug(
        "log of an absence thrown away by who keeps none",
        "labharness.line.lookout:Lookout.keep",
        "self._journal.keeps",
        "True",
        "tests/test_guarded_line.py::test_what_the_guard_did_alone_outlives_a_reset",
        dear=True,
    ),
    PlantedBug(
        "nothing made safe past a latch that cannot be read",
        "labharness.lab.care:_with_lab.main",
        "Latch.or_shut",
        "Latch",
        "tests/test_guarded_line.py::"
        "test_a_latch_that_cannot_be_read_keeps_nobody_from_making_safe[latch.json]",
    ),
    PlantedBug(
        "who watches keeps others from making safe",
        "labharness.lab.care:watch.look",
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
        "tests/test_two_terminals.py::test_who_only_watches_a_line_keeps_nobody_from_making_it_safe",
        dear=True,
    ),
    PlantedBug(
        "safe refused while somebody looks",
        "labharness.cli.hand:_made_safe",
        "waited_s >= TAKEN_S_MAX",
        "True",
        "tests/test_line_taken.py::"
        "test_safe_waits_for_who_only_looks_says_so_and_makes_the_line_safe",
        dear=True,
    ),
    PlantedBug(
        "made safe while a run waits, and latched nowhere",
        "labharness.desk.by_hand:ByHand._safe",
        "line.safing.trip(trip, disarmed=owned)",
        "line.safing.trip(trip)",
        "tests/test_safe_before_arming.py::"
        "test_a_run_that_waits_for_an_approval_is_ended_latched_and_told",
        dear=True,
    ),
    PlantedBug(
        "kernel reaches out of its room",
        "labharness.kernel.rules",
        "from collections.abc import Iterable, Iterator, Sequence",
        "import os\nfrom collections.abc import Iterable, Iterator, Sequence",
        "tests/test_tidy.py::test_the_kernel_imports_only_what_is_listed",
    ),
    PlantedBug(
        "nitrogen let into a shut tube",
        "envelopes/labharness_envelopes/lines/cvd_mos2.toml:nitrogen only into a vented tube",
        'require = [{ channel = "box.vent", at_least = 1 }]',
        'require = [{ channel = "box.vent", at_least = 0 }]',
        "tests/test_by_hand_dangers.py::test_a_shut_tube_is_not_filled_with_nitrogen[shipped]",
        dear=True,
    ),
    PlantedBug(
        "vent shut while nitrogen comes in",
        "envelopes/labharness_envelopes/lines/cvd_mos2.toml:the vent shuts only on "
        "argon that its gauge would show",
        '    { channel = "nitrogen.setpoint", at_most = 0 },\n',
        "",
        "tests/test_by_hand_dangers.py::test_the_vent_is_not_shut_while_nitrogen_comes_in",
        dear=True,
    ),
    PlantedBug(
        "nitrogen left on over a vacuum",
        "envelopes/labharness_envelopes/lines/cvd_mos2.toml:[procedures.hold_vacuum]",
        '    ["nitrogen.setpoint", 0],\n',
        "",
        "tests/test_by_hand_dangers.py::test_nitrogen_set_at_its_own_keys_in_a_shut_tube_trips_and_stops[490.0-shipped]",
        dear=True,
    ),
    PlantedBug(
        "trickle into a shut tube taken for nothing",
        "envelopes/labharness_envelopes/lines/cvd_mos2.toml:a shut tube is filled by a trickle",
        'expects = { channel = "argon.setpoint", at_least = 10 }',
        'expects = { channel = "argon.setpoint", at_least = 0 }',
        "tests/test_by_hand_dangers.py::test_a_trickle_of_argon_into_a_shut_tube_trips[4.0-shipped]",
        dear=True,
    ),
    PlantedBug(
        "hydrogen let in without its watchdog",
        "envelopes/labharness_envelopes/lines/cvd_mos2.toml:hydrogen only with its watchdog",
        '{ channel = "hydrogen.watchdog_ms", at_least = 2000 },',
        '{ channel = "hydrogen.watchdog_ms", at_least = 0 },',
        "tests/test_by_hand_dangers.py::test_hydrogen_takes_the_watchdog_of_its_controller",
        dear=True,
    ),
    PlantedBug(
        "prepare not repeated after a reconnection",
        "labharness.line.reconnecting:Reconnecting._prepare",
        "await self._perform_all(port, losses)",
        '""""""',
        "tests/test_reconnecting.py::test_an_instrument_is_prepared_again_before_its_next_command",
    ),
    PlantedBug(
        "road lost after an end left as one before it",
        "labharness.line.reconnecting:Reconnecting.lost",
        "self._left.discard(port)",
        "",
        "tests/test_reconnecting.py::test_a_road_that_is_lost_after_the_end_of_a_run_trips",
    ),
)
