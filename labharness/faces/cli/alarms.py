"""``labharness alarms``: list and acknowledge alarms, and test the channels that call people."""

import argparse
import threading
from functools import partial

from labharness.core.clock import utc_text, wall_clock_utc
from labharness.core.vocabulary.texts import Text
from labharness.faces.cli import EXIT_COMPLETED, EXIT_FAILED
from labharness.faces.cli.show import chosen_address, chosen_lab, latched, say, say_each, warn
from labharness.lab.doctor.latch import seen_latch, seen_owner
from labharness.lab.wiring.alarms import channel_answers, channels, do, listed, senders
from labharness.safety.alarm.board import Actor, Alarm, AlarmEvent, Board, Fact, Severity, described
from labharness.safety.alarm.outlets import ALERT_S_MAX

METHODS = {
    "ack": AlarmEvent.ACKNOWLEDGE,
    "shelve": AlarmEvent.TIMED_SHELVE,
    "remove": AlarmEvent.REMOVE_FROM_SERVICE,
    "place": AlarmEvent.PLACE_IN_SERVICE,
}
"""The events that a verb does not name as the standard does."""


def alarms_list(chosen: argparse.Namespace) -> None:
    """Print one line for each alarm, and whether the line is latched."""
    place = chosen_address(chosen.lab)
    board, found, damaged = listed(place, wall_clock_utc())
    say_each([_row(board, alarm) for alarm in found] or [Text("cli.no_alarms")])
    latch = seen_latch(place, owned=seen_owner(place).held)
    if latch.trip is not None:
        say(latched(place, latch.trip.detail))
    elif latch.trouble:
        warn(latch.trouble)
    if damaged:
        warn(Text("cli.alarm_damaged", count=damaged))


def _row(board: Board, alarm: Alarm) -> str:
    state = described(alarm.state)
    if alarm.until is not None:
        state = Text("cli.alarm_until", state=state, at=utc_text(alarm.until))
    if alarm.since is not None:
        state = Text("cli.alarm_since", state=state, at=utc_text(alarm.since))
    group = board.group_of(alarm.name)
    if group and group.first_out != alarm.name:
        state = Text("cli.alarm_after", state=state, first=group.first_out)
    what = Text("cli.alarm", severity=f"{alarm.severity:8}", name=alarm.name, state=state)
    return Text("pair", what=what, why=alarm.detail)


def alarms(chosen: argparse.Namespace) -> None:
    """Act on one alarm."""
    event, minutes = METHODS.get(chosen.verb) or AlarmEvent(chosen.verb), 0.0
    if event is AlarmEvent.TIMED_SHELVE:
        minutes = chosen.minutes or 0.0
        event = AlarmEvent.ONE_SHOT_SHELVE if chosen.once else event
    act = Fact(
        event=event,
        alarm=chosen.alarm,
        at=wall_clock_utc(),
        role=Actor(chosen.role),
        who=chosen.name,
        why=chosen.reason,
        shelve_s=minutes * 60,
    )
    for name in do(chosen_address(chosen.lab), act):
        say(Text("cli.alarm_done", name=name, event=event.value, by=chosen.name))


def alarms_test(chosen: argparse.Namespace) -> int:
    """Send one message on every channel: each needs a proof test like any other safeguard."""
    plan, found = chosen_lab(chosen.lab), dict[str, str]()
    told = channels(plan)
    if not told:
        say(Text("cli.no_alert"))
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
        why = found.get(each.name, Text("alarm.no_answer", within_s=ALERT_S_MAX))
        if not why:
            channel_answers(plan, each.name)
        severities = [one for one in Severity if one in each.severities]
        name, result = f"{each.name:16}", why or Text("cli.alert_sent")
        told_of = Text("cli.alert", level=each.level, result=result, severities=severities)
        say(Text("cli.alert_channel", name=name, said=told_of))
    return EXIT_COMPLETED if not any(found.get(each.name, "?") for each in told) else EXIT_FAILED
