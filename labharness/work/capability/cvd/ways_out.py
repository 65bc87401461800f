"""Growths near to one that was rejected: what may be tried instead, the nearest first."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from labharness.core.vocabulary.units import celsius_from_kelvin

TOPS_C = (799.0, 775.0, 750.0, 725.0, 700.0)
"""Tops of the temperature range: just below where risk rises, then down the monolayer window."""

SPAN_C = 50.0
"""Width of a range whose bottom had to move."""

PLAIN_RECIPE = ("hydrogen_sccm", "ramp_c_per_min", "argon_sccm", "sulfur_temperature_c")
"""Values of a recipe that the line's own stand in for, one after the other."""


def ways_out(inputs: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Return other inputs: the recipe's values given up one by one, then the range lowered."""
    recipe = inputs.get("recipe")
    recipe = dict(recipe) if isinstance(recipe, Mapping) else {}
    for name in PLAIN_RECIPE:
        if name in recipe:
            yield _with_recipe(inputs, {k: v for k, v in recipe.items() if k != name})
    cooler = {k: v for k, v in recipe.items() if k != "temperature_c"}
    bottom_c, top_c = _range_c(inputs.get("temperature_range"))
    hottest_c = max(top_c, _number(recipe.get("temperature_c"), -math.inf))
    for new_c in TOPS_C:
        if new_c < hottest_c:
            low_c = bottom_c if -math.inf < bottom_c < new_c else new_c - SPAN_C
            bounds = {"min": low_c, "max": new_c, "unit": "celsius"}
            yield {**_with_recipe(inputs, cooler), "temperature_range": bounds}


def _with_recipe(inputs: Mapping[str, Any], recipe: Mapping[str, Any]) -> dict[str, Any]:
    rest = {k: v for k, v in inputs.items() if k != "recipe"}
    return {**rest, "recipe": dict(recipe)} if recipe else rest


def _range_c(bounds: object) -> tuple[float, float]:
    if not isinstance(bounds, Mapping):
        return -math.inf, math.inf
    low, high = _number(bounds.get("min"), -math.inf), _number(bounds.get("max"), math.inf)
    if bounds.get("unit") == "kelvin":
        return celsius_from_kelvin(low), celsius_from_kelvin(high)
    return low, high


def _number(value: object, otherwise: float) -> float:
    return float(value) if isinstance(value, int | float) else otherwise
