"""The audit of a submission, in the order of HCP layer 3: admitted, or rejected with a reason."""

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from labharness.core.vocabulary.durations import NotADuration, format_duration, parse_duration
from labharness.core.vocabulary.texts import Text
from labharness.protocols.hcp.terms import (
    CONFIDENTIAL,
    DATA_CLASSES,
    OPEN,
    PRIORITIES,
    DataClass,
    Priority,
    ReasonCode,
    Rejected,
    Submission,
)
from labharness.work.admission.callers import Caller
from labharness.work.admission.declaration import Declaration
from labharness.work.admission.intent import IntentReading, read
from labharness.work.admission.satisfiable import asked_fault
from labharness.work.admission.schemas import input_fault, name_fault

if TYPE_CHECKING:
    from semantic_version import Version

HEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    "payload": (
        *("capability", "capability_version", "caller_id", "intent", "inputs"),
        *("constraints", "expected_output", "context", "resume_from"),
    ),
    "constraints": ("max_duration", "confidence_threshold", "data_classification", "priority"),
    "expected_output": ("format", "required_fields", "schema"),
}
"""The keys of a submission, by the names of HCP's message; `context` alone may hold anything."""

RANGE_CHARACTERS_MAX: Final = 64
"""Length of a version range that is read."""

CALLERS_SHOWN_MAX: Final = 20

UNDECLARED: Final[DataClass] = "T2"


@dataclass(frozen=True, slots=True)
class Screened:
    """A submission that may be planned: caller, task and bounds are settled, the risk is not.

    `ignored` are the names in it that a higher minor version may know, and this one does not;
    `reading` is the meaning of its words, where the capability says how people speak of its inputs.
    """

    submission: Submission
    caller: Caller
    declaration: Declaration
    data_classification: DataClass
    max_duration_s: float
    confidence_threshold: float | None
    priority: Priority
    ignored: tuple[str, ...] = ()
    reading: IntentReading | None = None


class _Reject(Exception):
    """Ends the screening; it never leaves this file."""

    def __init__(self, message: str, way_out: str, code: ReasonCode = "invalid_input") -> None:
        self.rejected = Rejected(code, message, None, way_out)


def screen(
    submission: Submission,
    *,
    caller: Caller | None,
    declarations: Iterable[Declaration],
    formats: Collection[str],
    callers: Collection[str] = (),
    encrypts: bool = False,
) -> Screened | Rejected:
    """Check caller, capability, inputs and constraints: everything known without a plan.

    Args:
        submission: The submission.
        caller: The facts of the caller that the transport authenticated; None if it did not.
        declarations: Declarations of this laboratory's capabilities, in any order.
        formats: Names of output formats that are registered.
        callers: The names that may submit, where this caller may be told.
        encrypts: The laboratory has a key for confidential data.
    """
    try:
        known = _authenticated(submission, caller, callers)
        declaration = _capability(submission, known, tuple(declarations))
        ignored: tuple[str, ...] = ()
        if submission.newer:
            submission, ignored = known_part(submission, declaration.input_schema)
        data_class = _data_class(submission, known, declaration, encrypts)
        _inputs(submission, declaration)
        fault = name_fault(submission.unknown, HEEDED) or asked_fault(
            submission, declaration, formats
        )
        if fault is not None:
            raise _Reject(*fault)
        return Screened(
            submission=submission,
            caller=known,
            declaration=declaration,
            data_classification=data_class,
            max_duration_s=_max_duration_s(submission, declaration),
            confidence_threshold=_confidence(submission),
            priority=_priority(submission),
            ignored=ignored,
            reading=_reading(submission, declaration),
        )
    except _Reject as reject:
        return reject.rejected


def _authenticated(
    submission: Submission, caller: Caller | None, callers: Collection[str]
) -> Caller:
    if caller is None:
        way_out = Text("caller.credentials")
        if callers:
            way_out = Text("caller.one_of", callers=", ".join(sorted(callers)[:CALLERS_SHOWN_MAX]))
        why = Text("caller.unknown", caller=submission.caller_id)
        raise _Reject(why, way_out, "unauthorized")
    if caller.id != submission.caller_id:
        why = Text("caller.other", claimed=submission.caller_id, caller=caller.id)
        raise _Reject(why, Text("caller.write", caller=caller.id), "unauthorized")
    return caller


def _capability(
    submission: Submission, caller: Caller, declarations: tuple[Declaration, ...]
) -> Declaration:
    name = submission.capability
    versions = [one for one in declarations if one.name == name]
    # A caller is told of the capabilities it may invoke, not of the rest.
    offered = [one for one in declarations if one.name in caller.capabilities]
    listed = ", ".join(f"{one.name} {one.version}" for one in offered) or "none"
    way_out = Text("choose.one_of", listed=listed) if offered else Text("capability.ask")
    if not versions:
        raise _Reject(Text("capability.none", name=name[:80], listed=listed), way_out)
    if name not in caller.capabilities:
        why = Text("capability.forbidden", caller=caller.id, name=name, listed=listed)
        raise _Reject(why, way_out, "forbidden")
    return _matching(submission.capability_version, versions)


