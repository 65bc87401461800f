"""The lab file and the hazard table: strict tables in, frozen values out, digests over both."""

import hashlib
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

from labharness.lab.tables import BadTable, read_table

__all__ = ["BadLabFile", "HazardTable", "LabFile", "digest", "read_hazards", "read_lab_file"]


T = TypeVar("T", bound=BaseModel)


class BadLabFile(ValueError):
    """A file of the lab cannot be honoured as it stands; the message says where and why."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class LabHead(_Strict):
    """What the lab is.

    Attributes:
        id: Names its state directory.
        line: A shipped line's name, or the path of a line's envelope file.
        attended: Whether a person is there: ``always``, or ``never`` (every run is unattended).
        shared: Whether other users' work stands on the same instruments.
        callers: Path of the callers file.
        hazards: Path of the hazard table.
        approvals: Paths of standing approvals.
        state_dir: Where latch and approvals live; default the user's state directory.
    """

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$")
    title: str
    line: str
    attended: Literal["always", "never"]
    shared: bool = False
    callers: str
    hazards: str
    approvals: tuple[str, ...] = ()
    state_dir: str | None = None


class OperatorRow(_Strict):
    """Who does the manual steps: a person at the terminal, or one that is simulated."""

    kind: Literal["terminal", "simulated"]
    delay_s: float = Field(default=0.0, ge=0, le=86_400)


class PlantRow(_Strict):
    """The simulated plant behind loopback ports."""

    kind: str
    settings: dict[str, bool | float] = Field(default_factory=dict)


class PortRow(_Strict):
    """One road. Which keys it takes depends on the link."""

    name: str
    link: Literal["loopback", "serial", "tcp", "visa", "websocket"]
    baud: int = Field(default=0, ge=0, le=10_000_000)
    path: str | None = None
    parity: Literal["N", "E", "O"] = "N"
    stop_bits: Literal[1, 2] = 1
    host: str | None = None
    port: int | None = Field(default=None, ge=1, le=65_535)
    resource: str | None = None
    url: str | None = None

    @model_validator(mode="after")
    def _complete(self) -> Self:
        needs = {
            "serial": (self.path, "path"),
            "tcp": (self.host and self.port, "host and port"),
            "visa": (self.resource, "resource"),
            "websocket": (self.url, "url"),
        }
        value, what = needs.get(self.link, (True, ""))
        if not value:
            raise ValueError(f"port {self.name!r}: link {self.link!r} takes {what}")
        if self.link == "serial" and not self.baud:
            raise ValueError(f"port {self.name!r}: link 'serial' takes baud")
        return self


PollPeriod = Annotated[float, Field(gt=0, le=3600)]


class InstrumentRow(_Strict):
    """One instrument: its kind, its port, and the settings of its driver.

    Attributes:
        part: The part of the simulated plant it is wired to.
        simulator: Settings that only its simulator has.
        prepare: Channel and value pairs to set at arming, in order.
        polls: Poll periods (s) by scan name.
    """

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    kind: str
    port: str
    settings: dict[str, Any] = Field(default_factory=dict)
    prepare: tuple[tuple[str, float], ...] = ()
    polls: dict[str, PollPeriod] = Field(default_factory=dict)
    part: str | None = None
    simulator: dict[str, Any] = Field(default_factory=dict)


class TubeRow(_Strict):
    """The tube whose volumes the purge proof counts."""

    volume_cm3: float = Field(gt=0, le=1_000_000)


class RamanRow(_Strict):
    """The instrument's own reference for Raman evidence, from a known sample on it."""

    laser_nm: float = Field(gt=300, lt=1100)
    a1g_si_monolayer: float = Field(gt=0)
    source: str


