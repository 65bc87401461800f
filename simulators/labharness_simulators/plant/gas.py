"""Gas: mass flow controllers, and the well-mixed tube between them and the outlet."""

from math import exp

from labharness_simulators.plant.faults import Faults
from labharness_simulators.plant.relays import Relays

ATMOSPHERE_PA = 101_325.0
PA_PER_PSI = 6_894.757
PA_PER_TORR = ATMOSPHERE_PA / 760.0
SCCM_PA_M3_PER_S = ATMOSPHERE_PA * 1e-6 / 60.0  # 1 cm³ a minute at 0 °C and 1 atm
OXYGEN_IN_AIR = 0.2095
# regulators of all gases, above the room's pressure, because they work by difference
SUPPLY_PA = ATMOSPHERE_PA
BYPASS_SCCM = 500.0  # the nitrogen restrictor, at 1 atm behind it


class MassFlow:
    """A thermal or laminar mass flow controller behind its supply, with an optional relay valve.

    The controller brings its *measured* flow to the setpoint; the true flow differs by a gain and a
    zero error (Alicat class: ±0.6 % of reading, ±0.2 % of full scale, taken as two sigma).

    Attributes:
        setpoint_sccm: set by the face; below 0 or NaN counts as 0, at most 102.4 % of full scale.
        gas: name of the gas.
        drift: true flow divided by the true flow before the sensor drifted.
        true_sccm: true flow into the tube.
        ambient_pa: pressure of the room.
    """

    __slots__ = (
        "_faults",
        "_measured",
        "_name",
        "_noise",
        "_relays",
        "_valve",
        "ambient_pa",
        "drift",
        "full_scale_sccm",
        "gain",
        "gas",
        "gas_temperature_c",
        "setpoint_sccm",
        "true_sccm",
        "zero_sccm",
    )

    LAG_S = 0.4
    OVERRANGE = 1.024
    NOISE_OF_FULL_SCALE = 2e-4

    def __init__(
        self,
        gas: str,
        full_scale_sccm: float,
        relays: Relays,
        valve: int | None,
        *,
        faults: Faults,
        name: str,
        gain: float,
        zero_of_full_scale: float,
        ambient_pa: float = ATMOSPHERE_PA,
    ) -> None:
        self.ambient_pa = ambient_pa
        self.gas = gas
        self.full_scale_sccm = full_scale_sccm
        self.setpoint_sccm = 0.0
        self.true_sccm = 0.0
        self.gain = gain
        self.zero_sccm = zero_of_full_scale * full_scale_sccm
        self.gas_temperature_c = 23.0
        self._relays = relays
        self._valve = valve
        self._faults = faults
        self._name = name
        self.drift = 1.0
        self._measured = 0.0
        self._noise = 0.0

    @property
    def flow_sccm(self) -> float:
        """The measured flow in sccm that the controller reports; never below 0."""
        flow = self._measured + self._noise
        if self._faults.sensors:
            flow = self._faults.heard(self._name, flow)
            if flow != flow:
                return 0.0  # a dead flow sensor reads zero
        return flow if flow > 0.0 else 0.0

    @property
    def pressure_psia(self) -> float:
        """The inlet pressure in psia; it sags by 5 % at full flow."""
        sag = 0.05 * self._measured / self.full_scale_sccm
        return (self.ambient_pa + SUPPLY_PA) * (1.0 - sag) / PA_PER_PSI

    @property
    def valve_drive_percent(self) -> float:
        """The drive of the proportional valve; 100 when the flow cannot reach the setpoint."""
        wanted = self.setpoint_sccm
        if not wanted > 0.0:
            return 0.0
        share = self._measured / self.full_scale_sccm
        starved = self._measured < 0.9 * min(wanted, self.OVERRANGE * self.full_scale_sccm)
        return 100.0 if starved else 15.0 + 60.0 * share

    def step(self, decay: float, supply: float, noise: float) -> None:
        """Advance by one step: `decay` is exp(-dt/lag), `noise` a standard normal draw."""
        wanted = self.setpoint_sccm
        is_open = self._valve is None or self._relays.contacts[self._valve]
        target = 0.0
        if is_open and wanted > 0.0:
            most = self.OVERRANGE * self.full_scale_sccm
            target = (wanted if wanted < most else most) * supply
        measured = target + (self._measured - target) * decay
        self._measured = measured
        self._noise = noise * self.NOISE_OF_FULL_SCALE * self.full_scale_sccm
        if not is_open:
            self.true_sccm = 0.0
            return
        true = measured * self.gain * self.drift + (self.zero_sccm if target > 0.0 else 0.0)
        self.true_sccm = true if true > 0.0 else 0.0


