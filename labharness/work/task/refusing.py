"""A refusal of a decision: it leaves with the code of its reason, which `decide` makes a fact."""

__all__ = ["require"]


class _Refuse(Exception):
    """The way out of a decision; it does not leave the deciding modules."""


def require(truth: bool, refusal: str) -> None:
    """_Refuse with a code unless something is true."""
    if not truth:
        raise _Refuse(refusal)
