"""Reads a lab's files and checks them against each other; no port is opened."""

import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any

from labharness.core.files.tables import read_table
from labharness.core.vocabulary.extras import all_to_install
from labharness.core.vocabulary.spelling import did_you_mean
from labharness.core.vocabulary.texts import Text, several
from labharness.instruments.driver import Driver
from labharness.instruments.link.identity import network_host
from labharness.lab.config import consistency
from labharness.lab.config.account import account
from labharness.lab.config.address import BadLabFile, LabAddress, default_lab_path, state_home
from labharness.lab.config.envelope_patch import base_of, patch_line
from labharness.lab.config.envelopes import KindLimits, LineFile
from labharness.lab.config.hazards import HazardTable, read_hazards
from labharness.lab.config.kernel_envelope import (
    Pressures,
    build_envelope,
    room_of,
    told_envelope,
    unknown_room,
)
from labharness.lab.config.kinds import (
    absent,
    load_driver,
    load_simulator,
    plant_kinds,
    shipped_file,
    shipped_line,
)
from labharness.lab.config.lab_file import (
    InstrumentRow,
    LabFile,
    digest,
    read_lab_file,
    read_text,
    tried,
)
from labharness.lab.config.lock import LineLock, LockOwner
from labharness.lab.config.programs import check_covered
from labharness.lab.config.proven import harmful, unproven, unproven_reads
from labharness.lab.config.wires import Finding, check_wires
from labharness.line import Contact, Instrument, Room
from labharness.line.instrument import PortTiming
from labharness.line.procedures import compile_procedures
from labharness.safety.guard import SafeFrame
from labharness.safety.kernel import Envelope, EnvelopeInvalid

