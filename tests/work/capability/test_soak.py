"""The long proof of the answer: a hundred seeds of the shipped line, as ``make soak`` runs it."""

import json
import os
import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from labharness.lab import Lab, default_lab_path, read_lab
from labharness.lab.wiring.tasks import TaskRun
from rig import submission

SEEDS = range(1, 101)
WORKERS = 2
SOAK_S = 3000


def grow(seed: int) -> tuple[int, str, int, int, str]:
    """One growth: its seed, how it ended, the answer, the truth, and the reason of a failure."""
    opened: list[Lab] = []
    message, payload = submission()
    with tempfile.TemporaryDirectory() as folder:
        run = TaskRun(
            read_lab(default_lab_path()),
            message,
            payload,
            speed=None,
            seed=seed,
            out=Path(folder) / "run",
            prepare=opened.append,
        )
        result = run.execute()
    body = result.message.payload.stated()
    simulated = opened[0].simulated
    assert simulated is not None
    spots = simulated.plant.truth()["measured_spots"]
    counts = Counter(layers for _, _, layers in spots if layers)
    truth = counts.most_common(1)[0][0] if counts else 0
    answer = body["outputs"]["layer_count"] if result.message.type == "task_completed" else 0
    return seed, result.message.type, answer, truth, body.get("error_message", "")


@pytest.mark.soak
@pytest.mark.timeout(SOAK_S)
def test_a_hundred_seeds_complete_and_are_rarely_wrong() -> None:
    with ProcessPoolExecutor(WORKERS, initializer=_own_state) as pool:
        found = list(pool.map(grow, SEEDS))
    completed = [each for each in found if each[1] == "task_completed"]
    wrong = [each for each in completed if each[2] != each[3]]
    failed = [each for each in found if each[1] != "task_completed"]
    summary = {
        "completed": len(completed),
        "wrong": [each[0] for each in wrong],
        "failed": {each[0]: each[4] for each in failed},
    }
    print(json.dumps(summary, indent=1))  # noqa: T201 - the figures of the soak are its result
    assert len(completed) >= 0.9 * len(SEEDS)
    assert len(wrong) <= 0.05 * len(completed)


def _own_state() -> None:
    os.environ["LABHARNESS_STATE"] = tempfile.mkdtemp()
