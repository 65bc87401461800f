"""A simulated Horiba ICL with one monochromator and one CCD, as its WebSocket sees it.

Written from the "ICL API Programmers Manual" (horiba-python-sdk, ``docs/source/icl_api.md``) and,
for the shape of a spectrum, from programs that use it.
"""

import random
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from labharness.simulation import JsonFace, LoopEnvironment
from labharness_simulators.plant.optics import Spectrometer

__all__ = ["Simulator"]

HOMING_S = 10.0
EXPOSURE_MS_MAX = 3_600_000
ERRORS = {
    "unknown": (-2, "Unknown command"),
    "ccd_already_open": (-301, "CCD already open"),
    "ccd_already_closed": (-302, "CCD already closed"),
    "ccd_not_open": (-305, "CCD not open"),
    "ccd_not_found": (-306, "CCD not found"),
    "ccd_index": (-307, "Invalid CCD index"),
    "ccd_acquiring": (-309, "CCD acquiring"),
    "ccd_no_spectra": (-312, "Get spectra failed"),
    "ccd_value": (-318, "Invalid value"),
    "ccd_running": (-320, "Acquisition already running"),
    "ccd_missing": (-324, "Missing parameter"),
    "mono_already_open": (-501, "Mono already open"),
    "mono_already_closed": (-503, "Mono already closed"),
    "mono_not_init": (-505, "Mono not initialized"),
    "mono_not_open": (-506, "Mono not open"),
    "mono_not_found": (-507, "Mono not found"),
    "mono_index": (-508, "Invalid mono index"),
    "mono_value": (-513, "Invalid parameter"),
    "mono_busy": (-519, "Mono busy"),
    "mono_missing": (-521, "Missing parameter"),
}
Answer = Mapping[str, object]


def refusal(name: str) -> ValueError:
    """Make the error that the ICL answers with."""
    code, text = ERRORS[name]
    return ValueError(f"[E];{code};{text}")


