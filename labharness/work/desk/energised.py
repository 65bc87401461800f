"""Finds the heat, gases, light and current that a plan may add, by its commands and its pre-flight.

A capability declares gases, temperature and hours. Its plan shows them too, in its commands and in
pre-flight; the more severe of both is weighed. A command that adds energy and was not stated is
refused when it is sent.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from labharness.core.vocabulary import Command
from labharness.core.vocabulary.comm_loss import comm_loss_text
from labharness.core.vocabulary.texts import CodedError, Text
from labharness.core.vocabulary.units import CELSIUS, TEMPERATURES, temperature_in
from labharness.instruments.driver import Adds
from labharness.safety.kernel import Interlock
from labharness.work.admission.risk import UNKNOWN, categories_of_gas, common_name, safe_in_time
from labharness.work.plan import Instruction, InstructionSet, Prediction, stated_commands

FLOWED_CM3 = 1.0
"""A gas was let in if the meter of pre-flight counts more: a nominal meter has no noise."""

CATEGORIES: Mapping[Adds, tuple[str, ...]] = {
    Adds.HEAT: ("high_temperature",),
    Adds.GAS: (),  # by which gas it is
    Adds.LIGHT: ("laser",),
    Adds.CURRENT: ("electrical",),
}
MEASURES = {"hold": ("duration_s",), "rate_of_rise": ("settle_s", "duration_s")}


class BadPlan(CodedError, ValueError, code="bad_plan"):
    """A plan that cannot be weighed; the message names the step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergySource:
    """One thing on a line that adds energy.

    Attributes:
        name: The instrument's; of a relay that feeds none, its channel.
        adds: The kind of energy, or gas.
        gas: The gas, as its driver names it.
        switches: Channels that let it add energy, each with its value while it adds none.
        powers: The same for channels that set no bound on the amount.
        targets: Temperature setpoints, each with the highest value the envelope allows (degC).
        shown: Channels that measure the temperature, each with its unit.
        harmless: It cannot harm a person within the envelope.
    """

    name: str
    adds: Adds
    gas: str = ""
    switches: Mapping[str, float] = field(default_factory=dict)
    powers: Mapping[str, float] = field(default_factory=dict)
    targets: Mapping[str, float] = field(default_factory=dict)
    shown: Mapping[str, str] = field(default_factory=dict)
    harmless: bool = False

    def added_by(self, command: Command) -> bool:
        """Return whether it adds energy after a command."""
        idle = {**self.switches, **self.powers}.get(command.channel)
        return command.channel in self.targets or (idle is not None and command.value != idle)

    def highest_c(self, commands: Sequence[Command]) -> float:
        """Return its highest temperature by these commands; ``inf`` without a bound."""
        asked_c = [
            temperature_in(CELSIUS, each.value, each.unit)
            for each in commands
            if each.channel in self.targets and each.unit in TEMPERATURES
        ]
        driven = any(each.channel in self.powers and self.added_by(each) for each in commands)
        if asked_c and not driven:
            return max(asked_c)
        return max(self.targets.values(), default=math.inf)


@dataclass(frozen=True, slots=True, kw_only=True)
class Energised:
    """The gases, heat and hazards that a plan brings to a line.

    Attributes:
        gases: Each gas it lets in, by its common name.
        temperature_c_max: The highest temperature of all heaters; ``None`` without heat.
        categories: The hazard categories.
    """

    gases: tuple[str, ...]
    temperature_c_max: float | None
    categories: tuple[str, ...]


def stated(
    instructions: InstructionSet, highest: Mapping[str, float]
) -> tuple[tuple[str, Command], ...]:
    """Return each command that a plan states, with the step that states it.

    Every branch and every fall-back counts as taken, at both ends of a number within bounds.
    A value from the result of an earlier step counts as the highest the envelope allows, or one.

    Args:
        instructions: The plan.
        highest: The envelope's highest value of each channel.

    Raises:
        BadPlan: A step lacks what its action needs.
    """
    found = []
    for each in instructions.instructions:
        try:
            ways = each.ways()
            commands = (
                command for action, asked in ways for command in stated_commands(action, asked)
            )
            for command in commands:
                if isinstance(command.value, str) and each.references():
                    value = highest.get(command.channel, 1.0)
                    command = Command(command.channel, value, command.unit)
                if type(command.value) not in (int, float) or not isinstance(command.channel, str):
                    raise TypeError(
                        Text("plan.no_number", channel=command.channel, value=command.value)
                    )
                found.append((each.instruction_id, command))
        except (KeyError, TypeError, ValueError) as why:
            raise BadPlan(
                "plan.unsaid", step=each.instruction_id, action=each.action, why=str(why)
            ) from None
    return tuple(found)


