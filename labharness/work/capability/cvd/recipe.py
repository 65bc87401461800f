"""From what a caller asks to a recipe that this line can carry out, or why it cannot.

The lab's table of growths: its microscope, and its own values of a recipe.
"""

import math
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from pydantic import Field, StrictFloat, model_validator

from labharness.core.vocabulary.texts import Text
from labharness.core.vocabulary.units import ZERO_CELSIUS_K, celsius_from_kelvin
from labharness.work.capability import CannotDo, LineFacts, ReasonCode
from labharness.work.capability.raman_map import LaserNm, MicroscopeSettings


class CvdSettings(MicroscopeSettings):
    """The table ``[capability.cvd-material-synthesis]``.

    Attributes:
        laser_nm: Wavelength of the Raman laser.
        a1g_si_monolayer: A value without uncertainty, date and sample, with its ``source``: no
            calibration, but the middle of that prior.
        growth: This line's own values for a growth; what it does not name has a default.
    """

    laser_nm: LaserNm
    a1g_si_monolayer: StrictFloat | None = Field(default=None, gt=0)
    source: str | None = None
    growth: dict[str, StrictFloat] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_value(self) -> Self:
        if self.a1g_si is not None and self.a1g_si_monolayer is not None:
            raise ValueError("a1g_si is the calibration; take a1g_si_monolayer out")
        if (self.a1g_si_monolayer is None) != (self.source is None):
            raise ValueError("a1g_si_monolayer and source come together")
        return self

    def reference(self) -> dict[str, dict[str, Any]]:
        """Return the known ratios of this microscope, for a planner."""
        found = super().reference()
        if self.a1g_si_monolayer is not None:
            found["a1g_si"] = {"value": self.a1g_si_monolayer, "on": self.source}
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowthFacts(LineFacts):
    """Facts on a line whose lab file has what every growth needs."""

    settings: CvdSettings
    tube_volume_cm3: float


def growth_line(facts: LineFacts) -> GrowthFacts:
    """Return the facts on a line for the planner of growths.

    Raises:
        ValueError: The lab file lacks entries that every growth needs.
    """
    if not isinstance(facts.settings, CvdSettings):
        raise ValueError(Text("growths.none"))
    if facts.tube_volume_cm3 is None:
        raise ValueError(Text("growths.volume"))
    return GrowthFacts(
        limits=facts.limits,
        settings=facts.settings,
        tube_volume_cm3=facts.tube_volume_cm3,
        ambient_torr=facts.ambient_torr,
    )


GROWTH_DEFAULTS: Mapping[str, float] = tomllib.loads(
    Path(__file__).with_name("growth.toml").read_text("utf-8")
)
"""Values of a growth, unless the lab's ``growth`` has others."""

GROWTH_C_MIN = 550.0
"""Below it sulfurisation is too slow and MoO3 has less than 1 Pa: no film."""

SULFUR_C_MIN = 115.0
"""Sulfur melts here; below it the boat delivers nothing."""

ARGON_SCCM_MIN = 20.0
"""Below it vapours stay and multilayers grow; the envelope asks for 10 over hot sulfur."""

BESIDE_HYDROGEN_SCCM = 85.0
"""Least argon with hydrogen: the envelope asks for 80, and a controller may read 1 % beside its
setpoint. More than is needed thins the vapours: at 100 sccm the short line grows little."""

HYDROGEN_SCCM_MAX = 20.0
"""Most hydrogen over hot sulfur, which every plan has: it makes hydrogen sulfide, and the envelope
allows what the exhaust dilutes to the 20 ppm of OSHA's ceiling. Published growths take 5 to 20."""

ABSOLUTE_ZERO_C = -ZERO_CELSIUS_K

NAME_MAX = 60  # characters of a name that is told back

USUAL_RANGE = Text("remedy.usual_range")

MATERIAL, SUBSTRATE = "mos2", "sio2/si"

LACKS = {
    "mose2": Text("lacks.mose2"),
    "wse2": Text("lacks.wse2"),
    "ws2": Text("lacks.ws2"),
    "graphene": Text("lacks.graphene"),
    "hbn": Text("lacks.hbn"),
}

BOUNDS = (
    ("ramp_c_per_min", "furnace.setpoint_rate"),
    ("argon_sccm", "argon.setpoint"),
    ("hydrogen_sccm", "hydrogen.setpoint"),
    ("sulfur_temperature_c", "sulfur.setpoint"),
)
"""The channel of the line for each value of a recipe; the furnace is checked before them."""

