"""An envelope is proven before anything is armed: no procedure ends with heat, gas or light on."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from commands import say
from labharness.instruments.driver import Adds, Off
from labharness.lab import LabPlan, read_lab
from labharness.lab.config.address import default_lab_path
from labharness.lab.config.proven import unproven
from labharness.lab.config.wires import Finding
from labharness.line import Contact
from labharness.safety.kernel import Envelope, Procedure, Step
from small_lab import OFF, written

SHIPPED = read_lab(default_lab_path())
PROCEDURES = sorted(SHIPPED.envelope.procedures)
SLOWLY = '["furnace.setpoint", 0], ["furnace.setpoint_rate", 0.1]'
"""A shutdown that goes on heating for days: from 850 degC by 0.1 degC/min."""

RELAY = """
[[instrument]]
name = "box"
kind = "waveshare_relay"
port = "heat"
settings = { unit = 2, relays = ["mains", "lamp"], inputs = [] }
"""
RELAY_LIMITS = """
[[limit]]
channel = "box.mains"
unit = ""
low = 0
high = 1
source = "K1"

[[limit]]
channel = "box.lamp"
unit = ""
low = 0
high = 1
source = "K2"
"""
MAINS = """
[[contact]]
channel = "box.mains"
off = 0
feeds = ["furnace"]
source = "K1, fail-open"
"""
LAMP = """
[[contact]]
channel = "box.lamp"
off = 0
adds = "light"
source = "K2: a UV lamp"
"""


def findings_of(plan: LabPlan) -> tuple[Finding, ...]:
    return unproven(plan.envelope, plan.instruments, plan.contacts)


def small(folder: Path, steps: str, *, gas: str = "Ar", more: str = "") -> tuple[Finding, ...]:
    return findings_of(read_lab(written(folder, steps=steps, gas=gas, more=more)))


def with_relays(folder: Path, steps: str, contacts: str) -> Path:
    path = written(folder, steps=steps, more=RELAY_LIMITS + contacts)
    path.write_text(path.read_text("utf-8") + RELAY, "utf-8")
    return path


# ---- the small lab: one furnace, one flow controller


def test_a_shutdown_in_the_order_of_the_driver_has_no_findings(tmp_path: Path) -> None:
    assert small(tmp_path, OFF) == ()


@pytest.mark.promise(40)
def test_a_setpoint_of_zero_that_ramps_for_days_is_a_finding_with_the_lines_to_paste(
    tmp_path: Path,
) -> None:
    (finding,) = small(tmp_path, SLOWLY)
    assert finding.where == "procedure 'make_safe'"
    assert finding.what == (
        "it may end with furnace heating: no step sets furnace.mode = 1; furnace.setpoint = 0, "
        "furnace.setpoint_rate = 0.1 alone does not switch it off"
    )
    lines = finding.paste.splitlines()
    assert lines[0] == "[procedures.make_safe], in steps, in this order:"
    mended = "\n".join([f"{SLOWLY},", *lines[1:]])
    assert small(tmp_path, mended) == (), "what is pasted mends it"


@pytest.mark.parametrize(
    ("steps", "words"),
    {
        "output before mode": (
            '["furnace.output", 0], ["furnace.mode", 1]',
            "in the order furnace.mode = 1, furnace.output = 0",
        ),
        "mode alone": ('["furnace.mode", 1]', "no step sets furnace.output = 0"),
        "output alone": ('["furnace.output", 0]', "no step sets furnace.mode = 1"),
        "undone after": (
            f'{OFF} ["furnace.mode", 0]',
            "its last step of furnace.mode is 0, and off is 1",
        ),
        "undone and half done again": (
            f'{OFF} ["furnace.mode", 0], ["furnace.mode", 1]',
            "in the order furnace.mode = 1, furnace.output = 0",
        ),
        "optional": (
            '["furnace.mode", 1, "optional"], ["furnace.output", 0]',
            'its step furnace.mode = 1 is "optional"',
        ),
        "undone by an optional step": (
            f'{OFF} ["furnace.mode", 0, "optional"]',
            "its last step of furnace.mode is 0",
        ),
        "nothing": ("", "no step sets furnace.mode = 1"),
    }.values(),
)
def test_whatever_leaves_a_furnace_on_is_found(tmp_path: Path, steps: str, words: str) -> None:
    (finding,) = small(tmp_path, steps)
    assert "it may end with furnace heating" in finding.what
    assert words in finding.what


def test_a_gas_that_is_not_inert_has_to_be_shut(tmp_path: Path) -> None:
    for gas in ("H2", "O2", "Air", "CH4", "Xx"):
        (finding,) = small(tmp_path, OFF, gas=gas)
        assert finding.what.startswith(f"it may end with mfc ({gas}) flowing")
        assert finding.paste.endswith('    ["mfc.setpoint", 0],')
        assert small(tmp_path, f'{OFF} ["mfc.setpoint", 0]', gas=gas) == ()
    assert small(tmp_path, f'{OFF} ["mfc.setpoint", 100]', gas="N2") == ()


# ---- relays: what they feed is the line's wiring


def test_a_relay_of_which_nothing_is_said_is_a_finding(tmp_path: Path) -> None:
    steps = f'["box.mains", 0], {OFF}'
    (finding,) = findings_of(read_lab(with_relays(tmp_path, steps, MAINS)))
    assert finding.where == "box.lamp"
    assert finding.paste.startswith('[[contact]]\nchannel = "box.lamp"\n')


def test_each_of_two_ways_to_switch_heat_off_has_to_be_taken(tmp_path: Path) -> None:
    both = f'["box.mains", 0], ["box.lamp", 0], {OFF}'
    assert findings_of(read_lab(with_relays(tmp_path, both, MAINS + LAMP))) == ()
    for left_out, words in (
        ('["box.mains", 0], ', "no step sets box.mains = 0"),
        ('["furnace.mode", 1],', "no step sets furnace.mode = 1"),
    ):
        steps = both.replace(left_out, "")
        (finding,) = findings_of(read_lab(with_relays(tmp_path, steps, MAINS + LAMP)))
        assert finding.what == f"it takes 1 of the 2 ways to switch furnace off: {words}"


def test_a_relay_that_feeds_a_lamp_has_to_be_off(tmp_path: Path) -> None:
    steps = f'["box.mains", 0], ["box.lamp", 1], {OFF}'
    (finding,) = findings_of(read_lab(with_relays(tmp_path, steps, MAINS + LAMP)))
    assert finding.what == (
        "it may end with box.lamp shining: its last step of box.lamp is 1, and off is 0"
    )


@pytest.mark.parametrize(
    ("row", "words"),
    {
        "no such channel": (MAINS.replace("mains", "main"), "has no channel 'main'"),
        "one that is only read": (MAINS.replace("box.mains", "mfc.flow"), "cannot be set"),
        "twice": (MAINS + MAINS, "contact 'box.mains' is there twice"),
        "feeds a stranger": (
            MAINS.replace('"furnace"', '"oven"'),
            "feeds 'oven'; channels that add energy are furnace, mfc",
        ),
        "feeds and no off": (MAINS.replace("off = 0", ""), "off is its value while nothing passes"),
        "off and feeds nothing": (
            MAINS.replace('feeds = ["furnace"]', ""),
            "off is its value while nothing passes",
        ),
    }.values(),
)
def test_a_contact_that_cannot_be_is_one_plain_error(tmp_path: Path, row: str, words: str) -> None:
    lab = with_relays(tmp_path, OFF, row)
    said = say("lab", "check", "--lab", lab)
    said.is_one_plain_error(words)


def test_a_driver_that_does_not_say_what_is_off_is_a_finding(tmp_path: Path) -> None:
    plan = read_lab(written(tmp_path))
    silent = type("Silent", (type(plan.instruments[0].driver),), {"off": None})
    furnace = replace(plan.instruments[0], driver=silent())
    found = unproven(plan.envelope, (furnace, *plan.instruments[1:]), ())
    assert [each.where for each in found] == ["instrument 'furnace'"]
    assert (
        "does not say which of setpoint, output, output_high, setpoint_rate, mode" in found[0].what
    )
    assert "off = ()" in found[0].paste


def test_an_off_that_says_nothing_is_no_row() -> None:
    with pytest.raises(ValueError, match="at least one step"):
        Off(adds=Adds.HEAT, steps=(), source="p. 1")
    with pytest.raises(ValueError, match="gas alone names one"):
        Off(adds=Adds.GAS, steps=(("setpoint", 0.0),), source="p. 1")
    with pytest.raises(ValueError, match="gas alone names one"):
        Off(adds=Adds.HEAT, steps=(("mode", 1.0),), source="p. 1", gas="H2")


# ---- the line that ships, and any step of it that is lost


def off_channels() -> set[str]:
    found = {
        f"{each.name}.{channel}"
        for each in SHIPPED.instruments
        for off in each.driver.off or ()
        if not off.inert
        for channel, _ in off.steps
    }
    fed = {each.channel for each in SHIPPED.contacts if {"furnace", "sulfur"} & set(each.feeds)}
    return found | fed | {"box.hydrogen_valve"}


def changed(steps: tuple[Step, ...], name: str) -> tuple[Finding, ...]:
    envelope: Envelope = SHIPPED.envelope
    procedure: Procedure = replace(envelope.procedures[name], steps=steps)
    proposed = replace(envelope, procedures={**envelope.procedures, name: procedure})
    return unproven(proposed, SHIPPED.instruments, SHIPPED.contacts)


@pytest.mark.promise(40)
@pytest.mark.parametrize("name", PROCEDURES)
def test_a_step_that_is_dropped_turned_or_made_optional_is_found(name: str) -> None:
    steps = SHIPPED.envelope.procedures[name].steps
    energy = [at for at, each in enumerate(steps) if each.channel in off_channels()]
    assert len(energy) == 9
    for at in energy:
        before, step, after = steps[:at], steps[at], steps[at + 1 :]
        for wrong in (
            (),
            (replace(step, value=1.0 - step.value),),
            (replace(step, optional=True),),
            (step, replace(step, value=1.0 - step.value)),
        ):
            (finding,) = changed((*before, *wrong, *after), name)
            assert finding.where == f"procedure {name!r}"
            assert step.channel in finding.what


@pytest.mark.promise(40)
@pytest.mark.parametrize("name", PROCEDURES)
@pytest.mark.parametrize("owner", ["furnace", "sulfur"])
def test_output_before_mode_is_found(name: str, owner: str) -> None:
    steps = list(SHIPPED.envelope.procedures[name].steps)
    mode, output = (
        next(at for at, each in enumerate(steps) if each.channel == f"{owner}.{channel}")
        for channel in ("mode", "output")
    )
    steps[mode], steps[output] = steps[output], steps[mode]
    (finding,) = changed(tuple(steps), name)
    assert f"in the order {owner}.mode = 1, {owner}.output = 0" in finding.what


def test_a_contact_that_feeds_two_is_a_way_for_each() -> None:
    mains = Contact(channel="box.furnace_contactor", source="K7", off=0.0, feeds=("furnace",))
    both = replace(mains, feeds=("furnace", "sulfur"))
    contacts = tuple(both if each.channel == both.channel else each for each in SHIPPED.contacts)
    steps = tuple(
        each
        for each in SHIPPED.envelope.procedures["relieve_pressure"].steps
        if each.channel != both.channel
    )
    procedures = {
        "relieve_pressure": replace(SHIPPED.envelope.procedures["relieve_pressure"], steps=steps)
    }
    envelope = replace(SHIPPED.envelope, procedures={**SHIPPED.envelope.procedures, **procedures})
    found = unproven(envelope, SHIPPED.instruments, contacts)
    assert [each.what.partition(":")[0] for each in found] == [
        "it takes 1 of the 2 ways to switch furnace off",
        "it takes 2 of the 3 ways to switch sulfur off",
    ]


# ---- where it is said, and what it keeps from being armed


def test_lab_check_prints_the_lines_to_paste_and_the_doctor_says_where_they_are(
    tmp_path: Path,
) -> None:
    lab = written(tmp_path, steps=SLOWLY, gas="H2")
    said = say("lab", "check", "--lab", lab)
    assert said.code == 1
    assert "finding: procedure 'make_safe': it may end with furnace heating" in said.out
    assert '\n        ["furnace.mode", 1],\n        ["furnace.output", 0],\n' in said.out
    assert '\n        ["mfc.setpoint", 0],\n2 findings\n' in said.out, "all of them at once"
    rows = json.loads(say("doctor", "--lab", lab, "--json").out)
    found = [each for each in rows if each["about"] == "envelope" and each["state"] == "finding"]
    assert len(found) == 2
    assert found[0]["fix"] == (
        f"paste the lines that are printed by labharness lab check --lab {lab}"
    )


@pytest.mark.promise(40)
def test_a_line_with_an_unproven_envelope_is_not_armed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LABHARNESS_STATE", str(tmp_path / "state"))
    lab = written(tmp_path, steps=SLOWLY)
    said = say("arm", lab)
    assert said.code == 1
    assert "may end with furnace heating" in said.err
    assert '["furnace.output", 0],' in said.err
    assert not list(tmp_path.rglob("armed.json"))
    by_hand = say(
        "set", "mfc.setpoint", "10", "sccm", "--attend", "--lab", lab, "--out", tmp_path / "run"
    )
    assert by_hand.code not in (0, 1)
    assert "may end with furnace heating" in by_hand.err
    assert "labharness lab check --lab" in by_hand.err
