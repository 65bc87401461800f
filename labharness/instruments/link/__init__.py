"""Links to instruments. Each kind is imported only if a lab file uses it."""

from labharness.instruments.link.links import Link, LinkLost, RemoteEnd
from labharness.instruments.link.loopback import LoopbackLink

__all__ = ["Link", "LinkLost", "LoopbackLink", "RemoteEnd"]
