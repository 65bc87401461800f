"""One request from its arrival to its answer."""

from labharness.work.desk.admitting import Admitting
from labharness.work.desk.by_hand import ByHand, Nobody
from labharness.work.desk.desk import Desk
from labharness.work.desk.energised import EnergySource
from labharness.work.desk.facts import ApprovalRequest, Approvers, LabFacts

__all__ = [
    "Admitting",
    "ApprovalRequest",
    "Approvers",
    "ByHand",
    "Desk",
    "EnergySource",
    "LabFacts",
    "Nobody",
]
