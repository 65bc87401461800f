"""The one writer of a line by itself: what is judged, sent, read back and recorded, in order."""

import asyncio
from collections.abc import Callable

import pytest

from labharness.core.vocabulary import Allowed, Command, Ending, Outcome, Refused, Verdict
from labharness.core.vocabulary.texts import Said
from labharness.instruments.driver import Off, While
from labharness.instruments.driver.driver import Adds
from labharness.journal import JournalFailed
from labharness.line.command import WAITING_MAX, NotOpened
from labharness.line.gate import Gate
from labharness.line.instrument import Contact
from line_alone import Scene, Toy, shown, toy

SET = Command("pump.speed", 5.0, "Hz")
WRITTEN = "pump.speed=5"


class Words(Gate):
    """A gate that says what a test wants, and keeps what it is told.

    Attributes:
        says: The verdicts to come; after them everything is allowed.
    """

    def __init__(self) -> None:
        self.says: list[str] = []
        self.told: list[tuple[str, Command]] = []
        self.readings: dict[str, float] = {}

    def judge(self, command: Command) -> Verdict:
        """Say the next verdict."""
        self.told.append(("judge", command))
        why = self.says.pop(0) if self.says else ""
        return Refused(command, "test", Said("items", parts=[why])) if why else Allowed(command)

    def begin(self, command: Command) -> None:
        """Keep it."""
        self.told.append(("begin", command))

    def conclude(self, command: Command) -> None:
        """Keep it."""
        self.told.append(("conclude", command))

    def latest(self, channel: str) -> float:
        """Return what was polled."""
        return self.readings.get(channel, float("nan"))

    def kinds(self) -> list[str]:
        """Name what was told, in order."""
        return [kind for kind, _ in self.told]


class Pump(Scene):
    """A pump that is set by one frame and shows its speed, and its writer."""

    def __init__(self, **more: object) -> None:
        speed = shown("rpm", unit="Hz", resolution=0.5, **more)
        off = Off(adds=Adds.CURRENT, steps=(("speed", 0.0),), source="test", drives=("speed",))
        mode = While("mode", (1.0,), "it is in local")
        self.driver = Toy(
            {"speed": speed, "blind": shown(None), "local": shown("local", acts_while=mode)},
            ("rpm", "mode", "relay"),
            off=(off, Off(adds=Adds.HEAT, steps=(("local", 0.0),), source="t", drives=("local",))),
        )
        super().__init__(toy("pump", self.driver))
        self.gate = Words()
        self.port.on_frame = self.frame
        self.shows: Callable[[float], float] = float
        self.lost: list[str] = []
        self.writer = self.writer_by(self.gate, self.lost.append)

    def frame(self, words: str) -> None:
        """Turn as it is set."""
        if words.startswith("pump.speed="):
            self.port.holds["pump.rpm"] = self.shows(float(words.partition("=")[2]))

    def perform(self, command: Command = SET) -> Outcome:
        """Have one command carried out."""
        return self.play(self.writer.perform(command))


@pytest.fixture
def pump() -> Pump:
    return Pump()


def test_a_command_is_recorded_before_it_is_judged_and_its_end_after_it(pump: Pump) -> None:
    outcome = pump.perform()
    assert outcome == Outcome(SET, Ending.CONFIRMED, 5.0, "")
    assert pump.port.sent == [(WRITTEN, True), ("pump.rpm?", False)]
    assert pump.gate.kinds() == ["judge", "judge", "begin", "conclude"]
    assert pump.journal.records == [
        ("intent", {"channel": "pump.speed", "value": 5.0, "unit": "Hz"}),
        ("outcome", {"intent": 1, "ending": "confirmed", "read_back": 5.0, "detail": ""}),
    ]


def test_no_byte_leaves_before_the_disk_has_the_intent(pump: Pump) -> None:
    seen: list[int] = []
    pump.journal.on_durable = lambda: seen.append(len(pump.port.sent) + len(pump.gate.told))
    pump.perform()
    assert seen == [0]


def test_what_no_journal_takes_is_neither_judged_nor_sent(pump: Pump) -> None:
    pump.journal.fails_at = "intent"
    with pytest.raises(JournalFailed):
        pump.perform()
    assert (pump.gate.told, pump.port.sent) == ([], [])


def test_an_end_that_no_journal_takes_is_told_all_the_same(pump: Pump) -> None:
    pump.journal.fails_at = "outcome"
    assert pump.perform().ending is Ending.CONFIRMED


