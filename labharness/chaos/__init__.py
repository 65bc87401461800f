"""Deterministic fault search: whole growths in virtual time, judged by the plant's true state."""

from labharness.chaos.referee import RefereeViolation
from labharness.chaos.scenario import Fault, Scenario, draw, read_scenario, write_scenario
from labharness.chaos.search import Search, Tally, search
from labharness.chaos.shrink import shrink
from labharness.chaos.table import FaultTable, faults_of
from labharness.chaos.world import Verdict, play

__all__ = [
    "Fault",
    "FaultTable",
    "RefereeViolation",
    "Scenario",
    "Search",
    "Tally",
    "Verdict",
    "draw",
    "faults_of",
    "play",
    "read_scenario",
    "search",
    "shrink",
    "write_scenario",
]
