"""Planted bugs in what the plan of a growth leaves behind while it cools."""

from planted_bug import PlantedBug

__all__ = ["IN_THE_GROWTH"]

IN_THE_GROWTH = (
    PlantedBug(
        "sulfur cut off at the end of the dwell",
        "labharness.work.capability.cvd.recipe",
        "GROWTH_DEFAULTS: Mapping[str, float] = {'temperature_c': 735.0, 'dwell_s': "
        "600.0, 'ramp_c_per_min': 15.0, 'final_ramp_c_per_min': 5.0, 'argon_sccm': "
        "50.0, 'purge_sccm': 480.0, 'purge_volumes': 5.5, 'moo3_mass_mg': 15.0, "
        "'sulfur_mass_mg': 100.0, 'sulfur_temperature_c': 200.0, "
        "'sulfur_ramp_c_per_min': 30.0, 'sulfur_until_c': 500.0, 'open_below_c': 60.0, "
        "'cool_tau_s': 5800.0, 'leak_mbar_l_per_s': 0.001, 'operator_s': 600.0}",
        "GROWTH_DEFAULTS: Mapping[str, float] = {'temperature_c': 735.0, 'dwell_s': "
        "600.0, 'ramp_c_per_min': 15.0, 'final_ramp_c_per_min': 5.0, 'argon_sccm': "
        "50.0, 'purge_sccm': 480.0, 'purge_volumes': 5.5, 'moo3_mass_mg': 15.0, "
        "'sulfur_mass_mg': 100.0, 'sulfur_temperature_c': 200.0, "
        "'sulfur_ramp_c_per_min': 30.0, 'sulfur_until_c': 900.0, 'open_below_c': 60.0, "
        "'cool_tau_s': 5800.0, 'leak_mbar_l_per_s': 0.001, 'operator_s': 600.0}",
        "tests/work/capability/test_cooling_of_a_growth.py::test_sulfur_flows_until_the_film_is_below_550_degrees",
        promise=49,
        detector="referee",
        daily=True,
    ),
    PlantedBug(
        "full output behind an open contactor",
        "labharness.work.capability.cvd.planner:_cool",
        "_rest(steps, 'furnace', facts)",
        "",
        "tests/work/capability/test_cooling_of_a_growth.py::"
        "test_no_controller_asks_for_heat_behind_its_open_contactor[short]",
        promise=49,
        detector="referee",
    ),
)