def test_a_value_that_is_no_number_is_recorded_by_its_name(pump: Pump) -> None:
    pump.gate.says = ["no number"]
    pump.perform(Command("pump.speed", float("inf"), "Hz"))
    assert pump.journal.of("intent")[0]["value"] == "inf"


async def test_a_command_that_is_given_up_ends_in_a_record_that_says_so() -> None:
    pump = Pump()
    task = asyncio.create_task(pump.writer.perform(SET))
    await asyncio.sleep(0.005)
    task.cancel()
    await asyncio.wait((task,))
    assert (await pump.writer.perform(SET)).ending is Ending.CONFIRMED
    assert pump.journal.of("outcome")[0] == {
        "intent": 1,
        "ending": "unknown",
        "read_back": None,
        "detail": "given up before its end was known",
    }


def test_what_is_refused_sends_nothing_and_says_why(pump: Pump) -> None:
    pump.gate.says = ["too fast"]
    assert pump.perform() == Outcome(SET, Ending.REFUSED, None, "too fast")
    assert pump.port.sent == []


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (Command("pump.depth", 1.0, ""), "pump (toy) has no channel 'depth'; it has speed, blind"),
        (Command("valve.open", 1.0, ""), "no instrument 'valve'; this line has pump"),
        (Command("pump.speed", 13.0, "Hz"), "13 does not fit"),
    ],
)
def test_what_the_driver_cannot_send_is_refused_with_the_reason(command: Command, why: str) -> None:
    pump = Pump()
    outcome = pump.perform(command)
    assert (outcome.ending, outcome.read_back) == (Ending.REFUSED, None)
    assert outcome.detail.startswith(why)
    assert pump.port.sent == []


def test_each_frame_is_judged_by_itself_and_one_that_is_refused_leaves_the_rest_unknown() -> None:
    pump = Pump()
    pump.driver.twice.add("speed")
    pump.gate.says = ["", "", "the lid is open"]
    assert pump.perform() == Outcome(SET, Ending.UNKNOWN, None, "the lid is open")
    assert pump.port.written == [WRITTEN]
    pump = Pump()
    pump.driver.twice.add("speed")
    pump.gate.says = ["", "the lid is open"]
    assert pump.perform() == Outcome(SET, Ending.REFUSED, None, "the lid is open")
    assert pump.port.written == []


async def test_a_second_command_that_is_refused_at_its_first_frame_is_refused() -> None:
    pump = Pump()
    await pump.writer.perform(SET)
    pump.gate.says = ["", "the lid is open"]
    assert (await pump.writer.perform(SET)).ending is Ending.REFUSED


def test_all_frames_of_a_command_are_sent_before_it_is_read_back(pump: Pump) -> None:
    pump.driver.twice.add("speed")
    assert pump.perform().ending is Ending.CONFIRMED
    assert [words for words, _ in pump.port.sent] == [WRITTEN, "pump.speed!", "pump.rpm?"]
    assert pump.gate.kinds().count("begin") == 2


def test_a_port_that_has_to_settle_is_waited_for_before_it_is_judged(pump: Pump) -> None:
    pump.driver.twice.add("speed")

    def frame(words: str) -> None:
        pump.frame(words)
        if words == WRITTEN:
            pump.port.busy.add("pump")

    pump.port.on_frame = frame
    assert pump.perform().ending is Ending.CONFIRMED


# ---- what was heard, and what is read


def test_an_instrument_that_refuses_and_shows_the_value_has_it(pump: Pump) -> None:
    pump.port.says[WRITTEN] = "no"
    outcome = pump.perform()
    assert outcome == Outcome(SET, Ending.CONFIRMED, 5.0, "speed: it refused")


def test_an_instrument_that_refuses_and_shows_another_has_failed_at_once() -> None:
    pump = Pump(settle_s=5.0)
    pump.shows = lambda value: 3.0
    pump.port.says[WRITTEN] = "no"
    outcome = pump.perform()
    assert outcome.ending is Ending.FAILED
    assert outcome.detail == "speed: it refused; pump.rpm reads 3 Hz, asked 5"
    assert pump.port.asked("pump.rpm?") == 1
    assert "conclude" not in pump.gate.kinds()


