"""Load a package's modules when a name of theirs is first used.

A small client and the guard process then start with no more than they need.
"""

import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec


def on_demand(package: str, *modules: str) -> Callable[[str], object]:
    """Return the ``__getattr__`` of a package whose names stand in these modules.

    Args:
        package: Its name.
        modules: Its modules, searched in this order: the light ones first.
    """

    def loaded(name: str) -> object:
        is_module = name.startswith("__") or find_spec(f"{package}.{name}") is not None
        for each in () if is_module else modules:  # the import then takes the module itself
            module = import_module(f"{package}.{each}")
            found = getattr(module, name, None)
            elsewhere = isinstance(found, type) and found.__module__ != module.__name__
            if found is not None and not elsewhere:  # such as typing's Protocol
                setattr(sys.modules[package], name, found)
                return found
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return loaded
