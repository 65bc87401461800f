"""A set is drawn as its graph: a node for each instruction, an edge for each dependency."""

from labharness.work.plan.drawing import as_mermaid, as_text
from labharness.work.plan.instructions import Instruction, InstructionKind, InstructionSet


def one(
    name: str, *needs: str, action: str = "set", kind: str = "OPERATION", condition: str = ""
) -> Instruction:
    return Instruction(
        instruction_id=name,
        action=action,
        kind=InstructionKind(kind),
        dependencies=needs,
        condition=condition,
        timeout_s=1.0,
    )


PLAN = InstructionSet(
    (
        one("look", action="query", kind="QUERY"),
        one("heat"),
        one("fit", "look", "heat", action="fit_peaks", kind="ANALYSIS"),
        one(
            "go",
            "fit",
            kind="DECISION",
            condition="dependencies.fit.result.n  > 1\n AND dependencies.fit.result.s == '\"#'",
        ),
    )
)


def test_a_text_has_depth_name_action_and_dependencies_of_each() -> None:
    assert list(as_text(PLAN)) == [
        "   1  look  query",
        "   1  heat  set",
        "   2  fit   fit_peaks  <- look, heat",
        "   3  go    set  <- fit  if dependencies.fit.result.n > 1 "
        "AND dependencies.fit.result.s == '\"#'",
    ]


def test_a_flowchart_has_a_node_for_each_and_an_edge_for_each_dependency() -> None:
    assert list(as_mermaid(PLAN)) == [
        "flowchart TD",
        '  n1(["look<br/>query"])',
        '  n2["heat<br/>set"]',
        '  n3("fit<br/>fit_peaks")',
        '  n4{"go<br/>set<br/>if dependencies.fit.result.n #gt; 1 AND '
        "dependencies.fit.result.s == '#quot;#35;'\"}",
        "  n1 --> n3",
        "  n2 --> n3",
        "  n3 --> n4",
    ]


def test_an_empty_set_is_drawn_too() -> None:
    assert list(as_text(InstructionSet(()))) == []
    assert list(as_mermaid(InstructionSet(()))) == ["flowchart TD"]
