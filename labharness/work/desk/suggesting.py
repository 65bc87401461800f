"""The suggestion in the answer of a run that failed."""

from labharness.core.vocabulary.texts import Text
from labharness.line import HoldTooLong, Tripped
from labharness.work.capability import NoAnswer
from labharness.work.plan import FailureKind, StepFailed

__all__ = ["suggestion"]


def suggestion(ended: BaseException, answer: NoAnswer | None, lab_option: str) -> str:
    """Return a suggestion to the caller.

    Args:
        ended: The exception that ended the run.
        answer: Why it has no answer, if it came to its end.
        lab_option: The option of commands for this lab.
    """
    if isinstance(ended, Tripped):
        return Text("advice.reset", lab=lab_option)
    if answer is not None and answer.suggestion:
        return answer.suggestion
    if isinstance(ended, HoldTooLong):
        return Text("advice.hold")
    if isinstance(ended, StepFailed) and ended.kind is FailureKind.REFUSED:
        return Text("advice.step")
    if isinstance(ended, TimeoutError):
        return Text("advice.duration")
    return Text("advice.connect", lab=lab_option)
