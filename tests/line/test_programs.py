"""Programs that an instrument runs by itself: judged whole, read back, started, and stopped."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from labharness.core.vocabulary import Command, Ending, Program, read_program
from labharness.faces.testing.bench import Bench
from labharness.faces.testing.faults import simulated_of
from labharness.faces.testing.wires import WireLog
from labharness.lab import Lab
from labharness.line import Line, Tripped
from labharness.line.procedures import StepState
from labharness.work.desk.by_hand import ByHand, Nobody
from programmed import ANNEAL, prepared, program, programmed

RUN = Command("furnace.program_status", 2, "")
STORES = bytes.fromhex("0110")  # unit 1, function 16: nothing else of this line writes so


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("programmed")


@pytest.fixture
def unready(files: Path, simulated_lab: Bench) -> AbstractAsyncContextManager[Lab]:
    """A running line whose furnace has a programmer."""
    return simulated_lab.on(programmed(files)).running()


@pytest.fixture
@asynccontextmanager
async def lab(unready: AbstractAsyncContextManager[Lab]) -> AsyncIterator[Lab]:
    """A running line whose furnace has a programmer and may heat."""
    async with unready as made:
        await prepared(made)
        yield made


def stored(lab: Lab) -> list[bytes]:
    """Frames with parts of programs that the instruments heard."""
    return [each for each in WireLog([lab]).heard("heat") if each.startswith(STORES)]


def words(lab: Lab) -> list[list[int]]:
    """The simulated instrument's own memory of its programs."""
    found: list[list[int]] = simulated_of(lab).faces["furnace"]._programmer._stored
    return found


def status(line: Line) -> float:
    return line.latest("furnace.program_status")


async def wait(line: Line, seconds: int) -> None:
    for _ in range(seconds):
        await line.next_tick()


# ---- the whole way


async def test_a_program_is_uploaded_run_to_its_end_and_counts_as_all_its_targets_until_then(
    lab: Lab,
) -> None:
    line = lab.line
    told: list[str] = []
    line.events.on_warning = told.append
    setpoint = line.memory.track("furnace.setpoint")
    uploaded = await line.programs.upload("furnace", program())
    assert (uploaded.ending, uploaded.written) == (Ending.CONFIRMED, 5)
    assert status(line) == 1, "stored, and not started"
    assert setpoint.unconfirmed == ()
    started = await line.programs.start("furnace")
    assert (started.ending, started.read_back) == (Ending.CONFIRMED, 2)
    assert setpoint.possible() == (0.0, 400.0, 50.0)
    await wait(line, 240)
    off_c = line.latest("furnace.temperature") - line.latest("furnace.working_setpoint")
    assert abs(off_c) < 10
    assert 200 < line.latest("furnace.temperature") < 240
    refused = await line.perform(Command("furnace.setpoint", 0, "degC"))
    assert refused.ending is Ending.REFUSED
    assert "takes furnace.program_status at most 1; it reads 2" in refused.detail
    closed = await line.perform(Command("argon.setpoint", 0, "sccm"))
    assert closed.ending is Ending.REFUSED, "the sweep gas of a tube that is to get hot"
    await wait(line, 820)
    assert status(line) == 1
    assert setpoint.possible() == (0.0,)
    assert told == ["furnace: its program is over"]


# ---- refusals


@pytest.mark.parametrize(
    ("segments", "said"),
    [
        (
            [{"ramp_to_c": 940, "at_c_per_min": 20}, {"ramp_to_c": 951, "at_c_per_min": 1}],
            "segment 2 (ramp to 951 degC at 1 degC/min): furnace.setpoint: asked 951 degC",
        ),
        (
            [{"ramp_to_c": 100, "at_c_per_min": 61}],
            "segment 1 (ramp to 100 degC at 61 degC/min): furnace.setpoint_rate: asked 61",
        ),
        (
            [{"ramp_to_c": 90, "at_c_per_min": 5}, {"step_to_c": 100}],
            "segment 2 (step to 100 degC): furnace.setpoint_rate: asked 0 degC/min, allowed 0.1",
        ),
        ([{"ramp_to_c": 100.01, "at_c_per_min": 5}], "it takes steps of 0.1"),
    ],
)
async def test_one_bad_segment_refuses_the_whole_program_and_nothing_is_written(
    lab: Lab, segments: list[dict[str, float]], said: str
) -> None:
    uploaded = await lab.line.programs.upload("furnace", program(segment=segments))
    assert uploaded.ending is Ending.REFUSED
    assert said in uploaded.detail
    assert stored(lab) == []
    assert (await lab.line.programs.start("furnace")).ending is Ending.REFUSED
    assert status(lab.line) == 1


