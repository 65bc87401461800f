"""The fault search: replay is exact, the dead stay dead, planted bugs fall."""

import importlib
import itertools
import json
import math
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaos_scenes import FAULTS, Play, fault, player, scenario, told
from commands import COMMAND, say, spawn
from labharness.chaos.scenario import (
    BESIDE_IT,
    SELDOM_EVERY,
    Scenario,
    draw,
    read_scenario,
    write_scenario,
)
from labharness.chaos.search import Search, Tally, search, shrink, told_of
from labharness.chaos.world import Verdict, play
from labharness.lab import LabPlan
from planted_harms import HARMS, HOURS_MAX, Harm, planted
from rig import SHORT_LINE

CLEAN_HOURS = 5.0


@pytest.fixture
def played(tmp_path: Path) -> Play:
    return player(tmp_path)


@pytest.mark.promise(7)
def test_the_same_scenario_gives_the_same_digest_here_and_in_a_process_of_other_hashes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, played: Play
) -> None:
    lossy = fault("reply_lost", "loading", 5.0, target="inert", amount=0.1)
    each = scenario(lossy, fault("kill", "leak_check", 40.0))
    here = played(each)
    file = tmp_path / "scenario.json"
    file.write_text(write_scenario(each), "utf-8")
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    there = spawn("chaos", "--replay", file, "--line", SHORT_LINE)
    assert there.code == 0, there
    assert here.digest in there.out
    assert played(replace(each, seed=each.seed + 1)).digest != here.digest


@pytest.mark.parametrize("kind", ["kill", "pause"])
def test_a_harness_that_dies_or_stands_still_over_heat_leaves_the_line_safe_and_latched(
    played: Play, kind: str
) -> None:
    verdict = played(scenario(fault(kind, lasts_s=15.0 if kind == "pause" else 0.0)))
    assert verdict.violation is None
    assert "guard: immediate_shutdown" in told(verdict)
    assert "task_rejected  The line is latched" in told(verdict)


@pytest.mark.soak
def test_a_pause_shorter_than_the_heartbeat_disturbs_no_growth(
    played: Play,
) -> None:
    verdict = played(scenario(fault("pause", lasts_s=0.8), fault("stop_request", after_s=90.0)))
    assert verdict.violation is None
    assert "guard" not in told(verdict)
    assert "trip" not in told(verdict)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("kind", "rule"),
    [
        ("kill", "energised though the harness is dead"),
        ("pause", "energised though the harness stands still"),
    ],
)
def test_without_a_guard_nobody_makes_safe_what_a_harness_left(
    played: Play, monkeypatch: pytest.MonkeyPatch, kind: str, rule: str
) -> None:
    """Nothing of a dead harness is heard again: what the coils were they stay."""
    from labharness.chaos import world

    async def nobody(*args: object) -> None:
        return None

    monkeypatch.setattr(world.GuardLeft, "alone", nobody)
    verdict = played(scenario(fault(kind, lasts_s=15.0 if kind == "pause" else 0.0)))
    assert verdict.violation is not None
    assert verdict.violation.rule == rule


@pytest.mark.soak
def test_after_a_reset_a_second_growth_begins_over_what_is_still_hot(
    played: Play,
) -> None:
    verdict = played(
        scenario(
            fault("estop_open", "ramp", 100.0),
            fault("stop_request", "ramp", 100.0, growth=1),
            second_growth=True,
        )
    )
    assert verdict.violation is None
    assert "reset by a person" in told(verdict)
    assert told(verdict).count("stage ramp") == 2


