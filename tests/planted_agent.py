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
        "labharness.faces.dialogue.tools:Agent._is_open",
        "found in DATA_CLASSES[: DATA_CLASSES.index(most) + 1]",
        "True",
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
    PlantedBug(
        "bound of a dialogue not looked at",
        "labharness.work.dialogue.course:_passed",
        "found >= most",
        "False",
        "test_each_bound_ends_a_dialogue_and_is_named[bounds0-answers]",
    ),
    PlantedBug(
        "call carried out again that has its result",
        "labharness.work.dialogue.course:next_step",
        "e.call_id not in found and e.call_id not in accepted",
        "True",
        "test_every_dialogue_ends_within_its_bounds_and_each_call_is_carried_out_once",
    ),
    PlantedBug(
        "message followed before it is on the disk",
        "labharness.faces.dialogue.asking:Dialogue._enter",
        "append_durably(self._path, line)",
        "pass",
        "test_a_dialogue_that_is_killed_at_any_byte_goes_on_with_one_task_and_no_result_lost",
    ),
    PlantedBug(
        "number of a liar taken for one of the lab",
        "labharness.work.dialogue.course:claims_in",
        "not any(round(each, _decimals(word)) == float(word) for each in known)",
        "False",
        "test_what_a_liar_claims_is_shown_apart",
    ),
    PlantedBug(
        "confidential task listed for an agent",
        "labharness.faces.dialogue.tools:Agent.list_runs",
        "self._is_own(each) and self._is_open(_class_of(each))",
        "self._is_own(each)",
        "test_a_task_above_the_class_of_the_model_is_not_in_a_list",
    ),
    PlantedBug(
        "stop of an agent's own task kept back by the lab's files",
        "labharness.faces.dialogue.tools:Agent.request_stop",
        "self._kept()",
        "self._tasks()",
        "test_a_stop_request_waits_for_no_lab_file_and_no_class_of_data",
    ),
    PlantedBug(
        "readings of a confidential run told to an agent",
        "labharness.faces.dialogue.tools:Agent.read_channels",
        "task.current.worker == WORKER",
        "False",
        "test_readings_of_a_run_above_the_class_of_the_model_are_not_told",
    ),
)
