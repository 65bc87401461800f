"""``labharness hold|resume|stop|safe``: ask the process that drives a line, or make it safe here.

Nothing of a lab's files is read but its address while such a process answers.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labharness.core.clock import pause, steady_s
from labharness.core.vocabulary.texts import Text, several
from labharness.faces.cli import EXIT_COMPLETED, EXIT_FAILED
from labharness.faces.cli.show import CommandFailed, at_home, complain, say, say_each, warn
from labharness.instruments.link import local
from labharness.instruments.link.conversation import (
    ANSWER_S_MAX,
    LATE_S,
    Late,
    LineControl,
    NoOwner,
    is_served,
)
from labharness.lab.config import lock
from labharness.lab.config.account import account
from labharness.lab.config.address import BadLabFile, LabAddress, default_lab_path, read_address

if TYPE_CHECKING:
    from labharness.lab import LabPlan

TAKEN_TRY_S = 0.2  # between two tries to have a line that another process holds
TAKEN_TOLD_S = 1.0  # after a longer wait the other process is named
TAKEN_S_MAX = 30.0  # silent instruments hold up a process that reads, checks or makes safe
VERIFY_MORE_S = 5.0  # beyond a procedure's own time: frames on their way, and the last look
ASK_S = 0.5  # between two questions to the owner whether anything still gets hotter
NO_OPTION = "no --lab"  # how a command names the lab that ships
LABS_MAX = 1000  # state directories that are looked at
NAN = float("nan")


def owner_of(place: LabAddress, late: Late | None = None) -> LineControl | None:
    """Reach the process that drives this line; ``None`` where none does."""
    return _reached(place.state_dir, late or [(LATE_S, partial(_say_late, place, LATE_S))])


def _reached(state_dir: Path, late: Late) -> LineControl | None:
    try:
        return LineControl(state_dir, late)
    except NoOwner:
        return None


def whole(place: LabAddress) -> "LabPlan":
    """Read all of a lab's files: most of a second, which no client of a process waits for."""
    from labharness.lab import LabPlan, read_lab

    return place if isinstance(place, LabPlan) else read_lab(place.path)


def _process(found: lock.LockOwner | None) -> str:
    return Text("hand.driver") if found is None else Text("hand.process", pid=found.pid)


def _say_late(place: LabAddress, late_s: float) -> None:
    found = lock.read_owner(place.state_dir)
    doing = found is not None and found.does
    who = Text("hand.doing", owner=str(found)) if doing else Text("hand.driver")
    end = "" if found is None else Text("hand.kill", pid=found.pid)  # it may heed no other signal
    complain(Text("hand.late", who=who, late_s=late_s, most_s=ANSWER_S_MAX, end=end))


def late_of_safe(place: LabAddress) -> Iterator[tuple[float, Callable[[], None]]]:
    """Return the messages to a person who waits for the answer to ``safe``, and their times.

    A process that still verifies must not be ended. Therefore no message advises it before the
    time of the longest procedure is over, for which the lab's files are read only then.
    """
    late_s = ANSWER_S_MAX

    def verifying() -> None:
        nonlocal late_s
        with suppress(BadLabFile):  # somebody edits it; the answer is waited for all the same
            rows = whole(place).envelope.procedures.values()
            late_s = max(each.verify_s_max for each in rows) + VERIFY_MORE_S
        who = _process(lock.read_owner(place.state_dir))
        complain(Text("hand.verifying", who=who, late_s=late_s))

    yield LATE_S, verifying
    yield late_s, partial(_say_late, place, late_s)


def idle_text(place: LabAddress) -> str:
    """Return that nothing runs on a lab, and where something does: it may have been meant."""
    default = read_address(default_lab_path()).state_dir.name
    running = [
        Text("hand.runs", name=name, option=option)
        if option != NO_OPTION or name == default
        else Text("hand.runs_elsewhere", name=name)
        for name, option in running_beside(place.state_dir).items()
    ]
    idle = Text("hand.idle" if place.option else "hand.idle_default", lab=place.lab_id)
    return several(idle, Text("hand.running", labs=running) if running else "")


def _deaf(place: LabAddress) -> str:
    """Return which process drives a line without a control socket; ``""`` if none does."""
    found, lab = lock.read_owner(place.state_dir), place.lab_id
    try:
        with suppress(OSError):  # the directory is missing, so no process is in it
            lock.LineLock(place.state_dir).release()
    except lock.LineBusy:
        if found is None:
            return Text("hand.deaf", who=Text("hand.some_process"), lab=lab)
        if found.does:
            return Text("hand.drives_nothing", lab=lab, owner=str(found))
        return Text("hand.deaf_writes", who=_process(found), lab=lab, folder=found.folder)
    return ""