@pytest.mark.parametrize(
    ("answer", "doubt"),
    [
        (None, "no proof that it arrived (no reply)"),
        ("what", "no proof that it arrived (speed: no reply of mine)"),
    ],
)
def test_a_frame_without_an_answer_is_believed_by_what_is_read(
    pump: Pump, answer: str | None, doubt: str
) -> None:
    pump.port.says[WRITTEN] = answer
    assert pump.perform() == Outcome(SET, Ending.CONFIRMED, 5.0, doubt)
    pump = Pump()
    pump.port.says[WRITTEN] = answer
    pump.shows = lambda value: 0.0
    outcome = pump.perform()
    assert outcome.ending is Ending.MISMATCH
    assert outcome.detail == f"{doubt}; pump.rpm reads 0 Hz, asked 5"


@pytest.mark.parametrize(
    ("answer", "ending", "detail"),
    [
        ("no", Ending.FAILED, "speed: it refused"),
        (None, Ending.UNKNOWN, "no proof that it arrived (no reply)"),
    ],
)
def test_where_one_of_two_frames_went_wrong_no_reading_shows_both(
    pump: Pump, answer: str | None, ending: Ending, detail: str
) -> None:
    pump.driver.twice.add("speed")
    pump.port.says["pump.speed!"] = answer
    assert pump.perform() == Outcome(SET, ending, None, detail)
    assert pump.port.asked("pump.rpm?") == 0
    assert "conclude" not in pump.gate.kinds()


BLIND = Command("pump.blind", 1.0, "")


@pytest.mark.parametrize(
    ("answer", "ending", "detail"),
    [
        ("", Ending.UNCONFIRMED, "nothing can show it"),
        ("no", Ending.FAILED, "blind: it refused"),
        (None, Ending.UNKNOWN, "no proof that it arrived (no reply)"),
    ],
)
def test_what_nothing_can_show_is_not_confirmed(
    pump: Pump, answer: str | None, ending: Ending, detail: str
) -> None:
    pump.port.says["pump.blind=1"] = answer
    assert pump.perform(BLIND) == Outcome(BLIND, ending, None, detail)
    assert ("conclude" in pump.gate.kinds()) is (ending is Ending.UNCONFIRMED)


@pytest.mark.parametrize(
    ("found", "value", "ending"),
    [
        (5.5, 5.0, Ending.CONFIRMED),
        (4.5, 5.0, Ending.CONFIRMED),
        (5.6, 5.0, Ending.MISMATCH),
        (4.4, 5.0, Ending.MISMATCH),
        (0.0, 0.25, Ending.MISMATCH),  # within a step, but 0 may well mean off
        (0.25, 0.0, Ending.CONFIRMED),
        (0.0, 0.0, Ending.CONFIRMED),
    ],
)
def test_a_reading_agrees_within_a_step_and_no_zero_with_what_is_on(
    pump: Pump, found: float, value: float, ending: Ending
) -> None:
    pump.shows = lambda _: found
    outcome = pump.perform(Command("pump.speed", value, "Hz"))
    assert (outcome.ending, outcome.read_back) == (ending, found)


@pytest.mark.parametrize(("settles_s", "ending"), [(0.9, "confirmed"), (1.5, "mismatch")])
def test_a_value_that_settles_is_looked_at_until_its_time_is_over(
    settles_s: float, ending: str
) -> None:
    pump = Pump(settle_s=1.0)
    pump.shows = lambda value: 1.0
    pump.loop.call_later(settles_s, pump.port.holds.__setitem__, "pump.rpm", 5.0)
    outcome = pump.perform()
    assert outcome.ending == ending
    assert outcome.detail == ("" if ending == "confirmed" else "pump.rpm reads 1 Hz, asked 5")
    assert pump.port.asked("pump.rpm?") == 5
    assert pump.loop.time() == pytest.approx(1.06, abs=0.03)


def test_a_value_that_cannot_be_read_back_is_not_known(pump: Pump) -> None:
    pump.port.says["pump.rpm?"] = None
    assert pump.perform() == Outcome(SET, Ending.UNKNOWN, None, "pump.rpm: no reply")
    pump = Pump()
    pump.port.says.update({"pump.rpm?": None, WRITTEN: None})
    detail = "no proof that it arrived (no reply); pump.rpm: no reply"
    assert pump.perform() == Outcome(SET, Ending.UNKNOWN, None, detail)


# ---- one at a time


async def test_commands_go_one_after_the_other_each_read_back_before_the_next() -> None:
    pump = Pump()
    await asyncio.gather(*(pump.writer.perform(SET) for _ in range(2)))
    assert [words for words, _ in pump.port.sent] == [WRITTEN, "pump.rpm?"] * 2


