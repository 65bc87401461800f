"""The few unit conversions in the code."""

__all__ = ["ATMOSPHERE_TORR", "ZERO_CELSIUS_K", "celsius_from_kelvin"]

ZERO_CELSIUS_K = 273.15  # definition of the degree Celsius, SI brochure 9th ed. 2.3.1
ATMOSPHERE_TORR = 760.0  # definition of the torr, CGPM 1954


def celsius_from_kelvin(temperature_k: float) -> float:
    """Convert a temperature in kelvin to degrees Celsius."""
    return temperature_k - ZERO_CELSIUS_K
