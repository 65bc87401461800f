"""A campaign over two labs as real processes, killed at drawn instants: each point is one task."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from commands import COMMAND, ROOT, say
from labharness.core.clock import pause, steady_s
from labharness.lab import read_lab
from labharness.work.task.kept import HOUSE_JOURNAL, read_tasks
from postgres import postgresql
from rig import IV
from up_lab import Up, until

KILLS = 3
END_S_MAX = 120.0
CAMPAIGN = """
name = "series"
task = "task.json"
labs = { east = "east/lab.toml", west = "west/lab.toml" }
[vary]
"inputs.stop_v" = [0.7, 0.75, 0.8, 0.85, 0.9]
[[point]]
lab = "west"
values = { "inputs.points" = 31 }
"""

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(400)]


@pytest.fixture
def labs(tmp_path: Path) -> Iterator[dict[str, Up]]:
    made: dict[str, Up] = {}
    for name in ("east", "west"):
        (tmp_path / name).mkdir()
        text = IV.read_text("utf-8").replace("iv-bench-simulated", f"iv-{name}")
        (tmp_path / name / "lab.toml").write_text(text, "utf-8")
        made[name] = Up(tmp_path / name / "lab.toml", tmp_path / name / "runs")
    yield made
    for each in made.values():
        say("down", "--lab", each.lab, "--stop")
        until(each.down)


def run(file: Path) -> subprocess.Popen[bytes]:
    words = [*COMMAND, "campaign", "run", str(file), "--json"]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> Iterator[str]:
    """Yield the line of a campaign's file that says where its course is kept."""
    if request.param == "sqlite":
        yield ""
        return
    with postgresql() as address:
        yield f'database = "{address}"\n'


@pytest.mark.promise(61)
def test_a_campaign_that_is_killed_goes_on_and_makes_each_task_once(
    labs: dict[str, Up], tmp_path: Path, database: str
) -> None:
    random = Random(18)
    task = (ROOT / "examples" / "iv-curve.json").read_text("utf-8")
    (tmp_path / "task.json").write_text(task, "utf-8")
    file = tmp_path / "campaign.toml"
    file.write_text(database + CAMPAIGN, "utf-8")
    for kill in range(KILLS):
        going = run(file)
        until(lambda: (tmp_path / "series.campaign" / "campaign.json").exists())
        pause(random.uniform(0.0, 4.0))
        os.kill(going.pid, signal.SIGKILL)
        going.communicate()
        if kill == 1:
            labs["east"].kill("house")
    going = run(file)
    pause(2.0)
    labs["east"].start()  # the campaign waits for its house
    out, err = going.communicate(timeout=END_S_MAX)
    assert going.returncode == 0, err
    points = json.loads(out)["points"]
    assert [each["status"] for each in points] == ["completed"] * 6
    assert points[-1]["lab"] == "west"
    made: dict[str, tuple[str, str]] = {}
    for name, each in labs.items():
        tasks = read_tasks(read_lab(each.lab).state_dir / HOUSE_JOURNAL)
        made |= {key.rpartition("/")[2]: (name, kept[1]) for (_, key), kept in tasks.keys.items()}
        assert len(tasks.by_id) == sum(point["lab"] == name for point in points)
    assert made == {str(p["number"]): (p["lab"], p["task_id"]) for p in points}
    began_s = steady_s()
    again = run(file)
    assert json.loads(again.communicate(timeout=END_S_MAX)[0])["points"] == points
    assert steady_s() - began_s < END_S_MAX
    assert (tmp_path / "series.campaign" / "course.sqlite").exists() is (not database)
    file.write_text(database + CAMPAIGN.replace("0.9", "0.95"), "utf-8")
    changed = run(file)
    assert b"another name" in changed.communicate(timeout=END_S_MAX)[1]
    assert changed.returncode == 64
