"""What the envelope that ships must refuse, and trip on, in numbers that stand here a second time.

Each is what the apparatus or the chemistry bears, typed in from its own source and not from the
envelope: a bound left open at one end, or ten times too wide, is seen here. The readings are those
of a sound, cold, swept line at sea level, and one of them is wrong at a time.
"""

from collections.abc import Mapping

import pytest

from labharness.core.vocabulary import Allowed, Command, Refused, Trip
from labharness.lab import default_lab_path, read_lab
from labharness.safety.kernel import Memory, Mode, judge, observe, tick
from model import NOW_S, Model, State

ENVELOPE = read_lab(default_lab_path()).envelope
MODEL = Model(ENVELOPE)
LACKING_CM3 = 4.9 * ENVELOPE.purge.volume_cm3
SILENT_S = 4.0  # what heats or flows is not trusted for longer unheard

Readings = Mapping[str, float]

SOUND: Readings = {
    "argon.flow": 300.0,
    "argon.setpoint": 300.0,
    "box.argon_valve": 1.0,
    "box.nitrogen_bypass_shut": 1.0,
    "box.vent": 1.0,
    "box.pump": 0.0,
    "gauge.pressure": 760.0,
    "laser.power": 0.001,
}
# Not readings: what the line has proven; of a purge that is not, a tenth of a volume lacks.
AIR, TIGHT, FLUSHED = "purged of air", "leak-checked", "flushed of hydrogen"

HEATERS = ("furnace", "sulfur")
FURNACE_ON = {"box.furnace_contactor": 1.0}
SULFUR_ON = {"box.sulfur_contactor": 1.0}
SHUT = {"box.vent": 0.0, "argon.flow": 0.0, "argon.setpoint": 0.0}
CLOSED = {"box.exhaust_flow": 0.0, "box.lid_shut": 0.0}
NEVER_STOPPED = {  # melting sulfur, glowing quartz, hydrogen, and what is on its way there
    "sulfur.temperature": 112.0,
    "furnace.temperature": 160.0,
    "furnace.setpoint": 120.0,
    "sulfur.setpoint": 120.0,
    FLUSHED: 0.0,
}

