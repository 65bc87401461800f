"""The simulated plant: physics that the wire faces read and set; `plant.step(dt_s)` advances it."""

from labharness_simulators.plant.annealing_tube import AnnealingTube
from labharness_simulators.plant.cvd_tube import CvdTube
from labharness_simulators.plant.diode import Diode, DiodeBench
from labharness_simulators.plant.faults import Faults
from labharness_simulators.plant.film import Film
from labharness_simulators.plant.furnace import Heater, SulfurHeater, TubeFurnace
from labharness_simulators.plant.gas import MassFlow, TubeGas
from labharness_simulators.plant.gauges import Detector, Gauge
from labharness_simulators.plant.growth import Growth
from labharness_simulators.plant.optics import Laser, Spectrometer
from labharness_simulators.plant.relays import Relays
from labharness_simulators.plant.sample import Sample
from labharness_simulators.plant.sensors import SensorFault, SensorFaultKind
from labharness_simulators.plant.stage import MicroscopeStage

__all__ = [
    "PLANTS",
    "AnnealingTube",
    "CvdTube",
    "Detector",
    "Diode",
    "DiodeBench",
    "Faults",
    "Film",
    "Gauge",
    "Growth",
    "Heater",
    "Laser",
    "MassFlow",
    "MicroscopeStage",
    "Relays",
    "Sample",
    "SensorFault",
    "SensorFaultKind",
    "Spectrometer",
    "SulfurHeater",
    "TubeFurnace",
    "TubeGas",
]

# The names that a lab file may give as its plant.
PLANTS = {"annealing_tube": AnnealingTube, "cvd_tube": CvdTube, "diode_bench": DiodeBench}
