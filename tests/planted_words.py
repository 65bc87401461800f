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
        "        for why in unproven_reads(instruments, envelope, procedures, real):\n",
        "        for why in ():\n",
        "tests/test_reads_are_reads.py::test_a_poll_that_is_a_coil_write_never_reaches_the_contactor[Modbus]",
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
)
