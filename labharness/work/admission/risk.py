"""Weighs the risk of a request, by rules that each give a reason."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Final, Literal

from labharness.core.vocabulary.comm_loss import safe_within_s
from labharness.core.vocabulary.texts import Text
from labharness.protocols.hcp.terms import RISK_LEVELS, Rejected, RiskLevel
from labharness.work.admission.audit import Screened
from labharness.work.admission.declaration import Declaration, Safety

HOT: Final[Mapping[str, float]] = {"celsius": 800.0, "kelvin": 1073.15}
"""From here on heat is R4, in each unit a caller may write; compared, never converted."""

_GASES: Final = (
    # GHS physical and health hazards as the European CLP regulation (EC 1272/2008, annex VI) lists
    # them: H220 extremely flammable, H270 oxidising, H330/H331 toxic if inhaled.
    ("argon", "ar", "inert"),
    ("nitrogen", "n2", "inert"),
    ("helium", "he", "inert"),
    ("oxygen", "o2", "oxidising"),
    ("hydrogen", "h2", "flammable"),
    ("methane", "ch4", "flammable"),
    ("hydrogen sulfide", "h2s", "flammable and toxic"),
    ("ammonia", "nh3", "flammable and toxic"),
    ("carbon monoxide", "co", "flammable and toxic"),
    ("chlorine", "cl2", "toxic"),
)
GAS_HAZARDS: Final = {name: hazard for *names, hazard in _GASES for name in names}
_COMMON: Final = {symbol: name for name, symbol, _ in _GASES}

COMM_LOSS_S_MAX: Final = 5.0
"""Time (s) in which an instrument must become safe by itself to run unattended: Klipper's bound for
a heater (klippy, MAX_HEAT_TIME)."""

UNKNOWN: Final = "unknown"

APPROVAL_FROM: Final[RiskLevel] = "R3"
"""From here on `requires_human_approval` means what it says (HCP layer 3, approval flow)."""


def common_name(gas: str) -> str:
    """Return the one name by which a gas is weighed and told: ``H2`` is hydrogen."""
    return _COMMON.get(gas.strip().lower(), gas.strip().lower())


def categories_of_gas(gas: str) -> tuple[str, ...]:
    """Return the hazard categories of a gas; one that no table knows has every hazard."""
    hazard = GAS_HAZARDS.get(gas.strip().lower(), "flammable and toxic")
    categories = {"flammable": "flammable_gas", "toxic": "toxic_gas"}
    return tuple(category for word, category in categories.items() if word in hazard)


def safe_in_time(on_comm_loss: str) -> bool:
    """Return whether ``safe(<s>)``, ``hold`` or ``unknown`` will do unattended."""
    within_s = safe_within_s(on_comm_loss)
    return within_s is not None and within_s <= COMM_LOSS_S_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskContext:
    """Facts of the plan and the laboratory, beside the inputs.

    No field has a default: a fact that was not looked up must not pass for a harmless one.

    Attributes:
        process_gases: Every gas that the plan opens, purge gas included: by the capability, by the
            plan's commands, and by its prediction.
        undeclared_gases: Those of them that the capability did not say.
        temperature_c_max: The highest temperature that the capability says, the plan sets or its
            prediction reaches; None if it heats nothing, ``inf`` where nothing bounds it.
        physical: The plan has a command or a manual step, whatever its capability says.
        hazardous: The capability, the plan's commands or its gases belong to a hazard category.
        attended: A person is there for the whole of the run.
        attended_at: When it could begin so that a person is, in UTC; ``""`` if never.
        shared_instrument: Another task may use an instrument of this one meanwhile.
        safeguards_missing: Hazards whose hardware safeguard is absent or past its proof test.
        stays_energised: Channels the plan energises whose instrument would leave them so, or is
            not known to do otherwise, if everything that talks to it died.
    """

    process_gases: tuple[str, ...]
    undeclared_gases: tuple[str, ...]
    temperature_c_max: float | None
    physical: bool
    hazardous: bool
    attended: bool
    attended_at: str
    shared_instrument: bool
    safeguards_missing: tuple[str, ...]
    stays_energised: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RiskFinding:
    """The reason that a rule applies, and the change that would end that, if there is one."""

    reason: str
    remedy: str | None = None


@dataclass(frozen=True, slots=True)
class RiskRule:
    """A rule: a floor or an escalation *to* a level, or steps *added* on top of all others."""

    name: str
    effect: Literal["at least", "add"]
    points: int
    applies: Callable[[Declaration, RiskContext, Mapping[str, Any]], RiskFinding | None]


@dataclass(frozen=True, slots=True)
class RiskAssessment:
    """A level with every rule behind it.

    `points` is the level as a number and may exceed 5: then no level covers the request, and it is
    refused rather than called R5. `needs_approval`: a person, or a standing approval, has to agree.
    """

    level: RiskLevel
    points: int
    applied: tuple[tuple[RiskRule, RiskFinding], ...]
    refusal: Rejected | None
    needs_approval: bool = False

    @property
    def reasons(self) -> tuple[str, ...]:
        """One sentence for each rule that applies, in the order of the rules."""
        return tuple(self.reason_of.values())

    @property
    def reason_of(self) -> dict[str, Text]:
        """Return that sentence by the name of its rule."""
        codes = {"at least": "risk.at_least", "add": "risk.plus"}
        return {
            rule.name: Text(codes[rule.effect], points=rule.points, why=finding.reason)
            for rule, finding in self.applied
        }


def points_of(level: str) -> int:
    """Return a level as a number, R1 as 1."""
    return RISK_LEVELS.index(level) + 1


def assess(
    declaration: Declaration, inputs: Mapping[str, Any], context: RiskContext
) -> RiskAssessment:
    """Weigh a request; refuse what exceeds the capability's ceiling, never cap it.

    Args:
        declaration: The capability's; sets the floor and the ceiling.
        inputs: As the caller sent them, already valid under the capability's schema.
        context: Facts of the plan and the laboratory.
    """
    found = ((rule, rule.applies(declaration, context, inputs)) for rule in RULES)
    applied = tuple((rule, finding) for rule, finding in found if finding is not None)
    points = _total(applied)
    assessment = RiskAssessment(RISK_LEVELS[min(points, 5) - 1], points, applied, None)
    return replace(assessment, refusal=_refusal(declaration, context, assessment))


def weigh(screened: Screened, context: RiskContext) -> RiskAssessment | Rejected:
    """Weigh the risk of a screened submission against the capability's ceiling and its caller."""
    declaration, caller = screened.declaration, screened.caller
    risk = assess(declaration, screened.submission.inputs, context)
    if risk.refusal is not None:
        return risk.refusal
    if risk.points > points_of(caller.risk_max):
        allowed = "R1" if caller.risk_max == "R1" else f"R1-{caller.risk_max}"
        down = way_down(risk, points_of(caller.risk_max))
        return Rejected(
            "risk_too_high",
            Text("risk.caller", level=risk.level, allowed=allowed, reasons=tuple(risk.reasons)),
            risk.level,
            down or Text("risk.no_way_down", level=risk.level),
        )
    harmful = context.physical and context.hazardous
    needs = declaration.safety.requires_human_approval or harmful
    return replace(risk, needs_approval=needs and risk.points >= points_of(APPROVAL_FROM))


