"""Planted bugs in how work survives: results kept when measured, checkpoints, and resuming."""

from planted_bug import PlantedBug

__all__ = ["IN_WORK_THAT_SURVIVES"]

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
)
