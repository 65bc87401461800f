"""A capability of somebody else's package: it is run, answered and reported like ours."""

import json
from pathlib import Path

import pytest

from commands import edited_lab, example, spawn_with

CODE = '''
"""Counts the readings of a minute."""

from labharness.core.vocabulary.texts import Text
from labharness.work.admission.declaration import Declaration, DeclaredConstraints, Safety
from labharness.work.capability import Answer, ArtifactContent, Planned
from labharness.work.plan import PHYSICAL_VERBS, Instruction, InstructionSet


class Counting:
    declaration = Declaration(
        name="counting",
        version="1.0.0",
        description="Counts the readings of a minute",
        input_schema={"type": "object", "additionalProperties": False, "properties": {}},
        output_schema={
            "type": "object",
            "properties": {"readings": {"type": "integer"}, "mean": {"type": "number"}},
        },
        safety=Safety("R3", False, False, side_effects="none"),
        constraints=DeclaredConstraints("PT1H"),
    )
    formats = ()
    verbs = PHYSICAL_VERBS

    def misfits(self, facts):
        return iter(())

    def plan(self, inputs, constraints, facts):
        asked = {"duration_s": 60.0, "channels": ["gauge.pressure"]}
        step = Instruction(
            instruction_id="count", action="hold", timeout_s=600.0, parameters=asked, stage="count",
            description="Count", expected_s=60.0,
        )
        return Planned(
            instructions=InstructionSet((step,)), duration_s=60.0, process_gases=(),
            temperature_c_max=None, recipe={},
        )

    def ways_out(self, inputs, facts):
        return iter(())

    def answer(self, records, constraints):
        found = records[0].result["measured"]["gauge.pressure"]
        table = f"readings,mean\\n{found['readings']},{found['mean']}\\n".encode()
        return Answer(
            {"readings": found["readings"], "mean": found["mean"]},
            (ArtifactContent("counted", "text/csv", table),),
            finding=Text("counting.found", readings=found["readings"]),
        )


CAPABILITY = Counting()
'''
TEXTS = """
[counting.found]
en = "{readings} readings were counted"
zh = "共计 {readings} 个读数"

[phase.count]
en = "counting"
zh = "计数"
"""
CALLERS = (
    '[callers.somebody]\ncapabilities = ["counting"]\nrisk_max = "R3"\ndata_class_max = "T2"\n'
)


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """An installed package that offers one capability."""
    home = tmp_path / "site"
    package = home / "their_capabilities" / "counting"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").write_text("", "utf-8")
    (package / "__init__.py").write_text(CODE, "utf-8")
    (package / "texts.toml").write_text(TEXTS, "utf-8")
    about = home / "theirs-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n", "utf-8")
    groups = ("capabilities", "texts")
    points = [f"[labharness.{group}]\ntheirs = their_capabilities\n" for group in groups]
    (about / "entry_points.txt").write_text("".join(points), "utf-8")
    return home


@pytest.mark.promise(53)
def test_a_task_of_it_ends_with_its_answer_its_report_and_no_traceback(
    theirs: Path, tmp_path: Path
) -> None:
    lab = edited_lab(tmp_path, 'title = "Short line', 'title = "The line')
    text = lab.read_text("utf-8")
    callers = next(each for each in text.splitlines() if each.startswith("callers"))
    text = text.replace(callers, 'callers = "own.toml"')
    lab.write_text(text.replace("[tube]", "[capability.counting]\n\n[tube]"), "utf-8")
    (tmp_path / "own.toml").write_text(CALLERS, "utf-8")
    body = example()
    body["payload"] = {
        "capability": "counting",
        "caller_id": "somebody",
        "intent": "Count readings",
        "inputs": {},
    }
    (tmp_path / "task.json").write_text(json.dumps(body), "utf-8")
    out = tmp_path / "run"
    said = spawn_with(theirs, "run", tmp_path / "task.json", "--lab", lab, "--out", out)
    assert said.code == 0, said.err
    assert "Traceback" not in said.err
    assert "completed: readings " in said.out
    assert ", mean 7" in said.out
    assert " readings were counted\n" in said.out
    assert "film" not in said.out
    assert (out / "artifacts" / "counted.csv").exists()
    assert (out / "artifacts" / "process_log.csv").exists()
    assert "growth" not in said.out
    report = (out / "report.html").read_text("utf-8")
    assert "Count readings" in report
    assert all(each in report for each in ("共计 ", "计数"))


def test_a_text_of_it_whose_code_is_taken_is_one_plain_error_that_names_both(theirs: Path) -> None:
    file = theirs / "their_capabilities" / "counting" / "texts.toml"
    file.write_text(TEXTS.replace("counting.found", "line.latched"), "utf-8")
    said = spawn_with(theirs, "capabilities", "list")
    said.is_one_plain_error("text 'line.latched' is doubled", str(file), "labharness/")