def hold(chosen: argparse.Namespace) -> None:
    """Ask the owner to hold, resume or stop."""
    with at_home(chosen) as place:
        reached = owner_of(place)
        if reached is None:
            there = driven_elsewhere(place, chosen.command) or _deaf(place)
            raise CommandFailed(there or Text("hand.own_terminal", idle=idle_text(place)))
        say(answer_of(reached, do=chosen.command, **signature(chosen))["said"])


resume = stop = hold


def safe(chosen: argparse.Namespace) -> int:
    """Have a line made safe; return 1 where that is not verified, or something still rises."""
    with at_home(chosen) as place:
        answer, alone = _made_safe(place, **signature(chosen))
        if not answer["ok"]:
            raise CommandFailed(answer["error"])
        unopened = answer.get("unopened", [])
        unverified = [*unopened, *answer["unverified"]]
        code = "hand.not_verified" if unverified else "hand.verified"
        say(Text(code, procedure=answer["procedure"]))
        say_each(Text("cli.item", text=each) for each in unverified)
        if alone and not answer["latched"]:
            say(Text("hand.port_unopened" if unopened else "hand.not_latched"))
        if answer.get("ended"):
            say(Text("hand.beginning_ended"))
        if answer["latched"]:
            say(Text("hand.latched", command=place.reset_command))
        hot = () if unverified else answer.get("hot", ())  # an older owner names none
        rising = still_rising(place, hot, partial(owner_of, place), complain)
        say_each(Text("cli.item", text=each) for each in rising)
        return EXIT_FAILED if unverified or rising else EXIT_COMPLETED


def _made_safe(place: LabAddress, by: str, reason: str) -> tuple[dict[str, Any], bool]:
    """Have a line made safe by its owner, or by this process as soon as no other one holds it.

    A process that reads or checks the line holds it for a moment, or for seconds if instruments
    are silent. An owner that hangs up holds it until it has ended.

    Returns:
        The answer, and whether no other process was met.

    Raises:
        LineBusy: Another process holds it for too long.
    """
    asked = told = met = False
    since_s, plan = steady_s(), cache(partial(whole, place))
    while True:
        late = late_of_safe(place)
        owner = None if asked else owner_of(place, late) or owner_abroad(place, late)
        if owner is not None:
            asked = met = True
            try:
                with owner:
                    return owner.ask(do="safe", by=by, reason=reason), False
            except NoOwner as why:
                warn(Text("hand.safe_without", why=str(why)))
                since_s = steady_s()
        from labharness.lab.operate.idle_line import make_safe  # heavy, and often not needed

        try:
            return make_safe(guarded_by(place, plan), by, reason, warn), not met
        except lock.LineBusy as why:
            met = True
            waited_s = steady_s() - since_s
            if waited_s >= TAKEN_S_MAX:
                raise _in_vain(place, why, asked=asked) from None
            if waited_s >= TAKEN_TOLD_S and not told:
                told = True
                who, out = str(why.owner or why), _way_out(why.owner)
                warn(Text("hand.taken", who=who, most_s=TAKEN_S_MAX, out=out))
            pause(TAKEN_TRY_S)


def _way_out(owner: lock.LockOwner | None) -> str:
    """Return how to end a process that is waited for; nothing for one that makes safe."""
    if owner is None or owner.does == lock.MAKES_SAFE:
        return ""
    return Text("hand.end_now" if owner.does else "hand.end_deaf", pid=owner.pid)


def _in_vain(place: LabAddress, why: lock.LineBusy, *, asked: bool) -> lock.LineBusy:
    """Return the error that a line was not made safe, with its holder and the remedy."""
    return lock.LineBusy(
        Text(
            "hand.in_vain",
            sent=Text("hand.sent_unknown" if asked else "hand.sent_nothing"),
            who=str(why.owner or why),
            most_s=TAKEN_S_MAX,
            end="" if why.owner is None else Text("hand.kill_there", pid=why.owner.pid),
            command=f"labharness safe{place.option}",
        )
    )


def signature(chosen: argparse.Namespace) -> dict[str, str]:
    """Return the person who asks, and the reason, as the owner of a line takes them."""
    return {"by": chosen.name or account(), "reason": chosen.reason}


def answer_of(owner: LineControl, **asked: object) -> dict[str, Any]:
    """Ask the owner of a line or a house, and hang up.

    Raises:
        CommandFailed: It refuses.
    """
    with owner:
        answer = owner.ask(**asked)
    if not answer["ok"]:
        raise CommandFailed(answer["error"])
    return answer


