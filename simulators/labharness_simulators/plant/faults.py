"""The faults of the simulated line: one field per fault, which the parts read at once."""

import random
from dataclasses import dataclass, field

from labharness_simulators.plant.sensors import SensorFault, SensorFaultKind


@dataclass(slots=True)
class Faults:
    """The faults of one line; healthy by default.

    Attributes:
        add_furnace_c_per_s: heating of a stuck output stage, in °C/s on the winding. It ignores the
            controller's power and needs the furnace's mains contactor.
        furnace_sensor_broken: the furnace's thermocouple is open; its temperature reads NaN.
        sulfur_sensor_broken: the same for the sulfur heater.
        hydrogen_leak_sccm: flow from an open fitting between the hydrogen valve and the flow
            controller into the room, while the valve is open. The cylinder's regulator drives it,
            so the controller neither meters nor stops it.
        h2_detector_offset_ppm: a false reading added to the room's hydrogen.
        estop_open: the E-stop loop is open; its own contacts also drop both heaters' mains.
        lid_open: the tube is open to the room.
        exhaust_lost: the extraction stopped; gas that leaves the tube stays in the room.
        enclosure_open: the laser enclosure is open; its own contacts also block the beam.
        air_leak_sccm: air drawn into the tube at any pressure.
        outlet_blocked: sulfur has clogged the tube's outlet, upstream of both vent and pump.
        pump_stopped: the pump stands still, even with its relay on.
        stuck: contacts that ignore their coil (a welded contactor, a sticking valve), by the coil's
            index from 0. True means as if energised.
        sensors: sensors that lie, by the name of the part: `furnace`, `sulfur`, `argon`,
            `nitrogen`, `hydrogen`, `gauge`, `h2_detector`.
    """

    add_furnace_c_per_s: float = 0.0
    furnace_sensor_broken: bool = False
    sulfur_sensor_broken: bool = False
    hydrogen_leak_sccm: float = 0.0
    h2_detector_offset_ppm: float = 0.0
    estop_open: bool = False
    lid_open: bool = False
    exhaust_lost: bool = False
    enclosure_open: bool = False
    air_leak_sccm: float = 0.0
    outlet_blocked: bool = False
    pump_stopped: bool = False
    stuck: dict[int, bool] = field(default_factory=dict)
    sensors: dict[str, SensorFault] = field(default_factory=dict)

    def lie(self, sensor: str, how: str, amount: float, chance: random.Random) -> None:
        """Let a sensor lie from now on; `SensorFault` explains the amount."""
        self.sensors[sensor] = SensorFault(SensorFaultKind(how), amount, chance)

    def advance_to(self, now_s: float) -> None:
        """Set the time of the lying sensors, in seconds from the plant's start."""
        for fault in self.sensors.values():
            fault.now_s = now_s

    def heard(self, sensor: str, value: float) -> float:
        """Return a sensor's reading of a true value; NaN without a signal."""
        fault = self.sensors.get(sensor)
        return value if fault is None else fault.heard(value)

    def silent(self, sensor: str) -> bool:
        """Return whether a sensor gives no signal now."""
        fault = self.sensors.get(sensor)
        return fault is not None and fault.silent()
