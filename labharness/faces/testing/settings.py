"""Set every settable channel of a driver at its simulator, and read it back."""

import math
from collections.abc import Callable

from labharness.core.vocabulary import BadReply, DeviceFault
from labharness.faces.testing.pairs import PairDisagrees, exchange, write
from labharness.instruments.driver import Driver
from labharness.instruments.simulation import Face

# Values to try, in this order: states and switches first, then typical setpoints.
VALUES = (1.0, 0.0, 2.0, 5.0, 10.0, 50.0, 100.0, 500.0, 0.5, 0.1, 0.05, 0.01, 0.001)
ROUND_OFF = 1e-9

Wait = Callable[[float], object]


def each_set(driver: Driver, face: Face, wait: Wait | None) -> tuple[str, ...]:
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
    found += [
        f"setting {name}: it takes no value that was tried: {refused[name]}" for name in waiting
    ]
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
    try:
        write(driver, face, name, value)
    except (DeviceFault, PairDisagrees, BadReply, ValueError):
        return
    if wait is not None:
        wait(driver.channels[name].settle_s)
