"""A mapping that grows is like a dict, and none of those that it was made of ever changes."""

from hypothesis import given
from hypothesis import strategies as st

from labharness.work.task import persistent_map
from labharness.work.task.persistent_map import PersistentMap

ENTRIES = st.lists(st.tuples(st.integers(0, 20), st.integers()), max_size=60)


def same(found: PersistentMap[int, int], as_dict: dict[int, int]) -> None:
    assert list(found.items()) == list(as_dict.items())
    assert list(reversed(found)) == list(reversed(as_dict))
    assert len(found) == len(as_dict)
    assert found == as_dict
    assert repr(found) == repr(as_dict)
    assert [found.get(each) for each in range(22)] == [as_dict.get(each) for each in range(22)]


@given(ENTRIES, ENTRIES, st.integers(0, 8))
def test_it_is_like_a_dict_and_so_is_each_that_it_was_made_of(
    known: list[tuple[int, int]], entries: list[tuple[int, int]], newest_max: int
) -> None:
    before = persistent_map.NEWEST_MAX
    persistent_map.NEWEST_MAX = newest_max  # type: ignore[misc]  # small here
    try:
        made = [PersistentMap(dict(known))]
        for key, value in entries:
            made.append(made[-1].with_entry(key, value))
    finally:
        persistent_map.NEWEST_MAX = before  # type: ignore[misc]  # as it was
    as_dict = dict(known)
    same(made[0], as_dict)
    for found, (key, value) in zip(made[1:], entries, strict=True):
        as_dict = {**as_dict, key: value}
        same(found, as_dict)
