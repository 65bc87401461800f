"""``labharness read|set|watch|hold|resume|stop|safe``: a line that is driven by hand.

If a process owns the line, each command goes through its control socket. Without an owner only
reading, watching and making safe work. ``set --attend`` makes this process the owner, which leaves
the line safe at its end.
"""

import argparse
import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from labharness.core.clock import Chance, pause, steady_s
from labharness.core.vocabulary.texts import Text, several
from labharness.faces.cli import EXIT_COMPLETED, EXIT_FAILED, EXIT_REJECTED
from labharness.faces.cli.elsewhere import (
    answer_of,
    driven_elsewhere,
    guarded_by,
    owner_abroad,
    signature,
)
from labharness.faces.cli.rising import still_rising
from labharness.faces.cli.show import (
    BadUse,
    CommandFailed,
    chosen_lab,
    complain,
    latched,
    looking,
    say,
    say_queued,
    warn,
)
from labharness.faces.cli.stopping import stoppable
from labharness.faces.cli.watching import value_text, watch_line
from labharness.lab import LabPlan, default_lab_path
from labharness.lab.config.channels import BadChannel, check_readable, check_settable, needed_first
from labharness.lab.config.lock import MAKES_SAFE, LineBusy, LineLock, LockOwner, read_owner
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

TAKEN_TRY_S = 0.2  # between two tries to have a line that another process holds
TAKEN_TOLD_S = 1.0  # after a longer wait the other process is named
TAKEN_S_MAX = 30.0  # silent instruments hold up a process that reads, checks or makes safe
VERIFY_MORE_S = 5.0  # beyond a procedure's own time: frames on their way, and the last look


def hand(chosen: argparse.Namespace) -> int:
    """Carry out one command; return its exit code."""
    plan = chosen_lab(chosen.lab)
    work = {"read": _read, "set": _set, "watch": _watch, "safe": _safe}
    with looking(plan.state_dir):
        return work.get(chosen.command, _ask_owner)(plan, chosen)


def _owner(plan: LabPlan, late: Late | None = None) -> LineControl | None:
    try:
        return LineControl(plan.state_dir, late or [(LATE_S, partial(_say_late, plan, LATE_S))])
    except NoOwner:
        return None


def _process(found: LockOwner | None) -> str:
    return Text("hand.driver") if found is None else Text("hand.process", pid=found.pid)


def _say_late(plan: LabPlan, late_s: float) -> None:
    found = read_owner(plan.state_dir)
    doing = found is not None and found.does
    who = Text("hand.doing", owner=str(found)) if doing else Text("hand.driver")
    end = "" if found is None else Text("hand.kill", pid=found.pid)  # it may heed no other signal
    complain(Text("hand.late", who=who, late_s=late_s, most_s=ANSWER_S_MAX, end=end))


def late_of_safe(plan: LabPlan) -> Late:
    """Return the messages to a person who waits for the answer to ``safe``, and their times.

    A process that still verifies must not be ended. Therefore no message advises it before the
    time of the longest procedure is over.
    """
    longest_s = max(each.verify_s_max for each in plan.envelope.procedures.values())
    late_s = longest_s + VERIFY_MORE_S

    def verifying() -> None:
        who = _process(read_owner(plan.state_dir))
        complain(Text("hand.verifying", who=who, late_s=late_s))

    return [(LATE_S, verifying), (late_s, partial(_say_late, plan, late_s))]


def _idle(plan: LabPlan) -> str:
    """Return that nothing runs on a lab, and where something does: it may have been meant."""
    default = lab_home(default_lab_path()).name
    running = [
        Text("hand.runs", name=name, option=option)
        if option != NO_OPTION or name == default
        else Text("hand.runs_elsewhere", name=name)
        for name, option in running_beside(plan.state_dir).items()
    ]
    idle = Text("hand.idle" if plan.option else "hand.idle_default", lab=plan.file.lab.id)
    return several(idle, Text("hand.running", labs=running) if running else "")


