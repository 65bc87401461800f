"""Programs for an instrument, by themselves: stored block by block, read back, and started."""

import asyncio
from collections.abc import Callable

import pytest

from furnace_alone import ANNEAL, HOLD, RESET, RUN, Furnace, has, program, started
from kernel_line import see
from labharness.core.vocabulary import Command, Ending, Outcome, Program
from labharness.journal import JournalFailed
from labharness.line.command import Uploaded


@pytest.fixture
def furnace() -> Furnace:
    return Furnace()


# ---- storing


def test_a_program_is_stored_by_its_end_its_segments_and_its_first_one_last() -> None:
    furnace = Furnace()
    assert furnace.upload() == Uploaded(Ending.CONFIRMED, 4)
    assert furnace.port.written == ["segment1=end", "segment2=400", "segment3=50", "segment1=400"]
    assert furnace.gate.stored["furnace"][0] is ANNEAL
    assert furnace.gate.stored["furnace"][1] == furnace.loop.time()
    assert furnace.journal.records == [
        ("program", {"instrument": "furnace", **ANNEAL.written()}),
        (
            "program_stored",
            {"intent": 1, "ending": "confirmed", "written": 4, "detail": ""},
        ),
    ]
    assert furnace.performed == []


def test_what_reads_as_it_should_is_not_written_and_what_differs_is(furnace: Furnace) -> None:
    has(furnace, "400", "400", "50")
    assert furnace.upload() == Uploaded(Ending.CONFIRMED, 0)
    assert furnace.port.written == []
    assert "furnace" in furnace.gate.stored
    furnace = Furnace()
    has(furnace, "400", "400", "60")
    assert furnace.upload() == Uploaded(Ending.CONFIRMED, 3)
    assert furnace.port.written == ["segment1=end", "segment3=50", "segment1=400"]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (
            program(1001.0),
            "segment 1 (ramp to 1001 degC at 10 degC/min): furnace.setpoint: asked",
        ),
        (program(50.0, 60.0, 70.0, 80.0), "it takes 4 segments at most"),
    ],
)
def test_a_program_that_is_refused_is_neither_written_nor_kept(asked: Program, said: str) -> None:
    furnace = Furnace()
    furnace.gate.stored["furnace"] = (ANNEAL, 0.0)
    uploaded = furnace.upload(asked)
    assert (uploaded.ending, uploaded.written) == (Ending.REFUSED, 0)
    assert uploaded.detail.startswith(said)
    assert furnace.port.sent == []
    assert furnace.gate.stored == {}, "nor the one before"
    assert furnace.performed == [], "nor reset"
    assert furnace.journal.of("program_stored")[0]["ending"] == "refused"


def test_a_block_that_reads_otherwise_ends_the_upload_and_resets_the_instrument() -> None:
    furnace = Furnace()
    has(furnace, "1", "2")
    furnace.port.says["segment2?"] = ["2", "399"]
    uploaded = furnace.upload()
    assert (uploaded.ending, uploaded.written) == (Ending.MISMATCH, 1)
    assert uploaded.detail == (
        "segment2 reads (399,), written (400,); nothing is started, "
        "and its reset was confirmed: said"
    )
    assert furnace.performed == [RESET]
    assert furnace.gate.stored == {}
    assert furnace.journal.of("program_stored") == [
        {
            "intent": 1,
            "ending": "mismatch",
            "written": 1,
            "detail": "segment2 reads (399,), written (400,)",
        }
    ]


def test_a_write_that_is_answered_badly_is_believed_by_what_is_read(furnace: Furnace) -> None:
    furnace.port.says["segment2=400"] = "no"
    assert furnace.upload().ending is Ending.CONFIRMED
    furnace = Furnace()
    furnace.port.says["segment2=400"] = None
    furnace.port.says["segment2?"] = ["0", "0"]
    uploaded = furnace.upload()
    assert uploaded.detail.startswith("segment2 reads (0,), written (400,) (no reply); nothing")


def test_a_block_that_cannot_be_read_is_unknown_after_two_tries_the_second_asked_twice() -> None:
    furnace = Furnace()
    furnace.port.says["segment2?"] = None
    uploaded = furnace.upload()
    assert uploaded.ending is Ending.UNKNOWN
    assert uploaded.detail.startswith("segment2 cannot be read back: no reply; nothing is started")
    assert furnace.port.asked("segment2?") == 2
    furnace = Furnace()
    furnace.port.says["segment2?"] = [None, "5", "400"]
    has(furnace, "400")
    furnace.port.says["segment3?"] = "50"
    assert furnace.upload() == Uploaded(Ending.CONFIRMED, 0), "the late answer was the first one's"