SHARED_MODE = 0o2770
"""Mode of the state directory of real ports: each account of its group drives and resets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabPlan(LabAddress):
    """A lab's files, read and checked; no port is opened.

    Attributes:
        file: The tables of the lab file.
        envelope: The line's rules.
        safety_envelope: The same in the words of HCP L3, as callers are told.
        instruments: The line's instruments, with their drivers.
        lab_digest: Over the lab file.
        envelope_digest: Over the line's envelope file, the one it is based on, and those of its
            kinds.
        hazards: The hazard table.
        room: The room whose pressure the envelope's pressures refer to.
        safe_procedure: The procedure that every run begins and ends with.
        contacts: The channels that its relays feed.
        cold: For each watched temperature, in its unit, below what it is cold.
    """

    file: LabFile
    envelope: Envelope
    safety_envelope: Mapping[str, Any]
    instruments: tuple[Instrument, ...]
    lab_digest: str
    envelope_digest: str
    hazards: HazardTable
    room: Room
    safe_procedure: str
    contacts: tuple[Contact, ...] = ()
    cold: Mapping[str, float] = field(default_factory=dict)

    @property
    def by_name(self) -> dict[str, Instrument]:
        """The line's instruments, each by its name."""
        return {each.name: each for each in self.instruments}

    def procedures(self) -> dict[str, tuple[SafeFrame, ...]]:
        """Return the frames of every procedure, in order of hazard."""
        return compile_procedures(self.envelope, self.by_name)

    @property
    def safe_values(self) -> dict[str, float]:
        """The value that the safe procedure gives each of its channels."""
        steps = self.envelope.procedures[self.safe_procedure].steps
        return {step.channel: step.value for step in steps}

    @property
    def timings(self) -> dict[str, PortTiming]:
        """The times of the wire of each port."""
        return {row.name: PortTiming(link=row.link, baud=row.baud) for row in self.file.port}

    @property
    def links(self) -> tuple[str, ...]:
        """The kinds of link this lab uses."""
        return tuple(sorted({row.link for row in self.file.port}))

    @property
    def lacking(self) -> str:
        """The missing modules of its links and alerts, and the command to add them; or ``""``."""
        return all_to_install(absent(self.links, alerts=bool(self.file.alert)))

    @property
    def names_on_trust(self) -> bool:
        """Whether an approver is only a name although real instruments are driven."""
        return bool(self.real_ports) and self.file.lab.approvers is None

    @property
    def in_real_time(self) -> bool:
        """Whether it needs real time, because of an instrument or of a person."""
        return bool(self.real_ports) or self.file.operator.kind == "terminal"

    @property
    def begins_anew(self) -> bool:
        """Whether a simulated plant is made for each run, and no sample is left in it."""
        return any(row.link == "loopback" for row in self.file.port)

    def with_file(self, file: LabFile) -> "LabPlan":
        """Return the plan of the same lab with other tables."""
        return replace(self, file=file, ports=file.real_addresses)

    def lock(self, folder: Path | None = None, *, does: str = "") -> LineLock:
        """Hold the line alone, also against processes that use another lab file for its ports.

        Args:
            folder: The folder of the journal, of a process that drives the line.
            does: Why a process that drives nothing holds it; it waits for no other machine.

        Raises:
            LineBusy: Another process has it.
            OSError: State directory or lock cannot be written.
        """
        run = "" if folder is None else str(folder.resolve())
        home = os.path.realpath(self.state_dir)
        owner = LockOwner(os.getpid(), self.option_anywhere, run, does, account(), home)
        leases = [row.lease for row in self.file.port if row.lease and not does]
        return LineLock(self.state_dir, owner, self.identities(), leases)

    @property
    def sign_again(self) -> str:
        """The command that signs its standing approval again; ``""`` where none may be signed."""
        if self.real_ports or not self.file.lab.approvals:
            return ""
        if self.path == default_lab_path():
            return "make approve-sim"
        return f"python -m labharness.lab.wiring.approve_sim {shlex.quote(str(self.path))}"

    @property
    def data_key(self) -> Path | None:
        """The file of the master key for confidential data; ``None`` where the lab has none."""
        return None if self.file.data is None else self.beside(self.file.data.key)

    @property
    def input_folders(self) -> tuple[str, ...]:
        """The folders of files that a task may refer to for its inputs."""
        return () if self.file.data is None else self.file.data.folders

    def beside(self, path: str) -> Path:
        """Return the path of a file that the lab file names."""
        return self.path.parent / path

    def make_state_dir(self) -> None:
        """Make the state directory: with real ports its group may use it, else only this user.

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
            Text(
                "lab.unverified", name=each.name, kind=each.kind, unverified=each.driver.unverified
            )
            for each in self.unverified()
        )

    def unverified(self) -> tuple[Instrument, ...]:
        """Return the instruments on real links whose driver has facts without a manual."""
        return tuple(
            each
            for each in self.instruments
            if each.driver.unverified and each.port in self.real_ports
        )

    def check(self) -> tuple[Finding, ...]:
        """Compute wire times and staleness, prove the procedures, and return the faults."""
        return (
            *check_wires(self.envelope, self.instruments, self.timings, self.procedures()),
            *unproven(self.envelope, self.instruments, self.contacts),
            *self.unclaimed(),
            *unknown_room(self.room),
        )

    def unclaimed(self) -> tuple[Finding, ...]:
        """Name the network ports that another machine could drive too."""
        return tuple(
            Finding(
                Text("doctor.port", name=row.name),
                Text("lab.unclaimed", address=network_host(row.address), name=row.name),
                f'# under [[port]] name = "{row.name}":\nexclusive = true',
            )
            for row in self.file.port
            if network_host(row.address) and not (row.exclusive or row.lease)
        )

    def must_hold(self) -> None:
        """Refuse a lab with a fault, or without the modules of its links.

        Raises:
            BadLabFile: Names every fault.
        """
        if self.lacking:
            raise BadLabFile("pair", what=str(self.path), why=self.lacking)
        findings = self.check()
        if findings:
            paste = Text("lab.prints", option=self.option)
            more = paste if any(each.paste for each in findings) else ""
            raise BadLabFile(
                "lab.findings", path=str(self.path), findings=[*map(str, findings)], more=more
            )


def read_lab(path: Path) -> LabPlan:
    """Read a lab file and the files that it names.

    Raises:
        BadLabFile: It cannot be honoured; names every fault, its place, and the allowed values.
    """
    file, lab_text = read_lab_file(path)
    wrong: list[str] = []

    made = [tried(wrong, _instrument, row) for row in file.instrument]
    instruments = tuple(each for each in made if each is not None)
    tried(wrong, check_plant, file)
    wrong += consistency.addresses(instruments)
    rules = tried(wrong, _line, file.lab.line, path)
    hazards = tried(wrong, _hazards, path, file)
    state_dir = tried(wrong, _state_dir, file, path)
    kinds = tried(wrong, _kinds, instruments)
    if wrong or rules is None or hazards is None or state_dir is None or kinds is None:
        raise _bad(path, wrong)
    (line, line_texts), (limits, kind_texts) = rules, kinds
    wrong += consistency.missing_limits(line, instruments, limits)
    wrong += consistency.missing_watches(line, instruments)
    wrong += consistency.unknown_procedure_channels(line, instruments)
    wrong += consistency.wiring(line, instruments)
    channels = consistency.channels_of(instruments)
    units = {name: spec.unit for name, spec in channels.items()}
    pressures = Pressures(units, file.lab.ambient_torr)
    build = partial(
        build_envelope,
        volume_cm3=None if file.tube is None else file.tube.volume_cm3,
        follows=consistency.follows(line, instruments),
    )
    envelope = tried(wrong, build, line, limits, channels, pressures)
    if wrong or envelope is None:
        raise _bad(path, wrong)
    room = tried(wrong, room_of, line, pressures, envelope)
    wrong += consistency.units(envelope, instruments)
    wrong += consistency.ineffective_bounds(envelope, instruments)
    tried(wrong, check_covered, envelope, instruments)
    procedures = tried(
        wrong, compile_procedures, envelope, {each.name: each for each in instruments}
    )
    real = tuple(row.name for row in file.port if row.link != "loopback")
    wrong += unproven_reads(instruments, envelope, procedures or {}, real)
    if wrong or room is None:
        raise _bad(path, wrong)
    contacts = consistency.contacts(line)
    wrong += _unstated(file, tuple(harmful(instruments, contacts, envelope.limits)))
    if wrong:
        raise _bad(path, wrong)
    cools = consistency.cooling(line, instruments)
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
        lab_id=file.lab.id,
        ports=file.real_addresses,
        approvers_file=None if file.lab.approvers is None else path.parent / file.lab.approvers,
        file=file,
        envelope=envelope,
        room=room,
        safety_envelope={
            **told_envelope(line, envelope).to_json(file.lab.ambient_torr),
            "channels": {  # the enforced limit of each that is set in a unit (ruling 8)
                channel: {"min": limit.low, "max": limit.high, "unit": limit.unit}
                for channel, limit in envelope.limits.items()
                if limit.unit
            },
        },
        instruments=instruments,
        lab_digest=digest(lab_text),
        envelope_digest=digest(*line_texts, *(kind_texts[kind] for kind in sorted(kind_texts))),
        hazards=hazards,
        state_dir=state_dir,
        safe_procedure=line.safe,
        contacts=contacts,
        cold=consistency.cold(line, instruments),
    )


def _hazards(path: Path, file: LabFile) -> HazardTable:
    real = [row.name for row in file.port if row.link != "loopback"]
    named = file.lab.hazards
    return HazardTable(hazard=()) if named is None else read_hazards(path.parent / named, real)


def _unstated(file: LabFile, harmful: Sequence[str]) -> Iterator[str]:
    """Name the missing statements of a lab that may harm a person."""
    which = ", ".join(harmful)
    if harmful and file.lab.hazards is None:
        yield Text("lab.hazards_unsaid", which=which)
    if harmful and file.lab.callers is None:
        yield Text("lab.callers_unsaid", which=which)


def _bad(path: Path, wrong: Sequence[str]) -> BadLabFile:
    return BadLabFile("pair", what=str(path), why=several(*dict.fromkeys(wrong)))


def _kinds(instruments: Sequence[Instrument]) -> tuple[dict[str, KindLimits], dict[str, str]]:
    """Read the limits of each instrument; return them, and the texts of their files."""
    texts: dict[str, str] = {}
    limits: dict[str, KindLimits] = {}
    for each in instruments:
        if each.kind not in texts:
            texts[each.kind] = shipped_file(f"{each.kind}.toml").read_text("utf-8")
        where = Text("lab.envelope_of", kind=each.kind)
        limits[each.name] = _renamed(read_table(KindLimits, texts[each.kind], where), each.driver)
    return limits, texts


def _state_dir(file: LabFile, path: Path) -> Path:
    """Return the folder of the latch: one place, from any working folder."""
    lab, named = file.lab.id, file.lab.state_dir
    if file.real_addresses and (named is None or not Path(named).is_absolute()):
        said = Text("lab.state_unsaid") if named is None else Text("lab.state_said", named=named)
        raise BadLabFile("lab.state_dir", said=said, lab=lab)
    try:
        found = state_home(lab, named, path)
    except RuntimeError as why:  # an account without a home
        raise BadLabFile("lab.no_home", why=str(why)) from None
    if not found.is_absolute():
        where = "LABHARNESS_STATE or XDG_STATE_HOME" if file.lab.state_dir is None else str(path)
        raise BadLabFile("lab.state_relative", found=str(found), where=where)
    return found


def _instrument(row: InstrumentRow) -> Instrument:
    where = Text("lab.instrument", name=row.name)
    try:
        kind = load_driver(row.kind)
    except LookupError as why:
        raise BadLabFile("pair", what=where, why=str(why)) from None
    try:
        check_fitting(kind, row.settings)
        driver = kind(**row.settings)
    except (TypeError, ValueError) as why:
        raise BadLabFile("lab.settings", where=where, kind=row.kind, why=str(why)) from None
    scans = {scan.name for scan in driver.scans()}
    for scan in row.polls:
        if scan not in scans:
            known = ", ".join(sorted(scans))
            raise BadLabFile("lab.no_scan", where=where, scan=scan, known=known)
    return Instrument(
        name=row.name,
        kind=row.kind,
        driver=driver,
        port=row.port,
        prepare=row.prepare,
        polls=dict(row.polls),
        firmware=row.firmware,
        serial=row.serial,
    )


def _renamed(limits: KindLimits, driver: Driver) -> KindLimits:
    if not driver.renamed:
        return limits
    names = {name: limits.limits[own] for name, own in driver.renamed.items()}
    return KindLimits(kind=limits.kind, limits=names)


def _line(named: str, lab_path: Path) -> tuple[LineFile, tuple[str, ...]]:
    """Read a line's rules, and the base that they change; return them and their texts."""
    place, text = _line_text(named, lab_path)
    where = Text("lab.envelope_of_line", named=named)
    base = base_of(text, where)
    if base is None:
        return read_table(LineFile, text, where), (text,)
    try:
        _, base_text = _line_text(base, place)
    except LookupError:
        raise EnvelopeInvalid("lab.no_base", where=where, base=base) from None
    except BadLabFile as why:
        raise EnvelopeInvalid("lab.bad_base", where=where, why=str(why)) from None
    line = patch_line(text, where, base_text, Text("lab.envelope_of_line", named=base))
    return line, (text, base_text)


