"""Names of channels: instrument, dot, the driver's own name (``furnace.setpoint``)."""


def owner_of(channel: str) -> str:
    """Return the name of the instrument that a channel belongs to."""
    return channel.partition(".")[0]


def split_channel(channel: str) -> tuple[str, str]:
    """Return the instrument and the driver's own name of the channel; ``""`` if there is no dot."""
    instrument, _, own = channel.partition(".")
    return instrument, own
