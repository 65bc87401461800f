"""The links to instruments. Each is imported where a lab file asks for it."""

from labharness.instruments.link.links import Link, LinkLost, RemoteEnd
from labharness.instruments.link.loopback import LoopbackLink

__all__ = ["Link", "LinkLost", "LoopbackLink", "RemoteEnd"]
