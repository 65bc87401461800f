"""Durations as a person types them: one list of spellings, for every option."""

import argparse

import pytest

from labharness.core.vocabulary.durations import NotADuration, read_duration
from labharness.faces.cli.values import lasting
from labharness.work.task.jobs import BadJob, schedule_of


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("60", 60.0),
        ("60s", 60.0),
        ("60 s", 60.0),
        ("5min", 300.0),
        ("1.5 h", 5400.0),
        ("2d", 172_800.0),
        ("PT1M", 60.0),
        ("pt1h30m", 5400.0),
    ],
)
def test_a_duration_is_read_as_a_person_types_it(text: str, seconds: float) -> None:
    assert read_duration(text) == seconds
    assert lasting(60.0)(text) == (seconds if text == "60" else seconds / 60)


@pytest.mark.parametrize(
    "text", ["", "s", "5 m", "5 minutes!", "-5s", "1e3s", "nan", "P", "5min 3s"]
)
def test_what_is_no_duration_is_refused_with_what_is_allowed(text: str) -> None:
    with pytest.raises(NotADuration):
        read_duration(text)
    with pytest.raises(argparse.ArgumentTypeError, match=r"60s, 5min.*PT2H15M"):
        lasting(1.0)(text)


def test_a_period_is_read_by_the_same_parser() -> None:
    for every in ("6h", "PT6H", "360 min", "pt6h"):
        assert schedule_of(every, 0.0).period_s == 21_600
    for every in ("3600", "5s", "6 hours"):
        with pytest.raises(BadJob):
            schedule_of(every, 0.0)
