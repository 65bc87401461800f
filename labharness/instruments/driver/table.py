"""A driver as a table: one row says all of one channel, and all frames follow from the rows."""

import math
import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any, ClassVar, Self

from labharness.core.vocabulary import Request
from labharness.instruments.driver.driver import (
    Channel,
    Driver,
    Identity,
    Query,
    Scan,
    While,
    fault,
)

ANY = (-math.inf, math.inf)
"""Any value that the wire can carry."""

ON_COMM_LOSS = re.compile(r"hold|unknown|safe\(\d+(\.\d+)?\)")


@dataclass(frozen=True, slots=True)
class _Setting:
    name: str


def of(name: str) -> Any:  # noqa: ANN401 - it stands for a value of whatever type
    """Stand in a row for the driver's attribute of this name: a setting, a property, a method."""
    return _Setting(name)


def within(what: str, value: float, low: float, high: float, *, whole: bool = False) -> None:
    """Refuse a setting that no instrument has.

    Raises:
        ValueError: It is not within the bounds, or is not the whole number that it must be.
    """
    if (whole and type(value) is not int) or not low <= value <= high:
        raise ValueError(f"{what} {value!r} is not within {low:g} to {high:g}")


@dataclass(frozen=True, slots=True)
class Wants:
    """The demand on an identity, for the instrument to be the right one.

    Attributes:
        field: Field of the identity, or of its details.
        pattern: Regular expression that must be found in it.
        otherwise: Words for an identity without it; ``{}`` stands for what is there.
    """

    field: str
    pattern: str
    otherwise: str


@dataclass(frozen=True, kw_only=True)
class ChannelRow(Channel):
    """One row of a driver's table: a channel, and how it is read and set.

    Any attribute may be ``of("setting")``.

    Attributes:
        sets: Lowest and highest value that it may be set to, or each value with its name; ``None``
            where it is only measured.
        whole: Whether it takes whole numbers only.
        must: The only value that is right; any other is a device fault.
        otherwise: Words of such a fault; by default they tell the value of the lab file.
        names: Meaning of its values, from 0 on.
        every_s: How often it is polled; ``None`` where it is read on demand only.
        scan: Name of its scan, if it is not the channel's.
        only_while: The only state in which its instrument answers.
        is_query: Whether it is a query on demand (a text, an array) and not a channel.
        hidden: Whether it is only checked when its neighbours are read, and not a channel.
        fitted: Whether this instrument has it.
    """

    unit: str = ""
    source: str = ""
    sets: Any = None
    whole: bool = False
    must: float | None = None
    otherwise: str = ""
    names: tuple[str, ...] = ()
    every_s: float | None = 1.0
    scan: str = ""
    only_while: While | None = None
    is_query: bool = False
    hidden: bool = False
    fitted: Any = True

    def __post_init__(self) -> None:
        """Leave what is wrong to ``wrong``: the driver's class names all wrong rows at once."""

    @property
    def is_read(self) -> bool:
        """Return whether something asks for it."""
        return True

    @property
    def step_set(self) -> float:
        """Return the step of its encoding, where it has one; its read-back agrees to that."""
        return 0.0

    def sent(self, value: float) -> float:
        """Return the value on the wire: the nearest step of the encoding.

        Raises:
            ValueError: It does not fit.
        """
        return value

    def wrong(self) -> Iterator[str]:
        """Return what is wrong with the row as it is written."""
        verb = "Measure" if self.sets is None else "Control"
        if not (self.doc.startswith(verb + " ") and self.doc.endswith(".")):
            yield f"its doc is not a sentence that starts with {verb}: {self.doc!r}"
        if self.sets is None and self.readback is not None:
            yield "it has a read-back, and sets does not say what it may be set to"
        if isinstance(self.on_comm_loss, str) and not ON_COMM_LOSS.fullmatch(self.on_comm_loss):
            yield f"on_comm_loss is hold, unknown or safe(<seconds>), not {self.on_comm_loss!r}"

    def bound(self, name: str, driver: object) -> Self:
        """Return the row with a driver's settings in it."""
        stated = {each.name: resolved(getattr(self, each.name), driver) for each in fields(self)}
        row = replace(self, **stated)
        if not self.source:
            row = replace(row, source=getattr(driver, "document", "").format(**stated))
        if row.sets is None:
            return row
        return replace(
            row,
            settable=True,
            readback=row.readback or (name if row.is_read else None),
            resolution=row.resolution or row.step_set,
        )

    def check(self, name: str, value: float) -> None:
        """Refuse a value that the row does not take; it is never clipped.

        Raises:
            ValueError: Says what may be asked.
        """
        unit = f" {self.unit}".rstrip()
        if isinstance(self.sets, Mapping):
            if value not in self.sets:
                known = ", ".join(f"{each:g} ({text})" for each, text in self.sets.items())
                raise ValueError(f"{name}: asked {value}{unit}, which is none of {known}")
            return
        if self.sets == ANY:
            return  # its encoding refuses what does not fit
        low, high = self.sets
        if not low <= value <= high or (self.whole and value != int(value)):
            kind = "whole numbers " if self.whole else ""
            allowed = f"{kind}{low:g} to {high:g}{unit}"
            raise ValueError(f"{name}: asked {value}{unit}, allowed {allowed}")

    def right(self, name: str, value: float) -> float:
        """Return a value that was read; one that must not be is a ``DeviceFault``."""
        if self.must is None or abs(value - self.must) <= self.resolution:
            return value
        wanted = f"; the lab file says {self._named(self.must)}"
        raise fault(name, f"{self._named(value)}{self.otherwise or wanted}")

    def _named(self, value: float) -> str:
        if not self.names:
            return f"{value:g} {self.unit}".rstrip()
        known = self.names[int(value)] if value < len(self.names) else "unknown"
        return f"{value:g} ({known})"


