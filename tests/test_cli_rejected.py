"""Bad payloads at the command line: exit code 2, why, what would do, and not a byte written."""

import json
import re
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from commands import COMMAND, GONE, TIMEOUT_S, edited_lab, example, payload, say, submit, wrote
from labharness.lab import Lab
from rig import SHORT_LINE

RANGE = ("inputs", "temperature_range")
SCHEMA = ("expected_output", "schema")


def kelvin(low: float, high: float) -> dict[str, Any]:
    return payload({"min": low, "max": high, "unit": "kelvin"}, *RANGE)


REJECTED: Mapping[str, tuple[dict[str, Any], str, str]] = {
    "no intent": (payload(GONE, "intent"), "invalid_input", "payload.intent"),
    "an empty intent": (payload(" ", "intent"), "invalid_input", "intent is empty"),
    "no inputs": (payload([], "inputs"), "invalid_input", "payload.inputs"),
    "an unknown capability": (
        payload("alchemy", "capability"),
        "invalid_input",
        "offered to this caller: cvd-material-synthesis 1.0.0",
    ),
    "a version range that nothing matches": (
        payload(">=9", "capability_version"),
        "invalid_input",
        "there are: 1.0.0",
    ),
    "a version that is no range": (
        payload("latest!", "capability_version"),
        "invalid_input",
        "no version range",
    ),
    "NaN": (payload(float("nan"), *RANGE, "max"), "invalid_input", "temperature_range.max: nan"),
    "infinity": (payload(float("inf"), *RANGE, "max"), "invalid_input", "inf is not a number"),
    "kelvin below zero": (kelvin(-5, 900), "invalid_input", "below 0 K"),
    "kelvin above the envelope": (kelvin(1000, 1300), "safety_violation", "0 to 950 degC"),
    "fahrenheit": (payload("fahrenheit", *RANGE, "unit"), "invalid_input", "'fahrenheit'"),
    "a temperature as text": (payload("750", *RANGE, "max"), "invalid_input", "'750'"),
    "min above max": (payload(760, *RANGE, "min"), "invalid_input", "min 760 is above max 750"),
    "too hot": (payload(1250, *RANGE, "max"), "safety_violation", "furnace.setpoint allows"),
    "too cold to grow": (
        payload({"min": 300, "max": 350}, *RANGE),
        "invalid_input",
        "does not grow at 325 degC",
    ),
    "a ramp above the envelope": (
        payload({"ramp_c_per_min": 100}, "inputs", "recipe"),
        "safety_violation",
        "furnace.setpoint_rate allows 0.1 to 60 degC/min",
    ),
    "an unknown word in the recipe": (
        payload({"magic": 1}, "inputs", "recipe"),
        "invalid_input",
        "'magic' was unexpected",
    ),
    "a duration in prose": (
        payload("three days", "constraints", "max_duration"),
        "invalid_input",
        "no ISO 8601 duration",
    ),
    "a negative duration": (
        payload("-PT1H", "constraints", "max_duration"),
        "invalid_input",
        "is negative",
    ),
    "a duration above the capability's": (
        payload("P30D", "constraints", "max_duration"),
        "invalid_input",
        "at most PT72H",
    ),
    "less time than the growth takes": (
        payload("PT10M", "constraints", "max_duration"),
        "invalid_input",
        "The plan takes about",
    ),
    "a schema that would fetch": (
        payload({"$ref": "https://example.org/schema.json"}, *SCHEMA),
        "invalid_input",
        "is not fetched",
    ),
    "a schema that would never end": (
        payload({"properties": {"x": {"pattern": "(a+)+$"}}}, *SCHEMA),
        "invalid_input",
        "without bound",
    ),
    "a schema that is none": (payload({"type": "x"}, *SCHEMA), "invalid_input", "no JSON Schema"),
    "an unknown format": (
        payload("pdf", "expected_output", "format"),
        "invalid_input",
        "there are: raman_spectrum_analysis",
    ),
    "a field that is not produced": (
        payload(["gold"], "expected_output", "required_fields"),
        "invalid_input",
        "produces no gold",
    ),
    "T3 data": (payload("T3", "constraints", "data_classification"), "forbidden", "T3 data"),
    "T4 data": (payload("T4", "constraints", "data_classification"), "forbidden", "T4 data"),
    "an unknown data class": (
        payload("T9", "constraints", "data_classification"),
        "invalid_input",
        "none of T1, T2, T3, T4",
    ),
    "a confidence above 1": (
        payload(1.5, "constraints", "confidence_threshold"),
        "invalid_input",
        "between 0 and 1",
    ),
    "an unknown caller": (payload("mallory", "caller_id"), "unauthorized", "'mallory'"),
    "WSe2": (
        payload("WSe2", "inputs", "target_material"),
        "invalid_input",
        "it lacks a detector for hydrogen selenide",
    ),
    "another substrate": (payload("glass", "inputs", "substrate"), "invalid_input", "'glass'"),
    "hydrogen, which no approval covers": (
        payload({"hydrogen_sccm": 10}, "inputs", "recipe"),
        "approval_denied",
        "up to R3, not R4",
    ),
}


