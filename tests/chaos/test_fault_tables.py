"""The faults file of a line: what it draws is there, and all that is wrong in it is told."""

from pathlib import Path

import pytest

from chaos_scenes import FAULTS, fault, told
from commands import say
from labharness.chaos.scenario import Scenario, draw, read_scenario, write_scenario
from labharness.chaos.table import Formula, faults_of
from labharness.chaos.world import play
from labharness.core.files.tables import BadTable
from labharness.lab import default_lab_path, read_lab
from labharness.lab.config.kinds import shipped_file
from rig import line_texts

ANNEALING = Path(str(shipped_file("labs/annealing_furnace/lab.toml")))
SHIPPED = str(shipped_file("lines/cvd_mos2.faults.toml"))


def short_line_with(folder: Path, faults: str) -> Path:
    """Write the short line into a folder, with a faults file of its own."""
    for name, text in line_texts().items():
        (folder / name).write_text(text, "utf-8")
    (folder / "short_line_envelope.faults.toml").write_text(faults, "utf-8")
    return folder / "lab.toml"


def test_a_line_without_a_faults_file_takes_that_of_its_base() -> None:
    assert faults_of(read_lab(default_lab_path())).file_digest == FAULTS.file_digest


def test_a_line_has_its_own_faults_where_its_file_stands_beside_it(tmp_path: Path) -> None:
    text = Path(SHIPPED).read_text("utf-8") + "\n# its own\n"
    table = faults_of(read_lab(short_line_with(tmp_path, text)))
    assert table.file_digest != FAULTS.file_digest
    assert draw(1, 7, 1.0, table) == draw(1, 7, 1.0, FAULTS)


@pytest.mark.parametrize(
    ("edits", "words"),
    [
        ({"\ndigest = ": "\nflood = 1\ndigest = "}, "flood: there is no such key"),
        ({'{ name = "vacuum" }': '{ name = "vacum" }'}, "no port 'vacum' (did you mean vacuum?)"),
        ({'"bus_cut heat"': '"bus_cut heart"'}, "no fault is 'bus_cut heart'"),
        (
            {"o2_fraction > purged_o2": "o2_fracton > purged_o2"},
            "no value 'o2_fracton' (did you mean o2_fraction?)",
        ),
        ({'when = "laser_on and e': 'when = "open(laser_on) and e'}, "is not a formula"),
        ({'"trip_s + 30"': '"tripp_s"'}, "no time tripp_s"),
        ({'sets = "lid_open"': 'sets = "lid_opened"'}, "have no field 'lid_opened'"),
        ({'energised = "': 'energized = "'}, "no state 'energised'"),
        ({'masks = ["laser cut"]': 'masks = ["laser gone"]'}, "no mask 'laser gone'"),
        (
            {'"bus_cut heat"': '"bus_cut heart"', '{ name = "vacuum" }': '{ name = "vacum" }'},
            "; no fault is 'bus_cut heart'",
        ),
    ],
)
def test_all_that_is_wrong_in_a_faults_file_is_told(
    tmp_path: Path, edits: dict[str, str], words: str
) -> None:
    text = Path(SHIPPED).read_text("utf-8")
    for old, new in edits.items():
        assert old in text
        text = text.replace(old, new)
    lab = short_line_with(tmp_path, text)
    with pytest.raises(BadTable) as told_of:
        faults_of(read_lab(lab))
    assert str(told_of.value).startswith("short_line_envelope.faults.toml: ")
    assert words in str(told_of.value)


@pytest.mark.parametrize(
    "text", ["", "a b", "f(x)", "x.y", "[1]", "lambda: 1", "2 ** 9", "x" * 501]
)
def test_a_formula_calls_nothing_and_reaches_into_nothing(text: str) -> None:
    with pytest.raises(ValueError, match="formula"):
        Formula(text)


def test_a_line_without_any_faults_file_is_told_where_it_was_looked_for() -> None:
    lab = Path(str(shipped_file("labs/iv_bench/lab.toml")))
    said = say("chaos", "--line", lab, "--replay", "1/1")
    said.is_one_plain_error("its line has no faults file: iv_bench.faults.toml")


def test_another_line_is_searched_with_a_file_of_its_own(tmp_path: Path) -> None:
    plan = read_lab(ANNEALING)
    table = faults_of(plan)
    drawn = [draw(1, number, 1.0, table) for number in range(200)]
    assert {each.kind for one in drawn for each in one.faults} == set(table.rows)
    assert all(read_scenario(write_scenario(one), table) == one for one in drawn)
    recipe = {"temperature_c": 150.0, "duration_s": 1.0}
    dies = Scenario(name="0/0", seed=5, recipe=recipe, faults=(fault("kill", "heating", 30.0),))
    verdict = play(plan, dies, tmp_path)
    assert verdict.violation is None
    assert verdict.injected == 1
    assert "guard: make_safe" in told(verdict)


@pytest.mark.thorough
@pytest.mark.timeout(300)
def test_hours_of_the_search_on_another_line_end_well(tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    said = say("chaos", "--line", ANNEALING, "--hours", "2", "--workers", "1", "--state", state)
    assert said.code == 0, said
    assert " 0 violations" in said.out
