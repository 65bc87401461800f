"""Hours of the week in a named time zone, such as ``Mon-Fri 08:00-18:00 Europe/Berlin``."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta, tzinfo
from zoneinfo import ZoneInfo

from labharness.core.errors import LabError
from labharness.core.vocabulary.texts import Text

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
DAY_MIN = 24 * 60
WEEK_MIN = 7 * DAY_MIN
HOURS_CHARACTERS_MAX = 400

_DAY = "|".join(DAYS)
_SPAN = re.compile(
    rf"(?P<first>{_DAY})(?:-(?P<last>{_DAY}))? "
    r"(?P<from>(?:[01][0-9]|2[0-3]):[0-5][0-9])-(?P<to>(?:[01][0-9]|2[0-3]):[0-5][0-9]|24:00)"
)


class NoHours(LabError, ValueError, code="no_hours"):
    """A text that states no hours of a week."""


@dataclass(frozen=True, slots=True)
class Hours:
    """Times of each week, as a clock on the wall shows them.

    Attributes:
        text: As they were written.
        zone: The time zone of the wall.
        spans: From and to, in minutes after Monday 00:00. They are in order and do not touch; one
            that passes Sunday 24:00 ends beyond a week.
    """

    text: str
    zone: tzinfo
    spans: tuple[tuple[int, int], ...]

    def __str__(self) -> str:
        return self.text

    def cover(self, start: datetime, duration_s: float) -> bool:
        """Return whether all of a time lies within these hours; ``start`` has a time zone."""
        if self.spans == ALL_WEEK:
            return True
        ends = self._end(start)
        return ends is not None and start + timedelta(seconds=duration_s) <= ends

    def next_start(self, start: datetime, duration_s: float) -> datetime | None:
        """Return the first moment from ``start`` on from which a time of this length is covered.

        ``None`` where no span is as long.
        """
        if self.cover(start, duration_s):
            return start
        monday = self._monday(start)
        begins = (
            _at(monday, week * WEEK_MIN + first) for week in (0, 1) for first, _ in self.spans
        )
        fits = (each for each in begins if each >= start and self.cover(each, duration_s))
        return next(fits, None)

    def _end(self, moment: datetime) -> datetime | None:
        """Return when the span that holds a moment ends; ``None`` outside of all."""
        monday = self._monday(moment)
        local = moment.astimezone(self.zone).replace(tzinfo=None)
        minute = (local - monday.replace(tzinfo=None)) / timedelta(minutes=1)
        for begins, ends in self.spans:
            for shift in (0, WEEK_MIN):  # last week's last span may end in this one
                if begins - shift <= minute < ends - shift:
                    return _at(monday, ends - shift)
        return None

    def _monday(self, moment: datetime) -> datetime:
        local = moment.astimezone(self.zone)
        day = local.date() - timedelta(days=local.weekday())
        return datetime.combine(day, time(), self.zone)


def _at(monday: datetime, minute: int) -> datetime:
    """Return what the clock on the wall shows so many minutes after Monday 00:00, in UTC.

    An hour that comes twice when summer time ends is the first of both.
    """
    return (monday + timedelta(minutes=minute)).astimezone(UTC)  # adds on the wall: PEP 495


ALL_WEEK = ((0, WEEK_MIN),)
ALWAYS = Hours("always", UTC, ALL_WEEK)


def read_hours(text: str) -> Hours:
    """Read ``always``, ``never``, or spans with their zone: ``Mon-Fri 08:00-18:00 Europe/Berlin``.

    Several spans have commas between them; one that ends at an earlier time than it begins ends on
    the next day.

    Raises:
        NoHours: The text is anything else, or this machine does not know the zone.
    """
    if text == "always":
        return ALWAYS
    if text == "never":
        return Hours("never", UTC, ())
    spans, _, zone = text[:HOURS_CHARACTERS_MAX].rpartition(" ")
    found = [_SPAN.fullmatch(each.strip()) for each in spans.split(",")]
    if len(text) > HOURS_CHARACTERS_MAX or None in found:
        raise NoHours(Text("hours.bad", given=text[:80]))
    try:
        known = ZoneInfo(zone)
    except (OSError, ValueError, LookupError):  # a folder, a strange name, or none of it
        raise NoHours(Text("hours.zone", zone=zone[:80], given=text[:80])) from None
    minutes = [minute for each in found if each is not None for minute in _minutes(each)]
    return Hours(text, known, _merged(sorted(minutes)))


def _minutes(span: re.Match[str]) -> list[tuple[int, int]]:
    """Return one span for each of its days."""
    first = DAYS.index(span["first"])
    last = DAYS.index(span["last"] or span["first"])
    begins, ends = _of_day(span["from"]), _of_day(span["to"])
    ends += DAY_MIN if ends <= begins else 0
    days = range(first, (last if last >= first else last + 7) + 1)
    return [(day % 7 * DAY_MIN + begins, day % 7 * DAY_MIN + ends) for day in days]


def _of_day(clock: str) -> int:
    hour, minute = clock.split(":")
    return int(hour) * 60 + int(minute)


def _merged(spans: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Join spans that overlap or touch, Sunday night and Monday morning too."""
    joined: list[tuple[int, int]] = []
    for begins, ends in spans:
        if joined and begins <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], ends)
        else:
            joined.append((begins, ends))
    while len(joined) > 1 and joined[-1][1] >= joined[0][0] + WEEK_MIN:
        begins, ends = joined.pop(0)
        joined[-1] = joined[-1][0], max(joined[-1][1], ends + WEEK_MIN)
    if len(joined) == 1 and joined[0][1] - joined[0][0] >= WEEK_MIN:
        return ALL_WEEK
    return tuple(joined)
