"""The guard as a process of its own: selectors around the core, a latch, and one harness.

It takes no decision but one: when an armed harness falls silent or its socket closes, it runs the
line's procedure by itself, latches, and sends again what was not answered.

Order of business in each turn: what arrived on the ports and from the harness, what is due on the
ports, whether the harness is overdue, and last what may wait for a disk.
"""

import selectors
import signal
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from labharness.guard.absence import AbsenceLog, ArmedMark
from labharness.guard.armed import Armed
from labharness.guard.core import Finished, NotPermitted, Permit, Port, PortState, SafeFrame
from labharness.guard.fields import BadFields, Fields
from labharness.guard.latch import Latch, LatchUnreadable
from labharness.guard.notify import Notifier
from labharness.guard.seal import KEY_BYTES, fits
from labharness.guard.socket_lines import Line, SocketLines
from labharness.guard.watch import HarnessWatch
from labharness.guard.written import read_request, read_trip, write_trip
from labharness.link import LinkLost
from labharness.link.descriptors import Road
from labharness.vocabulary import Cause, Request, Trip

__all__ = ["ProcessGuard"]

NAP_S_MAX = 1.0  # longest wait for something to happen
REPEAT_S = 1.0  # a frame of a procedure that was not answered is sent again after this
REPEATS_MAX = 3600
REOPEN_S_MAX = 0.2  # a lost road is given this long when a procedure needs it
COME_S_MAX = 30.0  # with ``once``: how long to wait for the harness that asked for this guard
LEAVE_S_MAX = 5.0  # a guard that is told to stop waits this long for its procedure's answers


