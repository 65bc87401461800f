"""What a lab's files say, read and checked against each other; nothing is opened."""

import math
import os
import shlex
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from getpass import getuser
from pathlib import Path
from typing import Any

from labharness.driver import Channel, Cools, Driver
from labharness.guard import SafeFrame
from labharness.guard.armed import BadArming, must_be_stated, state_home
from labharness.guard.port_latch import PortLatch
from labharness.kernel import Envelope, EnvelopeInvalid, Role
from labharness.lab.ambient import in_the_room, room_of, units_of, unknown_room
from labharness.lab.envelope_patch import base_of, patch_line
from labharness.lab.envelopes import (
    KindLimits,
    LineFile,
    build_envelope,
    parse_kind,
    parse_line,
)
from labharness.lab.files import (
    BadLabFile,
    InstrumentRow,
    LabFile,
    digest,
    read_lab_file,
    read_text,
)
from labharness.lab.hazards import HazardTable, read_hazards
from labharness.lab.kinds import envelope_file, load_driver, shipped_file, shipped_line
from labharness.lab.lock import LineLock, Owner
from labharness.lab.programs import check_covered
from labharness.lab.proven import unproven
from labharness.lab.reads import unproven_reads
from labharness.lab.settings import check_fitting, check_plant
from labharness.line import (
    Contact,
    Finding,
    Instrument,
    PortTiming,
    Room,
    check_wires,
    compile_procedures,
)
from labharness.line.parts import channel_of
from labharness.link.identity import Identity, RoadName, identify, network_host
from labharness.vocabulary import OPERATOR
from labharness.vocabulary.channels import split_channel

__all__ = ["SAFE_TABLE", "LabPlan", "default_lab_path", "read_lab"]

