"""Planted bugs that a hostile model finds: one of each class of its acts, and of its lies."""

from planted_bug import PlantedBug

_REACHES = "test_a_hostile_model_reaches_nothing"
_ENDS = "test_a_hostile_model_comes_to_an_end"

BUGS = (
    PlantedBug(
        "value of a set beyond the envelope taken on receipt",
        "labharness.work.desk.admitting:Admitting._beyond_limits",
        "command.unit != limit.unit or not limit.low <= command.value <= limit.high",
        "command.unit != limit.unit",
        f"{_REACHES}[raw actuation]",
    ),
    PlantedBug(
        "answer that cannot be kept as the end of a dialogue",
        "labharness.faces.dialogue.asking:Dialogue._put_answer",
        'said = Text("dialogue.unwritten", why=str(why))',
        "raise",
        f"{_ENDS}[numbers]",
    ),
    PlantedBug(
        "limits that a task states for itself taken",
        "labharness.lab.house.screening:screened",
        "lasting and isinstance(weighed, Rejected)",
        "lasting and isinstance(weighed, Rejected) and 'envelope' not in str(payload)",
        f"{_REACHES}[envelope]",
    ),
    PlantedBug(
        "approval by a tool that is not there told as done",
        "labharness.faces.dialogue.tools:Agent.call",
        'raise NotForAgent("agent.unknown_tool", name=name[:80], known=", ".join(known_tools()))',
        'return {"outcome": "confirmed"}',
        f"{_REACHES}[self-approval]",
    ),
    PlantedBug(
        "task of another told to a hostile model",
        "labharness.faces.dialogue.tools:Agent._shown",
        "self._own(tasks, task_id)",
        "tasks.by_id[task_id]",
        f"{_REACHES}[others' tasks]",
    ),
    PlantedBug(
        "run of another named by a line that is busy",
        "labharness.faces.dialogue.tools:Agent.read_channels",
        'raise NotForAgent("agent.line_busy") from None',
        "raise",
        f"{_REACHES}[exfiltration]",
    ),
    PlantedBug(
        "calls of an answer that was cut off carried out",
        "labharness.work.dialogue.course:response_of",
        'made and finish in ("stop", "tool_call")',
        "made",
        f"{_ENDS}[forged history]",
    ),
    PlantedBug(
        "task kept once more at each repetition of an agent",
        "labharness.faces.dialogue.tools:Agent.submit_task",
        "digest_of(canonical(stated))",
        "digest_of(canonical({**stated, 'at': steady_s()}))",
        f"{_REACHES}[flooding]",
    ),
    PlantedBug(
        "arguments that cannot be read taken for none",
        "labharness.work.dialogue.course:_arguments",
        "{MALFORMED: written[:200]}",
        "{}",
        f"{_ENDS}[argument smuggling]",
    ),
    PlantedBug(
        "tool found by a name that only looks like its own",
        "labharness.faces.dialogue.tools:Agent.call",
        "known_tools().get(name)",
        "known_tools().get(plain(name))",
        f"{_REACHES}[tool shadowing]",
    ),
    PlantedBug(
        "characters that a person does not see told to a model",
        "labharness.faces.dialogue.tools:_plain",
        'HIDDEN.sub("", value)',
        "value",
        f"{_REACHES}[unicode]",
    ),
    PlantedBug(
        "answers of a model not counted",
        "labharness.work.dialogue.course:_passed",
        "(len(answers), bounds.answers)",
        "(0, bounds.answers)",
        f"{_ENDS}[endless loops]",
    ),
    PlantedBug(
        "tokens of a model not counted",
        "labharness.work.dialogue.course:_passed",
        "(tokens, bounds.tokens)",
        "(0, bounds.tokens)",
        f"{_ENDS}[money]",
    ),
    PlantedBug(
        "number behind a Chinese word taken for part of it",
        "labharness.work.dialogue.course",
        r're.compile(r"(?<![A-Za-z0-9_.])[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d{1,4})?")',
        r're.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d{1,4})?")',
        "test_a_claim_of_a_liar_stands_apart_from_the_refusal[in Chinese]",
    ),
    PlantedBug(
        "bounds of a dialogue met between answers alone",
        "labharness.faces.dialogue.asking:Dialogue._run",
        "isinstance(self.next_step(), Ended)",
        "False",
        "test_a_bound_is_met_between_two_calls_of_one_answer",
    ),
)
