"""The exception by which a command on a task is refused, and `require`, which raises it.

It has the code of the reason, which `decide` makes a fact.
"""


class _Refuse(Exception):
    """The refusal of a command; it does not leave the deciding modules."""


def require(truth: bool, refusal: str) -> None:
    """Refuse with a code unless something is true."""
    if not truth:
        raise _Refuse(refusal)
