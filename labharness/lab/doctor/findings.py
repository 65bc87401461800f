"""Turns facts about a lab's machine into findings, each with its remedy.

Facts about a machine that the doctor weighs: ports, folders, clocks, owner, latch, files.

Lists drivers with facts that no manual states, and their acceptance by a person.
"""

import hashlib
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Literal

from labharness.core.vocabulary.extras import ALERT_NEEDS, EXTRAS, LINK_NEEDS
from labharness.core.vocabulary.hours import ALWAYS
from labharness.core.vocabulary.texts import Param, Text
from labharness.lab.config.hazards import HazardRow
from labharness.lab.config.lab_facts import repository_key
from labharness.lab.config.lab_file import PLACEHOLDER, PortRow
from labharness.lab.config.lab_plan import LabPlan
from labharness.lab.config.wires import Finding
from labharness.lab.doctor.latch import LatchFacts, OwnerFacts
from labharness.lab.wiring.arming import GUARDED
from labharness.safety.alarm.board import Severity
from labharness.safety.guard.port_records import KEPT_PLACE
from labharness.work.admission.approval import (
    Approved,
    RequestFacts,
    StandingApproval,
    public_key_of,
    verify,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SerialFacts:
    """The facts of the system about a serial port.

    Attributes:
        exists: Whether there is such a name.
        is_device: Whether it is a character device.
        allowed: Whether this user may read and write it.
        group: The group that owns it; ``""`` where that group may not read and write it.
        joined: Whether this user is listed in that group, though this session does not know yet.
        held_by: The processes that have it open; ``""`` for none.
        trouble: Why it did not open; ``""`` where it did or was not tried.
        by_id: Its name below ``/dev/serial/by-id``; ``""`` where it has none.
        present: The names of all serial devices that are there.
    """

    exists: bool
    is_device: bool = False
    allowed: bool = False
    group: str = ""
    joined: bool = False
    held_by: str = ""
    trouble: str = ""
    by_id: str = ""
    present: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderFacts:
    """The facts of the system about a folder, or about the nearest one above that exists.

    Attributes:
        exists: Whether the folder itself does; if not, the rest is of the nearest above.
        is_folder: Whether what exists is a folder.
        writable: Whether this user may make files in it.
        mode: Permission bits.
        ours: Whether it belongs to this user.
        filesystem: Its kind; ``""`` where it is not known.
        sync_trouble: Why a file written there did not reach the disk; ``""`` where it did.
        free_bytes: Room for this user.
        newest: When the newest file in it was written.
    """

    path: str
    exists: bool
    is_folder: bool = True
    writable: bool = True
    mode: int = 0o700
    ours: bool = True
    filesystem: str = ""
    sync_trouble: str = ""
    free_bytes: int = 0
    newest: datetime | None = None


@dataclass(frozen=True, slots=True)
class ClockFacts:
    """The state of the clocks: the calendar, the progress of both, and the time service.

    ``synchronised`` is None where the system does not say.
    """

    now_utc: datetime
    wall_s: float
    ticks_s: float
    synchronised: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineFacts:
    """All facts that were looked up on this machine for one lab.

    Attributes:
        python: Its version.
        missing: Packages labharness requires that are not installed.
        modules: Those of the extras that can be imported.
        serial: By port.
        unreached: Why a TCP, WebSocket or VISA port cannot be reached, ``""`` where it can; a
            port that is not named was not tried.
        callers: How many the callers file names, or why it cannot be read.
        approvals: By path, each approval or why it cannot be read.
        user: The account of this process.
        unusable: Valid settings of the lab's files that no task and no alarm could use.
        unsigned: Those approvals that are missing.
        ports_not_kept: Why the latch of a real port may not outlive a restart; ``""`` if it does.
        not_safe: Channels that a guard tries in vain to make safe, with a sentence for each.
    """

    python: str
    missing: tuple[str, ...]
    modules: frozenset[str]
    serial: Mapping[str, SerialFacts]
    unreached: Mapping[str, str]
    state: FolderFacts
    runs: FolderFacts
    clock: ClockFacts
    owner: OwnerFacts
    latch: LatchFacts
    callers: int | str
    approvals: Mapping[str, StandingApproval | str]
    user: str
    unusable: tuple[Finding, ...] = ()
    unsigned: tuple[str, ...] = ()
    ports_not_kept: str = ""
    not_safe: tuple[str, ...] = ()


RELEASED = datetime(2026, 1, 1, tzinfo=UTC)
"""A correct clock shows at least this: the year of this version."""

CLOCK_BACK_MAX = timedelta(minutes=2)
"""A file's time and the clock's may differ by so much: another system may have written it."""

TICK_ERROR_MAX_S = 0.5
"""The lab's ticks and the calendar may differ by so much over the moment that was watched; a
larger step is somebody setting the clock, or a computer that was asleep."""

RUN_HOURS = 24.0
RUN_BYTES_PER_INSTRUMENT_HOUR = 600_000
"""Measured on the shipped line: 40.5 MB for the journal, its export and the report of 6.1 h with
11 instruments polled once a second."""

RUN_MARGIN = 2.0
"""A line that warns and is polled faster writes more; SQLite's log beside the journal too."""

STATE_BYTES = 10_000_000
"""Latch, lock and resets are kilobytes; a disk with less left is full at the next breath."""

PROOF_SOON_DAYS = 30

CHANNELS_MIN = 2
"""Of alert, told at once: when one is dead, the other says so."""

OTHERS_ANY, OTHERS_WRITE, OTHERS_ALL, OF_GROUP = 0o077, 0o022, 0o007, 0o020
"""An account that may write in the folder can remove the latch; one that may read it learns
its facts. With real ports the group has it too: each of its accounts finds the latch of another."""

REMOTE_FILESYSTEMS = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ceph", "9p"})
MEMORY_FILESYSTEMS = frozenset({"tmpfs", "ramfs"})

DOUBT_DIGITS = 8  # of the digest that names the doubt of a driver

STEADY_SERIAL = "/dev/serial/"
"""Names below stay with the instrument; ``ttyUSB0`` goes to whichever is plugged in first."""


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check.

    Attributes:
        about: Its subject: ``port heat``, ``clock``.
        said: The result.
        fix: The remedy; ``""`` where none is needed.
        known: Whether the check was possible.
    """

    about: str
    said: str
    fix: str = ""
    known: bool = True

    @property
    def state(self) -> Literal["ok", "finding", "unknown"]:
        """Return the mark of the result; an unknown result is not a fault."""
        if not self.known:
            return "unknown"
        return "finding" if self.fix else "ok"


def examine(plan: LabPlan, seen: MachineFacts) -> tuple[Check, ...]:
    """Return a finding for each thing that a run needs, with the remedy where it is missing."""
    return (
        *_software(plan, seen),
        *_files(plan),
        *_drivers(plan, seen.clock.now_utc.date()),
        *_unusable(plan, seen),
        *(check for row in plan.file.port for check in _port(plan, row, seen)),
        *_state_dir(plan, seen),
        *_clock(seen),
        *_disk(plan, seen),
        _guard(plan),
        *(Check("guard", each, Text("doctor.see_cable")) for each in seen.not_safe),
        _owner(plan, seen.owner),
        _latch(plan, seen.latch),
        *_proof_tests(plan, seen),
        *_approvals(plan, seen),
        *_alerts(plan, seen),
        _callers(plan, seen.callers),
    )


def _said(about: str, code: str, fix: str = "", /, **facts: Param) -> Check:
    """Return the result of a check as a text of this room."""
    return Check(about, Text(code, **facts), fix)


def _software(plan: LabPlan, seen: MachineFacts) -> Iterator[Check]:
    python = seen.python
    if seen.missing:
        add, known = f"python -m pip install {' '.join(seen.missing)}", ", ".join(seen.missing)
        yield _said("python", "doctor.python_lacks", add, python=python, known=known)
    else:
        yield _said("python", "doctor.python", python=python)
    for link in plan.links:
        module = LINK_NEEDS.get(link, "")
        if module in seen.modules:
            yield _said("packages", "doctor.module", module=module, link=link)
        elif module:
            add = f"python -m {EXTRAS[module].command}"
            yield _said("packages", "doctor.no_module", add, module=module, link=link)


def _unusable(plan: LabPlan, seen: MachineFacts) -> Iterator[Check]:
    mend = Text("doctor.mend", path=str(plan.path))
    for each in seen.unusable:
        yield Check("lab file", str(each), mend)


def _files(plan: LabPlan) -> Iterator[Check]:
    file, path = plan.file, str(plan.path)
    counts = {"instrument": len(file.instrument), "port": len(file.port)}
    yield _said("lab file", "doctor.lab", path=path, **counts)
    findings, unclaimed = plan.check(), plan.unclaimed()
    for each in findings:
        told = Text("doctor.paste" if each.paste else "doctor.change", option=plan.option)
        yield Check("network" if each in unclaimed else "envelope", str(each), told)
    if not findings:
        yield _said("envelope", "doctor.kept")


def _drivers(plan: LabPlan, today: date) -> Iterator[Check]:
    """Ask once for each doubt: one that is accepted by name and day is only reported.

    A later version of a driver may have another doubt, which is then asked for again.
    """
    accepted = {row.name: row.accepted for row in plan.file.instrument}
    for each, said in zip(plan.unverified(), plan.warnings(), strict=True):
        doubt = hashlib.sha256(each.driver.unverified.encode()).hexdigest()[:DOUBT_DIGITS]
        row = accepted[each.name]
        if row is not None and row.doubt == doubt and row.on <= today:
            by = Text("lab.accepted_by", by=row.by, on=row.on.isoformat())
            yield _said("drivers", "doctor.accepted", said=said, accepted=by)
            continue
        compare = Text(
            "doctor.compare",
            option=plan.option,
            path=str(plan.path),
            instrument=each.name,
            each=f'accepted = {{ by = "{PLACEHOLDER}", on = {today}, doubt = "{doubt}" }}',
        )
        yield Check("drivers", said, compare)
    if not plan.unverified():
        yield _said("drivers", "doctor.verified")


def _port(plan: LabPlan, row: PortRow, seen: MachineFacts) -> Iterator[Check]:
    about = Text("doctor.port", name=row.name)
    if row.link == "loopback":
        yield _said(about, "doctor.loopback")
    elif row.link == "serial":
        served = plan.file.operator.kind == "served"
        yield from _serial(about, str(row.path), seen, served=served)
    else:
        where = row.url or row.resource or f"{row.host}:{row.port}"
        trouble = seen.unreached.get(row.name)
        if trouble:
            yield Check(about, trouble, Text("doctor.see_cable"))
        elif trouble is not None:
            yield _said(about, "doctor.connects", link=row.link, where=where)
        else:
            why = Text("doctor.in_use" if seen.owner.held else "doctor.no_use")
            said = Text("doctor.untried", link=row.link, where=where, why=why)
            yield Check(about, said, known=False)


def _serial(about: str, path: str, seen: MachineFacts, *, served: bool) -> Iterator[Check]:
    fact = seen.serial.get(path)
    if fact is None:
        yield Check(about, Text("doctor.serial_unknown", path=path), known=False)
        return
    by, quoted = fact.held_by, shlex.quote(path)
    if not fact.exists:
        plug_in = Text("doctor.plug_in", there=", ".join(fact.present) or "none")
        yield _said(about, "doctor.no_port", plug_in, path=path)
    elif not fact.is_device:
        yield _said(about, "doctor.no_device", Text("doctor.name_device"), path=path)
    elif not fact.allowed:
        yield _said(about, "doctor.not_allowed", _join(fact, seen.user), user=seen.user, path=path)
    elif seen.owner.held:
        yield Check(about, Text("doctor.serial_in_use", path=path), known=False)
    elif by and served:
        yield _said(about, "doctor.served", path=path, held_by=by)
    elif by:
        end = Text("doctor.end_process", shlex=quoted)
        yield _said(about, "doctor.held", end, path=path, held_by=by)
    elif fact.trouble:
        pull = Text("doctor.pull_plug", shlex=quoted)
        yield _said(about, "doctor.shut", pull, path=path, trouble=fact.trouble)
    else:
        yield _said(about, "doctor.opens", path=path)
    if fact.by_id and not path.startswith(STEADY_SERIAL):
        steady = Text("doctor.steady", by_id=fact.by_id)
        yield _said(about, "doctor.first_plugged", steady, path=path)


def _join(fact: SerialFacts, user: str) -> str:
    if not fact.group:
        return Text("doctor.udev")
    return Text("doctor.log_in" if fact.joined else "doctor.join", user=user, group=fact.group)


def _state_dir(plan: LabPlan, seen: MachineFacts) -> Iterator[Check]:
    folder = seen.state
    path, simulated = shlex.quote(folder.path), not plan.real_ports
    another = Text("doctor.set_state" if simulated else "doctor.name_state")
    if not folder.is_folder:
        move = Text("doctor.move_away", another=another)
        yield _said("state", "doctor.no_folder", move, path=folder.path)
        return
    own = f"sudo chown -R $USER {path}"
    if not folder.writable:
        if not folder.exists:  # the lab may not change the rights of folders above it
            own = Text("doctor.own_folder", another=another) if simulated else _share(plan)
        yield _said("state", "doctor.no_writing", own, path=folder.path)
    elif not folder.exists:
        yield _said("state", "doctor.first_run", state_dir=str(plan.state_dir))
    elif not folder.ours and not (plan.real_ports and folder.mode & OF_GROUP):
        yield _said("state", "doctor.others_folder", own, path=folder.path)
    elif folder.mode & (OTHERS_WRITE if simulated else OTHERS_ALL):
        close = f"chmod {700 if simulated else 2770} {path}"
        yield _said("state", "doctor.open_folder", close, path=folder.path, mode=folder.mode)
    elif folder.mode & OF_GROUP:
        yield _said("state", "doctor.group_folder", path=folder.path)
    elif folder.mode & OTHERS_ANY:
        yield _said("state", "doctor.read_folder", path=folder.path)
    else:
        yield _said("state", "doctor.our_folder", path=folder.path)
    if folder.sync_trouble:
        move = Text("doctor.other_disk", another=another)
        yield _said("state", "doctor.no_sync", move, sync_trouble=folder.sync_trouble)
    if simulated:
        return  # nothing real stays hot while a latch is forgotten
    kind = folder.filesystem
    if kind in REMOTE_FILESYSTEMS or kind in MEMORY_FILESYSTEMS:
        what = "another computer" if kind in REMOTE_FILESYSTEMS else "memory"
        move = Text("doctor.this_disk", another=another)
        yield _said("state", "doctor.elsewhere", move, path=folder.path, what=what, kind=kind)
    if seen.ports_not_kept:
        yield Check("latch of ports", seen.ports_not_kept, _share(plan))
    else:
        yield _said("latch of ports", "doctor.ports_kept", kept_place=str(KEPT_PLACE))


def _share(plan: LabPlan) -> str:
    """Return the one command that makes the folder that all accounts of a real line share."""
    folders = " ".join(map(shlex.quote, (str(KEPT_PLACE), str(plan.state_dir))))
    return f"sudo install -d -m 2770 -g GROUP {KEPT_PLACE.parent} {folders}"


def _clock(seen: MachineFacts) -> Iterator[Check]:
    clock, newest = seen.clock, seen.state.newest
    set_it = Text("doctor.set_clock")
    now = f"{clock.now_utc:%Y-%m-%d %H:%M} UTC"
    if clock.now_utc < RELEASED:
        yield _said("clock", "doctor.old_clock", set_it, now=now, released=RELEASED.year)
    elif newest is not None and newest - clock.now_utc > CLOCK_BACK_MAX:
        written = f"{newest:%Y-%m-%d %H:%M}"
        yield _said("clock", "doctor.clock_back", set_it, now=now, newest=written)
    elif clock.ticks_s <= 0 or abs(clock.wall_s - clock.ticks_s) > TICK_ERROR_MAX_S:
        took = {"wall_s": clock.wall_s, "ticks_s": clock.ticks_s}
        yield _said("clock", "doctor.ticks", Text("doctor.look_again"), **took)
    else:
        yield _said("clock", "doctor.clock", now=now)
    if clock.synchronised is None:
        yield Check("clock", Text("doctor.clock_unknown"), known=False)
    elif clock.synchronised:
        yield _said("clock", "doctor.clock_kept")
    else:
        yield _said("clock", "doctor.clock_alone", "sudo timedatectl set-ntp true")


def _disk(plan: LabPlan, seen: MachineFacts) -> Iterator[Check]:
    per_hour = RUN_BYTES_PER_INSTRUMENT_HOUR * len(plan.instruments)
    need = per_hour * RUN_HOURS * RUN_MARGIN
    if not (seen.runs.is_folder and seen.runs.writable):
        yield _said("disk", "doctor.no_runs", Text("doctor.go"), path=seen.runs.path)
    for what, folder, bytes_min in (
        (Text("doctor.run_takes", run_hours=RUN_HOURS), seen.runs, need),
        (Text("doctor.latch_takes"), seen.state, STATE_BYTES),
    ):
        free, least = _mb(folder.free_bytes), _mb(bytes_min)
        short = folder.free_bytes < bytes_min
        fix = Text("doctor.make_room", path=folder.path) if short else ""
        facts = {"free_bytes": free, "path": folder.path, "what": what, "bytes_min": least}
        yield _said("disk", "doctor.room", fix, **facts)


def _guard(plan: LabPlan) -> Check:
    if not plan.real_ports:
        return _said("guard", "doctor.simulated")
    far = [row.name for row in plan.file.port if row.link in GUARDED]
    near = [name for name in plan.real_ports if name not in far]
    if near and plan.file.lab.attended != ALWAYS:
        return _said("guard", "doctor.near", Text("doctor.bring"), known=", ".join(near))
    if far:
        return _said("guard", "doctor.guarded", known=", ".join(far))
    return _said("guard", "doctor.attended", known=", ".join(near))


def _owner(plan: LabPlan, owner: OwnerFacts) -> Check:
    if owner.trouble:
        path = shlex.quote(str(plan.state_dir / "line.lock"))
        return Check("owner", owner.trouble, f"sudo chown $USER {path}")
    if owner.held:
        return _said("owner", "doctor.owned", by=owner.by or "another process")
    return _said("owner", "doctor.left_behind" if owner.left_behind else "doctor.nobody")


def _latch(plan: LabPlan, latch: LatchFacts) -> Check:
    if latch.hidden:
        return Check("latch", latch.trouble, known=False)
    if latch.trouble:
        return Check("latch", latch.trouble, Text("doctor.disk_trouble"))
    if latch.trip is None:
        return _said("latch", "doctor.latch_open")
    since = Text("doctor.since", since=f"{latch.since:%Y-%m-%d %H:%M}") if latch.since else ""
    why = latch.trip.detail or f"{latch.trip.cause.value}: {latch.trip.channel}"
    clear = Text("doctor.clear", reset_command=plan.reset_command)
    return _said("latch", "doctor.latched", clear, since=since, why=why)


def _proof_tests(plan: LabPlan, seen: MachineFacts) -> Iterator[Check]:
    named = plan.file.lab.hazards
    if named is None:
        yield _said("proof tests", "doctor.harmless")
    elif not plan.hazards.hazard:
        path = str(plan.beside(named))
        yield _said("proof tests", "doctor.no_hazard", Text("doctor.write_down"), path=path)
    today = seen.clock.now_utc.date()
    for row in plan.hazards.hazard:
        proof = f"labharness hazards proof {shlex.quote(row.name)} --name NAME --reason HOW"
        note = Text("doctor.then", proof=proof, option=plan.option)
        yield _proof_test(row, today, Text("doctor.test", note=note))


def _proof_test(row: HazardRow, today: date, test: str) -> Check:
    missing, last = row.missing(today), row.last_proof(today)
    if not row.safeguard.strip():
        return Check("proof tests", missing, Text("doctor.build"))
    if not missing and row.never_due:
        return _said("proof tests", "doctor.proof_simulated", name=row.name)
    if missing or last is None:
        return Check("proof tests", missing, test)
    left = row.proof_days - (today - last.day).days
    soon = test if left <= PROOF_SOON_DAYS else ""
    return _said("proof tests", "doctor.due", soon, name=row.name, left=left)


def _approvals(plan: LabPlan, seen: MachineFacts) -> Iterator[Check]:
    if plan.names_on_trust:
        yield _said("approvers", "approvers.only_names")
    if not seen.approvals:
        yield _said("approvals", "doctor.no_standing")
    sign = Text("doctor.no_signing")
    if plan.sign_again:
        sign = Text("doctor.sign_again", sign_again=plan.sign_again)
    for path, approval in seen.approvals.items():
        if path in seen.unsigned:
            gone = str(plan.beside(path))
            yield _said("approvals", "doctor.gone", _sign_first(plan, path), path=gone)
            continue
        if isinstance(approval, str):
            yield Check("approvals", Text("pair", what=path, why=approval), sign)
            continue
        facts = _exactly(approval, plan)
        found = verify(approval, facts, public_key_of(repository_key()), seen.clock.now_utc)
        if isinstance(found, Approved):
            covers = {"capability": approval.capability, "until": approval.until}
            yield _said("approvals", "doctor.holds", id=approval.id, **covers)
        else:
            yield Check("approvals", found.reason, sign)


def _exactly(approval: StandingApproval, plan: LabPlan) -> RequestFacts:
    """Ask for just what the approval covers, on the lab as it is: what is refused is the lab."""
    return RequestFacts(
        requester="labharness doctor",
        capability=approval.capability,
        risk_level=approval.risk_max,
        quantities=approval.input_limits,
        gases=approval.gases_allowed,
        envelope_digest=plan.envelope_digest,
        lab_digest=plan.lab_digest,
        link_kinds=plan.links,
    )


def _sign_first(plan: LabPlan, path: str) -> str:
    take_out = Text("doctor.take_out", path=str(plan.path))
    if plan.sign_again and path == plan.file.lab.approvals[0]:
        return Text("doctor.sign", sign_again=plan.sign_again, take_out=take_out)
    return take_out


def _alerts(plan: LabPlan, seen: MachineFacts) -> Iterator[Check]:
    rows = plan.file.alert
    if rows and ALERT_NEEDS not in seen.modules:
        add = f"python -m {EXTRAS[ALERT_NEEDS].command}"
        yield _said("alerts", "doctor.no_alerts", add, alert_needs=ALERT_NEEDS)
    if not plan.real_ports:
        return
    grave = {Severity.CRITICAL, Severity.TRIP}
    names = [row.name for row in rows if row.level == 0 and grave <= set(row.severities)]
    put = Text("doctor.put_alerts", channels_min=CHANNELS_MIN, option=plan.option)
    if len(names) >= CHANNELS_MIN:
        yield _said("alerts", "doctor.told", known=", ".join(names))
    elif names:
        yield _said("alerts", "doctor.told_one", put, names=names[0])
    else:
        yield _said("alerts", "doctor.told_nobody", put)


def _callers(plan: LabPlan, callers: int | str) -> Check:
    if plan.file.lab.callers is None:
        return _said("callers", "doctor.anybody")
    path = str(plan.beside(plan.file.lab.callers))
    if isinstance(callers, str):
        return Check("callers", callers, Text("doctor.mend_callers", path=path))
    if not callers:
        return _said("callers", "doctor.no_callers", Text("doctor.name_one"), path=path)
    return _said("callers", "doctor.callers", callers=callers)


def _mb(size: float) -> str:
    return f"{size / 1e6:,.0f} MB"
