"""A simulated Horiba ICL with one monochromator and one CCD, on its WebSocket.

Written from the "ICL API Programmers Manual" revision 2.1.0 of 2025-10-29 (HORIBAEzSpecSDK,
``docs/icl_api20251029.md``) and, for the shape of a spectrum, from programs that use it.

Not simulated, and refused in the library's words (``-315`` of the CCD, ``-510`` of the mono): other
gratings, filter wheels, mirrors, slits and shutters, calibration of the position, triggers and
signals, EM gain, images and more than one region, several acquisitions, binary messages, range
mode, the 1 us timer. No SpectrAcq3 is found. Gain, speed and cleans are stored without effect.
Commands outside the manual get ``-2``, also ``ccd_getAcquisitionReady`` and the commands of 2023.
"""

import random
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from labharness.instruments.simulation import JsonFace, LoopEnvironment
from labharness_simulators.plant.optics import Spectrometer

HOMING_S = 10.0
RESTART_S = 5.0  # the SDK waits 7 s for it
EXPOSURE_MS_MAX = 3_600_000
ERRORS = {
    "unknown": (-2, "Unknown command"),
    "bin_mode": (-3, "Invalid binary mode"),
    "ccd_already_open": (-301, "CCD already open"),
    "ccd_already_closed": (-302, "CCD already closed"),
    "ccd_not_open": (-305, "CCD not open"),
    "ccd_not_found": (-306, "CCD not found"),
    "ccd_index": (-307, "Invalid CCD index"),
    "ccd_acquiring": (-309, "CCD acquiring"),
    "ccd_no_spectra": (-312, "Get spectra failed"),
    "ccd_not_supported": (-315, "CCD command not supported"),
    "ccd_token": (-317, "Invalid token"),
    "ccd_value": (-318, "Invalid value"),
    "ccd_running": (-320, "Acquisition already running"),
    "ccd_missing": (-324, "Missing parameter"),
    "mono_already_open": (-501, "Mono already open"),
    "mono_already_closed": (-503, "Mono already closed"),
    "mono_not_init": (-505, "Mono not initialized"),
    "mono_not_open": (-506, "Mono not open"),
    "mono_not_found": (-507, "Mono not found"),
    "mono_index": (-508, "Invalid mono index"),
    "mono_not_supported": (-510, "Error Mono Command Not Supported"),
    "mono_value": (-513, "Invalid parameter"),
    "mono_busy": (-519, "Mono busy"),
    "mono_missing": (-521, "Missing parameter"),
}
REFUSED = frozenset(  # commands of the manual that the simulator refuses
    [
        *("ccd_getEMGain", "ccd_setEMGain", "ccd_getTriggerIn", "ccd_setTriggerIn"),
        *("ccd_getSignalOut", "ccd_setSignalOut", "ccd_calculateRangeModePositions"),
        *("ccd_getParallelSpeed", "ccd_setParallelSpeed", "ccd_openShutter", "ccd_closeShutter"),
        *("mono_setPosition", "mono_moveGrating", "mono_getFilterWheelPosition"),
        *("mono_moveFilterWheel", "mono_getMirrorPosition", "mono_moveMirror"),
        *("mono_getSlitPositionInMM", "mono_moveSlitMM", "mono_shutterOpen", "mono_shutterClose"),
        *("mono_getShutterStatus", "mono_moveSlit", "mono_getSlitStepPosition"),
    ]
)
GAINS = ("High Light", "Best Dynamic Range", "High Sensitivity")  # by token
SPEEDS = ("45 kHz", "1 MHz", "1 MHz Ultra")
MONO = {"deviceType": "HORIBA Scientific iHR", "serialNumber": "SIM-iHR320"}
CCD = {
    "deviceType": "HORIBA Scientific Syncerity",
    "productId": 13,
    "serialNumber": "Camera SN:  0001",
}
Answer = Mapping[str, object]


def refusal(name: str) -> ValueError:
    """Return the error that the ICL answers with."""
    code, text = ERRORS[name]
    return ValueError(f"[E];{code};{text}")


