"""Horiba iHR monochromator and CCD behind the Instrument Control Library (ICL), JSON messages.

Source: "ICL API Programmers Manual", revision 2.1.0 of 2025-10-29 (HORIBAEzSpecSDK/python-sdk,
``docs/icl_api20251029.md``), and the maker's SDK horiba-sdk 1.0.4.
Verified: simulator only; never on hardware. Resting on the SDK alone: the shape xData, yData of a
spectrum, flat or in a list of one row (its recording of 2024-04-22); the manual shows xyData; all
three are read. An ICL of the manual 0.1 of 2023 has other commands and is refused: by its version
where that is below 2, else by its own ``-2`` to a command it does not know, long before a spectrum.

The order that ``prepare`` in a lab file must keep: mono_open, mono_home, ccd_open (opening resets
the CCD), roi, exposure, wavelength. ``wavelength`` asks for the axis in nm by itself: the ICL wants
to be told the centre before the kind of axis.
"""

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from labharness.core.vocabulary import BadReply, DeviceFault, Request
from labharness.instruments.driver import Channel, Driver, Identity, Query, Scan, fault
from labharness.instruments.driver.messages import message_request, results

__all__ = ["HoribaIcl"]

OPEN_S_MAX = 10.0
MOVE_S_MAX = 60.0
HOME_S_MAX = 180.0
DATA_S_MAX = 10.0
RESTART_S_MAX = 10.0  # the SDK waits 7 s after it
ALREADY = {  # what was asked is so already: ERR_MONO_ALLREADY_OPEN, _CLOSED; the same of the CCD
    "mono_open": (";-501;", ";-503;"),
    "ccd_open": (";-301;", ";-302;"),
}
READS = {  # channel: command, name of the result, a truth instead of a number, period in s
    "wavelength": ("mono_getPosition", "wavelength", False, None),
    "mono_busy": ("mono_isBusy", "busy", True, None),
    "mono_open": ("mono_isOpen", "open", True, None),
    "mono_home": ("mono_isInitialized", "initialized", True, None),
    "ccd_open": ("ccd_isOpen", "open", True, None),
    "exposure": ("ccd_getExposureTime", "time", False, None),
    "x_axis": ("ccd_getXAxisConversionType", "type", False, None),
    "roi": ("ccd_getDataSize", "size", False, None),
    "acquisition_busy": ("ccd_getAcquisitionBusy", "isBusy", True, None),
    "chip_temperature": ("ccd_getChipTemperature", "temperature", False, 10.0),
}
MODEL = "Instrument Control Library"
MANUAL = "ICL API manual 2.1.0"
OLDEST_MAJOR = 2
UNKNOWN_COMMAND = "[E];-2;"  # ERR_ICL_UNKNOWNCOMMAND
IMAGE_OR_SPECTRA = 1  # ccd_setAcqFormat; it is a spectrum where yBin is ySize
AXIS_IN_NM = 2
_VERSION = re.compile(r"([0-9]{1,4})(?:\.\w+)*")
# What asks, by the manual; others act.
ASKS = rb"icl_info|(?:mono|ccd)_(?:get|is)[A-Z]\w*|(?:mono|ccd)_list(?:Count)?"

Spectrum = tuple[tuple[float, ...], tuple[float, ...]]


