"""What the relays of a line feed: no driver knows it, so the line's envelope file says it."""

from dataclasses import dataclass

from labharness.instruments.driver import Adds

__all__ = ["Contact"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contact:
    """A relay, and what gets power or gas through it.

    Attributes:
        channel: The relay.
        source: Where that is written.
        off: Its value while nothing passes; ``None`` where it feeds nothing that adds energy.
        feeds: Instruments whose heat, gas or light comes through it.
        adds: What it adds by itself, with no instrument behind it (a lamp, a heating tape).
    """

    channel: str
    source: str
    off: float | None = None
    feeds: tuple[str, ...] = ()
    adds: Adds | None = None
