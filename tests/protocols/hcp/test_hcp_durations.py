"""ISO 8601 durations."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labharness.core.vocabulary.durations import NotADuration, format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("PT2H15M", 8_100.0),
        ("PT72H", 259_200.0),
        ("PT10M", 600.0),
        ("PT2M15S", 135.0),
        ("P1W", 604_800.0),
        ("P1DT12H", 129_600.0),
        ("PT0.5S", 0.5),
        ("PT1,25S", 1.25),
        ("PT0S", 0.0),
        ("PT0.5H", 1_800.0),
        ("PT1H1.5M", 3_690.0),
        ("P1,5D", 129_600.0),
        ("P0.5W", 302_400.0),
    ],
)
def test_a_duration_is_read_as_its_seconds(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("P1Y", "years or months"),
        ("P2M", "years or months"),
        ("P1Y2M3DT4H", "years or months"),
        ("-PT1H", "negative"),
        ("PT-1H", "negative"),
        ("two hours", "is not an ISO 8601"),
        ("", "is not an ISO 8601"),
        ("P", "is not an ISO 8601"),
        ("PT", "is not an ISO 8601"),
        ("P1DT", "is not an ISO 8601"),
        ("P1W2D", "is not an ISO 8601"),
        ("PT1H ", "is not an ISO 8601"),
        ("PT1H\n", "is not an ISO 8601"),
        ("PT1.5H30M", "is not an ISO 8601"),
        ("P1.5DT1H", "is not an ISO 8601"),
        ("PT.5H", "is not an ISO 8601"),
        ("PT٣H", "is not an ISO 8601"),
        ("PT1M1H", "is not an ISO 8601"),
        ("PT" + "9" * 100 + "S", "longer than"),
    ],
)
def test_what_is_no_definite_time_is_refused_with_its_reason(text: str, reason: str) -> None:
    with pytest.raises(NotADuration, match=reason):
        parse_duration(text)


@given(st.integers(min_value=0, max_value=10**9))
@settings(deadline=None, max_examples=100)
def test_whole_seconds_survive_the_way_there_and_back(seconds: int) -> None:
    assert parse_duration(format_duration(seconds)) == seconds


@given(st.text(max_size=80))
@settings(deadline=None, max_examples=200)
def test_any_text_gives_seconds_or_a_reason(text: str) -> None:
    try:
        seconds = parse_duration(text)
    except NotADuration:
        return
    assert seconds >= 0


def test_durations_are_written_as_the_specification_writes_them() -> None:
    written = [format_duration(s) for s in (8_100, 259_200, 0, 59.6)]
    assert written == ["PT2H15M", "PT72H", "PT0S", "PT1M"]


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf")])
def test_a_number_that_is_no_time_is_not_written(seconds: float) -> None:
    with pytest.raises(NotADuration):
        format_duration(seconds)
