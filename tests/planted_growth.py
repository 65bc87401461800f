"""Planted bugs in what the plan of a growth leaves behind while it cools."""

from planted_bug import PlantedBug

BUGS = (
    PlantedBug(
        "sulfur cut off at the end of the dwell",
        "labharness.work.capability.cvd.recipe:growth_facts",
        "{**GROWTH_DEFAULTS, **facts.settings.growth}",
        "{**GROWTH_DEFAULTS, 'sulfur_until_c': 900.0, **facts.settings.growth}",
        "test_sulfur_flows_until_the_film_is_below_550_degrees",
        detector="referee",
    ),
    PlantedBug(
        "full output behind an open contactor",
        "labharness.work.capability.cvd.planner:_Growth.cool",
        "self._rest('furnace')",
        "",
        "test_no_controller_asks_for_heat_behind_its_open_contactor[short]",
        detector="referee",
    ),
)
