"""The harness at the guard process: whether it lives, what it is told, and what it may ask.

A heartbeat says when it was made, not when it was read: those that waited in a socket while the
harness stood still prove nothing about now. A message that cannot be read ends the session like the
end of the socket does: a harness that speaks nonsense is as lost as one that is silent. A log keeps
what happens while none is there, for the next one.
"""

import json
import os
import selectors
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from labharness.core.clock import utc_text, wall_clock_utc
from labharness.core.files.named import is_there, open_named, open_own
from labharness.core.vocabulary import Request, Trip
from labharness.core.vocabulary.texts import coded
from labharness.safety.guard.core import NotPermitted, Permit, SafeFrame
from labharness.safety.guard.messages import (
    BadFields,
    Fields,
    Line,
    SocketLines,
    fits,
    read_request,
    read_trip,
    write_trip,
)

if TYPE_CHECKING:
    from labharness.safety.guard.process import ProcessGuard

__all__ = ["HarnessSession", "HarnessWatch", "OfflineLog"]


class HarnessSession:
    """A connection with its key and its counts.

    Args:
        guard: What it asks.
        made: The connected socket.
        selector: What watches it.
        key: Seals its permits.
        part: Called with the reason when it is over.
    """

    def __init__(
        self,
        guard: "ProcessGuard",
        made: socket.socket,
        selector: selectors.BaseSelector,
        key: bytes,
        part: Callable[[str], None],
    ) -> None:
        self.heard = 0  # messages that were taken
        self.imported = False  # whether it keeps a journal, and the log of the offline_log is in it
        self._moves = 0  # of them, those that moved the epoch
        self._guard = guard
        self._lines = SocketLines(made)
        self._selector = selector
        self._key = key
        self._part = part
        self._over = False
        self._untold = ""  # why the harness cannot be told any more
        self._places = {
            frame: (name, number)
            for name, frames in guard.core.procedures.items()
            for number, frame in enumerate(frames)
        }
        selector.register(made, selectors.EVENT_READ, self.hear)

    def welcome(self, digest: str) -> None:
        """Say what a harness must know to begin."""
        trip = self._guard.latch.trip
        self.say(
            {
                "say": "welcome",
                "digest": digest,
                "key": self._key.hex(),
                "permits": self._guard.core.permit_count,
                "trip": None if trip is None else write_trip(trip),
                "log": self._guard.log.entries,
            }
        )

    def say(self, message: Line) -> None:
        """Send a message, and with it how things stand."""
        if self._over or self._untold:
            return
        core = self._guard.core
        status = {
            "epoch": core.epoch,
            "moves": self._moves,
            "armed": core.armed,
            "latched": core.latched,
            "write_error": coded(self._guard.latch.write_error),
            "free": self._guard.ports.free(),
            "shut": self._guard.ports.shut(),
            "heard": self.heard,
        }
        try:
            self._lines.say({**message, **status})
        except OSError as why:  # in the midst of what it is told of: ``settle`` deals with it
            self._untold = str(why)
        self._watch()

    def settle(self) -> None:
        """Part, at the end of a turn, with a harness that cannot be told any more.

        What it has said comes first: it may have taken its leave. One that stands still says
        nothing, and its socket would never wake the guard.
        """
        if self._untold:
            self.hear()
        if self._untold and not self._over:
            self._part(f"the harness cannot be told ({self._untold})")

    def ended(self, port: str, number: int, reply: bytes | None, error: str) -> None:
        """Say how an exchange ended."""
        told = None if reply is None else reply.hex()
        self.say(
            {"say": "ended", "port": port, "number": number, "reply": told, "error": coded(error)}
        )

    def safe(self, frame: SafeFrame, error: str) -> None:
        """Say how the exchange of a safe frame ended; the guard's own readings are its own."""
        if frame in self._places:
            self.say({"say": "safe", "frame": list(self._places[frame]), "error": coded(error)})

    def lost(self, port: str, why: str) -> None:
        """Say that a link was lost."""
        self.say({"say": "lost", "port": port, "why": why})

    def tripped(self, trip: Trip) -> None:
        """Say that the guard has tripped by itself."""
        self.say({"say": "tripped", "trip": write_trip(trip)})

    def close(self) -> None:
        """Hang up."""
        if not self._over:
            self._over = True
            self._selector.unregister(self._lines.socket)
            self._lines.socket.close()

    def hear(self) -> None:
        """Take what has arrived; an event of the turn in which it closed finds nothing."""
        if self._over:
            return
        try:
            if self._lines.waits and not self._untold:
                self._flush()
            for message in self._lines.hear():
                self.heard += 1
                fields = Fields(message, "message of the harness")
                _TAKES[fields.one_of("do", _TAKES)](self, fields)
                if self._over:
                    return
        except (OSError, ValueError, RecursionError) as why:  # BadFields is a ValueError
            self._part(f"the socket of the harness closed ({why})")

    def _flush(self) -> None:
        try:
            self._lines.flush()
        except OSError as why:
            self._untold = str(why)
        self._watch()

    def _watch(self) -> None:
        mask = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._lines.waits else 0)
        if self._selector.get_key(self._lines.socket).events != mask:
            self._selector.modify(self._lines.socket, mask, self.hear)

    # ---- what it may ask

    def _take_send(self, fields: Fields) -> None:
        name = fields.one_of("port", self._guard.core.ports)
        number = fields.whole("number")
        try:
            request, permit = self._permitted(fields, name)
            self._guard.ports.send(name, request, permit, number)
        except NotPermitted as why:
            self.ended(name, number, None, f"refused by the guard: {why}")
        fields.end()

    def _permitted(self, fields: Fields, name: str) -> tuple[Request, Permit | None]:
        """Return the request of a read as it is armed, or one with a permit whose seal fits."""
        guard = self._guard
        if fields.null("permit"):
            frame = fields.raw("frame")
            known = guard.reads[name].get(frame)
            if known is None:
                raise NotPermitted(
                    f"{frame[:40].hex(' ')} is no read of port {name} and carries no permit"
                )
            return known, None
        inner = fields.inside("permit")
        request = read_request(fields.inside("request"))
        permit = Permit(
            inner.whole("number"),
            name,
            request.frame,
            inner.whole("epoch"),
            inner.whole("expires_us") / 1e6,
        )
        given = inner.raw("seal")
        inner.end()
        if not fits(self._key, permit, request, given):
            raise NotPermitted(f"the seal of permit {permit.number} does not fit")
        takes_s = request.timeout_s + request.settle_s
        if takes_s > guard.longest_s[name]:
            raise NotPermitted(
                f"an exchange of {takes_s:g} s, port {name} allows {guard.longest_s[name]:g} s"
            )
        guard.core.admit(permit, guard.steady_s())
        return request, permit

    def _take_trip(self, fields: Fields) -> None:
        inner = fields.inside("trip")
        procedure = inner.one_of("procedure", self._guard.core.procedures)
        self._moves += 1
        self._guard.trip(procedure, lambda: read_trip(inner, procedure))
        fields.end()
        self.say({"say": "status"})

    def _take_repeat(self, fields: Fields) -> None:
        places = fields.items("frames")
        fields.end()
        self._guard.repeat([self._frame_at(place) for place in places])

    def _frame_at(self, place: object) -> SafeFrame:
        if isinstance(place, list) and len(place) == 2 and type(place[1]) is int:
            name, number = place
            frames = self._guard.core.procedures.get(str(name), ())
            if 0 <= number < len(frames):
                return frames[number]
        raise BadFields(f"no procedure has a frame {place!r}")

    def _take_epoch(self, fields: Fields) -> None:
        fields.end()
        self._moves += 1
        self._guard.core.new_epoch()

    def _take_arm(self, fields: Fields) -> None:
        procedure = fields.one_of("lost", self._guard.core.procedures)
        fields.end()
        self._moves += 1
        error = ""
        try:
            self._guard.arm(procedure)
        except OSError as why:  # NotPermitted is one too
            self._guard.core.new_epoch()
            error = str(why.strerror or why)
        self.say({"say": "armed", "error": error})

    def _take_disarm(self, fields: Fields) -> None:
        fields.end()
        self._moves += 1
        self._guard.disarm()

    def _take_heartbeat(self, fields: Fields) -> None:
        made_s = fields.number("made_s")
        procedure = fields.one_of("lost", self._guard.core.procedures)
        fields.end()
        self._guard.heartbeat(made_s, procedure)

    def _take_reset(self, fields: Fields) -> None:
        fields.end()
        self._moves += 1
        self.say({"say": "reset", "error": self._guard.reset()})

    def _take_imported(self, fields: Fields) -> None:
        fields.end()
        self.imported = True
        self._guard.log.clear()

    def _take_bye(self, fields: Fields) -> None:
        retire = fields.flag("retire")
        fields.end()
        self._guard.goodbye(retire=retire)


