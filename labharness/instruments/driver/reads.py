"""The reads of a driver, and the proof that they set nothing: a grammar of writes."""

import re
from collections.abc import Iterable, Iterator

from labharness.core.vocabulary import Protocol, Request, why_no_read
from labharness.instruments.driver.driver import Driver

SHOWN_BYTES_MAX = 60


def reads_of(driver: Driver) -> Iterator[tuple[str, Request]]:
    """Return all frames that a driver calls reads, each with its name there."""
    yield from (("identity", each) for each in driver.identify().requests)
    for scan in driver.scans():
        yield from ((f"scan {scan.name!r}", each) for each in scan.requests)
    for query in driver.queries():
        yield from ((f"query {query.name!r}", each) for each in query.requests)


def is_written(request: Request, grammar: Iterable[bytes]) -> bool:
    """Return whether a frame is one of those that write, by a driver's grammar of them."""
    return any(re.fullmatch(each, request.frame, re.DOTALL) for each in grammar)


def unproven(request: Request, protocol: Protocol, drivers: Iterable[tuple[str, Driver]]) -> str:
    """Return the reason why a request may set something on its port; ``""`` if it cannot.

    Args:
        request: A frame that a driver calls a read.
        protocol: Protocol of the port.
        drivers: All drivers on the port, each with its name.
    """
    why = why_no_read(request, protocol)
    if why:
        return why
    for name, driver in drivers:
        if is_written(request, driver.write_grammar):
            return f"{name} takes a frame like it as a command, by its grammar of what writes"
    return ""


def shown(request: Request) -> str:
    """Write a frame for a person: as text where it is text, else its bytes."""
    frame = request.frame
    text = frame.decode("latin-1")
    if text.rstrip("\r\n").isascii() and text.rstrip("\r\n").isprintable():
        return repr(text[:SHOWN_BYTES_MAX])
    return frame[:SHOWN_BYTES_MAX].hex(" ")
