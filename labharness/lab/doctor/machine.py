"""Looks up facts about this machine for the doctor, and changes nothing.

No instrument is asked. A serial port is opened and closed, a TCP or WebSocket port is
connected to; neither while another process owns the line.
"""

import asyncio
import os
import platform
import re
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, distribution, requires
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TypeVar

from labharness.core.clock import Clock, PacedLoop
from labharness.core.clock import run as run_on
from labharness.core.files.named import hold_alone
from labharness.core.vocabulary.extras import EXTRAS
from labharness.core.vocabulary.texts import Text
from labharness.instruments.link import LinkLost
from labharness.lab.config.account import account
from labharness.lab.config.lab_file import BadLabFile, PortRow, read_text
from labharness.lab.config.lab_plan import LabPlan
from labharness.lab.config.lock import LOCK_NAME
from labharness.lab.config.usable import unsigned, unusable
from labharness.lab.doctor.findings import (
    ClockFacts,
    FolderFacts,
    MachineFacts,
    SerialFacts,
)
from labharness.lab.doctor.latch import OwnerFacts, seen_latch, seen_owner
from labharness.lab.wiring.lab import real_link
from labharness.safety.guard import port_records
from labharness.safety.guard.harness import LOG_FILE, not_safe
from labharness.safety.guard.process import REPEAT_S, is_at_work
from labharness.work.admission.approval import BadApproval, read_approval
from labharness.work.admission.callers import BadCallers, read_callers

T = TypeVar("T")

REACH_S_MAX = 6.0
"""A link gives up by itself after 5 s; this bounds one that does not."""

WATCH_S = 0.05
"""Time (s) for which the clocks are watched."""

ASK_S_MAX = 2.0
"""Bound of a question to the system's time service."""

FILES_MAX = 1000
"""Files of the state directory whose times are looked at; it holds a handful."""

COMMAND_LETTERS_MAX = 60


def look(plan: LabPlan, runs: Path) -> MachineFacts:
    """Look up what ``examine`` needs; nothing is made, set or sent.

    Args:
        plan: The lab's files, read.
        runs: The folder that takes the folders of runs.
    """
    owner = _owner(plan)
    latch = seen_latch(plan, owned=owner.held)
    paths = [str(row.path) for row in plan.file.port if row.link == "serial"]
    named = plan.file.lab.callers
    callers = {} if named is None else _read(plan, named, read_callers)
    unreached, clock = run_on(_in_time(plan, owner), PacedLoop(1.0))
    return MachineFacts(
        python=platform.python_version(),
        missing=_missing(),
        modules=frozenset(name for name in EXTRAS if find_spec(name)),
        serial=_serial_ports(paths, in_use=owner.held) if os.name == "posix" else {},
        unreached=unreached,
        state=_folder(plan.state_dir, sync=True),
        runs=_folder(runs.absolute(), sync=False),
        clock=clock,
        owner=owner,
        latch=latch,
        not_safe=_not_safe(plan) if latch.trip is not None else (),
        callers=callers if isinstance(callers, str) else len(callers),
        approvals={path: _read(plan, path, read_approval) for path in plan.file.lab.approvals},
        user=account(),
        unusable=unusable(plan),
        unsigned=unsigned(plan),
        ports_not_kept=_ports_not_kept() if plan.addresses else "",
    )


def _missing() -> tuple[str, ...]:
    found = []
    for each in requires("labharness") or ():
        name, _, marker = each.partition(";")
        if "extra" in marker:
            continue
        (name,) = re.findall(r"^[\w.-]+", name)
        try:
            distribution(name)
        except PackageNotFoundError:
            found.append(name)
    return tuple(found)


# ---- checks that take time: reaching ports, and watching the clocks


