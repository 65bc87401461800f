"""Checks that every driver, its envelope and its simulator must pass; each returns findings.

A finding is one sentence. A correct driver has none. The shipped kinds pass the same checks.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from labharness.core.vocabulary import (
    BadReply,
    DeviceFault,
    Nothing,
    Protocol,
    Request,
    disobeyed,
    same_frame,
)
from labharness.core.vocabulary.units import TEMPERATURES, incomparable
from labharness.faces.testing.pairs import PairDisagrees, exchange, transaction_of, write
from labharness.instruments.driver import Driver, Identity, Scan
from labharness.instruments.driver.driver import is_written, reads_of, shown, unproven_read
from labharness.instruments.simulation import Face

ON_COMM_LOSS = re.compile(r"hold|unknown|safe\(\d+(\.\d+)?\)")
NO_CHANNELS = ("no_such_channel", "")

Wait = Callable[[float], object]
"""Lets this many seconds of a simulator's time pass."""


def check_driver(driver: Driver) -> tuple[str, ...]:
    """Check a driver's declarations, that its reads only read, and that it writes nothing else."""
    return (
        *_documented(driver),
        *_scanned(driver),
        *_read(driver),
        *_nothing_else_written(driver),
        *_switched_off(driver),
    )


def check_write(driver: Driver, channel: str, value: float) -> tuple[str, ...]:
    """Check the frames of one command: at least one, all in the grammar, none of them a read.

    The same command must give the same frames again. A value that the driver refuses, because it
    does not fit the wire, has no findings.
    """
    try:
        requests = driver.write(channel, value)
    except ValueError:
        return ()
    what = f"{channel} = {value!r}"
    found = []
    if not all(each.obeyed or isinstance(each.reply, Nothing) for each in requests):
        found.append(f"{what} has a frame that does not say which reply means obedience (obeyed)")
    if not requests:
        found.append(f"{what} has no frame")
    reads = [request for _, request in reads_of(driver)]
    if any(same_frame(one, each) for one in requests for each in reads):
        found.append(f"{what} has a frame that is among those that read")
    elif driver.write_grammar:
        strange = [each for each in requests if not is_written(each, driver.write_grammar)]
        found += [f"{what}: {shown(each)} is not in its write_grammar" for each in strange]
    if driver.write(channel, value) != requests:
        found.append(f"{what} has other frames when it is asked for again: a driver is pure")
    return tuple(found)


def check_envelope(driver: Driver, envelope: Mapping[str, Any]) -> tuple[str, ...]:
    """Check a kind's envelope file, read as TOML, against its driver.

    It must limit exactly the settable channels, in the same units, with a source for each number.
    Both ends of each limit are passed to ``check_write``.
    """
    limits: Mapping[str, Mapping[str, Any]] = envelope.get("limits", {})
    settable = {name: each.unit for name, each in driver.channels.items() if each.settable}
    found = [f"{name} can be set and has no limit" for name in settable.keys() - limits.keys()]
    found += [f"{name} has a limit and cannot be set" for name in limits.keys() - settable.keys()]
    for name in sorted(settable.keys() & limits.keys()):
        row = limits[name]
        if row["unit"] != settable[name]:
            found.append(f"{name} is in {settable[name]!r} and its limit in {row['unit']!r}")
        if not row["low"] <= row["high"]:
            found.append(f"{name}: low {row['low']} is above high {row['high']}")
        if not str(row.get("source", "")).strip():
            found.append(f"{name}: its limit has no source")
        for value in (row["low"], row["high"]):
            found += check_write(driver, name, float(value))
    return tuple(sorted(found))


def check_simulator(driver: Driver, face: Face, *, wait: Wait | None = None) -> tuple[str, ...]:
    """Check a simulator against its driver: identity, every scan, every settable channel.

    Each reply must be complete and correct, must not pass as complete when it is cut, and must give
    one value per channel. Then each settable channel is set to a new value, which its read-back
    must show; the old value is put back if possible.

    Args:
        driver: Driver of the kind.
        face: The simulator, in any state.
        wait: Lets this many seconds of the simulator's time pass. Without it, a channel with a slow
            read-back (``settle_s``) is set and not read back.
    """
    found: list[str] = []
    for what, request, decode, count in _questions(driver):
        try:
            reply = exchange(face, request)
            values = decode(reply)
        except (PairDisagrees, BadReply, DeviceFault) as why:
            found.append(f"{what}: {why}")
            continue
        found += [f"{what}: {each}" for each in _cut_replies_taken(request, reply)]
        if isinstance(values, Identity):
            wrong = driver.expects(values)
            found += [f"{what}: {wrong}"] if wrong else []
        elif not isinstance(values, tuple):
            found.append(f"{what}: it decodes to no identity")
        elif count is not None and len(values) != count:
            found.append(f"{what}: {len(values)} values for {count} channels")
    return tuple(found) or _each_set(driver, face, wait)


