"""The corpus of bad lab files: each is one plain error that names the place, and no lab is opened.

A name that is wrong is shown with those that are right. ``lab check`` says the same as ``run``.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from commands import edited_lab, example, say, submit, wrote
from labharness.lab import Lab, default_lab_path, read_lab
from labharness.lab.config.envelopes import KindLimits, LineFile
from labharness.lab.config.hazards import HazardTable
from labharness.lab.config.lab_file import LabFile
from rig import EXAMPLE, SHIPPED_ENVELOPE, SHORT_LINE

ENVELOPE = SHIPPED_ENVELOPE.read_text("utf-8")
PROCEDURES = (
    "immediate_shutdown, close_all_valves_and_alert, hold_inert, relieve_pressure, hold_vacuum"
)
WHEN = ENVELOPE[ENVELOPE.index("\nwhen = [") + 1 : ENVELOPE.index("unless = { ")]
INERT = 'inert = { "argon.flow" = "argon.setpoint", "nitrogen.flow" = "nitrogen.setpoint" }'
SEVENTH = 'name = "stage"\nlink = "loopback"\nbaud = 9600\n'


def limit_of(channel: str) -> str:
    """The text of one ``[[limit]]``."""
    start = ENVELOPE.index(f'[[limit]]\nchannel = "{channel}"')
    return ENVELOPE[start : ENVELOPE.index("\n\n", start) + 2]


SAME = "have one address on port"
VALVE = limit_of("box.hydrogen_valve")
BROKEN = 'channel = "furnace.sensor_break"\ncause = "sensor_break"\n'
BAD: dict[str, tuple[str, str, str]] = {
    # no file one can read
    "no TOML": ('title = "Short', "title = Short", "lab.toml is not TOML"),
    "nested without end": ('title = "Short', f'x = {"[" * 9000}\ntitle = "Short', "too deep"),
    "the character 0 in a path": ("callers = ", 'callers = "\\u0000" # ', "the character 0"),
    "a state directory that each folder would have of its own": (
        'title = "Short',
        'state_dir = "here"\ntitle = "Short',
        "state directory here: it takes an absolute path",
    ),
    "a state directory of somebody unknown": (
        'title = "Short',
        'state_dir = "~nobody-of-this-name/x"\ntitle = "Short',
        "state directory: Could not determine home directory",
    ),
    # unknown keys and names
    "an unknown key": (
        'title = "Short',
        'colour = "red"\ntitle = "Short',
        "lab.colour: there is no such key; there are id, title, line, attended",
    ),
    "an unknown table": (
        "[tube]",
        "[tubes]\n[tube]",
        "tubes: there is no such key (did you mean tube?); there are lab,",
    ),
    "an unknown key of an instrument": (
        'part = "gauge"',
        'part = "gauge"\nspeed = 1',
        "instrument 'gauge'.speed: there is no such key; there are name, kind, port",
    ),
    "an unknown key of the envelope": (
        "high = 950",
        "high = 950\nhighest = 951",
        "limit 'furnace.setpoint'.highest: there is no such key (did you mean high?); there are ",
    ),
    "an unknown setting": (
        "settings = { address = 253 }",
        "settings = { adress = 253 }",
        "'gauge' (mks_910), settings: no setting 'adress' (did you mean address?); there are addr",
    ),
    "a setting in words": (
        "settings = { unit = 2 }",
        'settings = { unit = "2" }',
        "unit is '2'; it must be a whole number",
    ),
    "a setting with a fraction": (
        "settings = { unit = 2 }",
        "settings = { unit = 2.0 }",
        "unit is 2.0; it must be a whole number",
    ),
    "a setting left out": (
        'unit = "B", gas = "N2"',
        'gas = "N2"',
        "instrument 'nitrogen' (alicat_mc), settings: unit is missing",
    ),
    "an unknown kind": (
        'kind = "mks_910"',
        'kind = "mks_911"',
        "'mks_911' (did you mean mks_910?); installed are alicat",
    ),
    "an unknown line": (
        'line = "short_line_',
        'line = "cvd_mos" # ',
        "'cvd_mos' (did you mean cvd_mos2?); inst",
    ),
    "an unknown link": (SEVENTH, SEVENTH.replace("loopback", "pigeon"), "'pigeon' is none of loop"),
    "an unknown scan": (
        'part = "gauge"',
        'part = "gauge"\npolls = { smell = 1 }',
        "no scan 'smell'",
    ),
    "a poll into the past": (
        'part = "gauge"',
        'part = "gauge"\npolls = { pressure = -1 }',
        "instrument 'gauge'.polls.pressure: -1 should be greater than 0",
    ),
    "an unknown plant": (
        'kind = "cvd_tube"',
        'kind = "cvd_tub"',
        "plant.kind: 'cvd_tub' is none of annealing_tube, cvd_tube, diode_bench",
    ),
    "an unknown setting of the plant": (
        "tube_volume_l = ",
        "tube_volum_l = ",
        "plant.settings: no setting 'tube_volum_l' (did you mean tube_volume_l?); there are tube_v",
    ),
    "a plant that cannot be": ("tube_volume_l = ", "tube_volume_l = -", "allowed above 0"),
    "an unknown setting of a simulator": (
        'part = "gauge"',
        'part = "gauge"\nsimulator = { adress = 253 }',
        "'gauge', simulator: no setting 'adress' (did you mean address?); there are address",
    ),
    "a missing key": ("volume_cm3 = 200", "", "tube.volume_cm3: it is missing"),
    "a missing hazard table": ("hazards = ", 'hazards = "gone.toml" # ', "gone.toml: No such file"),
    "a missing envelope": (
        'line = "short_line_envelope',
        'line = "gone',
        "gone.toml: No such file",
    ),
    # addresses
    "two instruments on one address": (
        "settings = { unit = 2 }",
        "settings = { unit = 1 }",
        f"instruments 'furnace' and 'sulfur' {SAME} 'heat': 1",
    ),
    "two on the address that is the default": (
        "settings = { unit = 2 }",
        "",
        f"instruments 'furnace' and 'sulfur' {SAME} 'heat': 1",
    ),
    "two on one letter": (
        'unit = "B"',
        'unit = "A"',
        f"'argon' and 'nitrogen' {SAME} 'inert': 'A'",
    ),
    "one without an address beside another": (
        'name = "laser"\nkind = "cobolt_laser"\nport = "laser"',
        'name = "pilot"\nkind = "cobolt_laser"\nport = "stage"\npart = "laser"\n\n[[instrument]]\n'
        'name = "laser"\nkind = "cobolt_laser"\nport = "laser"',
        f"instruments 'pilot' and 'stage' {SAME} 'stage'",
    ),
    "two of one name": ('name = "sulfur"', 'name = "furnace"', "'furnace' is there twice"),
    "two ports that are one link": (
        SEVENTH,
        'name = "stage"\nlink = "serial"\npath = "/dev/ttyS9"\nbaud = 9600\n\n[[port]]\n'
        'name = "twin"\nlink = "serial"\npath = "/dev/ttyS9"\nbaud = 9600\n\n[[instrument]]\n'
        'name = "other_stage"\nkind = "prior_proscan"\nport = "twin"\n',
        "ports 'stage' and 'twin' are one link",
    ),
    "a port without an instrument": (
        SEVENTH,
        SEVENTH + '\n[[port]]\nname = "spare"\nlink = "loopback"\n',
        "port 'spare' has no instrument",
    ),
    "an unknown port": (
        'port = "vacuum"\nset',
        'port = "cellar"\nset',
        "no port 'cellar'; there ar",
    ),
    "an address out of range": (
        "settings = { address = 253 }",
        "settings = { address = 0 }",
        "address 0 is not within 1 to 253",
    ),
    # limits
    "a limit without an end": ("high = 950\n", "", "limit 'furnace.setpoint'.high: it is missing"),
    "a limit without bound": ("high = 950", "high = inf", "high: inf should be a finite number"),
    "a limit beyond the instrument's": (
        "high = 950",
        "high = 5000",
        "0 to 5000 degC is not within what eurotherm_2400 allows, 0 to 1200 degC",
    ),
    "a limit in kelvin": (
        'channel = "furnace.setpoint"\nunit = "degC"',
        'channel = "furnace.setpoint"\nunit = "K"',
        "limit furnace.setpoint: 0 to 950 K is not within",
    ),
    # what stands in the place of a number
    "a limit of true": (
        "high = 950",
        "high = true",
        "limit 'furnace.setpoint'.high: True should be a valid number",
    ),
    "a truth of 1": (
        'title = "Short',
        'shared = 1\ntitle = "Short',
        "lab.shared: 1 should be a valid boolean",
    ),
    # procedures and prohibited actions
    "a procedure that sets what is only read": (
        '["box.vent", 1],',
        '["box.lid_shut", 1],',
        "procedure 'immediate_shutdown' sets 'box.lid_shut'",
    ),
    "a procedure that asks too much": (
        '["argon.setpoint", 100],',
        '["argon.setpoint", 5000],',
        "asked 5000.0 sccm, allowed 0 to 500 sccm",
    ),
    "percent where a share belongs": (
        "unmeasured_max = 0.04",
        "unmeasured_max = 4",
        "purge.backfill.unmeasured_max: 4.0 is not a share of the tube's volume; 4 % is 0.04",
    ),
    "a share of the tube that is all of it": (
        "unmeasured_max = 0.04",
        "unmeasured_max = 1.0",
        "purge.backfill.unmeasured_max: 1.0 is not a share of the tube's volume",
    ),
    "a table where a list of tables belongs": (
        WHEN,
        'when = { channel = "gauge.pressure", at_most = 700 }\n',
        "procedures.immediate_shutdown.when: a table is not a list: write [{ ... }]",
    ),
    "one bracket where two belong": (
        "[[purge.present.air]]",
        "[purge.present.air]",
        "purge.present.air: a table is not a list: "
        "write [{ ... }], or two brackets around its name",
    ),
    "a name where a list of names belongs": (
        'guards = ["box.furnace_contactor"]',
        'guards = "box.furnace_contactor"',
        ".guards: 'box.furnace_contactor' is not a list: write [ ] around it",
    ),
    "a list where a table belongs": (
        INERT,
        'inert = ["argon.flow"]',
        "purge.inert: ['argon.flow'] is not a table: write { ... = ... }",
    ),
    "a number where a row belongs": (
        'during = { channel = "furnace.temperature", at_least = 150 }',
        "during = 1",
        ".during: 1 is not a table: write { ... = ... }",
    ),
    "an unknown prohibited action": (
        "simultaneous_gas_mixing_without_purge",
        "whistling",
        "prohibited_actions.0: 'whistling' is none of simultaneous_gas_mixing_without_purge",
    ),
    "a prohibited action that nothing prevents": (
        'prohibits = "simultaneous_gas_mixing_without_purge"\n',
        "",
        "no interlock says that it prohibits 'simultaneous_gas_mixing_without_purge'",
    ),
    "an unknown emergency procedure": (
        'over_flow = "close_all_valves_and_alert"',
        'over_flow = "run"',
        f"emergency_procedures.over_flow: 'run' is none of {PROCEDURES}",
    ),
    "an unknown emergency": (
        'over_flow = "close_all_valves_and_alert"',
        'over_flow = "close_all_valves_and_alert"\nboredom = "immediate_shutdown"',
        "emergency_procedures.boredom: 'boredom' is none of over_pressure",
    ),
    "a contact that is asked for what it never shows": (
        VALVE,
        VALVE.replace("at_least = 1 }", "at_least = 10 }"),
        "limit box.hydrogen_valve: foreign_while: box.hydrogen_valve at least 10 is never so, "
        "because box.hydrogen_valve is 0 to 1",
    ),
    "a fault that is asked for whatever it shows": (
        '{ channel = "h2_detector.fault", at_most = 0 }',
        '{ channel = "h2_detector.fault", at_least = 0, at_most = 30 }',
        "h2_detector.fault from 0 to 30 is always so, because h2_detector.fault is 0 to 3",
    ),
    "a trip that nothing reaches": (
        BROKEN + "high = 0.5\n",
        BROKEN + "high = 5\n",
        "trip 'furnace thermocouple open': furnace.sensor_break at most 5 is always so",
    ),
    "a procedure that is not there": (
        "[procedures.immediate_shutdown]",
        "[procedures.shutdown]",
        "safe_procedure: 'immediate_shutdown' is none of shutdown, ",
    ),
}


def lax(schema: object, where: str = "") -> Iterator[str]:
    """Return every number and truth in a pydantic schema for which it would take something else."""
    if isinstance(schema, dict):
        if schema.get("type") in ("float", "int", "bool") and not schema.get("strict"):
            yield where
        for key, value in schema.items():
            yield from lax(value, f"{where}.{key}")
    elif isinstance(schema, list | tuple):
        for each in schema:
            yield from lax(each, where)


@pytest.mark.parametrize("model", [LabFile, LineFile, KindLimits, HazardTable])
def test_no_number_of_a_lab_file_is_made_of_something_else(model: type[BaseModel]) -> None:
    assert list(lax(model.__pydantic_core_schema__)) == []


@pytest.mark.promise(47)
@pytest.mark.parametrize("name", BAD)
def test_a_bad_lab_file_exits_64_and_names_what_is_wrong_and_what_is_allowed(
    tmp_path: Path, wires: list[Lab], name: str
) -> None:
    old, new, words = BAD[name]
    lab = edited_lab(tmp_path, old, new)
    say("run", EXAMPLE, "--lab", lab, "--out", tmp_path / "o", "--json").is_one_plain_error(
        f"{tmp_path}", words
    )
    say("lab", "check", "--lab", lab).is_one_plain_error(f"{tmp_path}", words)
    assert wires == []
    assert not (tmp_path / "o").exists()


def test_a_lab_file_that_is_missing_or_a_folder_exits_64(tmp_path: Path, wires: list[Lab]) -> None:
    for path in (tmp_path / "gone.toml", tmp_path):
        say("run", EXAMPLE, "--lab", path).is_one_plain_error(str(path))
        say("envelope", "show", "--lab", path).is_one_plain_error(str(path))
    assert wires == []


@pytest.mark.parametrize("variable", ["LABHARNESS_STATE", "XDG_STATE_HOME"])
def test_a_latch_is_not_kept_where_another_folder_would_not_find_it(
    monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.delenv("LABHARNESS_STATE", raising=False)
    monkeypatch.setenv(variable, "here")
    words = ("state directory here/labharness/short-line-", ": it takes an absolute path", variable)
    say("lab", "check", "--lab", SHORT_LINE).is_one_plain_error(*words)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no endless file here")
def test_a_lab_file_without_an_end_is_not_read_to_it(tmp_path: Path) -> None:
    say("lab", "check", "--lab", "/dev/zero").is_one_plain_error("/dev/zero: it is a pipe or a de")
    with (tmp_path / "long.toml").open("wb") as file:
        file.truncate(2**40)
    said = say("lab", "check", "--lab", tmp_path / "long.toml")
    said.is_one_plain_error("long.toml has more than 4194304")


def test_growth_values_that_no_growth_takes_are_rejected_with_those_there_are(
    tmp_path: Path, wires: list[Lab]
) -> None:
    said = submit(tmp_path, example(), "--lab", edited_lab(tmp_path, "dwell_s = 9", "dwel_s = 9"))
    assert said.code == 2
    message = said.answer["payload"]["reason_message"]
    assert "dwel_s: no growth takes it; there are temperature_c, dwell_s" in message
    assert wrote(wires) == []


def settable(lab: Path) -> Iterator[str]:
    for each in read_lab(lab).instruments:
        for channel, spec in each.driver.channels.items():
            if spec.settable:
                yield f"{each.name}.{channel}"


def test_whichever_limit_is_taken_away_the_short_line_does_not_load(
    tmp_path: Path,
) -> None:
    channels = list(settable(SHORT_LINE))
    assert len(channels) > 30
    assert set(channels) == set(settable(default_lab_path()))
    changed = {"furnace.setpoint_rate": "'furnace.setpoint_rate'): no row has this name"}
    for channel in channels:
        words = f"{channel} can be set and has no limit"
        lab = edited_lab(tmp_path, limit_of(channel), "")
        say("lab", "check", "--lab", lab).is_one_plain_error(changed.get(channel, words))


def test_the_check_of_a_lab_reads_its_callers_too(tmp_path: Path) -> None:
    (tmp_path / "callers.toml").write_text("[callers.me]\nrisk = 3\n", "utf-8")
    lab = edited_lab(tmp_path, "callers = ", 'callers = "callers.toml" # ')
    said = say("lab", "check", "--lab", lab)
    assert (said.code, said.out) == (64, "")
    assert "callers" in said.err
