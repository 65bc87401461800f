"""Which files are mutated, room by room, and which tests have to notice."""

from dataclasses import dataclass

from mutated import ROOT, Mutant, mutants_of
from mutated_rows import RowMutant, row_mutants_of

PURE = ("test_kernel*", "test_model")
GUARD = (
    "test_guard*",
    "test_latch*",
    "test_remote_guard",
    "test_both_shells",
    "test_port_latch",
    "test_named_files",
)
LINE = (
    "test_line_*",
    "test_opening",
    "test_watch_unowned",
    "test_reset",
    "test_programs",
    "test_programs_files",
    "test_procedures_fail",
    "test_reconnecting",
    "test_trip_response_again",
    "test_by_hand*",
    "test_two_terminals",
    "test_what_stands",
    "test_proofs_on_the_line",
    "test_trips",
    "test_failures",
    "test_over_pressure",
    "test_unattended",
    "test_dangers_*",
    "test_cross_checks",
    "test_arming",
)
ALARM = ("test_alarm_*",)
TASK = ("test_task_*", "test_persistent_map", "test_house_*")
HOUSE = (
    *TASK,
    "test_line_owner",
    "test_message_store",
    "test_desk_work",
    "test_confidential_*",
    "test_screening",
    "test_many_ended",
    "test_manual_steps",
    "test_up_and_down",
    "test_silent_or_latched",
    "test_kills_for_real",
)
DESK = (
    "test_answer_before_cold",
    "test_by_hand*",
    "test_checkpoint",
    "test_desk_*",
    "test_envelope_of_callers",
    "test_left_behind",
    "test_lying_capability",
    "test_policy_of_a_caller",
    "test_process_log",
    "test_remote_operator",
    "test_results",
    "test_resuming",
    "test_session",
    "test_suggesting",
    "test_terminal_fact",
    "test_two_terminals",
    "test_what_stands",
    "test_without_line",
)
ADMISSION = ("test_admission_*", "test_approvals", "test_preflight")
DRIVERS = (
    "test_alicat_*",
    "test_cobolt_laser",
    "test_eurotherm_2400*",
    "test_honeywell_midas",
    "test_horiba_icl",
    "test_keithley_2400",
    "test_mks_910",
    "test_prior_proscan",
    "test_waveshare_relay",
    "test_driver_*",
    "test_reply_rules",
    "test_testing_conformance",
    "test_reads_of_others",
    "test_bad_instruments",
    "test_drawers_agree",
    "test_proven",
)
SHIPPED = (
    "test_proven",
    "test_bad_lab_files",
    "test_by_hand_dangers",
    "test_unattended",
    "test_proofs_on_the_line",
    "test_cross_checks",
    "test_dangers_in_the_rules",
    "test_opening",
    "test_preflight",
    "test_admission_*",
    "test_ambient",
    "test_envelope_patch",
    "test_exhaust_lost",
    "test_foreign_hands",
    "test_hydrogen_sulfide",
    "test_rules_told",
)


@dataclass(frozen=True, slots=True)
class Room:
    """Files that are mutated alike.

    Attributes:
        name: What the table calls it.
        files: Patterns of them.
        tests: Patterns of the tests that have to notice, without ``.py``. Which of them run a
            function is measured; a row is tried by all of them.
        killed_min: Share of the mutants that must be killed.
        branches: Its tests must take every branch.
    """

    name: str
    files: tuple[str, ...]
    tests: tuple[str, ...]
    killed_min: float = 0.90
    branches: bool = False

    @property
    def paths(self) -> list[str]:
        """Return the files as they are found."""
        found = {path for each in self.files for path in ROOT.glob(each)}
        return sorted(path.relative_to(ROOT).as_posix() for path in found)

    @property
    def test_files(self) -> list[str]:
        """Return the files of tests as they are found."""
        found = {path for each in self.tests for path in ROOT.glob(f"tests/**/{each}.py")}
        return sorted(path.relative_to(ROOT).as_posix() for path in found)

    def mutants(self) -> list[Mutant | RowMutant]:
        """Return all of its mutants."""
        return [
            each
            for file in self.paths
            for each in (row_mutants_of(file) if file.endswith(".toml") else mutants_of(file))
        ]


ROOMS = (
    Room(
        "kernel",
        (
            "labharness/safety/kernel/**/*.py",
            "labharness/safety/guard/core.py",
            "labharness/safety/guard/port.py",
        ),
        (*PURE, "test_guard_core", "test_guard_ports", "test_echoes"),
        killed_min=0.95,
        branches=True,
    ),
    Room(
        "guard",
        ("labharness/safety/guard/[!c]*.py", "labharness/safety/guard/contract.py"),
        (*GUARD, *LINE),
    ),
    Room(
        "line",
        ("labharness/line/*.py", "labharness/lab/config/wires.py"),
        (*LINE, "test_wires", *GUARD, *ALARM),
    ),
    Room(
        "admission",
        ("labharness/work/admission/*.py", "labharness/lab/wiring/approvals.py"),
        ADMISSION,
    ),
    Room("alarm", ("labharness/safety/alarm/*.py",), ALARM),
    Room("house", ("labharness/lab/house/*.py",), HOUSE),
    Room("task", ("labharness/work/task/*.py",), TASK),
    Room("desk", ("labharness/work/desk/*.py",), DESK),
    Room(
        "drivers",
        ("drivers/labharness_drivers/*.py", "labharness/instruments/driver/*.py"),
        DRIVERS,
    ),
    Room(
        "rows",
        (
            "envelopes/labharness_envelopes/lines/*[!s].toml",  # no *.faults.toml
            "envelopes/labharness_envelopes/*.toml",
            "envelopes/labharness_envelopes/labs/*/lab.toml",
            "envelopes/labharness_envelopes/labs/*/hazards.toml",
        ),
        ("test_numbers_of_the_line", "test_procedures_at_the_plant", *SHIPPED, *PURE),
    ),
)


def tests_of_rooms(name: str) -> list[str]:
    """Return the files of tests of the rooms whose name holds this."""
    return sorted({file for room in ROOMS if name in room.name for file in room.test_files})
