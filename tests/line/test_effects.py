"""Making safe is believed by what comes of it: no output, no flow, no light, nothing hotter."""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import labharness.faces.cli.owner as owner_asked
from alarmed import Watched, watching
from commands import edited_lab, say
from labharness.core.clock import Chance, Clock, VirtualLoop, run
from labharness.core.vocabulary import Command, Ending
from labharness.faces.testing.bench import Bench, VirtualTime
from labharness.faces.testing.faults import simulated_of
from labharness.instruments.driver import Cools
from labharness.journal.null_journal import NullJournal
from labharness.journal.reading import read
from labharness.lab import Lab, LabPlan, read_lab
from labharness.lab.config.lock import LineBusy
from labharness.lab.operate import idle_line
from labharness.line import NotArmed
from labharness.line.effects import Effects, Idle, idle_steps, warmer
from labharness.work.desk.by_hand import ByHand, Nobody
from procedures_failing import FURNACE, ON, SHUTDOWN, cause, is_off
from rig import SHORT_LINE, approved_copy

SHORT = read_lab(SHORT_LINE)
RELIEVE = "relieve_pressure"
KNOWN_S = 125.0  # lag and watch of the furnace, and the looks
STUCK = "furnace.temperature rises, from "


async def energise(watched: Watched) -> None:
    for command in ON:
        await watched.lab.line.perform(command)
    assert not is_off(watched.lab)


def plant_of(lab: Lab) -> Any:
    return simulated_of(lab).plant


class Leaks:
    """A valve that lets 4 sccm through, as its meter says."""

    now_s = 0.0

    def silent(self) -> bool:
        return False

    def heard(self, value: float) -> float:
        return 4.0


def contradicted(watched: Watched) -> list[str]:
    return [each for row in watched.journaled("verified") for each in row.get("contradicted", [])]


# ---- at the plant


@pytest.mark.promise(46)
async def test_a_furnace_that_goes_on_heating_though_every_step_is_verified_is_told_and_alarmed(
    watched: Watched,
) -> None:
    told: list[str] = []
    await energise(watched)
    line, plant = watched.lab.line, plant_of(watched.lab)
    line.events.on_warning = told.append
    plant.parts["relays"].stick(FURNACE)  # its contact is welded; the coil lets go
    plant.faults.add_furnace_c_per_s = 1.0  # and the output stage is broken through
    line.trip_response.trip(cause(watched.lab, SHUTDOWN))
    await line.trip_response.verified()
    assert line.trip_response.verifications[-1].complete, "every value is as it should be"
    assert line.trip_response.verifications[-1].within_s < 10.0, "and so in the procedure's time"
    assert not line.trip_response.cooling_known
    assert plant.parts["furnace"].heating, "and at the plant it heats"
    await asyncio.sleep(KNOWN_S)
    last = line.trip_response.verifications[-1]
    assert not last.complete
    assert last.contradicted[0].startswith(STUCK)
    assert last.unverified() == last.contradicted
    assert line.trip_response.cooling_known
    answer = await ByHand(line, Nobody()).answer({"do": "cooling"})
    assert answer == {"ok": True, "known": True, "contradicted": list(last.contradicted)}
    await watched.close()
    (text,) = contradicted(watched)
    assert text.startswith(STUCK)
    assert "a contact or an output stage may be stuck" in text
    assert f"{SHUTDOWN}: {text}" in told
    alarms = [
        each for each in watched.journaled("alarm") if each["alarm"] == f"not_verified/{SHUTDOWN}"
    ]
    assert alarms, "somebody is called"
    assert STUCK in str(alarms)


async def test_nothing_is_told_of_a_line_that_does_cool(watched: Watched) -> None:
    await energise(watched)
    line, plant = watched.lab.line, plant_of(watched.lab)
    plant.faults.add_furnace_c_per_s = 2.0
    await asyncio.sleep(150.0)
    assert plant.parts["furnace"].temperature_c > 150
    line.trip_response.trip(cause(watched.lab, SHUTDOWN))
    await line.trip_response.verified()
    last = line.trip_response.verifications[-1]
    assert "furnace.temperature" in await line.trip_response.hot(last.procedure)
    await asyncio.sleep(KNOWN_S)
    assert line.trip_response.cooling_known
    assert [
        each.unverified() for each in line.trip_response.verifications if not each.complete
    ] == []
    await watched.close()
    assert contradicted(watched) == []