DEFAULT_LAB = "labs/cvd_mos2/lab.toml"
SAFE_TABLE = "immediate_shutdown"
SHARED_MODE = 0o2770
"""Of the state directory of real ports: each account of its group drives, latches and resets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabPlan:
    """Everything a lab's files say, read and checked; nothing is opened.

    Attributes:
        path: The lab file.
        file: What it says.
        envelope: The line's rules.
        safety_envelope: The same in the words of HCP L3, as callers are told.
        instruments: The line's instruments, with their drivers.
        lab_digest: Over the lab file.
        envelope_digest: Over the line's envelope file, the one it is based on, and those of its
            kinds.
        hazards: The hazard table.
        state_dir: Where latch and approvals live.
        room: The room, against which pressures are stated.
        contacts: What its relays feed.
    """

    path: Path
    file: LabFile
    envelope: Envelope
    safety_envelope: Mapping[str, Any]
    instruments: tuple[Instrument, ...]
    lab_digest: str
    envelope_digest: str
    hazards: HazardTable
    state_dir: Path
    room: Room
    contacts: tuple[Contact, ...] = ()

    @property
    def by_name(self) -> dict[str, Instrument]:
        """The line's instruments, each by its name."""
        return {each.name: each for each in self.instruments}

    def procedures(self) -> dict[str, tuple[SafeFrame, ...]]:
        """Give the frames of every procedure, in order of hazard."""
        return compile_procedures(self.envelope, self.by_name)

    @property
    def timings(self) -> dict[str, PortTiming]:
        """What the wire of each port costs."""
        return {row.name: PortTiming(link=row.link, baud=row.baud) for row in self.file.port}

    @property
    def links(self) -> tuple[str, ...]:
        """The kinds of road this lab uses."""
        return tuple(sorted({row.link for row in self.file.port}))

    @property
    def real_ports(self) -> tuple[str, ...]:
        """The ports that lead to a real instrument."""
        return tuple(row.name for row in self.file.port if row.link != "loopback")

    @property
    def option(self) -> str:
        """What a command takes to mean this lab: `` --lab FILE``, quoted; nothing if it ships."""
        if self.path == default_lab_path():
            return ""
        return f" --lab {shlex.quote(str(self.path))}"

    def owner(self, folder: Path) -> Owner:
        """Say that this process drives the line, and writes into a folder."""
        return self._owner(str(folder.resolve()), "")

    def looker(self, does: str) -> Owner:
        """Say that this process has the line for a while, what it does, and drives nothing."""
        return self._owner("", does)

    def _owner(self, folder: str, does: str) -> Owner:
        home = os.path.realpath(self.state_dir)
        return Owner(os.getpid(), self.option_anywhere, folder, does, _account(), home)

    def lock(self, owner: Owner) -> LineLock:
        """Have the line to oneself, by whichever lab file others come to its ports.

        Raises:
            LineBusy: Another process has it.
            OSError: State directory or lock cannot be written.
        """
        drives = not owner.does  # who only looks, and who makes safe, waits for no other machine
        leases = [row.lease for row in self.file.port if row.lease and drives]
        return LineLock(self.state_dir, owner, self.identities(), leases)

    @property
    def roads(self) -> tuple[RoadName, ...]:
        """How the real ports are named; none where a system has no such locks (Windows)."""
        if os.name != "posix":
            return ()
        return tuple(row.road for row in self.file.port if row.link != "loopback")

    def identities(self) -> tuple[Identity, ...]:
        """Find what the real ports are on this machine."""
        return tuple(identify(road) for road in self.roads)

    def port_latch(self, ports: Container[str] | None = None) -> PortLatch | None:
        """Give the latch of real ports on this machine, of all or of those named."""
        roads = [road for road in self.roads if ports is None or road.port in ports]
        reset = f"labharness reset --name NAME --reason REASON{self.option_anywhere}"
        return PortLatch(roads, self.state_dir, reset) if roads else None

    @property
    def reset_command(self) -> str:
        """The command that opens this lab's latch, once the cause is gone."""
        return f"labharness reset --name NAME --reason REASON{self.option}"

    @property
    def option_anywhere(self) -> str:
        """How a command is told that it is for this lab, typed in whatever folder."""
        return self.option and f" --lab {shlex.quote(str(self.path.resolve()))}"

    @property
    def sign_again(self) -> str:
        """The command that signs its standing approval again; ``""`` where none may be signed."""
        if self.real_ports or not self.file.lab.approvals:
            return ""
        if self.path == default_lab_path():
            return "make approve-sim"
        return f"python -m labharness.lab.approve_sim {shlex.quote(str(self.path))}"

    def beside(self, path: str) -> Path:
        """Find a file that the lab file names."""
        return self.path.parent / path

    def make_state_dir(self) -> None:
        """Make the state directory: that of real ports for its group too, else for nobody else.

        Raises:
            OSError: It cannot be made.
        """
        if self.state_dir.is_dir():
            return
        self.state_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        if self.real_ports and os.name == "posix":
            self.state_dir.chmod(SHARED_MODE)

    def warnings(self) -> tuple[str, ...]:
        """Name the drivers on real links whose facts are not all from a manual."""
        return tuple(
            f"{each.name} ({each.kind}) is unverified: {each.driver.unverified}"
            for each in self.instruments
            if each.driver.unverified and each.port in self.real_ports
        )

    def check(self) -> tuple[Finding, ...]:
        """Compute wire times and staleness, prove the procedures, and give what does not hold."""
        return (
            *check_wires(self.envelope, self.instruments, self.timings, self.procedures()),
            *unproven(self.envelope, self.instruments, self.contacts),
            *self.unclaimed(),
            *unknown_room(self.room),
        )

    def unclaimed(self) -> tuple[Finding, ...]:
        """Name the ports over a network of which nothing keeps another machine away."""
        return tuple(
            Finding(
                f"port {row.name}",
                f"leads to {network_host(row.road)} over a network, and nothing says that no other "
                f"machine drives it: under [[port]] {row.name} state exclusive = true if the "
                'network is this machine\'s alone, or lease = "/PATH" of a file on a share of that '
                "host that each machine locks first",
                f'# under [[port]] name = "{row.name}":\nexclusive = true',
            )
            for row in self.file.port
            if network_host(row.road) and not (row.exclusive or row.lease)
        )

    def must_hold(self) -> None:
        """Refuse a lab of which something does not hold.

        Raises:
            BadLabFile: Says every such thing.
        """
        findings = self.check()
        if findings:
            said = "; ".join(map(str, findings))
            paste = f"; labharness lab check{self.option} prints the lines to paste"
            more = paste if any(each.paste for each in findings) else ""
            raise BadLabFile(f"{self.path}: {said}{more}")


def default_lab_path() -> Path:
    """Give the path of the simulated lab that ships."""
    try:
        return Path(str(shipped_file(DEFAULT_LAB)))
    except LookupError as why:
        raise BadLabFile(f"the simulated lab is not there: {why}") from None


