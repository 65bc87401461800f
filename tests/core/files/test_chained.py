"""A log of chained lines: whatever is changed in it is seen, and several processes may append."""

import json
import multiprocessing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labharness.core.files import chained
from labharness.core.files.chained import BrokenChain, append_chained, read_chained

COUNT = 6
EACH = 20


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("log") / "log.jsonl"
    for number in range(COUNT):
        append_chained(path, {"number": number, "text": "温度"})
    return path


def numbers(path: Path) -> list[int]:
    return [int(body["number"]) for body, _ in read_chained(path)]


def test_lines_come_back_in_their_order(written: Path, tmp_path: Path) -> None:
    assert numbers(written) == list(range(COUNT))
    assert numbers(tmp_path / "none") == []


@given(data=st.data())
def test_a_line_changed_taken_out_or_put_in_is_seen(written: Path, data: Any) -> None:
    lines = written.read_bytes().splitlines()
    at = data.draw(st.integers(0, COUNT - 2))
    how = data.draw(st.sampled_from(["change", "remove", "insert", "swap", "repeat"]))
    if how == "change":
        lines[at] = json.dumps({**json.loads(lines[at]), "number": 99}).encode()
    elif how == "remove":
        del lines[at]
    elif how == "insert":
        lines.insert(at + 1, json.dumps({"number": 99, "after": "sha256:0"}).encode())
    elif how == "swap":
        lines[at], lines[at + 1] = lines[at + 1], lines[at]
    else:
        lines.insert(at, lines[at])
    path = written.with_name("edited.jsonl")
    path.write_bytes(b"\n".join(lines) + b"\n")
    with pytest.raises(BrokenChain, match=r"edited.jsonl, line [1-7]"):
        numbers(path)


def test_half_a_line_of_a_power_cut_is_answered_for_by_the_next(
    written: Path, tmp_path: Path
) -> None:
    whole = written.read_bytes()
    path = tmp_path / "log.jsonl"
    for cut in range(1, 40):
        path.write_bytes(whole[:-cut])
        append_chained(path, {"number": 7})
        assert numbers(path)[-1] == 7
        assert numbers(path)[: COUNT - 1] == list(range(COUNT - 1))


def appends(path: Path, first: int) -> None:
    for number in range(EACH):
        append_chained(path, {"number": first + number})


def test_two_processes_append_to_one_chain(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    context = multiprocessing.get_context("spawn")
    both = [context.Process(target=appends, args=(path, first)) for first in (0, 100)]
    for each in both:
        each.start()
    for each in both:
        each.join(60)
    assert [each.exitcode for each in both] == [0, 0]
    assert sorted(numbers(path)) == [*range(EACH), *range(100, 100 + EACH)]


def refuses(handle: int) -> None:
    raise BlockingIOError


def test_who_cannot_have_the_log_is_told_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chained, "LOOKS", 5)
    monkeypatch.setattr(chained, "hold_alone", refuses)
    with pytest.raises(TimeoutError, match="another process appends"):
        append_chained(tmp_path / "log.jsonl", {})
