"""Links to instruments. Each kind is imported only if a lab file uses it."""

from typing import TYPE_CHECKING

from labharness.core.on_demand import on_demand

if TYPE_CHECKING:
    from labharness.instruments.link.links import Link, LinkLost, RemoteEnd
    from labharness.instruments.link.loopback import LoopbackLink

__getattr__ = on_demand(__name__, "links", "loopback")
