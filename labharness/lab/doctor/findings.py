"""What a lab lacks before it can be used: findings, each with its remedy, over facts looked up."""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Literal

from labharness.core.clock import VIRTUAL_EPOCH
from labharness.core.vocabulary.extras import ALERT_NEEDS, EXTRAS, LINK_NEEDS
from labharness.lab.config.hazards import HazardRow
from labharness.lab.config.lab_facts import repository_key
from labharness.lab.config.lab_file import PortRow
from labharness.lab.config.lab_plan import LabPlan
from labharness.lab.config.unverified import unverified_drivers
from labharness.lab.doctor.looked_up import (
    LatchFacts,
    MachineFacts,
    OwnerFacts,
    SerialFacts,
)
from labharness.lab.wiring.arming import GUARDED
from labharness.safety.alarm import Severity
from labharness.safety.guard.port_records import KEPT_PLACE
from labharness.work.admission.approval import (
    Approved,
    RequestFacts,
    StandingApproval,
    public_key_of,
    verify,
)

__all__ = ["Check", "examine"]

RELEASED = datetime(2026, 1, 1, tzinfo=UTC)
"""No clock that is right shows less; the year of this version."""

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
"""Who may write in the folder can take the latch away; who may read it learns what was done. That
of a real line is its group's as well: each of its accounts finds the latch that another left."""

REMOTE_FILESYSTEMS = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ceph", "9p"})
MEMORY_FILESYSTEMS = frozenset({"tmpfs", "ramfs"})

STEADY_SERIAL = "/dev/serial/"
"""Names below stay with the instrument; ``ttyUSB0`` goes to whichever is plugged in first."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at.

    Attributes:
        about: What: ``port heat``, ``clock``.
        said: What was found.
        fix: What to do about it; ``""`` where nothing need be done.
        known: Whether it could be found out at all.
    """

    about: str
    said: str
    fix: str = ""
    known: bool = True

    @property
    def state(self) -> Literal["ok", "finding", "unknown"]:
        """Return how it stands; what is not known is no finding."""
        if not self.known:
            return "unknown"
        return "finding" if self.fix else "ok"


def examine(plan: LabPlan, seen: MachineFacts) -> tuple[Check, ...]:
    """Say of everything a run needs whether it is there, and what to do where it is not."""
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
        _owner(plan, seen.owner),
        _latch(plan, seen.latch),
        *_proof_tests(plan, seen),
        *_approvals(plan, seen),
        *_alerts(plan, seen),
        _callers(plan, seen.callers),
    )


def _software(plan: LabPlan, seen: MachineFacts) -> Iterator[Check]:
    if seen.missing:
        said = f"Python {seen.python} lacks {', '.join(seen.missing)}"
        yield Check("python", said, f"python -m pip install {' '.join(seen.missing)}")
    else:
        yield Check("python", f"{seen.python}, with all that labharness requires")
    for link in plan.links:
        module = LINK_NEEDS.get(link, "")
        if not module:
            continue
        if module in seen.modules:
            yield Check("packages", f"{module} is there, for links of kind {link}")
        else:
            said = f"{module} is missing: links of kind {link} cannot be opened"
            yield Check("packages", said, f"python -m {EXTRAS[module].command}")


def _unusable(plan: LabPlan, seen: MachineFacts) -> Iterator[Check]:
    for each in seen.unusable:
        yield Check("lab file", f"{each.where}: {each.what}", f"mend it in {plan.path}")


def _files(plan: LabPlan) -> Iterator[Check]:
    yield Check(
        "lab file",
        f"{plan.path}: {len(plan.file.instrument)} instruments on {len(plan.file.port)} ports",
    )
    findings, unclaimed = plan.check(), plan.unclaimed()
    for each in findings:
        fix = "change the poll, the baud rate or the limit; see"
        if each.paste:
            fix = "paste the lines that are printed by"
        about = "network" if each in unclaimed else "envelope"
        yield Check(about, str(each), f"{fix} labharness lab check{plan.option}")
    if not findings:
        said = "its times can be kept on these wires, and every procedure switches all energy off"
        yield Check("envelope", said)


def _drivers(plan: LabPlan, today: date) -> Iterator[Check]:
    """Ask once for each doubt: what is accepted by name and day stands as said, and no more."""
    found = tuple(unverified_drivers(plan))
    for each in found:
        if accepted := each.accepted_by(today):
            yield Check("drivers", f"{each.said}; {accepted}")
            continue
        yield Check(
            "drivers",
            each.said,
            "compare what it reads with the instrument's display before it may write: labharness "
            f"lab check --connect{plan.option}; then, in {plan.path}, under [[instrument]] "
            f"{each.instrument}: {each.to_paste(today)}",
        )
    if not found:
        yield Check("drivers", "no unverified driver is on a real link")


