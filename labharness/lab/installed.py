"""What the links of a lab import and this environment lacks: asked before anything is begun."""

from collections.abc import Iterable, Iterator
from importlib.util import find_spec

from labharness.vocabulary.extras import LINK_NEEDS

__all__ = ["absent"]


def absent(links: Iterable[str]) -> Iterator[ModuleNotFoundError]:
    """Give what such links would miss at their first import, as that import would say it."""
    for module in filter(None, map(LINK_NEEDS.get, links)):
        if find_spec(module) is None:
            yield ModuleNotFoundError(f"No module named {module!r}", name=module)
