"""A message broker, as both ends of a connection have it: callers, and labs that serve them."""

from labharness.faces.broker.away import why_away
from labharness.faces.broker.connection import (
    CONFIRM_S_MAX,
    CONNECT_S_MAX,
    Broker,
    amqp_message,
    cancelled,
    hang_up,
    when_closed,
)

__all__ = [
    "CONFIRM_S_MAX",
    "CONNECT_S_MAX",
    "Broker",
    "amqp_message",
    "cancelled",
    "hang_up",
    "when_closed",
    "why_away",
]