BUGS = {
    "procedure": ("the procedures forget hydrogen", scenario(fault("kill"), hydrogen_sccm=20.0)),
    "vacuum": ("a vacuum is vented", scenario(fault("kill", "leak_check", 30.0))),
    "hydrogen left": (
        "a tube that may hold hydrogen is opened",
        scenario(
            fault("power_dip", "cooling", 60.0, lasts_s=1.0),
            fault("stop_request", "leak_check", 5.0, growth=1),
            second_growth=True,
            hydrogen_sccm=20.0,
            argon_sccm=85.0,
            sulfur_temperature_c=120.0,  # solid again by then, or its argon trips first
        ),
    ),
    "dead gauge": (
        "a gauge that is dead is taken for a vacuum",
        scenario(
            fault("sensor_off", "ramp", 740.0, target="gauge"),
            fault("stop_request", "ramp", 745.0),
        ),
    ),
    "gas leak": (
        "a gas leak does not trip",
        scenario(
            fault("hydrogen_escapes", amount=200.0, after_s=100.0),
            hydrogen_sccm=5.0,
            argon_sccm=85.0,
            sulfur_temperature_c=150.0,
        ),
    ),
    "stuck gauge": (
        "nothing sees that a gauge is stuck while the tube is filled",
        scenario(fault("sensor_stuck", "purge", 110.0, target="gauge")),
    ),
    "thermocouple": (
        "nothing sees that a thermocouple is stuck",
        scenario(fault("sensor_stuck", "ramp", 600.0, target="sulfur"), dwell_s=1800.0),
    ),
}
EVERY_DAY = ("procedure", "stuck gauge")


@pytest.mark.promise(6)
@pytest.mark.thorough
@pytest.mark.parametrize(
    ("bug", "each"),
    [
        pytest.param(*BUGS[name], id=name, marks=[pytest.mark.soak] * (name not in EVERY_DAY))
        for name in BUGS
    ],
)
def test_a_planted_bug_is_found_and_the_same_faults_harm_nobody_without_it(
    played: Play, tmp_path: Path, bug: str, each: Scenario
) -> None:
    (harm,) = [harm for harm in HARMS if harm.name == bug]
    with planted(harm, tmp_path / "lab") as plan:
        assert played(each, plan).violation is not None
    assert played(each).violation is None


@pytest.mark.promise(6)
@pytest.mark.thorough
@pytest.mark.timeout(300)  # a growth takes long where others want the same two cores
def test_hours_of_the_search_find_nothing() -> None:
    asked = Search(lab=str(SHORT_LINE), hours=CLEAN_HOURS, seed=1)
    tally = search(asked, Tally(seed=1, rate=1.0, lab_digest=""), lambda *said: None, workers=1)
    assert tally.lab_s >= CLEAN_HOURS * 3600
    assert 1 <= tally.injected <= tally.drawn
    assert tally.violations == []


@pytest.mark.parametrize("harm", HARMS, ids=lambda harm: harm.name)
def test_every_harm_can_be_planted_in_the_line_as_it_is(
    tmp_path: Path, short_plan: LabPlan, harm: Harm
) -> None:
    with planted(harm, tmp_path) as plan:
        assert not harm.edits or plan.envelope_digest != short_plan.envelope_digest


def found(plan: LabPlan, numbers: Iterable[int], folder: Path) -> str:
    lab_s = 0.0
    for number in numbers:
        world = folder / f"world{number}"
        world.mkdir()
        verdict = play(plan, draw(1, number, 1.0, FAULTS), world)
        shutil.rmtree(world)
        lab_s += verdict.lab_s
        if verdict.violation is not None:
            return f"growth {number + 1}: {verdict.violation.rule}"
        if lab_s >= HOURS_MAX * 3600:
            break
    return ""


@pytest.mark.promise(6)
@pytest.mark.soak
@pytest.mark.timeout(0)
@pytest.mark.parametrize("harm", HARMS, ids=lambda harm: harm.name)
def test_every_planted_harm_is_found_within_two_hundred_hours(tmp_path: Path, harm: Harm) -> None:
    """What found it once is played first; when that no longer does, all are, from the first on."""
    with planted(harm, tmp_path / "lab") as plan:
        where = found(plan, [harm.growth - 1], tmp_path) or found(plan, itertools.count(), tmp_path)
    assert where, f"not found in {HOURS_MAX:g} h"
    print(f"{harm.name:60} {where}")  # noqa: T201 - the table is the result


# ---- drawing, shrinking, keeping


