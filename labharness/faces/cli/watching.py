"""``labharness watch``: show a line's readings until the user or the line's owner ends it."""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labharness.core.clock import pause
from labharness.core.vocabulary.durations import clock_text
from labharness.core.vocabulary.spelling import meant
from labharness.faces.cli import EXIT_COMPLETED, EXIT_USAGE
from labharness.faces.cli.keys import Keys
from labharness.faces.cli.show import complain, latched, say
from labharness.lab import LabPlan
from labharness.lab.config.lock import read_owner
from labharness.lab.operate.idle_line import watch
from labharness.lab.wiring.control import LineControl, NoOwner
from labharness.safety.kernel import Envelope
from labharness.work.desk.folder import ANSWER_NAME, SUBMIT_NAME

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["Screen", "bounds_text", "level", "value_text", "watch_line"]

WATCH_S = 1.0  # between two looks at what a line says
ANSWER_TRIES, ANSWER_TRY_S = 25, 0.2  # an owner's door is shut before its answer is on the disk
STYLES = {"trip": "bold white on red", "warn": "black on yellow", "unknown": "magenta"}


def watch_line(
    plan: LabPlan, chosen: argparse.Namespace, owner: LineControl | None, beside: Callable[[], str]
) -> int:
    """Show a line's readings once a second.

    Args:
        plan: The lab's files.
        chosen: The arguments.
        owner: The process that drives the line; without one this process reads it.
        beside: Says what runs elsewhere, where nothing does here.
    """
    wrong = unknown_name(plan, chosen.names)
    if wrong:
        complain(f"labharness watch: {wrong}")
        return EXIT_USAGE
    looks = None if chosen.for_s is None else max(1, round(chosen.for_s / WATCH_S))
    with Screen(plan, chosen.names, as_json=chosen.json, looks=looks) as screen:
        try:
            if owner is None:
                if said := beside():
                    complain(f"labharness watch: {said}")
                watch(plan, screen.show)
                return EXIT_COMPLETED
            found = read_owner(plan.state_dir)
            folder = "" if found is None else found.folder
            with owner:
                try:
                    while screen.show(owner.ask(do="status")):
                        pause(WATCH_S)
                except NoOwner:
                    if _drives_still(plan):
                        raise
                    screen.stay(f"the line's owner has ended: {how_it_ended(folder)}")
        except KeyboardInterrupt:  # how a person ends a watch
            pass
    return EXIT_COMPLETED


def unknown_name(plan: LabPlan, names: Sequence[str]) -> str:
    """Return the name that is no instrument, channel or pattern of one; ``""`` for none."""
    channels = [f"{each.name}.{own}" for each in plan.instruments for own in each.driver.channels]
    for name in names:
        if not any(_named(channel, (name,)) for channel in channels):
            known = [*plan.by_name, *channels]
            there = ", ".join(plan.by_name)
            return f"no channel or instrument {name!r}{meant(name, known)}; there are {there}"
    return ""


def _named(channel: str, names: Sequence[str]) -> bool:
    """Return whether a channel is one of those named; all are where nothing is."""
    instrument = channel.partition(".")[0]
    return not names or any(
        name == instrument or fnmatchcase(channel, name) or fnmatchcase(instrument, name)
        for name in names
    )


def _drives_still(plan: LabPlan) -> bool:
    """Return whether who owned the line is there and only silent."""
    try:
        LineControl(plan.state_dir).close()
    except NoOwner:
        return False
    return True


def how_it_ended(folder: str) -> str:
    """Return how a run ended, by the answer in its folder, which may come a moment later."""
    if not folder or not (Path(folder) / SUBMIT_NAME).exists():
        return f"what was done by hand is in {folder}" if folder else "it drove nothing"
    path = Path(folder) / ANSWER_NAME
    for _ in range(ANSWER_TRIES):
        if path.exists():
            break
        pause(ANSWER_TRY_S)
    try:
        body = json.loads(path.read_text("utf-8"))
        payload = body["payload"]
        if body["type"] == "event":
            return f"aborted: {payload['data']['reason']} ({folder})"
        why = payload.get("error_message") or payload.get("reason_message")
        return f"{body['type'].removeprefix('task_')}{f': {why}' if why else ''} ({folder})"
    except (OSError, ValueError, KeyError, TypeError):
        return f"it left no answer in {folder}; labharness safe makes the line safe"