async def test_a_program_for_a_tube_that_is_not_ready_is_refused_with_what_it_lacks(
    unready: Lab,
) -> None:
    line = unready.line
    assert (await line.perform(Command("furnace.setpoint_rate", 50, "degC/min"))).ending
    assert (await line.perform(Command("box.vent", 1, ""))).ending is Ending.CONFIRMED
    warm = {"segment": [{"ramp_to_c": 90, "at_c_per_min": 5}, *ANNEAL["segment"]]}
    uploaded = await line.programs.upload("furnace", read_program(warm))
    assert uploaded.ending is Ending.REFUSED
    said = "segment 2 (ramp to 400 degC at 50 degC/min): furnace.setpoint to 400 degC "
    assert uploaded.detail.startswith(f"{said}takes tube purged of air by 5 volumes")
    assert stored(unready) == []


async def test_a_ramp_through_a_forbidden_band_is_refused_with_the_state_named(
    tmp_path: Path, simulated_lab: Bench
) -> None:
    row = """[[interlock]]
name = "not through the band of a melting source"
guards = ["furnace.setpoint"]
above = 200
upto = 300
forbid = [{ channel = "argon.flow", at_least = 100 }]
source = "the test's own"

[[interlock]]"""
    plan = programmed(tmp_path, lambda text: text.replace("[[interlock]]", row, 1))
    async with simulated_lab.on(plan).running() as lab:
        await prepared(lab)
        uploaded = await lab.line.programs.upload("furnace", program())
        assert uploaded.ending is Ending.REFUSED
        assert "passes 200 to 300, which is forbidden at argon.flow" in uploaded.detail
        assert stored(lab) == []


async def test_nothing_is_started_that_was_not_uploaded_and_read_back_lately(lab: Lab) -> None:
    line = lab.line
    for _ in range(2):
        outcome = await line.perform(RUN)
        assert outcome.ending is Ending.REFUSED
        assert "no program was uploaded, or read back within 10 s" in outcome.detail
        await line.programs.upload("furnace", program())
        await wait(line, 11)
    assert status(line) == 1
    assert (await line.programs.start("furnace")).ending is Ending.CONFIRMED, "it reads again"


async def test_no_program_starts_over_a_hot_setpoint_to_which_it_would_return(lab: Lab) -> None:
    line = lab.line
    await line.perform(Command("furnace.setpoint", 300, "degC"))
    assert (await line.programs.upload("furnace", program())).ending is Ending.CONFIRMED
    outcome = await line.programs.start("furnace")
    assert outcome.ending is Ending.REFUSED
    assert "takes furnace.setpoint at most 60; it reads 300" in outcome.detail
    await line.perform(Command("furnace.setpoint", 0, "degC"))
    assert (await line.programs.start("furnace")).ending is Ending.CONFIRMED


async def test_a_program_is_judged_again_when_it_is_started(lab: Lab) -> None:
    line, plant = lab.line, simulated_of(lab).plant
    await line.perform(Command("box.furnace_contactor", 0, ""))
    await line.programs.upload("furnace", program())
    plant.faults.lid_open = True
    await wait(line, 3)
    plant.faults.lid_open = False
    await wait(line, 3)
    outcome = await line.programs.start("furnace")
    assert outcome.ending is Ending.REFUSED
    assert "segment 1 (ramp to 400" in outcome.detail
    assert "takes tube purged of air" in outcome.detail
    assert status(line) == 1


# ---- what goes wrong


@pytest.mark.promise(9)
async def test_a_value_that_was_altered_on_the_way_ends_the_upload_with_one_plain_error(
    lab: Lab,
) -> None:
    line, face = lab.line, simulated_of(lab).faces["furnace"]
    store = face._programmer.store

    def altered(address: int, word: int, pv_c: float) -> None:
        store(address, word + 1 if word == 4000 and address == 8337 else word, pv_c)

    face._programmer.store = altered
    uploaded = await line.programs.upload("furnace", program())
    assert uploaded.ending is Ending.MISMATCH
    assert uploaded.detail == (
        "segment 1 reads (1, 4001, 500, 0, 0), written (1, 4000, 500, 0, 0); "
        "nothing is started, and its reset was confirmed"
    )
    outcome = await line.programs.start("furnace")
    assert outcome.ending is Ending.REFUSED
    assert status(line) == 1


async def test_what_somebody_typed_at_the_instrument_after_the_upload_is_not_started(
    lab: Lab,
) -> None:
    await lab.line.programs.upload("furnace", program())
    words(lab)[1][8 * 2 + 2] = 9999  # the dwell
    outcome = await lab.line.programs.start("furnace")
    assert outcome.ending is Ending.REFUSED
    assert outcome.detail == "segment 2 is not as it was uploaded: upload it again"


