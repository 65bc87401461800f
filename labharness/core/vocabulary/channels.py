"""Names of channels: the instrument, a dot, and what it calls its own (``furnace.setpoint``)."""

__all__ = ["owner_of", "split_channel"]


def owner_of(channel: str) -> str:
    """Name the instrument that a channel belongs to."""
    return channel.partition(".")[0]


def split_channel(channel: str) -> tuple[str, str]:
    """Return the instrument, and the channel as its driver calls it; ``""`` where no dot is."""
    instrument, _, own = channel.partition(".")
    return instrument, own