@given(st.integers(0, 10**6), st.integers(0, 1000), st.floats(0, 4))
@settings(deadline=None, max_examples=50)
def test_a_scenario_is_drawn_from_its_seed_and_survives_its_file(
    seed: int, number: int, rate: float
) -> None:
    drawn = draw(seed, number, rate, FAULTS)
    assert drawn == draw(seed, number, rate, FAULTS) == read_scenario(write_scenario(drawn), FAULTS)
    assert {each.kind for each in drawn.faults} <= set(FAULTS.rows)


def test_every_kind_of_fault_is_drawn_and_hardware_is_never_defeated_twice() -> None:
    drawn = [draw(3, number, 2.0, FAULTS).faults for number in range(2000)]
    assert {each.kind for faults in drawn for each in faults} == set(FAULTS.rows)
    for faults in drawn:
        cut = {each.target for each in faults if each.kind == "bus_cut"}
        assert not {"relays", "heat"} <= cut
        assert not ("relays" in cut and any(each.kind == "heater_runaway" for each in faults))


def test_every_eighth_growth_brings_what_comes_seldom_to_hydrogen_and_to_a_second_growth() -> None:
    eighths = [
        draw(3, number, 1.0, FAULTS) for number in range(SELDOM_EVERY - 1, 800, SELDOM_EVERY)
    ]
    brought = [(each.kind, each.target, each.stage) for one in eighths for each in one.faults]
    assert {(each.kind, each.target, each.stage) for each in FAULTS.seldom} <= set(brought)
    assert all(one.second_growth and one.recipe["hydrogen_sccm"] > 0 for one in eighths)
    assert all(1 <= len(one.faults) <= 1 + BESIDE_IT for one in eighths)


def test_without_a_rate_nothing_goes_wrong() -> None:
    assert not any(draw(3, number, 0.0, FAULTS).faults for number in range(50))


@given(st.integers(1, 6), st.data())
@settings(deadline=None, max_examples=50)
def test_shrinking_leaves_exactly_the_faults_that_it_takes(count: int, data: st.DataObject) -> None:
    faults = tuple(fault("kill", after_s=float(number)) for number in range(count))
    needed = data.draw(st.sets(st.sampled_from(faults), min_size=1))
    found = shrink(scenario(*faults, second_growth=True), lambda each: needed <= set(each.faults))
    assert set(found.faults) == needed
    assert not found.second_growth


def test_a_search_goes_on_where_it_was_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked_for: list[int] = []

    def quick(asked: Search, number: int) -> dict[str, Any]:
        asked_for.append(number)
        drawn = scenario(fault("kill"), fault("pause"))
        verdict = Verdict(drawn, None, 3600.0, "", (), {"a rule": 2.0}, injected=1)
        return told_of(verdict)

    module = importlib.import_module("labharness.chaos.search")
    monkeypatch.setattr(module, "play_one", quick)
    tally = Tally(seed=1, rate=1.0, lab_digest="")
    state = tmp_path / "state.json"
    search(Search(lab="", hours=3, seed=1), tally, lambda t, said: t.write(state), workers=1)
    kept = Tally.read(state)
    assert kept == tally
    search(Search(lab="", hours=5, seed=1), kept, lambda t, said: None, workers=1)
    assert asked_for == [0, 1, 2, 3, 4]
    assert kept.demands == {"a rule": 10.0}
    assert (kept.drawn, kept.injected) == (10, 5)


# ---- the command