@lru_cache(256)
def _version(text: str) -> "Version":
    from semantic_version import Version

    return Version(text)


def _matching(wanted: str | None, versions: list[Declaration]) -> Declaration:
    from semantic_version import NpmSpec

    exist = ", ".join(sorted(one.version for one in versions))
    advice = Text("version.choose", exist=exist)
    if wanted is None:
        return max(versions, key=lambda one: _version(one.version))
    try:
        if not 0 < len(wanted) <= RANGE_CHARACTERS_MAX:
            raise ValueError(Text("version.length", most=RANGE_CHARACTERS_MAX))
        spec = NpmSpec(wanted)
    except ValueError as error:
        raise _Reject(Text("version.no_range", wanted=wanted[:64]), advice) from error
    found = [one for one in versions if spec.match(_version(one.version))]
    if not found:
        raise _Reject(
            Text("version.none", name=versions[0].name, wanted=wanted, exist=exist), advice
        )
    return max(found, key=lambda one: _version(one.version))


def _inputs(submission: Submission, declaration: Declaration) -> None:
    if not submission.intent.strip():
        raise _Reject(Text("intent.empty"), Text("intent.say"))
    fault = input_fault(declaration.input_schema, submission.inputs)
    if fault is not None:
        raise _Reject(Text("pair", what=fault.where, why=fault.reason), fault.remedy)


def _reading(submission: Submission, declaration: Declaration) -> IntentReading | None:
    """Return what was read of the words, where nothing in the inputs contradicts them."""
    found = None if declaration.spoken is None else read(submission, declaration.spoken)
    if found is not None and found.conflicts:
        raise _Reject(*found.refusal())
    return found


def known_part(
    submission: Submission, input_schema: Mapping[str, Any]
) -> tuple[Submission, tuple[str, ...]]:
    """Return a submission without the names that are not known, and these names.

    Args:
        submission: Of a message with a higher minor version.
        input_schema: Of its capability; names are looked at in the inputs and in their ``recipe``.
    """
    ignored = [f"{where}.{name}" for where, names in submission.unknown.items() for name in names]
    inputs = _known(submission.inputs, input_schema, "inputs", ignored)
    recipe, properties = inputs.get("recipe"), input_schema.get("properties", {})
    if isinstance(recipe, Mapping) and isinstance(properties.get("recipe"), Mapping):
        inputs["recipe"] = _known(recipe, properties["recipe"], "inputs.recipe", ignored)
    return replace(submission, inputs=inputs, unknown={}), tuple(ignored)


def _known(
    given: Mapping[str, Any], schema: Mapping[str, Any], where: str, ignored: list[str]
) -> dict[str, Any]:
    if schema.get("additionalProperties", True) is not False:
        return dict(given)
    known = schema.get("properties", {})
    ignored += [f"{where}.{name}" for name in given if name not in known]
    return {name: value for name, value in given.items() if name in known}


def _data_class(
    submission: Submission, caller: Caller, declaration: Declaration, encrypts: bool
) -> DataClass:
    """Return the data class; a right like that to a capability, it is asked before the inputs."""
    taken = submission.data_classification
    declared = UNDECLARED if taken is None else taken
    found = next((one for one in DATA_CLASSES if one == declared), None)
    if found is None:
        raise _Reject(
            Text("data.unknown", declared=declared[:80], classes=", ".join(DATA_CLASSES)),
            Text("data.declare", classes=", ".join(DATA_CLASSES)),
        )
    if found in CONFIDENTIAL and not encrypts:
        way_out = Text("data.at_most", most=OPEN[-1])
        raise _Reject(Text("data.encryption", found=found), way_out, "forbidden")
    if DATA_CLASSES.index(found) > DATA_CLASSES.index(caller.data_class_max):
        most, said = caller.data_class_max, "" if taken else Text("data.taken")
        why = Text("data.above", found=found, taken=said, most=most, caller=caller.id)
        raise _Reject(why, Text("data.declare_at_most", most=most), "forbidden")
    return found


def _max_duration_s(submission: Submission, declaration: Declaration) -> float:
    longest_s = declaration.max_duration_s
    if submission.max_duration is None:
        return longest_s
    longest = format_duration(longest_s)
    advice = Text("duration.write", longest=longest)
    try:
        asked_s = parse_duration(submission.max_duration)
    except NotADuration as error:
        raise _Reject(Text("duration.bad", why=str(error)), advice) from error
    if not 0 < asked_s <= longest_s:
        why = Text("duration.outside", asked=submission.max_duration, longest=longest)
        raise _Reject(why, advice)
    return asked_s


def _confidence(submission: Submission) -> float | None:
    asked = submission.confidence_threshold
    if asked is not None and not (math.isfinite(asked) and 0.0 <= asked <= 1.0):
        raise _Reject(Text("confidence.outside", asked=asked), Text("confidence.write"))
    return asked


def _priority(submission: Submission) -> Priority:
    asked = submission.priority or "normal"
    found = next((one for one in PRIORITIES if one == asked), None)
    if found is None:
        listed = ", ".join(PRIORITIES)
        raise _Reject(
            Text("priority.unknown", asked=asked[:80], listed=listed),
            Text("write.one_of", listed=listed),
        )
    return found