def level(envelope: Envelope, channel: str, value: float | None) -> str:
    """Return how a reading stands to the line's rules: ``trip``, ``warn``, ``unknown`` or ``""``.

    It is the colour of its row. Whether it trips is the kernel's to say, which asks since when.
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


def bounds_text(envelope: Envelope, channel: str) -> str:
    """Say within what a channel is kept: what may be set, and beyond what it warns or trips."""
    said = [
        f"set {row.low:g} to {row.high:g}"
        for row in envelope.limits.values()
        if channel in (row.channel, row.readback) and row.unit
    ]
    for row in envelope.trips:
        if row.channel == channel:
            word = "trips" if row.procedure else "warns"
            said += [f"{word} < {row.low:g}"] if row.low > float("-inf") else []
            said += [f"{word} > {row.high:g}"] if row.high < float("inf") else []
    return ", ".join(dict.fromkeys(said))


class Screen:
    """Shows what a line says, again and again: a live table, plain lines, or JSON lines.

    Args:
        plan: The lab's files.
        names: Of instruments and channels, or patterns of them; all where none is named.
        as_json: One JSON object a look.
        looks: How many; without end where ``None``.
    """

    def __init__(
        self, plan: LabPlan, names: Sequence[str], *, as_json: bool, looks: int | None
    ) -> None:
        self._plan = plan
        self._names = names
        self._as_json = as_json
        self._left = looks
        self._status: Mapping[str, Any] = {}
        self._ended = ""
        self._first = 0  # row that stands on top
        self._live: Any = None
        self._keys: Keys | None = None
        if not as_json and sys.stdout.isatty():
            from rich.live import Live

            self._live = Live(auto_refresh=False)
            self._keys = Keys(self._scroll)

    def __enter__(self) -> "Screen":
        if self._live is not None:
            self._live.start()
        if self._keys is not None:
            self._keys.start()
        return self

    def __exit__(self, *ended: object) -> None:
        if self._keys is not None:
            self._keys.stop()
        if self._live is not None:
            self._live.stop()

    def show(self, status: Mapping[str, Any]) -> bool:
        """Show one look; return whether there is to be another.

        Raises:
            NoOwner: The owner does not answer this terminal.
        """
        if not status["ok"]:
            raise NoOwner(status["error"])
        readings = status["readings"].items()
        kept = {channel: row for channel, row in readings if _named(channel, self._names)}
        self._status = {**status, "readings": kept}
        if self._as_json:
            say(json.dumps(self._status, ensure_ascii=False))
        elif self._live is not None:
            self._draw()
        else:
            say(self._head())
            for line in self._lines():
                say(line)
        if self._left is not None:
            self._left -= 1
        return self._left is None or self._left > 0

    def stay(self, why: str) -> None:
        """Say why nothing more is read; on a terminal what was read last stays until it is ended.

        Raises:
            KeyboardInterrupt: Somebody ended it.
        """
        self._ended = why
        if self._live is None:
            complain(f"labharness watch: {why}")
            return
        self._draw()
        while self._left is None:
            pause(WATCH_S)

    def _head(self) -> str:
        status = self._status
        why = status.get("latched")
        lost = "".join(f"\nALARM: {each}" for each in status.get("lost", ()))
        left = f" · {clock_text(status['left_s'])} left" if status.get("left_s") else ""
        trip = f" · TRIPPED: {status['trip']}" if status["trip"] else ""
        step = f" · {status['step']}" if status["step"] else ""
        said = f"{status['state']} · line {status['mode']}{step}{left}{trip}"
        return said + (f"\n{latched(self._plan, why)}" if why else "") + lost

    def _lines(self) -> Iterator[str]:
        for channel, (value, unit, age_s) in self._status["readings"].items():
            yield f"  {channel:32} {value_text(value):>12} {unit:8} {age_s:5.1f} s ago"
        for name, why in self._unknown():
            yield f"  {name:32} {'unknown':>12} {why}"

    def _unknown(self) -> Iterator[tuple[str, str]]:
        """Return what is not known, and why; a port is everybody's."""
        for name, why in self._status.get("unknown", {}).items():
            if name.startswith("port ") or _named(f"{name}.", self._names):
                yield name, why

    def _draw(self) -> None:
        if self._status or self._ended:
            self._live.update(self._table(), refresh=True)

    def _table(self) -> "RenderableType":
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        envelope = self._plan.envelope
        head = Text(self._head() if self._status else "", style="bold")
        if self._status.get("trip") or self._status.get("latched"):
            head.stylize(STYLES["trip"])
        if self._ended:
            head.append(f"\n{self._ended}; Ctrl-C or q ends this watch", style="bold yellow")
        rows: list[tuple[tuple[str, ...], str]] = []
        for channel, (value, unit, age_s) in self._status.get("readings", {}).items():
            cells: tuple[str, ...] = (channel, value_text(value), unit, f"{age_s:.1f} s")
            style = STYLES.get(level(envelope, channel, value), "")
            rows.append(((*cells, bounds_text(envelope, channel)), style))
        rows += [
            ((name, "unknown", why, "", ""), STYLES["unknown"]) for name, why in self._unknown()
        ]
        width = self._live.console.width
        lines = sum(-(-max(len(line), 1) // width) for line in head.plain.split("\n"))
        room = max(
            1, self._live.console.height - lines - 3
        )  # headings, what is left out, a free row
        self._first = max(0, min(self._first, len(rows) - room))
        shown = rows[self._first : self._first + room]
        table = Table(box=None, expand=False)
        table.add_column("channel", no_wrap=True)
        table.add_column("value", justify="right", no_wrap=True)
        table.add_column("unit", no_wrap=True)
        table.add_column("age", justify="right", no_wrap=True)
        table.add_column("kept within", no_wrap=True, overflow="ellipsis")
        for cells, style in shown:
            table.add_row(*(Text(each) for each in cells), style=style)
        part = f"{self._first + 1} to {self._first + len(shown)} of {len(rows)}; "
        keys = "arrows, PgUp, PgDn, Home and End scroll; q ends"
        foot = Text(part + keys if len(shown) < len(rows) else "", style="dim")
        return Group(head, table, foot)

    def _scroll(self, rows: int) -> None:
        """Go down or up by so many rows, as far as there are any."""
        self._first = max(0, self._first + rows)
        self._draw()


def value_text(value: float | None) -> str:
    """Write a reading, or that there is none."""
    return "unknown" if value is None else f"{value:.6g}"