class Simulator(JsonFace):
    """The library and its two devices; each exposure is drawn once, when it ends."""

    latency_s = 0.02
    writes = re.compile(".*_(open|close|init|moveToPosition|set[A-Z].*)")

    def __init__(
        self,
        env: LoopEnvironment,
        part: Spectrometer,
        chance: random.Random,
        *,
        mono_index: int = 0,
        ccd_index: int = 0,
        chip_width: int = 1024,
        chip_height: int = 256,
    ) -> None:
        self._env = env
        self._part = part
        self._index = {"mono": mono_index, "ccd": ccd_index}
        self._chip = (chip_width, chip_height)
        self._found = {"mono": False, "ccd": False}
        self._open = {"mono": False, "ccd": False}
        self._homed = False
        self._homing: Any = None  # a SimPy event, while it runs
        self._reset_ccd()
        self._always: dict[str, Callable[[], Answer]] = {
            "icl_info": lambda: {
                "nodeAlias": "ICL",
                "nodeApiVersion": 300,
                "nodeBuilt": "Dec  5 2023-13:17:00",
                "nodeDescription": "Instrument Control Library",
                "nodeId": 1,
                "nodeVersion": "2.0.0.108.d762232a",
            },
            "mono_discover": lambda: self._discover("mono"),
            "ccd_discover": lambda: self._discover("ccd"),
        }
        self._reads: dict[str, Callable[[], Answer]] = {
            "mono_getPosition": lambda: {"wavelength": part.centre_nm},
            "mono_isBusy": lambda: {"busy": self._mono_busy()},
            "mono_isInitialized": lambda: {"initialized": self._homed and not self._mono_busy()},
            "ccd_getChipSize": lambda: {"x": chip_width, "y": chip_height},
            "ccd_getChipTemperature": lambda: {"temperature": part.chip_temperature_c},
            "ccd_getExposureTime": lambda: {"time": self._exposure_ms},
            "ccd_getXAxisConversionType": lambda: {"type": self._x_axis},
            "ccd_getDataSize": lambda: {"size": self._roi[1]},
            "ccd_getAcquisitionBusy": lambda: {"isBusy": self._exposing is not None},
            "ccd_getAcquisitionData": self._data,
        }
        self._writes: dict[str, Callable[[Answer], None]] = {
            "mono_init": self._home,
            "mono_moveToPosition": self._move,
            "ccd_setExposureTime": self._set_exposure,
            "ccd_setXAxisConversionType": self._set_x_axis,
            "ccd_setCenterWavelength": self._set_centre,
            "ccd_setAcqFormat": self._set_format,
            "ccd_setRoi": self._set_roi,
            "ccd_setAcquisitionStart": self._start,
            "ccd_setAcquisitionAbort": self._abort,
        }

    def answer(self, command: str, parameters: Mapping[str, object]) -> Answer:
        """Answer one command; names count by the case of their letters."""
        if command in self._always:
            return self._always[command]()
        device, _, verb = command.partition("_")
        links = ("open", "close", "isOpen")
        if not (device in self._open and verb in links) and (
            command not in self._reads and command not in self._writes
        ):
            raise refusal("unknown")
        if parameters.get("index") != self._index[device]:
            raise refusal(f"{device}_index")
        if verb in links:
            return self._link(device, verb)
        if not self._open[device]:
            raise refusal(f"{device}_not_open")
        if command in self._reads:
            return self._reads[command]()
        if self._exposing is not None and command.startswith("ccd_set"):
            if command == "ccd_setAcquisitionStart":
                raise refusal("ccd_running")
            if command != "ccd_setAcquisitionAbort":
                raise refusal("ccd_acquiring")
        self._writes[command](parameters)
        return {}

    def _discover(self, device: str) -> Answer:
        self._found[device] = True
        return {"count": 1}

    def _link(self, device: str, verb: str) -> Answer:
        if verb == "isOpen":
            return {"open": self._open[device]}
        if not self._found[device]:
            raise refusal(f"{device}_not_found")
        wanted = verb == "open"
        if self._open[device] is wanted:
            raise refusal(f"{device}_already_{'open' if wanted else 'closed'}")
        self._open[device] = wanted
        if device == "ccd":
            self._reset_ccd()
        return {}

    def _reset_ccd(self) -> None:
        self._exposure_ms = 0
        self._x_axis = 0
        self._told_centre_nm = 0.0
        self._format_set = False
        self._roi = (1, 0)  # first pixel, how many
        self._exposing: Any = None  # a SimPy event, while it runs
        self._counts: list[int] | None = None

    def _mono_busy(self) -> bool:
        return self._part.moving or self._homing is not None

    def _home(self, parameters: Answer) -> None:
        if self._mono_busy():
            raise refusal("mono_busy")
        if self._homed and not parameters.get("force"):
            return
        self._homing = self._env.seconds(HOMING_S)
        self._homing.callbacks.append(self._end_homing)

    def _end_homing(self, _: object) -> None:
        self._homing, self._homed = None, True

    def _move(self, parameters: Answer) -> None:
        if not self._homed:
            raise refusal("mono_not_init")
        if self._mono_busy():
            raise refusal("mono_busy")
        wavelength_nm = _number(parameters, "wavelength", "mono_missing")
        if not 0.0 <= wavelength_nm <= 1500.0:
            raise refusal("mono_value")
        self._part.centre_nm = wavelength_nm

    def _set_exposure(self, parameters: Answer) -> None:
        (self._exposure_ms,) = _wholes(parameters, ["time"], 0, EXPOSURE_MS_MAX)

    def _set_x_axis(self, parameters: Answer) -> None:
        (self._x_axis,) = _wholes(parameters, ["type"], 0, 2)

    def _set_centre(self, parameters: Answer) -> None:
        self._told_centre_nm = _number(parameters, "wavelength", "ccd_missing")

    def _set_format(self, parameters: Answer) -> None:
        regions, form = _wholes(parameters, ["numberOfRois", "format"], 0, 3)
        if (regions, form) != (1, 0):
            raise refusal("ccd_value")
        self._format_set = True

    def _set_roi(self, parameters: Answer) -> None:
        width, height = self._chip
        _wholes(parameters, ["roiIndex", "xBin"], 1, 1)
        first, count = _wholes(parameters, ["xOrigin", "xSize"], 1, width)
        top, rows, summed = _wholes(parameters, ["yOrigin", "ySize", "yBin"], 1, height)
        if first + count - 1 > width or top + rows - 1 > height or rows != summed:
            raise refusal("ccd_value")
        self._roi = (first, count)

    def _start(self, parameters: Answer) -> None:
        if type(parameters.get("openShutter")) is not bool:
            raise refusal("ccd_missing")
        if not self._exposure_ms:
            raise refusal("ccd_value")
        self._counts = None
        self._exposing = self._env.seconds(self._exposure_ms / 1000.0)
        self._exposing.callbacks.append(self._end_exposure)

    def _end_exposure(self, event: object) -> None:
        if event is self._exposing:
            self._exposing = None
            self._counts = self._part.exposure(self._exposure_ms / 1000.0, 1)

    def _abort(self, parameters: Answer) -> None:
        self._exposing = None

    def _data(self) -> Answer:
        if self._exposing is not None:
            raise refusal("ccd_acquiring")
        if self._counts is None:
            raise refusal("ccd_no_spectra")
        first, count = self._roi
        if not (count and self._format_set):
            return {"acquisition": []}  # nothing was set up, so nothing was generated
        chosen = slice(first - 1, first - 1 + count)
        region = {
            "roiIndex": 1,
            "xBinning": 1,
            "xOrigin": first,
            "xSize": count,
            "xData": self._axis()[chosen],
            "yBinning": self._chip[1],
            "yData": [self._counts[chosen]],
            "yOrigin": 1,
            "ySize": self._chip[1],
        }
        return {"acquisition": [{"acqIndex": 1, "roi": [region]}]}

    def _axis(self) -> list[float]:
        if self._x_axis != 2:
            return [float(pixel + 1) for pixel in range(self._part.pixels)]
        # The CCD computes its axis from the centre it was told, wherever the grating really is.
        off_nm = self._told_centre_nm - self._part.centre_nm
        return [wavelength_nm + off_nm for wavelength_nm in self._part.wavelengths_nm()]


def _number(parameters: Answer, name: str, missing: str) -> float:
    value = parameters.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise refusal(missing)
    return float(value)


def _wholes(parameters: Answer, names: Sequence[str], low: int, high: int) -> list[int]:
    values = []
    for name in names:
        value = parameters.get(name)
        if isinstance(value, bool) or not isinstance(value, int):
            raise refusal("ccd_missing")
        if not low <= value <= high:
            raise refusal("ccd_value")
        values.append(value)
    return values
