"""Every planted bug turns its named test red; the long proofs show them green without one."""

import ast
from collections.abc import Iterator
from typing import Any

import pytest

from copies import FAILED, ROOT, Copy, copied
from planted_bugs import PLANTED, PlantedBug
from planting import file_of, plant


def planted(bug: PlantedBug) -> Any:
    """Run a dear bug in the long proofs, and any other before a change lands."""
    late = pytest.mark.soak if bug.dear else pytest.mark.thorough
    return pytest.param(bug, id=bug.name, marks=[late])


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Copy]:
    with copied(tmp_path_factory.mktemp("copy")) as made:
        yield made


def test_every_bug_can_be_planted_in_the_code_as_it_is() -> None:
    for bug in PLANTED:
        file = file_of(bug.where)
        planted = plant((ROOT / file).read_text("utf-8"), bug.where, bug.right, bug.wrong)
        if file.endswith(".py"):
            ast.parse(planted)


@pytest.mark.promise(33)
@pytest.mark.parametrize("bug", [planted(each) for each in PLANTED])
def test_a_planted_bug_turns_its_test_red(copy: Copy, bug: PlantedBug) -> None:
    with copy.planted(bug):
        code, said = copy.run(bug.test)
    assert code == FAILED, said[-3000:]


@pytest.mark.soak
@pytest.mark.parametrize("test", sorted({bug.test for bug in PLANTED}), ids=lambda test: test[6:])
def test_without_a_bug_the_same_test_is_green(copy: Copy, test: str) -> None:
    code, said = copy.run(test)
    assert code == 0, said[-3000:]
