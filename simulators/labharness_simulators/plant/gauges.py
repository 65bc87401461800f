"""The tube's pressure gauge, and the hydrogen detector in the room."""

from math import exp

from labharness_simulators.plant.faults import Faults
from labharness_simulators.plant.gas import ATMOSPHERE_PA, PA_PER_TORR


class Gauge:
    """A pressure gauge of 0.5 % of reading (MKS 900 class) with 0.1 % noise.

    Attributes:
        gain: reading divided by true pressure.
    """

    __slots__ = ("_faults", "_noise", "_pressure_pa", "gain")

    NOISE = 1e-3

    def __init__(self, faults: Faults, gain: float, pressure_pa: float = ATMOSPHERE_PA) -> None:
        self._faults = faults
        self.gain = gain
        self._pressure_pa = pressure_pa
        self._noise = 0.0

    @property
    def pressure_torr(self) -> float:
        """The measured absolute pressure of the tube in Torr."""
        reading = self._pressure_pa / PA_PER_TORR * self.gain * (1.0 + self._noise)
        if self._faults.sensors:
            reading = self._faults.heard("gauge", reading)
        return reading if reading == reading else 0.0  # a dead transducer reads zero

    def step(self, pressure_pa: float, noise: float) -> None:
        """Store the tube's pressure; `noise` is a standard normal draw."""
        self._pressure_pa = pressure_pa
        self._noise = noise * self.NOISE


class Detector:
    """A hydrogen detector above the line, reached by the gas that leaves the tube into the room.

    Attributes:
        fault: fault number the face reports; 0 is none.
        state: monitor state the face reports; 1 is monitoring.
        room_ppm: hydrogen in the room's air at the detector.
    """

    __slots__ = ("_faults", "_noise_ppm", "fault", "room_ppm", "state")

    ROOM_AIR_SCCM = 20_000.0  # fresh air past the detector; 100 sccm of hydrogen give 5000 ppm
    LAG_S = 20.0
    NOISE_PPM = 2.0

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self._noise_ppm = 0.0
        self.fault = 0
        self.state = 1
        self.room_ppm = 0.0

    @property
    def concentration_ppm(self) -> float:
        """The measured hydrogen in ppm, never below 0."""
        reading = self.room_ppm + self._faults.h2_detector_offset_ppm + self._noise_ppm
        if self._faults.sensors:
            reading = self._faults.heard("h2_detector", reading)
        return reading if reading > 0.0 else 0.0  # a dead sensor's NaN also gives 0

    def step(self, dt_s: float, escaping_sccm: float, noise: float) -> None:
        """Advance by `dt_s` with this flow of hydrogen into the room."""
        self._noise_ppm = noise * self.NOISE_PPM
        if escaping_sccm > 0.0 or self.room_ppm > 1e-3:
            settled = 1e6 * escaping_sccm / self.ROOM_AIR_SCCM
            self.room_ppm = settled + (self.room_ppm - settled) * exp(-dt_s / self.LAG_S)