def _port(plan: LabPlan, row: PortRow, seen: MachineFacts) -> Iterator[Check]:
    about = f"port {row.name}"
    if row.link == "loopback":
        yield Check(about, "simulated")
    elif row.link == "serial":
        served = plan.file.operator.kind == "served"
        yield from _serial(about, str(row.path), seen, served=served)
    else:
        where = row.url or row.resource or f"{row.host}:{row.port}"
        trouble = seen.unreached.get(row.name)
        if trouble is None:
            why = "the line is in use" if seen.owner.held else "opening it would tell nothing"
            yield Check(about, f"{row.link} {where}: not tried, {why}", known=False)
        elif trouble:
            yield Check(
                about,
                trouble,
                "see that the instrument is on, the cable in, and the address in the lab file its "
                "own",
            )
        else:
            yield Check(about, f"{row.link} {where}: connects")


def _serial(about: str, path: str, seen: MachineFacts, *, served: bool) -> Iterator[Check]:
    fact = seen.serial.get(path)
    if fact is None:
        yield Check(about, f"{path}: this system does not say how it stands", known=False)
    elif not fact.exists:
        there = ", ".join(fact.present) or "none"
        fix = f"plug it in and switch it on; serial devices that are there: {there}"
        yield Check(about, f"there is no {path}", fix)
    elif not fact.is_device:
        yield Check(about, f"{path} is no device", "name the device in the lab file")
    elif not fact.allowed:
        yield Check(about, f"{seen.user} may not read and write {path}", _join(fact, seen.user))
    elif seen.owner.held:
        yield Check(about, f"{path}: not tried, the line is in use", known=False)
    elif fact.held_by and served:
        yield Check(about, f"{path} is open in {fact.held_by}, which simulates the instruments")
    elif fact.held_by or fact.trouble:
        said = f"is open in {fact.held_by}" if fact.held_by else f"does not open: {fact.trouble}"
        fix = f"end that process; this names it: fuser -v {shlex.quote(path)}"
        if not fact.held_by:
            fix = f"pull its plug and put it in again, then: stty -F {shlex.quote(path)}"
        yield Check(about, f"{path} {said}", fix)
    else:
        yield Check(about, f"{path} opens")
    if fact is not None and fact.by_id and not path.startswith(STEADY_SERIAL):
        said = f"{path} is whichever was plugged in first"
        yield Check(about, said, f'in the lab file: path = "{fact.by_id}"')


def _join(fact: SerialFacts, user: str) -> str:
    if fact.joined:
        return f"log out and in again: {user} has joined group {fact.group} since"
    if fact.group:
        return f"sudo usermod -aG {fact.group} {user}, then log out and in again"
    return "ask who runs this computer for a udev rule that gives your group the device"


def _state_dir(plan: LabPlan, seen: MachineFacts) -> Iterator[Check]:
    folder = seen.state
    path, simulated = shlex.quote(folder.path), not plan.real_ports
    another = "set LABHARNESS_STATE to" if simulated else "in the lab file let state_dir name"
    if not folder.is_folder:
        fix = f"move away what is there, or {another} a folder"
        yield Check("state", f"{folder.path} is no folder", fix)
        return
    if not folder.writable:
        fix = f"sudo chown -R $USER {path}"
        if not folder.exists:  # what lies above it is not this lab's to give away
            fix = f"{another} a folder of your own" if simulated else _share(plan)
        yield Check("state", f"nothing can be written in {folder.path}", fix)
    elif folder.exists and not folder.ours and not (plan.real_ports and folder.mode & OF_GROUP):
        said = f"{folder.path} belongs to another user, who could take the latch away"
        yield Check("state", said, f"sudo chown -R $USER {path}")
    elif folder.exists and folder.mode & (OTHERS_WRITE if simulated else OTHERS_ALL):
        said = f"{folder.path} is open to other users ({folder.mode:04o})"
        yield Check("state", said, f"chmod {700 if simulated else 2770} {path}")
    elif folder.exists:
        readers = ", and others may read it" if folder.mode & OTHERS_ANY else " alone"
        if folder.mode & OF_GROUP:
            readers = " and its group's"
        yield Check("state", f"{folder.path} is ours{readers}")
    else:
        yield Check("state", f"the first run makes {plan.state_dir}")
    if folder.sync_trouble:
        said = f"a latch would not reach the disk: {folder.sync_trouble}"
        yield Check("state", said, f"make room, or {another} a folder on another disk")
    if simulated:
        return  # nothing real stays hot while a latch is forgotten
    kind = folder.filesystem
    if kind in REMOTE_FILESYSTEMS or kind in MEMORY_FILESYSTEMS:
        what = "another computer" if kind in REMOTE_FILESYSTEMS else "memory"
        said = f"{folder.path} lies in {what} ({kind}): a latch there may be lost with the power"
        yield Check("state", said, f"{another} a folder on a disk of this computer")
    if seen.ports_not_kept:
        yield Check("latch of ports", seen.ports_not_kept, _share(plan))
    else:
        yield Check("latch of ports", f"kept over a restart in {KEPT_PLACE}")