def test_the_command_refuses_in_one_plain_line(tmp_path: Path) -> None:
    say("chaos", "--replay", "nobody").is_one_plain_error("nobody", "SEED")
    say("chaos", "--line", tmp_path / "none.toml").is_one_plain_error("none.toml")
    wrong = tmp_path / "wrong.json"
    wrong.write_text(json.dumps({"name": "1/1", "seed": 1, "faults": [{"kind": "flood"}]}))
    say("chaos", "--replay", wrong).is_one_plain_error("wrong.json: no scenario")
    for text in ("", "[1, 2]", '{"name": "1/1", "seed": 1, "faults": 7}', "[" * 9000):
        wrong.write_text(text)
        say("chaos", "--replay", wrong).is_one_plain_error("wrong.json: no scenario")
        say("chaos", "--state", wrong).is_one_plain_error("wrong.json is not a state of a search")
    good = {"name": "1/1", "seed": 1, "recipe": {"dwell_s": 60.0}}
    kill = {"kind": "kill", "stage": "ramp", "after_s": 1.0}
    for bad, words in (
        ({**good, "seed": "x"}, "seed: 'x'"),
        ({**good, "recipe": {"dwell_s": "x"}}, "recipe.dwell_s: 'x'"),
        ({**good, "faults": [{**kill, "stage": "rampe"}]}, "'rampe' (did you mean ramp?)"),
        ({**good, "faults": [{**kill, "after_s": math.nan}]}, "after_s: nan"),
        ({**good, "faults": [{**kill, "lasts_s": -1}]}, "lasts_s: -1"),
        ({**good, "faults": [{**kill, "kind": "kil"}]}, "'kil' (did you mean kill?)"),
        ({**good, "faults": [{**kill, "target": "heat"}]}, "kill takes no target"),
        ({**good, "faults": [{**kill, "kind": "bus_cut", "target": "nosuch"}]}, "'nosuch'"),
        ({**good, "faults": [{**kill, "kind": "sensor_off", "target": "gage"}]}, "mean gauge?"),
        ({**good, "faults": [{**kill, "kind": "contact_stuck"}]}, "no target ''"),
        ({**good, "faults": [{**kill, "kind": "flow_drift", "target": 7}]}, "target: 7"),
        ({**good, "faults": [{**kill, "kind": "sensor_slow", "target": "gauge"}]}, "above 0"),
        ({**good, "name": 7}, "name: 7"),
        ({**good, "looks": 7}, "looks: 7"),
    ):
        wrong.write_text(json.dumps({"faults": [], **bad}))
        say("chaos", "--replay", wrong).is_one_plain_error("wrong.json: no scenario: ", words)
    state = {**asdict(Tally(seed=1, rate=1.0, lab_digest="")), "done": []}
    changes: tuple[dict[str, Any], ...] = (
        {"seed": "1"},
        {"rate": None},
        {"lab_digest": 7},
        {"lab_s": "x"},
        {"done": 7},
        {"done": ["x"]},
        {"drawn": -1},
        {"injected": {}},
        {"demands": {"rule": "x"}},
        {"demands": []},
        {"violations": [7]},
        {"violations": {}},
        {"played_by": [7]},
    )
    for changed in changes:
        wrong.write_text(json.dumps({**state, **changed}))
        said = say("chaos", "--state", wrong, "--line", SHORT_LINE)
        said.is_one_plain_error(f"wrong.json is not a state of a search: {next(iter(changed))}")
    wrong.write_bytes(b"\xff\xfe")
    say("chaos", "--replay", wrong).is_one_plain_error("wrong.json: no scenario")
    say("chaos", "--shrink").is_one_plain_error("--shrink takes --replay")
    say("chaos", "--workers", "65").is_one_plain_error("'65' is not a whole number from 1 to 64")


def test_a_state_that_could_not_be_kept_is_refused_before_the_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def played(*arguments: object) -> None:
        raise AssertionError("it searched")

    monkeypatch.setattr("labharness.faces.cli.chaos.search", played)
    for state in (tmp_path, tmp_path / "none" / "state.json"):
        said = say("chaos", "--state", state, "--line", SHORT_LINE)
        said.is_one_plain_error(f"{state}: ")


def test_a_state_that_can_no_longer_be_kept_ends_the_search_in_one_plain_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def played(asked: Search, tally: Tally, told: Callable[..., None], *rest: object) -> None:
        (tmp_path / "state.json.part").mkdir()  # a disk that takes nothing
        verdict = Verdict(scenario(), None, 3600.0, "", (), {})
        tally.take(0, told_of(verdict))
        told(tally, told_of(verdict))

    monkeypatch.setattr("labharness.faces.cli.chaos.search", played)
    said = say("chaos", "--state", tmp_path / "state.json", "--line", SHORT_LINE)
    assert (said.code, said.out) == (1, "")
    why = f"labharness chaos: {tmp_path / 'state.json.part'}: Is a directory [command_failed]\n"
    assert said.err.endswith(f"keeps where it stands\n{why}")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists a process's children")
