"""A whole run of the CVD capability on the simulated physics, with no wire or kernel between."""

import asyncio
import json
import math
import random
from collections.abc import Mapping
from datetime import date
from functools import lru_cache
from typing import Any

import pytest

from labharness.core.clock import VirtualLoop, run
from labharness.core.vocabulary import Command, Ending, Outcome
from labharness.work.admission.schemas import output_fault
from labharness.work.capability import Answer, LineFacts, NoAnswer, Planned
from labharness.work.capability.cvd import CAPABILITY
from labharness.work.capability.cvd.recipe import CvdSettings
from labharness.work.plan import Executor, StepFailed, StepRecord
from labharness_simulators.plant import CvdTube

COILS = (
    *("box.argon_valve", "box.nitrogen_bypass_shut", "box.hydrogen_valve", "box.pump_isolation"),
    *("box.vent", "box.pump", "box.furnace_contactor", "box.sulfur_contactor"),
)
LIMITS: Mapping[str, tuple[float, float, str]] = {
    "furnace.setpoint": (0, 950, "degC"),
    "furnace.setpoint_rate": (0, 120, "degC/min"),
    "sulfur.setpoint": (0, 250, "degC"),
    "sulfur.setpoint_rate": (0, 60, "degC/min"),
    "argon.setpoint": (0, 500, "sccm"),
    "hydrogen.setpoint": (0, 50, "sccm"),
    **dict.fromkeys(COILS, (0, 1, "")),
    "laser.emission": (0, 1, ""),
    "laser.power": (0, 0.001, "W"),
    "spectrometer.wavelength": (500, 750, "nm"),
}
CALIBRATED = {"date": date(2025, 1, 15), "on": "this plant"}
SHORT = LineFacts(
    limits=LIMITS,
    tube_volume_cm3=200,
    settings=CvdSettings.model_validate(
        {
            "laser_nm": 532.0,
            **{
                name: {"value": value, "uncertainty": value / 6, **CALIBRATED}
                for name, value in (("a1g_si", 0.12), ("pl_raman", 20.0))
            },
            "growth": {
                "ramp_c_per_min": 50.0,
                "final_ramp_c_per_min": 50.0,
                "sulfur_ramp_c_per_min": 60.0,
                "moo3_mass_mg": 25.0,  # its fast ramp makes fewer nuclei
                "cool_tau_s": 600.0,
                "operator_s": 300.0,
            },
        }
    ),
)
INPUTS = {
    "target_material": "MoS2",
    "substrate": "SiO2/Si",
    "temperature_range": {"min": 700, "max": 750, "unit": "celsius"},
}
CONSTRAINTS = {"confidence_threshold": 0.95}


