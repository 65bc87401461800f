"""The planted bugs: each takes one protection away, and one named test must notice.

A promise without such a control proves nothing: a crash test once passed here with the protection
removed. The bug is an exact replacement in a copy of one file; if the text is not there any more,
the list is wrong and says so.
"""

from dataclasses import dataclass

__all__ = ["PLANTED", "PlantedBug"]


@dataclass(frozen=True, slots=True)
class PlantedBug:
    """One protection taken away.

    Attributes:
        promise: What no longer holds.
        file: Where.
        right: The text that protects.
        wrong: What stands there instead.
        test: The test that must turn red.
    """

    promise: str
    file: str
    right: str
    wrong: str
    test: str


PLANTED = (
    PlantedBug(
        "limit check removed",
        "labharness/kernel/rules.py",
        "if not limit.low <= value <= limit.high:",
        "if False:",
        "tests/test_kernel.py::test_a_limit_is_exact_to_the_last_bit",
    ),
    PlantedBug(
        "trip removed",
        "labharness/kernel/rules.py",
        "if not row.low <= value <= row.high:",
        "if False:",
        "tests/test_trips.py::"
        "test_a_fault_in_the_dwell_runs_its_procedure_verified_and_latched[over_temperature]",
    ),
    PlantedBug(
        "latch not saved",
        "labharness/guard/shell.py",
        "self.latch.close(trip)",
        "self.core.latched = True",
        "tests/test_trips.py::"
        "test_a_fault_in_the_dwell_runs_its_procedure_verified_and_latched[emergency_stop_loop]",
    ),
    PlantedBug(
        "read set too wide",
        "labharness/guard/core.py",
        "if request.frame not in port.reads:",
        "if not any(request.frame[:2] == each[:2] for each in port.reads):",
        "tests/test_guard_core.py::test_a_read_with_any_byte_changed_added_or_left_out_is_refused",
    ),
    PlantedBug(
        "late reply accepted",
        "labharness/guard/core.py",
        "drain_s=max(request.timeout_s, DRAIN_S_MIN)",
        "drain_s=0.0",
        "tests/test_guard_core.py::"
        "test_a_late_reply_of_the_right_shape_is_never_taken_for_a_fresh_one",
    ),
    PlantedBug(
        "stale reading accepted",
        "labharness/kernel/memory.py",
        "return now - track.at_s <= track.stale_s\n\n    def holds",
        "return True\n\n    def holds",
        "tests/test_kernel.py::test_a_reading_counts_up_to_its_bound_exactly",
    ),
    PlantedBug(
        "procedure step not verified",
        "labharness/line/safing.py",
        "elif abs(value - wanted.value) <= spec.resolution:",
        "elif True:",
        "tests/test_trips.py::test_a_step_that_does_not_take_is_reported_as_it_is",
    ),
    PlantedBug(
        "purge by timer instead of flow",
        "labharness/kernel/rules.py",
        "passed_cm3 = min(track.value, value) / 60 * gap_s",
        "passed_cm3 = 500 / 60 * gap_s",
        "tests/test_trips.py::test_a_purge_whose_flow_does_not_come_is_never_proven",
    ),
    PlantedBug(
        "interlock not asked",
        "labharness/kernel/rules.py",
        "if condition is not None:\n                goes",
        "if False:\n                goes",
        "tests/test_kernel.py::test_an_interlock_holds_at_its_bound_and_not_below",
    ),
    PlantedBug(
        "permit outlives its epoch",
        "labharness/guard/core.py",
        "        self.epoch += 1\n        self._permits.clear()\n",
        "        self.epoch += 0\n",
        "tests/test_guard_core.py::test_whatever_moves_the_epoch_voids_every_permit",
    ),
    PlantedBug(
        "predicted violation overlooked",
        "labharness/lab/preflight.py",
        "            violation = self._violation(executor, why)\n",
        "            violation = None\n",
        "tests/test_preflight.py::"
        "test_a_plan_that_would_trip_is_refused_before_anything_is_written",
    ),
    PlantedBug(
        "dead bus not noticed",
        "labharness/kernel/rules.py",
        "if age_s > watch.stale_s and",
        "if False and",
        "tests/test_trips.py::test_a_dead_heater_bus_leaves_the_furnace_cold_by_its_contactor",
    ),
    PlantedBug(
        "backfill counted without its fill",
        "labharness/kernel/rules.py",
        "if memory.filled_cm3 >= fill.inert_min",
        "if True or memory.filled_cm3 >= fill.inert_min",
        "tests/test_kernel_proofs.py::test_a_fill_that_no_meter_saw_is_no_backfill",
    ),
    PlantedBug(
        "forbidden state overlooked",
        "labharness/kernel/memory.py",
        "for state in row.forbid:",
        "for state in row.forbid[:0]:",
        "tests/test_kernel_states.py::test_a_ramp_through_a_forbidden_band_is_refused",
    ),
    PlantedBug(
        "vent opened on a vacuum",
        "envelopes/labharness_envelopes/lines/cvd_mos2.toml",
        'shut off"\nguards = ["box.vent"]',
        'shut off"\nguards = ["box.pump"]',
        "tests/test_model.py::test_no_hazard_of_the_tube_is_reachable",
    ),
)
