"""The relay box: eight coils that a face sets, four inputs that the line sets."""

from collections.abc import Sequence

from labharness_simulators.plant.faults import Faults

# Indices of K1..K8 as wired on the line. An energised coil opens its valve or closes its contactor.
# The bypass is the exception: it is normally open and flows without power.
ARGON_VALVE = 0
NITROGEN_BYPASS = 1
HYDROGEN_VALVE = 2
PUMP_ISOLATION = 3
VENT = 4
PUMP = 5
FURNACE_MAINS = 6
SULFUR_MAINS = 7


class Relays:
    """The coils as set, and the line's safety contacts (True is healthy).

    Attributes:
        coils: eight booleans, K1 first; True is energised. A box without power has all False.
        lid_held_open: an operator is loading or unloading the tube.
        enclosure_held_open: an operator is at the microscope's stage.
    """

    __slots__ = ("_faults", "coils", "enclosure_held_open", "lid_held_open")

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self.coils: list[bool] = [False] * 8
        self.lid_held_open = False
        self.enclosure_held_open = False

    @property
    def contacts(self) -> Sequence[bool]:
        """The contacts and valves; they follow their coils unless they stick."""
        stuck = self._faults.stuck
        if not stuck:
            return self.coils
        return [stuck.get(index, coil) for index, coil in enumerate(self.coils)]

    def stick(self, index: int) -> None:
        """Hold a contact or valve in its present state, against its coil."""
        self._faults.stuck[index] = self.contacts[index]

    @property
    def lid_open(self) -> bool:
        """True while the tube is open, by hand or by fault."""
        return self.lid_held_open or self._faults.lid_open

    @property
    def enclosure_shut(self) -> bool:
        """True while the laser enclosure is shut."""
        return not (self.enclosure_held_open or self._faults.enclosure_open)

    @property
    def inputs(self) -> tuple[bool, bool, bool, bool]:
        """Exhaust flows, lid shut, laser enclosure shut, E-stop loop closed."""
        faults = self._faults
        return (
            not faults.exhaust_lost,
            not self.lid_open,
            self.enclosure_shut,
            not faults.estop_open,
        )

    def mains_on(self, contactor: int) -> bool:
        """Return whether a heater has mains: its contactor and the E-stop loop are closed."""
        return self.contacts[contactor] and not self._faults.estop_open