def _share(plan: LabPlan) -> str:
    """Return the one command that makes what all accounts of a real line share."""
    folders = " ".join(map(shlex.quote, (str(KEPT_PLACE), str(plan.state_dir))))
    return f"sudo install -d -m 2770 -g GROUP {KEPT_PLACE.parent} {folders}"


def _clock(seen: MachineFacts) -> Iterator[Check]:
    clock, newest = seen.clock, seen.state.newest
    set_it = "set the clock, and have it kept: sudo timedatectl set-ntp true"
    now = f"{clock.now_utc:%Y-%m-%d %H:%M} UTC"
    if clock.now_utc < RELEASED:
        said = f"the clock says {now}, before this version was made ({RELEASED:%Y})"
        yield Check("clock", said, set_it)
    elif newest is not None and newest - clock.now_utc > CLOCK_BACK_MAX:
        said = f"the clock says {now}; a file of the state directory is of {newest:%Y-%m-%d %H:%M}"
        yield Check("clock", said, set_it)
    elif clock.ticks_s <= 0 or abs(clock.wall_s - clock.ticks_s) > TICK_ERROR_MAX_S:
        said = f"the calendar went {clock.wall_s:.2f} s while the ticks went {clock.ticks_s:.2f} s"
        yield Check("clock", said, "look again; if it stays, see who sets the clock of this host")
    else:
        yield Check("clock", f"{now}, and it ticks")
    if clock.synchronised is None:
        yield Check("clock", "this system does not say if a time server keeps it", known=False)
    elif clock.synchronised:
        yield Check("clock", "kept by a time server")
    else:
        yield Check("clock", "no time server keeps it", "sudo timedatectl set-ntp true")


def _disk(plan: LabPlan, seen: MachineFacts) -> Iterator[Check]:
    per_hour = RUN_BYTES_PER_INSTRUMENT_HOUR * len(plan.instruments)
    need = per_hour * RUN_HOURS * RUN_MARGIN
    if not (seen.runs.is_folder and seen.runs.writable):
        said = f"no run can be written below {seen.runs.path}"
        yield Check("disk", said, "go to a folder of your own, or name one: --out DIR")
    for what, folder, bytes_min in (
        (f"a run of {RUN_HOURS:g} h takes", seen.runs, need),
        ("latch and lock take", seen.state, STATE_BYTES),
    ):
        said = f"{_mb(folder.free_bytes)} free at {folder.path}; {what} {_mb(bytes_min)}"
        short = folder.free_bytes < bytes_min
        yield Check("disk", said, f"make room at {folder.path}" if short else "")


def _guard(plan: LabPlan) -> Check:
    if not plan.real_ports:
        return Check("guard", "every port is simulated: the guard of the run suffices")
    far = [row.name for row in plan.file.port if row.link in GUARDED]
    near = [name for name in plan.real_ports if name not in far]
    if near and plan.file.lab.attended != "always":
        return Check(
            "guard",
            f"energising is refused on {', '.join(near)}: their drivers die with this process",
            "attend the lab, or bring them to a serial or TCP port",
        )
    said = f"the guard process holds {', '.join(far)}; run starts it" if far else ""
    return Check("guard", said or f"{', '.join(near)} stay in this process: attended work only")


def _owner(plan: LabPlan, owner: OwnerFacts) -> Check:
    if owner.trouble:
        path = shlex.quote(str(plan.state_dir / "line.lock"))
        return Check("owner", owner.trouble, f"sudo chown $USER {path}")
    if owner.held:
        return Check("owner", f"the line belongs to {owner.by or 'another process'}")
    if owner.left_behind:
        return Check("owner", "nobody; the lock file that is there holds nothing")
    return Check("owner", "nobody")


