"""``labharness watch``: show a line's readings until the user or the line's owner ends it."""

import argparse
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from fnmatch import fnmatchcase
from functools import cache, partial
from math import isfinite
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

from labharness.core.clock import pause
from labharness.core.vocabulary.durations import clock_text
from labharness.core.vocabulary.spelling import did_you_mean
from labharness.core.vocabulary.texts import Text, in_language
from labharness.faces.cli.line_writer import TERMINAL
from labharness.faces.cli.owner import idle_text, owner_of, running_beside, whole
from labharness.faces.cli.show import (
    BadUse,
    CommandFailed,
    at_home,
    latched,
    say_each,
    say_json,
    warn,
)
from labharness.instruments.link.conversation import LineControl, NoOwner, is_served
from labharness.lab.config.address import LabAddress
from labharness.lab.config.lock import LineBusy, read_owner

if TYPE_CHECKING:
    from rich.console import RenderableType

    from labharness.lab import LabPlan
    from labharness.safety.kernel import Envelope

WATCH_S = 1.0  # between two looks at what a line says
ANSWER_TRIES, ANSWER_TRY_S = 25, 0.2  # an owner's socket ends before its answer is on the disk
COLUMNS = ("watch.channel", "watch.value", "watch.unit", "watch.age", "watch.within")
PAGE, ALL = 10, 10**6
ROWS = {
    **dict.fromkeys((b"\x1b[A", b"\x1bOA", b"k"), -1),
    **dict.fromkeys((b"\x1b[B", b"\x1bOB", b"j"), 1),
    **dict.fromkeys((b"\x1b[5~",), -PAGE),
    **dict.fromkeys((b"\x1b[6~", b" "), PAGE),
    **dict.fromkeys((b"\x1b[H", b"\x1b[1~", b"g"), -ALL),
    **dict.fromkeys((b"\x1b[F", b"\x1b[4~", b"G"), ALL),
}
"""Rows down that a key means, as xterm and its like send it (ECMA-48; XTerm Control Sequences)."""

STYLES = {"trip": "bold white on red", "warn": "black on yellow", "unknown": "magenta"}


def watch(chosen: argparse.Namespace) -> None:
    """Show a line's readings once a second."""
    with at_home(chosen) as place:
        watch_line(place, chosen, owner_of(place))


def watch_line(place: LabAddress, chosen: argparse.Namespace, owner: LineControl | None) -> None:
    """Show a line's readings once a second.

    Args:
        place: Where the lab is.
        chosen: The arguments.
        owner: The process that drives the line; without one this process reads it.
    """
    looks = None if chosen.for_s is None else max(1, round(chosen.for_s / WATCH_S))
    if owner is None:
        _watch_alone(whole(place), chosen, looks)
        return
    with owner, Screen(place, chosen.names, as_json=chosen.json, looks=looks) as screen:
        found = read_owner(place.state_dir)
        folder = "" if found is None else found.folder
        try:
            status = owner.ask(do="status")
            known = (*status.get("readings", ()), *status.get("unknown", ()))
            if not all(any(_named(each, (name,)) for each in known) for name in chosen.names):
                _must_be_known(whole(place), chosen.names)
            while screen.show(status):
                pause(WATCH_S)
                status = owner.ask(do="status")
        except NoOwner:
            if is_served(place.state_dir):
                raise
            with suppress(KeyboardInterrupt):
                screen.stay(Text("watch.owner_ended", how=how_it_ended(folder)))
        except KeyboardInterrupt:  # the way to end a watch
            pass


def _watch_alone(plan: "LabPlan", chosen: argparse.Namespace, looks: int | None) -> None:
    """Poll a line without an owner."""
    from labharness.lab.operate.idle_line import watch

    _must_be_known(plan, chosen.names)
    with Screen(plan, chosen.names, as_json=chosen.json, looks=looks) as screen:
        if running_beside(plan.state_dir):  # one of those may have been meant
            warn(idle_text(plan))
        try:
            watch(plan, screen.show)
        except KeyboardInterrupt:  # the way to end a watch
            pass
        except LineBusy as why:
            if why.owner is None or why.owner.does or plan.real_ports:
                raise
            who = str(why.owner)
            raise CommandFailed("watch.fast", owner=who, lab=plan.option) from None


def _must_be_known(plan: "LabPlan", names: Sequence[str]) -> None:
    """Refuse a name that matches no instrument or channel."""
    channels = [f"{each.name}.{own}" for each in plan.instruments for own in each.driver.channels]
    for name in names:
        if not any(_named(channel, (name,)) for channel in channels):
            near = did_you_mean(name, [*plan.by_name, *channels])
            raise BadUse("watch.no_channel", name=repr(name), hint=near, known=list(plan.by_name))


def _named(channel: str, names: Sequence[str]) -> bool:
    """Return whether a channel is one of those named; without names every channel is."""
    instrument = channel.partition(".")[0]
    return not names or any(
        name == instrument or fnmatchcase(channel, name) or fnmatchcase(instrument, name)
        for name in names
    )


