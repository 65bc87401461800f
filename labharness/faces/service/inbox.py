"""What a delivered message asks for, from its bytes and the account that the broker vouches for."""

from dataclasses import dataclass

from labharness.core.vocabulary.texts import Text
from labharness.protocols.hcp.codec import BadPayload, HcpMessage, NotHcp, decode
from labharness.protocols.hcp.messages import Abort, TaskSubmit
from labharness.protocols.hcp.terms import Rejected


@dataclass(frozen=True, slots=True)
class SubmissionAsked:
    """A submission of a caller that is who it says."""

    caller_id: str
    message: HcpMessage


@dataclass(frozen=True, slots=True)
class AbortAsked:
    """An abort of a session."""

    caller_id: str
    session_id: str
    token: str
    reason: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """A submission that is answered and not kept."""

    caller_id: str
    in_reply_to: str
    rejected: Rejected


@dataclass(frozen=True, slots=True)
class Unanswerable:
    """A message that goes to the dead letters, because nobody can be answered."""

    reason: str


def asked(data: bytes, account: str) -> SubmissionAsked | AbortAsked | Refusal | Unanswerable:
    """Return what a message asks for.

    Args:
        data: Its body.
        account: The account that the broker vouches for (AMQP property ``user_id``); ``""`` where
            the message names none.
    """
    try:
        message = decode(data)
    except NotHcp as why:
        return Unanswerable(str(why))
    except BadPayload as why:
        caller_id = why.message.caller_id or ""
        if why.message.type != "task_submit":
            return Unanswerable(str(why))
        return _stranger(caller_id, account, why.message.message_id) or Refusal(
            caller_id, why.message.message_id, why.rejected()
        )
    if isinstance(message.payload, TaskSubmit):
        caller_id = message.payload.caller_id
        stranger = _stranger(caller_id, account, message.message_id)
        return stranger or SubmissionAsked(caller_id, message)
    if isinstance(message.payload, Abort):
        abort = message.payload
        if not account or abort.caller_id not in (None, account):
            return Unanswerable(Text("hcp.no_account", caller=abort.caller_id or "-"))
        reason = abort.reason or Text("hcp.aborted")
        token = abort.session_token or ""
        return AbortAsked(account, message.session_id or "", token, reason)
    return Unanswerable(Text("hcp.not_for_callee", type=message.type))


def claimed(data: bytes) -> str:
    """Return the caller that a message says it is of; ``""`` where it names none."""
    try:
        return getattr(decode(data).payload, "caller_id", None) or ""
    except BadPayload as why:
        return why.message.caller_id or ""
    except NotHcp:
        return ""


def _stranger(caller_id: str, account: str, message_id: str) -> Refusal | Unanswerable | None:
    """Return what becomes of a submission of a caller that the broker does not vouch for.

    The account is answered and nobody else: the caller that is named may have asked for nothing.
    """
    if account == caller_id:
        return None
    if not account:
        return Unanswerable(Text("hcp.no_account", caller=caller_id))
    why = Text("hcp.other_account", caller=caller_id)
    advice = Text("hcp.advice.account", caller=caller_id)
    return Refusal(account, message_id, Rejected("unauthorized", why, suggestion=advice))
