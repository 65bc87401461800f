"""Checks settings of a lab file against the function that takes them, before it is called."""

from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any

from labharness.core.vocabulary.spelling import did_you_mean
from labharness.core.vocabulary.texts import Text
from labharness.lab.config.kinds import load_simulator, plant_kinds
from labharness.lab.config.lab_file import BadLabFile, LabFile

TYPES = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


def check_fitting(
    make: Callable[..., object], settings: Mapping[str, Any], *, given: int = 0
) -> None:
    """Refuse a setting that a driver, a simulator or a plant does not have, or of another type.

    Args:
        make: The function or class that takes the settings, by name.
        settings: As the lab file says.
        given: The number of first arguments that are not settings.

    Raises:
        ValueError: One does not fit, or one that is needed is missing.
    """
    takes = list(signature(make).parameters.values())[given:]
    asked = {each.name: each for each in takes if each.kind is not each.VAR_KEYWORD}
    open_to_more = len(asked) < len(takes)
    for name, value in settings.items():
        if name not in asked:
            if open_to_more:
                continue
            known = ", ".join(asked) or "none"
            raise ValueError(
                Text(
                    "settings.unknown",
                    name=name,
                    hint=did_you_mean(name, asked.keys()),
                    known=known,
                )
            )
        wanted = asked[name].annotation
        if wanted is float and type(value) is int:
            continue
        if wanted in TYPES and type(value) is not wanted:
            raise ValueError(
                Text("settings.type", name=name, value=repr(value), types=TYPES[wanted])
            )
    for name, each in asked.items():
        if each.default is each.empty and name not in settings:
            raise ValueError(Text("settings.missing", name=name))


def check_plant(file: LabFile) -> None:
    """Refuse a plant, or simulators of its parts, that cannot be made as the lab file says.

    Raises:
        BadLabFile: Names the allowed settings.
    """
    if file.plant is None:
        return
    kind = file.plant.kind
    known = plant_kinds()
    if kind not in known:
        raise BadLabFile(Text("settings.plant", kind=kind, known=", ".join(sorted(known))))
    try:
        check_fitting(known[kind], file.plant.stated, given=1)
        parts = known[kind](None, **file.plant.stated).parts
    except (TypeError, ValueError) as why:
        raise BadLabFile(Text("settings.plant_settings", why=str(why))) from None
    for row in file.instrument:
        if row.part is None:
            continue
        if row.part not in parts:
            there = ", ".join(parts)
            raise BadLabFile(Text("settings.part", name=row.name, part=row.part, there=there))
        try:
            face = load_simulator(row.kind)
            check_fitting(face, {**row.settings, **row.simulator}, given=3)
        except (LookupError, ValueError) as why:
            raise BadLabFile(Text("settings.simulator", name=row.name, why=str(why))) from None
