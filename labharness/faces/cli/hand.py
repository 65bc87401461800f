"""``labharness read|set|watch|hold|resume|stop|safe``: a line taken by the hand.

Where a process owns the line, what is asked goes through its control socket; without an owner,
only reading, watching and making safe work, and ``set`` takes ``--attend``: this process then owns
the line, and leaves it safe.
"""

import argparse
import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from labharness.core.clock import Chance, pause, steady_s
from labharness.core.errors import LabError
from labharness.faces.cli import (
    EXIT_COMPLETED,
    EXIT_FAILED,
    EXIT_REJECTED,
    EXIT_USAGE,
)
from labharness.faces.cli.elsewhere import driven_elsewhere, guarded_by, owner_abroad
from labharness.faces.cli.rising import still_rising
from labharness.faces.cli.show import (
    account,
    chosen_lab,
    complain,
    latched,
    say,
    say_queued,
)
from labharness.faces.cli.stopping import stoppable
from labharness.faces.cli.watching import value_text, watch_line
from labharness.lab import LabPlan, default_lab_path
from labharness.lab.config.channels import BadChannel, check_readable, check_settable, needed_first
from labharness.lab.config.lock import (
    MAKES_SAFE,
    LineBusy,
    LineLock,
    LockOwner,
    read_owner,
)
from labharness.lab.operate.attend import Attendance
from labharness.lab.operate.idle_line import make_safe, read_now
from labharness.lab.wiring.control import (
    ANSWER_S_MAX,
    LATE_S,
    NO_OPTION,
    Late,
    LineControl,
    NoOwner,
    running_beside,
)
from labharness.lab.wiring.runs import fresh_folder
from labharness.safety.guard.armed import lab_home
from labharness.work.desk.folder import JOURNAL_NAME

__all__ = ["hand", "late_of_safe"]

TAKEN_TRY_S = 0.2  # between two tries to have a line that another process holds
TAKEN_TOLD_S = 1.0  # whoever is waited for any longer is named
TAKEN_S_MAX = 30.0  # silent instruments hold up who reads them, checks them or makes them safe
VERIFY_MORE_S = 5.0  # beyond a procedure's own time: what was on its way, and its last look


def hand(chosen: argparse.Namespace) -> int:
    """Carry out one command; return its exit code."""
    try:
        plan = chosen_lab(chosen.lab)
        work = {"read": _read, "set": _set, "watch": _watch, "safe": _safe}
        return work.get(chosen.command, _ask_owner)(plan, chosen)
    except (BrokenPipeError, LabError):
        raise  # the command line's own matter
    except OSError as why:
        where = why.filename or plan.state_dir  # a write to a full disk names no file
        complain(f"labharness {chosen.command}: {where}: {why.strerror or why}")
        return EXIT_USAGE


def _owner(plan: LabPlan, late: Late | None = None) -> LineControl | None:
    try:
        return LineControl(plan.state_dir, late or [(LATE_S, partial(_say_late, plan, LATE_S))])
    except NoOwner:
        return None


def _say_late(plan: LabPlan, late_s: float) -> None:
    found = read_owner(plan.state_dir)
    who = (
        f"{found}, and" if found is not None and found.does else "the process that drives the line"
    )
    end = "" if found is None else f" (kill -9 {found.pid})"  # it may be past any milder signal
    complain(
        f"{who} has not answered for {late_s:g} s; waiting for at most "
        f"{ANSWER_S_MAX:g} s. If it stands still, end it{end}: its guard process makes safe what "
        "it drove over real links, and labharness safe then works without it"
    )


def late_of_safe(plan: LabPlan) -> Late:
    """Return what a person is told who waits for the answer to ``safe``, and when.

    To end a process that still verifies helps nobody: not before its procedure's time is over is
    there a word of it.
    """
    longest_s = max(each.verify_s_max for each in plan.envelope.procedures.values())
    late_s = longest_s + VERIFY_MORE_S

    def verifying() -> None:
        found = read_owner(plan.state_dir)
        who = "the process that drives the line" if found is None else f"process {found.pid}"
        complain(
            f"{who} was told to make the line safe and has not answered yet: to verify every step "
            f"may take {late_s:g} s"
        )

    return [(LATE_S, verifying), (late_s, partial(_say_late, plan, late_s))]


def _idle(plan: LabPlan) -> str:
    """Say that nothing runs on a lab, and where something does: that may be what was meant."""
    others = running_beside(plan.state_dir)
    default = lab_home(default_lab_path()).name
    running = ", ".join(
        f"{name}: use {option}"
        if option != NO_OPTION or name == default
        else f"{name}: of another installation"
        for name, option in others.items()
    )
    which = plan.file.lab.id + ("" if plan.option else " (the default)")
    return f"nothing runs on lab {which}" + (f"; running now: {running}" if running else "")


