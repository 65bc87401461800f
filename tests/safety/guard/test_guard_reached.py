"""The harness's end finds a guard, starts one, loses it and finds it again: in virtual time."""

import asyncio
from itertools import pairwise
from pathlib import Path

import pytest

from guard_stubs import GONE, READ, SAFE, WHOLE_SEND, Remote, Started, armed, ask
from labharness.core.vocabulary import Cause, Trip
from labharness.instruments.link import LinkLost
from labharness.safety.guard import NotPermitted
from labharness.safety.guard.remote import RemoteGuard

# ---- finding one


async def test_a_guard_is_started_where_nobody_answers_and_three_times_at_most(
    unmet: RemoteGuard, far: Remote, child: Started, tmp_path: Path
) -> None:
    far.serves = False
    child.says = "port heat does not open"
    with pytest.raises(LinkLost, match=r"^port heat does not open$"):
        await unmet.open()
    assert child.at_s == pytest.approx([0.0, 0.21, 0.62], abs=1e-6)
    assert far.called[0] == (0.0, str(tmp_path / "guard.sock"))
    child.says = ""
    with pytest.raises(LinkLost, match=r"^it does not stay$"):
        await unmet.open()


async def test_a_guard_that_was_started_is_met_as_soon_as_it_is_at_its_door(
    unmet: RemoteGuard, far: Remote, child: Started, tmp_path: Path
) -> None:
    loop = asyncio.get_running_loop()
    far.serves = False

    def begin() -> None:
        assert (tmp_path / "armed.json").read_text("utf-8") == unmet._text
        child.lives = True
        loop.call_later(0.3, setattr, far, "serves", True)

    child.begins = begin
    await unmet.open()
    assert loop.time() == pytest.approx(0.3, abs=0.011)
    assert len(child.at_s) == 1, "one that lives is not started again"
    await unmet.open()
    assert len(far.called) > 20, "it is looked for often"


async def test_a_guard_that_somebody_keeps_has_a_second_to_come_back(
    guard: RemoteGuard, far: Remote, child: Started
) -> None:
    far.serves = False
    far.hang_up()
    await asyncio.sleep(1.5)
    assert child.at_s[0] == pytest.approx(1.0, abs=0.011)


async def test_a_guard_of_our_own_is_started_again_at_once(
    unmet: RemoteGuard, far: Remote, child: Started
) -> None:
    child.lives = True
    await unmet.open()
    child.lives = far.serves = False
    far.hang_up()
    await asyncio.sleep(0.1)
    assert child.at_s == [0.0]


async def test_many_links_are_opened_through_one_door(unmet: RemoteGuard, far: Remote) -> None:
    await asyncio.gather(*(unmet.link(port).open() for port in ("heat", "gas")))
    assert len(far.called) == 1
    assert unmet.link("gas").kind == "serial"


async def test_a_guard_that_says_nothing_is_given_ten_seconds(
    unmet: RemoteGuard, far: Remote, child: Started
) -> None:
    far.greets = ""
    with pytest.raises(LinkLost, match=r"^guard process of \S+: it does not answer$"):
        await unmet.open()
    assert asyncio.get_running_loop().time() == pytest.approx(10.0)
    assert far.closed == ["aborted"]
    child.says = "its disk stands still"
    with pytest.raises(LinkLost, match=r"^guard process of \S+: its disk stands still$"):
        await unmet.open()
    await asyncio.sleep(0.1)
    far.greets = "welcome"
    await unmet.open()
    assert unmet._lost == ""


async def test_one_that_is_busy_is_left_to_who_has_it(
    unmet: RemoteGuard, far: Remote, child: Started, tmp_path: Path
) -> None:
    far.greets = "busy"
    with pytest.raises(LinkLost, match=r"^another harness is at the guard process of this lab"):
        await unmet.open()
    assert (far.closed, far.said, child.at_s) == (["aborted"], [], [])
    assert not (tmp_path / "armed.json").exists()


