"""Care of a line without a run: identify, read, watch, make safe, and reset its latch."""

import asyncio
import json
import math
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any, TypeVar

from labharness.core.clock import Chance, Clock, PacedLoop, VirtualLoop, utc_text, wall_clock_utc
from labharness.core.clock import run as run_on
from labharness.core.files.durable import append_durably
from labharness.core.vocabulary import Cause, Trip
from labharness.core.vocabulary.persons import bad_name
from labharness.core.vocabulary.texts import CodedError, Text, texts_in
from labharness.instruments.link import LinkLost, local
from labharness.instruments.link.descriptors import openers
from labharness.journal.null_journal import NullJournal
from labharness.lab.config.kinds import absent
from labharness.lab.config.lab_file import BadLabFile, PortRow
from labharness.lab.config.lab_plan import LabPlan
from labharness.lab.config.lock import MAKES_SAFE, LineLock
from labharness.lab.config.wires import scanned
from labharness.lab.wiring.alarms import NotDone, line_alarms, line_is_verified, reset_alarms
from labharness.lab.wiring.control import served
from labharness.lab.wiring.lab import Lab
from labharness.lab.wiring.operators import TerminalOperator
from labharness.line import Instrument, NoReply
from labharness.line.hindrances import causes_of
from labharness.line.instrument import channel_of
from labharness.safety.guard import Latch
from labharness.safety.kernel import Bound
from labharness.work.desk.by_hand import ByHand, Nobody

SILENT, OWN = "reply.none", "reply.own"
BROKEN = frozenset({"reply.bad", "reply.short"})
"""The codes of no reply at all, and of one that is not whole or not in form."""


def remedied(plan: LabPlan, instrument: Instrument, why: str, *, heard: bool = False) -> str:
    """Add advice to the reason of a silence; other reasons stay the same.

    A bus is silent in the same way for a lack of power, a wrong address, a wrong speed and a broken
    wire. So all are named, with the numbers of the lab file. A broken reply has the same causes,
    except that its instrument is on.

    Args:
        plan: The lab's files.
        instrument: The silent instrument.
        why: The text of the error.
        heard: Whether another instrument on the same port has answered.
    """
    row = next(row for row in plan.file.port if row.name == instrument.port)
    said = list(texts_in(why))
    codes = {each.code for each in said}
    if OWN in codes or row.link == "loopback" or not codes & {SILENT, *BROKEN}:
        return why
    looks = [Text("silence.on")] if SILENT in codes else []
    looks += [Text("silence.taken", by=by) for by in openers(row.path or "")]
    looks += [*_address(plan, instrument), *_link(row, instrument)]
    if not any(each.params.get("instrument") == instrument.name for each in said):
        why = Text("instrument.wrong", instrument=instrument.name, kind=instrument.kind, why=why)
    others = Text("silence.others", port=row.name) if heard else ""
    return Text("silence.look", why=why, looks=looks, others=others)


def _address(plan: LabPlan, instrument: Instrument) -> Iterator[Text]:
    settings = next(each.settings for each in plan.file.instrument if each.name == instrument.name)
    for key in ("unit", "address"):
        address = settings.get(key, getattr(instrument.driver, key, None))
        if address is not None:
            yield Text("silence.address", address=address)
            return


def _link(row: PortRow, instrument: Instrument) -> Iterator[Text]:
    if row.link == "serial":
        factory = instrument.driver.baud
        yield Text(
            "silence.speed",
            baud=row.baud,
            leaves=Text("silence.factory", baud=factory) if factory not in (0, row.baud) else "",
            parity=row.parity,
            stop_bits=row.stop_bits,
        )
        yield Text("silence.wires", path=row.path)
    elif row.link == "tcp":
        yield Text("silence.tcp", host=row.host, port=row.port)
        yield Text("silence.connection")
        yield Text("silence.server")
    else:
        yield Text("silence.where", where=row.resource or row.url)
        yield Text("silence.program")


T = TypeVar("T")

OPEN_S_MAX = 2.0  # for the links, all at once; a late one is left out, save the guard
LOOK_S_MAX = 1.0  # for the reading that selects the safe state


class NotReset(CodedError, RuntimeError, code="latch_not_reset"):
    """The latch, or an alarm, stays: the message names the obstacle."""


