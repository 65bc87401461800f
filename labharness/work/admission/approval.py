"""A person's agreement, bound to exactly what the person saw, and the persons who may agree."""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, ClassVar, Final, Literal

from labharness.core.files.signing_key import signed_by
from labharness.core.vocabulary.digests import digest_of, joined
from labharness.core.vocabulary.persons import bad_name, same_person
from labharness.core.vocabulary.texts import CodedError, Text
from labharness.protocols.hcp.terms import RiskLevel
from labharness.work.admission.callers import STRICT, table_of
from labharness.work.admission.risk import points_of

APPROVERS_NEEDED: Final[Mapping[str, int]] = {"R5": 2}
"""Persons who must agree; one where a level is not named."""

_SIGNED_AS: Final = b"labharness standing approval, version 1\n"
_BOUND_AS: Final = b"labharness approved plan, version 1\n"
_DECIDED_AS: Final = b"labharness decision on a request, version 1\n"
KEY_BYTES: Final = 32


class BadApproval(CodedError, ValueError, code="bad_approval"):
    """An approval file that cannot be honoured as it stands."""


@dataclass(frozen=True, slots=True)
class StandingApproval:
    """A signed, dated agreement to a kind of request on a simulated laboratory.

    `input_limits` are names ending in ``_max`` or ``_min`` with their unit, for example
    ``temperature_c_max``. `links` says that every link of the laboratory must be loopback; there is
    no other value, because a real laboratory needs a person for each request.
    """

    __pydantic_config__: ClassVar = STRICT

    id: str
    capability: str
    risk_max: RiskLevel
    input_limits: dict[str, float]
    gases_allowed: tuple[str, ...]
    envelope_digest: str
    lab_digest: str
    given_by: str
    reason: str
    until: str
    links: Literal["loopback"]
    signature: str = ""


@dataclass(frozen=True, slots=True)
class RequestFacts:
    """The facts that an approval must cover.

    `quantities` holds the values that the plan reaches, by names of limits (``temperature_c_max``).
    """

    requester: str
    capability: str
    risk_level: RiskLevel
    quantities: Mapping[str, float]
    gases: tuple[str, ...]
    envelope_digest: str
    lab_digest: str
    link_kinds: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PersonalApproval:
    """One person's agreement to one plan; `digest` is that of plan, envelope and lab file."""

    name: str
    reason: str
    digest: str


@dataclass(frozen=True, slots=True)
class Approved:
    """The persons who agreed, and their reasons.

    Attributes:
        agreement: Ticket of the request that they agreed to; ``""`` of a standing approval.
    """

    by: tuple[str, ...]
    reason: str
    agreement: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return it as the journal of a run has it."""
        used = {"agreement": self.agreement} if self.agreement else {}
        return {"by": list(self.by), "reason": self.reason, **used}


@dataclass(frozen=True, slots=True)
class NotApproved:
    """Why an approval does not cover a request.

    Attributes:
        expired: It would, had it not expired; this tells the two reason codes apart.
        edited: It would, had the lab's files not been edited since.
    """

    reason: str
    expired: bool = False
    edited: bool = False


def read_approval(text: str) -> StandingApproval:
    """Read an approval file (TOML); its signature is not checked here.

    Raises:
        BadApproval: The text is not TOML, or a key is missing, unknown or of another type.
    """
    approval = table_of(StandingApproval, text, "approval file", BadApproval)
    _until(approval)
    return approval


def write_approval(approval: StandingApproval) -> str:
    """Write an approval as the TOML that `read_approval` reads."""
    import tomli_w

    return tomli_w.dumps(asdict(approval))


def sign(approval: StandingApproval, private_key: bytes) -> StandingApproval:
    """Return the approval with its Ed25519 signature (RFC 8032); the key is its 32 bytes."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.from_private_bytes(private_key)
    return replace(approval, signature=key.sign(_signed_bytes(approval)).hex())


