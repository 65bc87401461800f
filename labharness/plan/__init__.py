"""Instruction sets: what a run does, in which order, and the executor that does it."""

from labharness.plan.executor import Executor, Progress, Status, StepRecord
from labharness.plan.instructions import Instruction, InstructionSet, Kind
from labharness.plan.operations import Operations
from labharness.plan.prediction import PredictedStep, Prediction, Stays, Violation
from labharness.plan.step import FailureKind, Step, StepFailed, Verb
from labharness.plan.verbs import PHYSICAL_VERBS, stated_commands

__all__ = [
    "PHYSICAL_VERBS",
    "Executor",
    "FailureKind",
    "Instruction",
    "InstructionSet",
    "Kind",
    "Operations",
    "PredictedStep",
    "Prediction",
    "Progress",
    "Status",
    "Stays",
    "Step",
    "StepFailed",
    "StepRecord",
    "Verb",
    "Violation",
    "stated_commands",
]