REFUSED: list[tuple[str, float, Readings, Readings]] = [
    # a command, what is so meanwhile, and each single thing that must refuse it
    (
        "box.furnace_contactor",
        1.0,
        {},
        {
            **CLOSED,
            "furnace.manual": 1.0,
            "furnace.mode": 1.0,
            "furnace.working_setpoint": 61.0,
            "furnace.sensor_break": 1.0,
            "furnace.temperature": 5.0,  # no room is so cold: the thermocouple lies
        },
    ),
    ("box.furnace_contactor", 1.0, {"furnace.temperature": 150.0}, {AIR: 0.0}),
    (
        "box.sulfur_contactor",
        1.0,
        {},
        {
            **CLOSED,
            "sulfur.manual": 1.0,
            "sulfur.mode": 1.0,
            "sulfur.working_setpoint": 61.0,
            "sulfur.sensor_break": 1.0,
            "sulfur.temperature": 5.0,
        },
    ),
    ("box.sulfur_contactor", 1.0, {"sulfur.temperature": 115.0}, {AIR: 0.0}),
    ("furnace.mode", 1.0, {}, FURNACE_ON),
    ("sulfur.mode", 1.0, {}, SULFUR_ON),
    (
        "furnace.setpoint",
        940.0,
        FURNACE_ON,
        {
            **CLOSED,
            "furnace.setpoint_rate": 0.0,
            "gauge.pressure": 650.0,
            "furnace.sensor_break": 1.0,
            AIR: 0.0,
            "argon.flow": 8.0,
            "box.vent": 0.0,
            "box.pump_isolation": 1.0,
        },
    ),
    ("furnace.setpoint", 940.0, FURNACE_ON, {"furnace.setpoint_rate": 25.0}),
    ("furnace.setpoint", 70.0, FURNACE_ON, {**CLOSED, "furnace.setpoint_rate": 25.0}),
    ("furnace.setpoint", 110.0, FURNACE_ON, {"box.vent": 0.0, "box.pump_isolation": 1.0}),
    ("furnace.setpoint", 150.0, FURNACE_ON, {AIR: 0.0, "argon.flow": 8.0}),
    ("furnace.setpoint", 870.0, FURNACE_ON, {"gauge.pressure": 650.0}),
    (
        "sulfur.setpoint",
        240.0,
        SULFUR_ON,
        {
            **CLOSED,
            "sulfur.setpoint_rate": 0.0,
            "sulfur.sensor_break": 1.0,
            AIR: 0.0,
            TIGHT: 0.0,
            "argon.flow": 8.0,
            "box.vent": 0.0,
            "box.pump_isolation": 1.0,
        },
    ),
    ("sulfur.setpoint", 240.0, SULFUR_ON, {"sulfur.setpoint_rate": 75.0}),
    ("sulfur.setpoint", 70.0, SULFUR_ON, {**CLOSED, "sulfur.setpoint_rate": 75.0}),
    ("sulfur.setpoint", 110.0, SULFUR_ON, {AIR: 0.0, TIGHT: 0.0, "argon.flow": 8.0}),
    ("sulfur.setpoint", 110.0, SULFUR_ON, {"box.vent": 0.0, "box.pump_isolation": 1.0}),
    ("argon.setpoint", 15.0, {}, NEVER_STOPPED),
    ("argon.setpoint", 70.0, {}, {FLUSHED: 0.0}),
    ("box.argon_valve", 0.0, {}, NEVER_STOPPED),
    (
        "box.vent",
        0.0,
        {},
        {
            **NEVER_STOPPED,
            "gauge.pressure": 850.0,
            "box.nitrogen_bypass_shut": 0.0,
            "nitrogen.setpoint": 5.0,
            "argon.setpoint": 5.0,  # less than any gauge would show
        },
    ),
    ("box.vent", 0.0, {}, {"gauge.pressure": 650.0}),
    ("box.vent", 1.0, SHUT, {"gauge.pressure": 700.0, "box.pump_isolation": 1.0}),
    ("nitrogen.setpoint", 400.0, {}, {"box.vent": 0.0}),
    ("box.nitrogen_bypass_shut", 0.0, {}, {"box.vent": 0.0}),
    (
        "box.pump_isolation",
        1.0,
        {**SHUT, "box.pump": 1.0},
        {
            "furnace.temperature": 110.0,
            "sulfur.temperature": 110.0,
            FLUSHED: 0.0,
            "box.lid_shut": 0.0,
            "box.vent": 1.0,
            "box.pump": 0.0,
        },
    ),
    ("box.pump", 0.0, {**SHUT, "box.pump": 1.0}, {"box.pump_isolation": 1.0}),
    (
        "hydrogen.setpoint",
        50.0,
        {"box.hydrogen_valve": 1.0},
        {
            **CLOSED,
            "box.vent": 0.0,
            "h2_detector.fault": 1.0,
            "h2_detector.state": 0.0,
            "h2_detector.concentration": 1200.0,  # a fortieth of the lower limit is 1000 ppm
            AIR: 0.0,
            TIGHT: 0.0,
            "argon.flow": 70.0,
            "hydrogen.watchdog_ms": 0.0,
            "hydrogen.setpoint_source": 1.0,
            "box.pump_isolation": 1.0,
        },
    ),
    ("hydrogen.setpoint", 50.0, {"box.hydrogen_valve": 1.0}, {"h2_detector.state": 2.0}),
    (
        "laser.emission",
        1.0,
        {},
        {"box.enclosure_shut": 0.0, "box.lid_shut": 0.0, "laser.power": 0.002},
    ),
    *(
        (
            f"operator.{action}",
            0.0,
            {},
            {
                "furnace.temperature": 90.0,
                "sulfur.temperature": 90.0,
                "box.furnace_contactor": 1.0,
                "box.sulfur_contactor": 1.0,
                "box.hydrogen_valve": 1.0,
                "box.pump_isolation": 1.0,
                "laser.emission": 1.0,
                FLUSHED: 0.0,
            },
        )
        for action in ("load", "move_to_microscope")
    ),
    ("operator.put_under_microscope", 0.0, {}, {"laser.emission": 1.0}),
    ("hydrogen.setpoint", 25.0, {"box.hydrogen_valve": 1.0}, {"sulfur.temperature": 116.0}),
    ("sulfur.setpoint", 110.0, SULFUR_ON, {"hydrogen.setpoint_active": 25.0}),
    ("sulfur.setpoint", 60.0, SULFUR_ON, {"sulfur.sensor_break": 1.0}),
    ("argon.setpoint", 19.9, {}, {"furnace.temperature": 700.0}),
    ("argon.setpoint", 20.0, {"furnace.temperature": 700.0}, {}),
    *((f"{heater}.mode", 0.0, {**FURNACE_ON, **SULFUR_ON}, {}) for heater in HEATERS),
    # cold, it may wait for its purge
    *((f"box.{heater}_contactor", 1.0, {AIR: 0.0}, {}) for heater in HEATERS),
]