_TAKES: dict[str, Callable[[HarnessSession, Fields], None]] = {
    "send": HarnessSession._take_send,
    "trip": HarnessSession._take_trip,
    "repeat": HarnessSession._take_repeat,
    "epoch": HarnessSession._take_epoch,
    "arm": HarnessSession._take_arm,
    "disarm": HarnessSession._take_disarm,
    "heartbeat": HarnessSession._take_heartbeat,
    "reset": HarnessSession._take_reset,
    "imported": HarnessSession._take_imported,
    "bye": HarnessSession._take_bye,
}


@dataclass(slots=True)
class HarnessWatch:
    """Counts the silence of an armed harness.

    Attributes:
        silence_s_max: Longest silence that is borne.
        procedure: What to run when it is over; each heartbeat may name another: what is safe
            depends on the state of the line.
        heard_s: When the last heartbeat was made; ``inf`` while nothing is armed.
    """

    silence_s_max: float
    procedure: str
    heard_s: float = float("inf")

    @property
    def due_s(self) -> float:
        """When the harness counts as lost, unless a heartbeat comes."""
        return self.heard_s + self.silence_s_max

    def begin(self, now: float) -> None:
        """Watch from now on."""
        self.heard_s = now

    def end(self) -> None:
        """Watch nobody: nothing is armed."""
        self.heard_s = float("inf")

    def heartbeat(self, made_s: float, now: float, procedure: str) -> float:
        """Take a heartbeat; one from the future counts as made now.

        Returns:
            The silence before it (s), where it was longer than is borne: harness and guard may
            have stood still together, with the machine. Such a heartbeat is not taken. Otherwise 0.
        """
        if self.heard_s != float("inf"):
            fresh_s = max(self.heard_s, min(made_s, now))
            if fresh_s > self.due_s:
                return fresh_s - self.heard_s
            self.heard_s = fresh_s
        self.procedure = procedure
        return 0.0

    def overdue(self, now: float) -> bool:
        """Return whether the silence has lasted too long."""
        return now > self.due_s


