"""An envelope that is based on another one: each change named and sourced, or an error says which.

The short line of all tests is such an envelope, so what it changes is held here against the base.
"""

from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path

import pytest

from commands import say
from labharness.lab import default_lab_path, read_lab
from labharness.safety.kernel import Bound
from rig import EXAMPLE, SHORT_LINE, line_texts

BASE = 'based_on = "cvd_mos2.toml"'


def change(body: str, source: str = "the tests") -> str:
    return f'{BASE}\nline = "own"\n\n[[change]]\nsource = "{source}"\n{body}\n'


def limit(keys: str, row: str = 'row = "furnace.setpoint_rate"') -> str:
    return change(f'table = "limit"\n{row}\n{keys}')


def written(folder: Path, envelope: str) -> Path:
    """The short line with an envelope of its own."""
    for name, text in {**line_texts(), "short_line_envelope.toml": envelope}.items():
        (folder / name).write_text(text, "utf-8")
    return folder / "lab.toml"


def test_the_short_line_is_the_shipped_one_but_for_the_rows_that_it_names() -> None:
    short, shipped = read_lab(SHORT_LINE).envelope, read_lab(default_lab_path()).envelope
    differ = {
        each.name
        for each in fields(short)
        if getattr(short, each.name) != getattr(shipped, each.name)
    }
    assert differ == {"line", "limits", "interlocks", "plausible", "purge"}
    assert short.purge.volume_cm3 == 200  # of its lab file
    changed = {row.name for row in set(short.interlocks) ^ set(shipped.interlocks)}
    assert changed == {"furnace heats only by a rate limit"}
    assert {row.name for row in set(short.plausible) ^ set(shipped.plausible)} == {
        "furnace gets hotter faster than any ramp",
        "furnace gets hotter faster than it was asked",
        "a shut tube is filled without its pressure rising",
        "a shut tube is filled gently without its pressure rising",
        "a shut tube is filled slowly without its pressure rising",
    }
    limits = {name for name, row in short.limits.items() if row != shipped.limits[name]}
    assert limits == {"furnace.setpoint_rate"}
    source = "a furnace of small mass; the tests' own number"
    rate = replace(shipped.limits["furnace.setpoint_rate"], high=60, source=source)
    assert short.limits["furnace.setpoint_rate"] == rate


ROW_ADDED = """table = "trip"
[change.add]
name = "much gas"
channel = "argon.flow"
cause = "over_flow"
unit = "sccm"
high = 400"""


def test_a_row_is_set_removed_and_added_and_a_table_too(tmp_path: Path) -> None:
    more = """
[[change]]
table = "procedures.hold_vacuum"
set = { verify_s_max = 77 }
source = "the tests"

[[change]]
table = "purge.leak_check"
set = { leak_max = 0.05 }
source = "the tests"

[[change]]
table = "plausible"
row = "argon does not come"
remove = true
source = "the tests"

[[change]]
table = "quantities"
set = { gas_flow_rate = ["argon.flow"] }
source = "the tests"

[[change]]
table = "safety_envelope.parameters.pressure"
set = { max = 0.1 }
source = "a relief valve of 0.1 bar"

[[change]]
table = "purge.present.neon"
add = { channel = "argon.flow", at_least = 300 }
source = "the tests"
"""
    own = read_lab(written(tmp_path, change(ROW_ADDED, "a data sheet") + more)).envelope
    shipped = read_lab(default_lab_path()).envelope
    (added,) = [row for row in own.trips if row.name == "much gas"]
    assert (added.high, added.source, added.procedure) == (400, "a data sheet", added.procedure)
    assert own.procedures["hold_vacuum"].verify_s_max == 77
    assert own.procedures["hold_vacuum"].steps == shipped.procedures["hold_vacuum"].steps
    assert own.purge.leak_check is not None
    assert own.purge.leak_check.leak_max == 0.05
    assert {row.name for row in shipped.plausible} - {row.name for row in own.plausible} == {
        "argon does not come"
    }
    (pressure,) = [row for row in own.trips if row.name == "pressure above the safety envelope"]
    assert pressure.high == pytest.approx(1.1 * 760)
    assert pressure.unit == "Torr"
    assert pressure.source == "a relief valve of 0.1 bar"
    assert own.purge.present["neon"] == (Bound("argon.flow", low=300),)


