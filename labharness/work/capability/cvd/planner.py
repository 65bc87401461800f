"""From a recipe to the instructions of a whole run: load, purge, grow, cool, look."""

import math
from collections.abc import Mapping
from dataclasses import asdict

from labharness.core.vocabulary.texts import Text
from labharness.work.capability import Planned
from labharness.work.capability.cvd.recipe import GrowthFacts, Recipe, growth_facts
from labharness.work.capability.raman_map import add_look
from labharness.work.capability.steps import Steps
from labharness.work.plan import InstructionKind

COLD_C = 20.0
"""Setpoint of a heater that is off: below every room, so that nothing heats."""

VACUUM_TORR = 0.1
"""A rotary pump reaches 0.02 Torr on a tight tube; above 0.1 Torr the leak rate is not judged."""

VENTED_TORR_GAUGE = -15.0
"""A vented tube reads more, against the room; one left under vacuum is filled until it does."""

FULL_TORR_GAUGE = 0.0
"""The vent opens from 20 Torr below the room on, and oil is sucked back from 8 below it on."""

FILL_VOLUMES_PER_MIN = 0.5
"""A small tube must not pass the pressure trip between the last reading and the open vent."""

MOO3_C = 640.0
"""From 650 degC on MoO3 evaporates (19 Pa); sulfur is at temperature 10 degC before."""

BELOW_GROWTH_C = 20.0
"""A growth colder than that waits for its sulfur this far below its temperature."""

SULFUR_SETTLE_S = 120.0
SULFUR_TOLERANCE_C = 5.0
FINAL_RAMP_C = 30.0
"""The last part, which is heated slowly against overshoot."""

HEATERS = ("furnace", "sulfur")

ROOM_C = 25.0
IDLE_SCCM = 100.0
RISE_SETTLE_S, RISE_S = 15.0, 60.0
TORR_PER_MBAR = 0.750062

OPERATOR_S_MAX = 86_400.0
SWITCH_S = 30.0
SLACK, SPARE_S = 1.5, 600.0
"""A ramp or a wait may take this many times as long as computed, and ten minutes more."""


def plan_growth(recipe: Recipe, facts: GrowthFacts, threshold: float) -> Planned:
    """Write the plan of a growth and of the measurement of the film.

    Args:
        recipe: The growth.
        facts: The line.
        threshold: Confidence below which more spots are measured.
    """
    steps = _Growth(recipe, facts)
    steps.load()
    steps.leak_check()
    steps.purge()
    steps.ramp()
    steps.grow()
    steps.cool()
    steps.transfer()
    add_look(steps, facts.settings.laser_nm, facts.settings.reference(), threshold)
    # over hot sulfur, which every plan has, hydrogen makes hydrogen sulfide
    more = ("hydrogen", "hydrogen sulfide") if recipe.hydrogen_sccm > 0 else ()
    gases = ("argon", "nitrogen", *more)
    return steps.planned(asdict(recipe), gases, recipe.temperature_c)


