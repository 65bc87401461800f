"""Planted bugs in what an agent is offered: more than its caller has."""

from planted_bug import PlantedBug

_HOSTILE = "test_a_hostile_call_is_refused_in_one_sentence_and_changes_nothing"

BUGS = (
    PlantedBug(
        "owner of a task not looked at",
        "labharness.faces.dialogue.tools:Agent._own",
        "task is None or not self._is_own(task)",
        "task is None",
        f"{_HOSTILE}[another's end]",
    ),
    PlantedBug(
        "task submitted in the name of another caller",
        "labharness.faces.dialogue.tools:Agent._payload",
        "stated != self.caller_id",
        "False",
        f"{_HOSTILE}[another's name]",
    ),
    PlantedBug(
        "confidential task taken from an agent",
        "labharness.faces.dialogue.tools:Agent._must_be_open",
        "found not in DATA_CLASSES[: DATA_CLASSES.index(most) + 1]",
        "False",
        f"{_HOSTILE}[confidential data]",
    ),
    PlantedBug(
        "argument of no tool dropped in silence",
        "labharness.faces.dialogue.tools:AgentTool.schema",
        "False",
        "True",
        f"{_HOSTILE}[a further argument]",
    ),
    PlantedBug(
        "tasks of others listed",
        "labharness.faces.dialogue.tools:Agent._is_own",
        "task.requested_by == self.caller_id",
        "True",
        "test_an_agent_sees_the_tasks_of_its_own_caller_alone",
    ),
)
