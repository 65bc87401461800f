"""Finds installed drivers, simulators, plants and capabilities by entry point."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.resources import files
from importlib.resources.abc import Traversable
from importlib.util import find_spec
from inspect import getmembers, isclass
from pkgutil import iter_modules
from types import ModuleType
from typing import Any, Final

from labharness.core.texts import WrongTexts, whole
from labharness.core.vocabulary.extras import ALERT_NEEDS, LINK_NEEDS
from labharness.core.vocabulary.spelling import did_you_mean
from labharness.core.vocabulary.texts import Text
from labharness.instruments.driver import Driver
from labharness.work.capability import Capability

PLANT = "plant"
"""The module of a simulators' package that holds its plants (physics, not instruments)."""

PARTS: Final = ("declaration", "formats", "verbs", "misfits", "plan", "ways_out", "answer")
"""The parts of every capability."""


def imported(name: str) -> ModuleType:
    """Import a module that somebody else may have written.

    Raises:
        LookupError: It cannot be imported; names it and says why.
    """
    try:
        return import_module(name)
    except Exception as why:  # noqa: BLE001 - somebody else's module may raise anything
        raise LookupError(
            Text("kinds.import", name=name, error=type(why).__name__, why=str(why))
        ) from None


@cache
def _points(group: str) -> tuple[EntryPoint, ...]:
    return tuple(sorted(entry_points(group=group), key=lambda each: each.value))


@cache  # the installed packages stay while a process runs, and a search takes milliseconds
def _kinds(group: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for point in _points(group):
        for module in iter_modules(imported(point.value).__path__):
            if module.name == PLANT:
                continue
            where = f"{point.value}.{module.name}"
            known = found.setdefault(module.name, where)
            if known != where:
                raise LookupError(Text("kinds.doubled", name=module.name, known=known, where=where))
    return found


def driver_kinds() -> Mapping[str, str]:
    """Map every installed instrument kind to the module that drives it, importing none."""
    return _kinds("labharness.drivers")


def load_driver(kind: str) -> type[Driver]:
    """Import the one driver class of a kind.

    Raises:
        LookupError: No such kind; says which there are.
    """
    return _only_driver(_load("labharness.drivers", kind, "driver"))


def load_simulator(kind: str) -> Any:  # noqa: ANN401 - a face class with a signature of its own
    """Import the simulator class of a kind.

    Raises:
        LookupError: No such kind; says which there are.
    """
    module = _load("labharness.simulators", kind, "simulator")
    if not hasattr(module, "Simulator"):
        raise LookupError(Text("kinds.no_simulator", module=module.__name__))
    return module.Simulator


def plant_kinds() -> Mapping[str, Any]:
    """Import every plant that is installed, by its kind.

    Raises:
        LookupError: A package cannot be imported, or two have a plant of one kind.
    """
    found: dict[str, Any] = {}
    home: dict[str, str] = {}
    for point in _points("labharness.simulators"):
        where = f"{imported(point.value).__name__}.{PLANT}"
        if find_spec(where) is None:
            continue
        for kind, plant in getattr(imported(where), "PLANTS", {}).items():
            if kind in found:
                raise LookupError(
                    Text("kinds.plant_doubled", kind=kind, home=home[kind], where=where)
                )
            found[kind], home[kind] = plant, where
    return found


def capabilities() -> dict[str, Capability]:
    """Import every capability on offer, by its declared name.

    Raises:
        LookupError: One cannot be imported, or is offered twice; or the texts of a package are
            wrong.
    """
    try:
        whole()
    except WrongTexts as why:
        raise LookupError(Text(why.why, **why.params)) from None
    found: dict[str, Capability] = {}
    for point in _points("labharness.capabilities"):
        for module in iter_modules(imported(point.value).__path__):
            if module.ispkg:
                where = f"{point.value}.{module.name}"
                offered: Capability | None = getattr(imported(where), "CAPABILITY", None)
                if offered is None:
                    raise LookupError(Text("kinds.no_capability", where=where))
                if lacks := [each for each in PARTS if not hasattr(offered, each)]:
                    raise LookupError(Text("kinds.incomplete", where=where, lacks=lacks))
                name = offered.declaration.name
                if name in found:
                    raise LookupError(Text("kinds.capability_twice", name=name))
                found[name] = offered
    return found


def shipped_file(path: str) -> Traversable:
    """Find a file in any package of envelopes.

    Raises:
        LookupError: None has it.
    """
    for point in _points("labharness.envelopes"):
        found = files(imported(point.value)).joinpath(path)
        if found.is_file():
            return found
    raise LookupError(Text("kinds.not_held", path=path))


def shipped_line(name: str) -> Traversable:
    """Find the envelope of a line that ships, by its name.

    Raises:
        LookupError: No such line; says which there are.
    """
    found = {
        each.name.removesuffix(".toml"): each
        for point in _points("labharness.envelopes")
        for each in _listed(files(imported(point.value)).joinpath("lines"))
        if each.name.endswith(".toml") and not each.name.endswith(".faults.toml")
    }
    if name not in found:
        raise LookupError(Text("kinds.no_line", name=name, instead=_instead(name, found)))
    return found[name]


def _listed(folder: Traversable) -> Iterator[Traversable]:
    return folder.iterdir() if folder.is_dir() else iter(())


def _load(group: str, kind: str, what: str) -> ModuleType:
    known = _kinds(group)
    if kind not in known:
        raise LookupError(Text("kinds.none", what=what, kind=kind, instead=_instead(kind, known)))
    return imported(known[kind])


def _instead(name: str, known: Iterable[str]) -> str:
    there = sorted(known)
    return Text("kinds.instead", hint=did_you_mean(name, there), known=", ".join(there) or "none")


def _only_driver(module: ModuleType) -> type[Driver]:
    found = [
        member
        for _, member in getmembers(module, isclass)
        if issubclass(member, Driver) and member.__module__ == module.__name__
    ]
    if len(found) != 1:
        raise LookupError(Text("kinds.drivers", module=module.__name__, found=len(found)))
    return found[0]


def absent(links: Iterable[str], *, alerts: bool = False) -> Iterator[str]:
    """Name the modules that are not installed and that such links, and alerts, import."""
    needed = {LINK_NEEDS.get(link, "") for link in links} | {ALERT_NEEDS if alerts else ""}
    for module in sorted(filter(None, needed)):
        if find_spec(module) is None:
            yield module
