"""The calls of a dialogue, carried out: tools of the lab here, those of a client at the client."""

import graphlib
from collections.abc import Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Final, Protocol

import msgspec

from labharness.core.clock import steady_s, utc_text, wall_clock_utc
from labharness.core.vocabulary.texts import Text
from labharness.faces.dialogue.tools import ANSWER_BYTES_MAX, Agent, known_tools, plain
from labharness.protocols.mcp_cp.codec import MESSAGE_BYTES_MAX, written
from labharness.protocols.mcp_cp.tools import (
    SupportedTool,
    ToolCall,
    ToolError,
    ToolResult,
    ToolValue,
    timed_out,
)
from labharness.work.dialogue.calls import Calls, order_of
from labharness.work.plan.instructions import resolve

AT_ONCE_MAX: Final = 4
"""Most calls of one message at work in the lab; others wait within their time."""

CONSENT: Final = "USER_CONSENT"
"""The permission level of a tool of a client that its user is asked about each time."""

FILLED_BYTES_MAX: Final = MESSAGE_BYTES_MAX // 2
"""Size (bytes) of the largest parameters, once results are filled in: a call has to travel."""

REFERENCES_MAX: Final = 64
"""Most references in the parameters of one call."""


class Clients(Protocol):
    """The programs of a user that take part in a dialogue, as its calls see them."""

    def tools(self) -> Mapping[str, SupportedTool]:
        """Return the tools that they offer now, by the names that a model calls them by."""

    def run(self, call: ToolCall, within_s: float) -> Future[ToolResult]:
        """Have one of them carry out a call; a client that leaves ends it with an error."""


class NoClient:
    """No program of the user takes part."""

    def tools(self) -> Mapping[str, SupportedTool]:
        """Return none."""
        return {}

    def run(self, call: ToolCall, within_s: float) -> Future[ToolResult]:
        """Return that there is no such tool."""
        return at_once(
            error_of(call.call_id, "NOT_AVAILABLE", Text("dialogue.no_client", name=call.name))
        )


def error_of(call_id: str, code: str, why: str) -> ToolResult:
    """Return the result of a call that was not carried out."""
    error = ToolError(code, why)
    return ToolResult(call_id=call_id, status="ERROR", error=error, execution_time=0.0)


def at_once(result: ToolResult) -> Future[ToolResult]:
    """Return a result as one that was waited for."""
    found: Future[ToolResult] = Future()
    found.set_result(result)
    return found


@dataclass(frozen=True, slots=True)
class _Running:
    call: ToolCall
    began_s: float
    due_s: float


