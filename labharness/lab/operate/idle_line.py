"""Caring for a line without a run: who stands on it, what it reads, making it safe, its latch."""

import asyncio
import json
import math
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any, TypeVar

from labharness.core.clock import Chance, Clock, PacedLoop, VirtualLoop, utc_text, wall_clock_utc
from labharness.core.clock import run as run_on
from labharness.core.errors import LabError
from labharness.core.files.durable import append_durably
from labharness.core.vocabulary import Cause, Trip
from labharness.core.vocabulary.persons import bad_name
from labharness.instruments.link import LinkLost
from labharness.journal.null_journal import NullJournal
from labharness.lab.config.installed import absent
from labharness.lab.config.lab_file import BadLabFile
from labharness.lab.config.lab_plan import LabPlan
from labharness.lab.config.lock import MAKES_SAFE, LineLock
from labharness.lab.operate.silence import remedied
from labharness.lab.wiring.alarms import NotDone, line_alarms, line_is_verified, reset_alarms
from labharness.lab.wiring.control import served
from labharness.lab.wiring.lab import Lab
from labharness.lab.wiring.operators import TerminalOperator
from labharness.line import Instrument, NoReply
from labharness.line.hindrances import causes_of
from labharness.safety.guard import Latch
from labharness.safety.guard.armed import SOCKET_FILE
from labharness.safety.kernel import Bound
from labharness.work.desk import ByHand, Nobody

__all__ = [
    "NotReset",
    "identify",
    "make_safe",
    "read_now",
    "reset",
    "still_active",
    "watch",
]

T = TypeVar("T")

OPEN_S_MAX = 2.0  # for the links, all at once; who is not there by then is left out, save the guard
LOOK_S_MAX = 1.0  # for the reading that says which state is safe


class NotReset(LabError, RuntimeError, code="latch_not_reset"):
    """The latch, or an alarm, stays: the message says what stands in the way."""


def identify(plan: LabPlan) -> list[tuple[str, str, str]]:
    """Ask every instrument who it is, and if it is set as the lab file says; nothing is written.

    Returns:
        Name, what it says it is, and what is wrong (``""`` when nothing is), a row for each thing
        that is. Ports that are lost for one reason are named together, and stand for their
        instruments.

    Raises:
        LineBusy: Somebody owns the line.
    """

    async def ask(lab: Lab) -> list[tuple[str, str, str]]:
        lost: dict[str, list[str]] = {}
        for port, link in lab.links.items():
            try:
                await link.open()
            except LinkLost as why:
                lost.setdefault(str(why), []).append(port)
        found = [(_named(ports), "", why) for why, ports in lost.items()]
        shut = {port for ports in lost.values() for port in ports}
        open_ports = [port for port in lab.links if port not in shut]
        # Side by side: a lab whose power is off is told of in the time of its slowest port.
        for rows in await asyncio.gather(*(_on_port(plan, lab, port) for port in open_ports)):
            found += rows
        return found

    lacking = [row.name for row in plan.file.port if any(absent((row.link,)))]
    if lacking:  # one command brings it all, and nothing is opened before
        return [(_named(lacking), "", plan.lacking)]
    with _unowned(plan, "checks the line"):
        return _with_lab(plan, ask)


def _named(ports: Sequence[str]) -> str:
    return f"port{'s' if len(ports) > 1 else ''} {', '.join(ports)}"


async def _on_port(plan: LabPlan, lab: Lab, port: str) -> list[tuple[str, str, str]]:
    """Ask the instruments of one port, one after the other, as ``identify`` does."""
    found: list[tuple[str, str, str]] = []
    silent: list[tuple[Instrument, str]] = []
    heard = False
    for name, instrument in lab.line.instruments.items():
        if instrument.port != port:
            continue
        try:
            identity = await lab.line.identify(name)
        except (NoReply, LinkLost) as why:
            silent.append((instrument, str(why)))
            continue
        heard = True
        serial = identity.serial and f", serial number {identity.serial}"
        found.append((name, f"{identity.model} {identity.firmware}".strip() + serial, ""))
        found += [(name, "", wrong) for wrong in await _set_otherwise(lab, instrument)]
    return found + [
        (instrument.name, "", remedied(plan, instrument, why, heard=heard))
        for instrument, why in silent
    ]


