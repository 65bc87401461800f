"""Keithley 2400 source meter on RS-232 or GPIB, SCPI: it sources a voltage and measures a current.

Source: Keithley 2400S-900-01, "Series 2400 SourceMeter User's Manual", sections 14, 17 and 18.
Verified: simulator only; never on hardware. That a query answers with six decimals and an exponent
is a log of a real 2400 (``:SENS:CURR:PROT?`` answered ``1.000000E-04``).

A command goes with its query in one line (``:OUTP 1;:OUTP?``), whose answer shows what was set. The
instrument has to end its answers with LF (its front panel says so: COMMUNICATION, TERMINATOR).
"""

from labharness.instruments.driver import (
    CONTACT,
    Adds,
    Ascii,
    AsciiDriver,
    Off,
    Several,
    Wants,
    While,
    Who,
    fault,
    number,
    of,
    scientific,
    text,
    whole,
    within,
)

OVERFLOW = 9.9e37  # page 18-51: +9.9E37 is an overflow, +9.91E37 is not a number
ON = While("output", (1.0,), "the output is off")


def _measured(said: str, what: str) -> float:
    value = number(said.strip(), what)
    if abs(value) >= OVERFLOW:
        raise fault(what, f"{said[:20]}, an overflow")
    return value


def _volts_first(said: str, what: str) -> str:
    if not said.startswith("VOLT,CURR"):
        raise fault(what, f"{said[:40]}; this driver reads VOLT,CURR, set it by :FORM:ELEM")
    return said


def _sources_volts(said: str, what: str) -> str:
    if said != "VOLT":
        raise fault(what, f"{said[:40]}; this driver sources a voltage, set it by :SOUR:FUNC VOLT")
    return said


class Keithley2400(AsciiDriver):
    """Sources a voltage, within a current compliance, and measures voltage and current.

    It has no communications watchdog: when no frame comes, its output stays on.

    Args:
        max_voltage_v: Highest voltage of either sign that may be asked, V.
        max_current_a: Highest compliance that may be asked, A.
    """

    unverified = (
        "the form of the numbers that queries answer with (a log of one instrument), that a line "
        "of a command and its query is answered once, and what the compliance query says while "
        "the output is off"
    )
    end = reply_end = "\n"
    timeout_s = 1.0  # a reading with its ranging; one power line cycle takes 20 ms
    asks_back = True
    in_step = {":SOUR:FUNC?": "VOLT|CURR|MEM"}
    # Queries alone read, but for those that turn the output on (:MEAS?, :INIT) or test (*TST?).
    write_grammar = (rb"(?i:(?!(?:[:*](?!MEAS|TST)[A-Z0-9:]+\?;?)+\n)[^\n]+\n)",)
    proves = ("elements", "function", "auto_off")
    off = (
        Off(
            adds=Adds.CURRENT,
            steps=(("output", 0.0), ("voltage", 0.0)),
            source="page 18-55, :OUTPut",
            drives=("voltage", "compliance", "output"),
        ),
    )
    who = Who("*IDN?", model="MODEL ([^,]*)", serial="([^,]*),[^,]*$", firmware="([^,]*)$")
    wants = Wants("model", "^2400$", "model {!r} is not a 2400")

    output = Ascii(
        ":OUTP?",
        reads=whole(1),
        sends=":OUTP {}",
        sets={0: "off", 1: "on"},
        settle_s=1.0,
        shows=CONTACT,
        doc="Control whether the source is on (1) or off (0).",
        source="page 18-55, :OUTPut",
    )
    voltage = Ascii(
        ":SOUR:VOLT?",
        sends=":SOUR:VOLT {}",
        sets=(of("least_voltage_v"), of("max_voltage_v")),
        decimals=4,  # all that seven digits of 210 V show
        says=scientific,
        acts_while=ON,
        unit="V",
        doc="Control the voltage that is sourced.",
        source="page 18-78, :SOURce:VOLTage",
    )
    compliance = Ascii(
        ":SENS:CURR:PROT?",
        sends=":SENS:CURR:PROT {}",
        sets=(1e-6, of("max_current_a")),
        decimals=6,
        says=scientific,
        unit="A",
        doc="Control the current, of either sign, that the source does not exceed.",
        source="page 18-68, :SENSe:CURRent:PROTection",
    )
    in_compliance = Ascii(
        ":SENS:CURR:PROT:TRIP?",
        reads=whole(1),
        shows=CONTACT,
        doc="Measure whether the compliance limits the current (1).",
        source="page 18-68, TRIPped?",
    )
    reading = Several(":READ?", "([^,]*),([^,]*)(?:,.*)?", only_while=ON)
    terminal_voltage = Ascii(
        reading,
        reads=_measured,
        unit="V",
        doc="Measure the voltage at the terminals.",
        source="pages 17-5 and 18-51",
    )
    current = Ascii(
        reading,
        reads=_measured,
        unit="A",
        doc="Measure the current.",
        source="pages 17-5 and 18-51",
    )
    auto_off = Ascii(
        ":SOUR:CLE:AUTO?",
        reads=whole(1),
        must=0.0,
        otherwise=": each reading would turn the output on; set it by :SOUR:CLE:AUTO 0",
        shows=CONTACT,
        every_s=60.0,
        doc="Measure whether a reading turns the output on by itself (1), which is a device fault.",
        source="page 18-72, :SOURce:CLEar:AUTO",
    )
    elements = Ascii(
        ":FORM:ELEM?",
        reads=_volts_first,
        is_query=True,
        doc="Measure which elements a reading has; other than volts first is a device fault.",
        source="page 18-51",
    )
    function = Ascii(
        ":SOUR:FUNC?",
        reads=_sources_volts,
        is_query=True,
        doc="Measure what is sourced; anything but a voltage is refused.",
        source="page 18-73",
    )
    error = Ascii(
        ":SYST:ERR?",
        reads=text,
        is_query=True,
        doc="Measure the oldest error in its queue, which this takes out.",
        source="appendix B",
    )

    def __init__(self, *, max_voltage_v: float = 210.0, max_current_a: float = 1.05) -> None:
        within("max_voltage_v", max_voltage_v, 1e-4, 210.0)
        within("max_current_a", max_current_a, 1e-6, 1.05)
        self.max_voltage_v, self.max_current_a = float(max_voltage_v), float(max_current_a)
        self.least_voltage_v = -self.max_voltage_v
        super().__init__()