BEYOND: Mapping[str, tuple[float, float]] = {
    # what may be set, and what may not: quartz, jackets, controllers, detectors, a sample
    "furnace.setpoint": (940.0, 960.0),
    "furnace.setpoint_rate": (20.0, 22.0),
    "furnace.output": (0.0, 1.0),
    "sulfur.setpoint": (250.0, 255.0),
    "sulfur.setpoint_rate": (60.0, 65.0),
    "sulfur.output": (0.0, 1.0),
    "argon.setpoint": (490.0, 500.0),
    "nitrogen.setpoint": (490.0, 500.0),
    "hydrogen.setpoint": (50.0, 55.0),
    "laser.power": (0.001, 0.0012),
}

ENERGISED: Readings = {
    "furnace.setpoint": 940.0,
    "furnace.working_setpoint": 940.0,
    "furnace.temperature": 900.0,
    "sulfur.setpoint": 200.0,
    "sulfur.working_setpoint": 200.0,
    "sulfur.temperature": 200.0,
    "box.furnace_contactor": 1.0,
    "box.sulfur_contactor": 1.0,
}
HYDROGEN: Readings = {
    "box.hydrogen_valve": 1.0,
    "hydrogen.setpoint": 50.0,
    "hydrogen.setpoint_active": 50.0,
    "hydrogen.flow": 50.0,
}
A_LITTLE_HYDROGEN: Readings = {
    "box.hydrogen_valve": 1.0,
    "hydrogen.setpoint": 20.0,
    "hydrogen.setpoint_active": 20.0,
    "hydrogen.flow": 20.0,
}
LEFT_HOT: Readings = {"furnace.temperature": 500.0, "sulfur.temperature": 150.0}

LEAK, SHUTDOWN = "close_all_valves_and_alert", "immediate_shutdown"
INERT, NO_EXHAUST = "hold_inert", {"box.exhaust_flow": 0.0}
TRIPS: list[tuple[Readings, str, Readings, Readings]] = [
    # what is so, the procedure, each single thing that trips to it, and what is as usual
    (
        HYDROGEN,
        LEAK,
        {
            **CLOSED,
            "box.vent": 0.0,
            "h2_detector.fault": 1.0,
            "h2_detector.state": 0.0,
            "h2_detector.concentration": 1200.0,
            "argon.flow": 70.0,
            AIR: 0.0,
            "hydrogen.watchdog_ms": 0.0,
            "hydrogen.setpoint_source": 1.0,
            "box.pump_isolation": 1.0,
            "hydrogen.flow": 65.0,
        },
        {"h2_detector.concentration": 900.0, "argon.flow": 85.0, "hydrogen.flow": 55.0},
    ),
    (HYDROGEN, LEAK, {"h2_detector.state": 2.0}, {}),
    (
        {},
        LEAK,
        {"h2_detector.concentration": 4100.0, "argon.flow": 520.0, "nitrogen.flow": 520.0},
        {"h2_detector.concentration": 3800.0, "argon.flow": 495.0, "nitrogen.flow": 495.0},
    ),
    ({}, "relieve_pressure", {"gauge.pressure": 880.0}, {"gauge.pressure": 860.0}),
    (
        ENERGISED,
        SHUTDOWN,
        {
            "box.lid_shut": 0.0,
            "furnace.temperature": 1010.0,
            "sulfur.temperature": 310.0,
            "furnace.sensor_break": 1.0,
            "sulfur.sensor_break": 1.0,
            "gauge.fault": 1.0,
            "box.estop_closed": 0.0,
            "gauge.pressure": 650.0,
            "argon.flow": 8.0,
            "box.vent": 0.0,
            "box.pump_isolation": 1.0,
            AIR: 0.0,
        },
        {"furnace.temperature": 990.0, "sulfur.temperature": 290.0, "gauge.pressure": 720.0},
    ),
    (LEFT_HOT, SHUTDOWN, {"box.lid_shut": 0.0}, {"furnace.temperature": 600.0}),
    ({"sulfur.temperature": 120.0}, SHUTDOWN, {"argon.flow": 8.0, "box.lid_shut": 0.0}, {}),
    ({"furnace.temperature": 160.0}, SHUTDOWN, {"box.lid_shut": 0.0}, {}),
    ({"furnace.temperature": 910.0}, SHUTDOWN, {"gauge.pressure": 650.0}, {}),
    ({"nitrogen.setpoint": 100.0, "nitrogen.flow": 100.0}, SHUTDOWN, {"box.vent": 0.0}, {}),
    (
        {"laser.emission": 1.0},
        SHUTDOWN,
        {"box.enclosure_shut": 0.0, "box.lid_shut": 0.0, "laser.output_power": 0.002},
        {"laser.output_power": 0.0012},
    ),
    (ENERGISED, INERT, NO_EXHAUST, {}),
    ({**ENERGISED, **A_LITTLE_HYDROGEN}, INERT, NO_EXHAUST, {}),
    (LEFT_HOT, INERT, NO_EXHAUST, {}),
    ({"furnace.temperature": 160.0}, INERT, NO_EXHAUST, {"furnace.temperature": 140.0}),
    ({"sulfur.temperature": 105.0}, INERT, NO_EXHAUST, {"sulfur.temperature": 95.0}),
    ({"box.furnace_contactor": 1.0}, SHUTDOWN, NO_EXHAUST, {}),
    (HYDROGEN, LEAK, {"sulfur.temperature": 116.0}, {"sulfur.temperature": 112.0}),
]

