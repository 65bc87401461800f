"""The lab file that a served lab is given: what was in the first, on other links."""

from datetime import timedelta
from pathlib import Path

import pytest

from commands import edited_lab
from labharness.core.clock import wall_clock_utc
from labharness.lab import LabPlan, read_lab
from labharness.lab.config.address import default_lab_path
from labharness.lab.config.served_file import (
    served_hazards,
    served_hazards_path,
    served_text,
)

ALERT = """[[alert]]
name = "pager"
url = "jsons://somebody:secret@pager.invalid/call"

"""


def written(lab: LabPlan, target: Path) -> Path:
    """Write the files of a served lab as `labharness simulate` does."""
    links = {
        row.name: f"/dev/served-{row.name}" if row.baud else f"127.0.0.1:{1000 + number}"
        for number, row in enumerate(lab.file.port)
    }
    target.parent.mkdir(exist_ok=True)
    target.write_text(served_text(lab, "127.0.0.1:1", links, target), "utf-8")
    if lab.hazards.proof:
        served_hazards_path(target).write_text(
            served_hazards(lab, wall_clock_utc().date()), "utf-8"
        )
    return target


@pytest.mark.promise(36)
@pytest.mark.parametrize("named", ["", 'state_dir = "{}/state"\n'])
def test_two_served_labs_of_one_lab_file_share_no_latch_and_no_door(
    tmp_path: Path, named: str
) -> None:
    """What is asked of one folder's line reaches no other's; what latches one leaves the other."""
    lab = read_lab(edited_lab(tmp_path, "[lab]\n", "[lab]\n" + named.format(tmp_path)))
    served = [read_lab(written(lab, tmp_path / each / "lab.toml")) for each in ("a", "b")]
    again = read_lab(written(lab, tmp_path / "a" / "lab.toml"))
    homes = [each.state_dir for each in (lab, *served)]
    assert len({*homes}) == 3
    assert again.state_dir == served[0].state_dir, "its latch outlives its process"


def test_a_served_lab_of_a_simulated_one_has_proof_tests_of_the_day_it_began(
    tmp_path: Path,
) -> None:
    """Its links count as real: what is simulated no longer goes without saying."""
    lab = read_lab(default_lab_path())
    served = read_lab(written(lab, tmp_path / "served" / "lab.toml"))
    categories = sorted({c for row in lab.hazards.hazard for c in row.categories})
    assert served.hazards.missing(categories, wall_clock_utc().date()) == ()
    late = wall_clock_utc().date() + timedelta(days=400)
    assert served.hazards.missing(categories, late) != ()
    assert lab.hazards.missing(categories, late) == ()


def test_the_alerts_of_a_lab_are_those_of_the_served_one(tmp_path: Path) -> None:
    """Their addresses are secrets: masked, the text would be no lab file."""
    lab = read_lab(edited_lab(tmp_path, "[operator]\n", f"{ALERT}[operator]\n"))
    (served,) = read_lab(written(lab, tmp_path / "served.toml")).file.alert
    assert served.url.get_secret_value() == "jsons://somebody:secret@pager.invalid/call"
