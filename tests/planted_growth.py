"""Planted bugs in what the plan of a growth leaves behind while it cools."""

from planted_bug import PlantedBug

__all__ = ["IN_THE_GROWTH"]

IN_THE_GROWTH = (
    PlantedBug(
        "sulfur cut off at the end of the dwell",
        "labharness/capability/cvd/recipe.py",
        '"sulfur_until_c": 500.0,',
        '"sulfur_until_c": 900.0,',
        "tests/test_cooling_of_a_growth.py::test_sulfur_flows_until_the_film_is_below_550_degrees",
    ),
    PlantedBug(
        "full output behind an open contactor",
        "labharness/capability/cvd/planner.py",
        '    _rest(steps, "furnace", facts)\n',
        "",
        "tests/test_cooling_of_a_growth.py::"
        "test_no_controller_asks_for_heat_behind_its_open_contactor[short]",
    ),
)
