"""Every order of up, down, submit and the end of a run ends with a line owner, or with why not."""

import asyncio
import os
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, Self

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labharness.core import clock
from labharness.core.vocabulary.texts import Text
from labharness.instruments.link.conversation import NoOwner
from labharness.lab import read_lab
from labharness.lab.house import start
from labharness.lab.house.line_owner import LineOwnerProcess
from labharness.lab.house.orders import RunOrder
from labharness.lab.house.start import NotUp, bring_up, take_down
from labharness.lab.wiring.control import ControlSocket
from rig import SHORT_LINE

OWNER, HOUSE = "line-owner", "house"
RUN = "r-1"
LAB = read_lab(SHORT_LINE)


class Processes:
    """The two processes of a lab as `start` sees them; they end, and runs end, while it waits.

    The line owner answers itself; it has no socket, and a run is an order that ends when told.
    """

    def __init__(self) -> None:
        self.owner: LineOwnerProcess | None = None
        self.house_leaves: bool | None = None  # None: there is no house
        self.pids = {OWNER: 0, HOUSE: 0}
        self.made = 0
        self.until_end = -1  # looks of `start` until the run ends

    def spawned(self, command: tuple[str, ...], log: Path) -> int:
        self.made += 1
        what = next(each for each in (OWNER, HOUSE) if each in command)
        self.pids[what] = self.made
        if what == HOUSE:
            self.house_leaves = False
            return self.made
        pace = command[command.index("--speed") + 1]
        assert self.owner is None, "two line owners of one line"
        self.owner = LineOwnerProcess(SHORT_LINE, None if pace == "fast" else float(pace))
        return self.made

    def door(self, what: str) -> "Door":
        return Door(self, what)

    def asked(self, what: str, **asked: object) -> dict[str, Any]:
        if what == HOUSE:
            if self.house_leaves is None:
                raise NoOwner("no house")
            self.house_leaves = self.house_leaves or asked["do"] == "leave"
            return {
                "ok": asked["do"] != "stay",
                "pid": self.pids[HOUSE],
                "leaving": self.house_leaves,
            }
        if self.owner is None:
            raise NoOwner("no line owner")
        answer = asyncio.run(ControlSocket(Path(), self.owner._answer, 1.0)._answered(asked))
        return {**answer, "pid": self.pids[OWNER]}

    def begin(self) -> bool:
        """Order a run as the house does; return whether the line owner took it."""
        if self.owner is None or self.owner._order is not None or self.owner._leaving:
            return False
        self.owner._order = RunOrder(run_id=RUN, folder="-", submit="-")
        return True

    def end(self) -> None:
        if self.owner is not None:
            self.owner._order = None

    def look(self, seconds: float = 0.0) -> None:
        """Let what ends by itself end."""
        self.until_end -= 1
        if self.until_end == 0:
            self.end()
        if self.house_leaves:
            self.house_leaves = None
        if self.owner is not None and self.owner._leaving and self.owner._order is None:
            self.owner = None


class Door:
    def __init__(self, processes: Processes, what: str) -> None:
        self._processes, self._what = processes, what

    def __enter__(self) -> Self:
        self._processes.asked(self._what, do="status")
        return self

    def __exit__(self, *ended: object) -> None:
        pass

    def ask(self, **asked: object) -> dict[str, Any]:
        return self._processes.asked(self._what, **asked)


