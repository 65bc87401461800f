"""What an address is called on this machine, whichever file, account or name leads to it.

Two lab files that lead to one instrument find the same keys here: lock and latch of a line hang on
them. A key outlives the process; that of a latch outlives a restart of the machine as well.
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

__all__ = ["LinkAddress", "LinkIdentity", "identify", "is_here", "network_host"]

FIND_S_MAX = 0.2
"""For a name server: no procedure waits longer for the name of a lock."""

BY_ID = Path("/dev/serial/by-id")
"""udev's names stay with an adapter, whichever socket it is in."""

PTY_MAJORS = range(136, 144)
"""Unix98 pseudo-terminals (Linux, admin-guide/devices.rst): their numbers are given again."""

HERE = "here"
"""Stands for every address of this machine: 127.0.0.1, its name, its address on the network."""

VISA_SOCKET = re.compile(r"TCPIP\d*::(.+)::(\d+)::SOCKET", re.IGNORECASE)
VISA_SERIAL = re.compile(r"ASRL(/.+?)(?:::INSTR)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkAddress:
    """How a lab file names an address.

    Attributes:
        port: The port's name in the lab file.
        path: Device node of a serial port.
        host: Name or address on TCP.
        tcp_port: TCP port.
        url: Of a WebSocket.
        resource: Of VISA.
    """

    port: str
    path: str = ""
    host: str = ""
    tcp_port: int = 0
    url: str = ""
    resource: str = ""


@dataclass(frozen=True, slots=True)
class LinkIdentity:
    """One address of this machine.

    Attributes:
        port: What the lab file calls it.
        lock_keys: Who holds one of them has the address, for as long as the machine runs.
        latch_keys: A latch under one of them is on this instrument, after a restart too.
    """

    port: str
    lock_keys: tuple[str, ...]
    latch_keys: tuple[str, ...]


def identify(address: LinkAddress) -> LinkIdentity:
    """Find what an address is called here; takes ``FIND_S_MAX`` at most, and never fails."""
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
    """Return the host of a network address; ``""`` where it stays on this machine."""
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
    """Return whether an address is one of this machine: what may be bound to is."""
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
    """Return the keys of a device: its number now, and the name that stays with its adapter."""
    try:
        status = path.stat()
    except OSError:  # unplugged: its name is all there is
        name = path.name if path.parent == BY_ID else str(path.absolute())
        key = f"serial-{_plain(name)}"
        return key, key
    if not stat.S_ISCHR(status.st_mode):
        key = f"file-{status.st_dev}-{status.st_ino}"
        return key, key
    major, minor = os.major(status.st_rdev), os.minor(status.st_rdev)
    if major in PTY_MAJORS:
        key = f"pty-{major}-{minor}-{status.st_ctime_ns}"  # made anew it is another instrument
        return key, key
    lock = f"device-{major}-{minor}"
    for each in sorted(_listed(BY_ID)):
        try:
            if each.stat().st_rdev == status.st_rdev:
                return lock, f"serial-{_plain(each.name)}"
        except OSError:  # unplugged meanwhile
            continue
    return lock, lock


def _listed(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _web(url: str) -> tuple[str, ...]:
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "wss" else 80)
    except ValueError:
        return (f"url-{_plain(url)}",)
    return _tcp(parts.hostname or "", port)


def _tcp(host: str, port: int) -> tuple[str, ...]:
    """Return a key for each address of a host; where it has none now, one for its name."""
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
    """Write an address in one way: an IPv4 one may come wrapped in IPv6."""
    found = ipaddress.ip_address(address.partition("%")[0])
    mapped = getattr(found, "ipv4_mapped", None)
    return str(mapped or found)


def _plain(text: str) -> str:
    """Write a text so that it is one name of a file."""
    return quote(text, safe="")[:200]