@pytest.mark.promise(46)
async def test_a_flow_though_its_setpoint_is_0_and_its_valve_shut_is_told(watched: Watched) -> None:
    line = watched.lab.line
    plant_of(watched.lab).faults.lie("argon", "stuck", 0.0, random.Random(1))
    await asyncio.sleep(3.0)  # at what flows now
    line.trip_response.trip(cause(watched.lab, RELIEVE))
    await line.trip_response.verified()
    (first, last) = line.trip_response.verifications
    assert first.complete
    assert not last.complete
    assert last.within_s < 10.0, "a flow shows within seconds"
    await watched.close()
    (text,) = contradicted(watched)
    assert text.startswith("argon.flow reads ")
    assert text.endswith(
        "sccm, though argon.setpoint = 0, box.argon_valve = 0 are verified: it may still be flowing"
    )


@pytest.mark.promise(46)
def test_a_line_whose_heat_gas_or_light_is_not_off_is_not_armed(
    short_plan: LabPlan, tmp_path: Path
) -> None:
    async def scene() -> None:
        lab = Lab(short_plan, clock=Clock(loop), chance=Chance(1), journal=NullJournal())
        await lab.line.open()
        plant_of(lab).faults.sensors["hydrogen"] = Leaks()
        with pytest.raises(NotArmed, match=r"the safe table does not hold: hydrogen\.flow reads 4"):
            await lab.line.arm(SHUTDOWN)
        await lab.line.close()

    loop = VirtualLoop()
    run(scene(), loop)


@pytest.mark.promise(46)
async def test_what_is_heated_after_a_start_contradicts_nothing(watched: Watched) -> None:
    await energise(watched)
    plant_of(watched.lab).faults.add_furnace_c_per_s = 1.0  # heats as a command would
    await asyncio.sleep(KNOWN_S)
    assert plant_of(watched.lab).parts["furnace"].temperature_c > 100
    await watched.close()
    assert contradicted(watched) == []


@pytest.mark.promise(46)
async def test_a_shutdown_that_only_sets_a_setpoint_is_not_believed(
    short_plan: LabPlan, tmp_path: Path
) -> None:
    """As safe did of such an envelope: every step verified, and the furnace heated on for days."""
    envelope = short_plan.envelope
    steps = tuple(
        each
        for each in envelope.procedures[SHUTDOWN].steps
        if each.channel not in ("box.furnace_contactor", "furnace.mode", "furnace.output")
    )
    shutdown = replace(envelope.procedures[SHUTDOWN], steps=steps)
    slow = replace(envelope, procedures={**envelope.procedures, SHUTDOWN: shutdown})
    plan = replace(short_plan, envelope=slow)
    async with watching(plan, tmp_path) as watched:
        line = watched.lab.line
        for channel, value, unit in (
            ("furnace.setpoint_rate", 60.0, "degC/min"),
            ("box.furnace_contactor", 1.0, ""),
            ("furnace.setpoint", 60.0, "degC"),
        ):
            outcome = await line.perform(Command(channel, value, unit))
            assert outcome.ending is Ending.CONFIRMED, outcome
        await asyncio.sleep(100.0)
        await line.perform(Command("furnace.setpoint_rate", 0.1, "degC/min"))
        line.trip_response.trip(cause(watched.lab, SHUTDOWN))
        await line.trip_response.verified()
        first, last = line.trip_response.verifications
        assert first.complete
        assert plant_of(watched.lab).parts["furnace"].heating, "at the plant it heats"
        assert not last.complete
    (text,) = contradicted(watched)
    assert text.startswith("furnace.working_output reads ")
    assert "though every step is verified, and none switches it off" in text


