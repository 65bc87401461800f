"""While a growth cools: sulfur stays over the hot film, and no controller asks for heat.

Both lines are flown as pre-flight does, and the plant itself is asked, not its instruments.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from labharness.lab import default_lab_path, read_lab
from labharness.lab.config.lab_facts import lab_facts_of
from labharness.lab.wiring.preflight import predict
from labharness.work.capability import Planned
from labharness_simulators.plant import CvdTube
from rig import SHORT_LINE, submission

FILM_COOL_C = 550.0
"""Published growths keep sulfur until the film is below 500 to 600 degC."""

BEGIN_S = 30.0
"""Within so long after the mains went off, the controller is in manual at 0 %."""


@dataclass
class Flown:
    """What the plant says of itself, each time that it was stepped."""

    moments: list[Mapping[str, object]]

    def after_the_mains(self) -> list[Mapping[str, object]]:
        """Return the moments from the end of the furnace's mains on."""
        last = max(at for at, each in enumerate(self.moments) if each["furnace_mains"])
        return self.moments[last + 1 :]


def number(moment: Mapping[str, object], name: str) -> float:
    found = moment[name]
    assert isinstance(found, int | float)
    return found


@pytest.fixture(scope="module", params=[SHORT_LINE, default_lab_path()], ids=["short", "shipped"])
def flown(request: pytest.FixtureRequest) -> Flown:
    """The example's growth on each line's nominal plant."""
    lab: Path = request.param
    plan = read_lab(lab)
    facts = lab_facts_of(plan)
    _, payload = submission()
    name = payload.capability
    found = facts.capabilities[name].plan(payload.inputs, {}, facts.line_facts[name])
    moments: list[Mapping[str, object]] = []
    step = CvdTube.step

    def seen(plant: CvdTube, dt_s: float) -> None:
        step(plant, dt_s)
        moments.append(plant.truth())

    assert isinstance(found, Planned)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CvdTube, "step", seen)
        prediction = predict(plan, found.instructions, {})
    assert prediction.violation is None
    return Flown(moments)


@pytest.mark.promise(49)
def test_sulfur_flows_until_the_film_is_below_550_degrees(flown: Flown) -> None:
    cooling = flown.after_the_mains()
    hot = [each for each in cooling if number(each, "substrate_c") >= FILM_COOL_C]
    assert len(hot) > 5
    assert all(each["sulfur_mains"] for each in hot)
    assert min(number(each, "sulfur_c") for each in hot) > 190
    assert max(number(each, "argon_sccm") for each in hot) < 60, "the carrier's flow, not the flush"


def test_then_the_sulfur_is_off_and_the_tube_is_flushed(flown: Flown) -> None:
    cold = [each for each in flown.after_the_mains() if number(each, "substrate_c") < 450]
    assert not any(each["sulfur_mains"] for each in cold)
    assert max(number(each, "argon_sccm") for each in cold) > 400
    assert number(cold[-1], "sulfur_c") < 60


@pytest.mark.promise(49)
def test_no_controller_asks_for_heat_behind_its_open_contactor(flown: Flown) -> None:
    """It was full for an hour: the setpoint fell by 5 degC/min, and the furnace by 9."""
    for heater in ("furnace", "sulfur"):
        last = max(at for at, each in enumerate(flown.moments) if each[f"{heater}_mains"])
        off_s = number(flown.moments[last], "time_s")
        after = [
            number(each, f"{heater}_power")
            for each in flown.moments[last + 1 :]
            if number(each, "time_s") > off_s + BEGIN_S
        ]
        assert len(after) > 50
        assert max(after) == 0.0, heater