def _latch(plan: LabPlan, latch: LatchFacts) -> Check:
    if latch.hidden:
        return Check("latch", latch.trouble, known=False)
    if latch.trouble:
        fix = "find out what happened to the disk, then remove the file by hand"
        return Check("latch", latch.trouble, fix)
    if latch.trip is None:
        return Check("latch", "open")
    since = f" since {latch.since:%Y-%m-%d %H:%M} UTC" if latch.since else ""
    why = latch.trip.detail or f"{latch.trip.cause.value}: {latch.trip.channel}"
    fix = f"clear the cause, then: {plan.reset_command}"
    return Check("latch", f"latched{since}: {why}", fix)


def _proof_tests(plan: LabPlan, seen: MachineFacts) -> Iterator[Check]:
    named = plan.file.lab.hazards
    if named is None:
        yield Check("proof tests", "nothing on this line may harm")
    elif not plan.hazards.hazard:
        said = f"{plan.beside(named)} lists no hazard"
        yield Check("proof tests", said, "write down what could go wrong")
    today = _today(plan, seen)
    for row in plan.hazards.hazard:
        proof = f"labharness hazards proof {shlex.quote(row.name)} --name NAME --reason HOW"
        yield _proof_test(row, today, f"then: {proof}{plan.option}")


def _proof_test(row: HazardRow, today: datetime, note: str) -> Check:
    missing = row.missing(today.date())
    if not row.safeguard.strip():
        return Check(
            "proof tests",
            missing,
            "build one before any unattended run, and write it into the hazard table",
        )
    last = row.last_proof(today.date())
    if missing or last is None:
        return Check("proof tests", missing, f"test it, {note}")
    left = row.proof_days - (today.date() - last.day).days
    said = f"{row.name}: due in {left} d"
    return Check("proof tests", said, f"test it, {note}" if left <= PROOF_SOON_DAYS else "")


def _approvals(plan: LabPlan, seen: MachineFacts) -> Iterator[Check]:
    if not seen.approvals:
        yield Check("approvals", "no standing approval: a person approves each task")
    for path, approval in seen.approvals.items():
        if path in seen.unsigned:
            yield Check("approvals", f"{plan.beside(path)} is not there", _sign_first(plan, path))
            continue
        if isinstance(approval, str):
            yield Check("approvals", f"{path}: {approval}", _sign(plan))
            continue
        facts = _exactly(approval, plan)
        found = verify(approval, facts, public_key_of(repository_key()), _today(plan, seen))
        if isinstance(found, Approved):
            said = f"{approval.id} holds for {approval.capability} until {approval.until}"
            yield Check("approvals", said)
        else:
            yield Check("approvals", found.reason, _sign(plan))


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
    take_out = f"take it out of {plan.path}: then a person approves each task"
    can_be_signed = plan.sign_again and path == plan.file.lab.approvals[0]
    return f"sign it: {plan.sign_again}; or {take_out}" if can_be_signed else take_out


def _sign(plan: LabPlan) -> str:
    if plan.sign_again:
        return f"read what was edited, then sign again: {plan.sign_again}"
    return "take it out of the lab file: on a real lab a person approves each task"


def _alerts(plan: LabPlan, seen: MachineFacts) -> Iterator[Check]:
    rows = plan.file.alert
    if rows and ALERT_NEEDS not in seen.modules:
        said = f"{ALERT_NEEDS} is missing: nobody can be told of an alarm"
        yield Check("alerts", said, f"python -m {EXTRAS[ALERT_NEEDS].command}")
    if not plan.real_ports:
        return
    grave = {Severity.CRITICAL, Severity.TRIP}
    names = [row.name for row in rows if row.level == 0 and grave <= set(row.severities)]
    if len(names) >= CHANNELS_MIN:
        yield Check("alerts", f"a trip is told at once on {', '.join(names)}")
        return
    said = f"a trip is told at once on {names[0]} alone" if names else "a trip is told to nobody"
    yield Check(
        "alerts",
        said,
        f"put {CHANNELS_MIN} [[alert]] of level 0 that take trip and critical into the lab file, "
        f"then: labharness alarms test{plan.option}",
    )


def _callers(plan: LabPlan, callers: int | str) -> Check:
    if plan.file.lab.callers is None:
        return Check("callers", "nothing on this line may harm: anybody may ask")
    path = plan.beside(plan.file.lab.callers)
    if isinstance(callers, str):
        return Check("callers", callers, f"mend {path}; see the one of the simulated lab")
    if not callers:
        return Check("callers", f"{path} names nobody: every task is rejected", "name one in it")
    return Check("callers", f"{callers} may ask")


def _today(plan: LabPlan, seen: MachineFacts) -> datetime:
    """Return the day that counts: a simulated run has the stated epoch's, not the calendar's."""
    return seen.clock.now_utc if plan.real_ports else VIRTUAL_EPOCH


def _mb(size: float) -> str:
    return f"{size / 1e6:,.0f} MB"