class HoribaIcl(Driver):
    """Turns the grating, exposes the CCD and fetches the spectrum.

    An exposure is a command: no read starts one. Timer resolution is the CCD's own 1 ms.

    Args:
        mono_index: Place of the monochromator in ``mono_list``.
        ccd_index: Place of the CCD in ``ccd_list``.
        chip_width: Pixels across the dispersed direction.
        chip_height: Pixels along the slit; all are summed.
    """

    off = ()
    baud: ClassVar[int] = 0  # WebSocket, port 25010
    unverified: ClassVar[str] = (
        "the shape xData/yData of a spectrum (SDK, not manual), that ccd_getDataSize counts pixels "
        "(the manual says pixels and bytes), that the CCD's timer resolution is 1 ms, and which "
        "ICL was the first of today's commands"
    )
    write_grammar = (rb'.*"command":\s*"(?!(?:' + ASKS + rb')").*',)

    def __init__(
        self,
        *,
        mono_index: int = 0,
        ccd_index: int = 0,
        chip_width: int = 1024,
        chip_height: int = 256,
    ) -> None:
        given = (mono_index, ccd_index, chip_width, chip_height)
        if not all(type(each) is int for each in given) or min(mono_index, ccd_index) < 0:
            raise ValueError(f"mono_index, ccd_index: {given[:2]} are not whole numbers from 0")
        if not (1 <= chip_width <= 8192 and 1 <= chip_height <= 8192):
            raise ValueError(f"chip_width, chip_height: {given[2:]} are not within 1 to 8192")
        self._index = {"mono": {"index": mono_index}, "ccd": {"index": ccd_index}}
        self.chip_width, self.chip_height = chip_width, chip_height
        self.channels = CHANNELS
        self._scans = tuple(
            Scan(name, self._ask(command), (name,), _value(name, key, truth), period_s)
            for name, (command, key, truth, period_s) in READS.items()
        )
        data = self._ask("ccd_getAcquisitionData", timeout_s=DATA_S_MAX)
        self._queries = (Query("spectrum", data, _spectrum),)
        self._identity = Query("identity", message_request("icl_info", {}), _who)

    def scans(self) -> tuple[Scan, ...]:
        """One message a channel; only the chip's temperature is polled."""
        return self._scans

    def queries(self) -> tuple[Query, ...]:
        """Return the last acquisition as wavelengths in nm and counts."""
        return self._queries

    def identify(self) -> Query:
        """Ask for the library's own name and version."""
        return self._identity

    def expects(self, identity: Identity) -> str:
        """Refuse what is not an ICL, and one older than 2."""
        if identity.model != MODEL:
            return f"{identity.model!r} is not the {MODEL}"
        major = _VERSION.fullmatch(identity.firmware)
        if major is not None and int(major[1]) >= OLDEST_MAJOR:
            return ""
        return (
            f"ICL version {identity.firmware!r} is not {OLDEST_MAJOR} or newer: this driver speaks "
            f"the commands of the {MANUAL}, which older ones do not know"
        )

    def write(self, channel: str, value: float) -> tuple[Request, ...]:
        """Return the messages of one command.

        ``acquire`` 1 starts an exposure with the shutter open; 0 aborts one and restarts the CCD,
        as the manual advises before the next (``exposure`` and ``roi`` are then set again). ``roi``
        is the number of pixels read from the first one on. ``wavelength`` tells the CCD its new
        centre, and after that to give its axis in nm.
        """
        self.settable(channel)
        low, high = (1.0, self.chip_width) if channel == "roi" else RANGES[channel]
        if not low <= value <= high or (channel != "wavelength" and value != int(value)):
            kind = "" if channel == "wavelength" else "whole numbers "
            raise ValueError(f"{channel}: asked {value}, allowed {kind}{low:g} to {high:g}")
        whole = int(value)
        if channel == "wavelength":
            mono = self._index["mono"]["index"]
            return (
                self._ask("mono_moveToPosition", wavelength=float(value)),
                self._ask("ccd_setCenterWavelength", monoIndex=mono, wavelength=float(value)),
                self._ask("ccd_setXAxisConversionType", type=AXIS_IN_NM),
            )
        if channel in ("mono_open", "ccd_open"):
            device = channel.removesuffix("_open")
            if not whole:
                return (self._ask(f"{device}_close", timeout_s=OPEN_S_MAX),)
            discover = message_request(f"{device}_discover", {}, timeout_s=OPEN_S_MAX)
            return (discover, self._ask(f"{device}_open", timeout_s=OPEN_S_MAX))
        if channel == "mono_home":
            return (self._ask("mono_init", force=False),)
        if channel == "exposure":
            return (self._ask("ccd_setExposureTime", time=whole),)
        if channel == "x_axis":
            return (self._ask("ccd_setXAxisConversionType", type=whole),)
        if channel == "roi":
            corner = {"roiIndex": 1, "xOrigin": 0, "yOrigin": 0, "xSize": whole}
            height = {"ySize": self.chip_height, "xBin": 1, "yBin": self.chip_height}
            spectra = self._ask("ccd_setAcqFormat", numberOfRois=1, format=IMAGE_OR_SPECTRA)
            return (spectra, self._ask("ccd_setRoi", **corner, **height))
        if whole:
            return (self._ask("ccd_acquisitionStart", openShutter=True),)
        restart = self._ask("ccd_restart", timeout_s=RESTART_S_MAX)
        return (self._ask("ccd_acquisitionAbort"), restart)

    def accept(self, channel: str, reply: bytes) -> None:
        """Any error is a refusal, unless the device is open (or closed) already as asked."""
        body = json.loads(reply)
        listed = body.get("errors") or []
        errors = "; ".join(map(str, listed if isinstance(listed, list) else [listed]))
        if errors and not any(code in errors for code in ALREADY.get(channel, ())):
            raise fault(channel, errors + _older(errors))
        if body.get("results") == {"count": 0}:
            raise fault(channel, f"to {body.get('command')}: no device is connected")

    def _ask(self, command: str, *, timeout_s: float = 2.0, **parameters: object) -> Request:
        index = self._index[command.partition("_")[0]]
        return message_request(command, index | parameters, timeout_s=timeout_s)


def _older(errors: str) -> str:
    """Return what a command that the library does not know means."""
    return f" (older than the {MANUAL}?)" if UNKNOWN_COMMAND in errors else ""


