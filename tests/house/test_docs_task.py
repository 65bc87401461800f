"""What the documents say of a task's inputs and constraints, held to what is accepted."""

import re
from collections.abc import Mapping
from typing import Any

import pytest

from commands import ROOT, example
from labharness.lab import default_lab_path, read_lab
from labharness.lab.config.lab_facts import lab_facts_of
from labharness.protocols.hcp.terms import PRIORITIES
from labharness.work.admission.audit import HEEDED
from labharness.work.admission.schemas import input_fault
from labharness.work.capability import CannotDo
from labharness.work.capability.cvd import CAPABILITY
from labharness.work.capability.cvd.recipe import GROWTH_DEFAULTS

PAGE = (ROOT / "docs" / "reference" / "task.md").read_text("utf-8")
SECTIONS = dict(re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
DECLARED = CAPABILITY.declaration.input_schema["properties"]


def rows(section: str) -> dict[str, list[str]]:
    found = re.findall(r"^\| `([\w.]+)` \|(.*)\|$", SECTIONS[section], re.MULTILINE)
    return {name: [cell.strip() for cell in rest.split("|")] for name, rest in found}


def declared(properties: Mapping[str, Any], before: str = "") -> list[str]:
    names: list[str] = []
    for name, schema in properties.items():
        inner = schema.get("properties")
        names += declared(inner, f"{before}{name}.") if inner else [before + name]
    return names


def test_the_page_names_every_input_constraint_and_expectation() -> None:
    assert list(rows("Inputs")) == declared(DECLARED)
    assert tuple(rows("Constraints")) == HEEDED["constraints"]
    assert tuple(rows("Expected output")) == HEEDED["expected_output"]
    required = rows("Expected output")["required_fields"][0]
    assert set(re.findall(r"`(\w+)`", required)) == CAPABILITY.declaration.produces()
    assert re.findall(r"`(\w+)`", rows("Constraints")["priority"][1]) == list(PRIORITIES)
    longest = CAPABILITY.declaration.constraints.max_duration
    assert rows("Constraints")["max_duration"][2] == f"`{longest}`"
    assert rows("Expected output")["format"][0].strip("`") in CAPABILITY.formats


def test_the_page_names_every_key_of_the_payload() -> None:
    rest = SECTIONS["The rest of the payload"].split("Every other name")[0]
    elsewhere = {"inputs", "constraints", "expected_output"}  # a section each
    assert {*re.findall(r"`(\w+)`", rest), *elsewhere} == set(HEEDED["payload"])


def test_the_page_names_the_defaults_and_units_of_the_recipe() -> None:
    for name, (unit, _, default) in rows("Inputs").items():
        own = name.removeprefix("recipe.")
        if own in GROWTH_DEFAULTS:
            assert default.endswith(f"{GROWTH_DEFAULTS[own]:g}"), name
        said = DECLARED["recipe"]["properties"].get(own, {}).get("description", unit)
        assert said.endswith(unit) or unit in said, name


BOUNDED = [name for name, row in rows("Inputs").items() if re.match(r"[0-9.]+ to [0-9.]+$", row[1])]


@pytest.mark.parametrize("name", BOUNDED)
def test_the_range_that_the_page_names_is_the_one_that_is_accepted(name: str) -> None:
    low, high = map(float, rows("Inputs")[name][1].split(" to "))
    facts = lab_facts_of(read_lab(default_lab_path())).line_facts[CAPABILITY.declaration.name]

    def accepted(value: float) -> bool:
        inputs = {**example()["payload"]["inputs"], "recipe": {name.split(".")[1]: value}}
        if input_fault(CAPABILITY.declaration.input_schema, inputs) is not None:
            return False
        return not isinstance(CAPABILITY.plan(inputs, {}, facts), CannotDo)

    assert [accepted(low), accepted(high)] == [True, True]
    assert [accepted(low - 0.01), accepted(high + 0.01)] == [False, False]
