"""The guard as a process of its own: selectors around the core, a latch, and one harness.

It takes no decision but one: when an armed harness falls silent or its socket closes, it runs the
line's procedure by itself, latches, and sends again what was not answered.

Order of business in each turn: what arrived on the ports and from the harness, what is due on the
ports, whether the harness is overdue or deaf, and last what may wait for a disk.

Starting the guard process: its lock, its arming, its ports, its socket.
"""

import os
import selectors
import shlex
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Thread

import labharness.safety.guard.armed as arming
import labharness.safety.guard.port_records as port_records
from labharness.core.clock import Chance, steady_s
from labharness.core.files.named import is_there, open_named, open_own
from labharness.core.vocabulary import Cause, Trip
from labharness.core.vocabulary.texts import CodedError, coded
from labharness.instruments.link import LinkLost, local
from labharness.instruments.link.descriptors import Descriptor, SerialDescriptor, TcpDescriptor
from labharness.instruments.link.identity import identify
from labharness.safety.guard.core import NotPermitted
from labharness.safety.guard.harness import (
    LOG_FILE,
    NEVER,
    HarnessSession,
    HarnessWatch,
    OfflineLog,
)
from labharness.safety.guard.latch import ArmedMarker, Latch
from labharness.safety.guard.messages import KEY_BYTES, BadFields, SocketLines
from labharness.safety.guard.port import SafeFrame
from labharness.safety.guard.ports import Ports
from labharness.safety.guard.service import Door, Notifier

NAP_S_MAX = 1.0  # longest wait for something to happen
LOOK_S = 0.02  # while a link is being opened, by a thread
REPEAT_S = 1.0  # a frame of a procedure that was not answered is sent again after this
REPEATS_MAX = 3600  # with ``once``; a guard that somebody keeps has the duty without end
PUTS_OFF_S = 15.0  # what a harness sends of a procedure puts the guard's own off so long
COME_S_MAX = 30.0  # with ``once``: how long to wait for the harness that asked for this guard
LEAVE_S_MAX = 5.0  # a guard that is told to stop waits this long for its procedure's answers
DISK_S_MAX = 10.0  # an unanswered procedure keeps the latch from the disk so long


