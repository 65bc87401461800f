"""What tests of the kernel are given: a line that runs."""

import pytest

from kernel_line import healthy, running
from labharness.safety.kernel import Memory


@pytest.fixture
def memory() -> Memory:
    """A line that runs, and reads well at 0 s."""
    memory = running()
    healthy(memory, 0.0)
    return memory