def how_it_ended(folder: str) -> str:
    """Return how a run ended, by the answer in its folder, which may come a moment later."""
    from labharness.journal.encryption import KeyMissing, kept
    from labharness.work.desk.folder import ANSWER_NAME, SUBMIT_NAME

    if not folder:
        return Text("watch.drove_nothing")
    if not (Path(folder) / SUBMIT_NAME).exists():
        return Text("watch.by_hand", folder=folder)
    path = Path(folder) / ANSWER_NAME
    for _ in range(ANSWER_TRIES):
        if path.exists():
            break
        pause(ANSWER_TRY_S)
    try:
        body = json.loads(kept(path))
        payload = body["payload"]
        if body["type"] == "event":
            return Text("watch.aborted", why=payload["data"]["reason"], folder=folder)
        ending = body["type"].removeprefix("task_")
        why = payload.get("error_message") or payload.get("reason_message")
        how = Text("pair", what=ending, why=why) if why else ending
        return Text("watch.ended", how=how, folder=folder)
    except (OSError, ValueError, KeyError, TypeError, KeyMissing):
        return Text("watch.no_answer", folder=folder)


def level(envelope: "Envelope", channel: str, value: float | None) -> str:
    """Return how a reading stands to the line's rules: ``trip``, ``warn``, ``unknown`` or ``""``.

    It is the colour of its row. The kernel alone decides about a trip, because it knows for how
    long.
    """
    if value is None:
        return "unknown"
    beyond = [
        row for row in envelope.trips if row.channel == channel and not row.low <= value <= row.high
    ]
    if any(row.procedure for row in beyond):
        return "trip"
    outside = [
        row
        for row in envelope.limits.values()
        if row.readback == channel and row.unit and not row.low <= value <= row.high
    ]
    return "warn" if beyond or outside else ""


def bounds_text(envelope: "Envelope", channel: str) -> str:
    """Return the values that a channel may be set to, and those beyond which it warns or trips."""
    said: list[str] = [
        Text("watch.settable", low=row.low, high=row.high)
        for row in envelope.limits.values()
        if channel in (row.channel, row.readback) and row.unit
    ]
    for row in envelope.trips:
        if row.channel == channel:
            code = "watch.trips" if row.procedure else "watch.warns"
            ends = (("<", row.low), (">", row.high))
            said += [Text(code, sign=sign, at=at) for sign, at in ends if isfinite(at)]
    return Text("items", parts=list(dict.fromkeys(said)))


@contextmanager
def keys(scroll: Callable[[int], None]) -> Iterator[None]:
    """Read the keys of a terminal in a thread; without a terminal it does nothing.

    ``q`` ends the command like Ctrl-C, which works all the time.

    Args:
        scroll: Takes the number of rows to move down; it is called from that thread.
    """
    if os.name != "posix" or not sys.stdin.isatty():
        yield
        return
    import termios
    import tty

    before, refused = None, (termios.error, OSError, ValueError)
    with suppress(*refused):
        number = sys.stdin.fileno()
        before = termios.tcgetattr(number)
        tty.setcbreak(number)
        # a shell ignores SIGINT for what it runs in the background; a key must end that too
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        Thread(target=_hear, args=(number, scroll), name="keys", daemon=True).start()
    try:
        yield
    finally:
        if before is not None:
            with suppress(*refused):
                termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, before)


def _hear(number: int, scroll: Callable[[int], None]) -> None:
    with suppress(OSError):  # the terminal has gone
        while key := os.read(number, 16):
            if key in (b"q", b"Q"):
                os.kill(os.getpid(), signal.SIGINT)
                return
            if rows := ROWS.get(key):
                scroll(rows)


