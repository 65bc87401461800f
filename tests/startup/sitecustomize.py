"""Moves the places of ports in every Python that a test starts; the product reads no variable."""

import importlib.abc
import importlib.machinery
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

NAME = "labharness.safety.guard.port_records"
FOLDER = os.environ.get("LABHARNESS_TEST_PLACES", "")


def move_places(places: Any, folder: Path) -> None:
    """Move what ``labharness.safety.guard.port_records`` names, in this process."""
    places.SHARED_PLACE = folder / "shared"
    places.LOCK_PLACES = (folder / "run", folder / "shared")
    places.LATCH_PLACES = (places.KEPT_PLACE, folder / "shared")


class Moving(importlib.abc.MetaPathFinder):
    """Finds that one module as usual, and changes it once it is loaded."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the module that moves, and no other."""
        if name != NAME:
            return None
        found = importlib.machinery.PathFinder.find_spec(name, path, target)
        if found is not None and found.loader is not None:
            load = found.loader.exec_module

            def moved(module: ModuleType) -> None:
                load(module)
                move_places(module, Path(FOLDER))

            found.loader.exec_module = moved  # type: ignore[method-assign]  # of this one module
        return found


if FOLDER:
    sys.meta_path.insert(0, Moving())

if "REACH_DATA" in os.environ:  # `mutants_reach` measures
    with suppress(ImportError):  # not in a Python of another version or without coverage
        import_module("reach_in_a_child")  # it begins to measure
