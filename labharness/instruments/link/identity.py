"""Keys that identify an address on this machine, the same for every lab file, account or name.

Two lab files that lead to one instrument get the same keys here; the lock and the latch of a port
use them. A lock key outlives the process, a latch key also a restart of the machine.
"""

import ipaddress
import os
import re
import socket
import stat
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from urllib.parse import quote, urlsplit

FIND_S_MAX = 0.2
"""Longest wait for a name server; no procedure waits longer for a lock's name."""

BY_ID = Path("/dev/serial/by-id")
"""udev's names follow an adapter from socket to socket."""

PTY_MAJORS = range(136, 144)
"""Unix98 pseudo-terminals (Linux, admin-guide/devices.rst); their numbers are reused."""

HERE = "here"
"""Replaces every address of this machine: 127.0.0.1, its name, its network address."""

VISA_SOCKET = re.compile(r"TCPIP\d*::(.+)::(\d+)::SOCKET", re.IGNORECASE)
VISA_SERIAL = re.compile(r"ASRL(/.+?)(?:::INSTR)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkAddress:
    """The address of a port in a lab file.

    Attributes:
        port: The port's name in the lab file.
        path: Device node of a serial port.
        host: Name or address on TCP.
        tcp_port: TCP port.
        url: URL of a WebSocket.
        resource: VISA resource.
    """

    port: str
    path: str = ""
    host: str = ""
    tcp_port: int = 0
    url: str = ""
    resource: str = ""


@dataclass(frozen=True, slots=True)
class LinkIdentity:
    """The keys of one address on this machine.

    Attributes:
        port: The port's name in the lab file.
        lock_keys: The holder of one of these locks owns the address, until the machine restarts.
        latch_keys: A latch under one of these keys is on this instrument, after a restart too.
    """

    port: str
    lock_keys: tuple[str, ...]
    latch_keys: tuple[str, ...]


def identify(address: LinkAddress) -> LinkIdentity:
    """Return the keys of an address; takes ``FIND_S_MAX`` at most, and never fails."""
    visa_serial = VISA_SERIAL.fullmatch(address.resource)
    visa_socket = VISA_SOCKET.fullmatch(address.resource)
    if address.path or visa_serial:
        lock, latch = _serial(Path(address.path or visa_serial[1]))  # type: ignore[index]  # one of two
        return LinkIdentity(address.port, (lock,), (latch,))
    if address.host:
        keys = _tcp(address.host, address.tcp_port)
    elif visa_socket:
        keys = _tcp(visa_socket[1], int(visa_socket[2]))
    elif address.url:
        keys = _web(address.url)
    else:
        keys = (f"visa-{_plain(address.resource.upper())}",)
    return LinkIdentity(address.port, keys, keys)


def network_host(address: LinkAddress) -> str:
    """Return the host of a network address, or ``""`` if it is on this machine."""
    visa_socket = VISA_SOCKET.fullmatch(address.resource)
    host = address.host
    if address.url:
        try:
            host = urlsplit(address.url).hostname or address.url
        except ValueError:
            host = address.url
    elif visa_socket:
        host = visa_socket[1]
    elif address.resource.upper().startswith("TCPIP"):
        host = address.resource.partition("::")[2].partition("::")[0]
    if host.lower() == "localhost":
        return ""
    try:
        return "" if ipaddress.ip_address(host.strip("[]")).is_loopback else host
    except ValueError:
        return host


def is_here(address: str) -> bool:
    """Return whether an address is one of this machine's: only those can be bound."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if found.is_loopback or found.is_unspecified:
        return True
    family = socket.AF_INET6 if found.version == 6 else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((str(found), 0))
    except OSError:
        return False
    return True


def _serial(path: Path) -> tuple[str, str]:
    """Return the keys of a device: its present number, and the name that follows its adapter."""
    try:
        status = path.stat()
    except OSError:  # unplugged: only its name is known
        name = path.name if path.parent == BY_ID else str(path.absolute())
        key = f"serial-{_plain(name)}"
        return key, key
    if not stat.S_ISCHR(status.st_mode):
        key = f"file-{status.st_dev}-{status.st_ino}"
        return key, key
    major, minor = os.major(status.st_rdev), os.minor(status.st_rdev)
    if major in PTY_MAJORS:
        # a new terminal of the same number is another instrument
        key = f"pty-{major}-{minor}-{status.st_ctime_ns}"
        return key, key
    lock = f"device-{major}-{minor}"
    for each in sorted(BY_ID.glob("*")):
        try:
            if each.stat().st_rdev == status.st_rdev:
                return lock, f"serial-{_plain(each.name)}"
        except OSError:  # unplugged meanwhile
            continue
    return lock, lock


def _web(url: str) -> tuple[str, ...]:
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "wss" else 80)
    except ValueError:
        return (f"url-{_plain(url)}",)
    return _tcp(parts.hostname or "", port)


def _tcp(host: str, port: int) -> tuple[str, ...]:
    """Return one key per address of a host; if it has no address now, a key from its name."""
    found: list[str] = []

    def ask() -> None:
        try:
            rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            return
        found.extend(str(row[4][0]) for row in rows)

    try:
        found.append(str(ipaddress.ip_address(host.strip("[]"))))
    except ValueError:
        asking = Thread(target=ask, daemon=True)
        asking.start()
        asking.join(FIND_S_MAX)
    hosts = {HERE if is_here(each) else _written(each) for each in (*found,)}
    return tuple(sorted(f"tcp-{_plain(each)}-{port}" for each in hosts or {host.lower()}))


def _written(address: str) -> str:
    """Return one form of an address; IPv4 may come wrapped in IPv6."""
    found = ipaddress.ip_address(address.partition("%")[0])
    mapped = getattr(found, "ipv4_mapped", None)
    return str(mapped or found)


def _plain(text: str) -> str:
    """Escape a text so that it is a valid file name."""
    return quote(text, safe="")[:200]
