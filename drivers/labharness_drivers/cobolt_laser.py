"""Cobolt (HÜBNER Photonics) continuous-wave laser on its serial line.

Source: Cobolt AB's own adapter for Micro-Manager (``CoboltOfficial/LegacyLaser.cpp``): ``ilk?`` is
the interlock; ``i?`` is the drive current, and not asked, because its unit differs by the head.
python-microscope 0.7.0, ``microscope/lights/cobolt.py``, a third-party driver that is in use, for
the rest; no manual of the maker was at hand.
Verified: simulator only; never on hardware. The fault numbers, the decimals of ``p?`` and the words
of the error reply are background knowledge.
"""

from labharness.instruments.driver import (
    CONTACT,
    Adds,
    Ascii,
    AsciiDriver,
    Dark,
    Off,
    Wants,
    While,
    Who,
    of,
    whole,
    within,
)

SOURCE = "microscope 0.7.0 lights/cobolt.py"


class CoboltLaser(AsciiDriver):
    """Switches a laser and sets its power.

    It has no communications watchdog: when no frame comes, it goes on shining. Emission is
    stopped by its interlock and its key, whatever this driver does.

    Args:
        max_power_w: Highest power that may be asked, W.
    """

    baud = 115200
    unverified = (
        "every command but the interlock's rests on a third-party driver; fault numbers, decimals "
        "of the power and the error reply are background knowledge"
    )
    timeout_s = 0.5
    reply_end = "\r\n"
    refused = "(?i:(?:syntax )?error.*)"
    done = "OK"
    document = SOURCE
    # Queries end in a question mark; l1, l0, @cobasp, @cob1, cf and the like do not.
    write_grammar = (rb"[^\r]*[^?\r]\r",)
    who = Who("sn?", name="Cobolt", serial="(.*)")
    wants = Wants("serial", "[0-9]$", "{!r} is not a serial number")
    off = (
        Off(
            adds=Adds.LIGHT,
            steps=(("emission", 0.0),),
            source=SOURCE,
            drives=("emission", "power"),
            dark=Dark(channel="output_power", at_most=5e-4, within_s=5.0),  # warms a sample by 5 K
        ),
    )

    emission = Ascii(
        "l?",
        reads=whole(1),
        sends="l{}",
        sets={0: "off", 1: "on"},
        settle_s=3.0,
        shows=CONTACT,
        doc="Control whether the laser is switched on (1) or off (0).",
    )
    output_power = Ascii("pa?", unit="W", doc="Measure the optical power.")
    power = Ascii(
        "p?",
        sends="@cobasp {}",
        sets=(0.0, of("max_power_w")),
        decimals=6,  # 1 uW: spectra are taken at 0.3 mW
        acts_while=While("emission", (1.0,), "emission is off"),
        every_s=10.0,
        unit="W",
        doc="Control the optical power that the laser holds while it is on.",
    )
    fault = Ascii("f?", reads=whole(255), every_s=10.0, doc="Measure the fault number; 0 is none.")
    interlock = Ascii(
        "ilk?",
        reads=whole(1),
        every_s=10.0,
        shows=CONTACT,
        doc="Measure whether the remote interlock is open (1) or closed (0).",
        source="CoboltOfficial/SkyraLaser.cpp, OnInterlock: 0 closed, 1 open",
    )
    hours = Ascii("hrs?", every_s=None, unit="h", doc="Measure the operating hours.")

    def __init__(self, *, max_power_w: float = 0.1) -> None:
        within("max_power_w", max_power_w, 1e-6, 10.0)
        self.max_power_w = float(max_power_w)
        super().__init__()
