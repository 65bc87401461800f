"""What tests of the guard process are given."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from guard_rig import GuardBench, bench


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[GuardBench]:
    with bench(tmp_path) as made:
        yield made
