"""Starting the guard process: its lock, its arming, its ports, its socket."""

import os
import shlex
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Thread

from labharness.core.clock import Chance, steady_s
from labharness.core.errors import LabError
from labharness.core.files.named import is_there, open_named, open_own
from labharness.instruments.link import LinkLost
from labharness.instruments.link.descriptors import Descriptor, SerialDescriptor, TcpDescriptor
from labharness.instruments.link.identity import identify
from labharness.instruments.link.local import GUARD as GUARD_SOCKET
from labharness.instruments.link.local import PATH_BYTES_MAX, listening_at
from labharness.safety.guard.armed import (
    ARMED_FILE,
    ArmedPort,
    BadArming,
    arming_digest,
    read_armed,
    read_whole,
)
from labharness.safety.guard.port_records import GUARD, LINE, PortLock, PortTaken, who_holds
from labharness.safety.guard.process import ProcessGuard

LOCK_FILE = "guard.lock"
OPEN_S_MAX = 3.0
OWED_S_MAX = 0.2  # where a safe table is owed: an address that is gone holds the others up so long
REAL_TIME_PRIORITY = 1  # the lowest there is: above every ordinary process, below the system's own
HARNESSES_WAITING_MAX = 4  # at the door; one is let in, the others are told so


class CannotGuard(LabError, RuntimeError, code="cannot_guard"):
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
        raise CannotGuard("the guard process takes a POSIX system (Unix sockets and signals)")
    import fcntl

    try:
        lock = os.fdopen(open_own(state_dir / LOCK_FILE, os.O_RDWR), "r+b")
    except FileNotFoundError as why:
        raise CannotGuard(
            f"state directory {state_dir}: {why.strerror}; arm the lab first"
        ) from None
    except OSError as why:
        raise CannotGuard(f"{state_dir / LOCK_FILE}: {why.strerror}") from None
    with lock:
        try:
            fcntl.flock(lock.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise CannotGuard(f"another guard serves this lab already ({state_dir})") from None
        try:
            text = read_whole(state_dir / ARMED_FILE)
            armed = read_armed(text)
        except OSError as why:
            raise CannotGuard(
                f"{state_dir / ARMED_FILE}: {why.strerror}; arm the lab first"
            ) from None
        except BadArming as why:
            raise CannotGuard(f"{state_dir / ARMED_FILE}: {why}; arm the lab again") from None
        _go_first()
        ports = _taken(armed.ports, state_dir, lab)
        owed = is_there(state_dir / "latch.json") or is_there(state_dir / "guard.armed")
        try:
            with _listen(state_dir / GUARD_SOCKET) as listener:
                ProcessGuard(
                    armed=armed,
                    digest=arming_digest(text),
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
                (state_dir / GUARD_SOCKET).unlink()


def is_at_work(state_dir: Path) -> bool:
    """Return whether a guard process serves the lab of a state directory now."""
    import fcntl

    with suppress(OSError), open_named(state_dir / LOCK_FILE) as lock:
        try:
            fcntl.flock(lock.fileno(), fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _taken(ports: Sequence[ArmedPort], state_dir: Path, lab: str) -> PortLock | None:
    """Lock the ports for this guard; return ``None`` if no place of this machine takes a lock.

    Such a guard makes safe all the same, and is not armed: its latch has no place either.

    Raises:
        CannotGuard: Another lab's guard or harness has one.
    """
    found = [identify(port.address) for port in ports]
    home = os.path.realpath(state_dir)
    held = who_holds(found, LINE)
    if held is not None and held[1].get("state_dir") not in (None, home):
        raise CannotGuard(_told(*held))
    who = {"pid": os.getpid(), "state_dir": home, "lab": lab}
    try:
        return PortLock(found, GUARD, who)
    except PortTaken as why:
        raise CannotGuard(_told(why.port, why.who)) from None
    except OSError:
        return None


def _told(port: str, who: Mapping[str, object]) -> str:
    pid, home = who.get("pid", "of another account"), who.get("state_dir", "unknown")
    return f"port {port} is in use on this machine: process {pid}, lab with its state in {home}"


def _go_first() -> None:
    """Run before whatever else wants a processor, where the system lets us.

    The guard works for microseconds and sleeps; behind a fit or a build its trip would wait for
    their slices of 3 ms and more. The system keeps a twentieth for the others whatever happens
    (sched(7), "Limiting the CPU usage of real-time and deadline processes").
    """
    if sys.platform == "linux":
        with suppress(OSError):  # no right to it: the guard is as good as its neighbours
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(REAL_TIME_PRIORITY))


def _open_links(ports: Sequence[ArmedPort], *, owed: bool) -> dict[str, Descriptor]:
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
        link: Descriptor = TcpDescriptor(port.host, port.tcp_port)
        if port.link == "serial":
            link = SerialDescriptor(port.path, port.baud, port.parity, port.stop_bits)
        links[port.name] = link
    openings = [Thread(target=open_one, args=(name,), daemon=True) for name in links]
    for each in openings:
        each.start()
    for each in openings:
        each.join()
    if failed and len(failed) == len(links) and not owed:
        raise CannotGuard("; ".join(f"port {name}: {failed[name]}" for name in links))
    return links


def _listen(path: Path) -> socket.socket:
    if len(os.fsencode(path)) > PATH_BYTES_MAX:
        raise CannotGuard(
            f"{path} is longer than a socket's path may be ({PATH_BYTES_MAX} bytes): "
            "name a shorter state_dir in the lab file"
        )
    try:  # what stands there is of a guard that died; the lock says that none lives
        return listening_at(path, waiting=HARNESSES_WAITING_MAX)
    except OSError as why:
        raise CannotGuard(f"its socket {path} cannot be made: {why.strerror or why}") from None
