"""The tool and the actions of chapter 9 of MCP-CP, as another package offers them."""

from collections.abc import Mapping
from typing import Any

from labharness.faces.dialogue.instructing import Action
from labharness.faces.dialogue.tools import Agent, AgentTool
from labharness.work.plan.actions import ActionSchema
from labharness.work.plan.instructions import InstructionKind
from labharness.work.plan.step import RunningStep

POINTS = """
[labharness.agent_tools]
weather_api = chapter_nine:WEATHER
[labharness.dialogue_actions]
QUERY_DATA = chapter_nine:QUERY
PROCESS_DATA = chapter_nine:PROCESS
ANALYZE_TREND = chapter_nine:ANALYZE
GENERATE_REPORT = chapter_nine:REPORT
"""
RAN = "weather.txt"
"""In the state directory of the lab: a line for each time that the tool was carried out."""


def _weather(agent: Agent, city: str, date: str = "") -> dict[str, Any]:
    with (agent.plan.state_dir / RAN).open("a") as file:
        file.write(f"{city}\n")
    return {"city": city, "date": date, "temperature": "5°C", "weather": "晴", "humidity": "30%"}


TEXT = {"type": "string"}
PARAMETERS = {"city": TEXT, "date": TEXT}
WEATHER = AgentTool("weather_api", "read", "The weather of a day.", _weather, PARAMETERS, ("city",))


async def _query(step: RunningStep) -> Mapping[str, Any]:
    rows = [[f"2025-11-{day:02}", day, 10] for day in range(1, step.parameters["limit"] // 250)]
    return {"data": rows}


async def _process(step: RunningStep) -> Mapping[str, Any]:
    revenue = {day: count * price for day, count, price in step.parameters["data"]}
    return {"processed_data": {"operations": step.parameters["operations"], "revenue": revenue}}


async def _analyze(step: RunningStep) -> Mapping[str, Any]:
    values = [*step.parameters["data"]["revenue"].values()]
    return {"analysis": {"total": sum(values), "rises": values == sorted(values)}}


async def _report(step: RunningStep) -> Mapping[str, Any]:
    given = step.parameters
    days, total = len(given["rawData"]), given["analysis"]["total"]
    return {"report": f"# {days} days, {total} in all", "sections": given["sections"]}


def _action(kind: InstructionKind, work: Any, result: str, *names: str) -> Action:
    schema = {"type": "object", "required": [*names]}
    return Action(ActionSchema(kind, schema, (result,)), work)


QUERY = _action(InstructionKind.QUERY, _query, "data", "query", "limit")
PROCESS = _action(InstructionKind.ANALYSIS, _process, "processed_data", "data", "operations")
ANALYZE = _action(InstructionKind.ANALYSIS, _analyze, "analysis", "data", "metrics")
REPORT = _action(InstructionKind.GENERATION, _report, "report", "rawData", "analysis")
