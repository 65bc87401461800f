"""A plan under construction: instructions in one chain, and the time they are expected to take."""

from collections.abc import Mapping
from typing import Any

from labharness.core.vocabulary.texts import Text
from labharness.work.plan import Instruction, InstructionKind

__all__ = ["SLACK", "SPARE_S", "SWITCH_S", "Steps"]

SWITCH_S = 30.0
"""Longest time of a relay or a setpoint, its read-back included."""

SLACK = 1.5
"""A ramp or a wait may take this many times as long as computed, and ten minutes more."""

SPARE_S = 600.0

FURNACE_TOLERANCE_C = 3.0

GRATING_S_MAX = 120.0
"""Longest time of a turn of the grating."""


class Steps:
    """A growing plan: each step waits for the one before it, so that the order is the safety."""

    def __init__(self) -> None:
        self.instructions: list[Instruction] = []
        self.duration_s = 0.0
        self.stage = ""
        self.holdable = True

    def add(
        self,
        name: str,
        action: str,
        description: str,
        parameters: Mapping[str, Any],
        *,
        expected_s: float = 1.0,
        timeout_s: float = SWITCH_S,
        kind: InstructionKind = InstructionKind.OPERATION,
        uses: tuple[str, ...] = (),
    ) -> None:
        """Add a step after all others; ``uses`` names the earlier ones whose results it takes."""
        before = (self.instructions[-1].instruction_id,) if self.instructions else ()
        self.instructions.append(
            Instruction(
                instruction_id=name,
                action=action,
                kind=kind,
                parameters=parameters,
                dependencies=tuple(dict.fromkeys((*before, *uses))),
                timeout_s=timeout_s,
                stage=self.stage,
                description=description,
                expected_s=expected_s,
                holdable=self.holdable,
            )
        )
        self.duration_s += expected_s

    def set(self, name: str, channel: str, value: float, unit: str, description: str) -> None:
        """Add a step that sets a channel."""
        parameters = {"channel": channel, "value": value, "unit": unit}
        timeout_s = GRATING_S_MAX if channel == "spectrometer.wavelength" else SWITCH_S
        self.add(name, "set", description, parameters, timeout_s=timeout_s)

    def wait(self, name: str, description: str, expected_s: float, **parameters: object) -> None:
        """Add a step that waits for a channel to be ``at_least`` or ``at_most`` a value."""
        timeout_s = SLACK * expected_s + SPARE_S
        self.add(
            name,
            "wait",
            description,
            parameters,
            expected_s=expected_s,
            timeout_s=timeout_s,
            kind=InstructionKind.QUERY,
        )

    def furnace(self, name: str, from_c: float, to_c: float, rate_c_per_min: float) -> None:
        """Add a step that heats the furnace."""
        expected_s = max(to_c - from_c, 0.0) / rate_c_per_min * 60.0
        self.add(
            name,
            "ramp",
            Text("step.heat", to_c=to_c, rate=rate_c_per_min),
            {
                "setpoint": "furnace.setpoint",
                "process": "furnace.temperature",
                "unit": "degC",
                "to": to_c,
                "rate_channel": "furnace.setpoint_rate",
                "rate": rate_c_per_min,
                "rate_unit": "degC/min",
                "tolerance": FURNACE_TOLERANCE_C,
            },
            expected_s=expected_s,
            timeout_s=SLACK * expected_s + SPARE_S,
        )
