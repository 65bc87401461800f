"""What tests of the alarms of a line are given."""

import asyncio

import pytest

from alarms_alone import Alone


@pytest.fixture
def alone(loop: asyncio.AbstractEventLoop) -> Alone:
    """Alarms by themselves, in the time of a test that is a coroutine."""
    return Alone(loop=loop)