ENTRIES_MAX = 10_000  # of one offline_log; the first ones are kept, they hold the cause


class OfflineLog:
    """Lines of JSON that stay until a harness has them in a journal that keeps.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.entries: list[Mapping[str, object]] = []
        for line in _lines(path):
            try:
                entry = json.loads(line)
            except ValueError:
                entry = {"what": "unreadable", "line": line[:200]}
            self.entries.append(entry if isinstance(entry, dict) else {"what": str(entry)})
        self._written = len(self.entries)

    def add(self, what: str, **facts: object) -> None:
        """Add one fact, in memory: bytes go before it."""
        if len(self.entries) < ENTRIES_MAX:
            self.entries.append({"at": utc_text(wall_clock_utc()), "what": what, **facts})

    def flush(self) -> None:
        """Write what is new; a disk that fails is tried again."""
        fresh = self.entries[self._written :]
        if not fresh:
            return
        try:
            handle = open_own(self._path, os.O_WRONLY | os.O_APPEND)
            with os.fdopen(handle, "a", encoding="utf-8") as file:
                file.writelines(json.dumps(each) + "\n" for each in fresh)
        except OSError:
            return
        self._written = len(self.entries)

    def clear(self) -> None:
        """Forget what the harness has taken over; a file that does not go is told once more."""
        self.entries = []
        self._written = 0
        with suppress(OSError):
            self._path.unlink(missing_ok=True)


def _lines(path: Path) -> list[str]:
    """Return what an earlier guard left; a log that is lost keeps no guard from beginning."""
    try:
        if not is_there(path):
            return []
        with open_named(path) as file:
            return file.read().decode(errors="replace").splitlines()[:ENTRIES_MAX]
    except OSError as why:
        return [f"{path.name} cannot be read: {why.strerror}"]
