"""What would do after a run that failed, as a rejection says what would do."""

from labharness.line import HoldTooLong, Tripped
from labharness.work.capability import NoAnswer
from labharness.work.plan import FailureKind, StepFailed

__all__ = ["suggestion"]


def suggestion(ended: BaseException, answer: NoAnswer | None, lab_option: str) -> str:
    """Return what somebody may do about it.

    Args:
        ended: What ended the run.
        answer: Why it has no answer, where it came to its end.
        lab_option: How a command names this lab.
    """
    if isinstance(ended, Tripped):
        return (
            "Clear the cause; then a person resets the line: labharness reset --name NAME "
            f"--reason REASON{lab_option}"
        )
    if answer is not None and answer.suggestion:
        return answer.suggestion
    if isinstance(ended, HoldTooLong):
        return "Submit the task again: a hold has an end, so that a line is not left half done"
    if isinstance(ended, StepFailed) and ended.kind is FailureKind.REFUSED:
        return (
            "Change what the step asks for, or the state that the limit names; labharness envelope "
            "show lists the line's rules"
        )
    if isinstance(ended, TimeoutError):
        return "Set constraints.max_duration to more than the plan takes: labharness plan TASK.json"
    return (
        f"See that every instrument answers: labharness lab check --connect{lab_option}; then "
        "submit the task again"
    )
