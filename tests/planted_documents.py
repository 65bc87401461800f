"""Planted bugs in what reads a stranger's document, and in where one may come from."""

from planted_bug import PlantedBug

READING = "tests/work/capability/test_document_reading.py::"
SOURCES = "tests/work/capability/test_document_sources.py::"
RUNS = "tests/work/desk/test_without_line.py::"
HERE = "labharness.work.capability.document_analysis"

IN_DOCUMENTS = (
    PlantedBug(
        "reader of documents without a limit of memory",
        f"{HERE}.reading:_confine",
        "(resource.RLIMIT_AS, limits.memory_bytes)",
        "(resource.RLIMIT_CORE, 0)",
        READING + "test_the_system_itself_keeps_the_limits",
        promise=64,
        daily=True,
    ),
    PlantedBug(
        "reader of documents that lives on after an abort",
        f"{HERE}.supervised:_ended",
        "os.killpg(reader.pid, signal.SIGKILL)",
        "return",
        READING + "test_an_abort_kills_the_reader",
        promise=64,
    ),
    PlantedBug(
        "answer of a reader without a bound",
        f"{HERE}.supervised:_conversation",
        "len(out) > ANSWER_BYTES_MAX",
        "len(out) > 1000 * ANSWER_BYTES_MAX",
        READING + "test_an_answer_without_end_is_cut",
        promise=64,
    ),
    PlantedBug(
        "page that is parsed however deep it nests",
        f"{HERE}.reading:_of_html",
        "_Depth().feed(text)",
        "pass",
        READING + "test_a_document_that_cannot_be_read_is_refused_with_its_reason",
        promise=64,
    ),
    PlantedBug(
        "link that leads out of the folder of documents",
        "labharness.core.files.allowed:allowed_file",
        "path.resolve(strict=True)",
        "path",
        SOURCES + "test_a_file_is_read_below_its_folder_and_a_link_out_of_it_is_not",
        promise=64,
    ),
    PlantedBug(
        "document fetched from a private address",
        f"{HERE}.source:_judged",
        "not any(allowed) and not all(_is_public(each) for each in addresses)",
        "not any(allowed) and not any(_is_public(each) for each in addresses)",
        SOURCES + "test_a_private_address_is_not_asked_unless_its_origin_is_named_exactly",
        promise=64,
    ),
    PlantedBug(
        "redirect that is followed anywhere",
        f"{HERE}.source:_judged",
        "origin is None or not allowed",
        "origin is None",
        SOURCES + "test_a_redirect_is_judged_like_a_first_address",
        promise=64,
    ),
    PlantedBug(
        "artifact of a run of another caller",
        "labharness.work.capability.stored:_readable_class",
        "held if payload['caller_id'] == around.caller_id and below else ''",
        "held if below else ''",
        SOURCES + "test_an_artifact_is_read_by_the_caller_of_its_run_alone",
        promise=64,
    ),
    PlantedBug(
        "run that its house took with it taken for one that goes on",
        "labharness.lab.house.desk_work:DeskWork.status_of",
        "run_id if run_id in self._runs else ''",
        "run_id",
        "tests/lab/house/test_desk_work.py::"
        "test_a_run_that_its_house_took_with_it_has_failed_and_may_be_tried_again",
        promise=61,
    ),
    PlantedBug(
        "task without instruments that waits for the line owner",
        "labharness.lab.house.house:House._worker",
        "self.desk if run.worker == DESK and self.desk is not None else self.owner",
        "self._owner",
        "tests/lab/house/test_desk_work.py::test_a_task_is_completed_while_the_line_owner_is_away",
        promise=64,
    ),
    PlantedBug(
        "task without a line that is accepted unseen",
        "labharness.work.desk.desk:Desk._admit",
        "isinstance(weighed, Rejected)",
        "False",
        RUNS + "test_what_may_not_be_asked_is_rejected_with_its_reason_and_a_terminal_fact",
        promise=64,
    ),
    PlantedBug(
        "reader of documents at the priority of the guard",
        f"{HERE}.reading:_confine",
        "os.nice(NICE)",
        "pass",
        READING + "test_the_system_itself_keeps_the_limits",
        promise=64,
    ),
    PlantedBug(
        "document that is too large called damaged",
        f"{HERE}.reading:_reason",
        "why = why.__cause__ or why.__context__",
        "break",
        READING + "test_a_bound_that_the_reader_of_pdf_calls_damage_is_told_as_a_bound",
        promise=64,
    ),
)
