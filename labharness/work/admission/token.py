"""The session token: a random string for the caller; its time and its scope for us."""

import base64
import hmac
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from labharness.core.vocabulary.texts import Text
from labharness.protocols.hcp.terms import DATA_CLASSES, RISK_LEVELS, DataClass, RiskLevel

TOKEN_BYTES: Final = 32
"""256 bits, so that a token is not guessed."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The work that a session may do; a token approves one, and each operation states its own.

    Attributes:
        session_id: Of the session.
        risk_level: Of the task, as weighed.
        data_classification: The highest of its data.
        envelope_digest: Over the files of the limits that hold.
        instruments: Their names; ``None`` for all of the lab.
    """

    session_id: str
    risk_level: RiskLevel
    data_classification: DataClass
    envelope_digest: str
    instruments: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class TokenRecord:
    """The record of a token, without the token itself, so that no log or disk leaks it."""

    issued_at: datetime
    expires_at: datetime
    scope: Scope
    revoked: bool = False


def new_token(entropy: Callable[[int], bytes]) -> str:
    """Return a token that opens nothing yet.

    Raises:
        ValueError: Entropy is short.
    """
    secret = entropy(TOKEN_BYTES)
    if len(secret) != TOKEN_BYTES:
        raise ValueError(f"entropy gave {len(secret)} bytes instead of {TOKEN_BYTES}")
    return base64.urlsafe_b64encode(secret).rstrip(b"=").decode("ascii")


def issue(
    entropy: Callable[[int], bytes], scope: Scope, *, running_at: datetime, max_duration_s: float
) -> tuple[str, TokenRecord]:
    """Make a token of a session that runs from now on.

    Args:
        entropy: Returns that many random bytes, for example from the clock room.
        scope: The work that it approves.
        running_at: World time, with its zone, from which the duration counts.
        max_duration_s: Of the accepted constraints, in seconds; then it expires.

    Raises:
        ValueError: The time has no zone, the duration is not positive, or entropy is short.
    """
    if running_at.utcoffset() is None:
        raise ValueError("running_at has no time zone")
    if not max_duration_s > 0:
        raise ValueError(f"max_duration_s must be above 0 s, got {max_duration_s}")
    token = new_token(entropy)
    expires_at = running_at + timedelta(seconds=max_duration_s)
    return token, TokenRecord(running_at, expires_at, scope)


def in_force(record: TokenRecord | None, now_utc: datetime) -> bool:
    """Return whether a token is accepted, not expired and not revoked."""
    if record is None or record.revoked:
        return False
    return record.issued_at <= now_utc < record.expires_at


def beyond(approved: Scope, asked: Scope) -> str:
    """Return why what a token approves does not cover an operation; ``""`` where it does.

    The instruments of an operation are those that it touches.
    """
    if asked.session_id != approved.session_id:
        return Text("token.session")
    if asked.envelope_digest != approved.envelope_digest:
        return Text("token.envelope")
    for what, order in (("risk_level", RISK_LEVELS), ("data_classification", DATA_CLASSES)):
        found, most = getattr(asked, what), getattr(approved, what)
        if order.index(found) > order.index(most):
            return Text("token.above", what=what, asked=found, approved=most)
    if approved.instruments is None:
        return ""
    strange = sorted(set(asked.instruments or ()) - set(approved.instruments))
    if asked.instruments is None or strange:
        return Text("token.instruments", names=", ".join(strange) or "all")
    return ""


def is_token(stated: str, issued: str) -> bool:
    """Return whether a stated token is the issued one, in a time that tells nothing of either."""
    given, right = (each.encode("utf-8", "surrogatepass") for each in (stated, issued))
    return bool(issued) and hmac.compare_digest(given, right)


def revoke(record: TokenRecord) -> TokenRecord:
    """Return the record of the same token, which opens nothing any more."""
    return replace(record, revoked=True)
