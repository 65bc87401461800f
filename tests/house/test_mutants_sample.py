"""A fixed sample of mutants, spread over rooms and kinds of wrong: each turns its test red."""

from collections.abc import Iterator

import pytest

from copies import FAILED, LATE, Copy, copied
from mutant_rooms import ROOMS
from mutants_table import SAMPLE_COUNT, read_sample
from mutants_trial import AnyMutant
from mutated_rows import RowMutant

DRAWN = read_sample()
FILES = {file for file, _, _ in DRAWN}
LIMIT_S = 60  # of a test that takes half a second, on a machine that does much else
KILLED = (FAILED, LATE)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Copy]:
    with copied(tmp_path_factory.mktemp("copy")) as made:
        yield made


@pytest.fixture(scope="module")
def mutants() -> dict[str, AnyMutant]:
    return {each.name: each for room in ROOMS for each in room.mutants() if each.file in FILES}


def test_the_sample_is_whole_and_from_every_room() -> None:
    assert len(DRAWN) == SAMPLE_COUNT
    assert [room.name for room in ROOMS if not FILES & {*room.paths}] == []


@pytest.mark.thorough
@pytest.mark.parametrize(("file", "what", "test"), DRAWN, ids=range(len(DRAWN)))
def test_a_mutant_of_the_sample_turns_its_test_red(
    copy: Copy, mutants: dict[str, AnyMutant], file: str, what: str, test: str
) -> None:
    mutant = mutants.get(f"{file}: {what}")
    assert mutant is not None, f"{file} was edited, `make mutants-table` draws another: {what}"
    with copy.holds(file, mutant.text()):
        code, said = copy.run(test, limit_s=LIMIT_S, signed=isinstance(mutant, RowMutant))
    assert code in KILLED, f"{file}: {what} survives {test}: {said[-2000:]}"
