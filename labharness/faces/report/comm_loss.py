"""The consequences of a loss of communication with a line, as sentences for every face."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from labharness.core.vocabulary.comm_loss import safe_within_s
from labharness.faces.report.markup import exact
from labharness.faces.report.words import phrase


def comm_loss(
    stays: Iterable[Mapping[str, Any]],
    hardware: Sequence[str],
    unit_text: Callable[[str], str] = str,
) -> list[tuple[str, dict[str, str]]]:
    """Return the key of each phrase, and the values of its blanks.

    Args:
        stays: The entry of one step of a prediction (as JSON); the file may come from anywhere.
        hardware: The entry of the same prediction.
        unit_text: Writes a unit for people.
    """
    said = []
    for each in stays:
        within_s = safe_within_s(str(each["does"]))
        way = "safe" if within_s is not None else "hold" if each["does"] == "hold" else "unknown"
        key = f"killed.{each['what']}.{way}"
        if each["what"] == "heats" and way != "safe" and not hardware:
            key += ".bare"
        value = f"{exact(float(each['value']))} {unit_text(str(each['unit']))}".rstrip()
        if phrase(key):
            within = exact(within_s or 0.0)
            said.append((key, {"name": str(each["name"]), "value": value, "within": within}))
    return said or [("killed.nothing", {})]
