"""Capabilities: what the lab offers, how each is planned, and how its run becomes an answer.

Entry points of the group ``labharness.capabilities`` name a package like this one; each package in
it is one kind and exposes ``CAPABILITY``.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, Protocol, TypeGuard

from pydantic import BaseModel, ConfigDict, TypeAdapter

from labharness.core.vocabulary.units import ATMOSPHERE_TORR
from labharness.protocols.hcp.terms import DataClass
from labharness.work.admission.declaration import Declaration
from labharness.work.plan import InstructionSet, StepRecord, Verb

ReasonCode = Literal["invalid_input", "safety_violation", "resource_unavailable", "forbidden"]
PROCESS_LOG = "process_log"
"""Name of the table of a run's readings, unless its capability states another one."""


class Settings(BaseModel):
    """The table ``[capability.<name>]`` of a lab file.

    A capability refines it by keys of its own; an unknown key is an error.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    def recorded(self) -> Mapping[str, Any]:
        """Return the part that is written to the header of a run's journal, by its own names."""
        return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class LineFacts:
    """Facts on a line for a planner.

    Attributes:
        limits: Lowest and highest value and the unit of each channel that may be set.
        settings: The lab's table for this capability.
        tube_volume_cm3: Volume that the purge proof counts; ``None`` on a line without one.
        ambient_torr: Pressure of the room, which an open tube takes.
        channels: Each channel of the line, also those that can only be read.
        contaminants: Those whose purge its envelope counts.
    """

    limits: Mapping[str, tuple[float, float, str]]
    settings: Settings = field(default_factory=Settings)
    tube_volume_cm3: float | None = None
    ambient_torr: float = ATMOSPHERE_TORR
    channels: tuple[str, ...] = ()
    contaminants: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Facts for a task that needs no line, beside its inputs.

    Attributes:
        settings: The lab's table for this capability.
        lab_folder: Where the lab file is.
        runs: Where the folders of the runs are.
        artifacts: Name of the folder of artifacts in the folder of a run.
        submit: Name of the file of its submission.
        caller_id: The caller of the task.
        data_classification: Of the task.
    """

    settings: Settings
    lab_folder: Path
    runs: Path
    artifacts: str
    submit: str
    caller_id: str
    data_classification: DataClass


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A request turned into instructions.

    Attributes:
        duration_s: Expected time, operators included.
        process_gases: Every gas the plan opens.
        temperature_c_max: The highest temperature it sets; None if it heats nothing.
        recipe: The values chosen, for people and for the record.
    """

    instructions: InstructionSet
    duration_s: float
    process_gases: tuple[str, ...]
    temperature_c_max: float | None
    recipe: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CannotDo:
    """The reason why a request is not planned, in the words of ``task_rejected``."""

    reason_code: ReasonCode
    message: str
    suggestion: str


@dataclass(frozen=True, slots=True)
class ArtifactContent:
    """A file that comes with an answer."""

    name: str
    media_type: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Answer:
    """The results of a run.

    Attributes:
        finding: The results in one line, for the summary.
    """

    outputs: Mapping[str, Any]
    artifacts: tuple[ArtifactContent, ...] = ()
    warnings: tuple[str, ...] = ()
    finding: str = ""


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """The reason why a run that ended well has no answer; the task is an ``execution_error``.

    Attributes:
        suggestion: A way to get one.
    """

    reason: str
    partial_outputs: Mapping[str, Any]
    artifacts: tuple[ArtifactContent, ...] = ()
    suggestion: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryResult:
    """The result of a query, as the journal holds it.

    Attributes:
        record: The number of its record.
        at_s: Lab time.
        step: The instruction that asked.
        query: The driver's name for it.
        about: Facts on it by its verb: place, exposure.
        value: The result, as JSON has it.
    """

    record: int
    at_s: float
    step: str
    instrument: str
    query: str
    about: Mapping[str, Any]
    value: Any


