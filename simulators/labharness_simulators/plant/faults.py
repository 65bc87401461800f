"""What may break in the simulated line: one field a fault, read by the parts at once."""

from dataclasses import dataclass

__all__ = ["Faults"]


@dataclass(slots=True)
class Faults:
    """The faults of one line; healthy by default.

    Attributes:
        add_furnace_c_per_s: heating of a stuck output stage, in °C/s on the winding. It ignores the
            controller's power and needs the furnace's mains contactor.
        furnace_sensor_broken: the furnace's thermocouple is open; its temperature reads NaN.
        sulfur_sensor_broken: the same for the sulfur heater.
        h2_detector_offset_ppm: a false reading added to the room's hydrogen.
        estop_open: the E-stop loop is open; its own contacts also drop both heaters' mains.
        lid_open: the tube stands open to the room.
        exhaust_lost: the extraction stopped; what leaves the tube stays in the room.
        enclosure_open: the laser enclosure is open; its own contacts also block the beam.
        air_leak_sccm: air drawn into the tube at any pressure.
        outlet_blocked: sulfur has clogged the tube's outlet, ahead of both vent and pump.
    """

    add_furnace_c_per_s: float = 0.0
    furnace_sensor_broken: bool = False
    sulfur_sensor_broken: bool = False
    h2_detector_offset_ppm: float = 0.0
    estop_open: bool = False
    lid_open: bool = False
    exhaust_lost: bool = False
    enclosure_open: bool = False
    air_leak_sccm: float = 0.0
    outlet_blocked: bool = False
