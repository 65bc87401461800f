"""Planted bugs in what reads a stranger's document, and in where one may come from."""

from planted_bug import PlantedBug

HERE = "labharness.work.capability.document_analysis"

BUGS = (
    PlantedBug(
        "reader of documents without a limit of memory",
        f"{HERE}.reading:_confine",
        "(resource.RLIMIT_AS, limits.memory_bytes)",
        "(resource.RLIMIT_CORE, 0)",
        "test_the_system_itself_keeps_the_limits",
    ),
    PlantedBug(
        "reader of documents that lives on after an abort",
        f"{HERE}.supervised:_ended",
        "os.killpg(reader.pid, signal.SIGKILL)",
        "return",
        "test_an_abort_kills_the_reader",
    ),
    PlantedBug(
        "answer of a reader without a bound",
        f"{HERE}.supervised:_conversation",
        "len(out) > ANSWER_BYTES_MAX",
        "len(out) > 1000 * ANSWER_BYTES_MAX",
        "test_an_answer_without_end_is_cut",
    ),
    PlantedBug(
        "page that is parsed however deep it nests",
        f"{HERE}.reading:_of_html",
        "_Depth().feed(text)",
        "pass",
        "test_a_document_that_cannot_be_read_is_refused_with_its_reason",
    ),
    PlantedBug(
        "link that leads out of the folder of documents",
        "labharness.core.files.allowed:allowed_file",
        "path.resolve(strict=True)",
        "path",
        "test_a_file_is_read_below_its_folder_and_a_link_out_of_it_is_not",
    ),
    PlantedBug(
        "document fetched from a private address",
        f"{HERE}.source:_judged",
        "not any(allowed) and not all(_is_public(each) for each in addresses)",
        "not any(allowed) and not any(_is_public(each) for each in addresses)",
        "test_a_private_address_is_not_asked_unless_its_origin_is_named_exactly",
    ),
    PlantedBug(
        "redirect that is followed anywhere",
        f"{HERE}.source:_judged",
        "origin is None or not allowed",
        "origin is None",
        "test_a_redirect_is_judged_like_a_first_address",
    ),
    PlantedBug(
        "artifact of a run of another caller",
        "labharness.work.capability.stored:_readable_class",
        "held if payload['caller_id'] == around.caller_id and below else ''",
        "held if below else ''",
        "test_an_artifact_is_read_by_the_caller_of_its_run_alone",
    ),
    PlantedBug(
        "run that its house took with it taken for one that goes on",
        "labharness.lab.house.desk_work:DeskWork.status_of",
        "run_id if run_id in self._runs else ''",
        "run_id",
        "test_a_run_that_its_house_took_with_it_has_failed_and_may_be_tried_again",
    ),
    PlantedBug(
        "task without instruments that waits for the line owner",
        "labharness.lab.house.house:House._worker",
        "self.desk if run.worker == DESK and self.desk is not None else self.owner",
        "self._owner",
        "test_a_task_is_completed_while_the_line_owner_is_away",
    ),
    PlantedBug(
        "task without a line that is accepted unseen",
        "labharness.work.desk.desk:Desk._admit",
        "isinstance(weighed, Rejected)",
        "False",
        "test_what_may_not_be_asked_is_rejected_with_its_reason_and_a_terminal_fact",
    ),
    PlantedBug(
        "reader of documents at the priority of the guard",
        f"{HERE}.reading:_confine",
        "os.nice(NICE)",
        "pass",
        "test_the_system_itself_keeps_the_limits",
    ),
    PlantedBug(
        "document that is too large called damaged",
        f"{HERE}.reading:_reason",
        "why = why.__cause__ or why.__context__",
        "break",
        "test_a_bound_that_the_reader_of_pdf_calls_damage_is_told_as_a_bound",
    ),
)
