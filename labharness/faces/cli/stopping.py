"""A signal as a stop request: the run is asked to end, and the line is made safe first."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from labharness.core.vocabulary.texts import Text
from labharness.faces.cli.show import complain

__all__ = ["stoppable"]

STOP_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")  # the last two: Unix, Windows


@contextmanager
def stoppable(stop: Callable[[str], None]) -> Iterator[None]:
    """Ask a run to stop, at Ctrl-C, a lost terminal or a signal from outside.

    Args:
        stop: Takes the reason; it is called from a signal handler.
    """

    def interrupted(number: int, frame: object) -> None:
        stop(Text("stop.signal", name=signal.Signals(number).name))  # before any text is printed
        complain(Text("cli.stopping"))

    stops = [getattr(signal, name) for name in STOP_SIGNALS if hasattr(signal, name)]
    before = {each: signal.signal(each, interrupted) for each in stops}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