async def test_one_that_has_other_files_is_asked_to_make_place_for_one_that_reads_ours(
    unmet: RemoteGuard, far: Remote, child: Started, tmp_path: Path
) -> None:
    far.status["epoch"] = 9
    ours, far.welcome["digest"] = far.welcome["digest"], "sha256:other"
    opening = asyncio.ensure_future(unmet.open())
    await asyncio.sleep(0.005)
    assert far.take() == [{"do": "bye", "retire": True}]
    assert (tmp_path / "armed.json").read_text("utf-8") == unmet._text
    with pytest.raises(NotPermitted, match="was not reached yet"):
        unmet.permit("heat", READ)
    assert unmet._epoch == 0, "how things stand there is nobody's business here"
    far.welcome["digest"] = ours
    far.hang_up()
    await opening
    assert child.at_s == []


async def test_one_that_hangs_up_without_a_word_is_called_again(
    unmet: RemoteGuard, far: Remote
) -> None:
    trips: list[Trip] = []
    unmet.on_trip = trips.append
    far.greets = ""
    opening = asyncio.ensure_future(unmet.open())
    await asyncio.sleep(0.005)
    far.greets = "welcome"
    far.hang_up()
    await opening
    assert [at for at, _ in far.called] == pytest.approx([0.0, 0.015])
    assert trips == [], "none was lost that was never had"


async def test_an_arming_that_is_there_is_not_written_again(
    unmet: RemoteGuard, far: Remote, child: Started, tmp_path: Path
) -> None:
    (tmp_path / "armed.json").mkdir()  # a folder cannot be replaced by a file
    far.serves = False
    with pytest.raises(LinkLost, match=r"^guard process of \S+: .*Is a directory"):
        await unmet.open()
    assert child.at_s == []
    (tmp_path / "armed.json").rmdir()
    (tmp_path / "armed.json").write_text(unmet._text, encoding="utf-8")
    (tmp_path / "armed.json").chmod(0o444)
    number = (tmp_path / "armed.json").stat().st_ino
    with pytest.raises(LinkLost, match="it does not stay"):
        await unmet.open()
    assert (tmp_path / "armed.json").stat().st_ino == number


async def test_a_link_that_is_being_opened_is_waited_for_and_one_that_is_shut_is_not(
    guard: RemoteGuard, far: Remote
) -> None:
    loop = asyncio.get_running_loop()
    far.tell("status", shut={"gas": ""})
    await guard.link("heat").open()
    assert loop.time() == 0.0
    opening = asyncio.ensure_future(guard.link("gas").open())
    await asyncio.sleep(2.0)
    assert not opening.done()
    far.tell("status", shut={})
    await opening
    assert loop.time() == pytest.approx(2.0, abs=0.011)
    far.tell("status", shut={"gas": "unplugged"})
    with pytest.raises(LinkLost, match=r"^unplugged$"):
        await guard.link("gas").open()
    far.tell("status", shut={"gas": ""})
    began_s = loop.time()
    with pytest.raises(LinkLost, match=r"^not open within 4 s$"):
        await guard.link("gas").open()
    assert loop.time() - began_s == pytest.approx(4.0, abs=0.02)
    opening = asyncio.ensure_future(guard.link("gas").open())
    await asyncio.sleep(0.1)
    far.serves = False
    far.hang_up()
    with pytest.raises(LinkLost, match="the guard process is gone"):
        await opening
    assert loop.time() - began_s < 4.2


async def test_who_leaves_while_a_guard_is_away_brings_none_back(
    guard: RemoteGuard, far: Remote, child: Started
) -> None:
    far.serves = False
    far.hang_up()
    await asyncio.sleep(0.5)
    guard.close()
    calls = len(far.called)
    assert child.waited_s == [2.0]
    await asyncio.sleep(30.0)
    assert len(far.called) == calls
    assert "gone" in guard._lost, "it is told why, and not that we left"