LEAST = (
    ("dwell_s", 0.0),
    ("ramp_c_per_min", 0.1),
    ("argon_sccm", ARGON_SCCM_MIN),
    ("moo3_mass_mg", 0.1),
    ("sulfur_mass_mg", 0.1),
    ("sulfur_temperature_c", SULFUR_C_MIN),
)
"""The least value of each number in a recipe."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Everything that is chosen for one growth of MoS2 on SiO2/Si."""

    sample_id: str
    temperature_c: float
    dwell_s: float
    ramp_c_per_min: float
    argon_sccm: float
    hydrogen_sccm: float
    moo3_mass_mg: float
    sulfur_mass_mg: float
    sulfur_temperature_c: float
    target_material: str = "MoS2"
    substrate: str = "SiO2/Si"


class _Bad(ValueError):
    """An input that cannot be: the message names it, and ``way_out`` is a suggestion."""

    def __init__(self, message: str, way_out: str, code: ReasonCode = "invalid_input") -> None:
        super().__init__(message)
        self.way_out = way_out
        self.code = code


def growth_facts(facts: GrowthFacts) -> dict[str, float]:
    """Return every value for a growth on this line.

    Raises:
        ValueError: The lab file names a value that no growth takes, or one that is not above 0.
    """
    for misfit in growth_misfits(facts):
        raise ValueError(misfit)
    return {**GROWTH_DEFAULTS, **facts.settings.growth}


def growth_misfits(facts: GrowthFacts) -> Iterator[str]:
    """Return the values of the lab file that no growth can use."""
    for name, value in facts.settings.growth.items():
        if name not in GROWTH_DEFAULTS:
            known = ", ".join(GROWTH_DEFAULTS)
            yield Text("recipe.no_value", name=name, known=known)
        elif not (math.isfinite(value) and value > 0):
            yield Text("recipe.not_positive", name=name, value=value)


def make_recipe(inputs: Mapping[str, Any], facts: GrowthFacts) -> Recipe | CannotDo:
    """Choose a recipe: the middle of the range asked for, and the line's own values.

    It never clips: a value beyond the line is answered with the limit. The inputs fit the schema of
    the declaration: admission has refused others.
    """
    try:
        return _recipe(inputs, facts)
    except _Bad as why:
        return CannotDo(why.code, str(why), why.way_out)


def _recipe(inputs: Mapping[str, Any], facts: GrowthFacts) -> Recipe:
    _check_names(inputs)
    growth = growth_facts(facts)
    given, asked = inputs.get("recipe", {}), inputs.get("temperature_range", {})
    lowest_c, highest_c = _range_c(asked)
    temperature_c = _temperature_c(given, lowest_c, highest_c, growth["temperature_c"])
    hydrogen_sccm = _number(given, "hydrogen_sccm", 0.0, 0.0)
    if hydrogen_sccm:
        growth["argon_sccm"] = max(growth["argon_sccm"], BESIDE_HYDROGEN_SCCM)
    chosen: dict[str, Any] = {name: _number(given, name, growth[name], low) for name, low in LEAST}
    chosen["hydrogen_sccm"] = hydrogen_sccm
    if hydrogen_sccm and chosen["argon_sccm"] < BESIDE_HYDROGEN_SCCM:
        least = Text("at_least", value=BESIDE_HYDROGEN_SCCM)
        text = Text("recipe.argon", argon=chosen["argon_sccm"], least=least)
        raise _Bad(text, Text("recipe.set_argon", least=least))
    hottest = max(temperature_c, highest_c) if math.isfinite(highest_c) else temperature_c
    _check_limit("temperature_range.max", "furnace.setpoint", hottest, facts)
    for name, channel in BOUNDS:
        _check_limit(f"recipe.{name}", channel, chosen[name], facts)
    if hydrogen_sccm > HYDROGEN_SCCM_MAX:
        most = Text("at_most", value=HYDROGEN_SCCM_MAX)
        text = Text("recipe.hydrogen", hydrogen=hydrogen_sccm, most=most)
        raise _Bad(text, Text("recipe.set_hydrogen", most=most))
    if temperature_c < GROWTH_C_MIN:
        kelvin, lowest = _in_kelvin(asked), GROWTH_C_MIN
        cold = Text("recipe.too_cold", temperature=temperature_c, least=lowest, in_kelvin=kelvin)
        raise _Bad(cold, USUAL_RANGE)
    return Recipe(
        sample_id=str(given.get("sample_id", "sample")), temperature_c=temperature_c, **chosen
    )


