"""Planted bugs in what a line looks at: what it reads, keeps, and waits for."""

from planted_bug import PlantedBug

__all__ = ["IN_THE_WATCH"]

IN_THE_WATCH = (
    PlantedBug(
        "first command judged by a reading from before prepare",
        "labharness/line/preparing.py",
        "    answered = await read_all(polled, FULL_POLL_S_MAX)\n",
        "    answered = dict.fromkeys(polled)\n",
        "tests/test_arming.py::test_nothing_that_is_listened_to_was_read_before_prepare[0.13]",
    ),
)