def energised(
    commands: Iterable[Command], sources: Sequence[EnergySource], prediction: Prediction | None
) -> Energised:
    """Return the energy that a plan adds.

    Args:
        commands: All that it states, also those that may be skipped.
        sources: The sources of energy of the line.
        prediction: The pre-flight; ``None`` before it, or without a simulated plant.
    """
    asked = tuple(commands)
    gases: list[str] = []
    categories: list[str] = []
    hottest_c: list[float] = []
    used_cm3 = {} if prediction is None else prediction.gas_used_cm3
    for source in sources:
        adding = [each for each in asked if source.added_by(each)]
        if source.adds is Adds.GAS:
            flowed_cm3 = used_cm3.get(source.name, 0.0)
            if adding or flowed_cm3 > FLOWED_CM3:
                gases.append(common_name(source.gas))
                categories += categories_of_gas(source.gas)
        elif adding and not source.harmless:
            categories += CATEGORIES[source.adds]
            if source.adds is Adds.HEAT:
                hottest_c.append(source.highest_c(adding))
                if prediction is not None:
                    hottest_c += [
                        temperature_in(CELSIUS, prediction.highest.get(channel, -math.inf), unit)
                        for channel, unit in source.shown.items()
                    ]
    return Energised(
        gases=tuple(dict.fromkeys(gases)),
        temperature_c_max=max(hottest_c, default=None),
        categories=tuple(dict.fromkeys(categories)),
    )


def stays_energised(
    commands: Iterable[Command], on_comm_loss: Mapping[str, str], interlocks: Iterable[Interlock]
) -> tuple[str, ...]:
    """Return the energised channels that would stay so if every program on the line died.

    A channel is energised by a value above an interlock whose loss under power runs a
    procedure (heat, flammable gas, the laser).
    """
    found: dict[str, str] = {}
    for command in commands:
        channel = command.channel
        does = on_comm_loss.get(channel, UNKNOWN)
        if not safe_in_time(does) and any(
            row.on_loss and channel in row.guards and command.value > row.above
            for row in interlocks
        ):
            found[channel] = Text("pair", what=channel, why=comm_loss_text(does))
    return tuple(found.values())


def _harms_nobody(source: EnergySource) -> bool:
    return source.harmless or (source.adds is Adds.GAS and not categories_of_gas(source.gas))


def least_duration_s(steps: Sequence[Instruction]) -> float:
    """Return the time (s) that steps of a plan take at least, by the waits that they state."""
    said = (each.parameters.get(name) for each in steps for name in MEASURES.get(each.action, ()))
    return sum((float(value) for value in said if isinstance(value, int | float)), 0.0)


def scope(commands: Iterable[Command], sources: Sequence[EnergySource]) -> Callable[[Command], str]:
    """Return a function that says why a command was not weighed; ``""`` where it was.

    Only commands that add energy are checked; the gate judges all.
    """
    weighed: dict[str, list[float]] = {}
    for each in commands:
        weighed.setdefault(each.channel, []).append(each.value)

    def why_not(command: Command) -> str:
        adding = [each for each in sources if each.added_by(command)]
        if all(map(_harms_nobody, adding)):
            return ""
        values = weighed.get(command.channel, [])
        if command.value in values or any(0 <= command.value <= each for each in values):
            return ""
        up_to: str = Text("energy.none")
        if values:
            up_to = Text("energy.up_to", value=max(values), unit=command.unit).rstrip()
        names = ", ".join(dict.fromkeys(each.name for each in adding))
        return Text(
            "energy.beyond",
            channel=command.channel,
            value=command.value,
            unit=command.unit,
            hazards=names,
            up_to=up_to,
        )

    return why_not
