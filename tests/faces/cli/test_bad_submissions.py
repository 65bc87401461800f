"""The corpus of bad submissions: each is one plain answer, its exit code, and not a byte written.

What is no HCP message, or is one that nobody can be answered, exits 64. What is wrong inside a
``task_submit`` is answered with ``task_rejected`` and exits 2; its suggestion is followed here.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from commands import GONE, example, payload, say, submit, with_, wrote
from labharness.lab import Lab
from rig import EXAMPLE, SHORT_LINE

# ---- no message: exit 64


def padded(size: int) -> bytes:
    """A message that is right in all but its size."""
    return json.dumps({**example(), "padding": "x" * size}).encode()


NO_MESSAGE: dict[str, tuple[Callable[[], bytes], str]] = {
    "empty": (lambda: b"", "is not JSON in UTF-8"),
    "prose": (lambda: b"please grow something", "is not JSON in UTF-8"),
    "truncated": (lambda: EXAMPLE.read_bytes()[:-40], "is not JSON in UTF-8"),
    "truncated in a text": (lambda: EXAMPLE.read_bytes()[:300], "is not JSON in UTF-8"),
    "not UTF-8": (lambda: b"\xff", "is not JSON in UTF-8"),
    "a list": (lambda: b"[1]", "is a JSON list, not an object"),
    "a key twice": (lambda: b'{"type":"task_submit","type":"abort"}', "'type' stands twice"),
    "50 MB of zeros": (lambda: bytes(50_000_000), "more than 1048576 bytes"),
    "50 MB of a message": (lambda: padded(50_000_000), "more than 1048576 bytes"),
    "deeply nested": (lambda: b"[" * 100_000, "nested more than 64 deep"),
    "nested objects": (
        lambda: b'{"a":' * 2000 + b"1" + b"}" * 2000,
        "nested more than 64 deep",
    ),
    "nested inputs": (
        lambda: json.dumps(payload(json.loads("[" * 70 + "]" * 70), "context", "x")).encode(),
        "nested more than 64 deep",
    ),
}


@pytest.mark.parametrize("what", NO_MESSAGE)
def test_a_file_that_is_no_message_exits_64_with_one_line_that_names_it(
    tmp_path: Path, wires: list[Lab], what: str
) -> None:
    make, words = NO_MESSAGE[what]
    path = tmp_path / "task.json"
    path.write_bytes(make())
    for command in (("run", path, "--json", "--out", tmp_path / "run"), ("plan", path)):
        say(*command).is_one_plain_error("task.json is not an HCP message", words)
    assert wires == []
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("what", "words"), [("gone", "No such file"), ("folder", "directory")])
def test_a_task_file_that_cannot_be_read_exits_64(
    tmp_path: Path, wires: list[Lab], what: str, words: str
) -> None:
    (tmp_path / "folder").mkdir()
    say("run", tmp_path / what, "--json").is_one_plain_error(str(tmp_path / what), words)
    assert wires == []


def typed(kind: str, session_id: str, body: dict[str, Any]) -> dict[str, Any]:
    return {**with_(kind, "type"), "session_id": session_id, "payload": body}


BAD_ENVELOPE: dict[str, tuple[dict[str, Any], str]] = {
    "another hcp_version": (with_("2.0", "hcp_version"), "hcp_version is '2.0'; it must be MAJOR"),
    "a number as hcp_version": (with_(1.0, "hcp_version"), "hcp_version is '1.0'; it must be"),
    "an hcp_version of one number": (with_("1", "hcp_version"), "hcp_version is '1'; it must be"),
    "no hcp_version": (with_(GONE, "hcp_version"), "hcp_version is 'None'; it must be"),
    "no message_id": (with_(GONE, "message_id"), "message_id"),
    "a timestamp in prose": (with_("yesterday", "timestamp"), "timestamp is 'yesterday'"),
    "a session_id": (with_("s-1", "session_id"), "must be null on task_submit"),
    "an unknown type": (with_("task_dream", "type"), "it must be one of task_submit"),
    "a payload that is a list": (with_([], "payload"), "payload is '[]'; it must be an object"),
    "no caller": (payload(GONE, "caller_id"), "payload.caller_id"),
    "an abort": (typed("abort", "s", {"reason": "no"}), "holds a message of type 'abort'"),
    "a bad task_failed": (typed("task_failed", "s", {}), "a message of type 'task_failed'"),
}


@pytest.mark.parametrize("what", BAD_ENVELOPE)
def test_a_bad_envelope_exits_64_and_says_what_it_must_be(
    tmp_path: Path, wires: list[Lab], what: str
) -> None:
    body, words = BAD_ENVELOPE[what]
    submit(tmp_path, body).is_one_plain_error("task.json", words)
    assert wires == []


# ---- a message whose payload will not do: exit 2

RANGE = ("inputs", "temperature_range")
RECIPE = ("inputs", "recipe")
SCHEMA = ("expected_output", "schema")
LIMITS = ("constraints", "max_duration")


class Bad(NamedTuple):
    """A bad payload, the code of its rejection, and words of the message."""

    body: dict[str, Any]
    code: str
    words: str


def invalid(body: dict[str, Any], words: str) -> Bad:
    return Bad(body, "invalid_input", words)


def ranged(low: object, high: object, unit: str = "celsius") -> dict[str, Any]:
    return payload({"min": low, "max": high, "unit": unit}, *RANGE)


def wanting(**schema: object) -> dict[str, Any]:
    return payload(schema, *SCHEMA)


def layers(**schema: object) -> dict[str, Any]:
    return wanting(properties={"layer_count": schema})


FITS_NONE = "expected_output.schema fits no answer of cvd-material-synthesis: outputs"
NOTHING_FITS = FITS_NONE.replace("outputs", "nothing may stand at outputs")

REJECTED: dict[str, Bad] = {
    # who and what
    "no intent": invalid(payload(GONE, "intent"), "payload.intent: it is missing"),
    "intent null": invalid(payload(None, "intent"), "intent: it is null; it must be a text"),
    "an empty intent": invalid(payload(" ", "intent"), "intent is empty"),
    "inputs that are a list": invalid(payload([], "inputs"), "inputs: it is []; it must be an obj"),
    "an unknown capability": invalid(
        payload("alchemy", "capability"), "offered to this caller: cvd-material-synthesis 1.0.0"
    ),
    "a capability of 5000 letters": invalid(
        payload("x" * 5000, "capability"), "it must be at most 128 characters long"
    ),
    "a version range that nothing matches": invalid(
        payload(">=9", "capability_version"), "is in '>=9'; there are: 1.0.0"
    ),
    "a version that is no range": invalid(
        payload("latest!", "capability_version"), "'latest!' is not a version range"
    ),
    "a version as a number": invalid(
        payload(1.0, "capability_version"), "it is 1.0; it must be a text"
    ),
    "an unknown caller": Bad(payload("mallory", "caller_id"), "unauthorized", "'mallory'"),
    "a misspelt key, which would drop the deadline": invalid(
        payload({"max_duration": "PT10M"}, "constraint"),
        "payload: 'constraint' is not known (did you mean constraints?); it takes capability, cap",
    ),
    "a key of nobody": invalid(payload("now", "when"), "payload: 'when' is not known; it takes"),
    # temperatures
    "below zero kelvin": invalid(ranged(-5, 1020, "kelvin"), "min: -5 kelvin is below 0 K"),
    "below zero kelvin in celsius": invalid(ranged(-400, 750), "min: -400 celsius is below 0 K"),
    "min above max": invalid(ranged(760, 750), "min 760 is above max 750"),
    "fahrenheit": invalid(ranged(700, 750, "fahrenheit"), "'fahrenheit' is not one of"),
    "NaN": invalid(ranged(700, float("nan")), "temperature_range.max: nan is not a number"),
    "infinity": invalid(ranged(700, float("inf")), "temperature_range.max: inf is not a number"),
    "an integer beyond all": invalid(ranged(700, 10**30), "is read differently by others"),
    "a temperature as text": invalid(ranged(700, "750"), "max: '750' is not of type 'number'"),
    "a temperature that is true": invalid(ranged(True, 750), "min: True is not of type 'number'"),
    "a range in prose": invalid(payload("750 C", *RANGE), "'750 C' is not of type 'object'"),
    "kelvin above the envelope": Bad(
        ranged(1000, 1300, "kelvin"), "safety_violation", "furnace.setpoint allows 0 to 950 degC"
    ),
    "too hot": Bad(ranged(700, 1250), "safety_violation", "furnace.setpoint allows 0 to 950 degC"),
    "too cold to grow": invalid(ranged(300, 350), "does not grow at 325 degC"),
    # recipe and material
    "a ramp above the envelope": Bad(
        payload({"ramp_c_per_min": 100}, *RECIPE), "safety_violation", "allows 0.1 to 60 degC/min"
    ),
    "an unknown word in the recipe": invalid(
        payload({"magic": 1}, *RECIPE), "'magic' is not an input; it takes"
    ),
    "a negative dwell": invalid(payload({"dwell_s": -1}, *RECIPE), "less than the minimum of 0"),
    "hydrogen, which no approval covers": Bad(
        payload({"hydrogen_sccm": 10}, *RECIPE), "approval_expired", "up to R3, not R4"
    ),
    "WSe2": invalid(payload("WSe2", "inputs", "target_material"), "the intent says 'MoS2'"),
    "no material": invalid(payload(GONE, "inputs", "target_material"), "'target_material' is a re"),
    "another substrate": invalid(payload("glass", "inputs", "substrate"), "'glass'"),
    # constraints
    "a duration in prose": invalid(payload("three days", *LIMITS), "is not an ISO 8601 duration"),
    "a negative duration": invalid(payload("-PT1H", *LIMITS), "'-PT1H' is negative"),
    "a duration as a number": invalid(payload(3600, *LIMITS), "it is 3600; it must be a text"),
    "a duration of nothing": invalid(payload("PT0S", *LIMITS), "not above PT0S"),
    "a duration above the capability's": invalid(payload("P30D", *LIMITS), "at most PT72H"),
    "less time than the growth takes": invalid(payload("PT10M", *LIMITS), "The plan takes PT1H"),
    "T3 data": Bad(
        payload("T3", "constraints", "data_classification"), "forbidden", "T3 data need encryption"
    ),
    "an unknown data class": invalid(
        payload("T9", "constraints", "data_classification"), "none of T1, T2, T3, T4"
    ),
    "a confidence above 1": invalid(
        payload(1.5, "constraints", "confidence_threshold"), "between 0 and 1"
    ),
    # what is expected of the answer
    "an unknown format": invalid(
        payload("pdf", "expected_output", "format"), "there are: raman_spectrum_analysis"
    ),
    "a field that is not produced": invalid(
        payload(["gold"], "expected_output", "required_fields"), "produces no gold; it produces:"
    ),
    "a $ref to the web": invalid(wanting(**{"$ref": "https://example.org/s"}), "is not fetched"),
    "a $ref to a file": invalid(wanting(**{"$ref": "file:///etc/passwd"}), "is not fetched"),
    "a $ref in a circle": invalid(
        wanting(**{"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}), "in a circle"
    ),
    "another dialect": invalid(
        wanting(**{"$schema": "http://json-schema.org/draft-04/schema#"}), "is not read"
    ),
    "a catastrophic pattern": invalid(layers(pattern="(a+)+$"), "may take time without bound"),
    "a catastrophic name": invalid(
        wanting(patternProperties={"(a|aa)+$": {}}), "may take time without bound"
    ),
    "a schema that is none": invalid(wanting(type="x"), "not a JSON Schema"),
    "a schema that is false": invalid(payload(False, *SCHEMA), "it is false; it must be an object"),
    "a schema for nothing": invalid(wanting(**{"not": {}}), NOTHING_FITS),
    "a schema for a list": invalid(
        wanting(type="array"), f"{FITS_NONE} is an object, never a list"
    ),
    "a schema that requires gold": invalid(wanting(required=["gold"]), "produces no gold"),
    "gold at a second look": invalid(
        wanting(allOf=[{"required": ["gold"]}]), f"{FITS_NONE} never hold gold"
    ),
    "more layers than layers": invalid(
        layers(minimum=5, maximum=2), f"{FITS_NONE}.layer_count is never at least 5 and at most 2"
    ),
    "layers in words": invalid(layers(type="string"), "is a whole number, never a text"),
    "a dozen layers": invalid(layers(const=12), f"{FITS_NONE}.layer_count is never one of [12]"),
    "certainty beyond 1": invalid(
        wanting(properties={"confidence": {"exclusiveMinimum": 1}}), f"{FITS_NONE}.confidence"
    ),
    "no outputs but one": invalid(wanting(maxProperties=1), f"{FITS_NONE} hold 8 values"),
}


@pytest.mark.parametrize("name", REJECTED)
def test_a_bad_payload_is_rejected_in_one_message_with_why_and_nothing_is_written(
    tmp_path: Path, wires: list[Lab], name: str
) -> None:
    bad = REJECTED[name]
    said = submit(tmp_path, bad.body)
    assert said.code == 2, said
    assert said.err == ""
    assert said.answer["type"] == "task_rejected"
    assert said.answer["session_id"] is None
    answer = said.answer["payload"]
    assert answer["in_reply_to"] == bad.body["message_id"]
    assert answer["reason_code"] == bad.code
    assert bad.words in answer["reason_message"]
    assert wrote(wires) == []
    followed = follow(bad.body, answer["suggestion"], answer["reason_message"])
    assert followed != bad.body, answer["suggestion"]
    passes(tmp_path, followed)


# ---- suggestions, followed to the letter

PLACE = r"(?:payload\.)?([a-z_.]+[a-z_])"


def follow(body: dict[str, Any], suggestion: str, message: str) -> dict[str, Any]:
    """Do what a suggestion says. Where it only names the place, the example has the right value."""
    followed: dict[str, Any] = json.loads(json.dumps(body))
    if found := re.search(
        r"With inputs (\{.*?\})((?: and no \w+)*) the task is accepted", suggestion
    ):
        followed["payload"]["inputs"].update(json.loads(found[1]))
        for gone in re.findall(r"and no (\w+)", found[2]):
            del followed["payload"]["inputs"][gone]
        return followed
    if found := re.search(r"Without (\w+) among its inputs the task is accepted", suggestion):
        del followed["payload"]["inputs"][found[1]]
        return followed
    for pattern, path in NAMED:
        if found := re.search(pattern, suggestion):
            kind = type(at(example(), path)) if at(example(), path) is not None else str
            return put(followed, path, kind(found[1]))
    for pattern, path in DROPPED:
        if re.search(pattern, suggestion):
            return put(followed, path, GONE)
    if found := re.match(rf"Write into {PLACE} what the intent says \((\w+)\)", suggestion):
        return put(followed, found[1].split("."), found[2])
    if found := re.search(r"within (\d+) to (\d+) celsius$", suggestion):
        return put(followed, RANGE, {"min": int(found[1]), "max": int(found[2])})
    if found := re.match(
        rf"(?:Set|Write) {PLACE} (?:to one of: (\w+)|to at least (\d+))", suggestion
    ):
        return put(followed, found[1].split("."), found[2] or int(found[3]))
    if found := re.match(r"Leave out of payload: (\w+)", suggestion):
        return put(followed, (found[1],), GONE)
    if found := re.match(rf"Leave out of {PLACE}: (\w+)", suggestion):
        return put(followed, (*found[1].split("."), found[2]), GONE)
    if found := re.match(rf"Add to {PLACE}: (\w+)", suggestion):
        path = (*found[1].split("."), found[2])
        return put(followed, path, at(example(), path))
    named = re.match(rf"(?:Write|Correct) {PLACE}(?: as | and )", suggestion)
    if named is not None:
        path = tuple(named[named.lastindex or 1].split("."))
        return put(followed, path, at(example(), path))
    if suggestion == "Say in words what is wanted":
        return put(followed, ("intent",), "Grow it")
    raise AssertionError(f"nobody can follow {suggestion!r}")


NAMED: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"^Choose one of: (\S+)", ("capability",)),
    (r"^caller_id must be one of ([^,]+)", ("caller_id",)),
    (r"^Choose a range that holds one of: (\S+)$", ("capability_version",)),
    (r"^ask for target_material '(.+)'", ("inputs", "target_material")),
    (r"^ask for substrate '(.+)'", ("inputs", "substrate")),
    (r"^Write a duration of at most \S+, for example (\S+)", LIMITS),
    (r"^Set constraints.max_duration to (\S+) or more", LIMITS),
    (r"^Declare (?:one of: )?(T\d)", ("constraints", "data_classification")),
    (r"^Write a probability, for example (0\.\d+)", ("constraints", "confidence_threshold")),
)
DROPPED: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"^Leave expected_output.schema out, or", SCHEMA),
    (r"^Leave the format out, or choose one of: \w", ("expected_output", "format")),
    (r"^Require only what is produced: \w", ("expected_output",)),
)


def at(body: dict[str, Any], path: tuple[str, ...]) -> Any:
    place = body["payload"]
    for each in path:
        place = place.get(each) if isinstance(place, dict) else None
    return place


def put(body: dict[str, Any], path: Any, value: object) -> dict[str, Any]:
    place = body["payload"]
    for each in path[:-1]:
        place = place.setdefault(each, {})
    if value is GONE or value is None:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return body


ACCEPTED: set[str] = set()  # many suggestions lead to one and the same submission


def passes(folder: Path, body: dict[str, Any]) -> None:
    text = json.dumps(body, sort_keys=True)
    if text in ACCEPTED:
        return
    path = folder / "followed.json"
    path.write_text(text, "utf-8")
    said = say("plan", path, "--lab", SHORT_LINE)
    assert said.code == 0, said
    ACCEPTED.add(text)


@pytest.mark.thorough
def test_a_caller_that_follows_one_suggestion_after_the_other_is_accepted_in_the_end(
    tmp_path: Path,
) -> None:
    body = example()
    wrong: tuple[tuple[tuple[str, ...], object], ...] = (
        (("capability",), "alchemy"),
        (("capability_version",), "^7"),
        (("inputs", "target_material"), "WSe2"),
        (("inputs", "substrate"), "glass"),
        ((*RECIPE, "ramp_c_per_min"), 90),
        (("constraints", "data_classification"), "T4"),
        (LIMITS, "PT10M"),
        (("constraints", "confidence_threshold"), 2),
        (("expected_output", "format"), "pdf"),
    )
    for path, value in wrong:
        put(body, path, value)
    for _ in wrong:
        said = submit(tmp_path, body)
        assert said.code == 2, said
        answer = said.answer["payload"]
        if found := re.search(r"ramp_c_per_min within 0.1 to (\S+)", answer["suggestion"]):
            put(body, (*RECIPE, "ramp_c_per_min"), float(found[1]))
        else:
            body = follow(body, answer["suggestion"], answer["reason_message"])
    passes(tmp_path, body)
