"""Planted bugs in how work survives: results kept when measured, checkpoints, and resuming."""

from planted_bug import PlantedBug

__all__ = ["IN_WORK_THAT_SURVIVES"]

RESUMING = "tests/work/desk/test_resuming.py::"
RESULTS = "tests/work/desk/test_results.py::"

IN_WORK_THAT_SURVIVES = (
    PlantedBug(
        "spectrum that nobody keeps until the run has ended",
        "labharness.work.desk.operations:LineOperations.query",
        "await self._keep(instrument, name, about or {}, value)",
        "",
        RESULTS + "test_a_plan_gets_a_spectrum_only_after_it_is_on_the_disk",
        promise=58,
        detector="verdict",
        daily=True,
    ),
    PlantedBug(
        "spectrum handed on before it is on the disk",
        "labharness.work.desk.results:ResultLog.keep",
        "await self._journal.durable(seq)",
        "",
        RESULTS + "test_a_plan_gets_a_spectrum_only_after_it_is_on_the_disk",
        promise=58,
        detector="verdict",
    ),
    PlantedBug(
        "spectra that the chain does not cover",
        "labharness.journal.chain",
        "frozenset({'samples', 'queried', 'checkpoint'})",
        "frozenset({'samples', 'checkpoint'})",
        RESULTS + "test_a_changed_number_of_a_spectrum_is_found",
        promise=58,
        detector="verdict",
    ),
    PlantedBug(
        "spectra of a failed run left in its journal alone",
        "labharness.work.desk.closing:Closing._so_far",
        "self.keep(found.artifacts)",
        "",
        RESULTS + "test_a_failure_in_the_raman_map_keeps_every_spectrum_taken_so_far[failed]",
        promise=58,
        detector="verdict",
        dear=True,
    ),
    PlantedBug(
        "heat after a checkpoint that nobody looks for",
        "labharness.work.desk.checkpoint:Checkpoints.recoverable",
        "resumable and (not heated_since(path, self._last_record, self._facts.sources))",
        "resumable",
        "tests/work/capability/test_annealing.py::test_an_open_thermocouple_trips",
        promise=60,
        detector="verdict",
        daily=True,
    ),
    PlantedBug(
        "heat that was sent and not confirmed taken for none",
        "labharness.work.desk.checkpoint:heated_since",
        "each.body['ending'] == Ending.REFUSED",
        "each.body['ending'] != Ending.CONFIRMED",
        "tests/work/desk/test_checkpoint.py::test_what_was_heated_since_a_record_is_what_may_have_been_sent_after_it",
        promise=60,
        detector="verdict",
    ),
    PlantedBug(
        "growth taken up after something was heated",
        "labharness.work.desk.resuming:look_up",
        "heated_since(journal, found.record, facts.sources)",
        "False",
        RESUMING
        + "test_what_does_not_belong_to_the_earlier_run_is_refused_with_its_reason[heated]",
        promise=60,
        detector="verdict",
    ),
    PlantedBug(
        "run of another session gone on with",
        "labharness.work.desk.resuming:_other_task",
        "session != asked.session_id",
        "False",
        RESUMING
        + "test_what_does_not_belong_to_the_earlier_run_is_refused_with_its_reason[session]",
        promise=60,
        detector="verdict",
    ),
    PlantedBug(
        "run of another caller gone on with",
        "labharness.work.desk.resuming:_other_task",
        "before.get('caller_id') != payload.caller_id",
        "False",
        RESUMING
        + "test_what_does_not_belong_to_the_earlier_run_is_refused_with_its_reason[caller]",
        promise=60,
        detector="verdict",
    ),
    PlantedBug(
        "another plan under the approval of the earlier one",
        "labharness.work.desk.resuming:_not_covered",
        "then != now",
        "False",
        RESUMING + "test_what_does_not_belong_to_the_earlier_run_is_refused_with_its_reason[plan]",
        promise=60,
        detector="verdict",
    ),
    PlantedBug(
        "damaged journal relied on",
        "labharness.work.desk.resuming:look_up",
        "not report.ok",
        "False",
        RESUMING + "test_a_damaged_journal_is_not_relied_on",
        promise=60,
        detector="verdict",
    ),
    PlantedBug(
        "line that was not compared with the checkpoint",
        "labharness.work.desk.resuming:Resumption.compare",
        "self.differences(readings)",
        "''",
        RESUMING + "test_a_run_that_failed_cold_can_be_gone_on_with",
        promise=60,
        detector="verdict",
    ),
    PlantedBug(
        "steps before the checkpoint left in scope",
        "labharness.work.desk.resuming:Resumption.remaining",
        "self.instructions.instructions[self.count:]",
        "self.instructions.instructions",
        RESUMING + "test_a_run_that_failed_cold_can_be_gone_on_with",
        promise=60,
        detector="verdict",
    ),
    PlantedBug(
        "line that changes while it is armed",
        "labharness.work.desk.desk:Desk._execute",
        "self._resumption.compare(readings_of(self._line))",
        "",
        RESUMING + "test_a_line_that_was_changed_meanwhile_is_not_gone_on_with[while arming]",
        promise=60,
        detector="verdict",
        dear=True,
    ),
)
