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
import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from labharness.core.vocabulary import BadReply
from labharness.instruments.driver import Identity, fault, of, within
from labharness.instruments.driver.messages import VALUE, Call, Json, JsonDriver, finite

OPEN_S_MAX = 10.0
MOVE_S_MAX = 60.0
HOME_S_MAX = 180.0
MODEL = "Instrument Control Library"
MANUAL = "ICL API manual 2.1.0"
OLDEST_MAJOR = 2
IMAGE_OR_SPECTRA = 1  # ccd_setAcqFormat; it is a spectrum where yBin is ySize
AXIS_IN_NM = 2
_VERSION = re.compile(r"([0-9]{1,4})(?:\.\w+)*")
# Commands that only ask, by the manual; the others act.
ASKS = rb"icl_info|(?:mono|ccd)_(?:get|is)[A-Z]\w*|(?:mono|ccd)_list(?:Count)?"

Spectrum = tuple[tuple[float, ...], tuple[float, ...]]
_on_demand = partial(Json, every_s=None)
_state = partial(_on_demand, truth=True)


def _row(values: object) -> object:
    """Return one row of numbers that came flat, or as the only row of a list of rows."""
    if isinstance(values, list) and len(values) == 1 and isinstance(values[0], list):
        return values[0]
    return values


def _spectrum(found: Mapping[str, Any]) -> Spectrum:
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
    wavelengths_nm, counts = finite("xData", x), finite("yData", y)
    if not wavelengths_nm or len(wavelengths_nm) != len(counts):
        raise BadReply(f"spectrum: {len(wavelengths_nm)} wavelengths, {len(counts)} counts")
    return wavelengths_nm, counts


def _link(device: str, what: str, already: tuple[str, ...]) -> Json:
    return _state(
        f"{device}_isOpen",
        "open",
        sets={0: "closed", 1: "open"},
        calls={
            0: (Call(f"{device}_close", timeout_s=OPEN_S_MAX),),
            1: (
                Call(f"{device}_discover", timeout_s=OPEN_S_MAX),
                Call(f"{device}_open", timeout_s=OPEN_S_MAX),
            ),
        },
        already=already,
        settle_s=OPEN_S_MAX,
        doc=f"Control the link to the {what}.",
    )


