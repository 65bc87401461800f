"""Hours of the week: read from a text, and held against a clock on the wall."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labharness.core.vocabulary.hours import DAYS, Hours, NoHours, read_hours

WORK = "Mon-Fri 08:00-18:00 Europe/Berlin"
MONDAY = datetime(2026, 1, 5, tzinfo=UTC)  # 01:00 in Berlin
MINUTE = timedelta(minutes=1)
HOUR_S = 3600.0


@pytest.mark.promise(68)
@pytest.mark.parametrize(
    ("text", "start", "hours", "covered"),
    [
        ("always", "2026-01-04T03:00+00:00", 1000, True),
        ("never", "2026-01-05T09:00+00:00", 0, False),
        (WORK, "2026-01-05T07:00+00:00", 10, True),
        (WORK, "2026-01-05T07:00+00:00", 10.01, False),
        (WORK, "2026-01-05T06:59+00:00", 1, False),
        (WORK, "2026-01-10T10:00+00:00", 1, False),
        # summer time: 08:00 in Berlin is 06:00 UTC
        (WORK, "2026-07-06T06:00+00:00", 10, True),
        ("Mon-Sun 00:00-24:00 UTC", "2026-01-05T05:00+00:00", 10_000, True),
        ("Sat-Mon 09:00-10:00 UTC", "2026-01-04T09:00+00:00", 1, True),
        # the night in which summer time ends has 25 hours, that in which it begins 23
        ("Sun 00:00-24:00 Europe/Berlin", "2026-10-24T22:00+00:00", 25, True),
        ("Sun 00:00-24:00 Europe/Berlin", "2026-03-28T23:00+00:00", 23.01, False),
    ],
)
def test_a_time_is_covered_when_all_of_it_lies_within(
    text: str, start: str, hours: float, covered: bool
) -> None:
    assert read_hours(text).cover(datetime.fromisoformat(start), hours * HOUR_S) is covered


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("sometimes", "always"),
        ("Mon-Fri 08:00-18:00", "Europe/Berlin"),
        ("Mon-Fri 8:00-18:00 UTC", "08:00-18:00"),
        ("Mon-Fri 08:00-25:00 UTC", "08:00-18:00"),
        ("mon-fri 08:00-18:00 UTC", "Mon-Fri"),
        ("Mon-Fri 08:00-18:00 Europe/Atlantis", "Europe/Atlantis"),
        ("Mon-Fri 08:00-18:00 ../../etc/passwd", "passwd"),
        ("Mon 08:00-18:00, " * 40 + "Mon 08:00-18:00 UTC", "Mon-Fri"),
        ("", "always"),
    ],
)
def test_anything_else_is_refused_with_what_may_be_written(text: str, named: str) -> None:
    with pytest.raises(NoHours, match=named):
        read_hours(text)


CLOCKS = st.tuples(st.sampled_from(DAYS), st.integers(0, 1439), st.integers(0, 1439))


def written(spans: list[tuple[str, int, int]]) -> Hours:
    each = [f"{day} {a // 60:02}:{a % 60:02}-{b // 60:02}:{b % 60:02}" for day, a, b in spans]
    return read_hours(", ".join(each) + " UTC")


def minutes_of(spans: list[tuple[str, int, int]]) -> set[int]:
    found: set[int] = set()
    for day, a, b in spans:
        begins = DAYS.index(day) * 1440 + a
        found |= {m % 10_080 for m in range(begins, begins + ((b - a) % 1440 or 1440))}
    return found


def covered_for(spans: list[tuple[str, int, int]]) -> list[int]:
    """Return for how many minutes from each minute of the week on all is covered."""
    within, left = minutes_of(spans), [0] * 30_241
    for minute in range(30_239, -1, -1):
        left[minute] = left[minute + 1] + 1 if minute % 10_080 in within else 0
    return left[:10_080]


SPANS = st.lists(CLOCKS, min_size=1, max_size=5)


@settings(deadline=None)
@given(spans=SPANS, start=st.integers(0, 20_000), length=st.integers(1, 3_000))
def test_the_minutes_counted_one_by_one_say_the_same(
    spans: list[tuple[str, int, int]], start: int, length: int
) -> None:
    counted = covered_for(spans)[start % 10_080] >= length
    assert written(spans).cover(MONDAY + start * MINUTE, length * 60.0) is counted


@settings(deadline=None)
@given(spans=SPANS, start=st.integers(0, 10_079), length=st.integers(1, 1_500))
def test_the_next_start_is_the_first_one_that_is_covered(
    spans: list[tuple[str, int, int]], start: int, length: int
) -> None:
    moment, left = MONDAY + start * MINUTE, covered_for(spans)
    found = written(spans).next_start(moment, length * 60.0)
    lates = (late for late in range(10_080) if left[(start + late) % 10_080] >= length)
    counted = next(lates, None)
    assert found == (None if counted is None else moment + counted * MINUTE)
