"""``labharness ask``: a dialogue with a model about a lab, shown as it goes on."""

import argparse
import os
import sys
from typing import TYPE_CHECKING, Final

from labharness.core.clock import Chance
from labharness.core.files.named import open_named
from labharness.core.vocabulary.texts import Text, in_language
from labharness.faces.cli import EXIT_COMPLETED, EXIT_FAILED
from labharness.faces.cli.line_writer import TERMINAL
from labharness.faces.cli.show import BadUse, chosen_lab, complain, looking, one_line, say, warn
from labharness.lab import LabPlan

if TYPE_CHECKING:
    from labharness.faces.dialogue.asking import Dialogue, Model

KEY_BYTES_MAX: Final = 4_096
ANSWER_BYTES_MAX: Final = 4_096


def model_of(chosen: argparse.Namespace, plan: LabPlan) -> "Model":
    """Return the model that was chosen, or else that of the lab file.

    Raises:
        BadUse: There is none.
    """
    if chosen.model == "scripted":
        from labharness.faces.model.scripted import GROWTH, Scripted

        return Scripted(GROWTH)
    row = plan.file.model
    if row is None:
        raise BadUse("ask.no_model", path=str(plan.path))
    from labharness.faces.model.openai_compatible import OpenAiCompatible

    key = "none"
    if row.key_file is not None:
        with looking(path := plan.path.parent / row.key_file), open_named(path) as file:
            key = file.read(KEY_BYTES_MAX).decode().strip()
    return OpenAiCompatible(row.url, row.name, key)


def is_near(chosen: argparse.Namespace, plan: LabPlan) -> bool:
    """Return whether the model that was chosen is on this machine (ruling 50)."""
    row = plan.file.model
    return chosen.model == "scripted" or (row is not None and row.on_loopback)


def asked(question: str) -> str | None:
    """Ask a question at the terminal; return the answer, or ``None`` without a terminal."""
    if not sys.stdin.isatty():
        return None
    TERMINAL.unpin()
    TERMINAL.flush()
    sys.stderr.write(in_language(question, TERMINAL.language))
    sys.stderr.flush()
    # no lock of Python's streams is held by a question that is left when the command ends
    return os.read(sys.stdin.fileno(), ANSWER_BYTES_MAX).decode(errors="replace")


def ask(chosen: argparse.Namespace) -> int:
    """Take one input, or go on with a dialogue that was broken off; show the answer."""
    from labharness.faces.dialogue.asking import Dialogue
    from labharness.faces.dialogue.front_tools import FrontTools
    from labharness.faces.dialogue.tools import Agent, plain
    from labharness.protocols.mcp_cp.messages import McpMessage

    def show(text: str) -> None:
        complain(str(plain(one_line(text))))

    def told(message: McpMessage) -> None:
        if message.type == "MODEL_RESPONSE":
            for each in message.content.tool_calls:
                show(Text("ask.calls", name=each.name))
        elif message.type == "TOOL_CALL_RESPONSE":
            for each in message.content.results:
                if each.error is not None:
                    show(Text("ask.refused", why=each.error.message))

    plan = chosen_lab(chosen.lab)
    if chosen.words is None and chosen.context is None:
        raise BadUse("ask.nothing")
    context_id = chosen.context or Chance(None).uuid4()
    agent = Agent(plan.path, chosen.caller, is_near(chosen, plan))
    dialogue = Dialogue(agent, model_of(chosen, plan), context_id, told=told)
    dialogue.clients = FrontTools(asked, show)
    if chosen.words is None and not dialogue.messages:
        raise BadUse("ask.unknown", context_id=context_id)
    complain(Text("ask.context", context_id=context_id))
    dialogue.hold()
    try:
        return _answer(dialogue, chosen.words)
    finally:
        dialogue.release()


def _answer(dialogue: "Dialogue", words: str | None) -> int:
    """Take an input, go on to the answer, and show it."""
    from labharness.faces.dialogue.front_tools import shown
    from labharness.faces.dialogue.tools import plain

    if words is not None:
        dialogue.say(words)
    bound, answer = dialogue.go_on(), dialogue.last_answer
    if answer is not None:
        complain(Text("ask.words"))
        say(str(plain(answer.text)))
    if dialogue.question:
        say(Text("ask.question", words=shown(dialogue.question), context_id=dialogue.context_id))
    if dialogue.claims:
        warn(Text("ask.claims", numbers=", ".join(dialogue.claims)))
    if bound:
        warn(bound)
    ends = answer is not None and (answer.finish_reason == "STOP" or dialogue.question)
    well = ends and not bound
    return EXIT_COMPLETED if well else EXIT_FAILED