async def test_safe_says_what_contradicts_it_beside_its_steps(
    short_plan: LabPlan, tmp_path: Path
) -> None:
    found: list[dict[str, Any]] = []
    async with watching(short_plan, tmp_path) as watched:
        plant_of(watched.lab).faults.sensors["hydrogen"] = Leaks()
        asked = {"do": "safe", "by": "Ada", "reason": "test"}
        found.append(await ByHand(watched.lab.line, Nobody()).answer(asked))
    (answer,) = found
    assert answer["ok"], answer
    (text,) = answer["unverified"]
    assert text.startswith("hydrogen.flow reads ")
    assert "though hydrogen.setpoint = 0, box.hydrogen_valve = 0 are verified" in text


# ---- each kind of instrument, by what it reads


def seen(
    plan: LabPlan, procedure: str, readings: dict[str, float | None], *, what: str = "dark"
) -> tuple[str, ...]:
    """What is told of a procedure when channels read so; others read 0, ``None`` is silence."""

    async def read(channels: Sequence[str], within_s: float) -> dict[str, float]:
        values = {channel: readings.get(channel, 0.0) for channel in channels}
        return {channel: value for channel, value in values.items() if value is not None}

    loop = VirtualLoop()
    effects = Effects(plan.by_name, read, loop.time)
    steps = plan.envelope.procedures[procedure].steps
    return run(getattr(effects, what)(steps), loop)


def bare(plan: LabPlan) -> LabPlan:
    """The line without relays before its instruments."""
    return replace(plan, instruments=tuple(replace(each, fed_by=()) for each in plan.instruments))


@pytest.mark.parametrize("procedure", sorted(SHORT.envelope.procedures))
def test_a_line_that_reads_dark_has_nothing_said_of_it(procedure: str) -> None:
    assert seen(SHORT, procedure, {}) == ()
    assert seen(SHORT, procedure, {}, what="cooling") == ()


def test_an_output_counts_where_no_relay_before_it_is_off() -> None:
    readings: dict[str, float | None] = {"furnace.working_output": 22.2}
    assert seen(SHORT, SHUTDOWN, readings) == (), "its contactor is off"
    (said,) = seen(bare(SHORT), SHUTDOWN, readings)
    assert said == (
        "furnace.working_output reads 22.2 %, though furnace.mode = 1, furnace.output = 0 are "
        "verified: it may still be heating"
    )


@pytest.mark.promise(46)
def test_light_counts_and_so_does_silence() -> None:
    (said,) = seen(SHORT, SHUTDOWN, {"laser.output_power": 0.002})
    assert said == (
        "laser.output_power reads 0.002 W, though laser.emission = 0 is verified: "
        "it may still be shining"
    )
    (said,) = seen(SHORT, SHUTDOWN, {"laser.output_power": None})
    assert said == "laser.output_power was not read: whether laser is still shining is not known"
    assert seen(SHORT, SHUTDOWN, {"laser.output_power": 0.0004}) == (), "its noise"


def test_argon_that_is_to_flow_is_not_looked_for() -> None:
    assert seen(SHORT, SHUTDOWN, {"argon.flow": 100.0}) == ()
    assert len(seen(SHORT, RELIEVE, {"argon.flow": 100.0})) == 1


ROW = Cools(channel="temperature", lag_s=60.0, over_s=60.0, rise_max=2.0, above=60.0, unit="degC")
NAN = float("nan")


def test_a_rise_counts_beyond_its_noise_and_where_it_is_hot() -> None:
    assert warmer("f", ROW, 400.0, 402.0) == ""
    assert warmer("f", ROW, 400.0, 402.1).startswith("f rises, from 400 to 402 degC in 60 s")
    assert warmer("f", ROW, 20.0, 60.0) == "", "it may be touched"
    assert warmer("f", ROW, 20.0, 60.1) != ""
    for before, after in ((NAN, 400.0), (400.0, NAN)):
        assert warmer("f", ROW, before, after) == (
            "f was not read: whether it still rises is not known"
        )
        assert warmer("f", ROW, before, after, hot=False) == ""