BAD: Mapping[str, tuple[str, str]] = {
    "no row of that name": (
        limit("set = { high = 6 }", 'row = "furnace.setpoint_rat"'),
        "change 1 (limit 'furnace.setpoint_rat'): no row has this name in the base"
        " (did you mean furnace.setpoint_rate?)",
    ),
    "no row named": (limit("set = { high = 6 }", ""), "it takes row, the name or channel of one"),
    "no such table": (
        change('table = "limits"\nrow = "furnace.setpoint_rate"\nset = { high = 6 }'),
        "change 1 (limits 'furnace.setpoint_rate'): there is no such table (did you mean limit?)",
    ),
    "a row in the name of a table": (
        change('table = "limit.furnace"\nset = { high = 6 }'),
        "limit has rows; write that in table",
    ),
    "no such table above": (
        change('table = "purges.backfill"\nset = { low = 6 }'),
        "there is no table purges in the base",
    ),
    "a key for a table": (change('table = "line"\nset = { x = 6 }'), "this is a key, not a table"),
    "a row of a table without rows": (
        change('table = "purge.backfill"\nrow = "low"\nset = { low = 6 }'),
        "this table has no rows",
    ),
    "an unknown key": (
        limit("set = { hihg = 6 }"),
        "change 1 (limit 'furnace.setpoint_rate'): limit 'furnace.setpoint_rate'.hihg: "
        "there is no such key (did you mean high?)",
    ),
    "an unknown key of a change": (limit("sets = { high = 6 }"), "sets: there is no such key"),
    "words for a number": (limit('set = { high = "6" }'), "'furnace.setpoint_rate'.high: '6'"),
    "nothing changed": (
        limit("set = { low = 0.1, high = 20 }"),
        "change 1 (limit 'furnace.setpoint_rate'): high is 20 already: it changes nothing",
    ),
    "nothing asked": (limit(""), "it takes one of set, add and remove"),
    "two things asked": (limit("set = { high = 6 }\nremove = true"), "one of set, add and remove"),
    "no source": (
        limit("set = { high = 6 }").replace('source = "the tests"\n', ""),
        "change.0.source: it is missing",
    ),
    "an empty source": (limit("set = { high = 6 }").replace("the tests", " "), "it is empty"),
    "a source inside": (limit('set = { source = "x" }'), "source stands beside set and add"),
    "a row that is there": (
        change(ROW_ADDED.replace("much gas", "hydrogen in the room")),
        "the base has a row 'hydrogen in the room' already",
    ),
    "a table that is there": (
        change('table = "purge.backfill"\nadd = { cycles = 3 }'),
        "the base has this table already",
    ),
    "an added row that is named twice": (
        change(ROW_ADDED.replace('"trip"', '"trip"\nrow = "much gas"')),
        "a row that is added is named in add",
    ),
    "an added row without a key": (
        change(ROW_ADDED.replace("high = 400", "").replace('unit = "sccm"', "")),
        "trip 'much gas'.unit: it is missing",
    ),
    "a row that another one needs": (
        change('table = "watch"\nrow = "argon.flow"\nremove = true'),
        "argon.flow', which this envelope does not have",
    ),
    "no shipped base": (
        'based_on = "cvd_mos"\nline = "own"',
        "based_on: no line that ships is called 'cvd_mos'",
    ),
    "no base beside it": ('based_on = "gone.toml"\nline = "own"', "gone.toml: No such file"),
    "a base of its own": (
        'based_on = "short_line_envelope.toml"\nline = "own"',
        "is itself based on 'short_line_envelope.toml'",
    ),
    "a base that is a number": ('based_on = 6\nline = "own"', "6 is neither a name nor a path"),
    "no name": (BASE, "line: it is missing"),
}


@pytest.mark.promise(9)
@pytest.mark.parametrize("name", BAD)
def test_a_change_that_is_not_exactly_one_is_an_error_that_names_it(
    tmp_path: Path, name: str
) -> None:
    envelope, words = BAD[name]
    lab = written(tmp_path, envelope)
    for command in (("lab", "check"), ("run", EXAMPLE, "--out", tmp_path / "o")):
        said = say(*command, "--lab", lab)
        said.is_one_plain_error(str(tmp_path), words)
    assert "short_line_envelope.toml" in said.err or "argon.flow" in said.err


@pytest.mark.promise(9)
def test_a_change_that_names_two_rows_is_an_error(tmp_path: Path) -> None:
    envelope = change(
        'table = "plausible"\nrow = "nitrogen flow is not what was set"\nset = { found_s = 60 }'
    )
    lab = written(tmp_path, envelope)
    base = tmp_path / "cvd_mos2.toml"
    text = base.read_text("utf-8")
    twice = text.replace("argon flow is not what was set", "nitrogen flow is not what was set")
    assert read_lab(lab).envelope.line == "own"
    base.write_text(twice, "utf-8")
    say("lab", "check", "--lab", lab).is_one_plain_error(
        "short_line_envelope.toml", "change 1 (plausible 'nitrogen", "2 rows have this name"
    )


@pytest.mark.promise(9)
def test_the_envelope_digest_covers_the_changes_and_what_they_are_made_of(tmp_path: Path) -> None:
    before = read_lab(written(tmp_path, line_texts()["short_line_envelope.toml"])).envelope_digest
    for name in ("short_line_envelope.toml", "cvd_mos2.toml"):
        path = tmp_path / name
        text = path.read_text("utf-8")
        path.write_text(text + "\n# another\n", "utf-8")
        assert read_lab(tmp_path / "lab.toml").envelope_digest != before
        path.write_text(text, "utf-8")
    assert read_lab(tmp_path / "lab.toml").envelope_digest == before
