"""Every channel of a driver that can be set, set at its simulator and read back."""

import math
from collections.abc import Callable, Iterator

from labharness.core.vocabulary import BadReply, DeviceFault
from labharness.faces.testing.pairs import PairDisagrees, exchange
from labharness.instruments.driver import Driver
from labharness.instruments.simulation import Face

__all__ = ["each_set"]

# What is tried, in this order: states and switches first, then what a setpoint may take.
VALUES = (1.0, 0.0, 2.0, 5.0, 10.0, 50.0, 100.0, 500.0, 0.5, 0.1, 0.05, 0.01, 0.001)
ROUND_OFF = 1e-9

Wait = Callable[[float], object]


def each_set(driver: Driver, face: Face, wait: Wait | None) -> tuple[str, ...]:
    """Set every channel that can be set, and return what is wrong.

    Some orders are refused until another was given (a camera that is not open): what is refused is
    tried again as long as others are taken. What is refused in the end is a finding.
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
            if before:  # what was on goes on at once: others may need it
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


def _set(driver: Driver, face: Face, name: str, before: float, wait: Wait | None) -> Iterator[str]:
    """Set a channel to the first value that is taken, another one than it has if there is one."""
    channel = driver.channels[name]
    tolerance = channel.resolution + ROUND_OFF
    fits = [value for value in VALUES if _fits(driver, name, value)]
    if not fits:
        return iter([f"setting {name}: the driver takes none of {', '.join(map(str, VALUES))}"])
    others = [value for value in fits if not abs(value - before) <= tolerance]
    refusal = DeviceFault(name)
    for value in others or fits:
        try:
            _write(driver, face, name, value)
        except DeviceFault as why:
            refusal = why
            continue
        if channel.readback is None:
            return iter(())
        if channel.settle_s:
            if wait is None:
                return iter(())
            wait(channel.settle_s)
        after = _shown(driver, face, name)
        if abs(after - value) <= tolerance:
            return iter(())
        return iter([f"setting {name} to {value:g}: {channel.readback} shows {after:g}"])
    raise refusal


def _fits(driver: Driver, name: str, value: float) -> bool:
    try:
        return bool(driver.write(name, value))
    except ValueError:
        return False


def _write(driver: Driver, face: Face, name: str, value: float) -> None:
    for request in driver.write(name, value):
        driver.accept(name, exchange(face, request))


def _shown(driver: Driver, face: Face, name: str) -> float:
    """Read a channel back; NaN where nothing shows it."""
    readback = driver.channels[name].readback
    for scan in driver.scans():
        if readback in scan.channels:
            values = scan.decode(exchange(face, scan.request))
            return values[scan.channels.index(str(readback))]
    return math.nan


def _put(driver: Driver, face: Face, name: str, value: float, wait: Wait | None) -> None:
    """Put a value back, where it can be."""
    if math.isnan(value):
        return
    try:
        _write(driver, face, name, value)
    except (DeviceFault, PairDisagrees, BadReply, ValueError):
        return
    if wait is not None:
        wait(driver.channels[name].settle_s)
