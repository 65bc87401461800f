"""The optional packages of labharness: their use, and the pip command that installs them."""

from collections.abc import Iterable
from typing import NamedTuple

from labharness.core.vocabulary.texts import Text


class Extra(NamedTuple):
    """One extra of labharness.

    Attributes:
        name: As pip takes it: ``labharness[name]``.
        what_for: The use that needs it.
    """

    name: str
    what_for: str

    @property
    def command(self) -> str:
        """The pip command that installs it."""
        return f"pip install 'labharness[{self.name}]'"


EXTRAS = {
    "aio_pika": Extra("service", "to serve or use a lab over a broker"),
    "apprise": Extra("alert", "to call people"),
    "dbos": Extra("jobs", "for campaigns over several labs"),
    "h5py": Extra("formats", "for HDF5 files"),
    "mcp": Extra("agent", "to offer a lab to agents"),
    "numba": Extra("fast", "to fit large maps by machine code"),
    "opentelemetry": Extra("telemetry", "to send traces of tasks"),
    "pydantic_ai": Extra("agent", "to ask a model"),
    "pyarrow": Extra("formats", "for Parquet files"),
    "pypdf": Extra("documents", "for documents in PDF"),
    "pyvisa": Extra("visa", "for links of kind visa"),
    "serial": Extra("serial", "for links of kind serial"),
    "trafilatura": Extra("documents", "for documents in HTML"),
    "starlette": Extra("service", "to serve pages and WebSockets"),
    "wsproto": Extra("websocket", "for links of kind websocket"),
}
"""Extras by the module that they install. The example's needs come with labharness itself."""

LINK_NEEDS = {"serial": "serial", "visa": "pyvisa", "websocket": "wsproto"}
"""The module that each kind of link imports; loopback and TCP need none."""

ALERT_NEEDS = "apprise"
"""The module that the alert channels import."""


def to_install(why: ModuleNotFoundError) -> str:
    """Return one line that says what to install, or ``""`` if no extra installs the module."""
    module = (why.name or "").partition(".")[0]
    return all_to_install((module,)) if module in EXTRAS else ""


def all_to_install(modules: Iterable[str]) -> str:
    """Return one line with the uses of several modules and the command that installs them all.

    Args:
        modules: Keys of `EXTRAS`; may be empty.

    Returns:
        The line, or ``""`` if there is nothing to install.
    """
    lacking = sorted(set(modules))
    if not lacking:
        return ""
    uses = [Text("extras.use", use=EXTRAS[each].what_for, module=each) for each in lacking]
    names = ",".join(sorted({EXTRAS[each].name for each in lacking}))
    return Text("extras.install", uses=uses, names=names)
