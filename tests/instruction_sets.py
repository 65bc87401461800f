"""Instruction sets as a client writes them, and the one of MCP-CP's chapter 9.2."""

from typing import Any


def step(name: str, *needs: str, action: str = "QUERY_DATA", **more: Any) -> dict[str, Any]:
    return {"instructionId": name, "action": action, "dependencies": list(needs), **more}


def content(*steps: dict[str, Any], mode: str = "SEQUENTIAL", **more: Any) -> dict[str, Any]:
    return {"instructions": list(steps), "executionMode": mode, **more}


CHAPTER_9_2 = content(
    {"instructionId": "inst_101", "action": "QUERY_DATA", "parameters": {"limit": 1000}},
    step(
        "inst_102",
        "inst_101",
        action="PROCESS_DATA",
        parameters={"data": "${dependencies.inst_101.result.data}"},
        condition="dependencies.inst_101.status == 'COMPLETED'",
    ),
    step(
        "inst_103",
        "inst_102",
        action="ANALYZE_TREND",
        parameters={"points": "${dependencies.inst_102.result.processed_data}", "timeRange": "30d"},
        condition="dependencies.inst_102.status == 'COMPLETED'",
    ),
    step(
        "inst_104",
        *("inst_101", "inst_102", "inst_103"),
        action="GENERATE_REPORT",
        parameters={
            "rawData": "${dependencies.inst_101.result.data}",
            "processedData": "${dependencies.inst_102.result.processed_data}",
            "analysis": "${dependencies.inst_103.result.analysis}",
        },
        condition="dependencies.inst_103.status == 'COMPLETED'",
    ),
    timeout=120,
)
