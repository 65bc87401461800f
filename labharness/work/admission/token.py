"""The session token: a random string for the caller, its hash and scope for us."""

import base64
import hashlib
import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final

from labharness.protocols.hcp.terms import DataClass, RiskLevel

__all__ = ["TOKEN_BYTES", "TokenRecord", "TokenRefused", "issue", "revoke", "verify"]

TOKEN_BYTES: Final = 32
"""256 bits, so that a token is not guessed."""


@dataclass(frozen=True, slots=True)
class TokenRecord:
    """The record of a token, without the token itself, so that no log or disk leaks it."""

    sha256: str
    session_id: str
    issued_at: datetime
    expires_at: datetime
    approved_risk_level: RiskLevel
    approved_data_classification: DataClass
    constraints: Mapping[str, Any] = field(default_factory=dict)
    revoked: bool = False


@dataclass(frozen=True, slots=True)
class TokenRefused:
    """The reason that a token does not open its session; it never quotes the token."""

    reason: str


def issue(
    entropy: Callable[[int], bytes],
    *,
    session_id: str,
    running_at: datetime,
    max_duration_s: float,
    risk_level: RiskLevel,
    data_classification: DataClass,
    constraints: Mapping[str, Any],
) -> tuple[str, TokenRecord]:
    """Make a token that expires `max_duration_s` after the session started running.

    Args:
        entropy: Returns that many random bytes, for example from the clock room.
        session_id: The one session it opens.
        running_at: World time, with its zone, from which the duration counts.
        max_duration_s: Of the accepted constraints, in seconds.
        risk_level: The approved level.
        data_classification: The highest data class of the session.
        constraints: The approved envelope and constraints.

    Raises:
        ValueError: The time has no zone, the duration is not positive, or entropy is short.
    """
    if running_at.utcoffset() is None:
        raise ValueError("running_at has no time zone")
    if not max_duration_s > 0:
        raise ValueError(f"max_duration_s must be above 0 s, got {max_duration_s}")
    secret = entropy(TOKEN_BYTES)
    if len(secret) != TOKEN_BYTES:
        raise ValueError(f"entropy gave {len(secret)} bytes instead of {TOKEN_BYTES}")
    token = base64.urlsafe_b64encode(secret).rstrip(b"=").decode("ascii")
    expires_at = running_at + timedelta(seconds=max_duration_s)
    record = TokenRecord(
        sha256=_digest(token),
        session_id=session_id,
        issued_at=running_at,
        expires_at=expires_at,
        approved_risk_level=risk_level,
        approved_data_classification=data_classification,
        constraints=dict(constraints),
    )
    return token, record


def verify(
    token: str, record: TokenRecord, *, session_id: str, now_utc: datetime
) -> TokenRefused | None:
    """Return None if a token opens this session at this moment, else why it does not."""
    if not hmac.compare_digest(_digest(token), record.sha256):
        return TokenRefused("the token is not the one of this session")
    if record.session_id != session_id:
        return TokenRefused("the token belongs to another session")
    if record.revoked:
        return TokenRefused("the token is revoked")
    if now_utc < record.issued_at:
        return TokenRefused(f"the token is valid from {record.issued_at.isoformat()}")
    if now_utc >= record.expires_at:
        return TokenRefused(f"the token expired at {record.expires_at.isoformat()}")
    return None


def revoke(record: TokenRecord) -> TokenRecord:
    """Return the record of the same token, which opens nothing any more."""
    return replace(record, revoked=True)


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
