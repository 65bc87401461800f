"""The hash chain over a run's records, as pure functions."""

import hashlib
import hmac
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from labharness.core.vocabulary.texts import coded, revived

GENESIS: Final = b"labharness journal, chain version 1\n"
"""Text that every chain begins with; it changes when the record format changes."""

FIRST_SEQ: Final = 1

ENCRYPTED: Final = "encrypted"
"""Kind of a record that holds another one, encrypted; the chain is over what is stored."""

BLOCK_KINDS: Final = frozenset({"samples", "queried", "checkpoint", ENCRYPTED})
"""Kinds of record with a block of bytes beside them, of which the record states the hash."""

# Python writes floats by repr, the shortest text that reads back as the same number. ASCII escapes
# also carry a broken string of an instrument (a lone surrogate).
_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode

# Nine times as fast. Of what `_plain` lets through it makes the same bytes, or none.
_encode_plain = msgspec.json.Encoder(order="sorted").encode

SCALARS: Final = frozenset({str, int, bool, type(None)})
DELETE: Final = b"\x7f"  # the one character of ASCII that msgspec does not escape
PLAIN_FROM: Final = 1e-4
PLAIN_BELOW: Final = 1e16
"""Sizes of floats that Python's repr writes without an exponent, and msgspec in the same digits."""


@dataclass(frozen=True, slots=True)
class Head:
    """The newest record of a chain: its number and its hash in hex."""

    seq: int
    hash: str


@dataclass(frozen=True, slots=True)
class Sealed:
    """A record as stored on disk: its bytes, its hash, and the bytes that belong to it."""

    seq: int
    data: bytes
    hash: bytes
    block: bytes | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """A decoded record: number, lab time in seconds, kind and body."""

    seq: int
    at_s: float
    kind: str
    body: dict[str, Any]
    hash: str


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """The result of a check of the chain; `head` is the last good record.

    `tail_known` says that the last record equals a head that was kept elsewhere. Without it, a cut
    tail looks like a run that ended there, and a well-made record added at the end is not noticed.

    Attributes:
        rows_lost: Number of stored records behind `head`, for which nothing vouches; ``None`` where
            they cannot be counted.
    """

    ok: bool
    first_bad_seq: int | None
    reason: str
    head: Head
    tail_known: bool
    rows_lost: int | None = 0


def canonical(value: Mapping[str, Any]) -> bytes:
    """Return the canonical JSON text of a mapping: sorted keys, no spaces, ASCII, floats by repr.

    Raises:
        ValueError: A number is NaN or infinite; missing data is ``None``, never NaN.
        TypeError: A value cannot be written as JSON.
    """
    return _encode(value).encode("ascii")


def record_bytes(seq: int, at_s: float, kind: str, body: Mapping[str, Any]) -> bytes:
    """Return the bytes of a record that enter its hash: `canonical` of its fields.

    Raises:
        ValueError: As `canonical`.
        TypeError: As `canonical`.
    """
    at_s = float(at_s)  # 0 and 0.0 are one instant and must have one text
    if _plain(body) and _plain_float(at_s):
        try:
            data = _encode_plain(_Fields(at_s, body, kind, seq))
        except (UnicodeEncodeError, OverflowError):  # a lone surrogate; an integer beyond 64 bits
            data = DELETE
        if data.isascii() and DELETE not in data:
            return data
    return canonical({"seq": seq, "at_s": at_s, "kind": kind, "body": coded(body)})


class _Fields(msgspec.Struct, frozen=True):
    """The fields of a record in the order of their text; twice as fast as a dict of them."""

    at_s: float
    body: Mapping[str, Any]
    kind: str
    seq: int


def _plain(value: Any) -> bool:  # noqa: ANN401 - whatever a body holds
    """Return whether msgspec writes a value as `canonical` does, some characters apart.

    It would write NaN as null, and bytes, which are not JSON, as a text.
    """
    kind = type(value)
    if kind is dict:
        for key, each in value.items():
            if type(key) is not str:
                return False
            of = type(each)
            if of not in SCALARS and not (_plain_float(each) if of is float else _plain(each)):
                return False
        return True
    if kind is float:
        return _plain_float(value)
    return kind in SCALARS or ((kind is list or kind is tuple) and all(map(_plain, value)))