def driven_elsewhere(place: LabAddress, command: str = "") -> str:
    """Return which process drives this line by another lab file, and the remedy; ``""`` if none.

    Args:
        place: Where the lab is.
        command: A command that its owner takes by its own lab file.
    """
    owner = _abroad(place)
    if owner is None:
        return ""
    if command and owner.lab_option:
        there = f"labharness {command}{owner.lab_option}"
        return Text("hand.ask_there", owner=owner.abroad, command=there)
    return Text("owner.busy", owner=owner.abroad, advice=owner.advice)


def _abroad(place: LabAddress) -> lock.LockOwner | None:
    return lock.owner_elsewhere(place.identities(), place.state_dir)


def owner_abroad(place: LabAddress, late: Late) -> LineControl | None:
    """Reach the process that drives this line by another lab file: it has to make the line safe.

    Raises:
        PermissionError: This account may not use its socket; the message names one that may.
    """
    owner = _abroad(place)
    return _reached(Path(owner.state_dir), late) if owner and owner.state_dir else None


def guarded_by(place: LabAddress, plan: "Callable[[], LabPlan]") -> "LabPlan":
    """Return the lab whose guard process has these ports: only through it are they reached.

    Args:
        place: Where this lab is.
        plan: Reads its files.
    """
    from labharness.lab import read_lab

    other = lock.guarded_elsewhere(place.identities(), place.state_dir)
    if other is not None:
        with suppress(BadLabFile):
            found = read_lab(other)
            warn(Text("hand.guard_has", lab=str(other)))
            return found
    return plan()


def still_rising(
    place: LabAddress,
    hot: Sequence[str],
    reach: Callable[[], LineControl | None],
    tell: Callable[[str], None],
) -> list[str]:
    """Wait for the lag of hot channels, and longer; return a text for each that rose or is unread.

    The owner of the line measures in its own time, and is asked. Without an owner this process
    measures real instruments twice; between the two measurements it does not hold the line.

    Args:
        place: Where the lab is; its files state both times.
        hot: The temperatures to watch; if there are none, this returns at once.
        reach: Reaches the process that drives the line, if there is one.
        tell: Told how long the wait takes.
    """
    if not hot:
        return []
    from labharness.line.effects import warmer

    plan = whole(place)
    rows = {
        name: row
        for each in plan.instruments
        for row in each.cools
        if (name := f"{each.name}.{row.channel}") in hot
    }
    if not rows:
        return []
    lag_s = max(row.lag_s for row in rows.values())
    over_s = max(row.over_s for row in rows.values())
    tell(Text("hand.hot", channels=list(rows), within_s=lag_s + over_s))
    found = _asked(reach)
    if found is None:
        if not plan.real_ports:
            return []  # the simulated room ended with its owner: nothing is left to measure
        pause(lag_s)
        before = _look(plan, list(rows))
        pause(over_s)
        after = _look(plan, list(rows))
        said = (warmer(name, row, before[name], after[name]) for name, row in rows.items())
        found = list(filter(None, said))
    if not found:
        tell(Text("hand.nothing_rises", channels=list(rows)))
    return found


def _asked(reach: Callable[[], LineControl | None]) -> list[str] | None:
    """Ask the owner of the line until it knows; ``None`` if there is no owner any more."""
    with suppress(NoOwner):
        while (reached := reach()) is not None:
            with reached:
                answer = reached.ask(do="cooling")
            if not answer["ok"]:
                break
            if answer["known"]:
                return [str(each) for each in answer["contradicted"]]
            pause(ASK_S)
    return None


def _look(plan: "LabPlan", names: Sequence[str]) -> dict[str, float]:
    from labharness.instruments.link import LinkLost
    from labharness.lab.operate.idle_line import read_now

    try:
        found = read_now(plan, names)
    except (lock.LineBusy, LinkLost, OSError):  # the answer then says that nothing was read
        return dict.fromkeys(names, NAN)
    values = (each.get("value") if each["ok"] else None for each in found)
    return {n: NAN if v is None else v for n, v in zip(names, values, strict=True)}


def running_beside(state_dir: Path) -> dict[str, str]:
    """Return the other labs of this account that are served now, and how a command names each.

    Returns:
        By the name of their state directories: ``--lab FILE``; "no --lab" for the shipped one.
    """
    found = {}
    for path in sorted(islice(state_dir.parent.glob(f"*/{local.CONTROL}"), LABS_MAX)):
        if path.parent != state_dir and is_served(path.parent):
            owner = lock.read_owner(path.parent)
            option = "--lab FILE" if owner is None else owner.lab_option.strip()
            found[path.parent.name] = option or NO_OPTION
    return found
