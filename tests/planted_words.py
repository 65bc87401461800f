"""Planted bugs in what nobody is believed of: that a frame reads, and what a plan needs."""

from planted_bug import PlantedBug

__all__ = ["IN_THE_WORDS"]

IN_THE_WORDS = (
    PlantedBug(
        "poll that writes taken for a read",
        "labharness/vocabulary/frames.py",
        "    if function not in MODBUS_READS:\n",
        "    if function not in MODBUS_READS | MODBUS_OTHERS:\n",
        "tests/test_reads_are_reads.py::test_a_poll_that_is_a_coil_write_never_reaches_the_contactor[text]",
    ),
    PlantedBug(
        "reads of a lab not proven when it is read",
        "labharness/lab/reading.py",
        "    wrong += unproven_reads(instruments, envelope, procedures or {}, real)\n",
        "",
        "tests/test_reads_are_reads.py::test_a_poll_that_is_a_coil_write_never_reaches_the_contactor[Modbus]",
        dear=True,
    ),
    PlantedBug(
        "grammar of one's own alone asked",
        "labharness/lab/reads.py",
        "    drivers = [(each.name, each.driver) for each in here]\n",
        "    drivers = [(instrument.name, instrument.driver)]\n",
        "tests/test_reads_are_reads.py::test_a_read_is_held_against_the_grammars_of_all_on_its_port",
    ),
    PlantedBug(
        "grammar not held against what its driver writes",
        "labharness/lab/reads.py",
        "        if not is_written(request, driver.write_grammar):\n",
        "        if request is None:\n",
        "tests/test_reads_are_reads.py::test_a_read_that_may_write_is_refused_when_the_lab_is_read[uncovered]",
    ),
    PlantedBug(
        "driver without a grammar let on a real link",
        "labharness/lab/reads.py",
        "    if silent and settable and real:\n",
        "    if silent and settable and not real:\n",
        "tests/test_reads_are_reads.py::test_a_text_driver_that_states_no_grammar_of_writes_stays_off_real_links",
    ),
    PlantedBug(
        "read that is a frame of a command",
        "labharness/lab/reads.py",
        "        does = [doing for doing, each in writes if same_frame(request, each)]\n",
        "        does: list[str] = []\n",
        "tests/test_reads_are_reads.py::test_without_a_grammar_no_read_is_a_frame_that_its_driver_writes",
    ),
    PlantedBug(
        "blank field told apart",
        "labharness/vocabulary/frames.py",
        "    return all(a == b or place in blank for",
        "    return all(a == b for",
        "tests/test_reads_are_reads.py::test_frames_that_differ_in_the_blank_field_alone_are_the_same",
    ),
    PlantedBug(
        "guard believes what it is told are reads",
        "labharness/guard/armed.py",
        "        _only_reads(ports, procedures)\n",
        "",
        "tests/test_guard_armed.py::test_what_is_wrong_with_an_arming_is_said",
    ),
    PlantedBug(
        "gases weighed as they are declared",
        "labharness/desk/energised.py",
        "            if adding or flowed_cm3 > FLOWED_CM3:\n",
        "            if flowed_cm3 < 0:\n",
        "tests/test_nobodys_word.py::test_hydrogen_that_no_declaration_names_is_weighed_named_and_waits_for_a_person",
        dear=True,
    ),
    PlantedBug(
        "temperature weighed as it is declared",
        "labharness/desk/admitting.py",
        "            for each in (planned.temperature_c_max, shown.temperature_c_max)\n",
        "            for each in (planned.temperature_c_max,)\n",
        "tests/test_nobodys_word.py::test_a_temperature_that_is_said_lower_than_it_is_set_counts_as_set",
        dear=True,
    ),
    PlantedBug(
        "hours as they are declared",
        "labharness/desk/admitting.py",
        "self._too_long(screened, prediction.duration_s, screened.max_duration_s)\n",
        "self._too_long(screened, weighed.planned.duration_s, screened.max_duration_s)\n",
        "tests/test_nobodys_word.py::test_hours_that_are_said_fewer_than_they_are_count_as_they_are",
        dear=True,
    ),
    PlantedBug(
        "nobody asked where a capability says so",
        "labharness/admission/audit.py",
        "requires_human_approval or context.physical\n",
        "requires_human_approval\n",
        "tests/test_nobodys_word.py::test_a_capability_that_declares_nothing_physical_still_waits_for_a_person",
        dear=True,
    ),
    PlantedBug(
        "command sent that was never weighed",
        "labharness/desk/operations.py",
        "        if why:\n            return Outcome(command",
        "        if why is None:\n            return Outcome(command",
        "tests/test_nobodys_word.py::test_a_command_that_adds_energy_and_was_not_stated_is_refused_when_it_is_sent",
        dear=True,
    ),
    PlantedBug(
        "what pre-flight saw not weighed",
        "labharness/desk/energised.py",
        "                if prediction is not None:\n",
        "                if prediction is None:\n",
        "tests/test_nobodys_word.py::test_what_a_flight_shows_counts_though_no_command_says_it",
    ),
    PlantedBug(
        "program weighed by the setpoint beside it",
        "labharness/desk/energised.py",
        "        if asked_c and not driven:\n",
        "        if asked_c:\n",
        "tests/test_nobodys_word.py::test_a_program_that_the_instrument_runs_counts_as_its_highest",
    ),
    PlantedBug(
        "relay that no row describes taken for harmless",
        "labharness/lab/energy.py",
        "            if spec.wired and spec.settable and channel not in described:\n",
        "            if spec.wired and spec.settable and channel in ():\n",
        "tests/test_nobodys_word.py::test_a_relay_that_no_row_describes_counts_as_the_gravest",
    ),
    PlantedBug(
        "rule on a name that no answer has passed over",
        "labharness/admission/asked.py",
        "            if closed and name not in known:\n",
        "            if False:\n",
        "tests/test_admission_asked.py::"
        "test_a_task_whose_schema_asks_in_a_misspelt_name_is_rejected_before_anything",
    ),
)