class _Growth(Steps):
    """The steps of one growth on one line."""

    def __init__(self, recipe: Recipe, facts: GrowthFacts) -> None:
        super().__init__(slack=SLACK, spare_s=SPARE_S, switch_s=SWITCH_S)
        self.recipe, self.facts, self.growth = recipe, facts, growth_facts(facts)
        self.volume_cm3, self.purge_sccm = facts.tube_volume_cm3, self.growth["purge_sccm"]
        self.fill_sccm = min(self.purge_sccm, math.ceil(FILL_VOLUMES_PER_MIN * self.volume_cm3))

    def load(self) -> None:
        self.stage = "loading"
        for heater in HEATERS:
            self._heat_off("load", heater)
        open_below_c, volumes = self.growth["open_below_c"], self.growth["purge_volumes"]
        # a run that died under vacuum left it so; of any other the vent is open: it takes no time
        self._fill("load_", VENTED_TORR_GAUGE, expected_s=0.0)
        for heater in HEATERS:
            self.wait(
                f"load_{heater}_cold",
                Text("step.cold", heater=heater),
                1.0,
                f"{heater}.temperature",
                timeout_s=OPERATOR_S_MAX,  # whatever an earlier run left hot has cooled by then
                at_most=open_below_c,
            )
        # an earlier run, or a person, may have left any gas in the tube
        what = Text("step.flush", volumes=volumes, contaminant="hydrogen")
        self._prove("load_flush_hydrogen", what, "hydrogen")
        told = ("moo3_mass_mg", "sulfur_mass_mg", "substrate", "sample_id")
        details = {name: getattr(self.recipe, name) for name in told}
        self.set("load_flow", "argon.setpoint", IDLE_SCCM, "sccm", Text("step.idle_flow"))
        text = Text(
            "operator.load",
            moo3_mg=self.recipe.moo3_mass_mg,
            substrate=self.recipe.substrate,
            sulfur_mg=self.recipe.sulfur_mass_mg,
        )
        self._ask("load", Text("step.load"), "load", text, details)
        self.wait("load_lid_shut", Text("step.lid_shut"), 5.0, "box.lid_shut", at_least=1)
        self.may_resume(Text("checkpoint.loaded"), {**self._cold(), "box.lid_shut": (1, 1)})

    def leak_check(self) -> None:
        litres = self.volume_cm3 / 1000.0
        torr_per_min_max = self.growth["leak_mbar_l_per_s"] / litres * 60.0 * TORR_PER_MBAR
        self.stage = "leak_check"
        self.set("bypass_shut", "box.nitrogen_bypass_shut", 1, "", Text("step.bypass_shut"))
        self.set("argon_off", "argon.setpoint", 0, "sccm", Text("step.argon_stop"))
        self.set("argon_shut", "box.argon_valve", 0, "", Text("step.argon_shut"))
        self.set("vent_shut", "box.vent", 0, "", Text("step.vent_shut"))
        self.set("pump_on", "box.pump", 1, "", Text("step.pump_start"))
        self.set("pump_open", "box.pump_isolation", 1, "", Text("step.pump_open"))
        what = Text("step.pump_down")
        self.wait("pumped_down", what, 30.0 * litres, "gauge.pressure", at_most=VACUUM_TORR)
        self.set("pump_shut", "box.pump_isolation", 0, "", Text("step.isolate"))
        times = {"settle_s": RISE_SETTLE_S, "duration_s": RISE_S}
        asked = {"channel": "gauge.pressure", "unit": "Torr", **times, "limit": torr_per_min_max}
        self.add(
            "leak_rate",
            "rate_of_rise",
            Text("step.leak_check"),
            asked,
            expected_s=RISE_SETTLE_S + RISE_S,
            timeout_s=RISE_SETTLE_S + RISE_S + SWITCH_S,
            kind=InstructionKind.ANALYSIS,
        )
        self.set("pump_off", "box.pump", 0, "", Text("step.pump_stop"))

    def purge(self) -> None:
        self.stage = "purge"
        self._fill("", FULL_TORR_GAUGE, expected_s=self.volume_cm3 / self.fill_sccm * 60.0)
        what = Text("step.purge", volumes=self.growth["purge_volumes"])
        self._prove("purge_air", what, "air")
        sccm, what = self.recipe.argon_sccm, Text("step.carrier")
        self.set("argon_flow", "argon.setpoint", sccm, "sccm", what)

    def _fill(self, prefix: str, until_torr_gauge: float, expected_s: float) -> None:
        """Fill the tube with argon, open the vent, and let the purge flow through."""
        self.set(f"{prefix}argon_open", "box.argon_valve", 1, "", Text("step.argon_open"))
        self.holdable = False  # argon runs into a shut tube until the vent is open
        self.set(f"{prefix}fill", "argon.setpoint", self.fill_sccm, "sccm", Text("step.fill"))
        self.wait(
            f"{prefix}filled",
            Text("step.room_pressure"),
            expected_s,
            "gauge.pressure",
            timeout_s=SLACK * self.volume_cm3 / self.fill_sccm * 60.0 + SPARE_S,
            at_least=self.facts.ambient_torr + until_torr_gauge,
        )
        self.set(f"{prefix}vent_open", "box.vent", 1, "", Text("step.vent_open"))
        self.holdable = True
        name, what = f"{prefix}purge_flow", Text("step.purge_flow")
        self.set(name, "argon.setpoint", self.purge_sccm, "sccm", what)

    def _prove(self, name: str, what: str, contaminant: str) -> None:
        """Let the purge flow through until that much of it was measured."""
        volumes = self.growth["purge_volumes"]
        expected_s = volumes * self.volume_cm3 / self.purge_sccm * 60.0
        asked = {"contaminant": contaminant, "volumes": volumes}
        self.add(name, "purge", what, asked, expected_s=expected_s)

    def ramp(self) -> None:
        ramp_c_per_min, top_c = self.recipe.ramp_c_per_min, self.recipe.temperature_c
        sulfur_c = self.recipe.sulfur_temperature_c
        sulfur_c_per_min = self.growth["sulfur_ramp_c_per_min"]
        self.stage = "ramp"
        self.set("furnace_mains", "box.furnace_contactor", 1, "", Text("step.furnace_mains"))
        self.set("sulfur_mains", "box.sulfur_contactor", 1, "", Text("step.sulfur_mains"))
        if self.recipe.hydrogen_sccm > 0:
            self.set("hydrogen_open", "box.hydrogen_valve", 1, "", Text("step.hydrogen_open"))
            sccm, what = self.recipe.hydrogen_sccm, Text("step.hydrogen")
            self.set("hydrogen_flow", "hydrogen.setpoint", sccm, "sccm", what)
        gate_c = min(MOO3_C, top_c - BELOW_GROWTH_C)
        lead_s = (sulfur_c - ROOM_C) / sulfur_c_per_min * 60.0 + SULFUR_SETTLE_S
        start_c = round(gate_c - ramp_c_per_min * lead_s / 60.0)
        at_c = ROOM_C
        if start_c > ROOM_C:
            self.heat("heat_to_sulfur_start", "furnace", "step.heat", at_c, start_c, ramp_c_per_min)
            at_c = start_c
        rate, what = "sulfur.setpoint_rate", Text("step.sulfur_rate")
        self.set("sulfur_rate", rate, sulfur_c_per_min, "degC/min", what)
        self.set("sulfur_heat", "sulfur.setpoint", sulfur_c, "degC", Text("step.sulfur_heat"))
        self.heat("heat_to_gate", "furnace", "step.heat", at_c, gate_c, ramp_c_per_min)
        left_s = max(lead_s - (gate_c - at_c) / ramp_c_per_min * 60.0, 0.0)
        what, hot_c = Text("step.sulfur_hot"), sulfur_c - SULFUR_TOLERANCE_C
        self.wait("sulfur_hot", what, left_s, "sulfur.temperature", at_least=hot_c)
        final_c_per_min, final_c = self.growth["final_ramp_c_per_min"], top_c - FINAL_RAMP_C
        if final_c_per_min < ramp_c_per_min and final_c > gate_c:
            self.heat("heat_to_final", "furnace", "step.heat", gate_c, final_c, ramp_c_per_min)
            gate_c = final_c
        final_c_per_min = min(ramp_c_per_min, final_c_per_min)
        self.heat("heat_to_growth", "furnace", "step.heat", gate_c, top_c, final_c_per_min)

    def grow(self) -> None:
        self.stage = "material_growth"
        channels = ["furnace.temperature", "sulfur.temperature", "argon.flow", "gauge.pressure"]
        if self.recipe.hydrogen_sccm > 0:
            channels.append("hydrogen.flow")
        self.add(
            "dwell",
            "hold",
            Text("step.grow", duration_s=self.recipe.dwell_s),
            {"duration_s": self.recipe.dwell_s, "channels": channels},
            expected_s=self.recipe.dwell_s,
            timeout_s=self.recipe.dwell_s + SPARE_S,
        )
        if self.recipe.hydrogen_sccm > 0:
            self.set("hydrogen_stop", "hydrogen.setpoint", 0, "sccm", Text("step.hydrogen_stop"))
            self.set("hydrogen_shut", "box.hydrogen_valve", 0, "", Text("step.hydrogen_shut"))

    def cool(self) -> None:
        """Cool the film in its own sulfur first, then flush the tube while all of it gets cold."""
        open_below_c, sulfur_until_c = self.growth["open_below_c"], self.growth["sulfur_until_c"]
        self.stage = "cooling"
        self._heat_off("cool", "furnace")
        self._rest("furnace")

        def cooling_s(from_c: float, to_c: float) -> float:
            hotter = (from_c - ROOM_C) / max(to_c - ROOM_C, 1.0)
            return self.growth["cool_tau_s"] * math.log(max(hotter, 1.0))

        if sulfur_until_c < self.recipe.temperature_c:
            what = Text("step.film_cool", below_c=sulfur_until_c)
            cool_s = cooling_s(self.recipe.temperature_c, sulfur_until_c)
            self.wait("film_cool", what, cool_s, "furnace.temperature", at_most=sulfur_until_c)
        self._heat_off("cool", "sulfur")
        self._rest("sulfur")
        self.set("cool_flow", "argon.setpoint", self.purge_sccm, "sccm", Text("step.cool_flow"))
        cool_s = cooling_s(min(self.recipe.temperature_c, sulfur_until_c), open_below_c)
        what = Text("step.furnace_cold")
        self.wait("furnace_cold", what, cool_s, "furnace.temperature", at_most=open_below_c)
        what = Text("step.sulfur_cold")
        self.wait("sulfur_cold", what, 0.0, "sulfur.temperature", at_most=open_below_c)
        # a later run does not know what is in the tube: it flushes as before the loading
        again = ("argon_open", "fill", "filled", "vent_open", "purge_flow", "flush_hydrogen")
        shut = {**self._cold(), "box.lid_shut": (1, 1)}
        self.may_resume(Text("checkpoint.cooled"), shut, tuple(f"load_{name}" for name in again))
        contaminants = {"air": 1.0}
        if self.recipe.hydrogen_sccm > 0:
            contaminants["hydrogen"] = self.growth["purge_volumes"]
        for contaminant, volumes in contaminants.items():
            self.add(
                f"flush_{contaminant}",
                "purge",
                Text("step.flush", volumes=volumes, contaminant=contaminant),
                {"contaminant": contaminant, "volumes": volumes, "from_now": contaminant == "air"},
                timeout_s=3600.0,
            )

    def transfer(self) -> None:
        self.stage = "transfer"
        self.set("idle_flow", "argon.setpoint", IDLE_SCCM, "sccm", Text("step.idle_flow"))
        what, text = Text("step.transfer"), Text("operator.transfer")
        self._ask("transfer", what, "move_to_microscope", text, {})
        self.wait("lid_shut", Text("step.lid_shut"), 5.0, "box.lid_shut", at_least=1)
        what = Text("step.enclosure_shut")
        self.wait("enclosure_shut", what, 5.0, "box.enclosure_shut", at_least=1)
        shut = {**self._cold(), "box.lid_shut": (1, 1), "box.enclosure_shut": (1, 1)}
        self.may_resume(Text("checkpoint.transferred"), shut)

    def _ask(
        self, name: str, what: Text, action: str, text: Text, details: Mapping[str, object]
    ) -> None:
        """Have a person do what no instrument does."""
        asked = {"action": action, "text": text, "details": details}
        usual_s, most_s = self.growth["operator_s"], OPERATOR_S_MAX
        self.add(name, "ask_operator", what, asked, expected_s=usual_s, timeout_s=most_s)

    def _cold(self) -> dict[str, tuple[float | None, float | None]]:
        """Return the readings with which the tube may be opened."""
        return {f"{heater}.temperature": (None, self.growth["open_below_c"]) for heater in HEATERS}

    def _heat_off(self, when: str, heater: str) -> None:
        """Open a heater's contactor, and let its setpoint fall as fast as the line allows.

        A setpoint that falls more slowly than the heater cools asks for full output behind the open
        contactor: a welded one would heat.
        """
        name = heater.capitalize()
        what = Text("step.mains_off", heater=name)
        self.set(f"{when}_{heater}_mains_off", f"box.{heater}_contactor", 0, "", what)
        fastest = self.facts.limits.get(f"{heater}.setpoint_rate")
        if fastest is not None:
            _, rate, unit = fastest
            what = Text("step.rate", heater=name, rate=rate, unit=unit)
            self.set(f"{when}_{heater}_rate", f"{heater}.setpoint_rate", rate, unit, what)
        what = Text("step.setpoint", heater=name, to_c=COLD_C)
        self.set(f"{when}_{heater}_setpoint", f"{heater}.setpoint", COLD_C, "degC", what)

    def _rest(self, heater: str) -> None:
        """Leave a heater that is off without output: its controller in manual, at 0 %.

        A furnace of small mass cools faster than any setpoint may fall. The line's ``prepare`` puts
        the controller to automatic again before the next run.
        """
        if not {f"{heater}.mode", f"{heater}.output"} <= self.facts.limits.keys():
            return
        name = heater.capitalize()
        self.set(f"cool_{heater}_manual", f"{heater}.mode", 1, "", Text("step.manual", heater=name))
        what = Text("step.output_off", heater=name)
        self.set(f"cool_{heater}_output", f"{heater}.output", 0, "%", what)
