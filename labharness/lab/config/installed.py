"""Finds modules that a lab's links and alerts need and that are not installed."""

from collections.abc import Iterable, Iterator
from importlib.util import find_spec

from labharness.core.vocabulary.extras import ALERT_NEEDS, LINK_NEEDS


def absent(links: Iterable[str], *, alerts: bool = False) -> Iterator[str]:
    """Name the modules that are not installed and that such links, and alerts, import."""
    needed = {LINK_NEEDS.get(link, "") for link in links} | {ALERT_NEEDS if alerts else ""}
    for module in sorted(filter(None, needed)):
        if find_spec(module) is None:
            yield module