async def _set_otherwise(lab: Lab, instrument: Instrument) -> list[str]:
    """Read what shows whether an instrument is set as the lab file says; say where it is not."""
    wrong = []
    scans = {scan.name: scan for scan in instrument.driver.scans()}
    for name in instrument.driver.proves:
        try:
            if name in scans:
                await lab.line.read(f"{instrument.name}.{scans[name].channels[0]}")
            else:
                await lab.line.query(instrument.name, name)
        except (NoReply, LinkLost) as why:
            wrong.append(str(why))
    return wrong


def read_now(plan: LabPlan, channels: Sequence[str]) -> list[dict[str, Any]]:
    """Measure channels of a line that nobody owns; only their instruments are spoken to.

    Returns:
        For each what ``ByHand`` answers to ``read``.

    Raises:
        LineBusy: Somebody owns it.
    """

    async def look(lab: Lab) -> list[dict[str, Any]]:
        hands = ByHand(lab.line, Nobody())
        shut: dict[str, str] = {}  # by port: why it does not open; "" where it is open
        unmet: dict[str, str] = {}  # by instrument: why it is not to be read; "" where it is
        found = []
        for channel in channels:
            name = channel.partition(".")[0]
            if name in lab.line.instruments and name not in unmet:
                unmet[name] = await _met(plan, lab, name, shut)
            if unmet.get(name):
                found.append({"ok": False, "error": unmet[name]})
            else:
                found.append(await hands.answer({"do": "read", "channel": channel}))
        return found

    asked = {channel.partition(".")[0] for channel in channels}
    rows = {row.name: row for row in plan.file.port}
    links = {rows[each.port].link for each in plan.instruments if each.name in asked}
    if any(absent(links)):
        raise BadLabFile(f"{plan.path}: {plan.lacking}")

    with _unowned(plan, "reads the line"):
        return _with_lab(plan, look)


async def _met(plan: LabPlan, lab: Lab, name: str, shut: dict[str, str]) -> str:
    """Open an instrument's port, once for all on it; ask who it is; return what is wrong."""
    instrument = lab.line.instruments[name]
    port = instrument.port
    if port not in shut:
        shut[port] = ""
        try:
            await lab.links[port].open()
        except LinkLost as why:
            shut[port] = str(why)
    if shut[port]:
        return shut[port]
    try:
        await lab.line.identify(name)
    except (LinkLost, NoReply) as why:
        return remedied(plan, instrument, str(why)) if isinstance(why, NoReply) else str(why)
    return ""


def watch(plan: LabPlan, show: Callable[[Mapping[str, Any]], bool]) -> None:
    """Poll a line that nobody owns, until ``show`` has seen enough; whoever is silent is named.

    Another terminal may read it meanwhile, and make it safe. What the line should keep of itself
    and has lost calls for people, where they can be called.

    Args:
        plan: The lab's files.
        show: Given what ``ByHand`` answers to ``status`` after every poll, with ``unknown``: why
            nothing is known of a port or an instrument; ``False`` ends it.

    Raises:
        LineBusy: Somebody owns it.
    """

    async def look(lab: Lab) -> None:
        hands = ByHand(lab.line, Nobody())
        with suppress(BadLabFile):  # who has no channel to people sees the line all the same
            line_alarms(lab)
        unknown = await _open_links(lab)

        async def answer(asked: Mapping[str, Any]) -> dict[str, Any]:
            done = await hands.answer(asked)
            return {**done, "unknown": unknown} if asked.get("do") == "status" else done

        await lab.line.listen()
        async with served(plan.state_dir, answer, lab.clock, lambda text: None):
            going_on = True
            while going_on:
                await _identify_others(lab, unknown)
                going_on = show(await answer({"do": "status"}))
                if going_on:
                    await lab.line.next_tick()

    with _unowned(plan, "watches the line"):
        _with_lab(plan, look, PacedLoop(1.0))


