"""What is installed beside labharness for some kinds of work, and how it is asked for."""

from collections.abc import Iterable
from typing import NamedTuple

__all__ = ["ALERT_NEEDS", "EXTRAS", "LINK_NEEDS", "Extra", "all_to_install", "to_install"]


class Extra(NamedTuple):
    """One extra of labharness.

    Attributes:
        name: As pip takes it: ``labharness[name]``.
        what_for: What does not work without it.
    """

    name: str
    what_for: str

    @property
    def command(self) -> str:
        """What a person types."""
        return f"pip install 'labharness[{self.name}]'"


EXTRAS = {
    "apprise": Extra("alert", "to call people"),
    "h5py": Extra("formats", "for HDF5 files"),
    "numba": Extra("fast", "to fit large maps by machine code"),
    "pyarrow": Extra("formats", "for Parquet files"),
    "pyvisa": Extra("visa", "for links of kind visa"),
    "serial": Extra("serial", "for links of kind serial"),
    "wsproto": Extra("websocket", "for links of kind websocket"),
}
"""By the module that is imported. What the example needs is no extra: it comes by itself."""

LINK_NEEDS = {"serial": "serial", "visa": "pyvisa", "websocket": "wsproto"}
"""What a kind of link imports; loopback and TCP need nothing."""

ALERT_NEEDS = "apprise"
"""What a channel of alert imports."""


def to_install(why: ModuleNotFoundError) -> str:
    """Say in one line what to install; ``""`` where no extra brings the module."""
    module = (why.name or "").partition(".")[0]
    return all_to_install((module,)) if module in EXTRAS else ""


def all_to_install(modules: Iterable[str]) -> str:
    """Say in one line what several modules are for, and the one command that brings them all.

    Args:
        modules: Keys of `EXTRAS`; none is nothing to install.

    Returns:
        The line, ``""`` where there is nothing to install.
    """
    lacking = sorted(set(modules))
    if not lacking:
        return ""
    uses = ", ".join(f"{EXTRAS[each].what_for} it takes {each}" for each in lacking)
    names = ",".join(sorted({EXTRAS[each].name for each in lacking}))
    return f"{uses}: pip install 'labharness[{names}]'"
