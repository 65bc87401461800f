"""Horiba iHR monochromator and CCD behind the Instrument Control Library (ICL), JSON messages.

Source: "ICL API Programmers Manual" (ThatsTheEnd/horiba-python-sdk, ``docs/source/icl_api.md``),
and that SDK's device classes and canned replies.
Verified: simulator only; never on hardware. The commands are the maker's. Resting on the SDK alone:
``time`` in ccd_getExposureTime, ``size`` in ccd_getDataSize, ``type`` in
ccd_getXAxisConversionType, ``temperature`` in ccd_getChipTemperature, ``resetPort`` of
ccd_setAcquisitionAbort, and the shape xData, yData of a spectrum (the manual shows xyData; both are
read).

The order that ``prepare`` in a lab file must keep: mono_open, mono_home, ccd_open (opening resets
the CCD), x_axis 2, roi, exposure, wavelength.
"""

import json
import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from labharness.driver import Channel, Driver, Identity, Query, Scan, fault
from labharness.driver.messages import message_request, results
from labharness.vocabulary import BadReply, Request

__all__ = ["HoribaIcl"]

OPEN_S_MAX = 10.0
MOVE_S_MAX = 60.0
HOME_S_MAX = 180.0
DATA_S_MAX = 10.0
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
ASKS = rb"icl_info|(?:mono|ccd)_(?:get|is)[A-Z]\w*|(?:mono|ccd)_list"  # icl_api.md; others act

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
        "names of some results, resetPort, the shape xData/yData of a spectrum (SDK, not manual), "
        "and that the CCD's timer resolution is 1 ms"
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
        """Give the last acquisition as wavelengths in nm and counts."""
        return self._queries

    def identify(self) -> Query:
        """Ask for the library's own name and version."""
        return self._identity

    def expects(self, identity: Identity) -> str:
        """Refuse what is not an ICL.

        Its firmware is not judged: no source says which is too old.
        """
        return "" if identity.model == MODEL else f"{identity.model!r} is not the {MODEL}"

    def write(self, channel: str, value: float) -> tuple[Request, ...]:
        """Give the messages of one command.

        ``acquire`` 1 starts an exposure with the shutter open, 0 aborts one. ``roi`` is the number
        of pixels read from the first one on. ``wavelength`` also tells the CCD its new centre.
        """
        self.settable(channel)
        low, high = (1.0, self.chip_width) if channel == "roi" else RANGES[channel]
        if not low <= value <= high or (channel != "wavelength" and value != int(value)):
            kind = "" if channel == "wavelength" else "whole numbers "
            raise ValueError(f"{channel}: asked {value}, allowed {kind}{low:g} to {high:g}")
        whole = int(value)
        if channel == "wavelength":
            return (
                self._ask("mono_moveToPosition", wavelength=float(value)),
                self._ask("ccd_setCenterWavelength", wavelength=float(value)),
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
            corner = {"roiIndex": 1, "xOrigin": 1, "yOrigin": 1, "xSize": whole}
            height = {"ySize": self.chip_height, "xBin": 1, "yBin": self.chip_height}
            spectra = self._ask("ccd_setAcqFormat", numberOfRois=1, format=0)
            return (spectra, self._ask("ccd_setRoi", **corner, **height))
        if whole:
            return (self._ask("ccd_setAcquisitionStart", openShutter=True),)
        return (self._ask("ccd_setAcquisitionAbort", resetPort=True),)

    def accept(self, channel: str, reply: bytes) -> None:
        """Any error is a refusal, unless the device is open (or closed) already as asked."""
        body = json.loads(reply)
        errors = str(body.get("errors") or "")
        if errors and not any(code in errors for code in ALREADY.get(channel, ())):
            raise fault(channel, errors)
        if body.get("results") == {"count": 0}:
            raise fault(channel, f"to {body.get('command')}: no device is connected")

    def _ask(self, command: str, *, timeout_s: float = 2.0, **parameters: object) -> Request:
        index = self._index[command.partition("_")[0]]
        return message_request(command, index | parameters, timeout_s=timeout_s)


def _value(channel: str, key: str, truth: bool) -> Callable[[bytes], tuple[float, ...]]:
    found = results(channel)

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


_spectrum_results = results("spectrum")


def _spectrum(reply: bytes) -> Spectrum:
    found: Any = _spectrum_results(reply)
    try:
        (acquisition,) = found["acquisition"]
        (region,) = acquisition["roi"]
        if "xyData" in region:
            x, y = zip(*region["xyData"], strict=True)
        else:
            x, (y,) = region["xData"], region["yData"]
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
    source = f"icl_api.md, {READS[name][0]}"
    return Channel(
        unit=unit, doc=doc, source=source, settable=True, readback=name, settle_s=settle_s
    )


CHANNELS: Mapping[str, Channel] = {
    "wavelength": Channel(
        unit="nm",
        doc="Control the wavelength on the middle of the chip.",
        source="icl_api.md, mono_moveToPosition, ccd_setCenterWavelength",
        settable=True,
        readback="wavelength",
        resolution=0.05,
        settle_s=MOVE_S_MAX,
    ),
    "mono_busy": Channel(
        unit="", doc="Measure whether the grating moves (1).", source="icl_api.md, mono_isBusy"
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
        source="icl_api.md, ccd_setAcquisitionStart",
        settable=True,
    ),
    "acquisition_busy": Channel(
        unit="",
        doc="Measure whether an exposure runs (1).",
        source="icl_api.md, ccd_getAcquisitionBusy",
    ),
    "chip_temperature": Channel(
        unit="degC", doc="Measure the CCD's temperature.", source="SDK ccd.py, get_temperature"
    ),
}
