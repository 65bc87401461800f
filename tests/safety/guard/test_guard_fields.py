"""What crosses to the guard process is read strictly: each kind of field at its bounds."""

import json
from pathlib import Path
from typing import Any

import pytest

from guard_stubs import ARMED, LAST, ON, READ, SAFE
from labharness.core.vocabulary import LengthAt, Quiet, Request, Transaction
from labharness.safety.guard.armed import (
    BadArming,
    read_whole,
)
from labharness.safety.guard.messages import (
    WHOLE_MAX,
    BadFields,
    Fields,
    read_request,
    read_safe,
    read_trip,
    write_request,
    write_safe,
)

TAKES: list[tuple[str, tuple[Any, ...], list[Any], list[Any]]] = [
    ("text", (), ["", "a"], [None, 1, True, b"a", ["a"]]),
    ("one_of", (("a", "b"),), ["a", "b"], ["c", "", None, 1]),
    ("whole", (), [0, 1, WHOLE_MAX], [-1, WHOLE_MAX + 1, 1.0, True, "1", None]),
    (
        "number",
        (),
        [0, -1, 1.5, -1.5, WHOLE_MAX, -WHOLE_MAX],
        [float("inf"), float("nan"), WHOLE_MAX + 1, -WHOLE_MAX - 1, True, "1", None],
    ),
    ("seconds", (2.0,), [0, 0.0, 1.5, 2.0, 2], [-0.001, 2.001, float("nan"), "1"]),
    ("flag", (), [True, False], [0, 1, None, "true"]),
    ("raw", (), ["", "00ff"], ["0", "0g", None, 1]),
    ("items", (), [[], [1]], [None, {}, "a", (1,)]),
    ("inside", (), [{}, {"a": 1}], [None, [], "a"]),
]


@pytest.mark.parametrize(("take", "more", "good", "bad"), TAKES, ids=[row[0] for row in TAKES])
def test_a_field_is_of_its_kind_and_within_its_bounds(
    take: str, more: tuple[Any, ...], good: list[Any], bad: list[Any]
) -> None:
    for value in good:
        fields = Fields({"key": value}, "here")
        found = getattr(fields, take)("key", *more)
        if take == "raw":
            assert found == bytes.fromhex(value)
        elif take == "inside":
            assert (found.names(), found.where) == (tuple(value), "here, key")
        elif take in ("number", "seconds"):
            assert type(found) is float
            assert found == float(value)
        else:
            assert found == value
        fields.end()
    for value in bad:
        with pytest.raises(BadFields, match=r"^here"):
            getattr(Fields({"key": value}, "here"), take)("key", *more)
    with pytest.raises(BadFields, match=r"^here has no 'key'$"):
        getattr(Fields({"other": 1}, "here"), take)("key", *more)


def test_what_is_wrong_is_told_in_few_words() -> None:
    for take in ("whole", "number", "raw"):
        with pytest.raises(BadFields) as refused:
            getattr(Fields({"key": "g" * 1000}, "here"), take)("key")
        assert "g" * 38 in str(refused.value)
        assert "g" * 41 not in str(refused.value)


def test_what_may_be_left_out_or_null_is_asked_for() -> None:
    fields = Fields({"null": None, "some": 0}, "here")
    assert fields.names() == ("null", "some")
    assert (fields.null("some"), fields.null("other")) == (False, False)
    with pytest.raises(BadFields, match=r"^here: unknown 'null', 'some'$"):
        fields.end()
    assert fields.null("null")
    assert fields.names() == ("some",)
    assert fields.take("some") == 0
    fields.end()


def test_what_is_no_object_has_no_fields() -> None:
    wrongs: tuple[object, ...] = (None, [], "a", 1)
    for value in wrongs:
        with pytest.raises(BadFields, match=r"^here is not an object$"):
            Fields(value, "here")


# ---- requests, safe frames and trips


def put(written: Any, path: tuple[str, ...], value: object) -> Fields:
    """Return what was written with one thing otherwise."""
    body = json.loads(json.dumps(written))
    inner = body
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return Fields(body, "here")


BLANK = Request(b"0123456789", Quiet(0.1), 0.3, transaction=Transaction(2, 8))
COUNTED = Request(b"x", LengthAt(4, 2, 6, 2, b"", 6, (11, 9)), 0.3)


@pytest.mark.promise(4)
@pytest.mark.parametrize(
    ("request_", "path", "good", "bad"),
    [
        (READ, ("timeout_s",), [0, 60.0], [60.001, -1, None]),
        (READ, ("settle_s",), [0, 60.0], [60.001, -1]),
        (BLANK, ("reply", "silence_s"), [0, 60.0], [60.001]),
        (BLANK, ("transaction", "size"), [1, 8], [0, 9]),
        (BLANK, ("transaction", "offset"), [0, 2], [3, 10]),
        (BLANK, ("transaction", "more"), [], [1]),
        (COUNTED, ("reply", "lengths"), [[0], [11, 9]], [[], [-1], [1, -1], [1.0], ["1"], [True]]),
        (READ, ("obeyed",), ["", b"ok.*".hex()], [b"(".hex()]),
        (READ, ("more",), [], [1]),
        (READ, ("reply", "rule"), [], ["unheard of"]),
    ],
    ids=str,
)
def test_a_request_is_held_to_its_bounds(
    request_: Request, path: tuple[str, ...], good: list[object], bad: list[object]
) -> None:
    for value in good:
        read_request(put(write_request(request_), path, value))
    for value in bad:
        with pytest.raises(BadFields):
            read_request(put(write_request(request_), path, value))


def test_a_frame_of_a_procedure_says_what_is_done_and_what_shows_it() -> None:
    for safe in (*SAFE, LAST):
        assert read_safe(Fields(write_safe(safe), "here")) == safe
    shown = write_safe(SAFE[0]) | {"shown": write_request(READ)}
    with pytest.raises(BadFields, match="does not say what it is to be"):
        read_safe(Fields(shown, "here"))
    with pytest.raises(BadFields, match=r"^here: furnace.setpoint does not say which reply"):
        read_safe(put(write_safe(SAFE[0]), ("request",), write_request(ON)))
    with pytest.raises(BadFields, match="unknown 'more'"):
        read_safe(put(write_safe(SAFE[0]), ("more",), 1))


def test_a_trip_may_have_its_procedure_taken_already() -> None:
    written = {
        "cause": "gas_leak_detected",
        "channel": "h2",
        "value": None,
        "at_s": 1,
        "detail": "",
    }
    assert read_trip(Fields(written, "here"), "vent").procedure == "vent"
    assert read_trip(Fields({**written, "procedure": "stop"}, "here")).procedure == "stop"
    for wrong in ({**written, "more": 1}, {**written, "procedure": "stop"}):
        with pytest.raises(BadFields, match="unknown"):
            read_trip(Fields(wrong, "here"), "vent")


def test_a_file_that_is_too_long_is_not_read_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("labharness.safety.guard.armed.FILE_BYTES_MAX", 10)
    path = tmp_path / "armed.json"
    path.write_bytes(b"x" * 10)
    assert read_whole(path) == "x" * 10
    path.write_bytes(b"x" * 11)
    with pytest.raises(BadArming, match=r"^it is longer than 10 bytes$"):
        read_whole(path)
    path.write_bytes(b"\xff")
    with pytest.raises(BadArming, match=r"^it is not text in UTF-8: .* at byte 0$"):
        read_whole(path)


def test_an_arming_is_written_to_be_read_by_people() -> None:
    lines = ARMED.text().splitlines()
    assert lines[:2] == ["{", ' "format": 3,']
    assert ARMED.text().endswith("}\n")