def check_obedience(driver: Driver, face: Face, channel: str, value: float) -> tuple[str, ...]:
    """Check that a command's replies show success or refusal, and that its read shows it.

    A command that the instrument itself refuses has no findings: some are valid only in some
    states.
    """
    what = f"{channel} = {value!r}"
    try:
        for request in driver.write(channel, value):
            refusal = face.refusal(request.frame)
            if refusal is not None and not disobeyed(request, refusal):
                return (f"{what}: the refusal {refusal!r} passes for obedience",)
            reply = exchange(face, request)
            driver.accept(channel, reply)
            if disobeyed(request, reply):
                return (f"{what}: {reply!r} does not pass for obedience",)
        shown = driver.shown(channel, value)
        if shown is not None and disobeyed(shown, exchange(face, shown)):
            return (f"{what}: the read that is to show it is answered with something else",)
    except (DeviceFault, ValueError):
        return ()
    return ()


def _questions(driver: Driver) -> Iterator[tuple[str, Request, Any, int | None]]:
    """Return what is always answered: name, request, decoder, and of a scan the count of values."""
    identify = driver.identify()
    yield "identity", identify.request, identify.decode, None
    for scan in driver.scans():
        if scan.only_while is None:
            yield f"scan {scan.name}", scan.request, scan.decode, len(scan.channels)


def _cut_replies_taken(request: Request, reply: bytes) -> Iterator[str]:
    for length in range(1, len(reply)):
        try:
            taken = request.reply.take(reply[:length], transaction_of(request))
        except BadReply:
            continue
        if taken > 0:
            yield f"the reply {reply!r} cut after {length} bytes is taken for whole"
            return


def _documented(driver: Driver) -> Iterator[str]:
    if not driver.channels:
        yield "it has no channel"
    for name, channel in driver.channels.items():
        verb = "Control" if channel.settable else "Measure"
        if not (channel.doc.startswith(verb + " ") and channel.doc.endswith(".")):
            yield f"{name}: its doc is not a sentence that starts with {verb}: {channel.doc!r}"
        if not channel.source.strip():
            yield f"{name}: it does not say where that is written"
        if incomparable(name, channel.unit):
            units = ", ".join(TEMPERATURES)
            yield f"{name}: a temperature in {channel.unit!r}, which no line compares, not {units}"
        if not ON_COMM_LOSS.fullmatch(channel.on_comm_loss):
            said = repr(channel.on_comm_loss)
            yield f"{name}: on_comm_loss is hold, unknown or safe(<seconds>), not {said}"


def _scanned(driver: Driver) -> Iterator[str]:
    scans = driver.scans()
    if driver.scans() is not scans:
        yield "scans() makes new scans each time it is asked"
    if not all(isinstance(scan, Scan) for scan in scans):
        yield "scans() gives something that is not a Scan"
        return
    scanned = [name for scan in scans for name in scan.channels]
    for name in sorted({each for each in scanned if scanned.count(each) > 1}):
        yield f"{name} is scanned twice"
    for name in sorted(set(scanned) - set(driver.channels)):
        yield f"{name} is scanned and no channel"
    for name, channel in driver.channels.items():
        if name not in scanned and not channel.settable:
            yield f"{name} can be neither read nor set"
        for does, state in (("acts", channel.acts_while), ("is sound", channel.sound_while)):
            if state is not None and state.channel not in scanned:
                yield f"{name}: it {does} while {state.channel!r} has a value, which is not scanned"
        if channel.readback is not None and channel.readback not in scanned:
            yield f"{name}: its read-back {channel.readback!r} is not scanned"


def _read(driver: Driver) -> Iterator[str]:
    settable = any(each.settable for each in driver.channels.values())
    if settable and driver.protocol == Protocol.TEXT and not driver.write_grammar:
        yield "it can set something, and states no write_grammar: what its writing frames look like"
    if not all(isinstance(scan, Scan) for scan in driver.scans()):
        return  # reported above
    for what, request in reads_of(driver):
        why = unproven_read(request, driver.protocol, [("it", driver)])
        if why:
            yield f"{what}: {shown(request)} is not a read: {why}"


def _nothing_else_written(driver: Driver) -> Iterator[str]:
    settable = {name for name, each in driver.channels.items() if each.settable}
    for name in (*sorted(driver.channels.keys() - settable), *NO_CHANNELS):
        try:
            driver.write(name, 0.0)
        except ValueError as why:
            if "cannot be set" in str(why):
                continue
        yield f"{name!r} cannot be set, and write() does not say so"


