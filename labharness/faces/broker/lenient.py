"""AMQP properties that cannot be read are left out, so that no message ends the service.

A time after the year 9999, a text that is not UTF-8 or a table nested too deep makes pamqp raise
and aiormq close the connection, before anybody sees the message. The broker would deliver it again
at the next connection, for ever. RabbitMQ checks none of these; it vouches for ``user_id`` alone.
"""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pamqp.base import BasicProperties

SIZES: Final = {"octet": 1, "timestamp": 8}
"""Size (bytes) of a property by its type; the others begin with their length."""

LENGTHS: Final = {"shortstr": 1, "table": 4}
"""Size (bytes) of the length before a property (AMQP 0-9-1, section 4.2.5)."""


def read_what_can_be_read() -> None:
    """Have pamqp leave out what it cannot read of a message's properties, in this process."""
    from pamqp.base import BasicProperties

    BasicProperties.unmarshal = _read  # type: ignore[method-assign]  # pamqp has no other place


def _read(self: "BasicProperties", flags: int, data: bytes) -> None:
    """Read the properties that a message has, each by itself."""
    from pamqp.decode import by_type

    for name in self.__slots__:
        if flags & self.flags[name]:
            kind = self.amqp_type(name)
            size = _size(kind, data)
            try:
                _, value = by_type(data[:size], kind)
            except Exception:  # noqa: BLE001 - whatever a stranger's bytes make it raise
                value = None
            setattr(self, name, value)
            data = data[size:]


def _size(kind: str, data: bytes) -> int:
    length = LENGTHS.get(kind, 0)
    return SIZES.get(kind, 0) + length + int.from_bytes(data[:length], "big")