@dataclass(eq=False)
class Calling:
    """The calls of one message, from the first to the last.

    Attributes:
        agent: The tools of the lab, as its caller.
        clients: The tools of the user's programs.
        asked: The calls.
        found: The result of each call that has ended.
        thread_id: Of their dialogue.
    """

    agent: Agent
    clients: Clients
    asked: Calls
    found: dict[str, ToolResult] = field(default_factory=dict)
    thread_id: str = ""

    def __post_init__(self) -> None:
        self._front = {each.call_id for each in self.asked.calls if self._is_of_client(each)}
        self._calls = {each.call_id: each for each in self.asked.calls}
        self._side_began_s: dict[bool, float] = {}
        self._aborted = ""

    def results(self) -> Iterator[ToolResult]:
        """Return each further result as soon as it is there; none takes longer than its bounds."""
        left = [each for each in self.asked.calls if each.call_id not in self.found]
        try:
            order = graphlib.TopologicalSorter(order_of(self.asked, self._front))
            order.prepare()
        except graphlib.CycleError as why:
            said = Text("dialogue.circle", calls=" > ".join(why.args[1]), mode=self.asked.mode)
            yield from (error_of(each.call_id, "DEPENDENCY_ERROR", said) for each in left)
            return
        running: dict[Future[ToolResult], _Running] = {}
        pool = ThreadPoolExecutor(AT_ONCE_MAX, thread_name_prefix="tool")
        began_s = steady_s()
        try:
            while order.is_active():
                for name in order.get_ready():
                    if name in self.found:
                        order.done(name)
                    else:
                        one = self._due(self._calls[name], began_s)
                        running[self._begin(one, pool)] = one
                for result in self._ended(running):
                    self.found[result.call_id] = result
                    order.done(result.call_id)
                    yield result
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _is_of_client(self, call: ToolCall) -> bool:
        return call.runtime == "FRONTEND" or (
            call.runtime is None
            and call.name not in known_tools()
            and call.name in self.clients.tools()
        )

    def _due(self, call: ToolCall, began_s: float) -> _Running:
        """Return when a call that begins now has taken too long."""
        now_s, front = steady_s(), call.call_id in self._front
        side_s = self.asked.front_s if front else self.asked.back_s
        side_due_s = self._side_began_s.setdefault(front, now_s) + side_s
        own_s = call.timeout if call.timeout is not None else self.asked.within_s
        return _Running(call, now_s, min(began_s + self.asked.within_s, side_due_s, now_s + own_s))

    def _ended(self, running: dict[Future[ToolResult], _Running]) -> Iterator[ToolResult]:
        """Wait until a call has ended or is overdue; return the results of all that have."""
        first_s = min((each.due_s for each in running.values()), default=0.0)
        done, _ = wait(running, max(0.0, first_s - steady_s()), FIRST_COMPLETED)
        for each in done:
            name = running.pop(each).call.call_id
            yield _bounded(each.result()) if name in self._front else each.result()
        for each, one in list(running.items()):
            if steady_s() >= one.due_s:
                del running[each]
                each.cancel()
                yield timed_out(one.call.call_id, _took_ms(one.began_s))

    def _begin(self, one: _Running, pool: ThreadPoolExecutor) -> Future[ToolResult]:
        call = one.call
        if self._aborted:
            return at_once(error_of(call.call_id, "ABORTED", self._aborted))
        if one.due_s <= one.began_s:
            return at_once(timed_out(call.call_id, 0.0))
        too_large = error_of(
            call.call_id, "TOO_LARGE", Text("dialogue.filled", most=FILLED_BYTES_MAX)
        )
        if str(call.parameters).count("${") > REFERENCES_MAX:
            return at_once(too_large)
        try:
            if lacking := {*call.required_after} - self.found.keys():
                raise LookupError(", ".join(sorted(lacking)))
            results = {name: each.result for name, each in self.found.items()}
            filled = resolve(call.parameters, results)
        except LookupError as why:
            said = Text("dialogue.dependency", why=str(why))
            return at_once(error_of(call.call_id, "DEPENDENCY_ERROR", said))
        if len(written(filled)) > FILLED_BYTES_MAX:
            return at_once(too_large)
        call = msgspec.structs.replace(call, parameters=filled)
        if call.call_id not in self._front:
            return pool.submit(self._in_lab, call)
        return self._at_client(call, one.due_s - one.began_s, pool)

    def _at_client(
        self, call: ToolCall, within_s: float, pool: ThreadPoolExecutor
    ) -> Future[ToolResult]:
        if call.name in self.clients.tools():
            return self.clients.run(call, min(within_s, call.timeout_client or within_s))
        why = Text("dialogue.no_client", name=call.name)
        if call.fallback_behavior == "USE_ALTERNATIVE" and call.name in known_tools():
            return pool.submit(self._in_lab, call)
        if call.fallback_behavior == "ABORT":
            self._aborted = why
        return at_once(error_of(call.call_id, "NOT_AVAILABLE", why))

    def _in_lab(self, call: ToolCall) -> ToolResult:
        began_s = steady_s()
        well, found = self.agent.answer(call.name, call.parameters, self.thread_id)
        if not well:
            return error_of(call.call_id, found["code"], found["message"])
        value = ToolValue(
            value=found,
            parsed=True,
            source="labharness",
            timestamp=utc_text(wall_clock_utc()),
            outcome=found.get("outcome", "done"),
        )
        return ToolResult(
            call_id=call.call_id,
            status="SUCCESS",
            result=msgspec.to_builtins(value),
            execution_time=_took_ms(began_s),
        )


def _bounded(result: ToolResult) -> ToolResult:
    """Return the result of a client as a model may have it: bounded, and hiding nothing."""
    if len(data := written(result)) > ANSWER_BYTES_MAX:
        why: str = Text("dialogue.result_size", most=ANSWER_BYTES_MAX)
        return error_of(result.call_id, "TOO_LARGE", why)
    try:
        return msgspec.convert(plain(msgspec.json.decode(data)), ToolResult)
    except msgspec.ValidationError as why_not:  # a code of hidden characters alone
        return error_of(result.call_id, "INVALID_RESULT", str(why_not))


def _took_ms(began_s: float) -> float:
    return round(1000 * (steady_s() - began_s), 1)
