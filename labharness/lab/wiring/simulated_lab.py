"""Builds the simulated lab: a plant, and behind each loopback port a bus with its simulators."""

import random
from collections.abc import Callable, Generator, Mapping
from inspect import signature
from typing import Any

import simpy

from labharness.core.clock import Chance, Clock
from labharness.instruments.simulation import Face, LoopEnvironment, SimulatedBus
from labharness.lab.config.kinds import load_simulator, plant_kinds
from labharness.lab.config.lab_file import BadLabFile, LabFile

STEP_S = 1.0  # the plant's step; its own substeps are finer where they must be


class SimulatedLab:
    """A plant that lives in the loop's time, and the buses its instruments hang on.

    Args:
        file: The lab file.
        clock: The clock of its time.
        chance: The seed of its scatter and noise.
        step_s: The plant's step.
        nominal: No scatter, no noise.
        wire_time: The buses count the time on the wire; not where a served port does.

    Attributes:
        plant: The physics.
        env: Its world.
        buses: By port.
        framings: By port, a face that knows how long a frame is on it.
        faces: By instrument.

    Raises:
        BadLabFile: The lab has no plant, or its settings do not fit.
    """

    def __init__(
        self,
        file: LabFile,
        clock: Clock,
        chance: Chance,
        *,
        step_s: float = STEP_S,
        nominal: bool = False,
        wire_time: bool = True,
    ) -> None:
        if file.plant is None:
            raise BadLabFile("plant.needed")
        self.env = LoopEnvironment(clock.loop)
        self._step_s = step_s
        make_plant = plant_kinds()[file.plant.kind]
        try:
            self.plant: Any = make_plant(
                None if nominal else chance.stream("plant"),
                **_at_its_ambient(make_plant, file, nominal=nominal),
            )
        except (TypeError, ValueError) as why:
            what = f"[plant] {file.plant.kind}"
            raise BadLabFile("pair", what=what, why=str(why)) from None
        self.env.process(self._live())
        self.buses: dict[str, SimulatedBus] = {}
        self.framings: dict[str, Face] = {}
        self.faces: dict[str, Any] = {}
        for port in file.port:
            if port.link != "loopback":
                continue
            faces = []
            for row in file.instrument:
                if row.port == port.name:
                    self.faces[row.name] = self._face(row, chance.stream(f"face/{row.name}"))
                    faces.append(self.faces[row.name])
            if faces:
                self.framings[port.name] = faces[0]
            baud = port.baud if wire_time else 0
            self.buses[port.name] = SimulatedBus(
                self.env, faces, baud=baud, chance=chance.stream(f"bus/{port.name}")
            )

    def _face(self, row: Any, chance: random.Random) -> Any:  # noqa: ANN401 - each kind its own
        settings = {**row.settings, **row.simulator}
        make_face: Callable[..., Any] = load_simulator(row.kind)
        try:
            return make_face(self.env, self.plant.parts[row.part], chance, **settings)
        except (TypeError, ValueError) as why:
            name, kind = row.name, row.kind
            raise BadLabFile("plant.simulator", name=name, kind=kind, why=str(why)) from None

    def _live(self) -> Generator[simpy.Event, object, None]:
        step = self.plant.step
        seconds = self.env.seconds
        step_s = self._step_s
        while True:
            yield seconds(step_s)
            step(step_s)

    def operate(self, action: str, details: Mapping[str, object]) -> float:
        """Begin a manual step in the simulated lab; return the seconds it takes."""
        self.env.sync()
        return float(self.plant.operate(action, details))

    def finish(self, action: str) -> None:
        """End a manual step in the simulated lab."""
        self.env.sync()
        self.plant.finish(action)


def _at_its_ambient(
    make_plant: Callable[..., Any], file: LabFile, *, nominal: bool
) -> dict[str, Any]:
    """Return a plant's settings, with the room's pressure as the lab file states it.

    A plant may stand in another room, as if the statement were wrong: the nominal one, on which
    plans are flown, stands in the room of the lab file.
    """
    settings = file.plant.stated if file.plant else {}
    stated = file.lab.ambient_torr
    if stated is None or "ambient_torr" not in signature(make_plant).parameters:
        return settings
    room = {"ambient_torr": stated}
    return {**settings, **room} if nominal else {**room, **settings}