async def _in_time(plan: LabPlan, owner: OwnerFacts) -> tuple[dict[str, str], ClockFacts]:
    clock = Clock(asyncio.get_running_loop())
    from_s, from_utc = clock.now_s(), clock.utc()
    rows = [row for row in plan.file.port if row.link in ("tcp", "websocket")]
    troubles = await asyncio.gather(*(_reach(row) for row in rows if not owner.held))
    await asyncio.sleep(WATCH_S)
    now_utc = clock.utc()
    facts = ClockFacts(
        now_utc=now_utc,
        wall_s=(now_utc - from_utc).total_seconds(),
        ticks_s=clock.now_s() - from_s,
        synchronised=await asyncio.to_thread(_synchronised),
    )
    return dict(zip((row.name for row in rows), troubles, strict=False)), facts


async def _reach(row: PortRow) -> str:
    """Return why a port does not connect; ``""`` when it does."""
    try:
        link = real_link(row)
    except (ImportError, ValueError) as why:
        return str(why)
    try:
        async with asyncio.timeout(REACH_S_MAX):
            await link.open()
    except (LinkLost, TimeoutError) as why:
        return str(why) or Text("machine.no_answer", name=row.name, reach_s_max=REACH_S_MAX)
    finally:
        link.close()
    return ""


def _synchronised() -> bool | None:
    """Ask systemd, which knows of every time service that disciplines the kernel's clock."""
    if shutil.which("timedatectl") is None:
        return None
    command = ["timedatectl", "show", "--property=NTPSynchronized", "--value"]
    try:
        said = subprocess.run(
            command, capture_output=True, text=True, timeout=ASK_S_MAX, check=False
        ).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return None
    return {"yes": True, "no": False}.get(said)


# ---- serial ports


def _serial_ports(paths: Sequence[str], *, in_use: bool) -> dict[str, SerialFacts]:
    folder = Path("/dev/serial/by-id")
    by_id = {str(each.resolve()): str(each) for each in folder.glob("*")}
    kinds = ("ttyUSB*", "ttyACM*", "ttyAMA*")
    present = tuple(sorted(str(each) for kind in kinds for each in Path("/dev").glob(kind)))
    held = _holders([Path(path) for path in paths])
    found = {}
    for path in paths:
        node = Path(path)
        try:
            status = node.stat()
        except OSError:
            found[path] = SerialFacts(exists=False, present=present)
            continue
        group, joined = _group(status)
        is_device = stat.S_ISCHR(status.st_mode)
        allowed = os.access(node, os.R_OK | os.W_OK)
        found[path] = SerialFacts(
            exists=True,
            is_device=is_device,
            allowed=allowed,
            group=group,
            joined=joined,
            held_by=held.get(str(node.resolve()), ""),
            trouble=_opens(node) if is_device and allowed and not in_use else "",
            by_id=by_id.get(str(node.resolve()), ""),
            present=present,
        )
    return found


