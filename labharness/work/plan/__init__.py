"""Instruction sets: what a run does, in which order, and the executor that does it."""

from labharness.work.plan.executor import Executor, Progress
from labharness.work.plan.instructions import (
    Instruction,
    InstructionKind,
    InstructionSet,
    ResumePoint,
)
from labharness.work.plan.operations import Operations, Operator
from labharness.work.plan.prediction import PredictedStep, PredictedViolation, Prediction, Stays
from labharness.work.plan.records import Status, StepRecord
from labharness.work.plan.step import FailureKind, RunningStep, StepFailed, Verb
from labharness.work.plan.verbs import PHYSICAL_VERBS, stated_commands
