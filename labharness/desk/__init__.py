"""One request from its arrival to its answer."""

from labharness.desk.admitting import Admitting
from labharness.desk.by_hand import ByHand, Nobody
from labharness.desk.desk import Desk
from labharness.desk.energised import EnergySource
from labharness.desk.facts import ApprovalRequest, Approvers, LabFacts, ManualSteps

__all__ = [
    "Admitting",
    "ApprovalRequest",
    "Approvers",
    "ByHand",
    "Desk",
    "EnergySource",
    "LabFacts",
    "ManualSteps",
    "Nobody",
]