def _opens(node: Path) -> str:
    """Return why this process cannot have the device for itself alone; ``""`` when it can."""
    try:
        handle = os.open(node, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        try:
            hold_alone(handle)
        finally:
            os.close(handle)
    except BlockingIOError:
        return Text("machine.locked")
    except OSError as why:
        return why.strerror or str(why)
    return ""


def _group(status: os.stat_result) -> tuple[str, bool]:
    """Return the group that may use a device, and whether the next log-in is in it."""
    import grp

    if status.st_mode & 0o060 != 0o060:
        return "", False
    try:
        entry = grp.getgrgid(status.st_gid)
    except KeyError:
        return "", False
    return entry.gr_name, account() in entry.gr_mem and status.st_gid not in os.getgroups()


def _holders(paths: Sequence[Path]) -> dict[str, str]:
    """Name the other processes that have a file open, as far as this user may see them."""
    wanted = {str(path.resolve()) for path in paths}
    found: dict[str, list[str]] = {}
    for process in Path("/proc").glob("[0-9]*") if wanted else ():
        if process.name == str(os.getpid()):
            continue
        with suppress(OSError):  # it ended meanwhile, or it is another user's
            targets = {os.readlink(each) for each in (process / "fd").iterdir()}
            for path in sorted(targets & wanted):
                found.setdefault(path, []).append(_process(process))
    return {path: ", ".join(each) for path, each in found.items()}


def _process(process: Path) -> str:
    words = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return Text("machine.process", name=process.name, words=words.strip()[:COMMAND_LETTERS_MAX])


# ---- folders and files


def _folder(path: Path, *, sync: bool) -> FolderFacts:
    there = path
    # unlike Path.exists, this takes what may not be looked into for absent
    while not os.path.exists(there) and there != there.parent:
        there = there.parent
    status = there.stat()
    exists, posix = there == path, os.name == "posix"
    writable = os.access(there, os.W_OK | os.X_OK)
    times = []
    if exists and there.is_dir() and os.access(there, os.R_OK | os.X_OK):
        for each in islice(there.iterdir(), FILES_MAX):
            with suppress(OSError):  # gone meanwhile
                times.append(each.stat().st_mtime)
    return FolderFacts(
        path=str(there),
        exists=exists,
        is_folder=there.is_dir(),
        writable=writable,
        mode=stat.S_IMODE(status.st_mode) if posix else 0o700,
        ours=not posix or status.st_uid == os.getuid(),
        filesystem=_filesystem(there),
        sync_trouble=_syncs(there) if sync and writable and there.is_dir() else "",
        free_bytes=shutil.disk_usage(there).free,
        newest=datetime.fromtimestamp(max(times), UTC) if times else None,
    )


def _syncs(folder: Path) -> str:
    """Return why a file does not reach the disk; one without a name is tried, as for a latch."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"labharness doctor")
            file.flush()
            os.fsync(file.fileno())
    except OSError as why:
        return why.strerror or str(why)
    return ""


def _filesystem(path: Path) -> str:
    """Find the kind of the mount a path lies on; its table is ``proc_pid_mountinfo(5)``."""
    try:
        lines = Path("/proc/self/mountinfo").read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return ""
    best, kind = "", ""
    for line in lines:
        before, _, after = line.partition(" - ")
        point = before.split()[4]
        if len(point) >= len(best) and path.resolve().is_relative_to(point):
            best, kind = point, after.split()[0]
    return kind


def _owner(plan: LabPlan) -> OwnerFacts:
    found, lock = seen_owner(plan), plan.state_dir / LOCK_NAME
    if not found.held or found.by or os.name != "posix":
        return found
    return replace(found, by=_holders([lock]).get(str(lock.resolve()), ""))


def _not_safe(plan: LabPlan) -> tuple[str, ...]:
    """Name each channel that a guard tries in vain to make safe, which only its log tells."""
    then = Text("machine.no_guard", lab=plan.option)
    if is_at_work(plan.state_dir):
        then = Text("machine.tries_again", repeat_s=REPEAT_S)
    return tuple(
        Text(
            "machine.not_safe",
            channel=each["channel"],
            port=each["port"],
            at=each["at"],
            error=each["error"],
            then=then,
        )
        for each in not_safe(plan.state_dir / LOG_FILE)
    )


def _ports_not_kept() -> str:
    """Return why what latches a port is not kept over a restart; ``""`` where it is."""
    kept, shared = port_records.KEPT_PLACE, port_records.SHARED_PLACE
    if not os.path.lexists(kept):
        return Text("machine.not_there", kept=str(kept), shared=str(shared))
    if not os.access(kept, os.R_OK | os.W_OK | os.X_OK):
        return Text("machine.not_ours", kept=str(kept), shared=str(shared))
    return ""


def _read(plan: LabPlan, path: str, read: Callable[[str], T]) -> T | str:
    """Return what a file of the lab says, or why it cannot be read."""
    try:
        return read(read_text(plan.beside(path)))
    except (BadApproval, BadCallers, BadLabFile) as why:
        return str(why)