def _deaf(plan: LabPlan) -> str:
    """Return which process drives a line without a control socket; ``""`` if none does."""
    found, lab = read_owner(plan.state_dir), plan.file.lab.id
    try:
        LineLock(plan.state_dir).release()
    except LineBusy:
        if found is None:
            return Text("hand.deaf", who=Text("hand.some_process"), lab=lab)
        if found.does:
            return Text("hand.drives_nothing", lab=lab, owner=str(found))
        return Text("hand.deaf_writes", who=_process(found), lab=lab, folder=found.folder)
    except OSError:  # the directory is missing, so no process is in it
        return ""
    return ""


def _read(plan: LabPlan, chosen: argparse.Namespace) -> int:
    answers: dict[str, Mapping[str, Any]] = {}
    for channel in chosen.channels:
        try:
            check_readable(plan, channel)
        except BadChannel as why:
            answers[channel] = {"ok": False, "error": str(why)}
    there = [channel for channel in chosen.channels if channel not in answers]
    owner = _owner(plan) if there else None
    if owner is not None:
        with owner:
            answers |= {each: owner.ask(do="read", channel=each) for each in there}
    elif there:
        answers |= zip(there, read_now(plan, there), strict=True)
    found = [answers[channel] for channel in chosen.channels]
    for channel, each in zip(chosen.channels, found, strict=True):
        if not each["ok"]:
            warn(Text("pair", what=channel, why=each["error"]))
        elif not chosen.json:
            say(f"{channel} {value_text(each['value'])} {each['unit']}".rstrip())
    if chosen.json:
        say(json.dumps(found, ensure_ascii=False))
    return EXIT_COMPLETED if all(each["ok"] for each in found) else EXIT_FAILED


def _set(plan: LabPlan, chosen: argparse.Namespace) -> int:
    check_settable(plan, chosen.channel, chosen.value, chosen.unit)
    asked = {
        "do": "set",
        "channel": chosen.channel,
        "value": chosen.value,
        "unit": chosen.unit,
        **signature(chosen),
    }
    owner = _owner(plan)
    found = read_owner(plan.state_dir)
    if owner is not None and found is not None and found.does:  # it drives nothing
        owner.close()
        why = f"{found}{found.advice}"
        raise CommandFailed(Text("hand.not_set", channel=chosen.channel, why=why))
    if owner is not None:
        if chosen.attend:
            warn(Text("hand.set_there"))
        with owner:
            return _outcome(plan, chosen, say, owner.ask(**asked))
    if elsewhere := driven_elsewhere(plan):
        raise CommandFailed(Text("hand.not_set", channel=chosen.channel, why=elsewhere))
    if not chosen.attend:
        raise BadUse(Text("hand.attend", idle=_idle(plan)))
    return _attend(plan, chosen, asked)


def _attend(plan: LabPlan, chosen: argparse.Namespace, asked: Mapping[str, Any]) -> int:
    if chosen.speed is None and chosen.for_s is None:
        raise BadUse(Text("hand.endless"))
    folder = Path(chosen.out) if chosen.out else fresh_folder(Chance(None).uuid4())
    attendance = Attendance(
        plan, folder, by=str(asked["by"]), speed=chosen.speed, for_s=chosen.for_s, tell=complain
    )
    with stoppable(attendance.stop):
        answer, left = attendance.run(asked, told=partial(_outcome, plan, chosen, say_queued))
    state = Text("cli.not_safe" if left.unverified else "cli.safe")
    say(Text("hand.left", ended=left.ended, state=state))
    for each in left.unverified:
        say(Text("cli.item", text=each))
    if left.tripped:
        say(latched(plan, left.tripped))
    kept = (folder / JOURNAL_NAME).exists()
    say(Text("hand.journal" if kept else "hand.no_journal", folder=str(folder)))
    if left.unverified or left.tripped or not kept:
        return EXIT_FAILED
    return answer


def _outcome(
    plan: LabPlan, chosen: argparse.Namespace, say: Callable[[str], None], answer: Mapping[str, Any]
) -> int:
    """Print how a command ended; return its exit code."""
    if not answer["ok"]:
        warn(answer["error"])
        return EXIT_FAILED
    channel, ending, value = answer["channel"], answer["ending"], answer["read_back"]
    said = Text("hand.ended", channel=channel, ending=ending)
    if value is not None:
        said = Text("hand.reads", ended=said, value=value)
    if answer["detail"]:
        said = Text("pair", what=said, why=answer["detail"])
    say(several(said, answer.get("warning", "")))  # an owner of an older version sends no warning
    first = needed_first(plan, chosen.channel, answer["detail"])
    if first:
        say(first)
    if ending in ("confirmed", "unconfirmed"):
        return EXIT_COMPLETED
    return EXIT_REJECTED if ending == "refused" else EXIT_FAILED