class TubeGas:
    """The tube's gas as partial pressures of air, argon, nitrogen and hydrogen.

    Well mixed and isothermal: V dp/dt = ΣQ - S (p - p_base) - G (p - p_bubbler). Within a step the
    total follows its exact exponential; the species share it by dilution.

    Attributes:
        ambient_pa: the room's pressure. air, argon, nitrogen, hydrogen: partial pressures in Pa.
        out_sccm: flow out of the tube in the last step, through vent and pump.
        sucked_back_pa: gas that came in through the vent since the start, with the bubbler's oil.
    """

    __slots__ = (
        "_volume_m3",
        "air",
        "ambient_pa",
        "argon",
        "hydrogen",
        "nitrogen",
        "out_sccm",
        "pressure_pa",
        "sucked_back_pa",
    )

    PUMP_M3_PER_S = 1.0e-3  # a 5 m³/h rotary through trap and bellows
    PUMP_BASE_PA = 2.0
    VENT_M3_PER_S = 4.2e-3  # 500 sccm raise the tube by 2 mbar
    BUBBLER_PA = 1_000.0  # the oil column: back-pressure, and suction at which oil comes back
    LEAK_PA_M3_PER_S = 1.0e-5  # 1e-4 mbar L/s into vacuum: a good O-ring tube

    def __init__(self, volume_l: float, ambient_pa: float = ATMOSPHERE_PA) -> None:
        self._volume_m3 = volume_l * 1e-3
        self.ambient_pa = ambient_pa
        self.sucked_back_pa = 0.0
        self.open_to_room()

    def open_to_room(self) -> None:
        """Fill the tube with the room's air."""
        self.air = self.pressure_pa = self.ambient_pa
        self.argon = self.nitrogen = self.hydrogen = 0.0
        self.out_sccm = 0.0

    def evacuate_to(self, pressure_pa: float) -> None:
        """Leave only this pressure of the room's air in the tube."""
        self.open_to_room()
        self.air = self.pressure_pa = pressure_pa

    @property
    def supply_share(self) -> float:
        """The share 0..1 of a wanted flow that the supply still drives into the tube.

        Full flow up to half an atmosphere above the room, then falling to 0 at the supply's
        pressure: a blocked tube fills up to the pressure of the regulators.
        """
        share = (self.ambient_pa + SUPPLY_PA - self.pressure_pa) / (0.5 * ATMOSPHERE_PA)
        if share >= 1.0:
            return 1.0
        return share if share > 0.0 else 0.0

    @property
    def oxygen_fraction(self) -> float:
        """The mole fraction of oxygen."""
        return OXYGEN_IN_AIR * self.air / self.pressure_pa

    @property
    def hydrogen_fraction(self) -> float:
        """The mole fraction of hydrogen."""
        return self.hydrogen / self.pressure_pa

    def step(
        self,
        dt_s: float,
        *,
        air_sccm: float,
        argon_sccm: float,
        nitrogen_sccm: float,
        hydrogen_sccm: float,
        pumping: bool,
        venting: bool,
    ) -> None:
        """Advance by `dt_s` with the given flows in and the given outlets open."""
        per_s = SCCM_PA_M3_PER_S / self._volume_m3
        pressure, ambient = self.pressure_pa, self.ambient_pa
        air = air_sccm * per_s
        if pressure < ambient:
            air += self.LEAK_PA_M3_PER_S / self._volume_m3 * (1.0 - pressure / ambient)
        inflow = air + (argon_sccm + nitrogen_sccm + hydrogen_sccm) * per_s
        rate = 0.0  # 1/s: rate at which all outlets relax the pressure
        toward = inflow  # Pa/s: inflow at zero pressure, through the outlets too
        if pumping:
            pump = self.PUMP_M3_PER_S / self._volume_m3
            rate = pump
            toward += pump * self.PUMP_BASE_PA
        sucked = 0.0
        if venting:
            vent = self.VENT_M3_PER_S / self._volume_m3
            if pressure > ambient + self.BUBBLER_PA:
                rate += vent
                toward += vent * (ambient + self.BUBBLER_PA)
            elif pressure < ambient - self.BUBBLER_PA:
                # Below the oil column's head, air of the exhaust line bubbles back into the tube.
                rate += vent
                toward += vent * (ambient - self.BUBBLER_PA)
                sucked = vent
        if rate:
            settled = toward / rate
            after = settled + (pressure - settled) * exp(-rate * dt_s)
            if sucked:
                mean = settled + (pressure - after) / (rate * dt_s)  # a vent fills 0.2 L in 50 ms
                head = ambient - self.BUBBLER_PA - mean
                sucked = sucked * head if head > 0.0 else 0.0
                air += sucked
                inflow += sucked
                self.sucked_back_pa += sucked * dt_s
        else:
            after = pressure + inflow * dt_s
        out = pressure + inflow * dt_s - after  # Pa that left the tube
        if out < 0.0:
            out = 0.0
        self.out_sccm = out / (per_s * dt_s)
        thinning = out / (0.5 * (pressure + after))
        if thinning > 1e-12:
            kept = exp(-thinning)
            fresh = dt_s * (1.0 - kept) / thinning
        else:
            kept, fresh = 1.0, dt_s
        self.air = self.air * kept + air * fresh
        self.argon = self.argon * kept + argon_sccm * per_s * fresh
        self.nitrogen = self.nitrogen * kept + nitrogen_sccm * per_s * fresh
        self.hydrogen = self.hydrogen * kept + hydrogen_sccm * per_s * fresh
        # The dilution is exact for the mixture, the exponential for the total: the total decides.
        scale = after / (self.air + self.argon + self.nitrogen + self.hydrogen)
        self.air *= scale
        self.argon *= scale
        self.nitrogen *= scale
        self.hydrogen *= scale
        self.pressure_pa = after