def _switched_off(driver: Driver) -> Iterator[str]:
    """Check that the driver says what adds energy, with steps that can be sent."""
    if driver.off is None:
        if any(each.settable for each in driver.channels.values()):
            yield "it can be set, and does not say what of that adds energy: off, () if none does"
        return
    for off in driver.off:
        if not off.source.strip():
            yield f"off ({off.adds.value}): it does not say where that is written"
        shows = [each.channel for each in (off.dark, off.cools) if each is not None]
        scanned = {name for scan in driver.scans() for name in scan.channels}
        for channel in sorted(set(shows) - scanned):
            yield f"off ({off.adds.value}): {channel!r}, which shows it, is not scanned"
        for channel in off.drives:
            if channel not in driver.channels or not driver.channels[channel].settable:
                yield f"off ({off.adds.value}): {channel!r}, which it goes by, cannot be set"
        for channel, value in off.steps:
            try:
                driver.write(channel, value)
            except ValueError as why:
                yield f"off ({off.adds.value}): {channel} = {value:g} cannot be sent: {why}"


# ---- every settable channel

# Values to try, in this order: states and switches first, then typical setpoints.
VALUES = (1.0, 0.0, 2.0, 5.0, 10.0, 50.0, 100.0, 500.0, 0.5, 0.1, 0.05, 0.01, 0.001)
ROUND_OFF = 1e-9


def _each_set(driver: Driver, face: Face, wait: Wait | None) -> tuple[str, ...]:
    """Set every settable channel, and return the findings.

    Some commands are refused until another one was sent (for example while a camera is not open).
    Refused channels are tried again as long as others succeed; those refused to the end are
    findings.
    """
    found: list[str] = []
    undo: list[tuple[str, float]] = []
    waiting = [name for name, channel in driver.channels.items() if channel.settable]
    progress = True
    while waiting and progress:
        refused: dict[str, str] = {}
        for name in waiting:
            try:
                before = _shown(driver, face, name)
                found += _set(driver, face, name, before, wait)
            except DeviceFault as why:
                refused[name] = str(why)
                continue
            except (PairDisagrees, BadReply) as why:
                found.append(f"setting {name}: {why}")
                continue
            if before:  # restored at once: other channels may need it
                _put(driver, face, name, before, wait)
            else:
                undo.append((name, before))
        progress = len(refused) < len(waiting)
        waiting = list(refused)
    none = "it takes no value that was tried"
    found += [f"setting {name}: {none}: {refused[name]}" for name in waiting]
    for name, value in reversed(undo):
        _put(driver, face, name, value, wait)
    return tuple(found)


def _set(
    driver: Driver, face: Face, name: str, before: float, wait: Wait | None
) -> tuple[str, ...]:
    """Set a channel to the first accepted value that differs from the present one, if any."""
    channel = driver.channels[name]
    tolerance = channel.resolution + ROUND_OFF
    fits = [value for value in VALUES if _fits(driver, name, value)]
    if not fits:
        return (f"setting {name}: the driver takes none of {', '.join(map(str, VALUES))}",)
    others = [value for value in fits if not abs(value - before) <= tolerance]
    refusal = DeviceFault(name)
    for value in others or fits:
        try:
            write(driver, face, name, value)
        except DeviceFault as why:
            refusal = why
            continue
        if channel.readback is None or (channel.settle_s and wait is None):
            return ()
        if channel.settle_s and wait is not None:
            wait(channel.settle_s)
        after = _shown(driver, face, name)
        if abs(after - value) <= tolerance:
            return ()
        return (f"setting {name} to {value:g}: {channel.readback} shows {after:g}",)
    raise refusal


def _fits(driver: Driver, name: str, value: float) -> bool:
    try:
        return bool(driver.write(name, value))
    except ValueError:
        return False


def _shown(driver: Driver, face: Face, name: str) -> float:
    """Return a channel's read-back; NaN if it has none."""
    readback = driver.channels[name].readback
    for scan in driver.scans():
        if readback in scan.channels:
            values = scan.decode(exchange(face, scan.request))
            return values[scan.channels.index(str(readback))]
    return math.nan


def _put(driver: Driver, face: Face, name: str, value: float, wait: Wait | None) -> None:
    if math.isnan(value):
        return
    with suppress(DeviceFault, PairDisagrees, BadReply, ValueError):
        write(driver, face, name, value)
        if wait is not None:
            wait(driver.channels[name].settle_s)