class TableDriver(Driver):
    """Base of the drivers that are tables: rows are attributes of the class.

    A subclass calls ``super().__init__()`` after its settings are set.

    Attributes:
        rows: Every row, by its channel's name; a driver whose lab file names them sets its own.
        document: Source of the rows that name none; a row's attributes may be in braces.
        wants: The demand on its identity.
    """

    _identity: Query
    rows: Mapping[str, ChannelRow] = MappingProxyType({})
    document: ClassVar[str] = ""
    wants: ClassVar[Wants]

    def __init_subclass__(cls) -> None:
        """Collect the rows of the class.

        Raises:
            TypeError: Names every row that is wrong, and says why.
        """
        super().__init_subclass__()
        own = {name: row for name, row in vars(cls).items() if isinstance(row, ChannelRow)}
        wrong = [f"{name}: {why}" for name, row in own.items() for why in _wrong(cls, name, row)]
        cls.rows = MappingProxyType({**cls.rows, **own})
        wrong += cls.wrong_table()
        if cls.rows:
            wrong += _undefined(cls)
        if wrong:
            raise TypeError(f"rows of {cls.__name__} are wrong: {'; '.join(wrong)}")

    def __init__(self) -> None:
        bound = {name: row.bound(name, self) for name, row in self.rows.items()}
        fitted = {name: row for name, row in bound.items() if row.fitted}
        self.channels = {n: row for n, row in fitted.items() if not (row.is_query or row.hidden)}
        read = {n: row for n, row in fitted.items() if row.is_read and not row.is_query}
        shown = {n: row for n, row in read.items() if row.readback in (None, n)}
        self._scans = tuple(self.scans_of(shown))  # what another channel shows is not read
        self._queries = tuple([self._query(n, row) for n, row in fitted.items() if row.is_query])

    @classmethod
    def wrong_table(cls) -> Iterable[str]:
        """Return what is wrong with the rows together."""
        return ()

    @abstractmethod
    def scans_of(self, rows: Mapping[str, Any]) -> Iterable[Scan]:
        """Return the scans that read these rows."""

    @abstractmethod
    def commands(
        self,
        channel: str,
        row: Any,  # noqa: ANN401 - each base has rows of its own
        value: float,
    ) -> tuple[Request, ...]:
        """Return the frames that set a row to a value that it takes."""

    def scans(self) -> tuple[Scan, ...]:
        """Return the frames that the rows are read by."""
        return self._scans

    def queries(self) -> tuple[Query, ...]:
        """Return the frames that are asked on demand."""
        return self._queries

    def identify(self) -> Query:
        """Return the frame that asks the instrument what it is."""
        return self._identity

    def _query(self, name: str, row: ChannelRow) -> Query:
        (scan,) = self.scans_of({name: row})
        return Query(name, scan.request, lambda reply: scan.decode(reply)[0], scan.before)

    def expects(self, identity: Identity) -> str:
        """Return what is wrong with this identity; firmware is judged only where a source does."""
        field = self.wants.field
        found = identity.details.get(field, "") or getattr(identity, field, "")
        return "" if re.search(self.wants.pattern, found) else self.wants.otherwise.format(found)

    def sent(self, channel: str, value: float) -> float:
        """Return the value on the wire, by the channel's row."""
        row: Any = self.settable(channel)
        return float(row.sent(value))

    def write(self, channel: str, value: float) -> tuple[Request, ...]:
        """Return the frames that set a channel, by its row."""
        row: Any = self.settable(channel)
        row.check(channel, value)
        return self.commands(channel, row, value)


def resolved(stated: Any, driver: object) -> Any:  # noqa: ANN401 - whatever a row states
    """Return what stands for a driver's attribute as that attribute is."""
    if isinstance(stated, _Setting):
        return getattr(driver, stated.name)
    if type(stated) is tuple:
        return tuple([resolved(each, driver) for each in stated])
    return stated


def _settings(stated: object) -> Iterator[str]:
    if isinstance(stated, _Setting):
        yield stated.name
    elif type(stated) is tuple:
        for each in stated:
            yield from _settings(each)


def _undefined(driver: type[TableDriver]) -> Iterator[str]:
    """Name the methods, such as ``known``, that a base leaves to its drivers and this one lacks."""
    for name in dir(driver):
        method = getattr(driver, name, None)
        if getattr(method, "__isabstractmethod__", False):
            purpose = str(method.__doc__).partition("\n")[0]
            yield f"{name}: the driver does not define it: {purpose}"


def _wrong(driver: type[TableDriver], name: str, row: ChannelRow) -> Iterator[str]:
    yield from row.wrong()
    if not (row.source or driver.document):
        yield "it does not say in which document it stands"
    if not isinstance(getattr(super(driver, driver), name, row), ChannelRow):
        yield "every driver has something else of this name"
    known = {*dir(driver), *driver.__init__.__code__.co_names}  # what __init__ sets is among these
    for each in fields(row):
        for setting in _settings(getattr(row, each.name)):
            if setting not in known:
                yield f"{each.name} is of {setting!r}, which the driver does not have"