def test_the_boat_beside_a_hot_furnace_may_creep_up_as_the_line_says(tmp_path: Path) -> None:
    rows = {f"{each.name}.{row.channel}": row for each in SHORT.instruments for row in each.cools}
    assert rows["sulfur.temperature"].above == 100.0
    assert rows["furnace.temperature"].above == 60.0
    with pytest.raises(ValueError, match="no heat is shown by it; there are furnace"):
        approved_copy(
            tmp_path,
            edit=lambda text: text.replace('ng]]\nchannel = "sulfur.t', 'ng]]\nchannel = "x.t'),
        )


# ---- the terminal that asked for it


ANSWER = {
    "ok": True,
    "procedure": SHUTDOWN,
    "unverified": [],
    "unopened": [],
    "latched": False,
    "ended": False,
    "hot": ["furnace.temperature"],
}


@pytest.mark.promise(46)
@pytest.mark.parametrize(
    ("values", "code", "words"),
    [
        ([400.0, 380.0], 0, ""),
        ([400.0, 420.0], 1, "  furnace.temperature rises, from 400 to 420 degC"),
        ([400.0, None], 1, "  furnace.temperature was not read"),
    ],
)
def test_safe_waits_to_see_that_nothing_rises_and_says_so_with_its_exit_code(
    monkeypatch: pytest.MonkeyPatch, values: list[float | None], code: int, words: str
) -> None:
    measured = iter(values)
    waited: list[float] = []

    def read_now(plan: LabPlan, names: Sequence[str]) -> list[dict[str, Any]]:
        assert list(names) == ["furnace.temperature"]
        value = next(measured)
        if value is None:
            raise LineBusy("another process has it", None)
        return [{"ok": True, "value": value, "unit": "degC"}]

    monkeypatch.setattr(idle_line, "make_safe", lambda plan, by, reason, tell: ANSWER)
    monkeypatch.setattr(idle_line, "read_now", read_now)
    monkeypatch.setattr(owner_asked, "pause", waited.append)
    monkeypatch.setattr(LabPlan, "real_ports", ("heat",))
    said = say("safe", "--lab", SHORT_LINE)
    assert said.code == code, said
    assert "every step verified" in said.out
    assert "is known in 120 s" in said.err
    assert words in said.out
    assert waited == [60.0, 60.0]


def test_who_drives_the_line_is_asked_until_it_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([False, False, True])

    class Reached:
        def __enter__(self) -> "Reached":
            return self

        def __exit__(self, *args: object) -> None:
            return None

        def ask(self, **asked: Any) -> dict[str, Any]:
            assert asked == {"do": "cooling"}
            return {"ok": True, "known": next(answers), "contradicted": ["it rises"]}

    waited: list[float] = []
    monkeypatch.setattr(owner_asked, "pause", waited.append)
    owner: Any = Reached
    found = owner_asked.still_rising(SHORT, ["furnace.temperature"], owner, lambda text: None)
    assert found == ["it rises"]
    assert waited == [owner_asked.ASK_S] * 2


# ---- A value that is confirmed and does nothing is said so, where it is set and in the journal.

FAST = ("--attend", "--speed", "fast", "--for", "20", "--name", "Ada")
WARM = Command("furnace.setpoint", 55.0, "degC")
SWEPT_S = 700.0  # five volumes of 0.2 L at 100 sccm take 600 s; then the argon may be shut
MAINS = Command("box.furnace_contactor", 1.0, "")


def warned(bench: Bench, time: VirtualTime, *commands: Command) -> str:
    """Carry out commands on a running line; return the last one's warning."""

    async def scene() -> str:
        async with bench.running() as lab:
            await asyncio.sleep(SWEPT_S)
            for command in commands:
                outcome = await lab.line.perform(command)
                assert outcome.ending is Ending.CONFIRMED, outcome
                await lab.line.next_tick()
            return outcome.warning

    return time.run(scene())


