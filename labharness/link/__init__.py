"""The roads to instruments. Each is imported where a lab file asks for it."""

from labharness.link.loopback import LoopbackLink
from labharness.link.roads import FarEnd, Link, LinkLost

__all__ = ["FarEnd", "Link", "LinkLost", "LoopbackLink"]