class ProcessGuard:
    """One lab's guard.

    Args:
        armed: What may leave, and what makes safe.
        digest: Of the text it was read from; harness and guard compare it.
        roads: An open road for each port.
        state_dir: Where latch, mark and log lie.
        listener: The socket on which the harness comes.
        steady_s: The machine's steady clock.
        entropy: Gives so many bytes for a key.
        once: End when the harness that came has gone and nothing is left to do.
    """

    def __init__(
        self,
        *,
        armed: Armed,
        digest: str,
        roads: Mapping[str, Road],
        state_dir: Path,
        listener: socket.socket,
        steady_s: Callable[[], float],
        entropy: Callable[[int], bytes],
        once: bool,
    ) -> None:
        self.core = armed.core()
        self._armed = armed
        self._digest = digest
        self._roads = dict(roads)
        self._listener = listener
        self._steady_s = steady_s
        self._entropy = entropy
        self._once = once
        self._reads = {
            port.name: {request.frame: request for request in port.reads} for port in armed.ports
        }
        self._longest_s = {port.name: port.exchange_s_max for port in armed.ports}
        self._places = {
            frame: (name, number)
            for name, frames in armed.procedures.items()
            for number, frame in enumerate(frames)
        }
        self._watch = HarnessWatch(armed.silence_s_max, armed.lost)
        self._mark = ArmedMark(state_dir / "guard.armed")
        self._log = AbsenceLog(state_dir / "guard.jsonl")
        self._unreadable = ""
        try:
            self._latch = Latch(state_dir / "latch.json")
        except LatchUnreadable as why:  # it stays as it is: a person finds out what happened to it
            self._unreadable = str(why)
            self._latch = Latch(state_dir / "latch.unreadable")
            self._latch.trip = self._trip_of("latch", str(why), armed.safe_table)
        self._notifier = Notifier()
        self._notify_s = 0.0
        self._selector = selectors.DefaultSelector()
        self._harness: SocketLines | None = None
        self._key = b""
        self._heard = 0  # messages of this harness that were taken
        self._moves = 0  # of them, those that moved the epoch
        self._asked: dict[str, int | None] = dict.fromkeys(roads)  # number of the exchange
        self._procedure = ""  # the last one that ran
        self._unanswered: set[SafeFrame] = set()
        self._alone = False  # a harness was lost, and no other has taken over
        self._repeats = 0
        self._repeat_s = float("inf")
        self._save_s = 0.0
        self._unused_s = steady_s()
        self._leaving_s = float("inf")
        self._over = False

    # ---- the loop

    def run(self) -> None:
        """Serve until told to stop, or with ``once`` until there is nothing left to do."""
        for name, road in self._roads.items():
            if road.fileno() >= 0:
                self._selector.register(road.fileno(), selectors.EVENT_READ, self._reader(name))
        self._listener.setblocking(False)
        self._selector.register(self._listener, selectors.EVENT_READ, self._greet)
        self._heed_signals()
        self._begin()
        self._notifier.say("READY=1")
        while not self._over:
            for key, _ in self._selector.select(self._nap_s()):
                key.data()
            self._keep_time()
        self._notifier.say("STOPPING=1")
        self._leave()

    def _begin(self) -> None:
        """After a crash with the line armed, or with a latch set, the safe table comes first."""
        mark, trip = self._mark.procedure, self._latch.trip
        if mark is None and trip is None:
            return
        procedure = self._known(mark or (trip.procedure if trip else ""))
        why = "the guard came back with the line armed" if trip is None else trip.detail
        self._trip(trip or self._trip_of("guard", why, procedure), procedure)
        self._log.add("began with the safe table", procedure=procedure, why=why)
        self._be_alone()
        self._mark.clear()

    def _nap_s(self) -> float:
        now = self._steady_s()
        due_s = min(port.due_s for port in self.core.ports.values())
        due_s = min(due_s, self._watch.due_s, self._repeat_s, self._leaving_s, self._notify_s)
        return min(max(due_s - now, 0.0), NAP_S_MAX)

    def _keep_time(self) -> None:
        now = self._steady_s()
        for name, port in self.core.ports.items():
            if port.due_s <= now:
                self._expire(name, port, now)
        if self._watch.overdue(now):
            silent_s = now - self._watch.heard_s
            self._lose(f"the harness was silent for {silent_s:.3f} s")
        if self._alone and self._repeat_s <= now:
            self._repeat(now)
        if now >= self._notify_s:
            self._notifier.say("WATCHDOG=1")
            self._notify_s = now + self._notifier.every_s
        if self._latch.write_error and now >= self._save_s:
            self._save_s = now + REPEAT_S
            self._latch.saved()
        self._log.flush()
        self._over = self._is_over(now)

    def _is_over(self, now: float) -> bool:
        busy = any(port.state is PortState.SENT or port.safe for port in self.core.ports.values())
        if self._leaving_s < float("inf"):
            return not busy or now >= self._leaving_s
        if not self._once or self._harness is not None or busy:
            return False
        if self._alone and self._unanswered and self._repeats <= REPEATS_MAX:
            return False
        return self._heard > 0 or now - self._unused_s > COME_S_MAX

    def _heed_signals(self) -> None:
        near, far = socket.socketpair()
        near.setblocking(False)
        far.setblocking(False)
        self._signals = (near, far)
        signal.set_wakeup_fd(far.fileno(), warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: None)
        self._selector.register(near, selectors.EVENT_READ, self._told_to_stop)

    def _told_to_stop(self) -> None:
        self._signals[0].recv(64)
        if self.core.armed:
            self._lose("the guard was told to stop while the line was armed")
        self._leaving_s = self._steady_s() + LEAVE_S_MAX

    def _leave(self) -> None:
        self._drop()
        self._log.flush()
        signal.set_wakeup_fd(-1)
        for each in (*self._signals, self._listener):
            each.close()
        for road in self._roads.values():
            road.close()
        self._selector.close()

    # ---- ports

    def _reader(self, name: str) -> Callable[[], None]:
        port, road = self.core.ports[name], self._roads[name]

        def read() -> None:
            now = self._steady_s()
            try:
                data = road.read()
            except LinkLost as why:
                self._lose_road(name, str(why), now)
                return
            if port.state is PortState.DRAIN and now >= port.due_s:
                port.expire(now)  # its quiet was over before these bytes came
            finished = port.feed(data, now)
            if finished is not None:
                self._finish(name, finished, now)

        return read

    def _expire(self, name: str, port: Port, now: float) -> None:
        finished = port.expire(now)
        if finished is not None:
            self._finish(name, finished, now)
        else:
            self._tell_free(name)

    def _hand_over(self, name: str, frame: bytes, now: float) -> None:
        try:
            self._roads[name].write(frame)
        except LinkLost as why:
            finished = self.core.ports[name].lose(str(why), now)
            if finished is not None:
                self._finish(name, finished, now)

    def _send_safe(self, name: str, now: float) -> None:
        frame = self.core.send_safe(name, now)
        if frame is not None:
            self._hand_over(name, frame, now)

    def _finish(self, name: str, finished: Finished, now: float) -> None:
        if self.core.ports[name].safe:
            self._send_safe(name, now)
        safe = finished.safe
        if safe is None:
            number, self._asked[name] = self._asked[name], None
            if number is not None:
                self._ended(name, number, finished.reply, finished.error)
            return
        if not finished.error:
            self._unanswered.discard(safe)
        self._log.add("safe frame", channel=safe.channel, value=safe.value, error=finished.error)
        procedure, place = self._places[safe]
        self._say({"say": "safe", "frame": [procedure, place], "error": finished.error})
        self._tell_free(name)

    def _lose_road(self, name: str, why: str, now: float) -> None:
        road = self._roads[name]
        with suppress(KeyError, ValueError):
            self._selector.unregister(road.fileno())
        road.close()
        self._log.add("road lost", port=name, why=why)
        finished = self.core.ports[name].lose(why, now)
        if finished is not None:
            self._finish(name, finished, now)

    def _reopen(self) -> None:
        """Open the lost roads of what was not answered; what is repeated next goes by them."""
        for name in {frame.port for frame in self._unanswered}:
            road = self._roads[name]
            if road.fileno() < 0:
                with suppress(LinkLost):
                    road.open(REOPEN_S_MAX)
                    self._selector.register(road.fileno(), selectors.EVENT_READ, self._reader(name))

    # ---- making safe

    def _trip(self, trip: Trip, procedure: str) -> None:
        """Bytes first, then the latch; the log comes after, by the caller."""
        now = self._steady_s()
        for name in self.core.trip(procedure):
            self._send_safe(name, now)
        self._procedure = procedure
        self._unanswered = set(self.core.procedures[procedure])
        self._latch.close(trip)

    def _lose(self, why: str) -> None:
        """Do without the harness: make safe, latch, and take its arming away."""
        procedure = self._known(self._procedure if self.core.latched else self._watch.procedure)
        trip = self._trip_of("harness", why, procedure)
        self._trip(trip, procedure)
        self.core.disarm()
        self._watch.end()
        self._be_alone()
        self._log.add("tripped by itself", procedure=procedure, why=why)
        self._say({"say": "tripped", "trip": write_trip(trip)})
        if not self._latch.write_error:
            self._mark.clear()

    def _be_alone(self) -> None:
        self._alone = True
        self._repeats = 0
        self._repeat_s = self._steady_s() + REPEAT_S

    def _repeat(self, now: float) -> None:
        self._repeat_s = now + REPEAT_S
        self._repeats += 1
        waiting = any(port.safe for port in self.core.ports.values())
        if not self._unanswered or self._repeats > REPEATS_MAX or waiting:
            return
        for name in self.core.queue(self._unanswered):
            self._send_safe(name, now)
        self._reopen()

    def _known(self, procedure: str) -> str:
        return procedure if procedure in self.core.procedures else self._armed.safe_table

    def _trip_of(self, channel: str, why: str, procedure: str) -> Trip:
        return Trip(Cause.COMMUNICATION, procedure, channel, None, self._steady_s(), why)

    # ---- the harness

    def _greet(self) -> None:
        try:
            made, _ = self._listener.accept()
        except OSError:
            return
        self._hear()  # the one before may have closed in this very turn
        if self._harness is not None:
            with made, suppress(OSError):
                SocketLines(made).say({"say": "busy"})
            return
        self._harness = SocketLines(made)
        self._heard = self._moves = 0
        self._key = self._entropy(KEY_BYTES)
        self._selector.register(made, selectors.EVENT_READ, self._hear)
        trip = self._latch.trip
        self._say(
            {
                "say": "welcome",
                "digest": self._digest,
                "key": self._key.hex(),
                "permits": self.core.permit_count,
                "trip": None if trip is None else write_trip(trip),
                "log": self._log.entries,
            }
        )

    def _standing(self) -> dict[str, object]:
        """What the harness must know to make a permit, and to wait for its turn."""
        free = [
            name
            for name, port in self.core.ports.items()
            if port.state is PortState.IDLE and not port.safe
        ]
        return {
            "epoch": self.core.epoch,
            "moves": self._moves,
            "armed": self.core.armed,
            "latched": self.core.latched,
            "write_error": self._latch.write_error,
            "free": free,
            "heard": self._heard,
        }

    def _hear(self) -> None:
        harness = self._harness
        if harness is None:
            return
        try:
            if harness.waits:
                harness.flush()
            for message in harness.hear():
                self._heard += 1
                self._take(Fields(message, "message of the harness"))
                if self._harness is not harness:
                    return
        except (OSError, ValueError, RecursionError) as why:  # BadFields is a ValueError
            self._part(f"the socket of the harness closed ({why})")

    def _take(self, fields: Fields) -> None:
        take = _TAKES[fields.one_of("do", _TAKES)]
        take(self, fields)

    def _part(self, why: str) -> None:
        """End with a harness; one that left the line armed is lost."""
        self._drop()
        if self.core.armed:
            self._lose(why)

    def _drop(self) -> None:
        if self._harness is not None:
            self._selector.unregister(self._harness.socket)
            self._harness.socket.close()
            self._harness = None
            self._key = b""
            self._asked = dict.fromkeys(self._roads)
            self._unused_s = self._steady_s()

    def _say(self, message: Line) -> None:
        harness = self._harness
        if harness is None:
            return
        try:
            harness.say({**message, **self._standing()})
        except OSError:
            return  # reading says so too, and there it is dealt with
        mask = selectors.EVENT_READ | (selectors.EVENT_WRITE if harness.waits else 0)
        if self._selector.get_key(harness.socket).events != mask:
            self._selector.modify(harness.socket, mask, self._hear)

    def _ended(self, port: str, number: int, reply: bytes | None, error: str) -> None:
        self._say(
            {
                "say": "ended",
                "port": port,
                "number": number,
                "reply": None if reply is None else reply.hex(),
                "error": error,
            }
        )

    def _tell_free(self, name: str) -> None:
        port = self.core.ports[name]
        if port.state is PortState.IDLE and not port.safe:
            self._say({"say": "free"})

    # ---- what a harness may ask

    def _take_send(self, fields: Fields) -> None:
        name = fields.one_of("port", self.core.ports)
        number = fields.whole("number")
        now = self._steady_s()
        try:
            request, permit = self._permitted(fields, name, now)
            frame = self.core.send(name, request, now, permit)
        except NotPermitted as why:
            self._ended(name, number, None, f"refused by the guard: {why}")
            return
        finally:
            fields.end()
        self._asked[name] = number
        self._hand_over(name, frame, now)

    def _permitted(self, fields: Fields, name: str, now: float) -> tuple[Request, Permit | None]:
        """Give the request of a read as it is armed, or one with a permit whose seal fits."""
        if fields.null("permit"):
            frame = fields.raw("frame")
            request = self._reads[name].get(frame)
            if request is None:
                raise NotPermitted(
                    f"{frame[:40].hex(' ')} is no read of port {name} and carries no permit"
                )
            return request, None
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
        if takes_s > self._longest_s[name]:
            raise NotPermitted(
                f"an exchange of {takes_s:g} s, port {name} allows {self._longest_s[name]:g} s"
            )
        self.core.admit(permit, now)
        return request, permit

    def _take_trip(self, fields: Fields) -> None:
        trip = read_trip(fields.inside("trip"))
        fields.end()
        if trip.procedure not in self.core.procedures:
            raise BadFields(f"no procedure {trip.procedure!r}")
        self._moves += 1
        self._trip(trip, trip.procedure)
        self._log.add("tripped", procedure=trip.procedure, why=trip.detail)
        self._say({"say": "standing"})

    def _take_repeat(self, fields: Fields) -> None:
        places = fields.items("frames")
        fields.end()
        again = [self._frame_at(place) for place in places]
        now = self._steady_s()
        self._unanswered.update(again)
        for name in self.core.queue(again):
            self._send_safe(name, now)
        self._reopen()

    def _frame_at(self, place: object) -> SafeFrame:
        if isinstance(place, list) and len(place) == 2 and type(place[1]) is int:
            name, number = place
            frames = self.core.procedures.get(str(name), ())
            if 0 <= number < len(frames):
                return frames[number]
        raise BadFields(f"no procedure has a frame {place!r}")

    def _take_epoch(self, fields: Fields) -> None:
        fields.end()
        self._moves += 1
        self.core.new_epoch()

    def _take_arm(self, fields: Fields) -> None:
        procedure = fields.one_of("lost", self.core.procedures)
        fields.end()
        self._moves += 1
        try:
            self._latch.probe()
            self._mark.set(procedure)
            self.core.arm()
        except (OSError, NotPermitted) as why:
            self.core.new_epoch()
            self._say({"say": "unarmed", "why": str(why)})
            return
        self._watch.procedure = procedure
        self._watch.begin(self._steady_s())
        self._unanswered = set()
        self._alone = False

    def _take_disarm(self, fields: Fields) -> None:
        fields.end()
        self._moves += 1
        self.core.disarm()
        self._watch.end()
        self._mark.clear()

    def _take_beat(self, fields: Fields) -> None:
        made_s = fields.number("made_s")
        procedure = fields.one_of("lost", self.core.procedures)
        fields.end()
        self._watch.beat(made_s, self._steady_s(), procedure)
        self._alone = False
        if self.core.armed:
            with suppress(OSError):  # the name that stands is one for this line too
                self._mark.set(procedure)

    def _take_reset(self, fields: Fields) -> None:
        fields.end()
        self._moves += 1
        error = self._unreadable
        if not error:
            try:
                self._latch.open()
            except OSError as why:
                error = f"the latch does not open: {why.strerror}"
        if not error:
            self.core.reset()
            self._unanswered = set()
            self._alone = False
        self._say({"say": "reset", "error": error})

    def _take_imported(self, fields: Fields) -> None:
        fields.end()
        self._log.clear()

    def _take_bye(self, fields: Fields) -> None:
        retire = fields.flag("retire")
        fields.end()
        self._part("the harness left while the line was armed")
        if self._harness is None and not self._alone:
            self._log.clear()
        if retire and not self.core.armed:
            self._leaving_s = self._steady_s() + LEAVE_S_MAX


_TAKES: dict[str, Callable[[ProcessGuard, Fields], None]] = {
    "send": ProcessGuard._take_send,
    "trip": ProcessGuard._take_trip,
    "repeat": ProcessGuard._take_repeat,
    "epoch": ProcessGuard._take_epoch,
    "arm": ProcessGuard._take_arm,
    "disarm": ProcessGuard._take_disarm,
    "beat": ProcessGuard._take_beat,
    "reset": ProcessGuard._take_reset,
    "imported": ProcessGuard._take_imported,
    "bye": ProcessGuard._take_bye,
}
