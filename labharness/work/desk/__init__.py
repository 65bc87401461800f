"""One request from its arrival to its answer."""

from typing import TYPE_CHECKING

from labharness.core.on_demand import on_demand

if TYPE_CHECKING:
    from labharness.work.desk.admitting import Admitting
    from labharness.work.desk.by_hand import ByHand, Nobody
    from labharness.work.desk.desk import Desk
    from labharness.work.desk.energised import EnergySource
    from labharness.work.desk.facts import Approvers, LabFacts

__all__ = [
    "Admitting",
    "Approvers",
    "ByHand",
    "Desk",
    "EnergySource",
    "LabFacts",
    "Nobody",
]

__getattr__ = on_demand(__name__, "facts", "energised", "by_hand", "admitting", "desk")