class ProcessGuard:
    """One lab's guard.

    Args:
        armed: The arming: the reads and the procedures.
        digest: Digest of its text; harness and guard compare it.
        links: A link for each port, open or lost.
        state_dir: Directory of latch, marker and log.
        listener: The socket to which the harness connects.
        steady_s: The machine's steady clock.
        entropy: Returns random bytes for a key.
        once: End when the harness has gone and nothing is left to do.
        reset: The command that resets this lab.
    """

    def __init__(
        self,
        *,
        armed: arming.Armed,
        digest: str,
        links: Mapping[str, Descriptor],
        state_dir: Path,
        listener: socket.socket,
        steady_s: Callable[[], float],
        entropy: Callable[[int], bytes],
        once: bool,
        reset: str = "labharness reset",
    ) -> None:
        self.core = armed.core()
        self.steady_s = steady_s
        self.reads = {
            port.name: {request.frame: request for request in port.reads} for port in armed.ports
        }
        self.longest_s = {port.name: port.exchange_s_max for port in armed.ports}
        self.log = OfflineLog(state_dir / LOG_FILE)
        self._safe_table = armed.safe_table
        self._digest = digest
        self._listener = listener
        self._entropy = entropy
        self._once = once
        self._watch = HarnessWatch(armed.silence_s_max, armed.lost)
        self._latch_file = state_dir / "latch.json"
        self._port_latch = port_records.PortLatch(
            [port.address for port in armed.ports], state_dir, reset
        )
        self.latch = Latch.or_shut(self._latch_file, armed.safe_table, self._port_latch)
        self._marker = ArmedMarker(self.latch)
        self._selector = selectors.DefaultSelector()
        self.ports = Ports(self.core, links, self._selector, steady_s)
        self.ports.on_safe = self._safe
        self.ports.tell = self._tell
        self.ports.on_lost = self._link_lost
        self._notifier = Notifier()
        self._notify_s = 0.0
        self._session: HarnessSession | None = None
        self._procedure = ""  # the last one that ran
        self._disk_s = steady_s() + DISK_S_MAX  # from then on no procedure delays the disk
        self._repeat_s = NEVER  # time of the next look at unanswered frames
        self._repeats = 0
        self._alone = False
        self._ends: dict[SafeFrame, str] = {}  # how each frame of the procedure ended last
        self._save_s = 0.0
        self._served = False
        self._unused_s = steady_s()
        self._leaving_s = NEVER
        self._door = Door((state_dir / local.GUARD, state_dir))
        self._shut_out = False  # whether its loss was answered

    # ---- the loop

    def run(self) -> None:
        """Serve until told to stop, or with ``once`` until there is nothing left to do."""
        self.ports.watch()
        self._listener.setblocking(False)
        self._selector.register(self._listener, selectors.EVENT_READ, self._greet)
        near, far = self._heed_signals()
        self._begin()
        self._notifier.say("READY=1")
        self._serve()
        if self.core.armed:  # no other process would make it safe
            self._lose("the guard left while the line was armed")
            self._leaving_s = self.steady_s() + LEAVE_S_MAX
            self._serve()
        self._notifier.say("STOPPING=1")
        self._drop()
        self._save_s = 0.0
        self._marker.wait(LEAVE_S_MAX)
        self._write_down(self.steady_s())
        signal.set_wakeup_fd(-1)
        for each in (near, far, self._listener):
            each.close()
        self.ports.close()
        self._selector.close()

    def _serve(self) -> None:
        while not self._is_over():
            ready = self._selector.select(self._nap_s())
            # ports first (bare descriptors): what came unasked is heard before the next question
            for key, _ in sorted(ready, key=lambda each: not isinstance(each[0].fileobj, int)):
                key.data()
            self._keep_time()

    def _begin(self) -> None:
        """Run a procedure first after a crash with the line armed, or with a latch set.

        A latch names the procedure that ran last. The marker names the procedure for silence; it
        counts only without a latch.
        """
        trip = self.latch.trip
        if trip is None:
            return
        procedure = self._known(trip.procedure)
        self._send_procedure(procedure)
        self.log.add("began with the safe table", procedure=procedure, why=coded(trip.detail))
        self._look_again(REPEAT_S, alone=True)

    def _nap_s(self) -> float:
        nap_s_max = LOOK_S if self.ports.may_reopen else NAP_S_MAX
        due_s = min(self.ports.due_s, self._watch.due_s)
        due_s = min(due_s, self._repeat_s, self._leaving_s, self._notify_s)
        return min(max(due_s - self.steady_s(), 0.0), nap_s_max)

    def _keep_time(self) -> None:
        now = self.steady_s()
        self.ports.expire(now)
        if self._watch.overdue(now):
            self._lose(f"the harness was silent for {now - self._watch.heard_s:.3f} s")
        self._door.look(now)
        if self._door.lost and not self._shut_out:
            self._lose_door(self._door.lost)
        if now >= self._repeat_s:
            self._repeat(now)
        if now >= self._notify_s:
            self._notifier.say("WATCHDOG=1")
            self._notify_s = now + self._notifier.every_s
        if self.ports.may_reopen:
            self.ports.reopen()
        if self._session is not None:
            self._session.settle()
        if not self.ports.making_safe:
            self._disk_s = now + DISK_S_MAX
            self._write_down(now)
        elif now >= self._disk_s:
            self._write_down(now)

    def _write_down(self, now: float) -> None:
        """Write the latch, marker and log; until then the marker stands for the latch."""
        if self.latch.write_error and now >= self._save_s:
            self._save_s = now + REPEAT_S
            self.latch.saved()
            self._tell("status")
        if self.core.armed and not self.core.latched:
            self._marker.follow(now)
            return  # the log waits in memory: a trip may come, and waits for no disk
        if not self.core.armed and self.latch.marker is not None and not self._marker.busy:
            self.latch.clear_marker()
        self.log.flush()

    def _is_over(self) -> bool:
        now = self.steady_s()
        if self._leaving_s < NEVER:
            return not self.ports.busy or now >= self._leaving_s
        if self._shut_out and self._session is None and not self.ports.busy:
            return not self._owes()
        if not self._once or self._session is not None or self.ports.busy:
            return False
        if self._owes() and self._repeats <= REPEATS_MAX:
            return False
        return self._served or now - self._unused_s > COME_S_MAX

    def _heed_signals(self) -> tuple[socket.socket, socket.socket]:
        near, far = socket.socketpair()
        near.setblocking(False)
        far.setblocking(False)

        def told_to_stop() -> None:
            near.recv(64)
            if self.core.armed:
                self._lose("the guard was told to stop while the line was armed")
            self._leaving_s = self.steady_s() + LEAVE_S_MAX

        signal.set_wakeup_fd(far.fileno(), warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
            signal.signal(number, lambda *_: None)
        for number in (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU):
            signal.signal(number, signal.SIG_IGN)  # a Ctrl-Z would leave an armed line
        self._selector.register(near, selectors.EVENT_READ, told_to_stop)
        return near, far

    # ---- making safe

    def trip(self, procedure: str, read: Callable[[], Trip]) -> None:
        """Run a procedure for the harness, and only then read the reason.

        Raises:
            BadFields: The reason cannot be read; the line is safe and latched all the same.
        """
        self._send_procedure(procedure)
        self._look_again(PUTS_OFF_S, alone=False)
        try:
            trip = read()
        except BadFields as why:
            self.latch.hold(self._trip_of("harness", str(why), procedure))
            raise
        self.latch.hold(trip)
        self.log.add("tripped", procedure=procedure, why=coded(trip.detail))

    def repeat(self, frames: Sequence[SafeFrame]) -> None:
        """Send frames of the procedure in force for a harness, which repeats them by itself."""
        self.ports.repeat(frames)
        self._look_again(PUTS_OFF_S, alone=False)

    def _send_procedure(self, procedure: str) -> None:
        self._ends.clear()
        self.ports.trip(procedure)
        self._procedure = procedure

    def _lose(self, why: str) -> None:
        """Act without the harness: make safe, latch and disarm; the record comes after."""
        procedure = self._known(self._procedure if self.core.latched else self._watch.procedure)
        trip = self._trip_of("harness", why, procedure)
        self._send_procedure(procedure)
        self.latch.hold(trip)
        self.core.disarm()
        self._watch.heard_s = NEVER
        self._look_again(REPEAT_S, alone=True)
        self.log.add("tripped by itself", procedure=procedure, why=why)
        self._tell("tripped", trip=trip)

    def _lose_door(self, why: str) -> None:
        """Make safe: a process that wants to stop or see this line cannot reach its guard."""
        self._shut_out = True
        if self.core.armed:
            self._lose(why)
        self.log.add("door lost", why=why)
        with suppress(OSError, ValueError):
            sys.stderr.write(f"labharness guard: {why}; it ends when its work is done\n")

    def _look_again(self, after_s: float, *, alone: bool) -> None:
        """Repeat the procedure after a time, and read it back too where no harness does."""
        self._alone = alone
        self._repeats = 0
        self._repeat_s = self.steady_s() + after_s

    def _owes(self) -> bool:
        return self.core.latched and self.ports.duty.left(reading=self._alone)

    def _repeat(self, now: float) -> None:
        self._repeat_s = now + REPEAT_S
        self._repeats += 1
        given_up = self._once and self._repeats > REPEATS_MAX
        if self._owes() and not given_up:
            self.ports.insist(reading=self._alone)

    def _known(self, procedure: str) -> str:
        return procedure if procedure in self.core.procedures else self._safe_table

    def _trip_of(self, channel: str, why: str, procedure: str) -> Trip:
        return Trip(Cause.COMMUNICATION, procedure, channel, None, self.steady_s(), why)

    # ---- what a harness asks

    def arm(self, procedure: str) -> None:
        """Let permits be taken, and watch the harness from now on.

        Raises:
            OSError: A latch or the armed marker could not be written.
            NotPermitted: The line is latched, a link is not open, or the guard is about to end.
        """
        if self._leaving_s < NEVER:
            raise NotPermitted("the guard is leaving")
        if self.latch.unreadable:
            raise NotPermitted(self.latch.unreadable)
        shut = self.ports.shut()
        if shut:
            raise NotPermitted(f"not all ports are open: {', '.join(shut)}")
        self._marker.wait()
        self.latch.probe()
        self.latch.set_marker(procedure)
        self._marker.wanted = procedure
        self.core.arm()
        self._watch.procedure = procedure
        self._watch.heard_s = self.steady_s()
        self._repeat_s = NEVER

    def disarm(self) -> None:
        """Take no more permits, and stop the watch; the marker goes in the disk's turn."""
        self.core.disarm()
        self._watch.heard_s = NEVER

    def heartbeat(self, made_s: float, procedure: str) -> None:
        """Take a heartbeat; it delays no repeat: a harness that only looks sends them too."""
        silence_s = self._watch.heartbeat(made_s, self.steady_s(), procedure)
        if silence_s:
            self._lose(f"the harness was silent for {silence_s:.3f} s")
            return
        self._marker.wanted = procedure

    def reset(self) -> str:
        """Open the latch; return the hindrance, ``""`` for none."""
        self._marker.wait()
        if self.latch.unreadable:
            self._read_latch_anew()
            if self.latch.unreadable:
                return self.latch.unreadable
        try:
            self.latch.open()
        except OSError as why:
            return f"the latch does not open: {why.strerror}"
        self.core.reset()
        self._watch.heard_s = NEVER  # nothing is armed any more
        self.ports.duty.end()
        self._repeat_s = NEVER
        return ""

    def _read_latch_anew(self) -> None:
        """Read the latch again: a person may have mended or removed the unreadable file."""
        fresh = Latch.or_shut(self._latch_file, self._safe_table, self._port_latch)
        if fresh.trip is None and self.latch.trip is not None:
            fresh.hold(self.latch.trip)  # it is removed, and holds until it is opened
        self.latch = fresh
        self._marker = ArmedMarker(fresh)

    def goodbye(self, *, retire: bool) -> None:
        """End a session whose harness leaves; its journal has the facts, so the log is cleared."""
        armed = self.core.armed
        kept = self._session is not None and self._session.imported
        self._part("the harness left while the line was armed")
        if kept and not armed:
            self.log.clear()
        if retire and not armed:
            self._leaving_s = self.steady_s() + LEAVE_S_MAX

    # ---- the harness

    def _greet(self) -> None:
        try:
            made, _ = self._listener.accept()
        except OSError:
            return
        if self._leaving_s < NEVER:
            made.close()  # it comes again, and finds the next guard
            return
        if self._session is not None:
            self._session.hear()  # it may have closed in this very turn
        if self._session is not None:
            with made, suppress(OSError):
                SocketLines(made).say({"say": "busy"})
            return
        key = self._entropy(KEY_BYTES)
        self.ports.want_closed()
        self.ports.reopen()  # it is told that they are not free yet
        self._session = HarnessSession(self, made, self._selector, key, self._part)
        self._session.welcome(self._digest)

    def _part(self, why: str) -> None:
        """End a session; a harness that left the line armed is lost."""
        self._drop()
        if self.core.armed:
            self._lose(why)

    def _drop(self) -> None:
        if self._session is not None:
            self._served = self._served or self._session.heard > 0
            self._session.close()
            self._session = None
            self.ports.forget()
            self._unused_s = self.steady_s()
            if self.core.latched and self.ports.duty.left(reading=False):
                self._look_again(REPEAT_S, alone=True)

    def _tell(self, what: str, **fields: object) -> None:
        """Send a message to the harness, where there is one."""
        if self._session is not None:
            self._session.say(what, **fields)

    def _safe(self, frame: SafeFrame, error: str) -> None:
        if self._ends.get(frame) != error:  # each second, for as long as it takes: once
            self._ends[frame] = error
            about = {"port": frame.port, "channel": frame.channel, "value": frame.value}
            self.log.add("safe frame", **about, error=error)
        if self._session is not None:
            self._session.safe(frame, error)

    def _link_lost(self, port: str, why: str) -> None:
        """Void all permits: another instrument may answer on that link next."""
        self.core.new_epoch()
        self.log.add("link lost", port=port, why=why)
        self._tell("lost", port=port, why=why)


LOCK_FILE = "guard.lock"
OPEN_S_MAX = 3.0
OWED_S_MAX = 0.2  # where a safe table is owed: an address that is gone holds the others up so long
REAL_TIME_PRIORITY = 1  # the lowest there is: above every ordinary process, below the system's own
HARNESSES_WAITING_MAX = 4  # at the door; one is let in, the others are told so


class CannotGuard(CodedError, RuntimeError, code="cannot_guard", usage=True):
    """The guard process cannot begin; the message says why, and what would help."""


def serve(state_dir: Path, *, once: bool, lab: str = "") -> None:
    """Guard the lab of a state directory, until told to stop.

    Args:
        state_dir: State directory of the lab.
        once: End with the harness that started this guard.
        lab: Its lab file, for the message about a port that is guarded or latched.

    Raises:
        CannotGuard: No arming, another guard, no port that opens, or no socket.
    """
    if os.name != "posix":
        raise CannotGuard("guard.posix")
    import fcntl

    locked, path = state_dir / LOCK_FILE, state_dir / arming.ARMED_FILE
    try:
        lock = os.fdopen(open_own(locked, os.O_RDWR), "r+b")
    except FileNotFoundError as why:
        raise CannotGuard("guard.no_folder", path=str(state_dir), why=why.strerror) from None
    except OSError as why:
        raise CannotGuard("pair", what=str(locked), why=why.strerror) from None
    with lock:
        try:
            fcntl.flock(lock.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise CannotGuard("guard.another", path=str(state_dir)) from None
        try:
            text = arming.read_whole(path)
            armed = arming.read_armed(text)
        except OSError as why:
            raise CannotGuard("guard.unarmed", path=str(path), why=why.strerror) from None
        except arming.BadArming as why:
            raise CannotGuard("guard.arming", path=str(path), why=str(why)) from None
        _go_first()
        ports = _taken(armed.ports, state_dir, lab)
        owed = is_there(state_dir / "latch.json") or is_there(state_dir / "guard.armed")
        try:
            with _listen(state_dir / local.GUARD) as listener:
                ProcessGuard(
                    armed=armed,
                    digest=arming.arming_digest(text),
                    links=_open_links(armed.ports, owed=owed),
                    state_dir=state_dir,
                    listener=listener,
                    steady_s=steady_s,
                    entropy=Chance(None).entropy,
                    once=once,
                    reset=f"labharness reset --name NAME --reason REASON --lab {shlex.quote(lab)}",
                ).run()
        finally:
            if ports is not None:
                ports.release()
            with suppress(OSError):
                (state_dir / local.GUARD).unlink()


def is_at_work(state_dir: Path) -> bool:
    """Return whether a guard process serves the lab of a state directory now."""
    import fcntl

    with suppress(OSError), open_named(state_dir / LOCK_FILE) as lock:
        try:
            fcntl.flock(lock.fileno(), fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _taken(
    ports: Sequence[arming.ArmedPort], state_dir: Path, lab: str
) -> port_records.PortLock | None:
    """Lock the ports for this guard; return ``None`` if no place of this machine takes a lock.

    Such a guard makes safe all the same, and is not armed: its latch has no place either.

    Raises:
        CannotGuard: Another lab's guard or harness has one.
    """
    found = [identify(port.address) for port in ports]
    home = os.path.realpath(state_dir)
    held = port_records.who_holds(found, port_records.LINE)
    if held is not None and held[1].get("state_dir") not in (None, home):
        raise _in_use(*held)
    who = {"pid": os.getpid(), "state_dir": home, "lab": lab}
    try:
        return port_records.PortLock(found, port_records.GUARD, who)
    except port_records.PortTaken as why:
        raise _in_use(why.port, why.who) from None
    except OSError:
        return None


def _in_use(port: str, who: Mapping[str, object]) -> CannotGuard:
    pid, home = who.get("pid", "of another account"), who.get("state_dir", "unknown")
    return CannotGuard("guard.port_in_use", port=port, pid=str(pid), home=str(home))


def _go_first() -> None:
    """Run before whatever else wants a processor, where the system lets us.

    The guard works for microseconds and sleeps; behind a fit or a build its trip would wait for
    their slices of 3 ms and more. The system keeps a twentieth for the others whatever happens
    (sched(7), "Limiting the CPU usage of real-time and deadline processes").
    """
    if sys.platform == "linux":
        with suppress(OSError):  # no right to it: the guard is as good as its neighbours
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(REAL_TIME_PRIORITY))


def _open_links(ports: Sequence[arming.ArmedPort], *, owed: bool) -> dict[str, Descriptor]:
    """Open every link, all at once; one that fails is opened again when a harness comes.

    A line is made safe through whatever opens, and none is armed until all have. Where none does
    and nothing is owed, there is nothing to guard.
    """
    links: dict[str, Descriptor] = {}
    failed: dict[str, str] = {}

    def open_one(name: str) -> None:
        failed[name] = "it does not open"  # a driver of the system's may raise anything
        try:
            links[name].open(OWED_S_MAX if owed else OPEN_S_MAX)
        except LinkLost as why:
            failed[name] = str(why)
        else:
            del failed[name]

    for port in ports:
        links[port.name] = TcpDescriptor(port.host, port.tcp_port)
        if port.link == "serial":
            links[port.name] = SerialDescriptor(port.path, port.baud, port.parity, port.stop_bits)
    openings = [Thread(target=open_one, args=(name,), daemon=True) for name in links]
    for each in openings:
        each.start()
    for each in openings:
        each.join()
    if failed and len(failed) == len(links) and not owed:
        raise CannotGuard("; ".join(f"port {name}: {failed[name]}" for name in links))
    return links


def _listen(path: Path) -> socket.socket:
    if len(os.fsencode(path)) > local.PATH_BYTES_MAX:
        raise CannotGuard("guard.long_path", path=str(path), most=local.PATH_BYTES_MAX)
    try:  # what stands there is of a guard that died; the lock says that none lives
        return local.listening_at(path, waiting=HARNESSES_WAITING_MAX)
    except OSError as why:
        raise CannotGuard("guard.no_socket", path=str(path), why=why.strerror or str(why)) from None
