"""A request for approval and what persons have said of it, as the lab's files hold them."""

from dataclasses import dataclass

from labharness.core.errors import LabError
from labharness.work.admission.approval import ApprovalRequest


class BadDecision(LabError, ValueError, code="bad_decision"):
    """A decision cannot count; the message says why, and what would count."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision of one person on one request.

    Attributes:
        digest: Digest of plan, envelope and lab file at the decision.
        ticket: Ticket of the request; another request for the same plan has another.
        account: The account in which it was typed.
        at: UTC.
        signature: Of its person's key over all of it, in hexadecimal digits; ``""`` for none.
    """

    name: str
    reason: str
    agrees: bool
    digest: str
    ticket: str
    account: str
    at: str
    signature: str = ""


@dataclass(frozen=True, slots=True)
class Pending:
    """A request that waits, and the decisions on it.

    Attributes:
        ticket: Its name in the log.
        decisions: The decisions under its ticket.
        stale: The number of decisions on an earlier request for the same; they count no more.
    """

    id: str
    asked_at: str
    request: ApprovalRequest
    ticket: str
    decisions: tuple[Decision, ...]
    stale: int

    @property
    def used_up(self) -> str:
        """Return a text on decisions that count no more, to follow the missing ones; or ``""``."""
        said = f"; {self.stale} said so of an earlier request for it, which counts no more"
        return said if self.stale else ""