class Bench:
    """Operations straight on the plant's parts: ideal instruments, one tick a second."""

    def __init__(self, seed: int | None) -> None:
        chance = None if seed is None else random.Random(seed)
        self.plant = CvdTube(
            chance,
            tube_volume_l=0.2,
            furnace_mass_factor=0.08,
            furnace_loss_factor=2.5,
            sulfur_mass_factor=0.3,
            vented=True,  # as arming leaves it
        )
        self.part: dict[str, Any] = dict(self.plant.parts)
        self.set_to: dict[str, float] = {}
        self.commands: list[Command] = []
        self.lit_s = 0.0
        self.purged_cm3 = 0.0
        self.exposing_until_s = 0.0
        self.counts: list[int] = []
        for name in ("furnace", "sulfur"):
            self.part[name].controller = self._controller(name)

    def _controller(self, name: str) -> Any:
        working_c, integral = 25.0, 0.0

        def control(dt_s: float) -> None:
            nonlocal working_c, integral
            target = self.set_to.get(f"{name}.setpoint", 0.0)
            reach = self.set_to.get(f"{name}.setpoint_rate", 0.0) / 60.0 * dt_s
            working_c += max(-reach, min(reach, target - working_c))
            error = working_c - self.part[name].temperature_c
            power = error / 40.0 + integral
            if 0.0 <= power <= 1.0:
                integral += error / 40.0 / 150.0 * dt_s
            self.part[name].power_fraction = power

        return control

    async def perform(self, command: Command) -> Outcome:
        channel, value = command.channel, command.value
        if channel in LIMITS:
            low, high, unit = LIMITS[channel]
            assert low <= value <= high
            assert command.unit == unit
        self.commands.append(command)
        self.set_to[channel] = value
        instrument, _, name = channel.partition(".")
        if channel in COILS:
            self.part["relays"].coils[COILS.index(channel)] = bool(value)
        elif instrument in ("argon", "hydrogen"):
            self.part[instrument].setpoint_sccm = value
        elif channel == "laser.emission":
            self.part["laser"].on = bool(value)
        elif channel == "laser.power":
            self.part["laser"].power_w = value
        elif instrument == "stage":
            x, y, z = self.part["stage"].position_um
            self.part["stage"].move_to(*((value, y, z) if name == "x" else (x, value, z)))
        elif channel == "spectrometer.wavelength":
            self.part["spectrometer"].centre_nm = value
            while self.part["spectrometer"].moving:
                self._step()
        elif channel == "spectrometer.acquire":
            self.exposing_until_s = self.now_s() + self.set_to["spectrometer.exposure"] / 1000
            return Outcome(command, Ending.UNCONFIRMED)
        return Outcome(command, Ending.CONFIRMED, value)

    async def read(self, channel: str) -> float:
        if channel == "spectrometer.acquisition_busy":
            return float(self.now_s() < self.exposing_until_s)
        return self.latest(channel)

    async def query(
        self, instrument: str, name: str, about: Mapping[str, object] | None = None
    ) -> object:
        assert (instrument, name) == ("spectrometer", "spectrum")
        exposure_s = self.set_to["spectrometer.exposure"] / 1000
        spectrometer = self.part["spectrometer"]
        return spectrometer.wavelengths_nm(), spectrometer.exposure(exposure_s)

    def latest(self, channel: str) -> float:
        instrument, _, name = channel.partition(".")
        if instrument == "box":
            index = ("exhaust_flow", "lid_shut", "enclosure_shut", "estop_closed").index(name)
            return float(self.part["relays"].inputs[index])
        attribute = {
            "temperature": "temperature_c",
            "flow": "flow_sccm",
            "pressure": "pressure_torr",
            "moving": "moving",
        }[name]
        return float(getattr(self.part[instrument], attribute))

    def held_s(self) -> float:
        return 0.0

    def volumes_purged(self, contaminant: str) -> float:
        return self.purged_cm3 / 200

    def _step(self) -> None:
        self.plant.step(1.0)
        self.purged_cm3 += self.part["argon"].flow_sccm / 60.0
        self.lit_s += self.part["laser"].output_w > 0
        if self.part["relays"].lid_open:
            self.purged_cm3 = 0.0

    async def next_tick(self) -> None:
        await asyncio.sleep(0)
        self._step()

    def now_s(self) -> float:
        return self.plant.time_s

    async def confirm(self, action: str, text: str, details: Mapping[str, object]) -> str:
        until_s = self.now_s() + self.plant.operate(action, details)
        while self.now_s() < until_s:  # noqa: ASYNC110 - the asking step's ticks move the time
            await asyncio.sleep(0)
        self.plant.finish(action)
        return "tester"


@lru_cache(maxsize=8)
def grown(
    seed: int | None, temperature_c: float = 725.0, hydrogen_sccm: float = 0.0
) -> tuple[Bench, tuple[StepRecord, ...]]:
    """Grow and look; shared by the tests, which only read."""
    recipe = {"temperature_c": temperature_c, "hydrogen_sccm": hydrogen_sccm}
    inputs = {"target_material": "MoS2", "substrate": "SiO2/Si", "recipe": recipe}
    plan = CAPABILITY.plan(inputs, CONSTRAINTS, SHORT)
    assert isinstance(plan, Planned), plan
    bench = Bench(seed)
    executor = Executor(plan.instructions, bench, CAPABILITY.verbs)
    return bench, run(executor.run(), VirtualLoop())


def answered(seed: int | None = 1) -> Answer:
    found = CAPABILITY.answer(grown(seed)[1], CONSTRAINTS)
    assert isinstance(found, Answer), found
    return found


def test_the_outputs_are_what_the_declaration_promises() -> None:
    outputs = answered().outputs
    assert set(outputs) == CAPABILITY.declaration.produces()
    assert output_fault(CAPABILITY.declaration.output_schema, outputs) is None
    json.dumps(outputs, allow_nan=False)


def test_the_spectrum_shows_silicon_where_it_belongs() -> None:
    spectrum = answered().outputs["spectrum_data"]
    shift, intensity = spectrum["raman_shift"], spectrum["intensity"]
    assert len(shift) == len(intensity) == 1024
    top = max(range(len(shift)), key=intensity.__getitem__)
    assert shift[top] == pytest.approx(520.7, abs=0.6)


def test_the_covered_fraction_is_near_the_true_one() -> None:
    bench, _ = grown(1)
    raman = answered().outputs["raman_analysis"]
    true = bench.plant.truth()["coverage"][0]  # type: ignore[index]  # the referee's tuple
    sd = math.sqrt(true * (1 - true) / raman["places_surveyed"])
    assert abs(raman["covered_fraction"] - true) < 3 * sd
    assert raman["places_surveyed"] >= 16


def test_evidence_names_its_systematic_errors_and_every_spot_has_its_row() -> None:
    raman = answered().outputs["raman_analysis"]
    assert len(raman["evidence"]) == 3
    assert all(term["systematic_error"] for term in raman["evidence"])
    assert sum(raman["posterior"].values()) == pytest.approx(1.0)
    assert raman["credible_set"] == [1]
    assert len(raman["spots"]) == 9
    assert all(1000 < row["a1g_counts"] < 10_000 for row in raman["spots"])


