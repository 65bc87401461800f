"""One request from its arrival to its answer."""

from labharness.desk.admitting import Admitting
from labharness.desk.desk import Desk
from labharness.desk.facts import HouseFacts, Operator

__all__ = ["Admitting", "Desk", "HouseFacts", "Operator"]
