"""Planted bugs in the proof of an envelope, and in what is seen of making a line safe."""

from planted_bug import PlantedBug

BUGS = (
    PlantedBug(
        "armed with a procedure that leaves a heater on",
        "labharness.lab.config.lab_plan:LabPlan.check",
        "(*check_wires(self.envelope, self.instruments, self.timings, "
        "self.procedures()), *unproven(self.envelope, self.instruments, "
        "self.contacts), *self.unclaimed(), *unknown_room(self.room))",
        "(*check_wires(self.envelope, self.instruments, self.timings, "
        "self.procedures()), *self.unclaimed(), *unknown_room(self.room))",
        "test_a_line_with_an_unproven_envelope_is_not_armed",
    ),
    PlantedBug(
        "output before mode proven as off",
        "labharness.lab.config.proven:_takes",
        "iter([each.channel for each, _ in last if not each.optional])",
        "{each.channel for each, _ in last if not each.optional}",
        "test_output_before_mode_is_found",
    ),
    PlantedBug(
        "one way of two to switch off proven as both",
        "labharness.lab.config.proven:_left_on",
        "not missing",
        "len(missing) < len(source.ways)",
        "test_a_step_that_is_dropped_turned_or_made_optional_is_found",
    ),
    PlantedBug(
        "a setpoint confirmed in manual, and nothing said",
        "labharness.line.effects:_needed",
        "acts is not None",
        "False and acts is not None",
        "test_a_controller_that_was_put_to_manual_at_its_keys_is_seen",
    ),
    PlantedBug(
        "a flow confirmed behind a shut valve, and nothing said",
        "labharness.line.effects:_unlike",
        "found == found and found != off",
        "found == found",
        "test_a_value_without_effect_is_warned_of",
    ),
    PlantedBug(
        "output 0 believed, whatever comes of it",
        "labharness.line.trip_response:TripResponse._verify_in_force",
        "self._look_at_effect(verification)",
        "",
        "test_a_furnace_that_goes_on_heating_though_every_step_is_verified_is_told_and_alarmed",
        detector="referee",
    ),
    PlantedBug(
        "armed though gas flows",
        "labharness.line.trip_response:TripResponse.make_safe",
        "self._told if self._wave == wave else verification",
        "verification",
        "test_a_line_whose_heat_gas_or_light_is_not_off_is_not_armed",
    ),
    PlantedBug(
        "what a command heats taken for what is stuck",
        "labharness.line.line:Line.start",
        "self.trip_response.let_go()",
        "",
        "test_what_is_heated_after_a_start_contradicts_nothing",
        detector="alarm audit",
    ),
    PlantedBug(
        "silence taken for dark",
        "labharness.line.effects:Effects.dark",
        "value is not None and value <= dark.at_most",
        "value is None or value <= dark.at_most",
        "test_light_counts_and_so_does_silence",
    ),
    PlantedBug(
        "safe ends well though it still gets hotter",
        "labharness.faces.cli.owner:safe",
        "unverified or rising",
        "unverified",
        "test_safe_waits_to_see_that_nothing_rises_and_says_so_with_its_exit_code",
    ),
    PlantedBug(
        "only what a step switches off is looked at",
        "labharness.line.effects:_off_after",
        "said or relays or (not off.inert)",
        "said or relays",
        "test_a_shutdown_that_only_sets_a_setpoint_is_not_believed",
        detector="referee",
    ),
    PlantedBug(
        "a number that nobody reads who approves it",
        "labharness.faces.cli.rules:_plausible",
        "row.found_s",
        "0.0",
        "test_no_number_and_no_name_of_an_envelope_is_approved_unseen",
    ),
)
