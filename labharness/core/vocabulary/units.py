"""The few unit conversions in the code; of temperatures each unit that a row may be in."""

from collections.abc import Mapping
from typing import Final

ZERO_CELSIUS_K = 273.15  # definition of the degree Celsius, SI brochure 9th ed. 2.3.1
ATMOSPHERE_TORR = 760.0  # definition of the torr, CGPM 1954
CELSIUS: Final = "degC"
TEMPERATURES: Final[Mapping[str, tuple[float, float]]] = {
    # a degree Celsius in each unit, and the unit's reading at 0 degC
    CELSIUS: (1.0, 0.0),
    "K": (1.0, ZERO_CELSIUS_K),
    "degF": (1.8, 32.0),  # NIST SP 811, appendix B.8
}
"""The units in which a line compares temperatures."""
_OTHERS = frozenset({"°c", "℃", "celsius", "deg_c", "kelvin", "mk", "°f", "fahrenheit"})


def temperature_in(unit: str, value: float, of: str = CELSIUS) -> float:
    """Convert a temperature of one unit of `TEMPERATURES` to another one."""
    per_degree, at_zero = TEMPERATURES[of]
    degree, zero = TEMPERATURES[unit]
    return (value - at_zero) / per_degree * degree + zero


def incomparable(channel: str, unit: str) -> bool:
    """Return whether a channel is a temperature, by name or unit, that no line can compare."""
    named = channel == "temperature" or channel.endswith("_temperature")
    return unit not in TEMPERATURES and (named or unit.lower().replace(" ", "_") in _OTHERS)


def celsius_from_kelvin(temperature_k: float) -> float:
    """Convert a temperature in kelvin to degrees Celsius."""
    return temperature_k - ZERO_CELSIUS_K
