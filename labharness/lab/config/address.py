"""Where a lab is: its id, its folders, and the ports that it shares with other labs' files.

A small client reads no more of a lab file than this. A line that was begun can therefore be seen
and stopped while its file is being edited.
"""

import hashlib
import os
import re
import shlex
import tomllib
from collections.abc import Container, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from labharness.core.files.named import open_named
from labharness.core.vocabulary.texts import CodedError, Text

if TYPE_CHECKING:
    from labharness.instruments.link.identity import LinkAddress, LinkIdentity
    from labharness.safety.guard.port_records import PortLatch

DEFAULT_LAB: Final = "labs/cvd_mos2/lab.toml"
LAB_ID: Final = r"^[a-z0-9][a-z0-9-]{0,62}$"
TEXT_BYTES_MAX: Final = 4 * 1024 * 1024
"""A lab file has a few kB; the log of proof tests grows by a line."""

PLACE_DIGITS: Final = 6
"""Of a digest: few labs of one account share a name, and the path of a socket must be short."""


class BadLabFile(CodedError, ValueError, code="bad_lab_file", usage=True):
    """A file of the lab cannot be honoured as it stands; the message says where and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabAddress:
    """A lab as its small clients know it.

    Attributes:
        path: The lab file.
        lab_id: Its id.
        state_dir: The folder of sockets, latch and approvals.
        ports: The addresses of the ports that lead to a real instrument.
        approvers_file: The file of the persons who approve by a key; ``None`` takes names on trust.
    """

    path: Path
    lab_id: str
    state_dir: Path
    ports: tuple["LinkAddress", ...] = ()
    approvers_file: Path | None = None

    @property
    def real_ports(self) -> tuple[str, ...]:
        """The names of the ports that lead to a real instrument."""
        return tuple(each.port for each in self.ports)

    @property
    def addresses(self) -> tuple["LinkAddress", ...]:
        """The names of the real ports; empty where a system has no such locks (Windows)."""
        return self.ports if os.name == "posix" else ()

    def identities(self) -> tuple["LinkIdentity", ...]:
        """Return the names of the real ports on this machine."""
        from labharness.instruments.link.identity import identify

        return tuple(identify(each) for each in self.addresses)

    def port_latch(self, ports: Container[str] | None = None) -> "PortLatch | None":
        """Return the latch of the real ports on this machine: of all, or of the named ones."""
        from labharness.safety.guard.port_records import PortLatch

        addresses = [each for each in self.addresses if ports is None or each.port in ports]
        reset = f"labharness reset --name NAME --reason REASON{self.option_anywhere}"
        return PortLatch(addresses, self.state_dir, reset) if addresses else None

    @property
    def option(self) -> str:
        """The option of a command for this lab: `` --lab FILE``, quoted; empty if the lab ships."""
        if self.path == default_lab_path():
            return ""
        return f" --lab {shlex.quote(str(self.path))}"

    @property
    def option_anywhere(self) -> str:
        """The option of a command for this lab that works in any folder."""
        return self.option and f" --lab {shlex.quote(str(self.path.resolve()))}"

    @property
    def reset_command(self) -> str:
        """The command that opens this lab's latch, once the cause is gone."""
        return f"labharness reset --name NAME --reason REASON{self.option}"


def default_lab_path() -> Path:
    """Return the path of the simulated lab that ships."""
    found = find_spec("labharness_envelopes")
    path = None if found is None else Path(str(found.origin)).parent / DEFAULT_LAB
    if path is None or not path.is_file():
        why = Text("kinds.not_held", path=DEFAULT_LAB)
        raise BadLabFile("lab.no_shipped", why=why)
    return path


def read_address(path: Path) -> LabAddress:
    """Read where a lab is, and nothing else of its file.

    Raises:
        BadLabFile: That much of it cannot be read; the message names every fault of the file.
    """
    text = read_text(path)
    try:
        said = tomllib.loads(text)
        head = said["lab"]
        ports = tuple(_port(row) for row in said.get("port", ()) if row["link"] != "loopback")
        named, approvers = head.get("state_dir"), head.get("approvers")
        found = LabAddress(
            path=path,
            lab_id=head["id"],
            state_dir=state_home(head["id"], named, path),
            ports=ports,
            approvers_file=None if approvers is None else path.parent / approvers,
        )
        stated = not ports or (named is not None and Path(named).is_absolute())
        usable = found.state_dir.is_absolute() and "\0" not in str(found.state_dir)
        if re.match(LAB_ID, found.lab_id) and stated and usable:
            return found
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RuntimeError):
        pass
    from labharness.lab.config.lab_plan import read_lab

    return read_lab(path)  # it says what is wrong


def _port(row: Mapping[str, Any]) -> "LinkAddress":
    from labharness.instruments.link.identity import LinkAddress

    fields = {name: row[name] for name in ("path", "host", "url", "resource") if name in row}
    found = LinkAddress(port=row["name"], tcp_port=row.get("port", 0), **fields)
    if (
        not all(isinstance(each, str) for each in fields.values())
        or type(found.tcp_port) is not int
    ):
        raise TypeError(row)
    return found


def read_text(path: Path) -> str:
    """Read a text file of the lab.

    Raises:
        BadLabFile: It cannot be read as UTF-8 text, or is too large for a file of a lab.
    """
    try:
        with open_named(path) as file:
            data = file.read(TEXT_BYTES_MAX + 1)
        if len(data) > TEXT_BYTES_MAX:
            raise BadLabFile("lab.too_large", path=str(path), text_bytes_max=TEXT_BYTES_MAX)
        return data.decode("utf-8")
    except OSError as why:
        raise BadLabFile("pair", what=str(path), why=why.strerror) from None
    except UnicodeDecodeError as why:
        raise BadLabFile("lab.not_utf8", path=str(path), reason=why.reason) from None


def state_home(lab: str, named: str | None, lab_file: Path) -> Path:
    """Return the directory where a lab's latch, arming and socket live.

    Two files of simulated labs are two labs, even with one id: two checkouts, or two environments,
    run the same example side by side.

    Args:
        lab: The lab's id.
        named: Its ``state_dir``.
        lab_file: The lab file.

    Raises:
        RuntimeError: This account has no home.
    """
    if named is not None:
        return Path(named).expanduser()
    place = hashlib.sha256(os.fsencode(os.path.realpath(lab_file))).hexdigest()[:PLACE_DIGITS]
    return account_home() / f"{lab}-{place}"


def account_home() -> Path:
    """Return the directory where labharness keeps what belongs to this account."""
    base = os.environ.get("LABHARNESS_STATE") or os.environ.get("XDG_STATE_HOME")
    home = Path(base) if base else Path.home() / ".local" / "state"
    return home / "labharness"