def brought_up(found: Processes, speed: float | None) -> str:
    """Bring the lab up; return why not, or `""`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(start, "owner_door", lambda home: found.door(OWNER))
        patch.setattr(start, "house_door", lambda home: found.door(HOUSE))
        patch.setattr(start, "_spawned", found.spawned)
        patch.setattr(clock, "pause", found.look)
        patch.setattr(os, "waitpid", lambda pid, flags: (0, 0))
        made = found.made
        try:
            started = bring_up(LAB, speed, Path("runs"))
        except NotUp as why:
            return str(why)
    assert sum(started) == found.made - made, "it says how many were not up"
    return ""


def taken_down(found: Processes) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(start, "owner_door", lambda home: found.door(OWNER))
        patch.setattr(start, "house_door", lambda home: found.door(HOUSE))
        patch.setattr(clock, "pause", found.look)
        return take_down(LAB, stop=False)


ASKED = st.sampled_from(("up", "up 5", "up 2", "down", "submit", "end", "end soon", "time"))


@pytest.mark.promise(75)
@given(st.lists(ASKED, max_size=12))
def test_who_brings_a_lab_up_has_a_line_owner_that_stays_or_is_told_why_not(
    asked: list[str],
) -> None:
    """With the speed that was asked for: a run that has the line at another one is named."""
    found = Processes()
    for each in asked:
        if each.startswith("up"):
            speed = float(each.split()[1]) if " " in each else None
            why = brought_up(found, speed)
            if why:
                assert found.owner is not None
                has = found.owner._speed
                run = RUN if found.owner._order is not None else "-"
                pace = "fast" if has is None else format(has, "g")
                assert f"at speed {pace} (run: {run})" in why
                assert speed not in (None, has)
            else:
                assert found.owner is not None
                assert not found.owner._leaving
                assert speed in (None, found.owner._speed)
                assert found.house_leaves is False
                found.look()
                assert found.owner is not None, "it left all the same"
        elif each == "down":
            on = taken_down(found)
            assert found.house_leaves is None
            assert on == (RUN if found.owner is not None else "")
        elif each == "submit":
            found.begin()
        elif each == "end":
            found.end()
        elif each == "end soon":
            found.until_end = 1
        else:
            found.look()


def test_a_line_owner_that_leaves_after_a_run_at_another_speed_is_not_asked_to_stay() -> None:
    found = Processes()
    assert brought_up(found, 2.0) == ""
    assert found.begin()
    assert taken_down(found) == RUN
    assert f"(run: {RUN})" in brought_up(found, 5.0)
    assert found.owner is not None
    assert found.owner._leaving


class Owning:
    """The door of a process that stays, or ends after some looks, and what was asked at it."""

    def __init__(self, run_id: str, looks: int = 1_000) -> None:
        self.run_id, self.asked, self.looks = run_id, list[dict[str, object]](), looks

    def __call__(self, home: Path) -> Self:
        self.looks -= 1
        if self.looks < 0:
            raise NoOwner("it has gone")
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *ended: object) -> None:
        pass

    def ask(self, **asked: object) -> dict[str, Any]:
        self.asked.append(asked)
        return {"ok": True, "run_id": self.run_id, "leaving": True, "pid": 1}


def _none(home: Path) -> Owning:
    raise NoOwner("no house")


@pytest.mark.parametrize("stop", [False, True])
def test_a_run_goes_on_where_a_lab_goes_down_unless_it_is_to_be_stopped(
    monkeypatch: pytest.MonkeyPatch, stop: bool
) -> None:
    owner = Owning(RUN)
    monkeypatch.setattr(start, "house_door", _none)
    monkeypatch.setattr(start, "owner_door", owner)
    assert take_down(LAB, stop) == RUN
    aborted = {"do": "abort", "run_id": RUN, "reason": Text("house.down")}
    assert owner.asked == [{"do": "leave"}, *([aborted] if stop else [])]


@pytest.mark.parametrize("stop", [False, True])
def test_a_lab_without_a_run_is_down_when_both_processes_have_gone(
    monkeypatch: pytest.MonkeyPatch, stop: bool
) -> None:
    owner, house = Owning("", 3), Owning("", 2)
    monkeypatch.setattr(start, "house_door", house)
    monkeypatch.setattr(start, "owner_door", owner)
    monkeypatch.setattr(clock, "pause", lambda seconds: None)
    assert take_down(LAB, stop) == ""
    assert [each.looks for each in (owner, house)] == [-1, -1], "it waits for neither"
    for each in (owner, house):
        assert [asked for asked in each.asked if asked != {"do": "status"}] == [{"do": "leave"}]


@pytest.mark.parametrize(("house", "what"), [(_none, OWNER), (Owning(""), HOUSE)])
def test_a_process_that_does_not_leave_is_named(
    monkeypatch: pytest.MonkeyPatch, house: Any, what: str
) -> None:
    monkeypatch.setattr(start, "house_door", house)
    monkeypatch.setattr(start, "owner_door", Owning(""))
    monkeypatch.setattr(clock, "pause", lambda seconds: None)
    monkeypatch.setattr(clock, "steady_s", count(0, 10).__next__)
    with pytest.raises(NotUp) as refused:
        take_down(LAB, stop=False)
    assert refused.value.args[0] == Text("house.stays", what=what, most_s=30.0)


@pytest.mark.parametrize("logged", [True, False])
def test_a_process_that_ends_at_its_start_is_told_with_the_end_of_its_log(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, logged: bool
) -> None:
    def spawned(command: tuple[str, ...], log: Path) -> int:
        if logged:
            log.write_bytes(b"x" * 2000 + b"y\xff no port\n ")
        return 7

    monkeypatch.setattr(start, "owner_door", _none)
    monkeypatch.setattr(start, "_spawned", spawned)
    monkeypatch.setattr(os, "waitpid", lambda pid, flags: (pid, 0))
    with pytest.raises(NotUp) as refused:
        bring_up(replace(LAB, state_dir=tmp_path), None, tmp_path)
    log = tmp_path / "line-owner.log"
    tail = "x" * (2000 - 12) + "y\ufffd no port"
    why = tail if logged else f"[Errno 2] No such file or directory: '{log}'"
    text = Text("house.did_not_start", what=OWNER, log=str(log), why=why)
    assert refused.value.args[0] == text
