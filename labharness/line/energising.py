"""Which link may energise: by its kind and by who holds it. A missing row is a refusal."""

from labharness.instruments.link import Link

__all__ = ["may_not_energise"]

HERE, GUARD_PROCESS = "this process", "the guard process"

NEVER = "nothing says that it may energise"
TAKES_A_GUARD = "energising on it takes the guard process"
TAKES_A_PERSON = "its driver dies with this process, so it may energise only where a person attends"

ENERGISES: dict[tuple[str, str], str] = {
    ("loopback", HERE): "",
    ("serial", GUARD_PROCESS): "",
    ("tcp", GUARD_PROCESS): "",
    ("serial", HERE): TAKES_A_GUARD,
    ("tcp", HERE): TAKES_A_GUARD,
    ("visa", HERE): TAKES_A_PERSON,
    ("websocket", HERE): TAKES_A_PERSON,
}


def may_not_energise(link: Link, *, attended: bool) -> str:
    """Return why nothing may be energised over this link; ``""`` when it may."""
    holder = GUARD_PROCESS if getattr(link, "guarded", False) else HERE
    why = ENERGISES.get((link.kind, holder), NEVER)
    return "" if why is TAKES_A_PERSON and attended else why
