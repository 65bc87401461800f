"""The small parts of a line by themselves: what is bound, found, read, prepared and compiled."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kernel_line import ENVELOPE, parts, running, see
from labharness.core.vocabulary import (
    Command,
    Ending,
    Nothing,
    Outcome,
    Request,
)
from labharness.core.vocabulary.texts import Text
from labharness.instruments.driver import Identity
from labharness.journal.null_journal import NullJournal
from labharness.line.exchanges import NoReply
from labharness.line.gate import Gate
from labharness.line.hindrances import Room, may_not_energise
from labharness.line.instrument import (
    Instrument,
    bind,
    channel_of,
    prepare_commands,
    query_of,
    read_frames,
)
from labharness.line.preparing import FULL_POLL_S_MAX, Reconnecting
from labharness.line.procedures import StepState, Verification, compile_procedures
from labharness.line.trip_response import Hold, HoldTooLong, latch_lost
from labharness.safety.kernel import (
    Bound,
    Envelope,
    EnvelopeInvalid,
    Memory,
    Procedure,
    Step,
    Watch,
)
from line_alone import Scene, Toy, asks, shown, toy


class Streams(NullJournal):
    """A journal that numbers its streams."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def stream(self, name: str, columns: Sequence[str]) -> int:
        """Number it."""
        self.names.append(name)
        return len(self.names) - 1


def oven(**more: Any) -> Instrument:
    """An oven with two channels of its own and one that is only measured."""
    channels = {"setpoint": shown("setpoint", unit="degC"), "off": shown("off")}
    return toy("oven", Toy(channels, ("temperature",), on_demand=("off",)), **more)


# ---- what is bound and found


@pytest.mark.parametrize(
    ("polls", "tick_s", "ticks"),
    [
        (None, 1.0, [1, 0, 1]),
        ({"setpoint": 5.0, "off": 2.0, "temperature": None}, 1.0, [5, 2, 0]),
        ({"setpoint": 0.2}, 1.0, [1, 0, 1]),
        ({"setpoint": 10.0}, 4.0, [2, 0, 1]),
    ],
)
def test_a_scan_is_polled_by_its_period_in_ticks_and_at_least_each_tick(
    polls: dict[str, float | None] | None, tick_s: float, ticks: list[int]
) -> None:
    memory = running()
    bound = bind(oven(polls=polls), memory, Streams(), tick_s)
    assert [each.ticks for each in bound] == ticks
    assert [each.channels for each in bound] == [
        ("oven.setpoint",),
        ("oven.off",),
        ("oven.temperature",),
    ]
    assert [each.stream for each in bound] == [0, 1, 2]
    assert bound[0].tracks == (memory.track("oven.setpoint"),)
    assert (bound[0].instrument, bound[0].port) == ("oven", "oven")


def test_the_frames_that_read_are_scans_queries_and_who_it_is_of_all_on_a_port() -> None:
    found = read_frames((oven(port="heat"), toy("box", Toy({"on": shown("on")}), port="heat")))
    assert found == {
        "heat": {
            *(f"oven.{name}?".encode() for name in ("setpoint", "off", "temperature")),
            b"box.on?",
            *(
                f"{name} {asked}".encode()
                for name in ("oven", "box")
                for asked in ("good?", "who?")
            ),
        }
    }


def test_what_is_prepared_is_in_the_unit_of_the_envelope() -> None:
    instrument = oven(prepare=(("setpoint", 30.0), ("off", 1.0), ("temperature", 2.0)))
    assert prepare_commands(instrument, ENVELOPE) == (
        Command("oven.setpoint", 30.0, "degC"),
        Command("oven.off", 1.0, ""),
        Command("oven.temperature", 2.0, ""),
    )


def test_a_channel_is_found_by_its_full_name_and_what_is_not_there_is_said() -> None:
    instruments = {"oven": oven(), "box": toy("box", Toy({"on": shown("on")}))}
    instrument, channel, spec = channel_of(instruments, "oven.off")
    assert (instrument, channel, spec) == (
        instruments["oven"],
        "off",
        instruments["oven"].driver.channels["off"],
    )
    with pytest.raises(LookupError, match="no instrument 'pump'; this line has oven, box"):
        channel_of(instruments, "pump.on")
    with pytest.raises(
        LookupError, match=r"oven \(toy\) has no channel 'on'; it has setpoint, off"
    ):
        channel_of(instruments, "oven.on")


def test_a_query_is_found_by_its_name_and_every_instrument_says_who_it_is() -> None:
    instrument = oven()
    assert query_of(instrument, "identity").request.frame == b"oven who?"
    assert query_of(instrument, "good").request.frame == b"oven good?"
    with pytest.raises(LookupError, match=r"oven \(toy\) has no query 'bad'"):
        query_of(instrument, "bad")


# ---- reading


