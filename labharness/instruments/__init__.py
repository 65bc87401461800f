"""Instruments: connections to them, the kit for their drivers, the kit for their simulators."""