class LabFile(_Strict):
    """A whole lab: what stands where, and who may use it."""

    lab: LabHead
    operator: OperatorRow
    tube: TubeRow
    raman: RamanRow
    port: tuple[PortRow, ...] = Field(min_length=1)
    instrument: tuple[InstrumentRow, ...] = Field(min_length=1)
    plant: PlantRow | None = None
    growth: dict[str, float] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        ports = [row.name for row in self.port]
        names = [row.name for row in self.instrument]
        for what, rows in (("port", ports), ("instrument", names)):
            double = sorted({row for row in rows if rows.count(row) > 1})
            if double:
                raise ValueError(f"{what} {double[0]!r} is there twice")
        for row in self.instrument:
            if row.port not in ports:
                raise ValueError(
                    f"instrument {row.name!r}: no port {row.port!r}; there are {', '.join(ports)}"
                )
        roads: dict[tuple[object, ...], str] = {}
        for each in self.port:
            if not any(row.port == each.name for row in self.instrument):
                raise ValueError(f"port {each.name!r} has no instrument")
            if each.link == "loopback":
                continue
            road = (each.link, each.path, each.host, each.port, each.resource, each.url)
            other = roads.setdefault(road, each.name)
            if other != each.name:
                raise ValueError(f"ports {other!r} and {each.name!r} are one road")
        loopback = {row.name for row in self.port if row.link == "loopback"}
        for row in self.instrument:
            if row.port in loopback and (self.plant is None or row.part is None):
                raise ValueError(
                    f"instrument {row.name!r} is on a loopback: it takes a part, and a [plant]"
                )
        return self


class HazardRow(_Strict):
    """One hazard, and the *hardware* that stands before it when all software is dead.

    Attributes:
        safeguard: The hardware; empty when there is none.
        proof_tested: Day of its last proof test.
        proof_days: How long a proof test counts.
        categories: Hazard categories (HCP L3) it belongs to.
    """

    name: str
    hazard: str
    safeguard: str
    proof_tested: date | None = None
    proof_days: int = Field(ge=1, le=3660)
    categories: tuple[str, ...]

    def missing(self, today: date) -> str:
        """Say what is missing or overdue; ``""`` when nothing is."""
        if not self.safeguard.strip():
            return f"{self.name}: no hardware safeguard"
        if self.proof_tested is None:
            return f"{self.name}: {self.safeguard} was never proof-tested"
        age = (today - self.proof_tested).days
        if age > self.proof_days:
            return f"{self.name}: proof test of {self.safeguard} is {age - self.proof_days} d late"
        return ""


class HazardTable(_Strict):
    """All hazards of a lab."""

    hazard: tuple[HazardRow, ...]


def digest(*texts: str) -> str:
    """Give the digest of files, in order, as ``sha256:<hex>``."""
    whole = hashlib.sha256()
    for text in texts:
        data = text.replace("\r\n", "\n").encode()
        whole.update(len(data).to_bytes(8, "big") + data)
    return f"sha256:{whole.hexdigest()}"


def read_lab_file(path: Path) -> tuple[LabFile, str]:
    """Read a lab file; give it and its text.

    Raises:
        BadLabFile: It is not there, no TOML, or says something that cannot be.
    """
    text = read_text(path)
    return _parse(LabFile, text, str(path)), text


def read_hazards(path: Path) -> HazardTable:
    """Read a hazard table; raises as ``read_lab_file`` does."""
    return _parse(HazardTable, read_text(path), str(path))


def read_text(path: Path) -> str:
    """Read a text file of the lab.

    Raises:
        BadLabFile: It cannot be read as UTF-8 text.
    """
    try:
        return path.read_text("utf-8")
    except OSError as why:
        raise BadLabFile(f"{path}: {why.strerror}") from None
    except UnicodeDecodeError as why:
        raise BadLabFile(f"{path} is no UTF-8 text: {why.reason}") from None


def _parse(model: type[T], text: str, where: str) -> T:
    try:
        return read_table(model, text, where)
    except BadTable as why:
        raise BadLabFile(str(why)) from None
