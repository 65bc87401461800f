"""Carries a campaign out on DBOS, which keeps the outcome of each move and goes on after a kill.

DBOS may repeat the move at which a process was killed. That is harmless: a submission is keyed by
campaign and point, and a look changes nothing.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from labharness.core.clock import Chance
from labharness.core.files.durable import write_durably
from labharness.core.files.named import open_named
from labharness.core.vocabulary.digests import digest_of
from labharness.lab.campaign.course import Course, Look, Outcome, SubmitPoint, fold
from labharness.lab.campaign.plan import BadCampaign, Campaign
from labharness.lab.config.lease import Lease

Doing = Callable[[str, Mapping[str, Any]], Outcome]
"""Carries one move out: ``submit`` or ``look``, with its arguments as JSON has them."""

APPLICATION: Final = "1"
"""Raised when the same outcomes would make another course; an open campaign is then not gone on."""

RECOVERIES_MAX: Final = 10_000
"""Starts after a kill of one campaign; DBOS gives it up after more."""

IDENTITY_BYTES_MAX: Final = 4096


def campaign_id(campaign: Campaign, folder: Path) -> str:
    """Return the id of a campaign, which its folder keeps from its first start on.

    Raises:
        BadCampaign: Another campaign of this name was begun there, or its file has changed.
        OSError: The folder cannot be written.
    """
    path = folder / "campaign.json"
    digest = digest_of(campaign.text.encode() + campaign.task.read_bytes())
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        body = {"id": Chance(None).uuid4(), "digest": digest}
        write_durably(path, json.dumps(body))
    with open_named(path) as file:
        found = json.loads(file.read(IDENTITY_BYTES_MAX))
    if found["digest"] != digest:
        raise BadCampaign("campaign.changed", name=campaign.name)
    return str(found["id"])


def carried_out(campaign: Campaign, folder: Path, do: Doing) -> Course:
    """Carry a campaign out to its end, from where it was; return its course.

    Raises:
        BadCampaign: Its file has changed since it was begun.
        Leased: Another process carries it out.
        ModuleNotFoundError: DBOS is not installed (extra ``jobs``).
    """
    from dbos import DBOS, DBOSConfig, SetWorkflowID

    name = campaign_id(campaign, folder)
    lease = Lease(folder / "campaign.lock", f"campaign {campaign.name}")
    config: DBOSConfig = {
        "name": "labharness",
        "system_database_url": _database(campaign, folder),
        "application_version": APPLICATION,
        "executor_id": name,
        "serializer": _json_serializer(),
        "enable_otlp": False,
        "log_level": "ERROR",
    }
    step = DBOS.step(name="move")(do)

    @DBOS.workflow(name="campaign", max_recovery_attempts=RECOVERIES_MAX)
    def course() -> list[Outcome]:
        return [dict(each) for each in _outcomes(campaign.course, step)]

    try:
        DBOS(config=config)
        DBOS.launch()  # it takes up the campaign by itself if it was begun
        with SetWorkflowID(name):
            outcomes = DBOS.start_workflow(course).get_result()
    finally:
        DBOS.destroy()
        lease.release()
    return fold(campaign.course, outcomes)


def _outcomes(course: Course, do: Doing) -> Iterator[Outcome]:
    while (move := course.next_move()) is not None:
        if isinstance(move, SubmitPoint):
            outcome = do("submit", {"lab": move.lab, "number": move.number})
        else:
            outcome = do("look", _look(course, move))
        yield outcome
        course = course.after(move, outcome)


def _look(course: Course, move: Look) -> dict[str, Any]:
    waited_s = max((course.away_s[lab] for lab in move.away), default=0.0)
    most_s = course.away_s_max - waited_s
    return {"tasks": dict(move.tasks), "away": list(move.away), "most_s": most_s}


def course_so_far(campaign: Campaign, folder: Path) -> Course:
    """Return the course of a campaign as its recorded outcomes leave it; nothing is carried out.

    Raises:
        BadCampaign: It was not begun, or its file has changed since.
        ModuleNotFoundError: DBOS is not installed (extra ``jobs``).
    """
    from dbos import DBOSClient

    if not (folder / "campaign.json").exists():
        raise BadCampaign("campaign.not_begun", name=campaign.name)
    name = campaign_id(campaign, folder)
    client = DBOSClient(
        system_database_url=_database(campaign, folder), serializer=_json_serializer()
    )
    try:
        steps = sorted(client.list_workflow_steps(name), key=lambda each: each["function_id"])
    finally:
        client.destroy()
    kept = (each["output"] or {} for each in steps if each["function_name"] == "move")
    return fold(campaign.course, kept)


def _database(campaign: Campaign, folder: Path) -> str:
    return campaign.database or f"sqlite:///{folder.resolve() / 'course.sqlite'}"


def _json_serializer() -> Any:  # noqa: ANN401 - a class of dbos, which is imported here alone
    """Return what keeps values as JSON; the default of DBOS is pickle."""
    from dbos import Serializer

    class AsJson(Serializer):
        def serialize(self, data: Any) -> str:  # noqa: ANN401 - whatever a step returns
            return json.dumps(data, default=repr)

        def deserialize(cls, serialized_data: str) -> Any:  # noqa: ANN401, N805 - as dbos calls it
            return json.loads(serialized_data)

        def name(self) -> str:
            return "labharness_json"

    return AsJson()
