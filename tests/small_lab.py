"""A small lab as somebody writes it who has one furnace and one flow controller."""

from pathlib import Path

__all__ = ["OFF", "written"]

LAB = """
[lab]
id = "annealing"
title = "Annealing in argon"
line = "envelope.toml"
attended = "always"
callers = "callers.toml"
hazards = "hazards.toml"
state_dir = "FOLDER/state"

[operator]
kind = "terminal"

[tube]
volume_cm3 = 1000

[raman]
laser_nm = 532.0

[[port]]
name = "heat"
link = "serial"
path = "/dev/serial/by-id/usb-heat"
baud = 19200

[[port]]
name = "gas"
link = "serial"
path = "/dev/serial/by-id/usb-gas"
baud = 19200

[[instrument]]
name = "furnace"
kind = "eurotherm_2400"
port = "heat"
settings = { unit = 1 }

[[instrument]]
name = "mfc"
kind = "alicat_mc"
port = "gas"
settings = { unit = "A", gas = "GAS", full_scale_sccm = 500 }
"""

ENVELOPE = """
line = "annealing"
description = "One tube furnace in flowing gas"

[safety_envelope.parameters.temperature]
max = 900
unit = "celsius"
hard_limit = true

[safety_envelope.emergency_procedures]
gas_leak_detected = "immediate_shutdown"
emergency_stop_loop = "immediate_shutdown"
over_pressure = "immediate_shutdown"
over_temperature = "immediate_shutdown"
sensor_break = "immediate_shutdown"
over_flow = "immediate_shutdown"
interlock_lost = "immediate_shutdown"
communication = "immediate_shutdown"
journal_lost = "immediate_shutdown"
stop_request = "immediate_shutdown"

[quantities]
temperature = ["furnace.temperature", "furnace.setpoint"]

[[limit]]
channel = "furnace.setpoint"
unit = "degC"
low = 0
high = 850
source = "the furnace's plate"

[[limit]]
channel = "furnace.setpoint_rate"
unit = "degC/min"
low = 0.1
high = 10
source = "its quartz tube"

[[limit]]
channel = "furnace.mode"
unit = ""
low = 0
high = 1
source = "0 automatic, 1 manual"

[[limit]]
channel = "furnace.output"
unit = "%"
low = 0
high = 0
source = "by hand it is switched off only"

[[limit]]
channel = "furnace.output_high"
unit = "%"
low = 0
high = 100
source = "its whole range"

[[limit]]
channel = "mfc.setpoint"
unit = "sccm"
low = 0
high = 500
source = "its full scale"

[[watch]]
channel = "furnace.temperature"
stale_s = 3.5

[[watch]]
channel = "mfc.flow"
stale_s = 3.5

[[watch]]
channel = "mfc.setpoint"
stale_s = 3.5

[[interlock]]
name = "heat only in flowing gas"
guards = ["furnace.setpoint"]
above = 60
require = [{ channel = "mfc.flow", at_least = 10 }]
on_loss = "immediate_shutdown"
source = "the sample oxidises"

[[trip]]
name = "furnace far too hot"
channel = "furnace.temperature"
cause = "over_temperature"
high = 880
unit = "degC"
source = "its plate, and the overshoot"

[procedures.immediate_shutdown]
wire_s_max = 5
verify_s_max = 10
steps = [
STEPS
]

[purge]
inert = { "mfc.flow" = "mfc.setpoint" }
outside = "air"
source = "argon from the bottle"

[[purge.present.air]]
channel = "mfc.flow"
at_most = 1
"""

CALLERS = """
[callers.ada]
capabilities = []
risk_max = "R2"
data_class_max = "T2"
"""

HAZARDS = """
[[hazard]]
name = "over-temperature"
hazard = "the furnace runs away"
safeguard = "a limiter on its own thermocouple"
proof_tested = 2026-11-01
proof_days = 365
categories = ["high_temperature"]
"""

OFF = """
    ["furnace.mode", 1],
    ["furnace.output", 0],
"""
"""The steps that switch the furnace off, in their order."""


def written(folder: Path, *, steps: str = OFF, gas: str = "Ar", more: str = "") -> Path:
    """Write the lab's four files; give the lab file.

    Args:
        folder: Where.
        steps: Of its one procedure.
        gas: What its flow controller lets in.
        more: Further rows of the envelope file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lab = folder / "lab.toml"
    lab.write_text(LAB.replace("GAS", gas).replace("FOLDER", folder.as_posix()), "utf-8")
    (folder / "envelope.toml").write_text(ENVELOPE.replace("STEPS", steps) + more, "utf-8")
    (folder / "callers.toml").write_text(CALLERS, "utf-8")
    (folder / "hazards.toml").write_text(HAZARDS, "utf-8")
    return lab
