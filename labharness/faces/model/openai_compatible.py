"""A model behind an interface like OpenAI's; pydantic-ai carries one request, and no loop."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Final

from openai import AsyncOpenAI
from pydantic_ai import direct
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from labharness.core.vocabulary.texts import Text
from labharness.faces.dialogue.tools import known_tools
from labharness.protocols.mcp_cp.messages import ModelResponse as Answer
from labharness.protocols.mcp_cp.messages import Usage
from labharness.protocols.mcp_cp.tools import SupportedTool, ToolResult
from labharness.protocols.strict_json import Json
from labharness.work.dialogue.course import RESULTS, Briefing, response_of

ANSWER_S_MAX: Final = 120.0
"""Longest wait (s) for one answer of a model; it is not asked again."""

ANSWER_TOKENS_MAX: Final = 8_192

UNANSWERED: Final = (OSError, RuntimeError, ValueError, TypeError, LookupError, AttributeError)
"""Errors of the two libraries: their own, and those of bytes that they had not thought of."""


class OpenAiCompatible:
    """A model by its address.

    Args:
        url: Of the interface, such as ``http://127.0.0.1:11434/v1``.
        name: Of the model.
        key: That the interface asks for.
    """

    def __init__(self, url: str, name: str, key: str) -> None:
        self._url, self._name, self._key = url, name, key

    def answer(self, briefing: Briefing) -> Answer:
        """Return its answer; one that fails is an answer too, with the finish reason ERROR."""
        try:
            found = asyncio.run(self._respond(briefing))
        except UNANSWERED as why:
            text = Text("model.silent", why=type(why).__name__)
            return response_of(str(text), (), "error", None, briefing.number)
        calls = [
            (each.tool_name, each.args_as_json_str())
            for each in found.parts
            if isinstance(each, ToolCallPart)
        ]
        said = "\n".join(each.content for each in found.parts if isinstance(each, TextPart))
        taken = found.usage
        usage = Usage(taken.input_tokens, taken.output_tokens, taken.total_tokens)
        return response_of(said, calls, found.finish_reason or "stop", usage, briefing.number)

    async def _respond(self, briefing: Briefing) -> ModelResponse:
        settings = ModelSettings(max_tokens=ANSWER_TOKENS_MAX)
        async with (
            asyncio.timeout(ANSWER_S_MAX),
            AsyncOpenAI(base_url=self._url, api_key=self._key, max_retries=0) as client,
        ):
            return await direct.model_request(
                OpenAIChatModel(self._name, provider=OpenAIProvider(openai_client=client)),
                _projected(briefing),
                model_settings=settings,
                model_request_parameters=ModelRequestParameters(
                    function_tools=_defined(briefing.tools)
                ),
            )


def _defined(tools: Mapping[str, SupportedTool]) -> list[ToolDefinition]:
    """Return the tools as the library takes them: ours, and those of the user's programs."""
    ours = [(name, each.told, each.schema) for name, each in known_tools().items()]
    theirs = [
        (name, each.description or "", each.parameters or {"type": "object"})
        for name, each in tools.items()
    ]
    return [
        ToolDefinition(name=name, description=told, parameters_json_schema=schema)
        for name, told, schema in (*ours, *theirs)
    ]


def _projected(briefing: Briefing) -> list[ModelMessage]:
    """Return a dialogue as the library takes it; results are data within JSON."""
    found: list[ModelMessage] = [ModelRequest(parts=[SystemPromptPart(content=briefing.prompt)])]
    names: dict[str, str] = {}
    for each in briefing.messages:
        content: Any = each.content
        if each.type == "USER_INPUT":
            found.append(ModelRequest(parts=[UserPromptPart(content=content.text)]))
        elif each.type == "MODEL_RESPONSE":
            names |= {call.call_id: call.name for call in content.tool_calls}
            calls = [
                ToolCallPart(call.name, json.dumps(call.parameters), call.call_id)
                for call in content.tool_calls
            ]
            found.append(ModelResponse(parts=[TextPart(content=content.text), *calls]))
        elif each.type == "TOOL_CALL_RESPONSE":
            parts = [_result_part(names.pop(one.call_id, ""), one) for one in content.results]
            found.append(ModelRequest(parts=parts))
        elif results := each.metadata.get(RESULTS):
            found.append(ModelRequest(parts=[_data_part("your set", results)]))
    return found


def _result_part(name: str, result: ToolResult) -> ToolReturnPart | UserPromptPart:
    """Return a result as the answer to its call, or as data where that has an answer."""
    body = result.result if result.error is None else {"error": result.error.message}
    if not name:
        return _data_part(result.call_id, body)
    return ToolReturnPart(name, json.dumps(body, ensure_ascii=False), result.call_id)


def _data_part(what: str, body: Json) -> UserPromptPart:
    return UserPromptPart(content=f"Results of {what}: {json.dumps(body, ensure_ascii=False)}")