class HoribaIcl(JsonDriver):
    """Turns the grating, exposes the CCD and fetches the spectrum.

    An exposure is a command: no read starts one. Timer resolution is the CCD's own 1 ms.

    Args:
        mono_index: Place of the monochromator in ``mono_list``.
        ccd_index: Place of the CCD in ``ccd_list``.
        chip_width: Pixels across the dispersed direction.
        chip_height: Pixels along the slit; all are summed.
    """

    off = ()
    baud = 0  # WebSocket, port 25010
    unverified = (
        "the shape xData/yData of a spectrum (SDK, not manual), that ccd_getDataSize counts pixels "
        "(the manual says pixels and bytes), that the CCD's timer resolution is 1 ms, and which "
        "ICL was the first of today's commands"
    )
    write_grammar = (rb'.*"command":\s*"(?!(?:' + ASKS + rb')").*',)
    who = "icl_info"
    document = f"{MANUAL}, {{command}}"
    hints = {"[E];-2;": f" (older than the {MANUAL}?)"}  # ERR_ICL_UNKNOWNCOMMAND

    wavelength = _on_demand(
        "mono_getPosition",
        "wavelength",
        sets=(0.0, 1e5),
        calls=(  # the CCD is told its new centre, and after that to give its axis in nm
            Call("mono_moveToPosition", {"wavelength": VALUE}),
            Call("ccd_setCenterWavelength", {"monoIndex": of("mono_index"), "wavelength": VALUE}),
            Call("ccd_setXAxisConversionType", {"type": AXIS_IN_NM}),
        ),
        resolution=0.05,
        settle_s=MOVE_S_MAX,
        unit="nm",
        doc="Control the wavelength on the middle of the chip, and have the axis in nm.",
        source=f"{MANUAL}, mono_moveToPosition, ccd_setCenterWavelength",
    )
    mono_busy = _state("mono_isBusy", "busy", doc="Measure whether the grating moves (1).")
    mono_open = _link("mono", "monochromator", (";-501;", ";-503;"))  # ERR_MONO_ALLREADY_OPEN, ...
    mono_home = _state(
        "mono_isInitialized",
        "initialized",
        sets={1: "home"},
        calls=(Call("mono_init", {"force": False}),),
        settle_s=HOME_S_MAX,
        doc="Control homing; 1 once the grating is homed.",
    )
    ccd_open = _link("ccd", "CCD", (";-301;", ";-302;"))
    exposure = _on_demand(
        "ccd_getExposureTime",
        "time",
        sets=(1.0, 2.0**31 - 1),
        whole=True,
        calls=(Call("ccd_setExposureTime", {"time": VALUE}),),
        unit="ms",
        doc="Control the exposure time.",
    )
    x_axis = _on_demand(
        "ccd_getXAxisConversionType",
        "type",
        sets=(0.0, 2.0),
        whole=True,
        calls=(Call("ccd_setXAxisConversionType", {"type": VALUE}),),
        doc="Control the axis: 0 pixels, 1 CCD fit, 2 wavelengths.",
    )
    roi = _on_demand(  # the number of pixels that are read from the first one on
        "ccd_getDataSize",
        "size",
        sets=(1.0, of("chip_width")),
        whole=True,
        calls=(
            Call("ccd_setAcqFormat", {"numberOfRois": 1, "format": IMAGE_OR_SPECTRA}),
            Call(
                "ccd_setRoi",
                {
                    "roiIndex": 1,
                    "xOrigin": 0,
                    "yOrigin": 0,
                    "xSize": VALUE,
                    "ySize": of("chip_height"),
                    "xBin": 1,
                    "yBin": of("chip_height"),
                },
            ),
        ),
        doc="Control how many pixels are read, all rows summed.",
    )
    acquire = Json(
        "",
        sets={0: "abort", 1: "start"},
        calls={
            # As the manual advises before the next exposure; exposure and roi are then set again.
            0: (Call("ccd_acquisitionAbort"), Call("ccd_restart", timeout_s=10.0)),  # SDK: 7 s
            1: (Call("ccd_acquisitionStart", {"openShutter": True}),),
        },
        doc="Control the exposure: 1 starts one, 0 aborts it; acquisition_busy shows its end.",
        source=f"{MANUAL}, ccd_acquisitionStart",
    )
    acquisition_busy = _state(
        "ccd_getAcquisitionBusy", "isBusy", doc="Measure whether an exposure runs (1)."
    )
    chip_temperature = Json(
        "ccd_getChipTemperature",
        "temperature",
        every_s=10.0,
        unit="degC",
        doc="Measure the CCD's temperature.",
    )
    spectrum = Json(
        "ccd_getAcquisitionData",
        reads=_spectrum,
        is_query=True,
        timeout_s=10.0,
        doc="Measure the last acquisition: wavelengths in nm, and counts.",
    )

    def __init__(
        self,
        *,
        mono_index: int = 0,
        ccd_index: int = 0,
        chip_width: int = 1024,
        chip_height: int = 256,
    ) -> None:
        within("mono_index", mono_index, 0, 1000, whole=True)
        within("ccd_index", ccd_index, 0, 1000, whole=True)
        within("chip_width", chip_width, 1, 8192, whole=True)
        within("chip_height", chip_height, 1, 8192, whole=True)
        self.mono_index, self.ccd_index = mono_index, ccd_index
        self.chip_width, self.chip_height = chip_width, chip_height
        super().__init__()

    def known(self, found: Mapping[str, Any]) -> Identity:
        """Read the library's own name and version."""
        return Identity(str(found.get("nodeDescription", "")), str(found.get("nodeVersion", "")))

    def about(self, command: str) -> Mapping[str, Any]:
        """Return which device a command is for; what looks for devices is for none."""
        if command.endswith("_discover"):
            return {}
        return {"index": self.mono_index if command.startswith("mono_") else self.ccd_index}

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

    def accept(self, channel: str, reply: bytes) -> None:
        """Refuse what finds no device, too."""
        super().accept(channel, reply)
        body = json.loads(reply)
        if body.get("results") == {"count": 0}:
            raise fault(channel, f"to {body.get('command')}: no device is connected")