@pytest.mark.promise(76)
def test_a_channel_is_read_with_a_second_try_and_what_is_no_reply_is_said() -> None:
    scene = Scene(oven())
    scene.port.says["oven.setpoint?"] = [None, "20", "30"]
    assert scene.play(scene.reader.read("oven.setpoint")) == 30.0, "20 may be the late answer"
    assert scene.taken == [("oven.setpoint", (30.0,))]
    scene = Scene(oven())
    scene.port.says["oven.setpoint?"] = ["x", "40", "y", "30"]
    with pytest.raises(NoReply, match=r"oven\.setpoint: b'y' is not a number"):
        scene.play(scene.reader.read("oven.setpoint"))
    assert scene.port.asked("oven.setpoint?") == 3
    assert scene.port.doubted == ["oven", "oven"]


def test_what_is_in_no_scan_or_not_there_cannot_be_read() -> None:
    scene = Scene(oven())
    cast("Toy", scene.instruments["oven"].driver).channels["hidden"] = shown(None)  # type: ignore[index]  # a dict
    with pytest.raises(LookupError, match=r"oven\.hidden is in no scan, so it cannot be read"):
        scene.play(scene.reader.read("oven.hidden"))
    scene = Scene(oven())
    with pytest.raises(LookupError, match="no instrument 'pump'"):
        scene.play(scene.reader.read("pump.on"))


def test_channels_are_read_side_by_side_and_who_is_late_or_silent_is_left_out() -> None:
    box = toy("box", Toy({"on": shown("on"), "off": shown("off")}))
    scene = Scene(oven(), box)
    scene.port.holds.update({"oven.setpoint": 30.0, "box.on": 1.0})
    scene.port.says["oven.off?"] = None
    names = ("oven.setpoint", "oven.off", "box.on", "oven.setpoint")
    found = scene.play(scene.reader.read_all(names, 1.0))
    assert found == {"oven.setpoint": 30.0, "box.on": 1.0}
    assert scene.port.asked("oven.setpoint?") == 1, "each scan once"
    assert scene.loop.time() < 0.05
    assert scene.noted == []
    scene = Scene(oven(), box)
    assert scene.play(scene.reader.read_all(("oven.setpoint", "oven.off"), 0.015)) == {
        "oven.setpoint": 0.0
    }
    assert scene.loop.time() == pytest.approx(0.015)
    scene = Scene(oven())
    assert scene.play(scene.reader.read_all((), 1.0)) == {}


def test_a_look_that_breaks_is_recorded_and_left_out() -> None:
    scene = Scene(oven())

    def broken(*args: object) -> str:
        raise RuntimeError("broken")

    scene.reader.take = broken
    assert scene.play(scene.reader.read_all(("oven.setpoint",), 1.0)) == {}
    assert scene.noted == [("look_failed", {"scan": "setpoint", "error": "RuntimeError('broken')"})]


def test_only_what_is_polled_counts_as_polled() -> None:
    assert Scene(oven()).reader.polled == ("oven.setpoint", "oven.temperature")


def test_a_query_is_asked_a_second_time_and_what_is_no_reply_is_said() -> None:
    scene = Scene(oven())
    scene.port.says["oven good?"] = [None, "no", "yes"]
    assert scene.play(scene.reader.query("oven", "good")) == "yes"
    assert scene.port.asked("oven good?") == 3
    scene = Scene(oven())
    scene.port.says["oven good?"] = None
    with pytest.raises(NoReply, match=r"oven \(toy\): no reply"):
        scene.play(scene.reader.query("oven", "good"))
    assert scene.port.asked("oven good?") == 2
    scene = Scene(oven())
    assert scene.play(scene.reader.query("oven", "identity")) == Identity("toy", "1.0")


# ---- preparing


def prepared(
    answered: dict[str, float], ending: Ending = Ending.CONFIRMED
) -> tuple[str, list[str], Memory]:
    """Prepare an oven whose temperature is watched."""
    rows = parts()
    rows["watches"]["oven.temperature"] = Watch(
        channel="oven.temperature", stale_s=5.0, procedure=""
    )
    memory, done = Memory(Envelope(**rows)), []

    async def perform(command: Command) -> Outcome:
        done.append(command.channel)
        return Outcome(command, ending, None, "said")

    async def read_all(channels: Any, within_s: float) -> dict[str, float]:
        done.append(f"{len(channels)} within {within_s:g} s")
        for channel, value in answered.items():
            memory.track(channel).value = value
        return answered

    instruments = {"oven": oven(prepare=(("setpoint", 30.0), ("off", 1.0)))}
    unused: Any = None
    line = Reconnecting(
        gate=Gate(memory, instruments, lambda: 0.0),
        identify=unused,
        carry_out=unused,
        note=unused,
        trip=unused,
        events=unused,
    )
    polled = ("oven.setpoint", "oven.temperature", "oven.unwatched")
    said = asyncio.run(line.prepare(perform, polled, read_all))
    return said, done, memory