EVERY_DAY = ("without mains", "with mains", "a dark laser")
COMMANDS = {
    "without mains": (
        (WARM,),
        "box.furnace_contactor is off (0), so nothing heats",
    ),
    "with mains": ((MAINS, WARM), ""),
    "nothing asked for": ((Command("furnace.setpoint", 0.0, "degC"),), ""),
    "not what it heats by": ((Command("furnace.setpoint_rate", 5.0, "degC/min"),), ""),
    "in manual": (
        (Command("furnace.mode", 1.0, ""), WARM),
        "the controller is in manual and box.furnace_contactor is off (0), so nothing heats",
    ),
    "behind a shut valve": (
        (Command("box.argon_valve", 0.0, ""), Command("argon.setpoint", 50.0, "sccm")),
        "box.argon_valve is off (0), so nothing flows",
    ),
    "through an open valve": ((Command("argon.setpoint", 50.0, "sccm"),), ""),
    "no valve": ((Command("nitrogen.setpoint", 50.0, "sccm"),), ""),
    "a dark laser": (
        (Command("laser.power", 0.0005, "W"),),
        "emission is off, so nothing shines",
    ),
    "a lit laser": (
        (Command("laser.emission", 1.0, ""), Command("laser.power", 0.0005, "W")),
        "",
    ),
}


@pytest.mark.promise(41)
@pytest.mark.parametrize(
    ("commands", "warning"),
    [
        pytest.param(*each, id=name, marks=[pytest.mark.thorough] * (name not in EVERY_DAY))
        for name, each in COMMANDS.items()
    ],
)
def test_a_value_without_effect_is_warned_of(
    simulated_lab: Bench,
    virtual_time: VirtualTime,
    commands: tuple[Command, ...],
    warning: str,
) -> None:
    assert warned(simulated_lab, virtual_time, *commands) == warning


def said_of_furnace(polled_manual: float, manual: float) -> str:
    """What is said of a setpoint of the furnace, whose mains are on, by its last poll and now."""
    polled = {"furnace.manual": polled_manual, "box.furnace_contactor": 1.0}
    now = polled | {"furnace.manual": manual}

    async def read(channel: str) -> float:
        return now[channel]

    furnace = read_lab(SHORT_LINE).by_name["furnace"]
    return run(Idle(polled.__getitem__, read).why(furnace, "setpoint", 55.0), VirtualLoop())


@pytest.mark.promise(41)
def test_a_controller_that_was_put_to_manual_at_its_keys_is_seen() -> None:
    assert said_of_furnace(1.0, 1.0) == "the controller is in manual, so nothing heats"
    assert said_of_furnace(0.0, 0.0) == ""


def test_what_the_last_poll_says_is_measured_again_before_it_is_said() -> None:
    assert said_of_furnace(1.0, 0.0) == "", "it was put to automatic since"


@pytest.mark.promise(41)
def test_set_says_it_and_the_journal_keeps_it(tmp_path: Path) -> None:
    lab = edited_lab(tmp_path, 'part = "furnace"\nprepare = [["mode", 0]]', 'part = "furnace"')
    said = say("set", "furnace.setpoint", 55, "degC", "--lab", lab, *FAST, "--out", tmp_path / "r")
    words = "the controller is in manual and box.furnace_contactor is off (0), so nothing heats"
    assert said.out.startswith(f"furnace.setpoint confirmed, reads 55; {words}\n"), said
    assert f"by hand (Ada): furnace.setpoint = 55 degC confirmed: {words}" in said.err
    assert said.code == 0
    ended = [
        each.body for each in read(tmp_path / "r" / "journal.sqlite") if each.kind == "outcome"
    ]
    assert [each.get("warning") for each in ended][-1] == words


def test_of_a_plan_the_steps_are_told_that_ask_for_an_effect_and_have_none(
    short_plan: LabPlan,
) -> None:
    heat, cool = (Command("furnace.setpoint", each, "degC") for each in (300.0, 0.0))
    steps = [("cool", cool), ("look", Command("nobody.power", 1.0, "W")), ("heat", heat)]
    (idle,) = idle_steps(steps, {}, short_plan.by_name, lambda name: 0.0, lambda channel: 0.0)
    assert idle.startswith("heat: furnace.setpoint = 300 degC would be confirmed, but ")
