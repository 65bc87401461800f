"""The file of a campaign: its labs, its task, and the points that the task is varied over."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from labharness.core.files.tables import read_table
from labharness.core.vocabulary.durations import parse_duration
from labharness.core.vocabulary.texts import CodedError
from labharness.lab.campaign.course import Course, Point
from labharness.lab.config.lab_file import Strict
from labharness.lab.config.lab_plan import read_lab
from labharness.work.task.jobs import points

POINTS_MAX: Final = 1_000
"""Most points of one campaign."""

NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,47}")


class BadCampaign(CodedError, ValueError, code="bad_campaign", usage=True):
    """A campaign that cannot be carried out as its file says; the message says why."""


class _PointRow(Strict):
    values: dict[str, Any]
    lab: str = ""


class _CampaignFile(Strict):
    name: str
    task: str
    labs: dict[str, str]
    on_failure: Literal["go_on", "stop"] = "go_on"
    house_away: str = "PT1H"
    database: str = ""
    vary: dict[str, list[Any]] = field(default_factory=dict)
    point: tuple[_PointRow, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Campaign:
    """A campaign as its file states it.

    Attributes:
        text: Of the file.
        task: The file of the ``task_submit`` message.
        homes: The state directory of each lab.
        database: URL of a PostgreSQL database; ``""`` keeps the course in a file of SQLite.
        course: Before the first move.
    """

    name: str
    text: str
    task: Path
    homes: dict[str, Path]
    database: str
    course: Course


def read_campaign(path: Path, text: str) -> Campaign:
    """Read the file of a campaign.

    Raises:
        BadTable: It does not fit.
        BadCampaign: A name, a lab, a point or a duration in it cannot be honoured.
        BadJob: A path has no value, or the same one twice.
        BadLabFile: The file of a lab cannot be honoured.
    """
    file = read_table(_CampaignFile, text, str(path))
    if not NAME.fullmatch(file.name):
        raise BadCampaign("campaign.name", name=file.name)
    rows = [Point(0, each) for each in points(file.vary)] if file.vary else []
    rows += [Point(0, each.values, each.lab) for each in file.point]
    if not rows or len(rows) > POINTS_MAX:
        raise BadCampaign("campaign.points", count=len(rows), most=POINTS_MAX)
    for each in rows:
        if each.lab and each.lab not in file.labs:
            raise BadCampaign("campaign.lab", lab=each.lab, labs=", ".join(file.labs))
    try:
        away_s = parse_duration(file.house_away)
    except ValueError as why:
        raise BadCampaign("pair", what="house_away", why=str(why)) from None
    numbered = [Point(number, each.values, each.lab) for number, each in enumerate(rows, 1)]
    course = Course(
        points=tuple(numbered),
        labs=tuple(file.labs),
        away_s_max=away_s,
        stops=file.on_failure == "stop",
    )
    return Campaign(
        name=file.name,
        text=text,
        task=path.parent / file.task,
        homes={lab: _home(path.parent / where) for lab, where in file.labs.items()},
        database=file.database,
        course=course,
    )


def _home(path: Path) -> Path:
    """Return a lab's state directory, which is named itself or by a lab file."""
    return path if path.is_dir() else read_lab(path).state_dir
