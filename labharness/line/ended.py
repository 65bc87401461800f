"""What a line says that cannot begin, or cannot go on."""

from labharness.core.vocabulary import Trip

__all__ = ["NotArmed", "Tripped"]


class NotArmed(RuntimeError):
    """The line cannot be armed as it stands; the message names what stands in the way."""


class Tripped(RuntimeError):
    """The line has tripped; nothing but reading and making safe is left."""

    def __init__(self, trip: Trip) -> None:
        super().__init__(trip.detail)
        self.trip = trip