def _plain_float(value: float) -> bool:
    return PLAIN_FROM <= value < PLAIN_BELOW or value == 0.0 or PLAIN_FROM <= -value < PLAIN_BELOW


def genesis_of(run: Mapping[str, Any]) -> bytes:
    """Return the hash that stands before the first record: the constant, then the run's header."""
    return hashlib.sha256(GENESIS + canonical(run)).digest()


def link_hash(previous: bytes, data: bytes) -> bytes:
    """Return the hash of a record, from its bytes and the hash before it."""
    return hashlib.sha256(previous + data).digest()


def unseal(sealed: Sealed) -> Record:
    """Decode a record.

    Raises:
        ValueError: The bytes are not a record.
    """
    try:
        fields = json.loads(sealed.data, object_hook=revived)
    except RecursionError:
        raise ValueError(f"record {sealed.seq} is nested too deep") from None
    if not isinstance(fields, dict) or fields.keys() != {"seq", "at_s", "kind", "body"}:
        raise ValueError(f"record {sealed.seq} is not an object of seq, at_s, kind and body")
    seq, at_s, kind, body = (fields[name] for name in ("seq", "at_s", "kind", "body"))
    if type(seq) is not int or type(at_s) is not float or not math.isfinite(at_s):
        raise ValueError(f"record {sealed.seq} has no whole seq or no finite at_s")
    if not isinstance(kind, str) or not isinstance(body, dict):
        raise ValueError(f"record {sealed.seq} has no kind or no body")
    return Record(seq, at_s, kind, body, sealed.hash.hex())


def verify(
    records: Iterable[Sealed], *, genesis: bytes, outside: Head | None = None
) -> VerifyReport:
    """Check a chain from its genesis; report the first record that does not fit.

    Args:
        records: The records in the order of storage.
        genesis: `genesis_of` the run's header.
        outside: A head that was kept elsewhere; it reveals a cut tail.
    """
    good = Head(FIRST_SEQ - 1, genesis.hex())
    previous = genesis
    outside_seen = outside is None or outside == good

    def report(reason: str, bad_seq: int | None) -> VerifyReport:
        return VerifyReport(bad_seq is None, bad_seq, reason, good, outside == good)

    for sealed in records:
        expected = good.seq + 1
        fault = _fault(sealed, expected, previous)
        if fault is not None:
            return report(fault, expected)
        previous = sealed.hash
        good = Head(expected, previous.hex())
        if outside is not None and outside.seq == expected:
            if outside.hash != good.hash:
                return report(f"record {expected} differs from the head kept elsewhere", expected)
            outside_seen = True
    if not outside_seen and outside is not None:
        return report(f"the tail is cut: the head kept elsewhere is {outside.seq}", good.seq + 1)
    since = FIRST_SEQ - 1 if outside is None else outside.seq
    tail = "" if outside == good else f"; after {since} no head kept elsewhere vouches for them"
    return report(f"{good.seq} records fit{tail}", None)


def _fault(sealed: Sealed, expected: int, previous: bytes) -> str | None:
    if sealed.seq != expected:
        return f"record {expected} is missing or out of order: {sealed.seq} stands in its place"
    if not hmac.compare_digest(link_hash(previous, sealed.data), sealed.hash):
        return f"record {expected} does not fit its hash and the record before it"
    try:
        record = unseal(sealed)
    except ValueError as error:
        return f"record {expected} cannot be read: {error}"
    if record.seq != expected:
        return f"record {expected} says that it is {record.seq}"
    stated = record.body.get("sha256") if record.kind in BLOCK_KINDS else None
    found = None if sealed.block is None else hashlib.sha256(sealed.block).hexdigest()
    if stated != found:
        return f"the {record.kind} of record {expected} do not fit the hash in it"
    return None