def _in_kelvin(asked: Mapping[str, Any]) -> str:
    """Repeat a range that was written in kelvin: often the unit is what is wrong."""
    if asked.get("unit") != "kelvin":
        return ""
    bounds = [f"{asked[name]:g}" for name in ("min", "max") if name in asked]
    return Text("recipe.kelvin", bounds=tuple(bounds)) if bounds else ""


def _check_names(inputs: Mapping[str, Any]) -> None:
    material, substrate = inputs.get("target_material"), inputs.get("substrate")
    can = Text("recipe.can")
    if _plain(material) != MATERIAL:
        lacks = LACKS.get(_plain(material), Text("lacks.unknown"))
        text = Text("recipe.material", material=_clipped(material), can=can, lacks=lacks)
        raise _Bad(text, Text("remedy.material"))
    if _plain(substrate) != SUBSTRATE:
        text = Text("recipe.substrate", substrate=_clipped(substrate), can=can)
        raise _Bad(text, Text("remedy.substrate"))


def _clipped(given: object) -> str:
    """Show what a caller wrote, harmless to a terminal and no longer than a line."""
    text = repr(given)
    return text if len(text) <= NAME_MAX else f"{text[:NAME_MAX]}…"


def _plain(name: object) -> str:
    subscripts = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")
    return str(name).translate(subscripts).replace(" ", "").casefold()


def _check_limit(name: str, channel: str, value: float, facts: GrowthFacts) -> None:
    limit = facts.limits.get(channel)
    if limit is None:
        if channel == "hydrogen.setpoint" and value == 0:
            return
        missing = Text("recipe.no_channel", channel=channel, name=name)
        raise _Bad(missing, Text("remedy.other_line"), "resource_unavailable")
    low, high, unit = limit
    if not low <= value <= high:
        allowed = Text("span", low=low, high=high, unit=unit)
        outside = Text(
            "recipe.outside", name=name, value=value, unit=unit, channel=channel, allowed=allowed
        )
        way_out = Text("remedy.keep", name=name, allowed=allowed, channel=channel)
        raise _Bad(outside, way_out, "safety_violation")


def _temperature_c(
    given: Mapping[str, Any], lowest_c: float, highest_c: float, usual_c: float
) -> float:
    if "temperature_c" in given:
        wanted = _number(given, "temperature_c", usual_c, ABSOLUTE_ZERO_C)
        if not lowest_c <= wanted <= highest_c:
            text = Text("recipe.outside_range", value=wanted, low=lowest_c, high=highest_c)
            raise _Bad(text, Text("recipe.set_within"))
        return wanted
    if math.isfinite(lowest_c) and math.isfinite(highest_c):
        return (lowest_c + highest_c) / 2
    return min(max(usual_c, lowest_c), highest_c)


def _range_c(asked: Mapping[str, Any]) -> tuple[float, float]:
    """Return the lowest and the highest temperature asked for, without a bound an infinite one."""
    unit = asked.get("unit", "celsius")
    bounds = {"min": -math.inf, "max": math.inf}
    for name in bounds:
        if name in asked:
            bound = float(asked[name])
            bound = celsius_from_kelvin(bound) if unit == "kelvin" else bound
            if bound < ABSOLUTE_ZERO_C:
                text = Text("recipe.below_zero", name=name, value=asked[name], unit=unit)
                raise _Bad(text, USUAL_RANGE)
            bounds[name] = bound
    lowest_c, highest_c = bounds.values()
    if lowest_c > highest_c:
        text = Text("recipe.crossed", low=asked["min"], high=asked["max"], unit=unit)
        raise _Bad(text, USUAL_RANGE)
    return lowest_c, highest_c


def _number(recipe: Mapping[str, Any], name: str, default: float, least: float) -> float:
    value = recipe.get(name, default)
    if not value >= least:
        text = Text("recipe.too_small", where="recipe", name=name, value=value, least=least)
        raise _Bad(text, Text("recipe.set_least", name=f"recipe.{name}", least=least))
    return float(value)
