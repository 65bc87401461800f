"""Planted bugs in the gate: kernel, line, roads and envelopes."""

from planted_bug import PlantedBug

__all__ = ["IN_THE_GATE"]

IN_THE_GATE = (
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
        "tests/test_kernel.py::test_a_reading_outside_its_bounds_trips_in_every_mode",
    ),
    PlantedBug(
        "stale reading accepted",
        "labharness/kernel/memory.py",
        "if now - track.at_s > track.stale_s or not bound.low",
        "if not bound.low",
        "tests/test_kernel.py::test_a_reading_counts_up_to_its_bound_exactly",
    ),
    PlantedBug(
        "purge by timer instead of flow",
        "labharness/kernel/rules.py",
        "passed_cm3 = min(before_sccm, track.inert_sccm) / 60 * (now - track.at_s)",
        "passed_cm3 = 500 / 60 * (now - track.at_s)",
        "tests/test_trips.py::test_a_purge_whose_flow_does_not_come_is_never_proven",
        dear=True,
    ),
    PlantedBug(
        "a meter believed beyond its setpoint",
        "labharness/kernel/rules.py",
        "min(value, told.value) if known else 0.0",
        "value",
        "tests/test_proofs_on_the_line.py::"
        "test_a_meter_that_reads_garbage_proves_no_purge_while_nothing_flows",
    ),
    PlantedBug(
        "a failed leak check forgotten",
        "labharness/kernel/rules.py",
        "isolated and window.first <= check.below < value",
        "False",
        "tests/test_kernel_leak_check.py::"
        "test_a_shut_tube_that_fills_by_itself_takes_back_an_earlier_pass",
    ),
    PlantedBug(
        "a filling taken for a leak",
        "labharness/kernel/rules.py",
        "memory.leak.restart(math.inf, math.inf)",
        "pass",
        "tests/test_kernel_leak_check.py::"
        "test_gas_that_the_line_lets_in_never_takes_back_a_pass_in_whatever_order_it_is_read",
    ),
    PlantedBug(
        "a small value written as off",
        "labharness/driver/steps.py",
        "if value != 0 and written == 0:",
        "if False:",
        "tests/test_driver_steps.py::test_what_is_not_zero_is_never_written_as_zero",
    ),
    PlantedBug(
        "interlock not asked",
        "labharness/kernel/rules.py",
        "if condition is not None:\n                goes",
        "if False:\n                goes",
        "tests/test_kernel.py::test_an_interlock_holds_at_its_bound_and_not_below",
    ),
    PlantedBug(
        "dead bus not noticed",
        "labharness/kernel/rules.py",
        "if age_s > watch.stale_s and",
        "if False and",
        "tests/test_kernel.py::test_silence_trips_where_the_line_is_live_and_the_watch_says_so",
    ),
    PlantedBug(
        "tube filled with what no meter saw taken for purged",
        "labharness/kernel/rules.py",
        "if risen_cm3 - inert_cm3 > fill.unmeasured_max * purge.volume_cm3:",
        "if False:",
        "tests/test_kernel_proofs.py::"
        "test_a_fill_that_no_meter_saw_is_no_backfill_and_takes_back_what_was_proven_of_air[340.0-0]",
    ),
    PlantedBug(
        "one odd low reading taken for a vacuum",
        "labharness/kernel/rules.py",
        "max(value, track.value)",
        "value",
        "tests/test_kernel_proofs.py::test_one_odd_low_reading_is_no_vacuum_and_two_are_one",
        dear=True,
    ),
    PlantedBug(
        "relay forgotten while its port is silent",
        "labharness/kernel/memory.py",
        "known = self.fresh(track, now) or state.channel in self.envelope.limits",
        "known = self.fresh(track, now)",
        "tests/test_kernel_states.py::"
        "test_a_procedure_gives_way_while_one_of_its_states_may_be_on_its_way",
        dear=True,
    ),
    PlantedBug(
        "argon that went to the pump taken for what fills the tube",
        "labharness/kernel/rules.py",
        "min(memory.filled_cm3 * memory.fresh(track, now), max(risen_cm3, 0.0))",
        "memory.filled_cm3 * memory.fresh(track, now)",
        "tests/test_kernel_proofs.py::"
        "test_inert_gas_that_went_to_the_pump_explains_no_rise_after_it",
    ),
    PlantedBug(
        "forbidden state overlooked",
        "labharness/kernel/memory.py",
        "return self.may_be(forbidden, now) if forbidden else None",
        "return None",
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
        "beats that go on without the tick",
        "labharness/line/poll.py",
        "        if next_s < until_s:\n",
        "        if True:\n",
        "tests/test_line_poll.py::test_a_tick_that_breaks_ends_the_beats_before_the_next[3]",
    ),
    PlantedBug(
        "port open to who does not ask",
        "labharness/link/descriptors.py",
        "fcntl.ioctl(port.fileno(), termios.TIOCEXCL)",
        "termios.tcgetattr(port.fileno())",
        "tests/test_guard_process.py::test_its_ports_are_its_own",
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
        "stuck sensor believed",
        "labharness/kernel/rules.py",
        "or (over and (rise < row.rise_min or span < row.span_min))",
        "or False",
        "tests/test_kernel_plausible.py::"
        "test_a_stuck_sensor_is_found_within_its_time_wherever_it_began_to_stick",
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
        "log of an absence thrown away by who keeps none",
        "labharness/line/lookout.py",
        "        return self._journal.keeps\n",
        "        return True\n",
        "tests/test_guarded_line.py::test_what_the_guard_did_alone_outlives_a_reset",
        dear=True,
    ),
    PlantedBug(
        "nothing made safe past a latch that cannot be read",
        "labharness/lab/care.py",
        "_with_lab(plan, act, latch=Latch.or_shut)",
        "_with_lab(plan, act)",
        "tests/test_guarded_line.py::"
        "test_a_latch_that_cannot_be_read_keeps_nobody_from_making_safe[latch.json]",
    ),
    PlantedBug(
        "who watches keeps others from making safe",
        "labharness/lab/care.py",
        "        async with served(plan.state_dir, answer, lab.clock, lambda text: None):\n",
        "        if True:\n",
        "tests/test_two_terminals.py::test_who_only_watches_a_line_keeps_nobody_from_making_it_safe",
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
        "prepare not repeated after a reconnection",
        "labharness/line/reconnecting.py",
        "wrong = await self._perform_all(port, losses)",
        'wrong = ""',
        "tests/test_reconnecting.py::test_an_instrument_is_prepared_again_before_its_next_command",
    ),
    PlantedBug(
        "road lost after an end left as one before it",
        "labharness/line/reconnecting.py",
        "        self._left.discard(port)\n",
        "",
        "tests/test_reconnecting.py::test_a_road_that_is_lost_after_the_end_of_a_run_trips",
    ),
)