class Screen:
    """Shows the status of a line repeatedly: as a live table, plain lines, or JSON lines.

    Args:
        place: Where the lab is; its files are read for the bounds that a live table shows.
        names: Instruments, channels or patterns of them; all if there are none.
        as_json: Print one JSON object a look.
        looks: Number of looks; ``None`` is without end.
    """

    def __init__(
        self, place: LabAddress, names: Sequence[str], *, as_json: bool, looks: int | None
    ) -> None:
        self._place = place
        self._plan = cache(partial(whole, place))
        self._names = names
        self._as_json = as_json
        self._left = looks
        self._status: Mapping[str, Any] = {}
        self._ended = ""
        self._first = 0  # the topmost row
        self._live: Any = None
        self._shown = ExitStack()
        if not as_json and sys.stdout.isatty():
            from rich.live import Live

            self._live = Live(auto_refresh=False)

    def __enter__(self) -> "Screen":
        if self._live is not None:
            self._shown.enter_context(self._live)
            self._shown.enter_context(keys(self._scroll))
        return self

    def __exit__(self, *ended: object) -> None:
        self._shown.close()

    def show(self, status: Mapping[str, Any]) -> bool:
        """Show one look; return whether another one follows.

        Raises:
            NoOwner: The owner does not answer this terminal.
        """
        if not status["ok"]:
            raise NoOwner(status["error"])
        readings = status["readings"].items()
        kept = {channel: row for channel, row in readings if _named(channel, self._names)}
        self._status = {**status, "readings": kept}
        if self._as_json:
            say_json(self._status)
        elif self._live is not None:
            self._draw()
        else:
            say_each((*self._head(), *self._lines()))
        if self._left is not None:
            self._left -= 1
        return self._left is None or self._left > 0

    def stay(self, why: str) -> None:
        """Show why no more is read; on a terminal the last readings stay until the user ends it.

        Raises:
            KeyboardInterrupt: The user ended it.
        """
        self._ended = why
        if self._live is None:
            warn(why)
            return
        self._draw()
        while self._left is None:
            pause(WATCH_S)

    def _head(self) -> list[str]:
        """Return the lines above the readings."""
        status = self._status
        parts = [status["state"], Text("watch.line", mode=status["mode"])]
        if status["step"]:
            parts.append(status["step"])
        if status.get("left_s"):
            parts.append(Text("cli.left", time=clock_text(status["left_s"])))
        if status["trip"]:
            parts.append(Text("watch.tripped", why=status["trip"]))
        why = status.get("latched")
        lost = [Text("watch.alarm", what=each) for each in status.get("lost", ())]
        head: str = Text("watch.head", parts=parts)
        return [head, *([latched(self._place, why)] if why else []), *lost]

    def _rows(self) -> Iterator[tuple[str, str, str, str]]:
        """Return channel, value, unit and age (s) of each reading."""
        for channel, (value, unit, age_s) in self._status.get("readings", {}).items():
            yield channel, value_text(value), unit, f"{age_s:.1f}"

    def _lines(self) -> Iterator[str]:
        for channel, value, unit, age_s in self._rows():
            ago = Text("watch.ago", age=f"{age_s:>5}")
            yield f"  {channel:32} {value:>12} {unit:8} {in_language(ago, TERMINAL.language)}"
        for name, why in self._unknown():
            yield Text("watch.unknown", name=f"{name:32}", why=why)

    def _unknown(self) -> Iterator[tuple[str, str]]:
        """Return what is not known, and why; a port belongs to all instruments."""
        for name, why in self._status.get("unknown", {}).items():
            if name.startswith("port ") or _named(f"{name}.", self._names):
                yield name, why

    def _draw(self) -> None:
        if self._status or self._ended:
            self._live.update(self._table(), refresh=True)

    def _table(self) -> "RenderableType":
        from rich import text as rich_text
        from rich.console import Group
        from rich.table import Table

        envelope, language = self._plan().envelope, TERMINAL.language

        def shown(each: str) -> rich_text.Text:
            return rich_text.Text(in_language(each, language))

        lines = self._head() if self._status else [""]
        head = rich_text.Text("\n").join(map(shown, lines))
        head.stylize("bold")
        if self._status.get("trip") or self._status.get("latched"):
            head.stylize(STYLES["trip"])
        if self._ended:
            ended = in_language(Text("watch.end_it", why=self._ended), language)
            head.append(f"\n{ended}", style="bold yellow")
        rows: list[tuple[tuple[str, str, str, str, str], str]] = []
        for channel, value, unit, age_s in self._rows():
            number = self._status["readings"][channel][0]
            cells = (channel, value, unit, f"{age_s} s", bounds_text(envelope, channel))
            rows.append((cells, STYLES.get(level(envelope, channel, number), "")))
        rows += [
            ((name, "unknown", why, "", ""), STYLES["unknown"]) for name, why in self._unknown()
        ]
        width = self._live.console.width
        taken = sum(-(-max(len(line), 1) // width) for line in head.plain.split("\n"))
        room = max(1, self._live.console.height - taken - 3)  # headings, foot, a free row
        self._first = max(0, min(self._first, len(rows) - room))
        part = rows[self._first : self._first + room]
        table = Table(box=None, expand=False)
        for column in COLUMNS:
            right = column in ("watch.value", "watch.age")
            table.add_column(
                shown(Text(column)),
                justify="right" if right else "left",
                no_wrap=True,
                overflow="ellipsis",
            )
        for cells, style in part:
            table.add_row(*map(shown, cells), style=style)
        first, last = self._first + 1, self._first + len(part)
        foot = Text("watch.keys", first=first, last=last, count=len(rows))
        return Group(head, table, shown(foot if len(part) < len(rows) else ""))

    def _scroll(self, rows: int) -> None:
        """Move by so many rows down or up."""
        self._first = max(0, self._first + rows)
        self._draw()


def value_text(value: float | None) -> str:
    """Return a reading as text; ``unknown`` if there is none."""
    return "unknown" if value is None else f"{value:.6g}"
