"""The declaration of a capability: its inputs, outputs, needs and risks."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Final, Literal

from labharness.core.vocabulary.durations import parse_duration
from labharness.protocols.hcp.terms import RISK_LEVELS, RiskLevel
from labharness.work.admission.intent import SpokenInputs

SideEffects = Literal["none", "sandboxed"]

INPUTS_URI: Final = "inputs_uri"
"""The input that every task on a line may have in the place of all others: their address."""


# semver.org 2.0.0, without its build metadata: two builds of one version would not be told apart.
_NUMBER: Final = r"(?:0|[1-9][0-9]{0,8})"
_VERSION: Final = re.compile(rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-[0-9A-Za-z.-]{{1,32}})?")
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")


@dataclass(frozen=True, slots=True)
class Safety:
    """The safety characteristics of a capability.

    `risk_ceiling` is the highest risk at which it may run. `side_effects` says what a capability
    without physical resources leaves behind; it sets the floor and is not part of HCP's JSON.
    `hazards_by` are further categories, each with what brings it in: they belong to the declaration
    (ruling 30), but a task has them only where its plan shows them.
    """

    __pydantic_config__: ClassVar = {"extra": "forbid"}
    risk_ceiling: RiskLevel
    requires_human_approval: bool
    involves_physical_resources: bool
    resource_types: tuple[str, ...] = ()
    hazard_categories: tuple[str, ...] = ()
    side_effects: SideEffects = "sandboxed"
    hazards_by: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class DeclaredConstraints:
    """The longest time of a capability's task (ISO 8601), and the number that run at once."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}
    max_duration: str
    concurrent_limit: int = 1


@dataclass(frozen=True, slots=True)
class Declaration:
    """A capability as callers see it.

    `references` names the inputs that say where data are and hold none: of confidential data these
    alone may pass through a broker. A task on a line may refer to all of them by `INPUTS_URI`.
    `temperature_input` names the input that bounds its temperature: an object of `min`, `max` and
    `unit`. It is ``""`` for a capability without one, and not part of HCP's JSON; the names of
    references are an extension of it. `spoken` says how people speak of the inputs; without it no
    intent is read, and the JSON does not have it either.

    Raises:
        ValueError: A field is outside what HCP allows; the message names it.
    """

    __pydantic_config__: ClassVar = {"extra": "forbid"}
    name: str
    version: str
    description: str
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any]
    safety: Safety
    constraints: DeclaredConstraints
    temperature_input: str = ""
    references: tuple[str, ...] = ()
    spoken: SpokenInputs | None = None

    def __post_init__(self) -> None:
        where = f"capability {self.name!r}"
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"{where}: a name is 1 to 64 of a-z, 0-9 and '-'")
        if not _VERSION.fullmatch(self.version):
            raise ValueError(f"{where}: version {self.version!r} is not a semantic version (1.0.0)")
        if self.safety.risk_ceiling not in RISK_LEVELS:
            raise ValueError(f"{where}: risk_ceiling {self.safety.risk_ceiling!r} is not R1 to R5")
        if parse_duration(self.constraints.max_duration) <= 0:
            raise ValueError(f"{where}: max_duration must be longer than PT0S")
        if self.constraints.concurrent_limit < 1:
            raise ValueError(f"{where}: concurrent_limit must be at least 1")

    @property
    def max_duration_s(self) -> float:
        """The longest a task may run, in seconds."""
        return parse_duration(self.constraints.max_duration)

    @property
    def by_reference(self) -> tuple[str, ...]:
        """The inputs that hold no data, and say where they are."""
        whole = (INPUTS_URI,) if self.safety.involves_physical_resources else ()
        return (*self.references, *whole)

    def produces(self) -> frozenset[str]:
        """Return the names of the outputs that the capability can produce."""
        return frozenset(self.output_schema.get("properties", {}))

    def to_json(self) -> dict[str, Any]:
        """Return the declaration in the words and order of HCP layer 3."""
        safety = self.safety
        return {
            "capability": {
                "name": self.name,
                "version": self.version,
                "description": self.description,
                "input_schema": dict(self.input_schema),
                "output_schema": dict(self.output_schema),
                "safety": {
                    "risk_ceiling": safety.risk_ceiling,
                    "requires_human_approval": safety.requires_human_approval,
                    "involves_physical_resources": safety.involves_physical_resources,
                    "resource_types": list(safety.resource_types),
                    "hazard_categories": [*safety.hazard_categories, *dict(safety.hazards_by)],
                    **({"hazards_by": dict(safety.hazards_by)} if safety.hazards_by else {}),
                },
                "constraints": asdict(self.constraints),
                **({"references": list(self.by_reference)} if self.by_reference else {}),
            }
        }