def identify(plan: LabPlan) -> list[tuple[str, str, str]]:
    """Ask every instrument for its identity and its settings; no setting is written.

    Returns:
        A row for each instrument and fault: name, identity, and the fault, or ``""``. Ports that
        are lost for one reason are named together, and stand for their instruments.

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
        # Side by side: a lab without power is reported in the time of its slowest port.
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
        try:
            found += [(name, "", wrong) for wrong in await lab.line.prove(name)]
        except LinkLost as why:
            found.append((name, "", str(why)))
    return found + [
        (instrument.name, "", remedied(plan, instrument, why, heard=heard))
        for instrument, why in silent
    ]


def read_now(plan: LabPlan, channels: Sequence[str]) -> list[dict[str, Any]]:
    """Measure channels of a line without an owner; only their instruments are asked.

    Returns:
        The answers of ``ByHand`` to ``read``.

    Raises:
        LineBusy: Another process owns it.
    """

    async def look(lab: Lab) -> list[dict[str, Any]]:
        hands = ByHand(lab.line, Nobody())
        shut: dict[str, str] = {}  # by port: the fault of its opening; "" where it is open
        unmet: dict[str, str] = {}  # by instrument: why it cannot be read; "" where it can
        replies = {  # by channel: the reply that has it
            channel: (each.name, scan.name)
            for channel, each, scan in scanned(lab.line.instruments.values())
        }
        read: dict[object, bool] = {}
        found: list[dict[str, Any]] = []
        for channel in channels:
            name = channel.partition(".")[0]
            if name in lab.line.instruments and name not in unmet:
                unmet[name] = await _met(plan, lab, name, shut)
            value = lab.line.latest(channel) if read.get(replies.get(channel)) else math.nan
            if unmet.get(name):
                found.append({"ok": False, "error": unmet[name]})
            elif math.isfinite(value):  # it came with another
                unit = channel_of(lab.line.instruments, channel)[2].unit
                found.append({"ok": True, "channel": channel, "value": value, "unit": unit})
            else:
                found.append(await hands.answer({"do": "read", "channel": channel}))
                read[replies.get(channel)] = found[-1]["ok"]
        return found

    asked = {channel.partition(".")[0] for channel in channels}
    rows = {row.name: row for row in plan.file.port}
    links = {rows[each.port].link for each in plan.instruments if each.name in asked}
    if any(absent(links)):
        raise BadLabFile("pair", what=str(plan.path), why=plan.lacking)

    with _unowned(plan, "reads the line"):
        return _with_lab(plan, look)


async def _met(plan: LabPlan, lab: Lab, name: str, shut: dict[str, str]) -> str:
    """Open an instrument's port, once for all on it; check its identity; return the fault."""
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
        await lab.line.meet(name)
    except (LinkLost, NoReply) as why:
        return remedied(plan, instrument, str(why)) if isinstance(why, NoReply) else str(why)
    return ""


def watch(plan: LabPlan, show: Callable[[Mapping[str, Any]], bool]) -> None:
    """Poll a line without an owner until ``show`` ends it; name the silent instruments.

    Another terminal may read it meanwhile, and make it safe. A lost state that the line should keep
    by itself calls people, where they can be called.

    Args:
        plan: The lab's files.
        show: Called after every poll with the answer of ``ByHand`` to ``status``, and
            ``unknown``: the faults of ports and instruments without readings; ``False`` ends it.

    Raises:
        LineBusy: Another process owns it.
    """

    async def look(lab: Lab) -> None:
        hands = ByHand(lab.line, Nobody())
        with suppress(BadLabFile):  # a lab without a channel to people is polled all the same
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


def make_safe(
    plan: LabPlan, by: str, reason: str, tell: Callable[[str], None] = lambda text: None
) -> dict[str, Any]:
    """Bring a line without an owner to its safe state; silent instruments are left out.

    Args:
        plan: The lab's files.
        by: The person who asks for it.
        reason: Their reason.
        tell: Called with each port where another instrument answers, before a byte of the safe
            state leaves. It leaves all the same: nothing refuses a procedure, and what answers
            otherwise may still be what heats.

    Returns:
        The answer of ``ByHand`` to ``safe``, with ``unopened``: the links that did not open.

    Raises:
        LineBusy: Another process owns it.
    """

    async def act(lab: Lab) -> dict[str, Any]:
        shut = await _open_links(lab)
        unopened = [f"{name}: {why}" for name, why in shut.items()]
        line = lab.line
        rows = line.envelope.procedures.values()
        depends = [each.channel for row in rows for each in (*row.when, row.unless) if each]
        depends += [row.channel for row in line.envelope.trips if row.cause is Cause.OVER_PRESSURE]
        for state in (row for row in line.envelope.interlocks if not row.guards):
            bounds = [each for each in (state.during, *state.require) if isinstance(each, Bound)]
            depends += [each.channel for each in bounds]
        # the safe state depends on it, if it can be read
        await line.read_all(list(dict.fromkeys(depends)), LOOK_S_MAX)
        for stranger in await _strangers(lab, shut):
            tell(stranger)
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


