"""``labharness alarms``: what calls for somebody, and what is done about it."""

import argparse
import threading
from functools import partial

from labharness.core.clock import utc_text, wall_clock_utc
from labharness.core.vocabulary.texts import Text
from labharness.faces.cli import EXIT_COMPLETED, EXIT_FAILED
from labharness.faces.cli.show import chosen_lab, complain, latched, say
from labharness.lab import LabPlan
from labharness.lab.doctor.machine import seen_latch
from labharness.lab.wiring.alarms import channel_answers, channels, do, listed, senders
from labharness.safety.alarm import (
    ALERT_S_MAX,
    Actor,
    Alarm,
    AlarmEvent,
    Board,
    Severity,
    described,
)

__all__ = ["alarms"]

EVENTS = {
    "ack": AlarmEvent.ACKNOWLEDGE,
    "shelve": AlarmEvent.TIMED_SHELVE,
    "unshelve": AlarmEvent.UNSHELVE,
    "suppress": AlarmEvent.SUPPRESS,
    "unsuppress": AlarmEvent.UNSUPPRESS,
    "remove": AlarmEvent.REMOVE_FROM_SERVICE,
    "place": AlarmEvent.PLACE_IN_SERVICE,
}


def alarms(chosen: argparse.Namespace) -> int:
    """List alarms, act on one, or try the channels of alert."""
    plan = chosen_lab(chosen.lab)
    if chosen.verb == "list":
        return _list(plan)
    if chosen.verb == "test":
        return _test(plan)
    return _act(plan, chosen)


def _list(plan: LabPlan) -> int:
    board, found, damaged = listed(plan, wall_clock_utc())
    for alarm in found:
        say(_row(board, alarm))
    if not found:
        say("no alarms")
    latch = seen_latch(plan)
    if latch.trip is not None:
        say(latched(plan, latch.trip.detail))
    elif latch.trouble:
        complain(f"labharness alarms: {latch.trouble}")
    if damaged:
        complain(f"labharness alarms: {damaged} damaged lines were passed over")
    return EXIT_COMPLETED


def _row(board: Board, alarm: Alarm) -> str:
    group = board.group_of(alarm.name)
    after = f"; after {group.first_out}" if group and group.first_out != alarm.name else ""
    since = "" if alarm.since is None else f" since {utc_text(alarm.since)}"
    until = "" if alarm.until is None else f" until {utc_text(alarm.until)}"
    state = f"{described(alarm.state)}{until}{since}{after}"
    what = f"{alarm.severity:8} {alarm.name}: {state}"
    return Text("pair", what=what, why=alarm.detail)


def _act(plan: LabPlan, chosen: argparse.Namespace) -> int:
    event = EVENTS[chosen.verb]
    minutes = 0.0
    if event is AlarmEvent.TIMED_SHELVE:
        minutes = chosen.minutes or 0.0
        if chosen.once:
            event = AlarmEvent.ONE_SHOT_SHELVE
    changed = do(
        plan,
        event,
        chosen.alarm,
        now=wall_clock_utc(),
        role=Actor(chosen.role),
        who=chosen.name,
        why=chosen.reason,
        shelve_s=minutes * 60,
    )
    for name in changed:
        say(f"{name}: {event.value} by {chosen.name}")
    return EXIT_COMPLETED


def _test(plan: LabPlan) -> int:
    """Send one message on every channel; a channel is proof-tested like any other safeguard."""
    found: dict[str, str] = {}
    told = channels(plan)
    if not told:
        say("the lab file names no [[alert]]")
        return EXIT_FAILED
    sender, ended = senders(plan), threading.Semaphore(0)

    def ending(name: str, why: str) -> None:
        found[name] = why
        ended.release()

    for each in told:
        title = f"{plan.file.lab.title}: test of alert channel {each.name}"
        sender.send(each.name, title, "no alarm", partial(ending, each.name))
    for _ in told:
        ended.acquire(timeout=ALERT_S_MAX)
    for each in told:
        why = found.get(each.name, f"no answer within {ALERT_S_MAX:g} s")
        if not why:
            channel_answers(plan, each.name)
        told_of = ", ".join(one for one in Severity if one in each.severities)
        say(f"{each.name:16} level {each.level}: {why or 'sent'} ({told_of})")
    return EXIT_COMPLETED if not any(found.get(each.name, "?") for each in told) else EXIT_FAILED
