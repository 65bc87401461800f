"""The steps of a plan as a capability writes them: one chain, each with the time it may take."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from labharness.core.vocabulary.texts import Text
from labharness.work.capability import Planned
from labharness.work.plan import Instruction, InstructionKind, InstructionSet, ResumePoint

S_PER_MIN = 60.0
TOLERANCE_C = 3.0
"""A heater has reached its temperature within this."""


class Steps:
    """A growing plan: each step waits for the one before it, so that the order is the safety.

    Args:
        slack: A step may take its expected time multiplied by this number,
        spare_s: and this time more.
        switch_s: Longest time of a step that sets a channel, its read-back included.
        recorded: Channels that each step records, see `recorded`.

    Attributes:
        instructions: All steps so far.
        stage: The phase of the run to which the next steps belong.
        holdable: The line may stand still in the next steps.
    """

    def __init__(
        self, *, slack: float, spare_s: float, switch_s: float, recorded: Sequence[str] = ()
    ) -> None:
        self.instructions: list[Instruction] = []
        self.stage = ""
        self.holdable = True
        self._slack, self._spare_s, self._switch_s = slack, spare_s, switch_s
        self._more: Mapping[str, Any] = {"recorded": list(recorded)} if recorded else {}

    def add(
        self,
        name: str,
        action: str,
        description: str,
        parameters: Mapping[str, Any],
        *,
        expected_s: float = 1.0,
        timeout_s: float | None = None,
        kind: InstructionKind = InstructionKind.OPERATION,
        uses: tuple[str, ...] = (),
    ) -> None:
        """Add a step after all others; ``uses`` names the earlier ones whose results it takes."""
        if timeout_s is None:
            timeout_s = self._slack * expected_s + self._spare_s
        before = tuple(each.instruction_id for each in self.instructions[-1:])
        self.instructions.append(
            Instruction(
                instruction_id=name,
                action=action,
                kind=kind,
                parameters={**parameters, **self._more},
                dependencies=tuple(dict.fromkeys((*before, *uses))),
                timeout_s=timeout_s,
                stage=self.stage,
                description=description,
                expected_s=expected_s,
                holdable=self.holdable,
            )
        )

    def may_resume(
        self,
        description: str,
        holds: Mapping[str, tuple[float | None, float | None]],
        again: tuple[str, ...] = (),
    ) -> None:
        """Declare that a later run may go on after the last step; see `ResumePoint`."""
        point = ResumePoint(description=description, holds=holds, again=again)
        self.instructions[-1] = replace(self.instructions[-1], checkpoint=point)

    def set(
        self,
        name: str,
        channel: str,
        value: float,
        unit: str,
        description: str,
        timeout_s: float | None = None,
    ) -> None:
        """Add a step that sets a channel."""
        parameters = {"channel": channel, "value": value, "unit": unit}
        self.add(name, "set", description, parameters, timeout_s=timeout_s or self._switch_s)

    def wait(
        self,
        name: str,
        description: str,
        expected_s: float,
        channel: str,
        *,
        timeout_s: float | None = None,
        **bound: float,
    ) -> None:
        """Add a step that waits for a channel to be ``at_least`` or ``at_most`` a value."""
        self.add(
            name,
            "wait",
            description,
            {"channel": channel, **bound},
            expected_s=expected_s,
            timeout_s=timeout_s,
            kind=InstructionKind.QUERY,
        )

    def heat(
        self, name: str, heater: str, code: str, from_c: float, to_c: float, c_per_min: float
    ) -> None:
        """Add a step that takes a heater to a temperature; ``code`` is that of its text."""
        description = Text(code, to_c=to_c, rate=c_per_min)
        parameters = {
            "setpoint": f"{heater}.setpoint",
            "process": f"{heater}.temperature",
            "unit": "degC",
            "to": to_c,
            "rate_channel": f"{heater}.setpoint_rate",
            "rate": c_per_min,
            "rate_unit": "degC/min",
            "tolerance": TOLERANCE_C,
        }
        expected_s = max(to_c - from_c, 0.0) / c_per_min * S_PER_MIN
        self.add(name, "ramp", description, parameters, expected_s=expected_s)

    def planned(
        self,
        recipe: Mapping[str, Any],
        process_gases: tuple[str, ...] = (),
        temperature_c_max: float | None = None,
    ) -> Planned:
        """Return the plan that these steps make."""
        return Planned(
            instructions=InstructionSet(tuple(self.instructions)),
            duration_s=sum(each.expected_s for each in self.instructions),
            process_gases=process_gases,
            temperature_c_max=temperature_c_max,
            recipe=recipe,
        )
