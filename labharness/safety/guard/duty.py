"""The open part of a procedure, port by port (sans I/O).

A frame is done when its reply says so and, if a read shows its value, when that was seen too.
On each port the frames from the first one that failed are sent again in their order, until all of
them succeed in one pass: an order that was refused may have needed the one before it. Then all
of the procedure that can be read on the port is read; a frame that a reading belies is open again.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace

from labharness.safety.guard.port import Finished, SafeFrame

READINGS_FROM = 1_000  # as steps: readings follow every frame of a procedure, which has 256 at most


@dataclass(slots=True)
class _OnPort:
    """One port's frames, in order.

    Attributes:
        frames: Frames of a procedure.
        open: Frames that were not obeyed since they were sent last.
        unseen: Frames whose value a read could show, and has not shown since then.
    """

    frames: tuple[SafeFrame, ...]
    open: set[SafeFrame]
    unseen: set[SafeFrame] = field(init=False)

    def __post_init__(self) -> None:
        self.unseen = {frame for frame in self.frames if frame.shown is not None}

    def again(self, *, reading: bool) -> list[SafeFrame]:
        """Return one more pass: the tail from the first frame that failed, and the readings."""
        first = next((n for n, frame in enumerate(self.frames) if frame in self.open), None)
        tail = () if first is None else self.frames[first:]
        self.open.update(tail)
        if not reading or not (tail or self.unseen):
            return list(tail)
        readable = [frame for frame in self.frames if frame.shown is not None]
        self.unseen.update(readable)
        return [*tail, *map(_reading_of, readable)]


class Duty:
    """The duty of a guard: the open part of the procedure that ran last."""

    def __init__(self) -> None:
        self._on: dict[str, _OnPort] = {}

    def begin(self, frames: Iterable[SafeFrame]) -> None:
        """Owe a whole procedure, and nothing else."""
        self._owe(frames, ())

    def add(self, frames: Iterable[SafeFrame]) -> None:
        """Owe frames of a procedure; they overrule what waits of another for the same channels."""
        again = tuple(frames)
        wanted = {frame.channel: frame.value for frame in again}
        held = [old for old in self.open() if wanted.get(old.channel, old.value) == old.value]
        self._owe(again, held)

    def _owe(self, fresh: Iterable[SafeFrame], held: Iterable[SafeFrame]) -> None:
        of: dict[str, list[SafeFrame]] = {}
        for frame in sorted(dict.fromkeys([*held, *fresh]), key=lambda each: each.step):
            of.setdefault(frame.port, []).append(frame)
        self._on = {port: _OnPort(tuple(frames), set(frames)) for port, frames in of.items()}

    def ended(self, finished: Finished) -> str:
        """Note the end of the exchange of a frame or a reading.

        Returns:
            The error to report; ``""`` if there is none.
        """
        frame = finished.safe
        if frame is None:
            return finished.error
        on = self._on.get(frame.port)
        if frame.step < READINGS_FROM:
            if on is not None and not finished.error:
                on.open.discard(frame)
            return finished.error
        set_by = [] if on is None else [each for each in on.frames if _reading_of(each) == frame]
        for each in set_by:
            if on is not None and not finished.error:
                on.unseen.discard(each)
            elif on is not None and finished.reply is not None:
                on.open.add(each)
        return finished.error and f"read back: {finished.error}"

    def due(self, at_it: Collection[str], *, reading: bool) -> list[SafeFrame]:
        """Return the frames to send again, except on ports that are still at their frames.

        Args:
            at_it: Ports with a frame of a procedure on the wire, or waiting for it.
            reading: Whether to add readings, because no harness looks.
        """
        free = [on for port, on in self._on.items() if port not in at_it]
        return [frame for on in free for frame in on.again(reading=reading)]

    def open(self) -> list[SafeFrame]:
        """Return the frames that were not obeyed, in their order on each port."""
        return [frame for on in self._on.values() for frame in on.frames if frame in on.open]

    def left(self, *, reading: bool) -> bool:
        """Return whether a frame is open or, with ``reading``, unseen."""
        return any(on.open or (reading and on.unseen) for on in self._on.values())

    def end(self) -> None:
        """Owe nothing: the line was reset."""
        self._on = {}


def _reading_of(frame: SafeFrame) -> SafeFrame:
    """Return the reading of the value that a frame sets; frames of one step share it."""
    if frame.shown is None:
        return frame
    step = READINGS_FROM + frame.step
    return replace(frame, step=step, request=frame.shown, shown=None)