def _results(what: str) -> Callable[[bytes], Mapping[str, object]]:
    found = results(what)

    def decode(reply: bytes) -> Mapping[str, object]:
        try:
            return found(reply)
        except DeviceFault as why:
            raise DeviceFault(f"{why}{_older(str(why))}") from None

    return decode


def _value(channel: str, key: str, truth: bool) -> Callable[[bytes], tuple[float, ...]]:
    found = _results(channel)

    def decode(reply: bytes) -> tuple[float, ...]:
        value = found(reply).get(key)
        if truth is not isinstance(value, bool):
            raise BadReply(f"{channel}: {key} is {value!r}"[:120])
        return _numbers(channel, [int(value)] if isinstance(value, bool) else [value])

    return decode


def _numbers(what: str, values: object) -> tuple[float, ...]:
    if not (isinstance(values, list | tuple) and {int, float}.issuperset(map(type, values))):
        raise BadReply(f"{what}: {str(values)[:60]} are not numbers")
    try:
        numbers = tuple(map(float, values))
    except OverflowError:
        raise BadReply(f"{what}: a number is out of range") from None
    if not all(map(math.isfinite, numbers)):
        raise BadReply(f"{what}: a number is not finite")
    return numbers


def _row(values: object) -> object:
    """Return one row of numbers that came flat, or as the only row of a list of rows."""
    if isinstance(values, list) and len(values) == 1 and isinstance(values[0], list):
        return values[0]
    return values


_spectrum_results = _results("spectrum")


def _spectrum(reply: bytes) -> Spectrum:
    found: Any = _spectrum_results(reply)
    x: object
    y: object
    try:
        (acquisition,) = found["acquisition"]
        (region,) = acquisition["roi"]
        if "xyData" in region:
            x, y = map(list, zip(*region["xyData"], strict=True))
        else:
            x, y = _row(region["xData"]), _row(region["yData"])
    except (KeyError, TypeError, ValueError) as why:
        raise BadReply(f"spectrum: not one acquisition of one region ({why!r})"[:160]) from None
    wavelengths_nm, counts = _numbers("xData", x), _numbers("yData", y)
    if not wavelengths_nm or len(wavelengths_nm) != len(counts):
        raise BadReply(f"spectrum: {len(wavelengths_nm)} wavelengths, {len(counts)} counts")
    return wavelengths_nm, counts


def _who(reply: bytes) -> Identity:
    found = results("identity")(reply)
    return Identity(str(found.get("nodeDescription", "")), str(found.get("nodeVersion", "")))


RANGES = {  # what the wire can carry or the manual lists
    "wavelength": (0.0, 1e5),
    "mono_open": (0.0, 1.0),
    "mono_home": (1.0, 1.0),
    "ccd_open": (0.0, 1.0),
    "exposure": (1.0, 2.0**31 - 1),
    "x_axis": (0.0, 2.0),
    "acquire": (0.0, 1.0),
}


def _switch(name: str, doc: str, settle_s: float, unit: str = "") -> Channel:
    source = f"{MANUAL}, {READS[name][0]}"
    return Channel(
        unit=unit, doc=doc, source=source, settable=True, readback=name, settle_s=settle_s
    )


CHANNELS: Mapping[str, Channel] = {
    "wavelength": Channel(
        unit="nm",
        doc="Control the wavelength on the middle of the chip, and have the axis in nm.",
        source=f"{MANUAL}, mono_moveToPosition, ccd_setCenterWavelength",
        settable=True,
        readback="wavelength",
        resolution=0.05,
        settle_s=MOVE_S_MAX,
    ),
    "mono_busy": Channel(
        unit="", doc="Measure whether the grating moves (1).", source=f"{MANUAL}, mono_isBusy"
    ),
    "mono_open": _switch("mono_open", "Control the link to the monochromator.", OPEN_S_MAX),
    "mono_home": _switch("mono_home", "Control homing; 1 once the grating is homed.", HOME_S_MAX),
    "ccd_open": _switch("ccd_open", "Control the link to the CCD.", OPEN_S_MAX),
    "exposure": _switch("exposure", "Control the exposure time.", 0.0, "ms"),
    "x_axis": _switch("x_axis", "Control the axis: 0 pixels, 1 CCD fit, 2 wavelengths.", 0.0),
    "roi": _switch("roi", "Control how many pixels are read, all rows summed.", 0.0),
    "acquire": Channel(
        unit="",
        doc="Control the exposure: 1 starts one, 0 aborts it; acquisition_busy shows its end.",
        source=f"{MANUAL}, ccd_acquisitionStart",
        settable=True,
    ),
    "acquisition_busy": Channel(
        unit="",
        doc="Measure whether an exposure runs (1).",
        source=f"{MANUAL}, ccd_getAcquisitionBusy",
    ),
    "chip_temperature": Channel(
        unit="degC",
        doc="Measure the CCD's temperature.",
        source=f"{MANUAL}, ccd_getChipTemperature",
    ),
}
