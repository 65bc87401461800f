"""A set of instructions of a dialogue, carried out: actions of other packages, and no line.

A set that touches an instrument is a task of capability `sequence`, and goes the way of any task.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, cast

from msgspec import to_builtins

from labharness.core.clock import Clock
from labharness.protocols.mcp_cp.codec import converted
from labharness.protocols.mcp_cp.messages import InstructionMessage
from labharness.work.desk.null_line import Absent, NullLine
from labharness.work.plan.actions import ActionSchema
from labharness.work.plan.operations import Operations
from labharness.work.plan.set_reading import read_set
from labharness.work.plan.set_runner import SetRunner
from labharness.work.plan.step import StepFailed, Verb

GROUP: Final = "labharness.dialogue_actions"
"""Entry points of the actions that a set in a dialogue may have: the name, and a value `Action`."""


@dataclass(frozen=True, slots=True)
class Action:
    """An action that needs no instrument.

    Attributes:
        schema: Its kind, and the form of its parameters.
        verb: Carries it out.
    """

    schema: ActionSchema
    verb: Verb


class _Nowhere(NullLine, Absent):
    """No line, and no person at one."""


def checked(content: Mapping[str, Any], actions: Mapping[str, Action]) -> InstructionMessage:
    """Return a set as a message.

    Raises:
        BadInstruction: It cannot be carried out.
        NotMcpCp: It has not the form.
    """
    read_set(content, {name: each.schema for name, each in actions.items()})
    return converted(content, InstructionMessage, "$.content")


def carry_out(content: InstructionMessage, actions: Mapping[str, Action]) -> list[dict[str, Any]]:
    """Carry out a set to its end; return the record of each instruction, as 6.1 has it.

    Raises:
        BadInstruction: It cannot be carried out; nothing of it was.
    """
    schemas = {name: each.schema for name, each in actions.items()}
    verbs = {name: each.verb for name, each in actions.items()}
    whole = read_set(to_builtins(content), schemas)

    async def run() -> list[dict[str, Any]]:
        line = cast(Operations, _Nowhere(Clock(asyncio.get_running_loop())))
        runner = SetRunner(whole, line, verbs, schemas)
        with suppress(StepFailed):  # its records say why
            await runner.run()
        return [each.told() for each in runner.records()]

    return asyncio.run(run())
