"""Every planted bug turns its named test red; the long proofs show them green without one."""

from pathlib import Path

import pytest

from copies import make_copy, run_in
from planted_bugs import PLANTED, PlantedBug

FAILED = 1  # pytest's exit code when tests ran and some failed; others are no proof


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_copy(tmp_path_factory.mktemp("copy"))


EVERY_DAY = [each for each in PLANTED if not each.dear]
DEAR = [pytest.param(each, marks=pytest.mark.soak) for each in PLANTED if each.dear]


@pytest.mark.parametrize("bug", [*EVERY_DAY, *DEAR], ids=lambda bug: bug.promise)
def test_a_planted_bug_turns_its_test_red(copy: Path, bug: PlantedBug) -> None:
    file = copy / bug.file
    healthy = file.read_text("utf-8")
    assert healthy.count(bug.right) == 1, f"{bug.file} does not hold {bug.right!r} once"
    file.write_text(healthy.replace(bug.right, bug.wrong), "utf-8")
    try:
        done = run_in(copy, bug.test)
    finally:
        file.write_text(healthy, "utf-8")
    assert done.returncode == FAILED, done.stdout[-2000:] + done.stderr[-2000:]


@pytest.mark.soak
def test_without_a_bug_the_same_tests_are_green(copy: Path) -> None:
    done = run_in(copy, *sorted({bug.test for bug in PLANTED}))
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