def way_down(assessment: RiskAssessment, points_max: int) -> str | None:
    """Return the fewest changes that bring a request down to a level, or None if none do."""
    removable = [one for one in assessment.applied if one[1].remedy is not None]
    for count in range(1, len(removable) + 1):
        for dropped in combinations(removable, count):
            points = _total(tuple(one for one in assessment.applied if one not in dropped))
            if points <= points_max:
                steps = Text("both", parts=[str(finding.remedy) for _, finding in dropped])
                return Text("risk.way_down", steps=steps, points=points)
    return None


def _total(applied: Sequence[tuple[RiskRule, RiskFinding]]) -> int:
    floor = max((rule.points for rule, _ in applied if rule.effect == "at least"), default=1)
    return floor + sum(rule.points for rule, _ in applied if rule.effect == "add")


def _when(context: RiskContext) -> str:
    """Return a time at which a run would be attended, to follow advice; ``""`` for none."""
    return Text("remedy.when", at=context.attended_at) if context.attended_at else ""


def _refusal(
    declaration: Declaration, context: RiskContext, assessment: RiskAssessment
) -> Rejected | None:
    level, ceiling, when = assessment.level, declaration.safety.risk_ceiling, _when(context)
    if context.safeguards_missing and not context.attended:
        hazards = ", ".join(context.safeguards_missing)
        why = Text("risk.unguarded", hazards=hazards)
        return Rejected("safety_violation", why, level, Text("risk.proof", when=when))
    if context.stays_energised and not context.attended:
        channels = "; ".join(context.stays_energised)
        why = Text("risk.watchdog", within_s=COMM_LOSS_S_MAX, channels=channels)
        return Rejected("safety_violation", why, level, Text("risk.set_watchdog", when=when))
    if assessment.points <= points_of(ceiling):
        return None
    asked = f"R{assessment.points}" if assessment.points <= 5 else Text("risk.beyond")
    why = Text(
        "risk.ceiling",
        asked=asked,
        capability=declaration.name,
        ceiling=ceiling,
        reasons=tuple(assessment.reasons),
    )
    down = way_down(assessment, points_of(ceiling))
    way_out = down or Text("risk.other_capability", ceiling=ceiling)
    return Rejected("risk_too_high", why, level, way_out)