def make_safe(plan: LabPlan, by: str, reason: str) -> dict[str, Any]:
    """Bring a line that nobody owns to its safe state; what does not answer is left out.

    Returns:
        What ``ByHand`` answers to ``safe``, with ``unopened``: the links that did not open.

    Raises:
        LineBusy: Somebody owns it.
    """

    async def act(lab: Lab) -> dict[str, Any]:
        unopened = [f"{name}: {why}" for name, why in (await _open_links(lab)).items()]
        line = lab.line
        rows = line.envelope.procedures.values()
        depends = [each.channel for row in rows for each in (*row.when, row.unless) if each]
        depends += [row.channel for row in line.envelope.trips if row.cause is Cause.OVER_PRESSURE]
        for state in (row for row in line.envelope.interlocks if not row.guards):
            bounds = [each for each in (state.during, *state.require) if isinstance(each, Bound)]
            depends += [each.channel for each in bounds]
        # what is safe depends on it, if it can be had
        await line.read_all(list(dict.fromkeys(depends)), LOOK_S_MAX)
        done = await ByHand(line, Nobody()).answer({"do": "safe", "by": by, "reason": reason})
        return {**done, "unopened": unopened}

    with _unowned_if_known(plan):
        done = _with_lab(plan, act)
        if done["ok"] and not done["unopened"] and not done["unverified"]:
            line_is_verified(plan, done["procedure"])
        said = {"at": utc_text(wall_clock_utc()), "name": by, "reason": reason, **done}
        with suppress(OSError):  # after the bytes, and a full disk keeps none back
            append_durably(plan.state_dir / "safes.jsonl", json.dumps(said))
        return done


async def _open_links(lab: Lab) -> dict[str, str]:
    """Open all links at once, each for so long at most; say of ports that did not open why."""

    async def open_one(port: str) -> str:
        link = lab.links[port]
        guarded = getattr(link, "guarded", False)  # it bounds itself, and nothing goes without it
        try:
            async with asyncio.timeout(None if guarded else OPEN_S_MAX):
                await link.open()
        except (LinkLost, TimeoutError) as why:
            return str(why) or f"not open within {OPEN_S_MAX:g} s"
        return ""

    found = await asyncio.gather(*map(open_one, lab.links))
    return {f"port {port}": why for port, why in zip(lab.links, found, strict=True) if why}


async def _identify_others(lab: Lab, unknown: dict[str, str]) -> None:
    """Ask those who have not said who they are, the silent ones only once they are heard again."""
    for name, instrument in lab.line.instruments.items():
        shut = f"port {instrument.port}" in unknown
        heard = any(
            math.isfinite(lab.line.latest(f"{name}.{c}")) for c in instrument.driver.channels
        )
        if shut or name in lab.line.identities or (name in unknown and not heard):
            continue
        try:
            await lab.line.identify(name)
            unknown.pop(name, None)
        except (LinkLost, NoReply) as why:
            unknown[name] = str(why)


def _unowned(plan: LabPlan, does: str) -> LineLock:
    """Have the line to oneself, and leave word of what is done with it meanwhile."""
    plan.make_state_dir()
    return plan.lock(plan.looker(does))


def _unowned_if_known(plan: LabPlan) -> AbstractContextManager[object]:
    """Have the line to oneself where that can be known: a procedure waits for no file.

    Nobody can hold what cannot be locked, such as a pipe in the lock's place.
    """
    try:
        return _unowned(plan, MAKES_SAFE)
    except OSError:
        return nullcontext()