def read_lab(path: Path) -> LabPlan:
    """Read a lab file and all it names.

    Raises:
        BadLabFile: Something in it cannot be honoured; says what, where, and what is allowed.
    """
    file, lab_text = read_lab_file(path)
    instruments = tuple(_instrument(path, row) for row in file.instrument)
    check_plant(file, str(path))
    _one_address_each(path, instruments)
    kind_texts: dict[str, str] = {}
    limits: dict[str, KindLimits] = {}
    try:
        for each in instruments:
            if each.kind not in kind_texts:
                kind_texts[each.kind] = envelope_file(each.kind).read_text("utf-8")
            limits[each.name] = _renamed(
                parse_kind(kind_texts[each.kind], f"envelope of {each.kind}"), each.driver
            )
        line, line_texts = _line(file.lab.line, path)
        _all_limited(line, instruments)
        _all_there(line, instruments)
        units = units_of(instruments)
        ruled, known_torr = in_the_room(line, units, file.lab.ambient_torr)
        envelope = build_envelope(
            ruled,
            limits,
            _settable(instruments),
            volume_cm3=file.tube.volume_cm3,
        )
        _known_channels(envelope, instruments)
        room = room_of(ruled, known_torr, envelope, units)
        contacts = _contacts(line, instruments)
        cools = _cooling(line, instruments)
        check_covered(envelope, instruments)
        procedures = compile_procedures(envelope, {each.name: each for each in instruments})
        real = tuple(row.name for row in file.port if row.link != "loopback")
        for why in unproven_reads(instruments, envelope, procedures, real):
            raise BadLabFile(f"{path}: {why}")
    except (EnvelopeInvalid, LookupError) as why:
        raise BadLabFile(f"{path}: {why}") from None
    instruments = tuple(
        replace(
            each,
            fed_by=tuple(row for row in contacts if each.name in row.feeds),
            cools=tuple(cools[name] for name in cools if name.startswith(f"{each.name}.")),
        )
        for each in instruments
    )
    return LabPlan(
        path=path,
        file=file,
        envelope=envelope,
        room=room,
        safety_envelope=line.safety_envelope.to_json(file.lab.ambient_torr),
        instruments=instruments,
        lab_digest=digest(lab_text),
        envelope_digest=digest(*line_texts, *(kind_texts[kind] for kind in sorted(kind_texts))),
        hazards=read_hazards(path.parent / file.lab.hazards),
        state_dir=_state_dir(file, path),
        contacts=contacts,
    )


def _account() -> str:
    try:
        return getuser()
    except (KeyError, OSError):  # a number without a name, as in a container
        return ""


def _state_dir(file: LabFile, path: Path) -> Path:
    """Find where the latch lives: one place, from whichever folder a command is given."""
    try:
        if any(row.link != "loopback" for row in file.port):
            must_be_stated(file.lab.id, file.lab.state_dir)
        found = state_home(file.lab.id, file.lab.state_dir)
    except BadArming as why:
        raise BadLabFile(f"{path}: {why}") from None
    except RuntimeError as why:  # nobody's home
        raise BadLabFile(f"{path}: state directory: {why}") from None
    if not found.is_absolute():
        where = "LABHARNESS_STATE or XDG_STATE_HOME" if file.lab.state_dir is None else str(path)
        raise BadLabFile(f"state directory {found}: it takes an absolute path in {where}")
    return found


def _instrument(path: Path, row: InstrumentRow) -> Instrument:
    where = f"{path}: instrument {row.name!r}"
    try:
        kind = load_driver(row.kind)
    except LookupError as why:
        raise BadLabFile(f"{where}: {why}") from None
    try:
        check_fitting(kind, row.settings)
        driver = kind(**row.settings)
    except (TypeError, ValueError) as why:
        raise BadLabFile(f"{where} ({row.kind}), settings: {why}") from None
    scans = {scan.name for scan in driver.scans()}
    for scan in row.polls:
        if scan not in scans:
            known = ", ".join(sorted(scans))
            raise BadLabFile(f"{where}: no scan {scan!r}; there are {known}")
    return Instrument(
        name=row.name,
        kind=row.kind,
        driver=driver,
        port=row.port,
        prepare=row.prepare,
        polls=dict(row.polls),
    )


def _one_address_each(path: Path, instruments: Sequence[Instrument]) -> None:
    """Refuse two instruments of one port that would both answer, settings left out included."""
    seen: dict[str, dict[object, str]] = {}
    for each in instruments:
        address = getattr(each.driver, "unit", getattr(each.driver, "address", None))
        others = seen.setdefault(each.port, {})
        if address in others or (others and (address is None or None in others)):
            other = others.get(address) or next(iter(others.values()))
            both = f"instruments {other!r} and {each.name!r} have one address on port {each.port!r}"
            why = "one of them has none" if address is None or None in others else f"{address!r}"
            raise BadLabFile(f"{path}: {both}: {why}")
        others[address] = each.name


def _renamed(limits: KindLimits, driver: Driver) -> KindLimits:
    if not driver.renamed:
        return limits
    names = {name: limits.limits[own] for name, own in driver.renamed.items()}
    return KindLimits(kind=limits.kind, limits=names)


def _settable(instruments: Sequence[Instrument]) -> dict[str, Channel]:
    return {
        f"{each.name}.{channel}": spec
        for each in instruments
        for channel, spec in each.driver.channels.items()
        if spec.settable
    }


