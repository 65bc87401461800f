"""The harness as the guard process sees it: its connection, its heartbeats, and a log for the next.

A heartbeat carries the time at which it was made: heartbeats that waited in a socket while the
harness stood still prove nothing about now. A message that cannot be read ends the session like the
end of the socket does: a harness that sends nonsense is as lost as a silent one. A log keeps what
happens without a harness, for the next one.
"""

import json
import os
import selectors
import socket
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import labharness.safety.guard.messages as messages
from labharness.core.clock import utc_text, wall_clock_utc
from labharness.core.files.named import is_there, open_named, open_own
from labharness.core.vocabulary import Request
from labharness.safety.guard.core import NotPermitted, Permit
from labharness.safety.guard.port import SafeFrame

if TYPE_CHECKING:
    from labharness.safety.guard.process import ProcessGuard

WHERE = "message of the harness"
NEVER = float("inf")


class HarnessSession:
    """The connection of one harness, with its key and its counts.

    Args:
        guard: Carries out its messages.
        made: The connected socket.
        selector: The selector that watches it.
        key: The key that seals its permits.
        part: Called with the reason when the session is over.
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
        self.imported = False  # whether its journal has taken over the offline log
        self._moves = 0  # messages of them that moved the epoch
        self._guard = guard
        self._lines = messages.SocketLines(made)
        self._selector = selector
        self._key = key
        self._part = part
        self._over = False
        self._untold = ""  # why the harness cannot be told any more
        self._places = messages.places(guard.core.procedures)
        selector.register(made, selectors.EVENT_READ, self.hear)

    def welcome(self, digest: str) -> None:
        """Send what a harness must know to begin."""
        guard = self._guard
        permits, trip, log = guard.core.permit_count, guard.latch.trip, guard.log.entries
        self.say("welcome", digest=digest, key=self._key, permits=permits, trip=trip, log=log)

    def say(self, what: str, **fields: object) -> None:
        """Send one of the messages `SAYS`, and the state of the guard with it."""
        if self._over or self._untold:
            return
        core = self._guard.core
        standing = {
            "epoch": core.epoch,
            "moves": self._moves,
            "armed": core.armed,
            "latched": core.latched,
            "write_error": self._guard.latch.write_error,
            "free": self._guard.ports.free(),
            "shut": self._guard.ports.shut(),
            "heard": self.heard,
        }
        message = messages.write_fields(messages.SAYS[what], fields) | messages.write_fields(
            messages.STANDING, standing
        )
        try:
            self._lines.say({"say": what, **message})
        except OSError as why:  # amid the event that it tells of: ``settle`` deals with it
            self._untold = str(why)
        self._watch()

    def settle(self) -> None:
        """End the session, at the end of a turn, if nothing more can be sent to the harness.

        Its own messages are read first: it may have taken its leave. A harness that stands still
        sends nothing, and its socket would never wake the guard.
        """
        if self._untold:
            self.hear()
        if self._untold and not self._over:
            self._part(f"the harness cannot be told ({self._untold})")

    def safe(self, frame: SafeFrame, error: str) -> None:
        """Report the end of a safe frame's exchange; of the guard's own readings that they end.

        A harness that waits for that port, a reset for one, hears of it by nothing else.
        """
        if frame in self._places:
            self.say("safe", frame=self._places[frame], error=error)
        else:
            self.say("free")

    def close(self) -> None:
        """Hang up."""
        if not self._over:
            self._over = True
            self._selector.unregister(self._lines.socket)
            self._lines.socket.close()

    def hear(self) -> None:
        """Take the messages that have arrived; do nothing once the session is closed."""
        if self._over:
            return
        try:
            if self._lines.waits and not self._untold:
                self._flush()
            for message in self._lines.hear():
                self.heard += 1
                self._take(messages.Fields(message, WHERE))
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

    # ---- the messages of the harness

    def _take(self, fields: messages.Fields) -> None:
        what = fields.one_of("do", messages.ASKS)
        asked = messages.read_fields(messages.ASKS[what], fields)
        if what not in RESTS:
            fields.end()
        if what in MOVES:
            self._moves += 1
        if what in RESTS:
            asked["rest"] = fields
        _TAKES[what](self, **asked)
        fields.end()

    def _take_send(self, port: str, number: int, rest: messages.Fields) -> None:
        _must_know("port", port, self._guard.core.ports)
        try:
            request, permit = self._permitted(rest, port)
            self._guard.ports.send(port, request, permit, number)
        except NotPermitted as why:
            why_not = f"refused by the guard: {why}"
            self.say("ended", port=port, number=number, reply=None, error=why_not)

    def _permitted(self, fields: messages.Fields, name: str) -> tuple[Request, Permit | None]:
        """Return the request of an armed read, or a request with a permit whose seal fits."""
        guard = self._guard
        if fields.null("permit"):
            frame = fields.raw("frame")
            known = guard.reads[name].get(frame)
            if known is None:
                raise NotPermitted(
                    f"{frame[:40].hex(' ')} is not a read of port {name} and carries no permit"
                )
            return known, None
        said = messages.read_all(messages.PERMIT, fields.inside("permit"))
        request = messages.read_request(fields.inside("request"))
        expires_s = said["expires_us"] / 1e6
        permit = Permit(said["number"], name, request.frame, said["epoch"], expires_s)
        if not messages.fits(self._key, permit, request, said["seal"]):
            raise NotPermitted(f"the seal of permit {permit.number} does not fit")
        takes_s = request.timeout_s + request.settle_s
        if takes_s > guard.longest_s[name]:
            raise NotPermitted(
                f"an exchange of {takes_s:g} s, port {name} allows {guard.longest_s[name]:g} s"
            )
        guard.core.admit(permit, guard.steady_s())
        return request, permit

    def _take_doubt(self, port: str) -> None:
        _must_know("port", port, self._guard.core.ports)
        self._guard.ports.doubt(port)
        self.say("status")

    def _take_trip(self, rest: messages.Fields) -> None:
        inner = rest.inside("trip")
        procedure = inner.one_of("procedure", self._guard.core.procedures)
        self._guard.trip(procedure, lambda: messages.read_trip(inner, procedure))
        rest.end()
        self.say("status")

    def _take_repeat(self, frames: list[object]) -> None:
        self._guard.repeat([self._frame_at(place) for place in frames])

    def _frame_at(self, place: object) -> SafeFrame:
        if isinstance(place, list) and len(place) == 2 and type(place[1]) is int:
            name, number = place
            frames = self._guard.core.procedures.get(str(name), ())
            if 0 <= number < len(frames):
                return frames[number]
        raise messages.BadFields(f"no procedure has a frame {place!r}")

    def _take_arm(self, lost: str) -> None:
        _must_know("lost", lost, self._guard.core.procedures)
        error = ""
        try:
            self._guard.arm(lost)
        except OSError as why:  # NotPermitted is one too
            self._guard.core.new_epoch()
            error = str(why.strerror or why)
        self.say("armed", error=error)

    def _take_heartbeat(self, made_s: float, lost: str) -> None:
        _must_know("lost", lost, self._guard.core.procedures)
        self._guard.heartbeat(made_s, lost)

    def _take_imported(self) -> None:
        self.imported = True
        self._guard.log.clear()


MOVES = frozenset({"trip", "epoch", "arm", "disarm", "reset"})
"""The messages that move the epoch."""

RESTS = frozenset({"send", "trip"})
"""The messages with a rest, which their handler reads."""

_TAKES: dict[str, Callable[..., None]] = {
    "send": HarnessSession._take_send,
    "doubt": HarnessSession._take_doubt,
    "trip": HarnessSession._take_trip,
    "repeat": HarnessSession._take_repeat,
    "epoch": lambda session: session._guard.core.new_epoch(),
    "arm": HarnessSession._take_arm,
    "disarm": lambda session: session._guard.disarm(),
    "heartbeat": HarnessSession._take_heartbeat,
    "reset": lambda session: session.say("reset", error=session._guard.reset()),
    "imported": HarnessSession._take_imported,
    "bye": lambda session, retire: session._guard.goodbye(retire=retire),
}


def _must_know(what: str, name: str, known: Collection[str]) -> None:
    if name not in known:
        raise messages.BadFields(f"{WHERE}: {what} {name!r} is none of {', '.join(known)}")


@dataclass(slots=True)
class HarnessWatch:
    """Measures the silence of an armed harness.

    Attributes:
        silence_s_max: Longest allowed silence.
        procedure: The procedure to run after it. Each heartbeat may name another, because the safe
            state depends on the state of the line.
        heard_s: Time at which the last heartbeat was made, from which the watch begins; `NEVER`
            while nothing is armed, and nothing is watched.
    """

    silence_s_max: float
    procedure: str
    heard_s: float = NEVER

    @property
    def due_s(self) -> float:
        """Time at which the harness counts as lost, unless a heartbeat comes."""
        return self.heard_s + self.silence_s_max

    def heartbeat(self, made_s: float, now: float, procedure: str) -> float:
        """Take a heartbeat; one from the future counts as made now.

        Returns:
            The silence before it (s) if it was too long, else 0. Harness and guard may have stood
            still together, with the machine; such a heartbeat is not taken.
        """
        if self.heard_s != NEVER:
            fresh_s = max(self.heard_s, min(made_s, now))
            if fresh_s > self.due_s:
                return fresh_s - self.heard_s
            self.heard_s = fresh_s
        self.procedure = procedure
        return 0.0

    def overdue(self, now: float) -> bool:
        """Return whether the silence has lasted too long."""
        return now > self.due_s


LOG_FILE = "guard.jsonl"
ENTRIES_MAX = 10_000  # of one log; the first ones are kept, because they hold the cause


class OfflineLog:
    """A file of JSON lines, kept until a harness has them in a journal on a disk.

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
        """Forget what the harness has taken over; a file that cannot be removed is sent again."""
        self.entries = []
        self._written = 0
        with suppress(OSError):
            self._path.unlink(missing_ok=True)


def not_safe(path: Path) -> list[Mapping[str, str]]:
    """Return what a log says of each channel that is not made safe yet: port, since when, why."""
    last: dict[str, Mapping[str, str]] = {}
    for each in OfflineLog(path).entries:
        if each.get("what") == "safe frame":
            told = {name: str(each.get(name, "?")) for name in ("port", "channel", "at", "error")}
            before = last.get(told["channel"], {})
            last[told["channel"]] = told | ({"at": before["at"]} if before.get("error") else {})
    return [each for each in last.values() if each["error"]]


def _lines(path: Path) -> list[str]:
    """Return the lines of an earlier guard; a log that cannot be read does not stop this one."""
    try:
        if not is_there(path):
            return []
        with open_named(path) as file:
            return file.read().decode(errors="replace").splitlines()[:ENTRIES_MAX]
    except OSError as why:
        return [f"{path.name} cannot be read: {why.strerror}"]