def test_a_line_is_prepared_in_order_and_read_once_after_it() -> None:
    said, done, memory = prepared({"oven.setpoint": 30.0, "oven.temperature": 25.0})
    assert said == ""
    assert done == ["oven.setpoint", "oven.off", "3 within 5 s"]
    assert FULL_POLL_S_MAX == 5.0
    assert memory.track("oven.setpoint").told == 30.0, "what is read counts as what is set"


def test_what_is_watched_and_not_read_or_not_set_keeps_a_line_from_being_armed() -> None:
    said, _, _ = prepared({"oven.setpoint": 30.0})
    assert said == "not read within 5 s of prepare: oven.temperature"
    said, done, _ = prepared({}, Ending.MISMATCH)
    assert (said, done) == ("prepare oven.setpoint = 30 mismatch: said", ["oven.setpoint"])


# ---- procedures as frames


STEPS = (
    Step(channel="oven.off", value=1.0, unit=""),
    Step(channel="oven.setpoint", value=20.0, unit="degC"),
)


class Obeys(Toy):
    """A toy that says what obedience is."""

    def write(self, channel: str, value: float) -> tuple[Request, ...]:
        """State it."""
        return tuple(replace(each, obeyed=b"ok") for each in super().write(channel, value))

    def shown(self, channel: str, value: float) -> Request | None:
        """Show it by a read."""
        return replace(asks(f"{channel}?"), obeyed=f"{value:g}".encode())


def compiled(*steps: Step, driver: Toy | None = None) -> Any:
    """Compile steps for an oven whose off takes two frames."""
    driver = driver or Obeys({"setpoint": shown("setpoint", unit="degC"), "off": shown("off")})
    driver.twice.add("off")
    rows = parts()
    rows["procedures"] = {
        "shutdown": Procedure(name="shutdown", steps=steps, wire_s_max=1.0, verify_s_max=1.0)
    }
    return compile_procedures(Envelope(**rows), {"oven": toy("oven", driver)})


def test_a_procedure_is_its_steps_frames_in_order_with_their_meaning() -> None:
    found = compiled(*STEPS)["shutdown"]
    assert [(each.step, each.port, each.request.frame) for each in found] == [
        (0, "oven", b"oven.off=1"),
        (0, "oven", b"oven.off!"),
        (1, "oven", b"oven.setpoint=20"),
    ]
    assert [(each.channel, each.value, each.unit) for each in found[1:]] == [
        ("oven.off", 1.0, ""),
        ("oven.setpoint", 20.0, "degC"),
    ]
    shows = [None if each.shown is None else each.shown.frame for each in found]
    assert shows == [None, b"off?", b"setpoint?"], "the last frame of a step shows it"


@pytest.mark.parametrize(
    ("step", "why"),
    [
        (Step(channel="furnace.setpoint", value=20.0, unit="degC"), "no instrument 'furnace'"),
        (Step(channel="oven.off", value=13.0, unit=""), "13 does not fit"),
        (Step(channel="oven.setpoint", value=1.0, unit="K"), "oven.setpoint is in 'degC', not 'K'"),
    ],
)
def test_a_step_that_cannot_be_sent_is_no_procedure(step: Step, why: str) -> None:
    with pytest.raises(EnvelopeInvalid, match=f"procedure 'shutdown': {why}"):
        compiled(step)


def test_a_driver_says_what_obedience_is_unless_it_takes_no_answer() -> None:
    silent = Toy({"off": shown("off")})
    with pytest.raises(EnvelopeInvalid, match="does not say which reply to b'oven"):
        compiled(STEPS[0], driver=silent)

    class Mute(Toy):
        """A toy that never answers."""

        def write(self, channel: str, value: float) -> tuple[Request, ...]:
            """Expect nothing."""
            return (Request(b"off", Nothing(), 1.0),)

    assert len(compiled(STEPS[0], driver=Mute({"off": shown("off")}))["shutdown"]) == 1


def test_a_verification_is_complete_with_every_step_and_nothing_against_it() -> None:
    good = ("a", 1.0, 1.0, StepState.VERIFIED)
    steps = (good, ("b", 0.0, None, StepState.UNKNOWN), ("c", 0.0, 2.5, StepState.MISMATCH))
    assert Verification("x", (good,), 1.0).complete
    assert not Verification("x", (good,), 1.0, ("it is hot",)).complete
    found = Verification("x", steps, 1.0, ("it is hot",))
    assert not found.complete
    assert found.unverified() == ("b = 0: unknown", "c = 0: mismatch (reads 2.5)", "it is hot")


# ---- the room, holds, links, latches


