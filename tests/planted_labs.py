"""Planted bugs in the small labs that ship: an annealing furnace, and a source meter on a diode."""

from planted_bug import PlantedBug

BUGS = (
    PlantedBug(
        "furnace left hot after an annealing",
        "labharness.work.capability.annealing.__init__:_steps",
        "steps.set('heat_off', setpoint, 0.0, 'degC', Text('anneal.off'))",
        "",
        "test_the_sample_is_kept_at_the_temperature_for_the_time[150]",
    ),
    PlantedBug(
        "dwell of an annealing begun too cold",
        "labharness.work.capability.steps",
        "TOLERANCE_C = 3.0",
        "TOLERANCE_C = 30.0",
        "test_the_sample_is_kept_at_the_temperature_for_the_time[300]",
        dear=True,
    ),
    PlantedBug(
        "heat of an annealing beyond what its furnace takes",
        "labharness.work.capability.annealing.__init__:Annealing.planned",
        "not low <= value <= high",
        "False",
        "test_what_the_line_does_not_allow_is_rejected_with_what_it_does",
    ),
    PlantedBug(
        "the voltage that was set taken for the one at the terminals",
        "labharness.work.capability.iv_curve.__init__:sweep",
        "line.latest(asked['measured'])",
        "volts",
        "test_in_compliance_the_curve_has_what_was_measured_and_says_so",
    ),
    PlantedBug(
        "leakage counted as the diode's",
        "labharness.work.capability.iv_curve.__init__:IvCurve.answer",
        "a >= FORWARD_A",
        "a > 0",
        "test_the_diode_is_found_as_it_is",
    ),
    PlantedBug(
        "output of a source meter never switched on",
        "labharness.work.capability.iv_curve.__init__:IvCurve.planned",
        "steps.set('on', output, 1, '', Text('sweep.on'))",
        "",
        "test_its_example_runs_to_an_answer_and_a_report[iv_bench]",
    ),
    PlantedBug(
        "voltages of a sweep kept from the gate",
        "labharness.work.capability.iv_curve.__init__:IvCurve.planned",
        "[[voltage, start_v, 'V'], [voltage, stop_v, 'V'], [voltage, 0.0, 'V']]",
        "[]",
        "test_a_voltage_beyond_the_envelope_is_rejected_with_one_that_is_not[end0]",
    ),
)
