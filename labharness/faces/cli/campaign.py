"""``labharness campaign``: one series of tasks over several labs, which a kill does not end."""

import argparse
import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from labharness.core.files.named import open_named
from labharness.core.vocabulary.texts import Text
from labharness.faces.cli import EXIT_ABORTED, EXIT_COMPLETED, EXIT_FAILED
from labharness.faces.cli.line_writer import TERMINAL
from labharness.faces.cli.show import aligned, looking, say_either, warn
from labharness.faces.cli.submission import read_submit
from labharness.lab.campaign.course import Course, Outcome, Point
from labharness.lab.campaign.durable import Doing, campaign_id, carried_out, course_so_far
from labharness.lab.campaign.houses import look_at, submit_to
from labharness.lab.campaign.plan import BadCampaign, Campaign, read_campaign
from labharness.protocols.hcp.codec import encode
from labharness.protocols.hcp.terms import OPEN
from labharness.work.task.jobs import varied

FILE_BYTES_MAX = 1_000_000


def campaign(chosen: argparse.Namespace) -> int:
    """Carry out one of the commands; return its exit code."""
    path = Path(chosen.file)
    with looking(path, BadCampaign), open_named(path) as file:
        text = file.read(FILE_BYTES_MAX).decode(errors="replace")
    found = read_campaign(path, text)
    folder = path.parent / f"{found.name}.campaign"
    with looking(folder):
        if chosen.verb == "run":
            try:
                course = carried_out(found, folder, _doing(found, folder, chosen.seed))
            except KeyboardInterrupt:
                warn(Text("campaign.open", name=found.name))
                TERMINAL.flush()
                os._exit(EXIT_ABORTED)  # a thread of DBOS waits for houses; a kill loses nothing
        else:
            course = course_so_far(found, folder)
    return _show(found, course, chosen.json)


def _doing(found: Campaign, folder: Path, seed: int | None) -> Doing:
    """Return the moves of one campaign, as the houses of its labs answer them."""
    own, homes, points = campaign_id(found, folder), found.homes, found.course.points
    message, _ = read_submit(found.task)
    task: dict[str, Any] = json.loads(encode(message))
    for point in points:  # a misspelt path is told before the first task
        payload = varied(task["payload"], point.values)
        declared = (payload.get("constraints") or {}).get("data_classification")
        if declared not in (None, *OPEN):  # the course of a campaign is kept in clear
            raise BadCampaign("data.campaign", found=str(declared))

    def move(what: str, asked: Mapping[str, Any]) -> Outcome:
        if what == "look":
            return look_at(homes, asked["tasks"], tuple(asked["away"]), asked["most_s"])
        point = next(each for each in points if each.number == asked["number"])
        payload = varied(task["payload"], point.values)
        body = task | {"message_id": f"{own}/{point.number}", "payload": payload}
        return submit_to(homes[asked["lab"]], json.dumps(body, ensure_ascii=False), seed)

    return move


def _show(found: Campaign, course: Course, as_json: bool) -> int:
    rows = [_row(course, each) for each in course.points]
    over = course.next_move() is None
    done = over and all(each["status"] == "completed" for each in rows)
    table = aligned([[str(value) for value in each.values()] for each in rows])
    ending = Text("campaign.over" if over else "campaign.open", name=found.name)
    body = {"name": found.name, "over": over, "points": rows}
    say_either(as_json, body, (*table, ending))
    return EXIT_COMPLETED if done or not over else EXIT_FAILED


def _row(course: Course, point: Point) -> dict[str, Any]:
    number = point.number
    task_id = course.tasks.get(number, "")
    end = course.ended.get(number)
    if end is None and course.next_move() is None:
        end = course.left()[number]
    status = {"status": "at_work" if task_id else "waiting", "reason": ""}
    if end is not None:
        status = asdict(end)
    values = ", ".join(f"{p.rpartition('.')[2]}={v}" for p, v in point.values.items())
    lab = course.given.get(number, point.lab)
    return {"number": number, **status, "lab": lab, "task_id": task_id, "values": values}
