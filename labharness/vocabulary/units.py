"""The units this house knows, and the few conversions made at its faces."""

__all__ = ["KNOWN_UNITS", "celsius_from_kelvin"]


KNOWN_UNITS = frozenset(
    {
        "",
        "degC",
        "K",
        "degC/min",
        "sccm",
        "ccm",
        "Torr",
        "Pa",
        "atm",
        "%",
        "ppm",
        "s",
        "ms",
        "W",
        "mW",
        "V",
        "nm",
        "um",
        "h",
        "psia",
        "counts",
    }
)

ZERO_CELSIUS_K = 273.15  # definition of the degree Celsius, SI brochure 9th ed. 2.3.1


def celsius_from_kelvin(temperature_k: float) -> float:
    """Convert a temperature in kelvin to degrees Celsius."""
    return temperature_k - ZERO_CELSIUS_K