@pytest.mark.parametrize("cause", ["exhaust", "dip", "stop", "safe"])
async def test_whatever_ends_a_run_ends_its_program_with_the_heat_off(lab: Lab, cause: str) -> None:
    line, plant = lab.line, simulated_of(lab).plant
    await line.programs.upload("furnace", program())
    await line.programs.start("furnace")
    await wait(line, 5)  # far below what any row minds: what counts are its targets
    if cause == "exhaust":
        plant.faults.exhaust_lost = True
        with pytest.raises(Tripped, match=r"condition lost, it takes box\.exhaust_flow"):
            await wait(line, 10)
        await line.trip_response.verified()
    elif cause == "dip":  # the controllers come back as they were, and the program goes on
        plant.lose_power()
        simulated_of(lab).buses["heat"].faults.cut = True
        with pytest.raises(Tripped):
            await wait(line, 10)
        assert simulated_of(lab).faces["furnace"]._programmer.runs
        await asyncio.sleep(3)
        simulated_of(lab).buses["heat"].faults.cut = False
        await line.trip_response.verified()
    elif cause == "stop":
        await line.settle("immediate_shutdown")
    else:
        await line.bring_down()
        await line.settle("immediate_shutdown")
    seen = line.trip_response.verifications or [
        await line.trip_response.make_safe("immediate_shutdown")
    ]
    steps = {step[0]: step[1:] for step in seen[-1].steps}
    assert steps["furnace.program_status"] == (1, 1, StepState.VERIFIED)
    assert steps["furnace.output"][2] is StepState.VERIFIED
    assert plant.parts["furnace"].power_fraction == 0
    await line.polled()
    await line.polled()
    assert line.memory.track("furnace.setpoint").unconfirmed == ()


async def test_a_program_held_counts_as_heat_and_goes_on(lab: Lab) -> None:
    line = lab.line
    await line.programs.upload("furnace", program())
    await line.programs.start("furnace")
    await wait(line, 60)
    assert (await line.programs.hold("furnace")).ending is Ending.CONFIRMED
    await wait(line, 60)
    stands_c = line.latest("furnace.working_setpoint")
    assert line.memory.track("furnace.setpoint").unconfirmed
    await wait(line, 30)
    assert line.latest("furnace.working_setpoint") == stands_c
    assert (await line.programs.start("furnace")).ending is Ending.CONFIRMED
    await wait(line, 30)
    assert line.latest("furnace.working_setpoint") > stands_c + 20
    assert (await line.programs.reset("furnace")).ending is Ending.CONFIRMED


@pytest.mark.promise(1)
@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(4))
async def test_a_harness_that_dies_in_an_upload_leaves_a_program_that_ends_at_once(
    lab: Lab, seed: int
) -> None:
    """Its task is gone at a seeded instant; then somebody presses the instrument's own button."""
    line, face = lab.line, simulated_of(lab).faces["furnace"]
    await line.programs.upload("furnace", program())
    longer = [{"ramp_to_c": 300, "at_c_per_min": 30}, {"dwell_min": 5}]
    new: Program = program(segment=longer)
    upload = asyncio.get_running_loop().create_task(line.programs.upload("furnace", new))
    frames = random.Random(seed).randint(6, 8)  # one to three of its four, after the first five
    while len(stored(lab)) < frames:  # noqa: ASYNC110 - the instrument's end has no event
        await asyncio.sleep(0.01)
    upload.cancel()
    await asyncio.gather(upload, return_exceptions=True)
    assert len(stored(lab)) == frames
    assert (await line.programs.start("furnace")).ending is Ending.REFUSED
    face._programmer.store(23, 2, 25.0)
    await wait(line, 3)
    assert status(line) == 1
    assert line.latest("furnace.working_setpoint") <= 30


async def test_a_run_begins_with_no_program_running(tmp_path: Path, simulated_lab: Bench) -> None:
    """A harness was killed while one ran, and what watches over it too."""
    plan = programmed(tmp_path)
    async with simulated_lab.on(plan).opened() as lab:
        words(lab)[1][8:11] = [1, 4000, 500]
        simulated_of(lab).faces["furnace"]._programmer.store(23, 2, 25.0)
        await wait(lab.line, 3)
        assert status(lab.line) == 2
        await lab.line.arm("immediate_shutdown")
        assert status(lab.line) == 1
        assert simulated_of(lab).plant.parts["furnace"].power_fraction == 0


# ---- a person


async def test_a_person_uploads_and_starts_by_words_and_nonsense_is_told(lab: Lab) -> None:
    hands = ByHand(lab.line, Nobody())

    async def say(**asked: Any) -> dict[str, Any]:
        return await hands.answer({"do": "program", "by": "Ada", "instrument": "furnace"} | asked)

    for asked, error in (
        ({"act": "upload"}, "a program is a table"),
        ({"act": "upload", "program": {"segment": [{"dwell_min": 1}]}}, "is a dwell"),
        ({"act": "fly"}, "one of upload, start, hold, reset"),
        ({"act": []}, "one of upload"),
        ({"act": "start", "instrument": "argon"}, "argon runs no programs; on this line"),
        ({"act": "start", "instrument": "oven"}, "no instrument 'oven'; on this line"),
    ):
        answer = await say(**asked)
        assert not answer["ok"]
        assert error in answer["error"]
    answer = await say(act="upload", program=ANNEAL)
    assert (answer["ending"], answer["written"]) == ("confirmed", 5)
    assert (await say(act="start"))["ending"] == "confirmed"
    assert (await say(act="reset"))["ending"] == "confirmed"