def _line_text(line: str, beside: Path) -> tuple[Path, str]:
    """Find a shipped line by its name, or a file beside another one; return path and text."""
    if line.endswith(".toml"):
        path = beside.parent / line
        return path, read_text(path)
    shipped = shipped_line(line)
    return Path(str(shipped)), shipped.read_text("utf-8")


TYPES = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


def check_fitting(
    make: Callable[..., object], settings: Mapping[str, Any], *, given: int = 0
) -> None:
    """Refuse a setting that a driver, a simulator or a plant does not have, or of another type.

    Args:
        make: The function or class that takes the settings, by name.
        settings: As the lab file says.
        given: The number of first arguments that are not settings.

    Raises:
        ValueError: One does not fit, or one that is needed is missing.
    """
    takes = list(signature(make).parameters.values())[given:]
    asked = {each.name: each for each in takes if each.kind is not each.VAR_KEYWORD}
    open_to_more = len(asked) < len(takes)
    for name, value in settings.items():
        if name not in asked:
            if open_to_more:
                continue
            near, known = did_you_mean(name, asked.keys()), ", ".join(asked) or "none"
            raise ValueError(Text("settings.unknown", name=name, hint=near, known=known))
        wanted = asked[name].annotation
        if wanted is float and type(value) is int:
            continue
        if wanted in TYPES and type(value) is not wanted:
            raise ValueError(
                Text("settings.type", name=name, value=repr(value), types=TYPES[wanted])
            )
    for name, each in asked.items():
        if each.default is each.empty and name not in settings:
            raise ValueError(Text("settings.missing", name=name))


def check_plant(file: LabFile) -> None:
    """Refuse a plant, or simulators of its parts, that cannot be made as the lab file says.

    Raises:
        BadLabFile: Names the allowed settings.
    """
    if file.plant is None:
        return
    kind = file.plant.kind
    known = plant_kinds()
    if kind not in known:
        raise BadLabFile("settings.plant", kind=kind, known=", ".join(sorted(known)))
    try:
        check_fitting(known[kind], file.plant.stated, given=1)
        parts = known[kind](None, **file.plant.stated).parts
    except (TypeError, ValueError) as why:
        raise BadLabFile("settings.plant_settings", why=str(why)) from None
    for row in file.instrument:
        if row.part is None:
            continue
        if row.part not in parts:
            there = ", ".join(parts)
            raise BadLabFile("settings.part", name=row.name, part=row.part, there=there)
        try:
            face = load_simulator(row.kind)
            check_fitting(face, {**row.settings, **row.simulator}, given=3)
        except (LookupError, ValueError) as why:
            raise BadLabFile("settings.simulator", name=row.name, why=str(why)) from None
