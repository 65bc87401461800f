"""Planted bugs in what is confidential: one way each by which it would lie or pass in clear."""

from planted_bug import PlantedBug

__all__ = ["OF_CONFIDENTIAL_DATA"]

CLI = "tests/faces/cli/test_confidential.py::"
HOUSE = "tests/lab/house/test_confidential_tasks.py::"
SERVICE = "tests/faces/service/test_confidential_service.py::"
KEPT = CLI + "test_nothing_of_a_confidential_task_is_kept_in_clear"
TAKEN = HOUSE + "test_a_house_carries_a_confidential_task_out_and_keeps_none_of_it_in_clear"

OF_CONFIDENTIAL_DATA = (
    PlantedBug(
        "artifact written in clear",
        "labharness.journal.artifacts:Artifacts._write",
        "self._key.file(f'{self.directory.name}/{filename}', data)",
        "data",
        f"{KEPT}[t3]",
        promise=71,
        detector="verdict",
        daily=True,
    ),
    PlantedBug(
        "record chained in clear",
        "labharness.journal.store:SqliteJournal._chain",
        "self.key is not None",
        "False",
        f"{KEPT}[t3]",
        promise=71,
        detector="verdict",
    ),
    PlantedBug(
        "request beside the journal in clear",
        "labharness.lab.wiring.without_line:NoLineRun._hidden",
        "self._key.file(name, data)",
        "data",
        f"{KEPT}[t3]",
        promise=71,
        detector="verdict",
    ),
    PlantedBug(
        "results of a confidential task by value",
        "labharness.work.desk.without_line:NoLineDesk._answered",
        "references(outputs, self._kept(results(outputs)))",
        "outputs",
        f"{KEPT}[t3]",
        promise=71,
        detector="verdict",
    ),
    PlantedBug(
        "reason of a rejection that quotes a confidential input",
        "labharness.work.admission.confidential:in_clear",
        "_quotes_nothing(rejected.reason_message)",
        "True",
        HOUSE + "test_of_a_confidential_task_that_is_rejected_no_input_is_kept",
        promise=71,
        detector="verdict",
    ),
    PlantedBug(
        "task that is refused for its class, and kept in clear before",
        "labharness.lab.wiring.tasks:TaskRun.__init__",
        "is_confidential(payload)",
        "False",
        f"{KEPT}[line]",
        promise=71,
        detector="verdict",
    ),
    PlantedBug(
        "submission kept in clear by the house",
        "labharness.lab.house.submissions:Submissions.taken",
        "key.file(path.name, data)",
        "data",
        TAKEN,
        promise=71,
        detector="verdict",
    ),
    PlantedBug(
        "intent of a confidential task in the journal of the house",
        "labharness.lab.house.submissions:told",
        "withheld(payload) if is_confidential(payload) else payload",
        "payload",
        TAKEN,
        promise=71,
        detector="verdict",
    ),
    PlantedBug(
        "confidential task taken over a connection without TLS",
        "labharness.work.admission.confidential:refused_on_way",
        "way == 'plain'",
        "False",
        HOUSE + "test_over_a_broker_confidential_data_are_refused_that_are_no_reference",
        promise=71,
        detector="verdict",
    ),
    PlantedBug(
        "confidential data taken that a broker has kept",
        "labharness.work.admission.confidential:refused_on_way",
        "not inline and (not payload.context)",
        "True",
        HOUSE + "test_over_a_broker_confidential_data_are_refused_that_are_no_reference",
        promise=71,
        detector="verdict",
    ),
    PlantedBug(
        "confidential task told over a connection without TLS",
        "labharness.faces.service.post:Post.may_tell",
        "self._secured or declared in (None, *OPEN) or bool(self._rejection(task))",
        "True",
        SERVICE + "test_what_was_taken_over_tls_is_not_told_without_it",
        promise=71,
        detector="verdict",
        dear=True,
    ),
    PlantedBug(
        "connection that counts as secured whatever it is",
        "labharness.faces.service.amqp:AmqpFace._connected",
        "'tls' if self._broker.secured else 'plain'",
        "'tls'",
        SERVICE + "test_a_lab_without_tls_refuses_confidential_tasks_and_tells_nothing_of_them",
        promise=71,
        detector="verdict",
        dear=True,
    ),
    PlantedBug(
        "restricted results shown to whom nobody has approved",
        "labharness.journal.access_log:log_access",
        "data_class == APPROVED and of_results and (not _is_approved(folder, reader))",
        "False",
        CLI + "test_restricted_results_are_read_by_those_alone_whom_another_person_has_approved",
        promise=71,
        detector="verdict",
    ),
)
