"""The tasks of a lab without a journal, for each test its own."""

import pytest

from tasks_alone import TasksAlone


@pytest.fixture
def lab() -> TasksAlone:
    return TasksAlone()
