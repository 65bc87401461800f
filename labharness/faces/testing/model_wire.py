"""A model that is a Python function, over the wire of OpenAI's interface (chat completions)."""

import itertools
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

Turn = Mapping[str, Any]
"""``text``, ``tools`` (names with arguments as text), ``finish``, ``usage`` (tokens).

Or ``status``, ``html``, ``body`` as it is, or ``cut``: a body that ends before its length.
"""


@contextmanager
def model_at_port(script: Callable[[dict[str, Any]], Turn]) -> Iterator[str]:
    """Serve a model on a free port of this machine; yield its address.

    Args:
        script: Returns its turn for the body of a request.
    """
    ids = itertools.count()

    async def chat(request: Request) -> Response:
        body = await request.json()
        turn = script(body)
        if "status" in turn:
            return JSONResponse({"error": {"message": "scripted"}}, turn["status"])
        if "html" in turn:
            return HTMLResponse(turn["html"])
        if "body" in turn:
            return Response(turn["body"], media_type="application/json")
        if "cut" in turn:
            return Response(turn["cut"], headers={"content-length": "9999"})
        tools = [
            {
                "id": f"call_{next(ids)}",
                "type": "function",
                "function": {"name": name, "arguments": arguments},
            }
            for name, arguments in turn.get("tools", ())
        ]
        message = {"role": "assistant", "content": turn.get("text", "")}
        finish = turn.get("finish") or ("tool_calls" if tools else "stop")
        more = {"tool_calls": tools} if tools else {}
        choice = {"index": 0, "message": message | more, "finish_reason": finish}
        tokens = turn.get("usage", 1)
        usage = {"prompt_tokens": tokens, "completion_tokens": 1, "total_tokens": tokens + 1}
        head = {"id": f"chat-{next(ids)}", "created": 0, "model": body["model"]}
        return JSONResponse(
            {**head, "object": "chat.completion", "choices": [choice], "usage": usage}
        )

    app = Starlette(routes=[Route("/v1/chat/completions", chat, methods=["POST"])])
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
        finally:
            server.should_exit = True
            thread.join()