@pytest.mark.parametrize(
    ("ambient", "reads", "lid", "said"),
    [
        (None, 760.0, 0.0, "the pressure of the room is not known"),
        (760.0, 770.0, 0.0, ""),
        (760.0, 750.0, 0.0, ""),
        (760.0, 770.1, 0.0, "the room has 760 by the lab file (ambient_torr), and gauge.pressure"),
        (760.0, 749.9, 0.0, "the room has 760 by the lab file (ambient_torr), and gauge.pressure"),
        (760.0, 900.0, 1.0, ""),
    ],
)
def test_the_pressure_of_the_room_is_held_against_a_tube_that_is_open_to_it(
    ambient: float | None, reads: float, lid: float, said: str
) -> None:
    memory = running()
    see(memory, 0.0, gauge__pressure=reads, box__lid_shut=lid)
    during = (Bound("box.lid_shut", high=0.5),)
    room = Room(ambient=ambient, channel="gauge.pressure", during=during, differ_max=10.0)
    found = room.hindrance(memory, 1.0)
    assert found.startswith(said)
    assert bool(found) is bool(said)
    assert replace(room, ambient=760.0, channel="").hindrance(memory, 1.0) == ""
    assert replace(room, ambient=760.0, during=()).hindrance(memory, 100.0) == "", "it is stale"


def test_a_hold_is_timed_by_lab_time_and_ends_after_an_hour() -> None:
    now = [0.0]
    hold = Hold(lambda: now[0])
    hold.end()
    assert (hold.on, hold.total_s()) == (False, 0.0)
    now[0] = 10.0
    hold.begin()
    now[0] = 15.0
    assert (hold.on, hold.total_s()) == (True, 5.0)
    hold.end()
    now[0] = 20.0
    assert (hold.on, hold.total_s()) == (False, 5.0)
    hold.begin()
    now[0] = 3620.0
    hold.check()
    assert hold.total_s() == 3605.0
    now[0] = 3620.1
    with pytest.raises(HoldTooLong, match="held for 3600 s, the longest allowed"):
        hold.check()
    hold.end()
    hold.check()
    assert hold.said().startswith("held; unless it is resumed within 60 min, it ends")


@pytest.mark.parametrize(
    ("kind", "guarded", "alone", "attended"),
    [
        ("loopback", False, "", ""),
        ("serial", True, "", ""),
        ("tcp", True, "", ""),
        ("serial", False, "takes the guard process", "takes the guard process"),
        ("tcp", False, "takes the guard process", "takes the guard process"),
        ("visa", False, "only where a person attends", ""),
        ("websocket", False, "only where a person attends", ""),
        ("visa", True, "nothing says that it may", "nothing says that it may"),
        ("carrier pigeon", False, "nothing says that it may", "nothing says that it may"),
    ],
)
def test_a_link_energises_by_its_row_and_without_one_not_at_all(
    kind: str, guarded: bool, alone: str, attended: str
) -> None:
    link: Any = SimpleNamespace(kind=kind, guarded=guarded)
    for whether, said in ((False, alone), (True, attended)):
        found = may_not_energise(link, attended=whether)
        assert said in found
        assert bool(found) is bool(said)
    unknown: Any = SimpleNamespace(kind="loopback")
    assert may_not_energise(unknown, attended=False) == "", "this process holds what says nothing"


NOT_YET = Text("latch.not_yet", path="latch.json")


@pytest.mark.parametrize(
    ("speed", "saved_s", "waited_s", "said"),
    [
        (None, 3.0, 3.0, ""),
        (None, 99.0, 15.0, "the latch could not be saved: latch.json: not written yet"),
        (10.0, 999.0, 150.0, "the latch could not be saved: latch.json: not written yet"),
    ],
)
def test_a_latch_is_waited_for_so_long_in_real_time(
    speed: float | None, saved_s: float, waited_s: float, said: str
) -> None:
    scene = Scene()
    latch = SimpleNamespace(write_error=NOT_YET, saved=lambda: False)
    scene.loop.call_later(saved_s - 0.05, setattr, latch, "write_error", "")
    guard: Any = SimpleNamespace(latch=latch)
    clock: Any = SimpleNamespace(speed=speed)
    assert scene.play(latch_lost(guard, clock)) == said
    assert scene.loop.time() == pytest.approx(waited_s, abs=0.06)


def test_a_latch_that_is_saved_or_refused_is_not_waited_for() -> None:
    for error, saved, said in (
        (NOT_YET, True, "the latch could not be saved"),
        ("full", False, "the latch could not be saved: full"),
        ("", False, ""),
    ):
        scene = Scene()
        latch = SimpleNamespace(write_error=error, saved=lambda saved=saved: saved)
        clock: Any = SimpleNamespace(speed=None)
        found = scene.play(latch_lost(cast("Any", SimpleNamespace(latch=latch)), clock))
        assert found.startswith(said)
        assert scene.loop.time() == 0.0
