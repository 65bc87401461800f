"""A link that was lost, by itself: who stands behind it is asked and prepared, or it trips."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from kernel_line import ENVELOPE
from labharness.core.vocabulary import Command, Ending, Outcome
from labharness.journal import JournalFailed
from labharness.line.events import Events
from labharness.line.exchanges import NoReply
from labharness.line.gate import Gate
from labharness.line.preparing import LOSSES_MAX, RETURN_S_MAX, Reconnecting
from labharness.safety.kernel import Mode
from line_alone import Scene, Toy, shown, toy

RATE, MODE = Command("furnace.rate", 5.0, "degC/min"), Command("furnace.mode", 1.0, "")
TOOK_S = 0.1


class ServedLinks(Scene):
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
        self.events = Events()
        self.events.on_warning = lambda text: self.warned.append((self.loop.time(), text))
        self.again = Reconnecting(
            gate=self.gate,
            identify=self.ask,
            carry_out=self.perform,
            note=lambda kind, body: self.noted.append((kind, body)),
            trip=lambda port, why: self.tripped.append((port, why)),
            events=self.events,
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

    def after(self, for_s: float, *acts: tuple[float, Callable[[], Any]]) -> "ServedLinks":
        """Let things happen at their times."""

        async def work() -> None:
            for at_s, act in acts:
                self.loop.call_later(at_s, act)
            await asyncio.sleep(for_s)
            self.again.close()

        self.play(work())
        return self

    def lose(self, port: str = "heat") -> None:
        """Lose a link."""
        self.again.lost(port, "unplugged")

    def links(self) -> list[str]:
        """Name what was recorded."""
        return [kind for kind, _ in self.noted]


ALL = ["furnace?", "oven?", "furnace.rate=5", "furnace.mode=1", "oven.off=1"]


@pytest.fixture
def links() -> ServedLinks:
    return ServedLinks()


def test_all_behind_a_lost_link_are_asked_and_prepared_in_order_and_it_is_back() -> None:
    links = ServedLinks()
    seen: list[tuple[str, ...]] = []
    links.after(5.0, (1.0, links.lose), (1.01, lambda: seen.append(links.again.missing())))
    assert seen == [("heat",)]
    assert links.did == ALL
    assert links.noted == [
        ("link_lost", {"port": "heat", "why": "unplugged"}),
        ("link_back", {"port": "heat"}),
    ]
    assert links.again.missing() == ()
    assert links.gate.unprepared == {}
    assert (links.tripped, links.warned) == ([], [])


def test_what_restarted_has_lost_what_it_was_set_to(links: ServedLinks) -> None:
    tracks = {
        each: links.memory.track(each) for each in ("furnace.rate", "oven.off", "oven.setpoint")
    }
    for track in tracks.values():
        track.told = 5.0
    links.after(0.01, (0.0, links.lose))
    assert {each for each, track in tracks.items() if track.told == 5.0} == {"oven.setpoint"}
    assert "furnace.mode" not in ENVELOPE.limits, "and what no limit names is nobody's"


@pytest.mark.parametrize(
    ("mode", "served"),
    [(Mode.DISARMED, False), (Mode.ARMING, False), (Mode.TRIPPED, False), (Mode.RUNNING, True)],
)
def test_only_a_line_that_is_armed_serves_a_link_at_once(mode: Mode, *, served: bool) -> None:
    links = ServedLinks(mode)
    links.after(50.0, (0.0, links.lose))
    assert bool(links.did) is served
    assert bool(links.again.missing()) is not served
    assert links.tripped == []


@pytest.mark.parametrize(
    ("ending", "why"),
    [
        (Ending.MISMATCH, "prepare furnace.mode = 1 mismatch: said"),
        (Ending.REFUSED, "prepare furnace.mode = 1 refused: said"),
        (Ending.UNCONFIRMED, "prepare furnace.mode = 1 unconfirmed: said"),
    ],
)
def test_what_does_not_take_its_prepare_trips_and_nothing_more_is_set(
    links: ServedLinks, ending: Ending, why: str
) -> None:
    links.outcome = lambda each: ending if each == MODE else Ending.CONFIRMED
    links.after(50.0, (0.0, links.lose))
    assert links.tripped == [("heat", f"the link of port heat was lost, and {why}")]
    assert links.did == ALL[:4]
    assert links.links() == ["link_lost"]


def test_who_does_not_answer_is_asked_every_quarter_of_a_second_and_trips_after_thirty() -> None:
    links = ServedLinks()
    links.takes_s = 0.0

    def silent(name: str) -> None:
        raise NoReply(name)

    links.identify = silent
    trips: list[int] = []
    looks = ((at_s, lambda: trips.append(len(links.tripped))) for at_s in (29.9, 30.1))
    links.after(50.0, (0.0, links.lose), *looks)
    assert trips == [0, 1]
    assert RETURN_S_MAX == 30.0
    why = "its instruments were not prepared again within 30 s"
    assert links.tripped == [("heat", f"the link of port heat was lost, and {why}")]
    assert 119 <= len(links.did) <= 121


def test_a_journal_that_is_lost_meanwhile_trips_with_its_words(links: ServedLinks) -> None:
    links.fails = JournalFailed("full")
    links.after(50.0, (0.0, links.lose))
    assert links.tripped == [("heat", "the link of port heat was lost, and full")]


def test_whatever_breaks_here_trips(links: ServedLinks) -> None:
    links.fails = RuntimeError("broken")
    links.loop.set_exception_handler(lambda loop, context: None)
    links.after(5.0, (0.0, links.lose))
    why = "its instruments were not prepared again within 30 s"
    assert links.tripped == [("heat", f"the link of port heat was lost, and {why}")]
    with pytest.raises(RuntimeError, match="broken"):
        links.again._tasks["heat"].result()


def test_a_link_that_is_lost_while_it_is_prepared_is_begun_anew_and_holds_or_trips() -> None:
    links = ServedLinks()
    links.after(50.0, (0.0, links.lose), (0.25, links.lose))
    assert links.did == [*ALL[:3], *ALL]
    assert links.links() == ["link_lost", "link_lost", "link_back"]
    assert links.tripped == []
    links = ServedLinks()
    links.after(50.0, *((number * 5.0, links.lose) for number in range(LOSSES_MAX)))
    assert LOSSES_MAX == 5
    assert links.links().count("link_back") == 5, "it may be lost so often"
    links = ServedLinks()
    links.after(50.0, *((number * 5.0, links.lose) for number in range(LOSSES_MAX + 1)))
    assert links.tripped == [("heat", "the link of port heat was lost, and it was lost 6 times")]
    assert links.again.missing() == ("heat",)


def test_a_loss_while_the_last_value_is_set_is_no_return(links: ServedLinks) -> None:
    links.after(50.0, (0.0, links.lose), (0.45, links.lose))
    assert links.did == [*ALL, *ALL]


# ---- a line that is held


def test_a_line_that_is_held_is_warned_of_once_and_prepared_when_it_is_let_go() -> None:
    links = ServedLinks(Mode.HELD)
    links.after(
        50.0, (0.0, links.lose), (20.0, lambda: setattr(links.memory, "mode", Mode.RUNNING))
    )
    what = "the link of port heat was lost, and its instruments are not prepared"
    assert [text for _, text in links.warned] == [
        f"{what}: resume within 30 s of the loss, or it trips"
    ]
    assert links.warned[0][0] < 1.0
    assert links.did == ALL
    assert links.tripped == []


def test_a_line_that_stays_held_trips_and_says_why() -> None:
    links = ServedLinks(Mode.HELD)
    links.after(50.0, (0.0, links.lose))
    assert links.did == ALL[:2]
    why = "its instruments were not prepared again within 30 s; a line that is held sets nothing"
    assert links.tripped == [("heat", f"the link of port heat was lost, and {why}")]


def test_a_prepare_that_a_hold_has_refused_is_tried_again_when_it_ends(links: ServedLinks) -> None:
    def refused(command: Command) -> Ending:
        if links.memory.mode is Mode.HELD or command == RATE:
            links.outcome = lambda each: Ending.CONFIRMED
            links.memory.mode = Mode.HELD
            return Ending.REFUSED
        return Ending.CONFIRMED

    links.outcome = refused
    links.after(
        50.0, (0.0, links.lose), (10.0, lambda: setattr(links.memory, "mode", Mode.RUNNING))
    )
    assert links.did == [*ALL[:3], *ALL[2:]]
    assert links.tripped == []


def test_a_link_that_is_lost_again_while_the_line_is_held_is_asked_again() -> None:
    links = ServedLinks(Mode.HELD)
    go_on = partial(setattr, links.memory, "mode", Mode.RUNNING)
    links.after(50.0, (0.0, links.lose), (5.0, links.lose), (10.0, go_on))
    assert links.did == [*ALL[:2], *ALL]
    assert links.tripped == []


# ---- the end of a run, and the next


def test_what_is_lost_when_a_line_is_made_safe_is_left_and_prepared_when_it_goes_on() -> None:
    links = ServedLinks(Mode.HELD)
    links.after(60.0, (0.0, links.lose), (5.0, links.again.leave))
    assert (links.did, links.tripped) == (ALL[:2], [])
    assert links.again.missing() == ("heat",)
    links = ServedLinks(Mode.HELD)

    def go_on() -> None:
        links.memory.mode = Mode.RUNNING
        links.again.serve()

    links.after(60.0, (0.0, links.lose), (5.0, links.again.leave), (20.0, go_on))
    assert links.did == [*ALL[:2], *ALL]
    assert (links.tripped, links.again.missing()) == ([], ())


def test_what_is_lost_after_the_line_was_made_safe_trips_as_ever() -> None:
    links = ServedLinks(Mode.HELD)
    links.after(60.0, (0.0, links.again.leave), (1.0, links.lose))
    assert len(links.tripped) == 1
    links = ServedLinks(Mode.HELD)
    links.after(60.0, (0.0, links.lose), (1.0, links.again.leave), (2.0, links.lose))
    assert len(links.tripped) == 1, "and what is lost once more"


def test_a_line_that_is_tripped_or_disarmed_meanwhile_trips_no_more() -> None:
    for mode in (Mode.TRIPPED, Mode.DISARMED):
        links = ServedLinks()
        links.outcome = lambda command: Ending.MISMATCH
        change = partial(setattr, links.memory, "mode", mode)
        links.after(5.0, (0.0, links.lose), (0.15, change))
        assert links.tripped == []


async def test_a_command_waits_while_its_port_is_prepared_and_no_other_does() -> None:
    links = ServedLinks()
    ended: dict[str, float] = {}

    async def settled(channel: str) -> None:
        await links.again.settled(channel)
        ended[channel] = links.loop.time()

    await settled("furnace.rate")
    links.lose()
    await asyncio.sleep(0.01)
    await asyncio.gather(*map(settled, ("oven.setpoint", "box.contactor", "nobody.x")))
    await settled("furnace.rate")
    assert ended["oven.setpoint"] == ended["furnace.rate"] == pytest.approx(5 * TOOK_S)
    assert ended["box.contactor"] == ended["nobody.x"] == pytest.approx(0.01)


async def test_a_command_for_a_line_that_is_held_does_not_wait() -> None:
    links = ServedLinks(Mode.HELD)
    links.lose()
    await asyncio.sleep(0.01)
    await links.again.settled("furnace.rate")
    assert links.loop.time() == 0.01
    links.again.close()


async def test_before_a_line_is_armed_whoever_stands_behind_a_lost_link_says_who_it_is() -> None:
    links = ServedLinks(Mode.DISARMED)
    for _ in range(LOSSES_MAX + 1):
        links.lose()
    await links.again.meet()
    assert links.again.missing() == ()
    links.memory.mode = Mode.RUNNING
    links.lose()
    await asyncio.sleep(5.0)
    assert links.did == [*ALL[:2], *ALL], "and how often it was lost before is forgotten"
    assert links.tripped == []


async def test_a_line_behind_whose_link_somebody_is_silent_is_not_met() -> None:
    links = ServedLinks(Mode.DISARMED)

    def silent(name: str) -> None:
        if name == "oven":
            raise NoReply(name)

    links.lose()
    links.identify = silent
    with pytest.raises(NoReply):
        await links.again.meet()
    assert links.again.missing() == ("heat",)


async def test_a_link_that_is_lost_while_it_is_met_stays_missing() -> None:
    links = ServedLinks(Mode.DISARMED)
    links.lose()
    links.loop.call_later(0.15, links.lose)
    await links.again.meet()
    assert links.again.missing() == ("heat",)


def test_a_line_that_is_armed_anew_or_closed_prepares_nothing_for_the_run_before() -> None:
    links = ServedLinks()

    async def work() -> None:
        links.lose()
        await asyncio.sleep(0.05)
        links.memory.mode = Mode.DISARMED
        await links.again.meet()
        await asyncio.sleep(5.0)

    links.play(work())
    assert links.did == ["furnace?", "furnace?", "oven?"]
    links = ServedLinks()
    links.after(
        5.0,
        (0.0, links.lose),
        (0.05, lambda: setattr(links.memory, "mode", Mode.DISARMED)),
        (0.06, links.again.close),
    )
    assert links.did == ["furnace?"]
    assert links.tripped == []