def _deaf(plan: LabPlan) -> str:
    """Return which process drives a line and has no door for other terminals; ``""`` for none."""
    found = read_owner(plan.state_dir)
    try:
        LineLock(plan.state_dir).release()
    except LineBusy:
        if found is not None and found.does:
            return f"nothing runs on lab {plan.file.lab.id}; {found}, and drives nothing"
        who = "a process" if found is None else f"process {found.pid}"
        writes = "" if found is None else f" and writes {found.folder}"
        return (
            f"{who} drives lab {plan.file.lab.id}{writes}, but listens to no other terminal "
            "(--speed fast, Windows, or a state directory with too long a name): stop it at its own"
        )
    except OSError:  # no such directory, so nobody is in it
        return ""
    return ""


def _read(plan: LabPlan, chosen: argparse.Namespace) -> int:
    wrong: dict[str, dict[str, Any]] = {}
    for channel in chosen.channels:
        try:
            check_readable(plan, channel)
        except BadChannel as why:
            wrong[channel] = {"ok": False, "error": str(why)}
    there = [channel for channel in chosen.channels if channel not in wrong]
    owner = _owner(plan) if there else None
    if owner is None:
        measured = read_now(plan, there) if there else []
    else:
        with owner:
            measured = [owner.ask(do="read", channel=each) for each in there]
    answers = {**wrong, **dict(zip(there, measured, strict=True))}
    found = [answers[channel] for channel in chosen.channels]
    for channel, each in zip(chosen.channels, found, strict=True):
        if not each["ok"]:
            complain(f"labharness read {channel}: {each['error']}")
        elif not chosen.json:
            say(f"{channel} {value_text(each['value'])} {each['unit']}".rstrip())
    if chosen.json:
        say(json.dumps(found, ensure_ascii=False))
    return EXIT_COMPLETED if all(each["ok"] for each in found) else EXIT_FAILED


def _set(plan: LabPlan, chosen: argparse.Namespace) -> int:
    try:
        check_settable(plan, chosen.channel, chosen.value, chosen.unit)
    except BadChannel as why:
        complain(f"labharness set: {why}")
        return EXIT_USAGE
    asked = {
        "do": "set",
        "channel": chosen.channel,
        "value": chosen.value,
        "unit": chosen.unit,
        "by": chosen.name or account(),
        "reason": chosen.reason,
    }
    owner = _owner(plan)
    found = read_owner(plan.state_dir)
    if owner is not None and found is not None and found.does:  # it drives nothing
        owner.close()
        complain(f"labharness set: {chosen.channel} was not set: {found}{found.advice}")
        return EXIT_FAILED
    if owner is not None:
        if chosen.attend:
            complain(
                "labharness set: another process drives the line: it is set there, and this "
                "terminal does not attend it"
            )
        with owner:
            return _outcome(plan, chosen, say, owner.ask(**asked))
    if elsewhere := driven_elsewhere(plan):
        complain(f"labharness set: {chosen.channel} was not set: {elsewhere}")
        return EXIT_FAILED
    if not chosen.attend:
        complain(
            f"labharness set: {_idle(plan)}; with --attend this terminal drives it, and leaves it "
            "safe when it ends"
        )
        return EXIT_USAGE
    return _attend(plan, chosen, asked)


def _attend(plan: LabPlan, chosen: argparse.Namespace, asked: Mapping[str, Any]) -> int:
    if chosen.speed is None and chosen.for_s is None:
        complain("labharness set: --speed fast takes --for SECONDS, or it would never end")
        return EXIT_USAGE
    folder = Path(chosen.out) if chosen.out else fresh_folder(Chance(None).uuid4())
    attendance = Attendance(
        plan, folder, by=str(asked["by"]), speed=chosen.speed, for_s=chosen.for_s, tell=complain
    )

    with stoppable(attendance.stop):
        answer, left = attendance.run(asked, told=partial(_outcome, plan, chosen, say_queued))
    state = "NOT verified safe" if left.unverified else "in its safe state, verified"
    say(f"{left.ended}; the line is {state}")
    for each in left.unverified:
        say(f"  {each}")
    if left.tripped:
        say(latched(plan, left.tripped))
    kept = (folder / JOURNAL_NAME).exists()
    say(f"journal: {folder}" if kept else f"no journal is kept: {folder} holds none")
    if left.unverified or left.tripped or not kept:
        return EXIT_FAILED
    return answer


def _outcome(
    plan: LabPlan,
    chosen: argparse.Namespace,
    say: Callable[[str], None],
    answer: Mapping[str, Any],
) -> int:
    """Return how a command ended; return its exit code."""
    if not answer["ok"]:
        complain(f"labharness set: {answer['error']}")
        return EXIT_FAILED
    ending, read_back = answer["ending"], answer["read_back"]
    shown = "" if read_back is None else f", reads {read_back:g}"
    detail = f": {answer['detail']}" if answer["detail"] else ""
    warning = answer.get("warning")  # an owner of an older version tells none
    without = f"; {warning}" if warning else ""
    say(f"{answer['channel']} {ending}{shown}{detail}{without}")
    first = needed_first(plan, chosen.channel, answer["detail"])
    if first:
        say(first)
    if ending in ("confirmed", "unconfirmed"):
        return EXIT_COMPLETED
    return EXIT_REJECTED if ending == "refused" else EXIT_FAILED