def test_a_line_that_trips_between_two_blocks_has_no_more_written(furnace: Furnace) -> None:
    lose = furnace.memory.track("furnace.setpoint")

    def frame(words: str) -> None:
        furnace.frame(words)
        if words == "segment2=400":
            lose.unconfirmed = (300.0,)

    furnace.port.on_frame = frame
    uploaded = furnace.upload()
    assert (uploaded.ending, uploaded.written) == (Ending.UNKNOWN, 2)
    assert uploaded.detail.startswith("segment3: furnace.setpoint was set and is not confirmed")
    assert furnace.port.written == ["segment1=end", "segment2=400"]


async def test_an_upload_waits_for_the_turn_of_the_writer_and_for_a_port_to_settle() -> None:
    furnace = Furnace()
    order: list[str] = []
    settles: list[Callable[[], None]] = [lambda: furnace.port.busy.add("furnace")]

    def frame(words: str) -> None:
        furnace.frame(words)
        order.append(words)
        if settles and words == "segment3?":
            settles.pop()()

    furnace.port.on_frame = frame
    set_it = Command("furnace.setpoint", 50.0, "degC")
    other = asyncio.create_task(furnace.writer.perform(set_it))
    await asyncio.sleep(0)
    await furnace.programs.upload("furnace", ANNEAL)
    assert other.done()
    assert order[:2] == ["furnace.setpoint=50", "furnace.setpoint?"]
    assert "segment1=400" in furnace.port.written


@pytest.mark.parametrize("fails_at", ["program", "program_stored"])
def test_a_program_that_no_journal_takes_is_not_stored_and_its_end_is_told(fails_at: str) -> None:
    furnace = Furnace()
    furnace.journal.fails_at = fails_at
    if fails_at == "program_stored":
        assert furnace.upload().ending is Ending.CONFIRMED
        return
    with pytest.raises(JournalFailed):
        furnace.upload()
    assert furnace.lost == ["full"]
    assert furnace.port.sent == []


async def test_an_upload_that_is_given_up_is_recorded_as_unknown() -> None:
    furnace = Furnace()
    furnace.gate.stored["furnace"] = (ANNEAL, 0.0)
    task = asyncio.create_task(furnace.programs.upload("furnace", ANNEAL))
    await asyncio.sleep(0.05)
    task.cancel()
    await asyncio.wait((task,))
    assert furnace.gate.stored == {}
    assert furnace.journal.of("program_stored") == [
        {
            "intent": 1,
            "ending": "unknown",
            "written": 0,
            "detail": "given up before its end was known",
        }
    ]


# ---- starting


def test_a_program_is_read_once_more_chosen_and_started(furnace: Furnace) -> None:
    has(furnace, "400", "400", "50")
    furnace.memory.track("furnace.number").value = 3.0
    furnace.gate.stored["furnace"] = (ANNEAL, -100.0)
    outcome = furnace.play(furnace.programs.start("furnace"))
    number = Command("furnace.number", 7.0, "")
    assert (outcome.command, outcome.ending) == (RUN, Ending.CONFIRMED)
    assert furnace.performed == [number, RUN]
    assert furnace.gate.stored["furnace"] == (ANNEAL, furnace.loop.time()), "it was read now"
    furnace = Furnace()
    furnace.ends["furnace.number"] = Ending.MISMATCH
    furnace.memory.track("furnace.number").value = 3.0
    outcome = furnace.play(furnace.programs.start("furnace"))
    assert (outcome.command, outcome.ending) == (number, Ending.MISMATCH)
    assert furnace.performed == [number]


def test_a_number_that_is_chosen_already_is_not_chosen_again(furnace: Furnace) -> None:
    assert furnace.play(furnace.programs.start("furnace")).command == RUN
    assert furnace.performed == [RUN], "and the gate refuses what is not stored"


@pytest.mark.parametrize(
    ("reads", "why"),
    [
        ("60", "segment3 is not as it was uploaded: upload it again"),
        (None, "segment3 cannot be read back: no reply"),
    ],
)
def test_a_program_that_reads_otherwise_is_not_started(reads: str | None, why: str) -> None:
    furnace = Furnace()
    has(furnace, "400", "400")
    furnace.port.says["segment3?"] = reads
    furnace.gate.stored["furnace"] = (ANNEAL, 0.0)
    outcome = furnace.play(furnace.programs.start("furnace"))
    assert outcome == Outcome(RUN, Ending.REFUSED, None, why)
    assert (furnace.performed, furnace.gate.stored) == ([], {})


async def test_one_that_is_held_goes_on_without_being_read_and_others_are_held_and_reset() -> None:
    furnace = Furnace()
    started(furnace)
    furnace.memory.track("furnace.status").unconfirmed = ()
    see(furnace.memory, 0.0, furnace__status=4.0)
    await furnace.programs.start("furnace")
    await furnace.programs.hold("furnace")
    await furnace.programs.reset("furnace")
    assert furnace.performed == [RUN, HOLD, RESET]
    assert furnace.port.sent == []
