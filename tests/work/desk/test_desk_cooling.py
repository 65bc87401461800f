"""How a line is made safe once and watched until it is cold: each wait, and each end, by itself."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from labharness.core.vocabulary import Cause, Trip
from labharness.core.vocabulary.texts import Text
from labharness.line.line import COOL_WATCH_S_MAX
from labharness.work.desk import making_safe
from labharness.work.desk.making_safe import SAFE_S_MAX, Cooling, MakingSafe

LEAK = Trip(Cause.GAS_LEAK, "purge", "h2", 9.0, 40.0, "a leak")


class CoolLine:
    """A line that is watched: its clock stands, and it is cold or not."""

    def __init__(self) -> None:
        self.did: list[Any] = []
        self.now = 100.0
        self.cold = True
        self.hears: Any = lambda: None
        self.cold_text = "below 60"
        self.memory = SimpleNamespace(trip=None)
        self.guard = SimpleNamespace(latch=SimpleNamespace(trip=None))
        self.events = SimpleNamespace(on_warning=None)
        self.monitor = SimpleNamespace(note=lambda *said: self.did.append(said))
        self.trip_response = SimpleNamespace(trip=self.trip, verified=self.verified)

    @property
    def clock(self) -> Any:
        loop = asyncio.get_running_loop()
        return SimpleNamespace(now_s=lambda: self.now, loop=loop)

    def trip(self, trip: Trip) -> None:
        self.did.append(trip)
        self.memory.trip = trip

    async def verified(self) -> None:
        self.did.append("verified")

    def disarm(self) -> None:
        self.did.append("disarm")

    async def watch_until_cold(self, broken_off: Any) -> bool:
        self.hears()
        self.now += 50.0
        self.did.append(f"broken off: {broken_off()}")
        return self.cold


class Safe:
    """A line's safe state that is reached already."""

    def __init__(self, line: CoolLine) -> None:
        self._line = line

    async def ended(self) -> None:
        self._line.did.append("ended")

    async def latch_lost(self) -> str:
        self._line.did.append("latch")
        return ""

    def unverified(self) -> list[str]:
        return ["valve"]


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(making_safe, "stop_procedure", lambda memory, latched, now_s: "stop")
    return CoolLine()


def watched(line: Any, broken: str = "") -> tuple[Any, list[Any]]:
    told: list[Any] = []
    safe: Any = Safe(line)
    cooling = Cooling(line, safe, lambda *said: told.append(said))
    if broken:
        cooling.break_off(broken)
        cooling.break_off("later")
    return asyncio.run(cooling.watch()), told


def test_a_line_that_is_cold_is_disarmed_and_said_to_be_so(line: Any) -> None:
    line.hears = lambda: line.events.on_warning("a fan")
    cooled, told = watched(line)
    assert (cooled.warm, cooled.tripped, cooled.unverified) == ("", "", ("valve",))
    assert (cooled.watched_s, cooled.below) == (50.0, "below 60")
    assert line.did == [
        "ended",
        ("cooling", {"warning": "a fan"}),
        "broken off: False",
        "latch",
        ("cooled", cooled.to_json()),
        "disarm",
    ]
    assert told == [
        ("cooling", {"message": Text("cooling.watch", cold="below 60")}),
        ("warning", {"message": "a fan"}),
        ("cooled", {"message": cooled.text}),
    ]


@pytest.mark.parametrize(
    ("broken", "took_s", "why"),
    [
        ("ctrl-c", 0.0, Text("cooling.broken_off", why="ctrl-c")),
        ("", COOL_WATCH_S_MAX - 50.1, Text("cooling.unheard")),
        (
            "",
            COOL_WATCH_S_MAX - 50.0,
            Text("cooling.too_long", hours=COOL_WATCH_S_MAX / 3600),
        ),
    ],
)
def test_a_line_that_is_left_warm_is_latched_with_the_reason(
    line: Any, broken: str, took_s: float, why: Text
) -> None:
    line.cold = False

    def hears() -> None:
        line.now += took_s

    line.hears = hears
    cooled, _ = watched(line, broken)
    assert cooled.warm == why
    (trip,) = (each for each in line.did if isinstance(each, Trip))
    assert (trip.cause, trip.procedure, trip.channel) == (Cause.STOP_REQUEST, "stop", "line")
    assert (trip.at_s, trip.detail) == (line.now, Text("cooled.warm", why=why))
    assert "verified" in line.did, "what it tripped for is seen through"
    assert cooled.tripped == trip.detail


