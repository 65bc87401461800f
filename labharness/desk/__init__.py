"""One request from its arrival to its answer."""

from labharness.desk.desk import Desk
from labharness.desk.facts import HouseFacts, Operator

__all__ = ["Desk", "HouseFacts", "Operator"]