def _leaves(safety: Safety, context: RiskContext) -> str:
    """Return the side effects of a task that needs no physical resources; ``""`` of another."""
    physical = context.physical or safety.involves_physical_resources
    return "" if physical else safety.side_effects


def _without_effects(asked: Declaration, context: RiskContext, *_: object) -> RiskFinding | None:
    nothing = _leaves(asked.safety, context) == "none"
    return RiskFinding(Text("risk.no_effects")) if nothing else None


def _sandboxed(asked: Declaration, context: RiskContext, *_: object) -> RiskFinding | None:
    sandboxed = _leaves(asked.safety, context) not in ("", "none")
    return RiskFinding(Text("risk.sandbox")) if sandboxed else None


def _physical(asked: Declaration, context: RiskContext, *_: object) -> RiskFinding | None:
    if asked.safety.involves_physical_resources:
        return RiskFinding(Text("risk.physical"))
    return RiskFinding(Text("risk.undeclared")) if context.physical else None


def _hot(
    declaration: Declaration, context: RiskContext, inputs: Mapping[str, Any]
) -> RiskFinding | None:
    name = declaration.temperature_input
    asked = inputs.get(name)
    if isinstance(asked, Mapping):
        # Without a unit the number is taken for the hotter of the two readings.
        unit = str(asked.get("unit", "celsius"))
        limit = HOT.get(unit, 0.0)
        bounds = (asked.get("min"), asked.get("max"))
        highest = max((value for value in bounds if isinstance(value, int | float)), default=None)
        if highest is not None and highest >= limit:
            why = Text("risk.hot_asked", name=name, highest=highest, unit=unit, limit=limit)
            return RiskFinding(why, Text("remedy.cooler", name=name, limit=limit, unit=unit))
    planned_c = context.temperature_c_max
    if planned_c is not None and not planned_c < HOT["celsius"]:
        reaches = Text("risk.unbounded")
        if math.isfinite(planned_c):
            reaches = Text("celsius", value=planned_c)
        return RiskFinding(
            Text("risk.hot_planned", reaches=reaches, limit=HOT["celsius"]),
            # of a capability that takes no such input the advice would be untrue
            Text("remedy.range", name=name, limit=HOT["celsius"]) if name else None,
        )
    return None


def _hazardous_gas(_: Declaration, context: RiskContext, *__: object) -> RiskFinding | None:
    hazards = {
        # A gas that the table does not know has every hazard.
        gas: GAS_HAZARDS.get(gas.strip().lower(), "unknown, so taken for flammable and toxic")
        for gas in context.process_gases
    }
    grave = [gas for gas, what in hazards.items() if what not in _HARMLESS]
    if not grave:
        return None
    unsaid = Text("risk.gas_unsaid")
    undeclared = [gas for gas in grave if gas in context.undeclared_gases]
    found = [
        Text("risk.gas", gas=gas, hazard=hazards[gas], unsaid=unsaid if gas in undeclared else "")
        for gas in grave
    ]
    # no other recipe removes a gas that the capability does not declare
    remedy = None if undeclared else Text("remedy.without_gas", gases=tuple(grave))
    return RiskFinding(Text("risk.gases", gases=tuple(found)), remedy)


def _unattended(_: Declaration, context: RiskContext, *__: object) -> RiskFinding | None:
    if context.attended:
        return None
    return RiskFinding(Text("risk.unattended"), Text("remedy.attended", when=_when(context)))


def _shared(_: Declaration, context: RiskContext, *__: object) -> RiskFinding | None:
    if not context.shared_instrument:
        return None
    return RiskFinding(Text("risk.shared"), Text("remedy.free"))


def _unguarded(_: Declaration, context: RiskContext, *__: object) -> RiskFinding | None:
    if not context.safeguards_missing:
        return None
    hazards = ", ".join(context.safeguards_missing)
    return RiskFinding(Text("risk.safeguard", hazards=hazards), Text("remedy.proof"))


_HARMLESS: Final = frozenset({"inert", "oxidising"})

RULES: Final = (
    RiskRule("no side effects", "at least", 1, _without_effects),
    RiskRule("sandboxed", "at least", 2, _sandboxed),
    RiskRule("physical resources", "at least", 3, _physical),
    RiskRule("high temperature", "at least", 4, _hot),
    RiskRule("hazardous gas", "at least", 4, _hazardous_gas),
    RiskRule("unattended", "add", 1, _unattended),
    RiskRule("shared instrument", "add", 1, _shared),
    RiskRule("missing safeguard", "add", 1, _unguarded),
)
"""The rules of the house. The highest *at least* counts, then every *add*."""