def _ask_owner(plan: LabPlan, chosen: argparse.Namespace) -> int:
    """Ask the owner to hold, resume or stop."""
    by = chosen.name or account()
    owner = _owner(plan)
    if owner is None:
        idle = (
            f"{_idle(plan)} (a run at --speed fast, or on Windows, is stopped at its own terminal)"
        )
        there = driven_elsewhere(plan, chosen.command)
        complain(f"labharness {chosen.command}: {there or _deaf(plan) or idle}")
        return EXIT_FAILED
    with owner:
        answer = owner.ask(do=chosen.command, by=by, reason=chosen.reason)
    if not answer["ok"]:
        complain(f"labharness {chosen.command}: {answer['error']}")
        return EXIT_FAILED
    say(answer["said"])
    return EXIT_COMPLETED


def _safe(plan: LabPlan, chosen: argparse.Namespace) -> int:
    answer, alone = _made_safe(plan, chosen.name or account(), chosen.reason)
    if not answer["ok"]:
        complain(f"labharness safe: {answer['error']}")
        return EXIT_FAILED
    unopened = answer.get("unopened", [])
    unverified = [*unopened, *answer["unverified"]]
    say(f"{answer['procedure']}: " + ("NOT verified" if unverified else "every step verified"))
    for each in unverified:
        say(f"  {each}")
    if alone and not answer["latched"]:
        say(
            "(nothing is latched; who has a port that did not open may drive the line)"
            if unopened
            else "(nothing was running, so nothing is latched)"
        )
    if answer.get("ended"):
        say("what was about to drive the line was ended")
    if answer["latched"]:
        say(f"the line is latched; when the cause is gone: {plan.reset_command}")
    hot = () if unverified else answer.get("hot", ())  # an owner of an older version names none
    rising = still_rising(plan, hot, partial(_owner, plan), complain)
    for each in rising:
        say(f"  {each}")
    return EXIT_FAILED if unverified or rising else EXIT_COMPLETED


def _made_safe(plan: LabPlan, by: str, reason: str) -> tuple[dict[str, Any], bool]:
    """Have a line made safe by who drives it, or here, as soon as nobody else holds it.

    Whoever reads or checks it holds it for a moment, or for seconds where instruments are silent;
    an owner that hangs up does until it has ended.

    Returns:
        The answer, and whether nobody was met.

    Raises:
        LineBusy: Another process holds it for too long.
    """
    asked = told = met = False
    since_s = steady_s()
    while True:
        late = late_of_safe(plan)
        owner = None if asked else _owner(plan, late) or owner_abroad(plan, late)
        if owner is not None:
            asked = met = True
            try:
                with owner:
                    return owner.ask(do="safe", by=by, reason=reason), False
            except NoOwner as why:
                complain(f"labharness safe: {why}; making the line safe without it")
                since_s = steady_s()
        try:
            return make_safe(guarded_by(plan), by, reason), not met
        except LineBusy as why:
            met = True
            waited_s = steady_s() - since_s
            if waited_s >= TAKEN_S_MAX:
                raise _in_vain(plan, why, asked=asked) from None
            if waited_s >= TAKEN_TOLD_S and not told:
                told = True
                complain(
                    f"labharness safe: {why.owner or why}; waiting for at most {TAKEN_S_MAX:g} s "
                    f"until it has ended{_way_out(why.owner)}"
                )
            pause(TAKEN_TRY_S)


def _way_out(owner: LockOwner | None) -> str:
    """Return how a process is ended that is waited for; of one that makes safe nothing."""
    if owner is None or owner.does == MAKES_SAFE:
        return ""
    if owner.does:
        return f". To go on at once end it (Ctrl-C there, or kill -9 {owner.pid})"
    end = f"kill -9 {owner.pid}"
    return f". It listens to no other terminal: stop it at its own, or if it stands still, {end}"


def _in_vain(plan: LabPlan, why: LineBusy, *, asked: bool) -> LineBusy:
    """Say that a line was not made safe, who keeps it, and what to do."""
    sent = "what the process that was asked has sent is not known" if asked else "nothing was sent"
    end = "" if why.owner is None else f" (Ctrl-C there, or kill -9 {why.owner.pid})"
    return LineBusy(
        f"NOT made safe, {sent}: {why.owner or why}, and still does after {TAKEN_S_MAX:g} s. End "
        f"it{end}, then: labharness safe{plan.option}"
    )


def _watch(plan: LabPlan, chosen: argparse.Namespace) -> int:
    def beside() -> str:
        return _idle(plan) if running_beside(plan.state_dir) else ""

    return watch_line(plan, chosen, _owner(plan), beside)
