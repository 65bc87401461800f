"""Planted bugs in what an envelope says and how its file is read."""

from planted_bug import PlantedBug

SHIPPED = "envelopes/labharness_envelopes/lines/cvd_mos2.toml"
PLANT = "tests/envelopes/test_procedures_at_the_plant.py::"
GUARD_ALONE = f"{PLANT}test_the_guard_alone_brings_the_plant_to_each_step_of_each_procedure"
THE_LINE = f"{PLANT}test_the_line_brings_the_plant_to_the_procedure_that_fits_its_pressure"
AMBIENT = "tests/envelopes/test_ambient.py::"
NUMBERS = "tests/envelopes/test_numbers_of_the_line.py::"
IN_THE_ENVELOPES = (
    PlantedBug(
        "channel forgotten in a procedure",
        f"{SHIPPED}:[procedures.relieve_pressure]",
        '    ["sulfur.output", 0],\n',
        "",
        f"{GUARD_ALONE}[cvd-mos2-simulated, relieve_pressure, hot]",
        promise=12,
        detector="referee",
    ),
    PlantedBug(
        "output before mode in a procedure",
        f"{SHIPPED}:[procedures.relieve_pressure]",
        '["furnace.mode", 1],\n    ["furnace.output", 0],',
        '["furnace.output", 0],\n    ["furnace.mode", 1],',
        f"{GUARD_ALONE}[cvd-mos2-simulated, relieve_pressure, hot]",
        promise=12,
        detector="referee",
    ),
    PlantedBug(
        "gas left on in a vacuum",
        f"{SHIPPED}:[procedures.hold_vacuum]",
        '["argon.setpoint", 0],',
        '["argon.setpoint", 100],',
        f"{THE_LINE}[cvd-mos2-simulated, hold_vacuum, vacuum]",
        promise=12,
        detector="referee",
    ),
    PlantedBug(
        "ten times the leak passes",
        f"{SHIPPED}:[purge.leak_check]",
        "leak_max = 0.75",
        "leak_max = 7.5",
        "tests/faces/cli/test_by_hand_dangers.py::"
        "test_a_leak_of_three_times_what_may_be_is_found_and_half_of_it_passes[3.0-short]",
        promise=10,
    ),
    PlantedBug(
        "range of a rate open at one end",
        f"{SHIPPED}:sulfur heats only by a rate limit",
        'require = [{ channel = "sulfur.setpoint_rate", at_least = 0.1, at_most = 60 }]',
        'require = [{ channel = "sulfur.setpoint_rate", at_least = 0.1 }]',
        f"{NUMBERS}test_a_command_is_refused_for_each_single_thing_that_forbids_it"
        "[sulfur.setpoint = 240, 13]",
        promise=10,
    ),
    PlantedBug(
        "person asked to open the enclosure of a laser that is on",
        f"{SHIPPED}:the enclosure is opened only with the laser off",
        "at_most = 0",
        "at_most = 1",
        "tests/envelopes/test_opening.py::test_no_sample_is_put_under_a_laser_that_is_on_"
        "and_while_it_is_put_there_it_stays_off",
        promise=9,
    ),
    PlantedBug(
        "hydrogen in the room found ten times too late",
        f"{SHIPPED}:hydrogen in the room",
        "high = 4000",
        "high = 40000",
        f"{NUMBERS}test_each_single_thing_that_must_trip_does_and_what_is_usual_does_not"
        "[close_all_valves_and_alert 2]",
        promise=11,
    ),
    PlantedBug(
        "change of two rows at once",
        "labharness.lab.config.envelope_patch:_found",
        "count > 1",
        "False",
        "tests/lab/config/test_envelope_patch.py::test_a_change_that_names_two_rows_is_an_error",
        promise=9,
    ),
    PlantedBug(
        "change that changes nothing",
        "labharness.lab.config.envelope_patch:_make",
        "if same:\n    raise EnvelopeInvalid('patch.same', same=same[0], row=repr(row[same[0]]))",
        "",
        "tests/lab/config/test_envelope_patch.py::"
        "test_a_change_that_is_not_exactly_one_is_an_error_that_names_it[nothing changed]",
        promise=9,
    ),
    PlantedBug(
        "base of an envelope edited unseen",
        "labharness.lab.config.lab_plan:_line",
        "(text, base_text)",
        "(text,)",
        "tests/lab/config/test_envelope_patch.py::"
        "test_the_envelope_digest_covers_the_changes_and_what_they_are_made_of",
        promise=9,
    ),
    PlantedBug(
        "limit of a maker stated against another room",
        "labharness.lab.config.kernel_envelope:Pressures.parameter",
        "self._room_torr()",
        "ATMOSPHERE_TORR",
        f"{AMBIENT}test_a_clogged_tube_trips_below_the_limit_of_its_maker[1600-stated-25000.0]",
        promise=11,
        detector="referee",
    ),
    PlantedBug(
        "vacuum told by the pressure at sea level",
        "labharness.lab.config.kernel_envelope:Pressures.value",
        "in_unit(self._room_torr(), unit, where)",
        "in_unit(ATMOSPHERE_TORR, unit, where)",
        f"{AMBIENT}test_a_tube_is_evacuated_filled_and_vented_in_its_own_room[3600]",
        promise=10,
        detector="referee",
    ),
    PlantedBug(
        "room of another height believed",
        "labharness.line.hindrances:Room.hindrance",
        "not track.fresh(now) or abs(found - stated) <= most",
        "not track.fresh(now) or True",
        f"{AMBIENT}test_a_line_is_not_armed_by_the_pressure_of_another_room[1600]",
        promise=11,
    ),
    PlantedBug(
        "room that nobody knows taken for sea level",
        "labharness.lab.config.kernel_envelope:Pressures._room_torr",
        "self._asked = True",
        "",
        f"{AMBIENT}test_a_line_whose_room_nobody_knows_is_not_armed",
        promise=11,
    ),
    PlantedBug(
        "pressure that does not say which one it is",
        "labharness.lab.config.kernel_envelope:Pressures.value",
        "said != unit + ABSOLUTE",
        "False",
        f"{AMBIENT}test_a_pressure_says_which_one_it_is[no unit]",
        promise=11,
    ),
    PlantedBug(
        "tube filled to the pressure at sea level by plan",
        "labharness.work.capability.cvd.planner:_Growth._fill",
        "self.facts.ambient_torr",
        "760.0",
        f"{AMBIENT}test_a_growth_comes_to_its_end_in_its_own_room[3600]",
        promise=10,
        dear=True,
    ),
    PlantedBug(
        "a shut tube that is filled gently is looked at for a quarter of an hour",
        f"{SHIPPED}:a shut tube is filled gently without its pressure rising",
        "found_s = 100",
        "found_s = 1000",
        "tests/faces/cli/test_rules_told.py::test_the_page_holds_the_rules_of_the_shipped_line_word_for_word",
        promise=47,
    ),
    PlantedBug(
        "a condition that nothing meets",
        "labharness.lab.config.consistency:ineffective_bounds",
        "bound.low > high or bound.high < low",
        "False",
        "tests/lab/config/test_bad_lab_files.py::"
        "test_a_bad_lab_file_exits_64_and_names_what_is_wrong_and_what_is_allowed"
        "[a contact that is asked for what it never shows]",
        promise=47,
    ),
)