class Simulator(JsonFace):
    """The library and its two devices; each exposure is drawn once, at its end."""

    latency_s = 0.02
    writes = re.compile(".*_(open|close|restart|init|moveToPosition|acquisition.*|set[A-Z].*)")

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
                "nodeBuilt": "Oct 29 2025-09:00:00",
                "nodeDescription": "Instrument Control Library",
                "nodeId": 1,
                "nodeVersion": "2.1.0.a41d1ab7",
            },
            "mono_list": lambda: self._list("mono", MONO),
            "ccd_list": lambda: self._list("ccd", CCD),
            "mono_listCount": lambda: {"count": int(self._found["mono"])},
            "ccd_listCount": lambda: {"count": int(self._found["ccd"])},
            "saq3_discover": lambda: {"count": 0},
            "saq3_list": lambda: {"devices": []},
            "mono_discover": lambda: self._discover("mono"),
            "ccd_discover": lambda: self._discover("ccd"),
        }
        self._reads: dict[str, Callable[[], Answer]] = {
            "mono_getConfig": self._mono_config,
            "mono_getGratingPosition": lambda: {"position": 0},
            "mono_getPosition": lambda: {"wavelength": part.centre_nm},
            "mono_isBusy": lambda: {"busy": self._mono_busy()},
            "mono_isInitialized": lambda: {"initialized": self._homed and not self._mono_busy()},
            "ccd_getConfig": self._ccd_config,
            "ccd_getFitParams": lambda: {"fitParameters": [0, 1, 0, 0, 0]},
            "ccd_getTimerResolution": lambda: {"resolutionToken": 0},
            "ccd_getAcqCount": lambda: {"count": 1},
            "ccd_getGain": lambda: {"info": GAINS[self._gain], "token": self._gain},
            "ccd_getSpeed": lambda: {"info": SPEEDS[self._speed], "token": self._speed},
            "ccd_getCleanCount": lambda: dict(self._cleans),
            "ccd_getChipSize": lambda: {"x": chip_width, "y": chip_height},
            "ccd_getChipTemperature": lambda: {"temperature": part.chip_temperature_c},
            "ccd_getExposureTime": lambda: {"time": self._exposure_ms},
            "ccd_getXAxisConversionType": lambda: {"type": self._x_axis},
            "ccd_getDataSize": lambda: {"size": self._roi[1]},
            "ccd_getAcquisitionBusy": lambda: {"isBusy": self._ccd_busy()},
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
            "ccd_setTimerResolution": self._set_timer,
            "ccd_setAcqCount": lambda given: self._only_one(given, "count"),
            "ccd_setGain": self._set_gain,
            "ccd_setSpeed": self._set_speed,
            "ccd_setCleanCount": self._set_cleans,
            "ccd_acquisitionStart": self._start,
            "ccd_acquisitionAbort": self._abort,
            "ccd_restart": self._restart,
        }

    def answer(self, command: str, parameters: Mapping[str, object]) -> Answer:
        """Answer one command; names are case-sensitive."""
        if command in self._always:
            return self._always[command]()
        if command == "icl_binMode":
            return self._binary(parameters)
        device, _, verb = command.partition("_")
        links = ("open", "close", "isOpen")
        if not (device in self._open and verb in links) and (
            command not in self._reads and command not in self._writes
        ):
            raise refusal(f"{device}_not_supported" if command in REFUSED else "unknown")
        if parameters.get("index") != self._index[device]:
            raise refusal(f"{device}_index")
        if verb in links:
            return self._link(device, verb)
        if not self._open[device]:
            raise refusal(f"{device}_not_open")
        if command in self._reads:
            return self._reads[command]()
        if device == "ccd" and self._ccd_busy():
            if command == "ccd_acquisitionStart":
                raise refusal("ccd_running")
            if command not in ("ccd_acquisitionAbort", "ccd_restart"):
                raise refusal("ccd_acquiring")
        self._writes[command](parameters)
        return {}

    def _discover(self, device: str) -> Answer:
        self._found[device] = True
        return {"count": 1}

    def _list(self, device: str, known: Answer) -> Answer:
        there = [dict(known) | {"index": self._index[device]}] if self._found[device] else []
        return {"devices": there}

    def _binary(self, parameters: Answer) -> Answer:
        if parameters.get("mode") not in ("none", "all"):
            raise refusal("bin_mode")
        return {}  # no message that "all" makes binary is simulated

    def _mono_config(self) -> Answer:
        lines = self._part.grating_lines_per_mm
        grating = {"blaze": 0, "grooveDensity": lines, "positionIndex": 0}
        config = {"filterWheels": [], "gratings": [grating], "mirrors": [], "ports": []}
        identity = {"model": "iHR320", "productId": "257", "serialNumber": MONO["serialNumber"]}
        return {"configuration": config | identity}

    def _ccd_config(self) -> Answer:
        width, height = self._chip

        def tokens(names: Sequence[str]) -> list[Answer]:
            return [{"info": name, "token": token} for token, name in enumerate(names)]

        config: dict[str, object] = {
            **CCD,
            "chipHSpacing": "260",
            "chipHeight": str(height),
            "chipName": "SIM",
            "chipSerialNumber": "SIM",
            "chipVSpacing": "260",
            "chipWidth": str(width),
            "fitParameters": [0, 1, 0, 0, 0],
            "gains": tokens(GAINS),
            "hardwareAvgAvailable": False,
            "lineScan": False,
            "parallelSpeeds": [],
            "productId": str(CCD["productId"]),
            "signals": [],
            "speeds": tokens(SPEEDS),
            "triggers": [],
            "version": "SIM",
        }
        return {"configuration": config}

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
        self._axis_centre_nm = 0.0  # the centre at the time when the kind of axis was set
        self._gain = self._speed = 0
        self._cleans = {"count": 1, "mode": 0}
        self._restarting: Any = None  # a SimPy event, while it runs
        self._format_set = False
        self._roi = (0, 0)  # first pixel, number of pixels
        self._exposing: Any = None  # a SimPy event, while it runs
        self._counts: list[int] | None = None

    def _ccd_busy(self) -> bool:
        return self._exposing is not None or self._restarting is not None

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
        self._axis_centre_nm = self._told_centre_nm

    def _set_centre(self, parameters: Answer) -> None:
        if _wholes(parameters, ["monoIndex"], 0, 255) != [self._index["mono"]]:
            raise refusal("ccd_value")
        self._told_centre_nm = _number(parameters, "wavelength", "ccd_missing")

    def _set_format(self, parameters: Answer) -> None:
        (regions,) = _wholes(parameters, ["numberOfRois"], 1, 64)
        (form,) = _wholes(parameters, ["format"], 1, 3)
        if (regions, form) != (1, 1):
            raise refusal("ccd_not_supported")
        self._format_set = True
        self._roi = (0, 0)  # a new format removes all regions

    def _set_timer(self, parameters: Answer) -> None:
        (token,) = _wholes(parameters, ["resolutionToken"], 0, 1)
        if token:
            raise refusal("ccd_not_supported")

    def _only_one(self, parameters: Answer, name: str) -> None:
        if _wholes(parameters, [name], 1, 10_000) != [1]:
            raise refusal("ccd_not_supported")

    def _set_gain(self, parameters: Answer) -> None:
        self._gain = _token(parameters, len(GAINS))

    def _set_speed(self, parameters: Answer) -> None:
        self._speed = _token(parameters, len(SPEEDS))

    def _set_cleans(self, parameters: Answer) -> None:
        (count,) = _wholes(parameters, ["count"], 0, 1000)
        (mode,) = _wholes(parameters, ["mode"], 0, 3)
        self._cleans = {"count": count, "mode": mode}

    def _set_roi(self, parameters: Answer) -> None:
        width, height = self._chip
        _wholes(parameters, ["roiIndex", "xBin"], 1, 1)
        (first,) = _wholes(parameters, ["xOrigin"], 0, width - 1)
        (count,) = _wholes(parameters, ["xSize"], 1, width)
        (top,) = _wholes(parameters, ["yOrigin"], 0, height - 1)
        rows, summed = _wholes(parameters, ["ySize", "yBin"], 1, height)
        if first + count > width or top + rows > height:
            raise refusal("ccd_value")
        if rows != summed:
            raise refusal("ccd_not_supported")
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

    def _restart(self, parameters: Answer) -> None:
        # The manual does not say which settings survive a restart; here none do.
        self._reset_ccd()
        self._restarting = self._env.seconds(RESTART_S)
        self._restarting.callbacks.append(self._end_restart)

    def _end_restart(self, event: object) -> None:
        if event is self._restarting:
            self._restarting = None

    def _data(self) -> Answer:
        if self._exposing is not None:
            raise refusal("ccd_acquiring")
        if self._counts is None:
            raise refusal("ccd_no_spectra")
        first, count = self._roi
        if not (count and self._format_set):
            return {"acquisition": []}  # without a set-up no data is generated
        chosen = slice(first, first + count)
        region = {
            "roiIndex": 1,
            "xBinning": 1,
            "xOrigin": first,
            "xSize": count,
            "xData": self._axis()[chosen],
            "yBinning": self._chip[1],
            "yData": [self._counts[chosen]],
            "yOrigin": 0,
            "ySize": self._chip[1],
        }
        return {"acquisition": [{"acqIndex": 1, "roi": [region]}]}

    def _axis(self) -> list[float]:
        if self._x_axis != 2:
            return [float(pixel) for pixel in range(self._part.pixels)]
        # The axis uses the centre that was set before the kind of axis, not the grating's true
        # place.
        off_nm = self._axis_centre_nm - self._part.centre_nm
        return [wavelength_nm + off_nm for wavelength_nm in self._part.wavelengths_nm()]


def _number(parameters: Answer, name: str, missing: str) -> float:
    value = parameters.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise refusal(missing)
    return float(value)


def _token(parameters: Answer, known: int) -> int:
    token = parameters.get("token")
    if type(token) is not int:
        raise refusal("ccd_missing")
    if not 0 <= token < known:
        raise refusal("ccd_token")
    return token


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
