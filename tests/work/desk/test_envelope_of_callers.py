"""A caller is told the envelope that is enforced, and nothing that it sends changes it."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commands import ROOT
from labharness.core.clock import VIRTUAL_EPOCH
from labharness.lab import default_lab_path, read_lab
from labharness.lab.config.lab_facts import lab_facts_of
from labharness.protocols.hcp.codec import decode
from labharness.protocols.hcp.messages import TaskSubmit
from labharness.protocols.hcp.terms import Rejected
from labharness.work.desk.admitting import Admitting
from rig import EXAMPLE, SHORT_LINE

PLAN = read_lab(SHORT_LINE)
FACTS = lab_facts_of(PLAN)
ADMITTING = Admitting(facts=FACTS, envelope=PLAN.envelope, utc=lambda: VIRTUAL_EPOCH)
TOLD = json.dumps(FACTS.safety_envelope, sort_keys=True)
LAX = {"parameters": {"temperature": {"max": 9e9, "unit": "celsius", "hard_limit": False}}}
NUMBERS = st.integers(-100, 2000)
RECIPE = st.dictionaries(
    st.sampled_from(["temperature_c", "dwell_s", "ramp_c_per_min", "argon_sccm", "hydrogen_sccm"]),
    NUMBERS,
)
WHERE = st.sampled_from(["payload", "inputs", "constraints", "context", "recipe", "nowhere"])


def body(low: int, high: int, recipe: dict[str, int], where: str, version: str) -> dict[str, Any]:
    whole: dict[str, Any] = json.loads(EXAMPLE.read_text("utf-8"))
    payload = whole["payload"]
    payload["inputs"] |= {"temperature_range": {"min": low, "max": high, "unit": "celsius"}}
    payload["inputs"]["recipe"] = recipe
    places = {"payload": payload, "recipe": recipe} | {
        name: payload[name] for name in ("inputs", "constraints", "context")
    }
    places.get(where, {})["safety_envelope"] = LAX
    return {**whole, "hcp_version": version}


@settings(deadline=None, max_examples=120)
@given(NUMBERS, NUMBERS, RECIPE, WHERE, st.sampled_from(["1.0", "1.9"]))
def test_nothing_that_a_caller_sends_relaxes_the_envelope(
    low: int, high: int, recipe: dict[str, int], where: str, version: str
) -> None:
    message = decode(json.dumps(body(low, high, recipe, where, version)).encode())
    assert isinstance(message.payload, TaskSubmit)
    weighed = ADMITTING.weigh(message.payload)
    assert json.dumps(FACTS.safety_envelope, sort_keys=True) == TOLD
    if isinstance(weighed, Rejected):
        return
    assert where in ("context", "nowhere") or version == "1.9"
    limits = FACTS.safety_envelope["channels"]
    for command in weighed.commands:
        if command.channel in limits:
            told = limits[command.channel]
            assert told["min"] <= command.value <= told["max"], command


@pytest.mark.parametrize(
    ("where", "version"), [("nowhere", "1.0"), ("context", "1.0"), ("inputs", "1.9")]
)
def test_such_a_task_is_admitted_where_its_envelope_is_not_heeded(where: str, version: str) -> None:
    message = decode(json.dumps(body(700, 750, {}, where, version)).encode())
    assert isinstance(message.payload, TaskSubmit)
    weighed = ADMITTING.weigh(message.payload)
    assert not isinstance(weighed, Rejected), weighed
    assert weighed.commands


def test_a_quantity_is_told_as_high_as_a_plan_may_set_it() -> None:
    told = read_lab(default_lab_path()).safety_envelope
    parameters, channels = told["parameters"], told["channels"]
    assert parameters["temperature"]["max"] == channels["furnace.setpoint"]["max"] == 950.0
    assert parameters["gas_flow_rate"]["max"] == channels["argon.setpoint"]["max"] == 490.0
    assert channels["sulfur.setpoint"]["max"] < 950.0, "it is told by itself"


@pytest.mark.parametrize(("above_c", "allowed"), [(0, True), (1, False)])
def test_a_caller_that_plans_by_the_told_temperature_is_not_refused_for_it(
    above_c: int, allowed: bool
) -> None:
    told_c = int(FACTS.safety_envelope["parameters"]["temperature"]["max"]) + above_c
    asked = body(told_c, told_c, {}, "nowhere", "1.0")
    message = decode(json.dumps(asked).encode())
    assert isinstance(message.payload, TaskSubmit)
    weighed = ADMITTING.weigh(message.payload)
    refused = isinstance(weighed, Rejected) and weighed.reason_code == "safety_violation"
    assert refused is not allowed, weighed


@pytest.mark.parametrize("lab", ["annealing_furnace", "cvd_mos2", "iv_bench"])
def test_each_channel_is_told_with_the_limit_that_the_kernel_enforces(lab: str) -> None:
    plan = read_lab(ROOT / "envelopes/labharness_envelopes/labs" / lab / "lab.toml")
    told = plan.safety_envelope["channels"]
    assert told
    for channel, limit in plan.envelope.limits.items():
        found = {"min": limit.low, "max": limit.high, "unit": limit.unit}
        assert told.get(channel) == (found if limit.unit else None)
