"""Two runs of one simulated lab: the second waits for one as fast as it goes, and nobody else."""

from pathlib import Path
from threading import Timer

import pytest

from commands import example, say
from labharness.lab import read_lab
from rig import EXAMPLE, ON_SHORT, SHORT_LINE


@pytest.mark.thorough
def test_a_run_waits_for_another_as_fast_as_it_goes_and_watch_says_what_can_be_watched(
    tmp_path: Path,
) -> None:
    plan = read_lab(SHORT_LINE)
    plan.make_state_dir()
    with plan.lock(tmp_path) as other:  # it serves no socket: no terminal keeps up
        watched = say("watch", "--for", 1, *ON_SHORT)
        assert watched.code == 1
        assert "as fast as it goes, which no terminal keeps up with" in watched.err
        assert "--speed N" in watched.err
        assert "see it: labharness watch" not in watched.err
        Timer(1.0, other.release).start()
        ran = say("run", EXAMPLE, *ON_SHORT, "--out", tmp_path / "run")
    assert ran.code == 0, ran
    assert ran.err.count("this run begins when that one has ended") == 1
    assert len(ran.err.splitlines()) < 50, "a log, which nobody reads along"


def test_the_value_that_a_batch_may_vary_is_one_of_the_example() -> None:
    """What the refusal of another one names as an example."""
    refused = say("jobs", "create", EXAMPLE, "--vary", "nothing", *ON_SHORT)
    assert "such as inputs.temperature_range.max=" in refused.err
    assert isinstance(example()["payload"]["inputs"]["temperature_range"]["max"], int)