def reset(plan: LabPlan, name: str, reason: str) -> Trip | None:
    """Open the latch: the cause is gone, and a named person says why. A reset is no start.

    Returns:
        The trip that had latched; ``None`` when nothing was latched.

    Raises:
        NotReset: No name or reason, a name that misleads, the cause still stands, or a disk fails.
            Where only the alarms could not be reset, another reset does it.
        LineBusy: A run owns the line.
    """
    if not name.strip() or not reason.strip():
        raise NotReset("a reset takes a name and a reason")
    if why := bad_name(name):
        raise NotReset(why)
    with _unowned(plan, "resets the line"):
        trip = Latch(plan.state_dir / "latch.json", plan.port_latch()).trip or _held_by_guard(plan)
        if trip is None:  # the file may have been removed by hand; its alarms go with it
            _reset_alarms(plan, name, reason)
            return None

        def record(what: str) -> None:
            line = {
                "at": utc_text(wall_clock_utc()),
                "what": what,
                "name": name,
                "reason": reason,
                "cause": trip.cause.value,
                "detail": trip.detail,
            }
            append_durably(plan.state_dir / "resets.jsonl", json.dumps(line, ensure_ascii=False))

        async def open_latch(lab: Lab) -> None:
            active = await still_active(lab, trip)
            if active:
                raise NotReset(f"the cause still stands: {'; '.join(active)}")
            try:
                record("asked")  # who reset outlives a power cut, or nobody did
            except OSError as why:
                raise NotReset(f"resets.jsonl cannot be written: {why.strerror or why}") from None
            ended = "opened"
            try:
                await lab.line.guard.reset()
            except OSError as why:
                ended = f"the latch does not open: {why}"
            with suppress(OSError):  # the latch is as it is: who asked is written down
                record(ended)
            if ended != "opened":
                raise NotReset(ended)

        _with_lab(plan, open_latch)
        try:
            _reset_alarms(plan, name, reason)
        except NotReset as why:
            raise NotReset(f"the latch is open, its alarms are not reset: {why}") from None
        return trip


def _held_by_guard(plan: LabPlan) -> Trip | None:
    """Return the trip that a running guard holds, though its latch file was removed by hand."""
    if not (plan.state_dir / SOCKET_FILE).exists():
        return None

    async def ask(lab: Lab) -> Trip | None:
        await _open_links(lab)
        return lab.line.guard.latch.trip

    return _with_lab(plan, ask)


def _reset_alarms(plan: LabPlan, name: str, reason: str) -> None:
    try:
        reset_alarms(plan, now=wall_clock_utc(), who=name, why=reason)
    except NotDone as why:
        raise NotReset(str(why)) from None


async def still_active(lab: Lab, trip: Trip) -> list[str]:
    """Open a lab's line, look, and return what stands in the way of resetting a trip."""
    try:
        await lab.line.open()
    except (LinkLost, NoReply) as why:
        return [str(why)]
    await lab.line.next_tick()
    line = lab.line
    return list(causes_of(trip, line.memory, line.instruments, line.clock.now_s()))


def _with_lab(
    plan: LabPlan,
    work: Callable[[Lab], Coroutine[Any, Any, T]],
    loop: asyncio.AbstractEventLoop | None = None,
) -> T:
    """Open the lab's line, journaling nothing; a latch that cannot be read hinders nobody."""
    simulated = plan.links == ("loopback",)
    loop = loop or (VirtualLoop() if simulated else PacedLoop(1.0))

    async def main() -> T:
        lab = Lab(
            plan,
            clock=Clock(loop),
            chance=Chance(1 if simulated else None),
            journal=NullJournal(),
            operator=TerminalOperator(lambda prompt: ""),
            latch=Latch.or_shut,
        )
        try:
            return await work(lab)
        finally:
            await lab.line.close()

    return run_on(main(), loop)
