"""What the fault search has found stays mended."""

from pathlib import Path

import pytest

from chaos_scenes import FAULTS, Play, fault, player, scenario, told
from labharness.chaos.scenario import draw
from labharness.chaos.table import TRIP_S
from labharness.chaos.world import GuardLeft, play
from labharness.lab import default_lab_path, read_lab
from labharness.safety.kernel import Bound
from labharness.work.capability.cvd.recipe import BESIDE_HYDROGEN_SCCM
from rig import SHORT_LINE

AIR_O2 = 0.2095
LEAK_SCCM_MAX = 20.0


@pytest.fixture
def played(tmp_path: Path) -> Play:
    return player(tmp_path)


@pytest.mark.soak
def test_a_reset_gives_a_tube_that_a_lying_gauge_relieved_its_time_anew(
    played: Play,
) -> None:
    """Found by the search, seed 1, growth 373: the clock had run on behind the lie."""
    lie = fault("sensor_wrong", "material_growth", 30.0, lasts_s=10.0, target="gauge", amount=2.0)
    verdict = played(scenario(lie, second_growth=True, hydrogen_sccm=10.0, temperature_c=790.0))
    assert verdict.violation is None, verdict.violation
    assert "reset by a person" in told(verdict)
    assert verdict.demands["no inert gas over a hot source"] > TRIP_S


@pytest.mark.thorough
def test_the_worst_leak_that_nothing_sees_ignites_nothing(played: Play) -> None:
    """Found by the search, seed 1, growth 373: 15 sccm of air beside 30 of argon."""
    leak = fault("air_leak", "ramp", 60.0, amount=LEAK_SCCM_MAX)
    verdict = played(scenario(leak, argon_sccm=85.0, hydrogen_sccm=5.0))
    assert verdict.violation is None, verdict.violation
    assert "hydrogen into a tube that holds air" in verdict.demands


@pytest.mark.parametrize("path", [SHORT_LINE, default_lab_path()], ids=["short", "shipped"])
def test_no_recipe_has_so_little_argon_beside_hydrogen_that_a_leak_could_ignite(path: Path) -> None:
    name = "hydrogen only in flowing inert gas"
    (row,) = (each for each in read_lab(path).envelope.interlocks if each.name == name)
    (argon,) = row.require
    assert isinstance(argon, Bound)
    assert (
        AIR_O2 * LEAK_SCCM_MAX / (LEAK_SCCM_MAX + argon.low) < 0.9 * FAULTS.numbers["limiting_o2"]
    )
    assert argon.low < 0.99 * BESIDE_HYDROGEN_SCCM


@pytest.mark.promise(12)
@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["write_lost", "write_refused"])
@pytest.mark.parametrize("port", ["relays", "heat", "hydrogen"])
def test_each_way_is_off_though_one_safe_frame_was_lost_or_refused_when_the_harness_died(
    played: Play, port: str, kind: str
) -> None:
    """Found from outside: one exception to the contactor's frame, and the mains stayed on."""
    unheard = fault(kind, "ramp", 59.0, target=port, amount=1.0)
    verdict = played(scenario(unheard, fault("kill", "ramp", 60.0), hydrogen_sccm=20.0))
    assert verdict.injected == 2
    assert verdict.violation is None, verdict.violation


@pytest.mark.thorough
def test_a_port_that_refuses_all_leaves_every_other_way_off(played: Play) -> None:
    refuses = fault("writes_refused", "ramp", 59.0, target="relays")
    verdict = played(scenario(refuses, fault("kill", "ramp", 60.0), hydrogen_sccm=20.0))
    assert verdict.violation is None, verdict.violation


@pytest.mark.soak
def test_what_a_run_left_on_a_port_that_was_cut_is_sent_when_the_port_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by the search, seed 1, growth 196: its room had no guard for a run that has ended."""
    plan, lost = read_lab(default_lab_path()), draw(1, 196, 1.0, FAULTS)
    verdict = play(plan, lost, tmp_path / "with")
    assert verdict.violation is None, verdict.violation
    assert "reset by a person" in told(verdict)
    monkeypatch.setattr(GuardLeft, "keep", lambda *args: None)
    alone = play(plan, lost, tmp_path / "without").violation
    assert alone is not None
    assert alone.rule == "output of the furnace left on by the line"
