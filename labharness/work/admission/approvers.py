"""The persons who may approve: each signs a decision with a key of its own."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from labharness.core.vocabulary.persons import bad_name
from labharness.core.vocabulary.texts import CodedError, Text
from labharness.protocols.hcp.terms import RiskLevel
from labharness.work.admission.approval import signed_by
from labharness.work.admission.callers import STRICT
from labharness.work.admission.risk import points_of

KEY_BYTES: Final = 32
_SIGNED_AS: Final = b"labharness decision on a request, version 1\n"


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
    from labharness.core.files.tables import BadTable, read_table

    try:
        file = read_table(_File, text, "approvers file")
    except BadTable as why:
        raise BadApprovers(str(why)) from None
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
    return _SIGNED_AS + text.encode("ascii")


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
    if not signed_by(approver.key, signature, decision_bytes(fields)):
        return Text("approvers.unsigned", name=name)
    return ""