def test_the_growth_log_has_one_row_a_phase_with_what_was_set_and_measured() -> None:
    rows = answered().outputs["growth_log"]
    assert [row["phase"] for row in rows] == [
        *("loading", "leak_check", "purge", "ramp", "material_growth", "cooling"),
        *("transfer", "characterisation", "analysis"),
    ]
    growth = rows[4]
    assert growth["duration_s"] == pytest.approx(600, abs=2)
    assert growth["measured"]["furnace.temperature"]["mean"] == pytest.approx(725, abs=10)
    assert growth["measured"]["sulfur.temperature"]["mean"] == pytest.approx(200, abs=10)
    assert rows[3]["setpoints"]["furnace.setpoint"] == 725
    ends = [row["started_at"] + row["duration_s"] for row in rows]
    assert ends[:-1] == pytest.approx([row["started_at"] for row in rows[1:]])


def test_the_raw_spectra_come_as_an_artifact() -> None:
    (artifact,) = answered().artifacts
    raw = json.loads(artifact.content)
    assert (artifact.name, artifact.media_type) == ("raw_spectrum", "application/json")
    assert len(raw["raman"]) == len(raw["photoluminescence"]) == 9
    assert raw["dark_counts"] == pytest.approx(300, abs=5)


def test_the_laser_is_on_to_measure_and_off_after() -> None:
    bench, _ = grown(1)
    emission = [each.value for each in bench.commands if each.channel == "laser.emission"]
    assert emission == [1, 0, 1, 0, 1, 0, 0]
    assert bench.part["laser"].output_w == 0
    lit = [each for each in bench.commands if each.channel == "laser.power"]
    assert max(each.value for each in lit) <= 0.0003


def test_sulfur_was_hot_whenever_the_furnace_was_above_650_degrees_on_its_way_up() -> None:
    _, records = grown(1)
    results = {each.instruction.instruction_id: each for each in records}
    assert (results["sulfur_hot"].result or {})["value"] >= 195
    assert (results["heat_to_growth"].result or {})["from"] < 650


def test_a_growth_with_hydrogen_runs_and_leaves_none_in_the_tube() -> None:
    bench, records = grown(1, 725.0, 5.0)
    assert isinstance(CAPABILITY.answer(records, CONSTRAINTS), Answer)
    flows = [each.value for each in bench.commands if each.channel == "hydrogen.setpoint"]
    assert flows == [5.0, 0.0]


def test_no_film_is_no_answer_and_says_where_was_looked() -> None:
    _, records = grown(1, 560.0)
    found = CAPABILITY.answer(records, CONSTRAINTS)
    assert isinstance(found, NoAnswer)
    assert found.reason == "no film at any of 49 surveyed places"
    assert found.partial_outputs["raman_analysis"]["covered_fraction"] == 0
    assert len(found.partial_outputs["growth_log"]) == 9


def test_a_threshold_that_is_not_reached_is_no_answer_but_its_evidence_is_kept() -> None:
    found = CAPABILITY.answer(grown(1)[1], {"confidence_threshold": 1.0})
    assert isinstance(found, NoAnswer)
    assert "is below the threshold 1 after 9 spots" in found.reason
    assert found.partial_outputs["raman_analysis"]["posterior"]["1"] > 0.9


def test_doubt_is_answered_with_more_spots_up_to_the_bound() -> None:
    inputs = {**INPUTS, "recipe": {"temperature_c": 740.0}}
    plan = CAPABILITY.plan(inputs, {"confidence_threshold": 1.0}, SHORT)
    assert isinstance(plan, Planned)
    bench = Bench(3)
    records = run(Executor(plan.instructions, bench, CAPABILITY.verbs).run(), VirtualLoop())
    analysis = next(each for each in records if each.instruction.instruction_id == "analysis")
    assert len((analysis.result or {})["spots"]) == 15
    assert bench.part["laser"].output_w == 0


def test_a_leak_ends_the_run_before_anything_is_heated() -> None:
    plan = CAPABILITY.plan(INPUTS, CONSTRAINTS, SHORT)
    assert isinstance(plan, Planned)
    bench = Bench(1)
    bench.plant.faults.air_leak_sccm = 1.0
    executor = Executor(plan.instructions, bench, CAPABILITY.verbs)
    with pytest.raises(StepFailed, match="look for a leak"):
        run(executor.run(), VirtualLoop())
    assert all(each.value == 0 for each in bench.commands if "contactor" in each.channel)
    found = CAPABILITY.answer(executor.records(), CONSTRAINTS)
    assert isinstance(found, NoAnswer)
    phases = [row["phase"] for row in found.partial_outputs["growth_log"]]
    assert phases == ["loading", "leak_check"]