@pytest.mark.parametrize("name", REJECTED)
def test_a_bad_payload_is_answered_with_why_and_what_would_do_and_nothing_is_written(
    tmp_path: Path, wires: list[Lab], name: str
) -> None:
    body, code, words = REJECTED[name]
    said = submit(tmp_path, body)
    assert said.code == 2, said
    assert said.err == ""
    assert said.answer["type"] == "task_rejected"
    assert said.answer["session_id"] is None
    answer = said.answer["payload"]
    assert answer["in_reply_to"] == body["message_id"]
    assert answer["reason_code"] == code
    assert words in answer["reason_message"]
    assert answer["suggestion"]
    assert wrote(wires) == []


def test_a_caller_without_the_capability_is_forbidden_and_told_what_it_may_invoke(
    tmp_path: Path, wires: list[Lab]
) -> None:
    callers = '[callers.visitor]\ncapabilities = []\nrisk_max = "R4"\ndata_class_max = "T2"\n'
    (tmp_path / "callers.toml").write_text(callers, "utf-8")
    lab = edited_lab(tmp_path, "callers = ", 'callers = "callers.toml" # ')
    said = submit(tmp_path, payload("visitor", "caller_id"), "--lab", lab)
    assert said.code == 2
    assert said.answer["payload"]["reason_code"] == "forbidden"
    assert "may not invoke cvd-material-synthesis" in said.answer["payload"]["reason_message"]
    assert said.answer["payload"]["suggestion"] == "Ask for access to a capability"
    assert wrote(wires) == []


def test_an_edit_of_the_lab_file_voids_its_standing_approval(
    tmp_path: Path, wires: list[Lab]
) -> None:
    lab = edited_lab(tmp_path, "delay_s = 5", "delay_s = 6")
    approval = SHORT_LINE.with_name("short_line_approval.toml")
    (tmp_path / approval.name).write_bytes(approval.read_bytes())
    said = submit(tmp_path, example(), "--lab", lab)
    assert said.code == 2
    assert said.answer["payload"]["reason_code"] == "approval_denied"
    assert "make approve-sim" in said.answer["payload"]["suggestion"]
    assert wrote(wires) == []


def test_a_rejection_in_words_gives_reason_and_suggestion(tmp_path: Path) -> None:
    path = tmp_path / "task.json"
    path.write_text(json.dumps(payload(1250, *RANGE, "max")), "utf-8")
    said = say("run", path, "--lab", SHORT_LINE, "--out", tmp_path / "run")
    assert said.code == 2
    first, second, _ = said.out.splitlines()
    assert first.startswith("rejected (safety_violation): temperature_range.max: 1250 degC")
    assert second.startswith("suggestion: keep temperature_range.max within 0 to 950 degC")


WRONG: tuple[tuple[tuple[str, ...], object, str, Callable[[str], object]], ...] = (
    (("capability",), "alchemy", r"^Choose one of: (\S+)", str),
    (("capability_version",), "^7", r"holds one of: (\S+)$", str),
    (("inputs", "target_material"), "WSe2", r"target_material '(.+)'", str),
    (("inputs", "substrate"), "glass", r"substrate '(.+)'", str),
    (("inputs", "recipe", "ramp_c_per_min"), 90, r"ramp_c_per_min within 0.1 to (\S+)", float),
    (("inputs", "recipe", "sulfur_temperature_c"), 400, r"sulfur\S+ within 0 to (\S+)", float),
    (("constraints", "data_classification"), "T4", r"Declare (T\d) at most", str),
    (("constraints", "max_duration"), "PT10M", r"max_duration to (\S+) or more", str),
    (("constraints", "confidence_threshold"), 2, r"for example (0\.\d+)", float),
    (("expected_output", "format"), "pdf", r"format out, or choose one of: (\w+)", str),
)


def test_a_caller_that_follows_every_suggestion_is_accepted_in_the_end(tmp_path: Path) -> None:
    body = example()
    missing = dict(enumerate(WRONG))
    for path, value, _, _ in WRONG:
        put(body, path, value)
    for _ in WRONG:
        said = submit(tmp_path, body)
        assert said.code == 2, said
        suggestion = said.answer["payload"]["suggestion"]
        found = [n for n, row in missing.items() if re.search(row[2], suggestion)]
        assert len(found) == 1, suggestion
        path, _, pattern, kind = missing.pop(found[0])
        match = re.search(pattern, suggestion)
        assert match is not None
        put(body, path, kind(match[1]))
    said = submit(tmp_path, body)
    assert said.code in (0, 1)  # it ran; 400 degC more sulfur need not make a monolayer
    assert said.answer["type"] in ("task_completed", "task_failed")


def put(body: dict[str, Any], path: tuple[str, ...], value: object) -> None:
    place = body["payload"]
    for each in path[:-1]:
        place = place.setdefault(each, {})
    place[path[-1]] = value


def test_a_rejection_that_nobody_reads_still_exits_2(tmp_path: Path) -> None:
    path = tmp_path / "task.json"
    path.write_text(json.dumps(payload(1250, *RANGE, "max")), "utf-8")
    command: list[str | Path] = [*COMMAND, "run", path, "--lab", SHORT_LINE]
    run = subprocess.Popen(
        [*command, "--out", tmp_path / "run"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert run.stdout is not None
    assert run.stderr is not None
    run.stdout.close()
    with run.stderr as errors:
        assert b"Traceback" not in errors.read()
    assert run.wait(TIMEOUT_S) == 2
