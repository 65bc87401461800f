"""Making a line safe that somebody is about to drive: it latches, and what was to come is ended."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from labharness.core.clock import Clock, PacedLoop
from labharness.core.clock import run as run_on
from labharness.journal.chain import Record
from labharness.journal.reading import read
from labharness.lab import Lab, LabPlan
from labharness.lab.operate import attend
from labharness.lab.operate.attend import Attendance
from labharness.lab.wiring import preflight, tasks
from labharness.lab.wiring.tasks import RunResult, TaskRun
from labharness.line import Line, Tripped
from labharness.safety.guard import Latch
from labharness.safety.kernel import Mode
from labharness.work.desk.by_hand import ByHand, Nobody
from labharness.work.plan import InstructionSet
from rig import SAFE_TABLE, submission

SAFE = {"do": "safe", "by": "Ann", "reason": "smell of gas"}
WHY = "made safe by hand (Ann): smell of gas"
HOT = {"min": 820, "max": 830, "unit": "celsius"}  # no standing approval
LONG_S = 3600.0


@pytest.fixture
def hands(monkeypatch: pytest.MonkeyPatch) -> list[ByHand]:
    """The hands on each line that somebody drives, as another terminal reaches them."""
    found: list[ByHand] = []

    class Kept(ByHand):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            found.append(self)

    monkeypatch.setattr(tasks, "ByHand", Kept)
    monkeypatch.setattr(attend, "ByHand", Kept)
    return found


class Asked:
    """Somebody at another terminal who makes a line safe before it is armed."""

    def __init__(self, hands: list[ByHand]) -> None:
        self._hands = hands
        self.mode = ""
        self.answer: Mapping[str, Any] = {}
        self._asking: asyncio.Task[None] | None = None

    def begin(self) -> None:
        if self._asking is None:
            self._asking = asyncio.get_running_loop().create_task(self._ask())

    async def _ask(self) -> None:
        hand = self._hands[-1]
        self.mode = (await hand.answer({"do": "status"}))["mode"]
        self.answer = await hand.answer(SAFE)

    def latched(self) -> None:
        """See that it found the line disarmed, and made it safe and latched it."""
        assert self.mode == Mode.DISARMED
        assert self.answer["ok"], self.answer
        assert self.answer["unverified"] == []
        assert self.answer["latched"]
        assert self.answer["ended"]


def run(
    plan: LabPlan,
    folder: Path,
    told: Callable[[str, Mapping[str, Any]], None],
    prepare: Callable[[Lab], None] = lambda lab: None,
    **inputs: Any,
) -> RunResult:
    """Run a task in virtual time that waits for persons all the same."""
    work = TaskRun(
        plan,
        *submission(**inputs),
        speed=None,
        seed=1,
        out=folder,
        approval_wait_s=LONG_S,
        tell=told,
        prepare=prepare,
    )
    return work.execute()


def ended(result: RunResult, plan: LabPlan, folder: Path) -> list[Record]:
    """See that a run ended without arming, that its line is latched, and that all say why."""
    body = result.message.payload.stated()
    assert (result.message.type, body["reason_code"]) == ("task_rejected", "aborted"), body
    assert WHY in str(body)
    latch = Latch(plan.state_dir / "latch.json").trip
    assert latch is not None
    assert latch.detail == WHY
    records = list(read(folder / "journal.sqlite"))
    kinds = [each.kind for each in records]
    assert "armed" not in kinds
    assert [each.body["detail"] for each in records if each.kind == "trip"] == [WHY]
    return records


@pytest.mark.promise(14)
def test_a_run_that_waits_for_an_approval_is_ended_latched_and_told(
    short_plan: LabPlan, tmp_path: Path, hands: list[ByHand]
) -> None:
    asked, warnings = Asked(hands), []

    def told(kind: str, data: Mapping[str, Any]) -> None:
        if kind == "approval_asked":
            asyncio.get_running_loop().call_later(5.0, asked.begin)
        if kind == "warning":
            warnings.append(data["message"])

    folder = tmp_path / "run"
    result = run(short_plan, folder, told, temperature_range=HOT)
    asked.latched()
    assert WHY in warnings, "the run's own terminal is told"
    ended(result, short_plan, folder)
    again = run(short_plan, tmp_path / "again", lambda kind, data: None)
    assert again.message.type == "task_rejected"
    assert "latched" in str(again.message.payload), "until a person resets it"


def test_a_run_that_is_being_predicted_is_ended_and_latched(
    short_plan: LabPlan, tmp_path: Path, hands: list[ByHand], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Asked(hands)

    def slow(plan: LabPlan, loop: asyncio.AbstractEventLoop) -> Callable[..., Awaitable[None]]:
        async def fly(instructions: InstructionSet, readings: Mapping[str, float]) -> None:
            asked.begin()
            await asyncio.sleep(LONG_S)

        return fly

    monkeypatch.setattr(tasks, "flights", slow)
    folder = tmp_path / "run"
    result = run(short_plan, folder, lambda kind, data: None)
    asked.latched()
    ended(result, short_plan, folder)


@pytest.mark.parametrize("after_s", [0.0, 0.2])
def test_a_run_that_is_just_opening_its_line_is_ended_and_latched(
    short_plan: LabPlan, tmp_path: Path, hands: list[ByHand], after_s: float
) -> None:
    asked = Asked(hands)

    def soon(lab: Lab) -> None:
        asyncio.get_running_loop().call_later(after_s, asked.begin)

    folder = tmp_path / "run"
    result = run(short_plan, folder, lambda kind, data: None, soon)
    assert asked.mode == Mode.DISARMED
    ended(result, short_plan, folder)


@pytest.mark.parametrize("after_s", [0.0, 0.2])
def test_a_line_that_a_person_is_about_to_drive_is_not_armed(
    short_plan: LabPlan,
    tmp_path: Path,
    hands: list[ByHand],
    monkeypatch: pytest.MonkeyPatch,
    after_s: float,
) -> None:
    asked = Asked(hands)
    opens = Line.open

    async def opened(line: Line) -> None:
        asyncio.get_running_loop().call_later(after_s, asked.begin)
        await opens(line)

    monkeypatch.setattr(Line, "open", opened)
    told: list[str] = []
    attendance = Attendance(
        short_plan, tmp_path, by="Ada", speed=None, for_s=LONG_S, tell=told.append
    )
    wish = {"do": "set", "channel": "argon.setpoint", "value": 9, "unit": "sccm", "by": "Ada"}
    code, left = attendance.run(wish, told=lambda answer: 0)
    assert code == 1
    assert "smell of gas" in left.tripped
    assert "labharness set: argon.setpoint was not set" in told
    assert left.unverified == ()
    asked.latched()
    kinds = [each.kind for each in read(tmp_path / "journal.sqlite")]
    assert "trip" in kinds
    assert "armed" not in kinds
    assert "intent" not in kinds
    assert Latch(short_plan.state_dir / "latch.json").trip is not None


async def test_a_line_made_safe_while_its_guard_arms_is_not_armed(
    simulated_lab: Any, short_plan: LabPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with simulated_lab.on(short_plan).opened() as lab:
        arms = lab.guard.arm

        async def late() -> None:
            await arms()
            await ByHand(lab.line, Drives()).answer(SAFE)

        monkeypatch.setattr(lab.guard, "arm", late)
        with pytest.raises(Tripped, match="smell of gas"):
            await lab.line.arm(SAFE_TABLE)
        assert lab.line.memory.mode is Mode.TRIPPED


class Drives:
    """An owner of a line who is asked to end it."""

    def abort(self, reason: str) -> None:
        """Hear it."""

    async def hold(self, reason: str) -> str:
        return ""

    async def resume(self, reason: str) -> None:
        pass

    def about(self) -> Mapping[str, Any]:
        return {}


async def test_nobody_s_line_is_made_safe_and_not_latched(
    simulated_lab: Any, short_plan: LabPlan
) -> None:
    async with simulated_lab.on(short_plan).opened() as lab:
        done = await ByHand(lab.line, Nobody()).answer(SAFE)
        assert (done["unverified"], done["latched"]) == ([], False)
        assert lab.line.memory.mode is Mode.DISARMED


def test_a_flight_that_nobody_waits_for_any_more_holds_up_nobody(short_plan: LabPlan) -> None:
    """Its process goes on for a while; the loop, which sends and reads back, does not wait."""
    loop = PacedLoop(1.0)

    async def main() -> float:
        clock = Clock(loop)
        fly = preflight.flights(short_plan, loop)
        flight = asyncio.ensure_future(fly(InstructionSet(()), {}))
        await asyncio.sleep(0.1)
        began_s = clock.now_s()
        flight.cancel()
        await asyncio.wait((flight,))
        assert flight.cancelled()
        return clock.now_s() - began_s

    assert run_on(main(), loop) < 0.2