async def test_a_guard_that_does_not_come_is_called_again_every_two_seconds(
    guard: RemoteGuard, far: Remote, child: Started
) -> None:
    far.serves = False
    far.hang_up()
    await asyncio.sleep(60.0)
    first = [at for at in child.at_s if at < 1.1]
    tries = [at for number, at in enumerate(child.at_s) if number % 3 == 0]
    assert first
    gaps = [b - a for a, b in pairwise(tries)]
    assert gaps == pytest.approx([gaps[0]] * len(gaps), abs=0.02)
    assert 3.0 < gaps[0] < 4.5


# ---- a guard that is lost


async def test_a_guard_that_hangs_up_trips_once_and_ends_what_was_asked(
    guard: RemoteGuard, far: Remote
) -> None:
    trips: list[Trip] = []
    turns: list[str] = []
    await armed(guard, far)
    guard.on_trip = trips.append
    ends = ask(guard)
    far.serves = False
    await asyncio.sleep(1.5)
    guard.when_free("heat", lambda: turns.append("fails at once"))
    assert turns == []
    far.hang_up()
    assert turns == ["fails at once"]
    assert trips == [Trip(Cause.COMMUNICATION, "stop", "guard", None, 1.5, GONE)]
    with pytest.raises(NotPermitted, match="the guard process is gone"):
        guard.permit("heat", READ)
    assert ends == []
    await asyncio.sleep(0)
    assert ends == [(None, GONE)]
    far.hang_up()
    assert len(trips) == 1
    far.serves = True
    await asyncio.sleep(5.0)
    assert not guard._lost
    with pytest.raises(NotPermitted, match="not armed"):
        guard.permit("heat", READ)
    far.tell("ended", {"port": "heat", "number": 2, "reply": "31", "error": ""})
    assert ends == [(None, GONE)], "no question outlives its connection"


async def test_the_end_of_a_connection_that_was_given_up_says_nothing(
    guard: RemoteGuard, far: Remote
) -> None:
    trips: list[Trip] = []
    first = far._stream
    guard.on_trip = trips.append
    far.hang_up()
    await asyncio.sleep(0.1)
    assert not guard._lost
    first.connection_lost(None)
    assert len(trips) == 1
    assert not guard._lost


async def test_what_was_counted_of_one_guard_is_not_counted_of_the_next(
    guard: RemoteGuard, far: Remote
) -> None:
    await armed(guard, far)
    guard.new_epoch()
    guard.repeat(SAFE)
    assert (guard._told, guard._moves_told, guard._moves_ahead) == (3, 2, 1)
    far.hang_up()
    await asyncio.sleep(0.1)
    far.take()
    far.tell("status", heard=0, moves=0, epoch=0, armed=False)
    assert guard.ready("heat")
    assert (guard._told, guard._moves_told, guard._moves_ahead) == (0, 0, 0)
    ask(guard)
    assert far.take() == [WHOLE_SEND]


async def test_a_guard_that_is_lost_is_called_at_once_and_one_that_was_lost_again_after_a_second(
    guard: RemoteGuard, far: Remote
) -> None:
    loop = asyncio.get_running_loop()
    await asyncio.sleep(10.0)
    far.hang_up()
    await asyncio.sleep(0.1)
    assert [at for at, _ in far.called] == pytest.approx([0.0, 10.0])
    far.hang_up()
    await asyncio.sleep(3.0)
    assert [at for at, _ in far.called] == pytest.approx([0.0, 10.0, 11.1])
    far.hang_up()
    await asyncio.sleep(0.1)
    assert [at for at, _ in far.called] == pytest.approx([0.0, 10.0, 11.1, 13.1])
    assert loop.time() == pytest.approx(13.2)


async def test_a_guard_that_comes_back_is_given_up_by_nobody(
    guard: RemoteGuard, far: Remote
) -> None:
    far.serves = False
    far.hang_up()
    for _ in range(20):
        await asyncio.sleep(300.0)
    assert guard._lost
    far.serves = True
    await asyncio.sleep(3.0)
    assert not guard._lost