def public_key_of(private_key: bytes) -> bytes:
    """Return the 32 bytes of the public key that belongs to a private one."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.from_private_bytes(private_key).public_key().public_bytes_raw()


def verify(
    approval: StandingApproval, facts: RequestFacts, public_key: bytes, now_utc: datetime
) -> Approved | NotApproved:
    """Check a request against a standing approval; anything that it does not name is refused.

    Args:
        approval: As read from its file.
        facts: Of the request, its plan and the laboratory.
        public_key: The 32 bytes of the key that must have signed.
        now_utc: World time, with its zone.
    """
    if not signed_by(public_key.hex(), approval.signature, _signed_bytes(approval)):
        return NotApproved(Text("approval.signature", id=approval.id))
    until = _until(approval)
    if now_utc >= until:
        return NotApproved(
            Text("approval.expired", id=approval.id, until=approval.until), expired=True
        )
    unedited = replace(
        facts, envelope_digest=approval.envelope_digest, lab_digest=approval.lab_digest
    )
    lacking = list(_faults(approval, unedited))
    for fault in lacking or _faults(approval, facts):
        return NotApproved(Text("approval.fault", id=approval.id, why=fault), edited=not lacking)
    return Approved((approval.given_by,), approval.reason)


def plan_digest(plan: bytes, envelope: bytes, lab: bytes) -> str:
    """Return the digest that a personal approval is bound to; one changed byte changes it."""
    return digest_of(_BOUND_AS + joined(plan, envelope, lab))


def verify_personal(
    approvals: Iterable[PersonalApproval], *, digest: str, requester: str, risk_level: RiskLevel
) -> Approved | NotApproved:
    """Count the persons, none of them the requester, who agreed to exactly this plan.

    Args:
        approvals: The agreements of persons.
        digest: Digest of the plan, computed here, never read from a file; compared whole.
        requester: The name of the requester; a person whose name reads like it does not count.
        risk_level: Risk of the plan.
    """
    names: list[str] = []
    reasons: list[str] = []
    if why := bad_name(requester):
        return NotApproved(Text("approval.misleads", why=str(why)))
    for one in approvals:
        fits = one.digest == digest and one.reason.strip() and not bad_name(one.name)
        if fits and not any(same_person(one.name, known) for known in (requester, *names)):
            names.append(one.name)
            reasons.append(one.reason)
    needed = APPROVERS_NEEDED.get(risk_level, 1)
    if len(names) < needed:
        return NotApproved(Text("approval.too_few", count=len(names), needed=needed, digest=digest))
    return Approved(tuple(names), "; ".join(reasons))


def _faults(approval: StandingApproval, facts: RequestFacts) -> Iterable[str]:
    if why := bad_name(approval.given_by) or bad_name(facts.requester):
        yield why
    if same_person(approval.given_by, facts.requester):
        yield Text("approval.same", by=approval.given_by, requester=facts.requester)
    if not facts.link_kinds or any(kind != "loopback" for kind in facts.link_kinds):
        kinds = ", ".join(sorted(set(facts.link_kinds))) or "none stated"
        yield Text("approval.links", kinds=kinds)
    if facts.envelope_digest != approval.envelope_digest:
        yield Text(
            "approval.envelope", found=facts.envelope_digest, approved=approval.envelope_digest
        )
    if facts.lab_digest != approval.lab_digest:
        yield Text("approval.lab", found=facts.lab_digest, approved=approval.lab_digest)
    if facts.capability != approval.capability:
        yield Text("approval.covers", covered=approval.capability, asked=facts.capability)
    if points_of(facts.risk_level) > points_of(approval.risk_max):
        yield Text("approval.risk", covered=approval.risk_max, asked=facts.risk_level)
    allowed = {gas.strip().lower() for gas in approval.gases_allowed}
    for gas in facts.gases:
        if gas.strip().lower() not in allowed:
            yield Text("approval.gases", covered=", ".join(sorted(allowed)) or "none", asked=gas)
    yield from _limit_faults(approval.input_limits, facts.quantities)


def _limit_faults(limits: Mapping[str, float], quantities: Mapping[str, float]) -> Iterable[str]:
    for name in sorted(limits.keys() | quantities.keys()):
        limit, asked = limits.get(name), quantities.get(name)
        if limit is None:
            yield Text("approval.no_limit", name=name)
        elif asked is None:
            yield Text("approval.unsaid", name=name)
        elif not (math.isfinite(limit) and math.isfinite(asked)):
            yield Text("approval.no_numbers", name=name, asked=asked, limit=limit)
        elif name.endswith("_max"):
            if asked > limit:
                yield Text("approval.up_to", name=name, asked=asked, limit=limit)
        elif name.endswith("_min"):
            if asked < limit:
                yield Text("approval.from", name=name, asked=asked, limit=limit)
        else:
            yield Text("approval.not_a_limit", name=name)


def _signed_bytes(approval: StandingApproval) -> bytes:
    fields = asdict(approval)
    del fields["signature"]
    # 780 and 780.0 are one limit and must have one text.
    fields["input_limits"] = {name: float(value) for name, value in approval.input_limits.items()}
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return _SIGNED_AS + text.encode("ascii")


def _until(approval: StandingApproval) -> datetime:
    try:
        until = datetime.fromisoformat(approval.until)
    except ValueError as error:
        raise BadApproval("approval.until", id=approval.id, error=str(error)) from error
    if until.utcoffset() is None:
        raise BadApproval("approval.no_zone", id=approval.id, until=approval.until)
    return until.astimezone(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequest:
    """A plan that waits for the agreement of persons, as it is shown to them.

    Attributes:
        session_id: Session of the run.
        requester: The person who submitted it, and may not approve it.
        risk_reasons: Reasons of the level.
        hazards: Hazard categories, as declared and as the plan shows.
        intent: The caller's words: text, never obeyed.
        instructions: The compiled plan, as JSON.
        duration_s: By pre-flight, or as planned.
        prediction: The pre-flight, as JSON; ``None`` where the lab has no simulated plant.
        why: Why no standing approval covers it.
        expired: One would, had it not expired.
        edited: One would, had the lab's files not been edited since.
        proposed_inputs: Inputs that the words state and that were left open, by their places; the
            plan does not have them.
    """

    session_id: str
    requester: str
    capability: str
    risk_level: RiskLevel
    risk_reasons: tuple[str, ...]
    intent: str
    inputs: Mapping[str, Any]
    instructions: Mapping[str, Any]
    duration_s: float
    prediction: Mapping[str, Any] | None
    envelope_digest: str
    lab_digest: str
    why: str
    expired: bool
    edited: bool = False
    hazards: tuple[str, ...] = ()
    proposed_inputs: Mapping[str, Any] = field(default_factory=dict)

    def digest(self) -> str:
        """Return the digest over plan, envelope and lab file that an agreement is bound to."""
        plan = json.dumps(self.instructions, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return plan_digest(plan.encode(), self.envelope_digest.encode(), self.lab_digest.encode())


class BadApprovers(CodedError, ValueError, code="bad_approvers"):
    """An approvers file that cannot be honoured as it stands."""


@dataclass(frozen=True, slots=True)
class Approver:
    """A person who may approve.

    Attributes:
        name: The person's name, as it stands in the decisions.
        key: The public half of its Ed25519 key (RFC 8032), 32 bytes.
        risk_max: The highest risk that it may approve.
        account: The account of the machine in which it decides; ``""`` for any.
    """

    name: str
    key: bytes
    risk_max: RiskLevel
    account: str


@dataclass(frozen=True, slots=True)
class _Entry:
    __pydantic_config__: ClassVar = STRICT

    key: str
    risk_max: RiskLevel = "R5"
    account: str = ""


@dataclass(frozen=True, slots=True)
class _File:
    __pydantic_config__: ClassVar = STRICT

    approvers: dict[str, _Entry]


def read_approvers(text: str) -> dict[str, Approver]:
    """Read an approvers file: one TOML table ``[approvers."<name>"]`` for each person.

    Each table has ``key`` (64 hexadecimal digits), and may have ``risk_max`` and ``account``.

    Raises:
        BadApprovers: The text is not TOML, a key is missing, unknown or of another type, a name
            would be taken for another, or two persons have one key.
    """
    file = table_of(_File, text, "approvers file", BadApprovers)
    found = {name: _approver(name, entry) for name, entry in file.approvers.items()}
    if len({each.key for each in found.values()}) < len(found):
        raise BadApprovers("approvers.one_key")
    return found


def _approver(name: str, entry: _Entry) -> Approver:
    where = f"approvers file: [approvers.{name!a}]"
    if why := bad_name(name):
        raise BadApprovers("pair", what=where, why=why)
    try:
        key = bytes.fromhex(entry.key)
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise BadApprovers("approvers.key", where=where)
    return Approver(name, key, entry.risk_max, entry.account)


def decision_bytes(fields: Mapping[str, object]) -> bytes:
    """Return the bytes of a decision that its person signs; a signature in it is left out."""
    signed = {name: value for name, value in fields.items() if name != "signature"}
    text = json.dumps(signed, sort_keys=True, separators=(",", ":"))
    return _DECIDED_AS + text.encode("ascii")


def why_not_by(
    approvers: Mapping[str, Approver],
    name: str,
    *,
    risk_level: RiskLevel,
    fields: Mapping[str, object],
    signature: str,
) -> str:
    """Return why a person's agreement does not count; ``""`` where it does.

    Args:
        approvers: The persons who may approve.
        name: The name in the decision.
        risk_level: Risk of the plan.
        fields: The decision, as it is signed.
        signature: In hexadecimal digits.
    """
    approver = approvers.get(name)
    if approver is None:
        known = sorted(approvers)
        return Text("approvers.unknown", name=name, known=known or Text("cli.none"))
    if points_of(risk_level) > points_of(approver.risk_max):
        return Text("approvers.risk", name=name, most=approver.risk_max, asked=risk_level)
    if approver.account and fields.get("account") != approver.account:
        return Text("approvers.account", name=name, account=approver.account)
    if not signed_by(approver.key.hex(), signature, decision_bytes(fields)):
        return Text("approvers.unsigned", name=name)
    return ""
