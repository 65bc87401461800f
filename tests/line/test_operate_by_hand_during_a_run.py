"""Operating a line by hand during a run, in virtual time: holds, stops, and values set too late."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from labharness.lab import Lab, LabPlan
from labharness.lab.wiring.control import Answer, served
from labharness.line import trip_response
from rig import Injection, Ran, heat_is_off

Word = Callable[..., Awaitable[dict[str, Any]]]
Act = Callable[[Lab, Word], Awaitable[None]]


@pytest.fixture
def doors(monkeypatch: pytest.MonkeyPatch) -> list[Answer]:
    """What answers at the control socket of each run; in virtual time there is no socket."""
    found: list[Answer] = []

    def seen(home: Path, answer: Answer, *more: Any) -> AbstractAsyncContextManager[None]:
        found.append(answer)
        return served(home, answer, *more)

    monkeypatch.setattr("labharness.lab.wiring.tasks.served", seen)
    return found


@pytest.fixture
def run_by_hand(run_task: Callable[..., Ran], doors: list[Answer]) -> Callable[..., Ran]:
    """Run a task, and let a person do something in one of its stages."""

    def run(plan: LabPlan, stage: str, act: Act, after_s: float = 5.0) -> Ran:
        ended: list[asyncio.Task[None]] = []

        async def word(do: str, **asked: Any) -> dict[str, Any]:
            return await doors[-1]({"do": do, "by": "Ada", "reason": "test", **asked})

        def begin(lab: Lab) -> None:
            ended.append(lab.clock.loop.create_task(act(lab, word)))  # type: ignore[arg-type]  # a coroutine

        ran = run_task(plan, inject=(Injection(stage, after_s, begin),))
        assert ended[0].done()
        if not ended[0].cancelled():
            ended[0].result()
        return ran

    return run


def states(ran: Ran) -> list[str]:
    return [data["to_state"] for kind, data in ran.events if kind == "state_changed"]


@pytest.mark.thorough
@pytest.mark.parametrize(
    "stage", [pytest.param("purge", marks=pytest.mark.soak), "material_growth"]
)
def test_a_run_that_was_held_goes_on_to_its_answer_and_no_deadline_counts_the_hold(
    short_plan: LabPlan, run_by_hand: Callable[..., Ran], stage: str
) -> None:
    async def act(lab: Lab, word: Word) -> None:
        assert (await word("hold"))["ok"]
        await asyncio.sleep(900)  # longer than a purge may take on this line
        assert (await word("resume"))["ok"]

    ran = run_by_hand(short_plan, stage, act)
    assert states(ran)[:3] == ["RUNNING", "PAUSED", "RUNNING"]
    if stage == "purge":
        assert ran.type == "task_completed", ran.body
    elif ran.type == "task_failed":  # a growth held so long may be no monolayer any more
        assert ran.body["error_details"]["phase"] in ("characterisation", "analysis"), ran.body


@pytest.mark.thorough
def test_a_hold_that_nobody_ends_fails_the_run_and_leaves_the_line_safe(
    short_plan: LabPlan, run_by_hand: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trip_response, "HOLD_S_MAX", 120.0)

    async def act(lab: Lab, word: Word) -> None:
        assert (await word("hold"))["ok"]

    ran = run_by_hand(short_plan, "ramp", act)
    assert ran.type == "task_failed"
    assert "longest allowed" in ran.body["error_message"]
    assert states(ran) == ["RUNNING", "PAUSED", "RUNNING", "FAILED"]
    assert heat_is_off(ran)


@pytest.mark.promise(10)
@pytest.mark.thorough
def test_a_hold_asked_for_while_a_shut_tube_fills_waits_and_can_be_withdrawn(
    short_plan: LabPlan, run_by_hand: Callable[..., Ran]
) -> None:
    async def act(lab: Lab, word: Word) -> None:
        said = await word("hold")
        assert "as soon as" in said["said"]
        assert not (await word("hold"))["ok"], "one hold at a time"
        assert (await word("resume"))["ok"]

    ran = run_by_hand(short_plan, "purge", act, after_s=2.0)
    assert ran.type == "task_completed", ran.body
    assert "PAUSED" not in states(ran)


async def heat(word: Word) -> list[str]:
    """Try to heat the furnace by hand; return how each try ended."""
    found = []
    for channel, value, unit in (
        ("box.furnace_contactor", 1, ""),
        ("furnace.setpoint_rate", 20, "degC/min"),
        ("furnace.setpoint", 700, "degC"),
    ):
        answer = await word("set", channel=channel, value=value, unit=unit)
        found.append(answer.get("ending", "refused"))
    return found


@pytest.mark.promise(14)
@pytest.mark.parametrize("end", ["stop", pytest.param("safe", marks=pytest.mark.soak)])
def test_after_a_stop_nothing_is_set_any_more_by_whomever(
    short_plan: LabPlan, run_by_hand: Callable[..., Ran], end: str
) -> None:
    ended: list[str] = []

    async def act(lab: Lab, word: Word) -> None:
        late = [asyncio.ensure_future(heat(word)) for _ in range(2)]  # they wait for their turn
        await word(end)
        for each in late:
            ended.extend(await each)
        for pause_s in (0.0, 1.0, 20.0):
            await asyncio.sleep(pause_s)
            ended.extend(await heat(word))

    ran = run_by_hand(short_plan, "material_growth", act)
    assert ran.type == ("event" if end == "stop" else "task_failed")
    assert set(ended[-9:]) == {"refused"}
    assert heat_is_off(ran)
    assert ran.lab.line.latest("box.furnace_contactor") == 0


@pytest.mark.promise(13)
@pytest.mark.parametrize(
    "asked",
    [{"by": "x" * 10_000}, {"by": ""}, {"by": None}, {"reason": ["smoke"]}, {"reason": "x" * 9999}],
    ids=["long name", "no name", "null", "list", "long reason"],
)
def test_a_stop_is_never_refused_for_its_words(
    short_plan: LabPlan, run_by_hand: Callable[..., Ran], asked: dict[str, Any]
) -> None:
    async def act(lab: Lab, word: Word) -> None:
        assert (await word("stop", **asked))["ok"]

    assert run_by_hand(short_plan, "loading", act).type == "event"


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("word_", "ends"),
    [pytest.param("stop", "event", marks=pytest.mark.soak), ("safe", "task_failed")],
)
def test_words_that_nothing_can_write_down_keep_no_stop_from_being_verified(
    short_plan: LabPlan, run_by_hand: Callable[..., Ran], word_: str, ends: str
) -> None:
    async def act(lab: Lab, word: Word) -> None:
        # what a terminal of another encoding makes of a name or a reason
        assert (await word(word_, by="Ad\udcff", reason="smoke \udcff\x1b[2J"))["ok"]

    ran = run_by_hand(short_plan, "material_growth", act)
    assert ran.type == ends, ran.body
    assert "smoke" in str(ran.body)
    assert "internal" not in str(ran.body)
    assert "\x1b" not in str(ran.events)
    assert ran.lab.line.trip_response.verifications or ends == "event"
    assert heat_is_off(ran)


@pytest.mark.thorough
def test_a_stop_during_a_hold_is_carried_out_at_once(
    short_plan: LabPlan, run_by_hand: Callable[..., Ran]
) -> None:
    stopped_s: list[float] = []

    async def act(lab: Lab, word: Word) -> None:
        assert (await word("hold"))["ok"]
        await asyncio.sleep(5)
        stopped_s.append(lab.clock.now_s())
        await word("stop")

    ran = run_by_hand(short_plan, "material_growth", act)
    assert ran.type == "event"
    assert states(ran)[-2:] == ["ABORTING", "ABORTED"]
    assert ran.truth["laser_output_w"] == 0


@pytest.mark.promise(12)
@pytest.mark.thorough
def test_no_hold_leaves_the_laser_standing_on_one_spot(
    short_plan: LabPlan, run_by_hand: Callable[..., Ran]
) -> None:
    async def act(lab: Lab, word: Word) -> None:
        for _ in range(600):
            await asyncio.sleep(0.5)
            if lab.line.latest("laser.output_power") > 1e-5:
                break
        assert "as soon as" in (await word("hold"))["said"]
        for _ in range(1000):
            await asyncio.sleep(5)
            if (await word("status"))["mode"] == "held":
                break
        assert lab.line.latest("laser.output_power") < 1e-5
        await word("resume")

    ran = run_by_hand(short_plan, "characterisation", act)
    assert states(ran)[:3] == ["RUNNING", "PAUSED", "RUNNING"]


def test_what_cannot_be_read_or_counted_at_the_socket_hurts_nobody(
    short_plan: LabPlan, run_by_hand: Callable[..., Ran]
) -> None:
    async def act(lab: Lab, word: Word) -> None:
        for asked in (
            {"channel": "\ud800.x", "value": 1},
            {"channel": "argon.setpoint", "value": 10**400},
            {"channel": "argon.setpoint", "value": "5"},
            {"channel": "a\nb", "value": 1},
            {"channel": "argon.setpoint", "value": 1, "by": "\x1b[2J"},
        ):
            assert (await word("set", **asked))["ok"] is False
        assert (await word("resume"))["ok"] is False
        await lab.line.next_tick()
        assert (await word("stop"))["ok"] is True

    assert run_by_hand(short_plan, "loading", act).body["event_type"] == "session_closed"


@pytest.mark.thorough
def test_a_stop_request_after_the_line_was_left_safe_takes_no_result_away(
    run_task: Callable[..., Ran], doors: list[Answer]
) -> None:
    def prepare(lab: Lab) -> None:
        close = lab.line.events.on_close

        async def stopped_while_the_last_alert_leaves() -> None:
            await doors[-1]({"do": "stop", "by": "Ada", "reason": "late"})
            await asyncio.sleep(1.0)
            await close()

        lab.line.events.on_close = stopped_while_the_last_alert_leaves

    ran = run_task(prepare=prepare)
    assert ran.type == "task_completed", ran.body
    assert not any("unknown" in each for each in ran.body["execution_summary"]["warnings"])
