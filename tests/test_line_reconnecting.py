"""A road that was lost, by itself: who stands behind it is asked and prepared, or it trips."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from kernel_line import ENVELOPE
from labharness.journal import JournalFailed
from labharness.kernel import Mode
from labharness.line.exchanges import NoReply
from labharness.line.programs import Gate
from labharness.line.reconnecting import LOSSES_MAX, RETURN_S_MAX, Reconnecting
from labharness.vocabulary import Command, Ending, Outcome
from line_alone import Scene, Toy, shown, toy

RATE, MODE = Command("furnace.rate", 5.0, "degC/min"), Command("furnace.mode", 1.0, "")
OFF = Command("oven.off", 1.0, "")
TOOK_S = 0.1


class Roads(Scene):
    """Two furnaces on one port, and a box on another."""

    def __init__(self, mode: Mode = Mode.RUNNING) -> None:
        furnace = Toy({"rate": shown("rate"), "mode": shown("mode")})
        super().__init__(
            toy("furnace", furnace, port="heat", prepare=(("rate", 5.0), ("mode", 1.0))),
            toy("oven", Toy({"off": shown("off")}), port="heat", prepare=(("off", 1.0),)),
            toy("box", Toy({"contactor": shown("contactor")}), port="relays"),
        )
        self.memory.mode = mode
        self.gate = Gate(self.memory, self.instruments, self.loop.time)
        self.did: list[str] = []
        self.warned: list[tuple[float, str]] = []
        self.tripped: list[tuple[str, str]] = []
        self.identify: Callable[[str], None] = lambda name: None
        self.outcome: Callable[[Command], Ending] = lambda command: Ending.CONFIRMED
        self.fails: Exception | None = None
        self.takes_s = TOOK_S
        self.again = Reconnecting(
            memory=self.memory,
            instruments=self.instruments,
            gate=self.gate,
            identify=self.ask,
            perform=self.perform,
            note=lambda kind, body: self.noted.append((kind, body)),
            warn=lambda text: self.warned.append((self.loop.time(), text)),
            trip=lambda port, why: self.tripped.append((port, why)),
        )

    async def ask(self, name: str) -> object:
        """Answer, or not."""
        self.did.append(f"{name}?")
        await asyncio.sleep(self.takes_s)
        self.identify(name)
        return name

    async def perform(self, command: Command) -> Outcome:
        """Carry out, if the gate lets it."""
        port = self.instruments[command.channel.partition(".")[0]].port
        assert self.gate.unprepared.get(port, command) is command, "it alone may pass"
        self.did.append(f"{command.channel}={command.value:g}")
        await asyncio.sleep(self.takes_s)
        if self.fails is not None:
            raise self.fails
        return Outcome(command, self.outcome(command), None, "said")

    def after(self, for_s: float, *acts: tuple[float, Callable[[], Any]]) -> "Roads":
        """Let things happen at their times."""

        async def work() -> None:
            for at_s, act in acts:
                self.loop.call_later(at_s, act)
            await asyncio.sleep(for_s)
            self.again.close()

        self.play(work())
        return self

    def lose(self, port: str = "heat") -> None:
        """Lose a road."""
        self.again.lost(port, "unplugged")

    def roads(self) -> list[str]:
        """Name what was recorded."""
        return [kind for kind, _ in self.noted]


ALL = ["furnace?", "oven?", "furnace.rate=5", "furnace.mode=1", "oven.off=1"]


def test_all_behind_a_lost_road_are_asked_and_prepared_in_order_and_it_is_back() -> None:
    roads = Roads()
    seen: list[tuple[str, ...]] = []
    roads.after(5.0, (1.0, roads.lose), (1.01, lambda: seen.append(roads.again.missing())))
    assert seen == [("heat",)]
    assert roads.did == ALL
    assert roads.noted == [
        ("road_lost", {"port": "heat", "why": "unplugged"}),
        ("road_back", {"port": "heat"}),
    ]
    assert roads.again.missing() == ()
    assert roads.gate.unprepared == {}
    assert (roads.tripped, roads.warned) == ([], [])


def test_what_restarted_has_lost_what_it_was_set_to() -> None:
    roads = Roads()
    tracks = {
        each: roads.memory.track(each) for each in ("furnace.rate", "oven.off", "oven.setpoint")
    }
    for track in tracks.values():
        track.told = 5.0
    roads.after(0.01, (0.0, roads.lose))
    assert {each for each, track in tracks.items() if track.told == 5.0} == {"oven.setpoint"}
    assert "furnace.mode" not in ENVELOPE.limits, "and what no limit names is nobody's"


@pytest.mark.parametrize(
    ("mode", "served"),
    [(Mode.DISARMED, False), (Mode.ARMING, False), (Mode.TRIPPED, False), (Mode.RUNNING, True)],
)
def test_only_a_line_that_is_armed_serves_a_road_at_once(mode: Mode, *, served: bool) -> None:
    roads = Roads(mode)
    roads.after(50.0, (0.0, roads.lose))
    assert bool(roads.did) is served
    assert bool(roads.again.missing()) is not served
    assert roads.tripped == []


@pytest.mark.parametrize(
    ("ending", "why"),
    [
        (Ending.MISMATCH, "prepare furnace.mode = 1 mismatch: said"),
        (Ending.REFUSED, "prepare furnace.mode = 1 refused: said"),
        (Ending.UNCONFIRMED, "prepare furnace.mode = 1 unconfirmed: said"),
    ],
)
def test_what_does_not_take_its_prepare_trips_and_nothing_more_is_set(
    ending: Ending, why: str
) -> None:
    roads = Roads()
    roads.outcome = lambda each: ending if each == MODE else Ending.CONFIRMED
    roads.after(50.0, (0.0, roads.lose))
    assert roads.tripped == [("heat", f"the road of port heat was lost, and {why}")]
    assert roads.did == ALL[:4]
    assert roads.roads() == ["road_lost"]


def test_who_does_not_answer_is_asked_every_quarter_of_a_second_and_trips_after_thirty() -> None:
    roads = Roads()
    roads.takes_s = 0.0

    def silent(name: str) -> None:
        raise NoReply(name)

    roads.identify = silent
    trips: list[int] = []
    looks = ((at_s, lambda: trips.append(len(roads.tripped))) for at_s in (29.9, 30.1))
    roads.after(50.0, (0.0, roads.lose), *looks)
    assert trips == [0, 1]
    assert RETURN_S_MAX == 30.0
    why = "its instruments were not prepared again within 30 s"
    assert roads.tripped == [("heat", f"the road of port heat was lost, and {why}")]
    assert 119 <= len(roads.did) <= 121


def test_a_journal_that_is_lost_meanwhile_trips_with_its_words() -> None:
    roads = Roads()
    roads.fails = JournalFailed("full")
    roads.after(50.0, (0.0, roads.lose))
    assert roads.tripped == [("heat", "the road of port heat was lost, and full")]


def test_whatever_breaks_here_trips() -> None:
    roads = Roads()
    roads.fails = RuntimeError("broken")
    roads.loop.set_exception_handler(lambda loop, context: None)
    roads.after(5.0, (0.0, roads.lose))
    why = "its instruments were not prepared again within 30 s"
    assert roads.tripped == [("heat", f"the road of port heat was lost, and {why}")]
    with pytest.raises(RuntimeError, match="broken"):
        roads.again._tasks["heat"].result()


def test_a_road_that_is_lost_while_it_is_prepared_is_begun_anew_and_holds_or_trips() -> None:
    roads = Roads()
    roads.after(50.0, (0.0, roads.lose), (0.25, roads.lose))
    assert roads.did == [*ALL[:3], *ALL]
    assert roads.roads() == ["road_lost", "road_lost", "road_back"]
    assert roads.tripped == []
    roads = Roads()
    roads.after(50.0, *((number * 5.0, roads.lose) for number in range(LOSSES_MAX)))
    assert LOSSES_MAX == 5
    assert roads.roads().count("road_back") == 5, "it may be lost so often"
    roads = Roads()
    roads.after(50.0, *((number * 5.0, roads.lose) for number in range(LOSSES_MAX + 1)))
    assert roads.tripped == [("heat", "the road of port heat was lost, and it was lost 6 times")]
    assert roads.again.missing() == ("heat",)


def test_a_loss_while_the_last_value_is_set_is_no_return() -> None:
    roads = Roads()
    roads.after(50.0, (0.0, roads.lose), (0.45, roads.lose))
    assert roads.did == [*ALL, *ALL]


# ---- a line that is held


def test_a_line_that_is_held_is_warned_of_once_and_prepared_when_it_is_let_go() -> None:
    roads = Roads(Mode.HELD)
    roads.after(
        50.0, (0.0, roads.lose), (20.0, lambda: setattr(roads.memory, "mode", Mode.RUNNING))
    )
    what = "the road of port heat was lost, and its instruments are not prepared"
    assert [text for _, text in roads.warned] == [
        f"{what}: resume within 30 s of the loss, or it trips"
    ]
    assert roads.warned[0][0] < 1.0
    assert roads.did == ALL
    assert roads.tripped == []


def test_a_line_that_stays_held_trips_and_says_why() -> None:
    roads = Roads(Mode.HELD)
    roads.after(50.0, (0.0, roads.lose))
    assert roads.did == ALL[:2]
    why = "its instruments were not prepared again within 30 s; a line that is held sets nothing"
    assert roads.tripped == [("heat", f"the road of port heat was lost, and {why}")]


def test_a_prepare_that_a_hold_has_refused_is_tried_again_when_it_ends() -> None:
    roads = Roads()

    def refused(command: Command) -> Ending:
        if roads.memory.mode is Mode.HELD or command == RATE:
            roads.outcome = lambda each: Ending.CONFIRMED
            roads.memory.mode = Mode.HELD
            return Ending.REFUSED
        return Ending.CONFIRMED

    roads.outcome = refused
    roads.after(
        50.0, (0.0, roads.lose), (10.0, lambda: setattr(roads.memory, "mode", Mode.RUNNING))
    )
    assert roads.did == [*ALL[:3], *ALL[2:]]
    assert roads.tripped == []


def test_a_road_that_is_lost_again_while_the_line_is_held_is_asked_again() -> None:
    roads = Roads(Mode.HELD)
    go_on = partial(setattr, roads.memory, "mode", Mode.RUNNING)
    roads.after(50.0, (0.0, roads.lose), (5.0, roads.lose), (10.0, go_on))
    assert roads.did == [*ALL[:2], *ALL]
    assert roads.tripped == []


# ---- the end of a run, and the next


def test_what_is_lost_when_a_line_is_made_safe_is_left_and_prepared_when_it_goes_on() -> None:
    roads = Roads(Mode.HELD)
    roads.after(60.0, (0.0, roads.lose), (5.0, roads.again.leave))
    assert (roads.did, roads.tripped) == (ALL[:2], [])
    assert roads.again.missing() == ("heat",)
    roads = Roads(Mode.HELD)

    def go_on() -> None:
        roads.memory.mode = Mode.RUNNING
        roads.again.serve()

    roads.after(60.0, (0.0, roads.lose), (5.0, roads.again.leave), (20.0, go_on))
    assert roads.did == [*ALL[:2], *ALL]
    assert (roads.tripped, roads.again.missing()) == ([], ())


def test_what_is_lost_after_the_line_was_made_safe_trips_as_ever() -> None:
    roads = Roads(Mode.HELD)
    roads.after(60.0, (0.0, roads.again.leave), (1.0, roads.lose))
    assert len(roads.tripped) == 1
    roads = Roads(Mode.HELD)
    roads.after(60.0, (0.0, roads.lose), (1.0, roads.again.leave), (2.0, roads.lose))
    assert len(roads.tripped) == 1, "and what is lost once more"


def test_a_line_that_is_tripped_or_disarmed_meanwhile_trips_no_more() -> None:
    for mode in (Mode.TRIPPED, Mode.DISARMED):
        roads = Roads()
        roads.outcome = lambda command: Ending.MISMATCH
        change = partial(setattr, roads.memory, "mode", mode)
        roads.after(5.0, (0.0, roads.lose), (0.15, change))
        assert roads.tripped == []


def test_a_command_waits_while_its_port_is_prepared_and_no_other_does() -> None:
    roads = Roads()
    ended: dict[str, float] = {}

    async def settled(channel: str) -> None:
        await roads.again.settled(channel)
        ended[channel] = roads.loop.time()

    async def work() -> None:
        await settled("furnace.rate")
        roads.lose()
        await asyncio.sleep(0.01)
        await asyncio.gather(*map(settled, ("oven.setpoint", "box.contactor", "nobody.x")))
        await settled("furnace.rate")

    roads.play(work())
    assert ended["oven.setpoint"] == ended["furnace.rate"] == pytest.approx(5 * TOOK_S)
    assert ended["box.contactor"] == ended["nobody.x"] == pytest.approx(0.01)


def test_a_command_for_a_line_that_is_held_does_not_wait() -> None:
    roads = Roads(Mode.HELD)

    async def work() -> None:
        roads.lose()
        await asyncio.sleep(0.01)
        await roads.again.settled("furnace.rate")
        assert roads.loop.time() == 0.01
        roads.again.close()

    roads.play(work())


def test_before_a_line_is_armed_whoever_stands_behind_a_lost_road_says_who_it_is() -> None:
    roads = Roads(Mode.DISARMED)

    async def work() -> None:
        for _ in range(LOSSES_MAX + 1):
            roads.lose()
        await roads.again.meet()
        assert roads.again.missing() == ()
        roads.memory.mode = Mode.RUNNING
        roads.lose()
        await asyncio.sleep(5.0)

    roads.play(work())
    assert roads.did == [*ALL[:2], *ALL], "and how often it was lost before is forgotten"
    assert roads.tripped == []


def test_a_line_behind_whose_road_somebody_is_silent_is_not_met() -> None:
    roads = Roads(Mode.DISARMED)

    def silent(name: str) -> None:
        if name == "oven":
            raise NoReply(name)

    async def work() -> None:
        roads.lose()
        roads.identify = silent
        with pytest.raises(NoReply):
            await roads.again.meet()
        assert roads.again.missing() == ("heat",)

    roads.play(work())


def test_a_road_that_is_lost_while_it_is_met_stays_missing() -> None:
    roads = Roads(Mode.DISARMED)

    async def work() -> None:
        roads.lose()
        roads.loop.call_later(0.15, roads.lose)
        await roads.again.meet()
        assert roads.again.missing() == ("heat",)

    roads.play(work())


def test_a_line_that_is_armed_anew_or_closed_prepares_nothing_for_the_run_before() -> None:
    roads = Roads()

    async def work() -> None:
        roads.lose()
        await asyncio.sleep(0.05)
        roads.memory.mode = Mode.DISARMED
        await roads.again.meet()
        await asyncio.sleep(5.0)

    roads.play(work())
    assert roads.did == ["furnace?", "furnace?", "oven?"]
    roads = Roads()
    roads.after(
        5.0,
        (0.0, roads.lose),
        (0.05, lambda: setattr(roads.memory, "mode", Mode.DISARMED)),
        (0.06, roads.again.close),
    )
    assert roads.did == ["furnace?"]
    assert roads.tripped == []
