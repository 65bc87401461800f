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
        "BLOCK_KINDS = frozenset({'samples', 'queried'})",
        "BLOCK_KINDS = frozenset({'samples'})",
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
)
