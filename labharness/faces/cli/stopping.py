"""A signal as a stop request: the run is asked to end, and the line is made safe first."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from labharness.core.vocabulary.texts import Text
from labharness.faces.cli.show import complain

STOP_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")  # the last two: Unix, Windows
LOST_SIGNAL = "SIGHUP"


@contextmanager
def stoppable(
    stop: Callable[[str], str | None], lost: Callable[[str], None] | None = None
) -> Iterator[None]:
    """Ask a run to stop, at Ctrl-C, a lost terminal or a signal from outside.

    Args:
        stop: Takes the reason, and may return what is done about it; it is called from a signal
            handler.
        lost: Takes the reason where the terminal is lost; without it that is a stop too.
    """

    def interrupted(number: int, frame: object) -> None:
        name = signal.Signals(number).name
        asked = lost if lost is not None and name == LOST_SIGNAL else stop
        said = asked(Text("stop.signal", name=name))  # before any text is printed
        complain(said or Text("cli.stopping"))

    # a shell ignores SIGINT for what it runs in the background, and a stop must reach that too;
    # that SIGHUP is ignored is what a person has asked of nohup
    stops = [
        each
        for name in STOP_SIGNALS
        if (each := getattr(signal, name, None))
        and (name != LOST_SIGNAL or signal.getsignal(each) is not signal.SIG_IGN)
    ]
    before = {each: signal.signal(each, interrupted) for each in stops}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
