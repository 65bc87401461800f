"""Messages that no caller should send, drawn from a seed, and what has become of each of them."""

import json
import random
import struct
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

LETTER_BYTES = 1_048_576
"""Of a dead letter; a longer body is cut."""

REPEATS = 0.05
JUNK: tuple[Any, ...] = (
    *(None, True, 0, -1, 1.5, 2**53, 10**30, "", "x", "\x00", "\u202e", "\U0001f9ea" * 40),
    *([], {}, [[]], {"": ""}, ["x"] * 50, {"$ref": "#"}, "1e999", float("nan"), float("inf")),
)


def places(body: object, at: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Return each place in a message, the whole first."""
    yield at
    pairs: list[tuple[str | int, object]] = []
    if isinstance(body, dict):
        pairs = [*body.items()]
    elif isinstance(body, list):
        pairs = [*enumerate(body)]
    for name, each in pairs:
        yield from places(each, (*at, name))


@dataclass(frozen=True, slots=True)
class Fuzzed:
    """One message to publish.

    Attributes:
        kind: How it was made.
        body: Its bytes.
        stranger: It is sent by the account that the lab does not know.
        properties: AMQP properties, for `pika`.
    """

    kind: str
    body: bytes
    stranger: bool = False
    properties: Mapping[str, Any] = field(default_factory=dict)


class RawTable(dict[str, Any]):
    """A table of headers, as the bytes that go over the wire."""

    data: bytes = b""


def deep_table(depth: int) -> RawTable:
    """Return a table in a table in a table, as AMQP 0-9-1 writes it."""
    found = RawTable(deep=depth)
    inner = b""
    for _ in range(depth):
        inner = b"\x01aF" + struct.pack(">I", len(inner)) + inner
    found.data = struct.pack(">I", len(inner)) + inner
    return found


class Fuzz:
    """Draws messages.

    Args:
        seed: The same seed draws the same messages.
        good: The payload of a submission that the lab accepts.
        known: A caller of the lab.
    """

    def __init__(self, seed: int, good: Mapping[str, Any], known: str) -> None:
        self._draw = random.Random(seed)
        self._good, self._known, self._count = dict(good), known, 0
        self.kinds: dict[str, Callable[[], Fuzzed]] = {
            name.removeprefix("_of_"): getattr(self, name)
            for name in dir(self)
            if name.startswith("_of_")
        }

    def draw(self) -> Fuzzed:
        self._count += 1
        return self.kinds[self._draw.choice([*self.kinds])]()

    # ---- what a caller that is well behaved would send

    def _envelope(self, **changed: Any) -> dict[str, Any]:
        return {
            "hcp_version": "1.0",
            "message_id": f"fuzz-{self._count}",
            "timestamp": "2026-01-01T00:00:00.000Z",
            "session_id": None,
            "type": "task_submit",
            "payload": {**self._good, "caller_id": self._known},
            **changed,
        }

    def _sent(self, kind: str, value: object, **settings: Any) -> Fuzzed:
        return Fuzzed(kind, json.dumps(value, ensure_ascii=False).encode("utf-8"), **settings)

    def _whole(self) -> bytes:
        return json.dumps(self._envelope()).encode()

    # ---- bytes

    def _of_noise(self) -> Fuzzed:
        return Fuzzed("noise", self._draw.randbytes(self._draw.randrange(2000)))

    def _of_cut(self) -> Fuzzed:
        whole = self._whole()
        return Fuzzed("cut", whole[: self._draw.randrange(len(whole))])

    def _of_flipped(self) -> Fuzzed:
        whole = bytearray(self._whole())
        for _ in range(self._draw.randrange(1, 6)):
            whole[self._draw.randrange(len(whole))] = self._draw.randrange(256)
        return Fuzzed("flipped", bytes(whole))

    def _of_nested(self) -> Fuzzed:
        depth = self._draw.choice((63, 64, 65, 1000, 100_000))
        start, end = self._draw.choice(((b"[", b"]"), (b'{"a":', b"}")))
        inner = start * depth + b"1" + end * self._draw.choice((0, depth))
        if self._draw.random() < 0.5:
            return Fuzzed("nested", inner)
        value = self._whole()[:-1] + b', "deep": ' + inner + b"}"
        return Fuzzed("nested", value)

    def _of_oversized(self) -> Fuzzed:
        if self._draw.random() < 0.9:  # a tenth of them is enough: each has megabytes
            return self._of_noise()
        size = self._draw.randrange(LETTER_BYTES, 4 * LETTER_BYTES)
        return Fuzzed("oversized", self._whole()[:-1] + b', "pad": "' + b"x" * size + b'"}')

    def _of_unicode(self) -> Fuzzed:
        whole = self._whole()
        odd = (
            whole.decode().encode("utf-16"),
            b"\xef\xbb\xbf" + whole,
            whole.replace(b"1.0", b"1.0\xc0\x80", 1),
            whole.replace(b'"intent": "', b'"intent": "\\ud800', 1),
            whole.replace(b'"intent": "', b'"intent": "\\ud83e\\uddea\\u0000', 1),
            whole.replace(b'"intent"', '"int\u0435nt"'.encode(), 1),
        )
        return Fuzzed("unicode", self._draw.choice(odd))

    def _of_numbers(self) -> Fuzzed:
        number = self._draw.choice(
            ("NaN", "-Infinity", "1e400", "9" * 400, "9" * 5000, "-0", str(2**63), "1e-400")
        )
        name = self._draw.choice((b'"intent":', b'"inputs":', b'"message_id":', b'"payload":'))
        return Fuzzed("numbers", self._whole().replace(name, name + number.encode() + b', "z":', 1))

    def _of_doubled(self) -> Fuzzed:
        return Fuzzed("doubled", self._whole()[:-1] + b', "type": "abort"}')

    # ---- envelopes

    def _of_version(self) -> Fuzzed:
        odd: tuple[Any, ...] = ("2.0", "0.9", "1", "01.0", "1.00000", 1.0, None, "1.0 ", [])
        return self._sent("version", self._envelope(hcp_version=self._draw.choice(odd)))

    def _of_type(self) -> Fuzzed:
        kinds = ("event", "task_accepted", "task_failed", "session_created", "", "TASK_SUBMIT", 7)
        return self._sent("type", self._envelope(type=self._draw.choice(kinds), session_id="s"))

    def _of_field(self) -> Fuzzed:
        value = self._envelope()
        place = value if self._draw.random() < 0.5 else value["payload"]
        name = self._draw.choice([*place])
        if self._draw.random() < 0.3:
            del place[name]
        else:
            place[name] = self._draw.choice(JUNK)
        return self._sent("field", value)

    def _of_inputs(self) -> Fuzzed:
        value = self._envelope()
        inputs = {self._draw.choice("abcä"): self._draw.choice(JUNK) for _ in range(3)}
        value["payload"]["inputs"] = inputs
        if self._draw.random() < 0.5:
            value["payload"]["constraints"] = {"max_duration": self._draw.choice(JUNK)}
        return self._sent("inputs", value)

    def _of_abort(self) -> Fuzzed:
        payload = {"reason": "x", "caller_id": self._known, "session_token": "guess"}
        session = self._draw.choice(("none", "../../x", "x" * 128, "x" * 129, None, 7, "\u0000"))
        value = self._envelope(type="abort", session_id=session, payload=payload)
        return self._sent("abort", value)

    # ---- who sends it, and how

    def _of_stranger(self) -> Fuzzed:
        return self._sent("stranger", self._envelope(), stranger=True)

    def _of_nobody(self) -> Fuzzed:
        return self._sent("nobody", self._envelope(), properties={"user_id": None})

    def _of_properties(self) -> Fuzzed:
        odd: tuple[dict[str, Any], ...] = (
            {"message_id": b"\xff\xfe"},
            {"content_type": b"\xc0"},
            {"timestamp": 2**64 - 1},
            {"timestamp": 2**60},
            {"headers": deep_table(self._draw.choice((10, 1000, 15_000)))},
            {"headers": {"x": b"\xff" * 100}, "correlation_id": b"\x80"},
            {"content_encoding": "gzip", "content_type": "text/html", "priority": 255},
        )
        return self._sent(
            "properties", {"message_id": f"p-{self._count}"}, properties=self._draw.choice(odd)
        )


def fuzzed(seed: int, count: int, good: Mapping[str, Any], known: str) -> Iterator[Fuzzed]:
    """Return messages; some are one that came before, once more."""
    fuzz, draw, before = Fuzz(seed, good, known), random.Random(seed + 1), list[Fuzzed]()
    for _ in range(count):
        again = before and draw.random() < REPEATS
        one = draw.choice(before) if again else fuzz.draw()
        if len(one.body) < 10_000:
            before = [*before[-500:], one]
        yield one


class Account:
    """What was sent, and what has become of it: a dead letter, an answer, or a session."""

    def __init__(self) -> None:
        self._open = Counter[bytes]()  # bodies without a letter yet
        self._ids: dict[bytes, str | None] = {}
        self._answered_once = set[bytes]()
        self.answered = Counter[str]()
        self.fates = Counter[str]()
        self.sent = Counter[str]()

    def send(self, message: Fuzzed) -> None:
        digest = _digest(message.body)
        self.sent[message.kind] += 1
        if digest not in self._answered_once:
            self._open[digest] += 1
            self._ids[digest] = _message_id(message.body)

    def letter(self, body: bytes, reason: str) -> None:
        digest = _digest(body)
        assert self._open[digest] > 0 or digest in self._answered_once, body[:200]
        self._open[digest] -= 1
        self.fates[" ".join(reason.split()[:4])] += 1

    def answer(self, message_id: str, kind: str) -> None:
        self.answered[message_id] += 1
        self.fates[f"answered {kind}"] += 1

    def missing(self) -> int:
        """Return how many messages have neither a letter of their own nor an answer."""
        for digest, count in [*self._open.items()]:
            if self._ids.get(digest) in self.answered:
                self._answered_once.add(digest)
            if count <= 0 or digest in self._answered_once:
                del self._open[digest]
                self._ids.pop(digest, None)
        return self._open.total()


def _digest(body: bytes) -> bytes:
    return sha256(body[:LETTER_BYTES]).digest()


def _message_id(body: bytes) -> str | None:
    try:
        found = json.loads(body)
        return str(found["message_id"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
