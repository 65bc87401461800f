"""The reply rules: which replies are believed, and that nothing else ever is."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faced import rtu
from labharness.core.vocabulary import (
    BadReply,
    Exactly,
    LengthAt,
    Lines,
    Message,
    Nothing,
    Quiet,
    ReplyRule,
    Rtu,
    Until,
    unfinished,
)

RULES: list[ReplyRule] = [
    Rtu(1, 3, 4),
    Rtu(1, 6, None, b"\0\1\0\2"),
    LengthAt(4, 2, 6, 2, b"\x01\x03", 6, (13, 9)),
    Until(b";FF", b"@253", 64),
    Until(b"\r"),
    Exactly(3, b"OK"),
    Lines(3, b"\r", b"A", 64),
    Quiet(0.1),
    Message("ccd_list"),
    Nothing(),
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
@given(
    buffer=st.binary(max_size=80)
    | st.binary(max_size=12).map(lambda tail: b"\x01\x03" + tail)
    | st.binary(max_size=12).map(lambda tail: b"\0\x07\0\0\0\x07" + tail)
    | st.text("@253A\r;FOK1", max_size=30).map(str.encode)
    | st.recursive(st.none() | st.integers(), lambda x: st.lists(x) | st.dictionaries(st.text(), x))
    .map(json.dumps)
    .map(str.encode),
    transaction=st.integers(0, 65_535) | st.just(7),
)
@settings(deadline=None, max_examples=60)
def test_a_rule_says_a_number_of_bytes_or_that_the_reply_is_bad(
    rule: ReplyRule, buffer: bytes, transaction: int
) -> None:
    try:
        taken = rule.take(buffer, transaction)
    except BadReply:
        return
    assert type(taken) is int
    assert -len(buffer) <= taken <= len(buffer)


def test_json_nested_beyond_all_measure_is_a_bad_reply() -> None:
    with pytest.raises(BadReply, match="is not JSON"):
        Message("x").take(b"[" * 200_000, 1)


RIGHT = [
    (Rtu(1, 3, 4), rtu(1, 3, 4, 0, 1, 0, 2)),
    (Rtu(1, 6, None, b"\0\1\0\2"), rtu(1, 6, 0, 1, 0, 2)),
    (Rtu(1, 3, 4), rtu(1, 0x83, 2)),
    (Rtu(17, 16, None, b"\0\1\0\2"), rtu(17, 0x90, 3)),
]


@pytest.mark.parametrize(("rule", "reply"), RIGHT)
def test_an_rtu_reply_is_right_as_a_whole_or_not_at_all(rule: Rtu, reply: bytes) -> None:
    assert rule.take(reply, 0) == len(reply)
    for end in range(len(reply)):
        assert rule.take(reply[:end], 0) == 0, "a beginning asks for more"
    with pytest.raises(BadReply):
        rule.take(reply + b"\0", 0)
    for at in range(len(reply)):
        for mask in (1, 2, 4, 8, 16, 32, 64, 128, 255):
            wrong = reply[:at] + bytes([reply[at] ^ mask]) + reply[at + 1 :]
            try:
                assert rule.take(wrong, 0) == 0
            except BadReply:
                continue


@pytest.mark.parametrize(
    ("rule", "reply"),
    [
        (Rtu(1, 3, 4), rtu(2, 3, 4, 0, 1, 0, 2)),
        (Rtu(1, 3, 4), rtu(1, 4, 4, 0, 1, 0, 2)),
        (Rtu(1, 3, 4), rtu(1, 3, 2, 0, 1, 0, 2)),
        (Rtu(1, 6, None, b"\0\1\0\2"), rtu(1, 6, 0, 1, 0, 3)),
        (Rtu(1, 6, None, b"\0\1\0\2"), rtu(1, 6, 0, 2, 0, 2)),
    ],
)
def test_a_right_checksum_does_not_make_a_wrong_reply_right(rule: Rtu, reply: bytes) -> None:
    with pytest.raises(BadReply):
        rule.take(reply, 0)


TCP = LengthAt(4, 2, 6, 2, b"\x01\x03", 6, (13, 9))


@pytest.mark.parametrize(
    ("reply", "taken"),
    [
        (b"\0\7\0\0\0\7\1\3\4\0\1\0\2", 13),
        (b"\0\7\0\0\0\3\1\x83\2", 9),
        (b"\0\6\0\0\0\7\1\3\4\0\1\0\2", -13),
        (b"\0\7\0\0", 0),
        (b"\0\7\0\0\0\7\1\3\4\0", 0),
    ],
)
def test_a_framed_reply_is_known_by_its_length_and_transaction(reply: bytes, taken: int) -> None:
    assert TCP.take(reply, 7) == taken


@pytest.mark.parametrize(
    "reply",
    [
        b"\0\7\0\0\0\7\2\3\4\0\1\0\2",
        b"\0\7\0\0\0\7\1\4\4\0\1\0\2",
        b"\0\7\0\0\0\5\1\3\2\0\1",
        b"\0\7\0\0\0\x09\1\3\6\0\1\0\2\0\3",
    ],
    ids=["unit", "function", "short", "long"],
)
def test_a_framed_reply_of_another_unit_function_or_length_is_bad(reply: bytes) -> None:
    with pytest.raises(BadReply):
        TCP.take(reply, 7)


def test_a_length_field_beyond_reason_is_bad_at_once() -> None:
    with pytest.raises(BadReply, match="announces"):
        LengthAt(0, 4, 4, 0, b"x", 4, (8,)).take(b"\xff\xff\xff\xff", 0)


def test_text_replies_have_their_prefix_their_end_and_their_size() -> None:
    assert Until(b"\r", b"A").take(b"A 1\rrest", 0) == 4
    assert Until(b"\r", b"A").take(b"", 0) == 0
    assert Until(b"\r", b"\r").take(b"\r", 0) == 0, "a prefix is not its own end"
    assert Until(b"\r", b"", 4).take(b"abc\r", 0) == 4
    assert Until(b"\r", b"", 4).take(b"abc", 0) == 0
    with pytest.raises(BadReply, match="within 4 bytes"):
        Until(b"\r", b"", 4).take(b"abcd\r", 0)
    with pytest.raises(BadReply, match="does not start"):
        Until(b"\r", b"@253").take(b"@254", 0)
    assert Exactly(3, b"OK").take(b"OK", 0) == 0
    assert Exactly(3, b"OK").take(b"OK!", 0) == 3
    with pytest.raises(BadReply, match="expected 3"):
        Exactly(3, b"OK").take(b"OK!?", 0)
    with pytest.raises(BadReply, match="does not start"):
        Exactly(3, b"OK").take(b"NO", 0)
    assert Lines(2, b"\r", b"A").take(b"A1\rA2\rA3\r", 0) == 6
    assert Lines(2, b"\r", b"A").take(b"A1\rA", 0) == 0
    with pytest.raises(BadReply, match="does not start"):
        Lines(2, b"\r", b"A").take(b"A1\rB", 0)
    with pytest.raises(BadReply, match="within 5 bytes"):
        Lines(2, b"\r", b"A", 5).take(b"A1\rA2\r", 0)


@pytest.mark.parametrize("text", ["[]", "1", "{", '{"id": 7, "command": "other"}', "\xff"])
def test_a_message_that_answers_something_else_is_bad(text: str) -> None:
    with pytest.raises(BadReply):
        Message("ccd_list").take(text.encode("latin-1"), 7)


@pytest.mark.parametrize(
    ("rule", "came", "said"),
    [
        (Rtu(1, 3, 4), b"", "no reply within 0.3 s"),
        (Rtu(1, 3, 4), b"\x01", "bad reply: short, 1 bytes within 0.3 s (01)"),
        (
            Rtu(1, 3, 4),
            b"\x01\x03\x04\0\x0a",
            "bad reply: short, 5 of 9 bytes within 0.3 s (01 03 04 00 0a)",
        ),
        (Rtu(1, 3, 4), b"\x01\x83\x02", "bad reply: short, 3 of 5 bytes within 0.3 s (01 83 02)"),
        (
            Rtu(1, 6, echo=b"\0\x02\x1f\x40"),
            b"\x01\x06",
            "bad reply: short, 2 of 8 bytes within 0.3 s (01 06)",
        ),
        (
            LengthAt(4, 2, 6, 2, b"\x01\x03", 6, (13,)),
            b"\0\x01\0\0\0\x07\x01",
            "bad reply: short, 7 of 13 bytes within 0.3 s (00 01 00 00 00 07 01)",
        ),
        (
            LengthAt(4, 2, 6, 2, b"\x01\x03", 6, (13,)),
            b"\0\x01",
            "bad reply: short, 2 bytes within 0.3 s (00 01)",
        ),
        (Exactly(3), b"ok", "bad reply: short, 2 of 3 bytes within 0.3 s (6f 6b)"),
        (Until(b"\r"), b"A +01", "bad reply: short, 5 bytes within 0.3 s (41 20 2b 30 31)"),
    ],
)
def test_a_reply_that_stopped_is_told_from_none(rule: ReplyRule, came: bytes, said: str) -> None:
    assert unfinished(rule, came, 0.3) == said


def test_fewer_data_bytes_than_asked_are_named_when_they_are_announced() -> None:
    with pytest.raises(BadReply, match="2 data bytes announced, asked 4"):
        Rtu(1, 3, 4).take(b"\x01\x03\x02", 0)
    assert Rtu(1, 3, 4).take(b"\x01\x03\x04", 0) == 0
    assert Rtu(1, 3, 4).take(b"\x01\x83\x02", 0) == 0  # an exception announces no data