async def test_so_many_commands_wait_and_one_more_is_refused_until_one_has_ended() -> None:
    pump = Pump()
    for _ in range(2):
        waiting = [asyncio.create_task(pump.writer.perform(SET)) for _ in range(64)]
        await asyncio.sleep(0)
        over = await pump.writer.perform(SET)
        assert over.ending is Ending.REFUSED
        assert over.detail == "pump.speed: 64 commands wait for this line already"
        ended = await asyncio.gather(*waiting)
        assert all(each.ending is Ending.CONFIRMED for each in ended)
    assert WAITING_MAX == 64
    assert len(pump.journal.of("intent")) == 128


async def test_whoever_asks_for_a_moment_between_commands_has_it_after_the_one_on_its_way() -> None:
    pump = Pump()
    first = asyncio.create_task(pump.writer.perform(SET))
    await asyncio.sleep(0)
    assert await pump.writer.between(lambda: len(pump.journal.of("outcome"))) == 1
    assert first.done()
    second = asyncio.create_task(pump.writer.perform(SET))
    await asyncio.sleep(0)
    await pump.writer.idle()
    assert second.done()


# ---- whether it does anything


@pytest.mark.parametrize(
    ("polled", "read", "value", "warning"),
    [
        (1.0, 0.0, 1.0, ""),
        (0.0, 0.0, 1.0, "it is in local, so nothing heats"),
        (0.0, 1.0, 1.0, ""),
        (float("nan"), 0.0, 1.0, "it is in local, so nothing heats"),
        (0.0, None, 1.0, ""),
        (0.0, 0.0, 0.0, ""),
    ],
)
def test_a_value_that_is_confirmed_and_does_nothing_is_warned_of(
    pump: Pump, polled: float, read: float | None, value: float, warning: str
) -> None:
    pump.gate.readings["pump.mode"] = polled
    pump.port.says["pump.mode?"] = None if read is None else f"{read}"
    outcome = pump.perform(Command("pump.local", value, ""))
    assert (outcome.ending, outcome.warning) == (Ending.CONFIRMED, warning)
    kept = pump.journal.of("outcome")[0].get("warning", "")
    assert kept == warning


def test_a_value_without_a_condition_has_no_effect_behind_a_relay_that_is_off() -> None:
    relay, nothing = (
        Contact(channel="pump.relay", source="t", off=0.0),
        Contact(channel="x.y", source="t"),
    )
    for found, warning in ((0.0, "pump.relay is off (0), so no current flows"), (1.0, "")):
        pump = Pump()
        instrument = toy("pump", pump.driver, fed_by=(nothing, relay))
        pump.instruments["pump"] = instrument
        pump.port.holds["pump.relay"] = found
        assert pump.perform().warning == warning


def test_a_value_that_was_not_confirmed_is_not_said_to_do_nothing(pump: Pump) -> None:
    pump.port.says["pump.local?"] = "3"
    outcome = pump.perform(Command("pump.local", 1.0, ""))
    assert (outcome.ending, outcome.warning) == (Ending.MISMATCH, "")


# ---- a person opens it


def opened(pump: Pump) -> Command:
    return pump.play(pump.writer.open_by_hand("open_lid"))


def test_an_opening_is_judged_recorded_and_counts_from_then_on(pump: Pump) -> None:
    command = opened(pump)
    assert command == Command("operator.open_lid", 0.0, "")
    assert pump.journal.records == [("opening", {"action": "open_lid", "refused": ""})]
    assert pump.gate.told == [("judge", command), ("judge", command), ("begin", command)]


@pytest.mark.parametrize("says", [["hot"], ["", "hot"]])
def test_an_opening_that_is_refused_before_or_while_it_is_recorded_is_none(says: list[str]) -> None:
    pump = Pump()
    pump.gate.says = [*says, "hot"][: 2 if says[0] else 3]
    with pytest.raises(NotOpened, match="hot"):
        opened(pump)
    assert pump.journal.records == [("opening", {"action": "open_lid", "refused": says[0]})]
    assert "begin" not in pump.gate.kinds()


async def test_nobody_opens_while_a_command_is_on_its_way() -> None:
    pump = Pump()
    await asyncio.gather(pump.writer.perform(SET), pump.writer.open_by_hand("open_lid"))
    assert [kind for kind, _ in pump.journal.records] == ["intent", "outcome", "opening"]