def test_a_line_that_has_tripped_is_not_latched_for_another_reason(line: Any) -> None:
    line.cold, line.memory.trip = False, LEAK
    cooled, _ = watched(line)
    assert not [each for each in line.did if isinstance(each, Trip)]
    assert cooled.tripped == "a leak"


def test_a_watch_that_fails_latches_its_line(line: Any, caplog: pytest.LogCaptureFixture) -> None:
    def hears() -> None:
        raise ValueError("ours")

    line.hears = hears
    cooled, _ = watched(line)
    assert cooled.warm == Text("failure.internal", what=repr(ValueError("ours")))
    assert [each.detail for each in line.did if isinstance(each, Trip)] == [cooled.tripped]
    assert [str(each.exc_info[1]) for each in caplog.records if each.exc_info] == ["ours"]


@pytest.mark.parametrize("trip", [None, LEAK])
def test_making_safe_is_waited_for_until_the_promised_time_and_begun_once(trip: Any) -> None:
    waited: list[float | None] = []
    begun: list[str] = []
    ends = asyncio.Event()

    async def settle() -> None:
        begun.append("settle")
        await ends.wait()

    async def main() -> None:
        line: Any = CoolLine()
        line.memory.trip = trip
        safe: Any = MakingSafe(line, "safe")
        safe._settle = settle
        wait = asyncio.wait

        async def wait_for(works: Any, **within: Any) -> None:
            waited.append(within.get("timeout"))
            await wait(works, timeout=0.0)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(asyncio, "wait", wait_for)
            assert not safe.done
            await safe.wait()
            line.now += 20.0
            await safe.wait()
            line.now += 1_000.0
            await safe.wait()
        assert not safe.done
        ends.set()
        await safe.ended()
        assert safe.done

    asyncio.run(main())
    first_s = SAFE_S_MAX if trip is None else 40.0 + SAFE_S_MAX - 100.0
    assert waited == [first_s, first_s - 20.0, 0.0]
    assert begun == ["settle"]


@pytest.mark.parametrize("lost", ["", "the mark is not on the disk"])
def test_a_latch_that_is_lost_is_looked_at_and_told_until_the_disk_is_mended(
    line: Any, lost: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def look(guard: object, clock: object) -> str:
        return lost

    monkeypatch.setattr(making_safe, "latch_lost", look)
    safe: Any = MakingSafe(line, "safe")
    safe._lost, safe._settled = "as before", object()
    safe._last = lambda: SimpleNamespace(procedure="safe", unverified=list)
    line.instruments = ("furnace",)
    assert asyncio.run(safe.latch_lost()) == lost
    assert safe.unverified() == ([lost] if lost else [])
    safe._settled = None
    late = Text("pair", what="safe", why=Text("safe.under_way", within_s=SAFE_S_MAX))
    assert safe.unverified() == [late, *([lost] if lost else [])]


def test_an_error_of_making_safe_is_raised_and_asked_for_again_begins_anew() -> None:
    begun: list[int] = []

    async def settle() -> None:
        begun.append(1)
        if len(begun) == 1:
            raise ValueError("ours")

    async def main() -> None:
        line: Any = CoolLine()
        safe: Any = MakingSafe(line, "safe")
        await safe.ended()  # nothing is under way
        safe._settle = settle
        with pytest.raises(ValueError, match="ours"):
            await safe.wait()
        with pytest.raises(ValueError, match="ours"):
            await safe.ended()
        await safe.wait()
        await safe.ended()

    asyncio.run(main())
    assert len(begun) == 2