async def _strangers(lab: Lab, shut: Mapping[str, str]) -> list[str]:
    """Return where something answers, and not as the instrument of the lab file.

    The safe state waits for this for at most ``LOOK_S_MAX``.
    """

    async def ask(port: str, names: list[str]) -> list[str]:
        wrong: list[str] = []
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK_S_MAX):
                for name in names:
                    try:
                        await lab.line.identify(name)
                    except (NoReply, LinkLost) as why:
                        said = why.args[0]
                        if not any(each.code == SILENT for each in texts_in(said)):
                            wrong.append(Text("hand.stranger", port=port, why=said))
        return wrong

    ports: dict[str, list[str]] = {}
    for name, each in lab.line.instruments.items():
        if f"port {each.port}" not in shut:
            ports.setdefault(each.port, []).append(name)
    asked = asyncio.gather(*(ask(*each) for each in ports.items()))
    return [each for found in await asked for each in found]


async def _open_links(lab: Lab) -> dict[str, str]:
    """Open all links at once, within a time; return the reason for each that did not open."""

    async def open_one(port: str) -> str:
        link = lab.links[port]
        guarded = getattr(link, "guarded", False)  # it bounds itself, and no byte leaves without it
        try:
            async with asyncio.timeout(None if guarded else OPEN_S_MAX):
                await link.open()
        except (LinkLost, TimeoutError) as why:
            return str(why) or f"not open within {OPEN_S_MAX:g} s"
        return ""

    found = await asyncio.gather(*map(open_one, lab.links))
    return {f"port {port}": why for port, why in zip(lab.links, found, strict=True) if why}


async def _identify_others(lab: Lab, unknown: dict[str, str]) -> None:
    """Identify the instruments not yet identified, silent ones only when they answer again."""
    for name, instrument in lab.line.instruments.items():
        shut = f"port {instrument.port}" in unknown
        heard = any(
            math.isfinite(lab.line.latest(f"{name}.{c}")) for c in instrument.driver.channels
        )
        if shut or name in lab.line.identities or (name in unknown and not heard):
            continue
        try:
            await lab.line.meet(name)
            unknown.pop(name, None)
        except (LinkLost, NoReply) as why:
            unknown[name] = str(why)


def _unowned(plan: LabPlan, does: str) -> LineLock:
    """Hold the line alone, with a reason that other processes can read."""
    plan.make_state_dir()
    return plan.lock(does=does)


def _unowned_if_known(plan: LabPlan) -> AbstractContextManager[object]:
    """Hold the line alone where a lock is possible: a procedure waits for no file.

    A lock may be impossible, such as with a pipe in its place.
    """
    try:
        return _unowned(plan, MAKES_SAFE)
    except OSError:
        return nullcontext()


def reset(plan: LabPlan, name: str, reason: str) -> Trip | None:
    """Open the latch: the cause is gone, and a named person says why. A reset does not start.

    Returns:
        The trip that had latched; ``None`` when nothing was latched.

    Raises:
        NotReset: No name or reason, a name that misleads, the cause still stands, or a disk fails.
            Where only the alarms could not be reset, another reset does it.
        LineBusy: A run owns the line.
    """
    if not name.strip() or not reason.strip():
        raise NotReset("reset.takes")
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
                raise NotReset("reset.stands", active=active)
            try:
                record("asked")  # the name outlives a power cut, or there is no reset
            except OSError as why:
                raise NotReset("reset.no_record", why=why.strerror or str(why)) from None
            ended = "opened"
            try:
                await lab.line.guard.reset()
            except OSError as why:
                ended = Text("reset.shut", why=str(why))
            with suppress(OSError):  # the latch stays: the name that asked is recorded
                record(ended)
            if ended != "opened":
                raise NotReset(ended)

        _with_lab(plan, open_latch)
        try:
            _reset_alarms(plan, name, reason)
        except NotReset as why:
            raise NotReset("reset.alarms", why=str(why)) from None
        return trip


def _held_by_guard(plan: LabPlan) -> Trip | None:
    """Return the trip that a running guard holds, though its latch file was removed by hand."""
    if not (plan.state_dir / local.GUARD).exists():
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
    """Open a lab's line, poll it, and return the obstacles to the reset of a trip."""
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
    """Open the lab's line without a journal; a latch that cannot be read does not stop it."""
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
