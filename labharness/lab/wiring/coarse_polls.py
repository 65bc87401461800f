"""Chooses the polling periods of a pre-flight: as long as limits and watchdogs allow."""

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

from labharness.core.vocabulary import Command
from labharness.core.vocabulary.channels import owner_of, split_channel
from labharness.core.vocabulary.comm_loss import safe_within_s
from labharness.instruments.driver import Driver
from labharness.lab.config.lab_plan import LabPlan
from labharness.lab.config.wires import scanned
from labharness.line import Instrument
from labharness.safety.kernel import Envelope
from labharness.work.plan import InstructionSet, stated_commands

COARSE_TICK_S = 20.0
STATES_TICK_S = 60.0  # not a temperature, flow, pressure or setting
TICK_S_PER_CM3 = 0.005  # 500 sccm then change a shut tube by 32 Torr from poll to poll
SETTINGS_TICK_S = 240.0  # nothing nominal changes a setting, and each command reads its own back
FINE_TICK_S = 1.0  # of the plan's own commands there is no coarser one
TUBE_CHANNELS = frozenset({"flow", "pressure"})
PROCESS_CHANNELS = ("temperature", "flow", "pressure")


def coarse_polls(lab: LabPlan, instructions: InstructionSet) -> tuple[LabPlan, float, float]:
    """Choose the polls of a plan's flight on a lab.

    Returns:
        The lab, its instruments with their polls and its envelope with their staleness; the period
        of the poller's grid (s); and how often the plan looks at the tube (s), a multiple of it.
    """
    tube_s = _tube_s(lab)
    commands = [
        command
        for each in instructions.instructions
        for action, asked in each.ways()
        for command in stated_commands(action, asked)
    ]
    watchdogs_s = _watchdogs_s(lab, commands)
    are_set = {owner_of(command.channel) for command in commands}
    paces_s = {
        each.name: _paces_s(
            each, lab, tube_s, watchdogs_s.get(each.name, math.inf), is_set=each.name in are_set
        )
        for each in lab.instruments
    }
    instruments = tuple(_sparing(each, paces_s[each.name]) for each in lab.instruments)
    coarse = replace(lab, instruments=instruments, envelope=_patient(lab, paces_s))
    tick_s = min(tube_s, *(pace_s for each in paces_s.values() for pace_s in each.values()))
    return coarse, tick_s, tube_s


def _tube_s(lab: LabPlan) -> float:
    """Choose how often the tube is looked at: its pressure passes no limit between two polls."""
    if lab.file.tube is None:
        return COARSE_TICK_S
    return min(COARSE_TICK_S, max(FINE_TICK_S, TICK_S_PER_CM3 * lab.file.tube.volume_cm3))


def _watchdogs_s(lab: LabPlan, commands: Sequence[Command]) -> dict[str, float]:
    """Return how often an instrument must be asked: twice within its own watchdog.

    A watchdog counts where the plan's commands energise its channels.
    """
    asked_s: dict[str, float] = {}
    drivers: dict[str, Driver] = {each.name: each.driver for each in lab.instruments}
    energising = (
        split_channel(command.channel)
        for command in commands
        if isinstance(command.value, str) or command.value > 0  # the result of a step may be
    )
    for name, channel in energising:
        spec = drivers[name].channels.get(channel) if name in drivers else None
        within_s = None if spec is None else safe_within_s(spec.on_comm_loss)
        if within_s is not None:
            poll_s = max(FINE_TICK_S, math.floor(within_s / 2))
            asked_s[name] = min(asked_s.get(name, poll_s), poll_s)
    return asked_s


def _paces_s(
    instrument: Instrument, lab: LabPlan, tube_s: float, watchdog_s: float, *, is_set: bool
) -> dict[str, float]:
    """Choose how often each scan that the kernel watches is polled.

    The flow of a controller that the plan does not set stays as it is, so it is read as a state is.
    One answers a watchdog: of those that read more than settings, the first that is polled most.
    """
    specs, polls = instrument.driver.channels, instrument.polls or {}
    paces_s: dict[str, float] = {}
    most_polled: dict[tuple[bool, float], str] = {}
    for scan in instrument.driver.scans():
        watched = {c for c in scan.channels if f"{instrument.name}.{c}" in lab.envelope.watches}
        if watched:
            settings = all(specs[channel].settable for channel in watched)
            pace_s = _pace_s(watched if is_set else watched - {"flow"}, tube_s)
            paces_s[scan.name] = SETTINGS_TICK_S if settings else pace_s
            period_s = polls.get(scan.name, scan.period_s) or math.inf
            most_polled.setdefault((settings, period_s), scan.name)
    if most_polled:
        answers = most_polled[min(most_polled)]
        paces_s[answers] = min(paces_s[answers], watchdog_s)
    return paces_s


def _pace_s(watched: Set[str], tube_s: float) -> float:
    """Return the coarse poll: flows and pressures are read as often as the tube is looked at."""
    if not TUBE_CHANNELS.isdisjoint(watched):
        return tube_s
    return STATES_TICK_S if watched.isdisjoint(PROCESS_CHANNELS) else COARSE_TICK_S


def _sparing(instrument: Instrument, paces_s: Mapping[str, float]) -> Instrument:
    """Poll only what the kernel watches; the rest is read where a command reads it back."""
    polls: dict[str, float | None] = {}
    for scan in instrument.driver.polled():
        asked_s = (instrument.polls or {}).get(scan.name, scan.period_s)
        pace_s = paces_s.get(scan.name)
        polls[scan.name] = None if pace_s is None or asked_s is None else max(asked_s, pace_s)
    return replace(instrument, polls=polls)


def _patient(lab: LabPlan, paces_s: Mapping[str, Mapping[str, float]]) -> Envelope:
    """Scale staleness with the poll, so that one lost reply would still not make a reading stale.

    Rules of plausibility are left out: the nominal plant has no noise, between two coarse polls
    every reading jumps, and the gas let in runs ahead of the gas measured.
    """
    envelope, purge = lab.envelope, lab.envelope.purge
    if purge.backfill is not None:
        purge = replace(purge, backfill=replace(purge.backfill, unmeasured_max=1.0))
    times = {
        channel: paces_s[each.name][scan.name]
        for channel, each, scan in scanned(lab.instruments)
        if scan.name in paces_s[each.name]
    }
    watches = {
        channel: replace(watch, stale_s=watch.stale_s * times[channel])
        for channel, watch in envelope.watches.items()
    }
    return replace(envelope, watches=watches, plausible=(), purge=purge)