@dataclass(frozen=True, slots=True)
class PartialResults:
    """The results of a run that came to no end."""

    outputs: Mapping[str, Any]
    artifacts: tuple[ArtifactContent, ...] = ()


class Capability(Protocol):
    """A service of the lab.

    Attributes:
        declaration: The description for callers.
        formats: Names of its output formats.
        verbs: The verb of each action in its plans.

    It may have six more: ``settings``, the model of its table in a lab file (without it the table
    has no keys); ``log``, the name of its process log; ``moved``: former tables of a lab file,
    each with its present place in the table of the capability; and ``so_far``, which takes the
    records of a run that came to no end and each ``QueryResult`` of it, and returns
    ``PartialResults`` (without it the measured values are one artifact, as they are);
    ``actions``, the form of each action, of one whose plans are sets; and
    ``without_line``, its form for tasks that need no line, of the same name (`form_of`).
    """

    declaration: Declaration
    formats: tuple[str, ...]
    verbs: Mapping[str, Verb]

    def misfits(self, facts: LineFacts) -> Iterator[str]:
        """Return the values of the lab file for which no task can be planned."""

    def plan(
        self, inputs: Mapping[str, Any], constraints: Mapping[str, Any], facts: LineFacts
    ) -> Planned | CannotDo:
        """Turn a request into instructions, or return why not, and a suggestion."""

    def ways_out(self, inputs: Mapping[str, Any], facts: LineFacts) -> Iterator[Mapping[str, Any]]:
        """Return other inputs near to these that may be accepted, the nearest first."""

    def answer(
        self, records: Sequence[StepRecord], constraints: Mapping[str, Any]
    ) -> Answer | NoAnswer:
        """Turn the records of a run into outputs, or return why there are none.

        Args:
            records: State and result of each instruction.
            constraints: ``confidence_threshold``; and ``intent``, the caller's words, which are
                never obeyed: an answer may say that they name something else.
        """


class CapabilityWithoutLine(Capability, Protocol):
    """A capability without physical resources, whose tasks need no line.

    Its ``verbs`` are those of each task. One that is the form of another capability says by
    ``takes``, from the inputs of a task, whether the task is one of its own.
    """

    def bound(self, inputs: Mapping[str, Any], around: Surroundings) -> Mapping[str, Verb]:
        """Return the verbs of one task."""


_READ: Final = TypeAdapter(Declaration)


def declared(beside: str) -> Declaration:
    """Return the declaration in the ``declaration.toml`` beside a module, whose path is given.

    An ``intent.toml`` beside it says how its inputs are spoken of.
    """
    text = Path(beside).with_name("declaration.toml").read_text("utf-8")
    spoken = Path(beside).with_name("intent.toml")
    more = {"spoken": tomllib.loads(spoken.read_text("utf-8"))} if spoken.exists() else {}
    return _READ.validate_python(tomllib.loads(text) | more)


def threshold_of(constraints: Mapping[str, Any]) -> float:
    """Return the least confidence that the caller of a task accepts."""
    return float(constraints.get("confidence_threshold") or 0.0)


def form_of(capability: Capability, inputs: Mapping[str, Any]) -> Capability:
    """Return a capability as a task with these inputs uses it: on its line, or without one."""
    other: Any = getattr(capability, "without_line", None)
    return other if other is not None and other.takes(inputs) else capability


def without_line(capability: Capability) -> CapabilityWithoutLine | None:
    """Return the capability, or its form, that needs no line; ``None`` where it has none."""
    found: Capability = getattr(capability, "without_line", capability)
    return found if needs_no_line(found) else None


def needs_no_line(capability: Capability) -> TypeGuard[CapabilityWithoutLine]:
    """Return whether a capability's tasks need no line: it declares so, and brings their verbs."""
    physical = capability.declaration.safety.involves_physical_resources
    return not physical and hasattr(capability, "bound")
