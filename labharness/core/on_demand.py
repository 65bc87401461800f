"""Load a package's modules when a name of theirs is first used.

A small client and the guard process then start with no more than they need.
"""

import sys
from collections.abc import Callable
from importlib import import_module


def on_demand(package: str, *modules: str) -> Callable[[str], object]:
    """Return the ``__getattr__`` of a package whose names stand in these modules.

    Args:
        package: Its name.
        modules: Its modules, searched in this order: the light ones first.
    """

    def loaded(name: str) -> object:
        for each in () if name in modules or name.startswith("__") else modules:
            module = import_module(f"{package}.{each}")
            found = getattr(module, name, None)
            elsewhere = isinstance(found, type) and found.__module__ != module.__name__
            if found is not None and not elsewhere:  # such as typing's Protocol
                setattr(sys.modules[package], name, found)
                return found
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return loaded