SETTINGS = {"gauge.fault", "laser.power"}
"""Settings, read more seldom: what they set is watched."""


def remembered(*changes: Readings) -> Memory:
    """The memory of a running line that has read all this just now."""
    found = {key: value for each in (SOUND, *changes) for key, value in each.items()}
    proven = {key: found.pop(key, 1.0) for key in (AIR, TIGHT, FLUSHED)}
    state = State(purged=int(proven[AIR]), tight=int(proven[TIGHT]), tripped=0)
    memory = MODEL.load(state, found)
    for gas, whole in (("air", proven[AIR]), ("hydrogen", proven[FLUSHED])):
        memory.proofs.purged.passed_cm3[gas] = 1e9 if whole else LACKING_CM3
    memory.mode = Mode.RUNNING
    return memory


def allowed(channel: str, value: float, *changes: Readings) -> bool:
    command = Command(channel, value, ENVELOPE.limits[channel].unit)
    return isinstance(judge(command, remembered(*changes), NOW_S), Allowed)


def trips_of(memory: Memory, now_s: float = NOW_S) -> list[Trip]:
    tracks = [memory.track(name) for name in memory.envelope.watches]
    if now_s == NOW_S:
        found = observe(memory, tracks, [track.value for track in tracks], now_s)
    else:
        found = ()
    return [each for each in (*found, *tick(memory, now_s)) if each.procedure]


def graver(*changes: Readings) -> str:
    """The procedure that what is so runs; ``""`` for none."""
    trips = trips_of(remembered(*changes))
    return min(trips, key=lambda trip: trip.cause.rank).procedure if trips else ""


REFUSED_NAMES = [
    f"{channel} = {value:g}, {number}" for number, (channel, value, *_) in enumerate(REFUSED)
]


@pytest.mark.promise(10)
@pytest.mark.parametrize("row", REFUSED, ids=REFUSED_NAMES)
def test_a_command_is_refused_for_each_single_thing_that_forbids_it(
    row: tuple[str, float, Readings, Readings],
) -> None:
    channel, value, so, wrongs = row
    assert allowed(channel, value, so), "when all is sound"
    let_through = [wrong for wrong in wrongs if allowed(channel, value, so, {wrong: wrongs[wrong]})]
    assert let_through == []


def test_inert_stays_over_hydrogen_by_its_own_row_whatever_else_dilutes_it() -> None:
    verdict = judge(Command("argon.setpoint", 0.0, "sccm"), remembered({FLUSHED: 0.0}), NOW_S)
    assert isinstance(verdict, Refused)
    assert verdict.rule == "inert flow stays over hot sulfur and hydrogen"


@pytest.mark.parametrize("channel", BEYOND)
def test_no_more_may_be_set_than_the_apparatus_bears(channel: str) -> None:
    most, beyond = BEYOND[channel]
    limit = ENVELOPE.limits[channel]
    assert limit.low <= most <= limit.high
    assert not limit.low <= beyond <= limit.high
    assert not limit.low <= -1.0
    assert limit.low > 0.0 or not channel.endswith("_rate"), "a rate of 0 is no limit of it"


@pytest.mark.promise(11)
@pytest.mark.parametrize("row", TRIPS, ids=[f"{row[1]} {n}" for n, row in enumerate(TRIPS)])
def test_each_single_thing_that_must_trip_does_and_what_is_usual_does_not(
    row: tuple[Readings, str, Readings, Readings],
) -> None:
    so, procedure, wrongs, usual = row
    assert graver(so) == ""
    assert [each for each in usual if graver(so, {each: usual[each]})] == []
    answered = {wrong: graver(so, {wrong: value}) for wrong, value in wrongs.items()}
    assert answered == dict.fromkeys(wrongs, procedure)


def test_the_silence_of_what_is_relied_on_trips() -> None:
    memory = remembered()
    assert trips_of(memory) == []
    silent = {trip.channel for trip in trips_of(memory, NOW_S + SILENT_S)}
    assert silent == set(ENVELOPE.watches) - SETTINGS
