"""Reads the lab file: strict tables in, frozen values out, and a digest over the text."""

from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    SecretStr,
    StrictBool,
    StrictFloat,
    StrictInt,
    model_validator,
)

from labharness.core.errors import LabError
from labharness.core.files.tables import BadTable, read_table
from labharness.core.vocabulary.digests import digest_of, joined
from labharness.core.vocabulary.hours import Hours, NoHours, read_hours
from labharness.core.vocabulary.persons import bad_name
from labharness.core.vocabulary.texts import Text, several
from labharness.instruments.link.identity import LinkAddress, network_host
from labharness.lab.config.address import LAB_ID
from labharness.lab.config.address import BadLabFile as BadLabFile
from labharness.lab.config.address import read_text as read_text
from labharness.safety.alarm.board import LEVEL_MAX, Severity

AMBIENT_TORR_MIN, AMBIENT_TORR_MAX = 450.0, 800.0
"""The standard atmosphere (ISO 2533) has 462 Torr at 4,000 m and 798 at -400 m, the weather a few
per cent beside that; a value beyond is a typing error, or in another unit."""

PLACEHOLDER = "NAME"  # in the line that the doctor prints

T = TypeVar("T", bound=BaseModel)
R = TypeVar("R")


class Strict(BaseModel):
    """A table in which an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def _hours(given: object) -> Hours:
    if not isinstance(given, str):
        raise NoHours(Text("hours.bad", given=str(given)[:80]))
    return read_hours(given)


MEASURES = "measures"


class LabHead(Strict):
    """The ``[lab]`` table.

    Attributes:
        id: Its state directory has this name.
        line: A shipped line's name, or the path of a line's envelope file; by default the line of a
            stand that only measures.
        attended: When a person is there: ``always``, ``never`` (every run is unattended), or hours
            of the week with their time zone.
        shared: Whether other users' work stands on the same instruments.
        callers: Path of the callers file; a line on which nothing may harm needs none.
        hazards: Path of the hazard table; likewise.
        approvals: Paths of standing approvals.
        approvers: Path of the approvers file; without one, names are taken on trust.
        state_dir: The folder of latch and approvals: stated where a port is real, one place for all
            accounts; by default the user's state directory.
        heads: Folder of the signed heads of journals, best on another disk or host; by default
            one in the state directory.
        ambient_torr: Pressure of the room, which the envelope states pressures against.
        inactivity_s: Longest time without a record of a run on the line that is not held; it is
            ended then, with the line made safe.
        attempts_max: Most attempts of one task, those included that an operator asks for.
        model_class: Highest class of data that the model of an agent is given (ruling 50): without
            it T1, or T2 where the model is on this machine.
    """

    id: str = Field(pattern=LAB_ID)
    title: str
    line: str = MEASURES
    attended: Annotated[Hours, PlainValidator(_hours), PlainSerializer(str)]
    shared: StrictBool = False
    callers: str | None = None
    hazards: str | None = None
    approvals: tuple[str, ...] = ()
    approvers: str | None = None
    state_dir: str | None = None
    heads: str | None = Field(default=None, pattern=r"^(/|~/|[A-Za-z]:[\\/])")
    ambient_torr: StrictFloat | None = Field(default=None, ge=AMBIENT_TORR_MIN, le=AMBIENT_TORR_MAX)
    inactivity_s: StrictFloat = Field(default=900.0, ge=60, le=86_400)
    attempts_max: StrictInt = Field(default=10, ge=1, le=100)
    model_class: Literal["T1", "T2"] | None = None


class ModelRow(Strict):
    """The model that ``labharness ask`` asks.

    Attributes:
        url: Of an interface like OpenAI's, such as ``http://127.0.0.1:11434/v1``.
        name: Of the model.
        key_file: Path of the file with the key that the interface asks for.
    """

    url: str = Field(pattern=r"^https?://\S+$")
    name: str = Field(min_length=1)
    key_file: str | None = None

    @property
    def on_loopback(self) -> bool:
        """Whether the model is on this machine."""
        return urlsplit(self.url).hostname in ("127.0.0.1", "::1", "localhost")


class OperatorRow(Strict):
    """The operator of the manual steps: a person at the terminal, or a simulated one.

    Attributes:
        kind: ``served`` is a simulated person in a room that another process serves.
        delay_s: Time until the simulated one comes.
        control: Address (``host:port``) of the served lab's control port.
    """

    kind: Literal["terminal", "simulated", "served"]
    delay_s: StrictFloat = Field(default=0.0, ge=0, le=86_400)
    control: str | None = Field(default=None, pattern=r"^[A-Za-z0-9_.-]+:[0-9]{1,5}$")

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if (self.kind == "served") != (self.control is not None):
            raise ValueError(Text("lab.operator"))
        return self


class PlantRow(Strict):
    """The simulated plant behind loopback ports.

    Attributes:
        samples: Samples that lie ready in it, by their ids, as the plant describes them: what was
            not made in the simulated lab itself has to come from somewhere.
    """

    kind: str
    settings: dict[str, StrictBool | StrictFloat] = Field(default_factory=dict)
    samples: dict[str, dict[str, StrictBool | StrictInt | StrictFloat | str]] = Field(
        default_factory=dict
    )

    @property
    def stated(self) -> dict[str, Any]:
        """Its settings and its samples, as its class takes them; a plant may take no samples."""
        return {**self.settings, **({"samples": self.samples} if self.samples else {})}


def _is_websocket(url: str) -> bool:
    """Return whether an address can be opened: ``ws``, a host, and a number of a port if any."""
    try:
        parts = urlsplit(url)
        return parts.scheme == "ws" and bool(parts.hostname) and parts.port != 0
    except ValueError:  # not a number of a port
        return False


class PortRow(Strict):
    """One link. Which keys it takes depends on the link.

    Attributes:
        echo: The adapter of a serial line (RS-485) gives back what is sent.
        exclusive: The lab states that no other machine drives this port.
        lease: A file that every machine that may drive it locks first.
    """

    name: str
    link: Literal["loopback", "serial", "tcp", "visa", "websocket"]
    baud: StrictInt = Field(default=0, ge=0, le=10_000_000)
    path: str | None = None
    parity: Literal["N", "E", "O"] = "N"
    stop_bits: StrictInt = Field(default=1, ge=1, le=2)
    echo: StrictBool = False
    host: str | None = None
    port: StrictInt | None = Field(default=None, ge=1, le=65_535)
    resource: str | None = None
    url: str | None = None
    exclusive: StrictBool = False
    lease: str | None = Field(default=None, pattern=r"^/")

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if (self.exclusive or self.lease) and not network_host(self.address):
            what = "exclusive" if self.exclusive else "lease"
            raise ValueError(Text("lab.no_network", name=self.name, what=what))
        needs = {
            "serial": (self.path, "path"),
            "tcp": (self.host and self.port, "host and port"),
            "visa": (self.resource, "resource"),
            "websocket": (self.url, "url"),
        }
        value, what = needs.get(self.link, (True, ""))
        if not value:
            raise ValueError(Text("lab.link_takes", name=self.name, link=self.link, what=what))
        if self.link == "websocket" and not _is_websocket(str(self.url)):
            raise ValueError(Text("lab.websocket", name=self.name, url=self.url))
        if self.echo and not self.baud:
            raise ValueError(Text("lab.echo", name=self.name))
        if self.link == "serial" and not self.baud:
            raise ValueError(Text("lab.baud", name=self.name))
        return self

    @property
    def address(self) -> LinkAddress:
        """The name of this port for its lock and its latch on this machine."""
        stated = self.model_dump(include={"path", "host", "url", "resource"}, exclude_none=True)
        return LinkAddress(port=self.name, tcp_port=self.port or 0, **stated)


PollPeriod = Annotated[StrictFloat, Field(gt=0, le=3600)]


class AcceptedRow(Strict):
    """A person's statement that the unverified facts of a driver were compared with the instrument.

    Attributes:
        by: A person's name.
        on: The day.
        doubt: Which doubt, as ``labharness doctor`` prints it.
    """

    by: str
    on: date
    doubt: str = Field(pattern=r"^[0-9a-f]{8}$")

    @model_validator(mode="after")
    def _a_person(self) -> Self:
        why = bad_name(self.by)
        if why or self.by in ("", PLACEHOLDER):
            raise ValueError(Text("lab.accepted", why=why or Text("lab.person")))
        return self


class InstrumentRow(Strict):
    """One instrument: its kind, its port, and the settings of its driver.

    Attributes:
        part: The part of the simulated plant it is wired to.
        simulator: Settings that only its simulator has.
        prepare: Channel and value pairs to set at arming, in order.
        polls: Poll periods (s) by scan name.
        accepted: The acceptance of the unverified facts of its driver.
        firmware: The firmware that it must report, where the lab states one; else any that its
            driver supports.
        serial: The serial number that it must report, likewise.
    """

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    kind: str
    port: str
    firmware: str = Field(default="", max_length=80)
    serial: str = Field(default="", max_length=80)
    settings: dict[str, Any] = Field(default_factory=dict)
    prepare: tuple[tuple[str, StrictFloat], ...] = ()
    polls: dict[str, PollPeriod] = Field(default_factory=dict)
    part: str | None = None
    simulator: dict[str, Any] = Field(default_factory=dict)
    accepted: AcceptedRow | None = None


class TubeRow(Strict):
    """The tube whose volumes the purge proof counts."""

    volume_cm3: StrictFloat = Field(gt=0, le=1_000_000)


class AlertRow(Strict):
    """One way to reach somebody when there is an alarm.

    Attributes:
        url: An apprise address. It may hold a secret, so it is shown nowhere.
        severities: Severities of the alarms that are sent on it.
        level: 0 is called at once; each further level after five more unacknowledged minutes.
        language: Language of its messages: English or Chinese.
    """

    name: str = Field(pattern=r"^[a-z][a-z0-9_-]{0,30}$")
    url: SecretStr
    severities: tuple[Severity, ...] = Field(default=tuple(Severity), min_length=1)
    level: StrictInt = Field(default=0, ge=0, le=LEVEL_MAX)
    language: Literal["en", "zh"] = "en"


class RetentionTable(Strict):
    """For how many days a run is kept after its end, by the class of its data; left out, always.

    Attributes:
        T1, T2, T3, T4: Days.
    """

    T1: StrictInt | None = Field(default=None, ge=1, le=36_500)
    T2: StrictInt | None = Field(default=None, ge=1, le=36_500)
    T3: StrictInt | None = Field(default=None, ge=1, le=36_500)
    T4: StrictInt | None = Field(default=None, ge=1, le=36_500)

    def days(self, data_class: str) -> int | None:
        """Return the days of a class; ``None`` for always, or an unknown class."""
        found: int | None = self.model_dump().get(data_class)
        return found


class DataTable(Strict):
    """Confidential data.

    Attributes:
        key: Path of the master key's file.
        folders: Beside the lab file or absolute, below which files with inputs may lie.
    """

    key: str = Field(min_length=1)
    folders: tuple[str, ...] = Field(default=(), max_length=16)


class LabFile(Strict):
    """A whole lab: its ports, instruments, people and capabilities.

    Attributes:
        tube: The tube of a line whose envelope has a purge.
        capability: The capabilities on offer, by name, with the settings of each.
        retention: How long runs are kept.
        data: The key for confidential data; without it none are taken.
        model: The model that is asked in words.
    """

    lab: LabHead
    operator: OperatorRow
    tube: TubeRow | None = None
    port: tuple[PortRow, ...] = Field(min_length=1)
    instrument: tuple[InstrumentRow, ...] = Field(min_length=1)
    plant: PlantRow | None = None
    capability: dict[str, dict[str, Any]] = Field(default_factory=dict)
    alert: tuple[AlertRow, ...] = Field(default=(), max_length=16)
    retention: RetentionTable = Field(default_factory=RetentionTable)
    data: DataTable | None = None
    model: ModelRow | None = None

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        wrong = tuple(self._disagreements())
        if wrong:
            raise ValueError(several(*wrong))
        return self

    def _disagreements(self) -> Iterator[str]:
        """Name every fault at once, so that one round of edits mends them all."""
        ports = [row.name for row in self.port]
        names = [row.name for row in self.instrument]
        alerts = [row.name for row in self.alert]
        for what, rows in (("port", ports), ("instrument", names), ("alert", alerts)):
            for double in sorted({row for row in rows if rows.count(row) > 1}):
                yield Text("lab.twice", what=what, double=double)
        for row in self.instrument:
            if row.port not in ports:
                known = ", ".join(ports)
                yield Text("lab.port_unknown", name=row.name, port=row.port, known=known)
        links: dict[tuple[object, ...], str] = {}
        for each in self.port:
            if not any(row.port == each.name for row in self.instrument):
                yield Text("lab.port_empty", name=each.name)
            if each.link == "loopback":
                continue
            link = (each.link, each.path, each.host, each.port, each.resource, each.url)
            other = links.setdefault(link, each.name)
            if other != each.name:
                yield Text("lab.one_link", other=other, name=each.name)
        loopback = {row.name for row in self.port if row.link == "loopback"}
        for row in self.instrument:
            if row.port in loopback and (self.plant is None or row.part is None):
                yield Text("lab.loopback", name=row.name)

    @property
    def real_addresses(self) -> tuple[LinkAddress, ...]:
        """The addresses of the ports that lead to a real instrument."""
        return tuple(row.address for row in self.port if row.link != "loopback")

    @property
    def has_a_plant(self) -> bool:
        """Whether every instrument has a place in a simulated plant too."""
        return self.plant is not None and all(row.part is not None for row in self.instrument)

    def on_loopbacks(self) -> "LabFile":
        """Return the same lab with every port, and the operator, in the simulated lab.

        A flight on the nominal plant never touches a real link or a person.
        """
        ports = tuple(row.model_copy(update={"link": "loopback"}) for row in self.port)
        operator = self.operator.model_copy(update={"kind": "simulated", "control": None})
        return self.model_copy(update={"port": ports, "operator": operator})


def digest(*texts: str) -> str:
    """Return the digest of files, in order, as ``sha256:<hex>``."""
    return digest_of(joined(*(text.replace("\r\n", "\n").encode() for text in texts)))


def read_lab_file(path: Path) -> tuple[LabFile, str]:
    """Read a lab file; return it and its text.

    Raises:
        BadLabFile: It is missing, not TOML, or has an invalid value.
    """
    text = read_text(path)
    try:
        return parse(LabFile, text, str(path)), text
    except BadLabFile as why:
        from labharness.lab.config.capability_tables import moved_tables

        raise BadLabFile(several(str(why), *moved_tables(text))) from None


def parse(model: type[T], text: str, where: str) -> T:
    """Read TOML into a strict table.

    Raises:
        BadLabFile: It is not TOML, or has an invalid value.
    """
    try:
        return read_table(model, text, where)
    except BadTable as why:
        raise BadLabFile(str(why)) from None


def tried(wrong: list[str], read: Callable[..., R], *given: object) -> R | None:
    """Read something; a fault is added to those that are told of together, and gives ``None``."""
    try:
        return read(*given)
    except (LabError, LookupError) as why:
        wrong.append(str(why))
        return None
