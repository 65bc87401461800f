"""The only way to a port: the core that decides, and the parts that its shells share.

The shells are imported where they are used: ``shell`` and ``remote`` need asyncio, ``process`` must
not import it.
"""

from typing import TYPE_CHECKING

from labharness.core.on_demand import on_demand

if TYPE_CHECKING:
    from labharness.safety.guard.contract import Done, Guard, LatchView, PortBusy, Shell
    from labharness.safety.guard.core import GuardCore, NotPermitted, Permit, Sent, Source
    from labharness.safety.guard.latch import Latch, LatchUnreadable, not_tried
    from labharness.safety.guard.port import Finished, Port, PortState, SafeFrame

__getattr__ = on_demand(__name__, "port", "core", "latch", "contract")