def _all_limited(line: LineFile, instruments: Sequence[Instrument]) -> None:
    """Refuse a line on which something can be set and nothing says how far."""
    limited = {row.channel for row in line.limit}
    for each in instruments:
        for channel, spec in each.driver.channels.items():
            if spec.settable and f"{each.name}.{channel}" not in limited:
                raise EnvelopeInvalid(
                    f"{each.name}.{channel} can be set and has no limit; give it a [[limit]]"
                )


def _all_there(line: LineFile, instruments: Sequence[Instrument]) -> None:
    """Refuse a procedure that sets what no instrument has."""
    by_name = {each.name: each for each in instruments}
    for name, row in line.procedures.items():
        for channel, *_ in row.steps:
            try:
                channel_of(by_name, channel)
            except LookupError as why:
                raise EnvelopeInvalid(f"procedure {name!r} sets {channel!r}: {why}") from None


def _known_channels(envelope: Envelope, instruments: Sequence[Instrument]) -> None:
    scanned = {
        f"{each.name}.{channel}"
        for each in instruments
        for scan in each.driver.scans()
        for channel in scan.channels
    }
    for channel in envelope.watches:
        if channel not in scanned:
            raise EnvelopeInvalid(f"watch {channel}: no instrument on this line reads it")
    units = units_of(instruments)
    rows = [
        (f"limit {c}", c, limit.unit)
        for c, limit in envelope.limits.items()
        if not c.startswith(f"{OPERATOR}.")
    ]
    rows += [(f"trip {row.name!r}", row.channel, row.unit) for row in envelope.trips]
    for what, channel, unit in rows:
        if units.get(channel) != unit:
            raise EnvelopeInvalid(f"{what}: {channel} is in {units.get(channel)!r}, not {unit!r}")
    for each in instruments:
        for channel, value in each.prepare:
            name = f"{each.name}.{channel}"
            limit = envelope.limits.get(name)
            if limit is None or limit.role is not Role.PREPARE or not math.isfinite(value):
                raise EnvelopeInvalid(f"prepare {name} = {value}: the line has no prepare limit")


def _contacts(line: LineFile, instruments: Sequence[Instrument]) -> tuple[Contact, ...]:
    by_name = {each.name: each for each in instruments}
    seen: set[str] = set()
    for row in line.contact:
        who = f"contact {row.channel!r}"
        try:
            instrument, channel, _ = channel_of(by_name, row.channel)
            instrument.driver.settable(channel)
        except (LookupError, ValueError) as why:
            raise EnvelopeInvalid(f"{who}: {why}") from None
        if row.channel in seen:
            raise EnvelopeInvalid(f"{who} is there twice")
        seen.add(row.channel)
        for fed in row.feeds:
            if fed not in by_name or not by_name[fed].driver.off:
                able = ", ".join(each.name for each in instruments if each.driver.off)
                raise EnvelopeInvalid(f"{who} feeds {fed!r}; what adds energy is {able or 'none'}")
    return tuple(Contact(**row.model_dump()) for row in line.contact)


def _cooling(line: LineFile, instruments: Sequence[Instrument]) -> dict[str, Cools]:
    """Give how each temperature goes once nothing heats: by its driver, or as the line says."""
    found = {
        f"{each.name}.{off.cools.channel}": off.cools
        for each in instruments
        for off in each.driver.off or ()
        if off.cools is not None
    }
    for row in line.cooling:
        if row.channel not in found:
            known = ", ".join(found) or "none"
            what = f"cooling {row.channel!r}: no heat is shown by it; there are {known}"
            raise EnvelopeInvalid(what)
        own = split_channel(row.channel)[1]
        found[row.channel] = Cools(channel=own, **row.model_dump(exclude={"channel", "source"}))
    return found


def _line(named: str, lab_path: Path) -> tuple[LineFile, tuple[str, ...]]:
    """Read a line's rules, and the base that they are changes of; give them and their texts."""
    place, text = _line_text(named, lab_path)
    where = f"envelope of line {named}"
    base = base_of(text, where)
    if base is None:
        return parse_line(text, where), (text,)
    try:
        _, base_text = _line_text(base, place)
    except LookupError:
        raise EnvelopeInvalid(f"{where}: based_on: no line that ships is called {base!r}") from None
    except BadLabFile as why:
        raise EnvelopeInvalid(f"{where}: based_on: {why}") from None
    return patch_line(text, where, base_text, f"envelope of line {base}"), (text, base_text)


def _line_text(line: str, beside: Path) -> tuple[Path, str]:
    """Find a line that ships by its name, or a file beside another one; give path and text."""
    if line.endswith(".toml"):
        path = beside.parent / line
        return path, read_text(path)
    shipped = shipped_line(line)
    return Path(str(shipped)), shipped.read_text("utf-8")