def test_a_search_that_is_killed_leaves_no_worker_behind(tmp_path: Path) -> None:
    arguments = ("chaos", "--hours", "100", "--line", SHORT_LINE, "--state", tmp_path / "state")
    with subprocess.Popen([*COMMAND, *map(str, arguments)], stdout=subprocess.DEVNULL) as searches:
        try:
            workers = waited(lambda: [pid for pid in children(searches.pid) if works(pid)], 2)
        finally:
            searches.kill()
    assert waited(lambda: [pid for pid in workers if not alive(pid)], len(workers))


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists a process's children")
@pytest.mark.parametrize(
    ("killed", "code", "words"),
    [
        ("a worker", 1, "a worker was killed; the same command goes on from"),
        pytest.param(*("Ctrl-C", 3, "ending the growths in play"), marks=pytest.mark.soak),
    ],
)
def test_a_search_that_is_disturbed_says_so_in_plain_lines(
    tmp_path: Path, killed: str, code: int, words: str
) -> None:
    arguments = ("chaos", "--hours", "100", "--line", SHORT_LINE, "--state", tmp_path / "state")
    with subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as searches:
        try:
            worker = waited(lambda: [pid for pid in children(searches.pid) if works(pid)], 2)[0]
            time.sleep(1.0)
            if killed == "a worker":
                os.kill(worker, signal.SIGKILL)
            else:
                searches.send_signal(signal.SIGINT)
            said = searches.communicate(timeout=60)[1]
        finally:
            searches.kill()
    assert searches.returncode == code, said
    assert words in said
    assert "Traceback" not in said


def test_the_search_says_what_was_injected_and_that_other_code_began_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def played(asked: Search, tally: Tally, *rest: object) -> None:
        tally.take(0, told_of(Verdict(scenario(fault("kill")), None, 3600.0, "", (), {})))
        tally.write(tmp_path / "state.json")

    monkeypatch.setattr("labharness.faces.cli.chaos.search", played)
    search_it = ("chaos", "--state", tmp_path / "state.json", "--line", SHORT_LINE)
    assert "0 faults of 1 drawn, 0 violations" in say(*search_it).out
    assert "searched with" not in say(*search_it).out
    (by,) = Tally.read(tmp_path / "state.json").played_by
    assert by.endswith(f", {platform.python_implementation()} {platform.python_version()}")
    monkeypatch.setattr("labharness.faces.cli.chaos._this_labharness", lambda: "labharness 99 abc")
    assert (
        "with labharness 99 abc; the search that is there was made with labharness"
        in say(*search_it).out
    )
    assert Tally.read(tmp_path / "state.json").played_by[-1] == "labharness 99 abc"


def children(pid: int) -> list[int]:
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii")
    return [int(each) for each in listed.split()]


def works(pid: int) -> bool:
    """Whether it is a worker, and no tracker of resources, and has got as far as its first task."""
    threads = len(list(Path(f"/proc/{pid}/task").iterdir()))
    return b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes() and threads > 1


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text("ascii").split()[2] != "Z"
    except OSError:
        return False


def waited(found: Callable[[], list[int]], count: int) -> list[int]:
    """Look until so many are found, 20 s at most."""
    for _ in range(200):
        if len(found()) >= count:
            break
        time.sleep(0.1)
    assert len(found()) >= count
    return found()


@pytest.mark.thorough
def test_the_command_finds_says_shrinks_and_replays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (harm,) = [harm for harm in HARMS if harm.name == "a vacuum is vented"]
    file = tmp_path / "scenario.json"
    noise = fault("reply_late", "loading", 5.0, target="stage", amount=0.1)
    each = scenario(noise, fault("kill", "leak_check", 30.0))
    file.write_text(write_scenario(replace(each, name="9/9")), "utf-8")
    with planted(harm, tmp_path / "lab"):
        line = tmp_path / "lab" / "lab.toml"
        said = say("chaos", "--replay", file, "--shrink", "--line", line)
    assert said.code == 1
    assert "VIOLATION" in said.out
    assert "reply_late" not in said.out
    assert "fault: kill" in said.out
