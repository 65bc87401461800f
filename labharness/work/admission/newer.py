"""The known part of a submission that has a higher minor version than ours (ruling 24)."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from labharness.protocols.hcp.terms import Submission


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