def _ask_owner(plan: LabPlan, chosen: argparse.Namespace) -> int:
    """Ask the owner to hold, resume or stop."""
    owner = _owner(plan)
    if owner is None:
        there = driven_elsewhere(plan, chosen.command) or _deaf(plan)
        raise CommandFailed(there or Text("hand.own_terminal", idle=_idle(plan)))
    say(answer_of(owner, do=chosen.command, **signature(chosen))["said"])
    return EXIT_COMPLETED


def _safe(plan: LabPlan, chosen: argparse.Namespace) -> int:
    answer, alone = _made_safe(plan, **signature(chosen))
    if not answer["ok"]:
        raise CommandFailed(answer["error"])
    unopened = answer.get("unopened", [])
    unverified = [*unopened, *answer["unverified"]]
    code = "hand.not_verified" if unverified else "hand.verified"
    say(Text(code, procedure=answer["procedure"]))
    for each in unverified:
        say(Text("cli.item", text=each))
    if alone and not answer["latched"]:
        say(Text("hand.port_unopened" if unopened else "hand.not_latched"))
    if answer.get("ended"):
        say(Text("hand.beginning_ended"))
    if answer["latched"]:
        say(Text("hand.latched", command=plan.reset_command))
    hot = () if unverified else answer.get("hot", ())  # an owner of an older version names none
    rising = still_rising(plan, hot, partial(_owner, plan), complain)
    for each in rising:
        say(Text("cli.item", text=each))
    return EXIT_FAILED if unverified or rising else EXIT_COMPLETED


def _made_safe(plan: LabPlan, by: str, reason: str) -> tuple[dict[str, Any], bool]:
    """Have a line made safe by its owner, or by this process as soon as no other one holds it.

    A process that reads or checks the line holds it for a moment, or for seconds if instruments
    are silent. An owner that hangs up holds it until it has ended.

    Returns:
        The answer, and whether no other process was met.

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
                warn(Text("hand.safe_without", why=str(why)))
                since_s = steady_s()
        try:
            return make_safe(guarded_by(plan), by, reason, warn), not met
        except LineBusy as why:
            met = True
            waited_s = steady_s() - since_s
            if waited_s >= TAKEN_S_MAX:
                raise _in_vain(plan, why, asked=asked) from None
            if waited_s >= TAKEN_TOLD_S and not told:
                told = True
                who, out = str(why.owner or why), _way_out(why.owner)
                warn(Text("hand.taken", who=who, most_s=TAKEN_S_MAX, out=out))
            pause(TAKEN_TRY_S)


def _way_out(owner: LockOwner | None) -> str:
    """Return how to end a process that is waited for; nothing for one that makes safe."""
    if owner is None or owner.does == MAKES_SAFE:
        return ""
    return Text("hand.end_now" if owner.does else "hand.end_deaf", pid=owner.pid)


def _in_vain(plan: LabPlan, why: LineBusy, *, asked: bool) -> LineBusy:
    """Return the error that a line was not made safe, with its holder and the remedy."""
    return LineBusy(
        Text(
            "hand.in_vain",
            sent=Text("hand.sent_unknown" if asked else "hand.sent_nothing"),
            who=str(why.owner or why),
            most_s=TAKEN_S_MAX,
            end="" if why.owner is None else Text("hand.kill_there", pid=why.owner.pid),
            command=f"labharness safe{plan.option}",
        )
    )


def _watch(plan: LabPlan, chosen: argparse.Namespace) -> int:
    def beside() -> str:
        return _idle(plan) if running_beside(plan.state_dir) else ""

    try:
        return watch_line(plan, chosen, _owner(plan), beside)
    except LineBusy as why:
        if why.owner is None or why.owner.does or plan.real_ports:
            raise
        raise CommandFailed(Text("watch.fast", owner=str(why.owner), lab=plan.option)) from None
