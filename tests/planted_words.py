"""Planted bugs in what nobody is believed of: that a frame reads, and what a plan needs."""

from planted_bug import PlantedBug

__all__ = ["IN_THE_WORDS"]

IN_THE_WORDS = (
    PlantedBug(
        "poll that writes taken for a read",
        "labharness.vocabulary.frames:why_no_read",
        "function not in MODBUS_READS",
        "function not in MODBUS_READS | MODBUS_OTHERS",
        "tests/test_reads_are_reads.py::test_a_poll_that_is_a_coil_write_never_reaches_the_contactor[text]",
    ),
    PlantedBug(
        "reads of a lab not proven when it is read",
        "labharness.lab.reading:read_lab",
        "wrong += unproven_reads(instruments, envelope, procedures or {}, real)",
        "",
        "tests/test_reads_are_reads.py::test_a_poll_that_is_a_coil_write_never_reaches_the_contactor[Modbus]",
        dear=True,
    ),
    PlantedBug(
        "grammar of one's own alone asked",
        "labharness.lab.reads:_reads",
        "[(each.name, each.driver) for each in here]",
        "[(instrument.name, instrument.driver)]",
        "tests/test_reads_are_reads.py::test_a_read_is_held_against_the_grammars_of_all_on_its_port",
    ),
    PlantedBug(
        "grammar not held against what its driver writes",
        "labharness.lab.reads:_not_in_its_grammar",
        "not is_written(request, driver.write_grammar)",
        "request is None",
        "tests/test_reads_are_reads.py::test_a_read_that_may_write_is_refused_when_the_lab_is_read[uncovered]",
    ),
    PlantedBug(
        "driver without a grammar let on a real link",
        "labharness.lab.reads:_bad_grammar",
        "silent and settable and real",
        "silent and settable and (not real)",
        "tests/test_reads_are_reads.py::test_a_text_driver_that_states_no_grammar_of_writes_stays_off_real_links",
    ),
    PlantedBug(
        "read that is a frame of a command",
        "labharness.lab.reads:_reads",
        "does = [doing for doing, each in writes if same_frame(request, each)]",
        "does: list[str] = []",
        "tests/test_reads_are_reads.py::test_without_a_grammar_no_read_is_a_frame_that_its_driver_writes",
    ),
    PlantedBug(
        "blank field told apart",
        "labharness.vocabulary.frames:same_frame",
        "a == b or place in blank",
        "a == b",
        "tests/test_reads_are_reads.py::test_frames_that_differ_in_the_blank_field_alone_are_the_same",
    ),
    PlantedBug(
        "guard believes what it is told are reads",
        "labharness.guard.armed:read_armed",
        "_only_reads(ports, procedures)",
        "",
        "tests/test_guard_armed.py::test_what_is_wrong_with_an_arming_is_said",
    ),
    PlantedBug(
        "gases weighed as they are declared",
        "labharness.desk.energised:energised",
        "adding or flowed_cm3 > FLOWED_CM3",
        "flowed_cm3 < 0",
        "tests/test_nobodys_word.py::test_hydrogen_that_no_declaration_names_is_weighed_named_and_waits_for_a_person",
        dear=True,
    ),
    PlantedBug(
        "temperature weighed as it is declared",
        "labharness.desk.admitting:Admitting._weighed",
        "(planned.temperature_c_max, shown.temperature_c_max)",
        "(planned.temperature_c_max,)",
        "tests/test_nobodys_word.py::test_a_temperature_that_is_said_lower_than_it_is_set_counts_as_set",
        dear=True,
    ),
    PlantedBug(
        "hours as they are declared",
        "labharness.desk.admitting:Admitting.predict",
        "self._too_long(screened, prediction.duration_s, screened.max_duration_s)",
        "self._too_long(screened, weighed.planned.duration_s, screened.max_duration_s)",
        "tests/test_nobodys_word.py::test_hours_that_are_said_fewer_than_they_are_count_as_they_are",
        dear=True,
    ),
    PlantedBug(
        "nobody asked where a capability says so",
        "labharness.admission.audit:weigh",
        "declaration.safety.requires_human_approval or context.physical",
        "declaration.safety.requires_human_approval",
        "tests/test_nobodys_word.py::test_a_capability_that_declares_nothing_physical_still_waits_for_a_person",
        dear=True,
    ),
    PlantedBug(
        "command sent that was never weighed",
        "labharness.desk.operations:LineOperations.perform",
        "if why:\n    return Outcome(command, Ending.REFUSED, detail=why)",
        "if why is None:\n    return Outcome(command, Ending.REFUSED, detail=why)",
        "tests/test_nobodys_word.py::test_a_command_that_adds_energy_and_was_not_stated_is_refused_when_it_is_sent",
        dear=True,
    ),
    PlantedBug(
        "what pre-flight saw not weighed",
        "labharness.desk.energised:energised",
        "prediction is not None",
        "prediction is None",
        "tests/test_nobodys_word.py::test_what_a_flight_shows_counts_though_no_command_says_it",
    ),
    PlantedBug(
        "program weighed by the setpoint beside it",
        "labharness.desk.energised:EnergySource.highest_c",
        "asked_c and (not driven)",
        "asked_c",
        "tests/test_nobodys_word.py::test_a_program_that_the_instrument_runs_counts_as_its_highest",
    ),
    PlantedBug(
        "relay that no row describes taken for harmless",
        "labharness.lab.energy:_relays",
        "channel not in described",
        "channel in ()",
        "tests/test_nobodys_word.py::test_a_relay_that_no_row_describes_counts_as_the_gravest",
    ),
    PlantedBug(
        "rule on a name that no answer has passed over",
        "labharness.admission.asked:_unheard",
        "closed and name not in known",
        "False",
        "tests/test_admission_asked.py::"
        "test_a_task_whose_schema_asks_in_a_misspelt_name_is_rejected_before_anything",
    ),
)
