"""Planted bugs in the removal of runs: one that goes too soon, or that leaves something behind."""

from planted_bug import PlantedBug

BUGS = (
    PlantedBug(
        "run that never ended, removed",
        "labharness.lab.operate.retention:_kept",
        "'' if ended else Text('retention.open')",
        "''",
        "test_each_class_has_its_own_days",
    ),
    PlantedBug(
        "days of retention counted as hours",
        "labharness.lab.operate.retention:_kept",
        "timedelta(days=days)",
        "timedelta(hours=days)",
        "test_each_class_has_its_own_days",
    ),
    PlantedBug(
        "run removed before its log says so",
        "labharness.lab.operate.retention:remove_run",
        "append_chained(run.folder.parent / REMOVED_NAME, said)\nleaving = run.folder.with_name(f'{LEAVING}{run.folder.name}')\nrun.folder.rename(leaving)",
        "leaving = run.folder.with_name(f'{LEAVING}{run.folder.name}')\nrun.folder.rename(leaving)\nappend_chained(run.folder.parent / REMOVED_NAME, said)",
        "test_a_removal_that_fails_leaves_a_whole_run_or_none[log]",
        detector="journal audit",
    ),
    PlantedBug(
        "folder emptied under the name of a run",
        "labharness.lab.operate.retention:remove_run",
        "run.folder.rename(leaving)\nsync_folder(leaving.parent)\nshutil.rmtree(leaving)",
        "shutil.rmtree(run.folder)",
        "test_a_removal_that_fails_leaves_a_whole_run_or_none[remove]",
    ),
    PlantedBug(
        "half a run that a power cut brings back",
        "labharness.lab.operate.retention:remove_run",
        "sync_folder(leaving.parent)",
        "pass",
        "test_a_folder_is_emptied_when_its_other_name_is_on_the_disk",
    ),
    PlantedBug(
        "rest of a removal that nobody removes",
        "labharness.faces.cli.records:retention",
        "remove_left_over(runs)",
        "pass",
        "test_the_command_removes_what_is_over_and_says_so",
    ),
    PlantedBug(
        "key that outlives the confidential run it belongs to",
        "labharness.faces.cli.records:retention",
        "each.data_class in CONFIDENTIAL",
        "False",
        "test_the_command_that_removes_a_run_destroys_the_key_of_its_submission",
    ),
    PlantedBug(
        "run removed by a clock that jumped",
        "labharness.faces.cli.records:retention",
        "if not chosen.clock_checked and (why := why_clock_is_doubted(over, found, runs, now)):\n"
        "    raise CommandFailed(why)",
        "",
        "test_the_command_removes_nothing_by_a_clock_that_is_days_ahead",
    ),
    PlantedBug(
        "clock relied on for as long as it likes",
        "labharness.lab.operate.retention:why_clock_is_doubted",
        "after - before > most",
        "after - before > 2 * most",
        "test_nothing_is_removed_by_a_clock_that_jumped_further_than_the_bound",
    ),
    PlantedBug(
        "link with the name of a rest that blocks every removal",
        "labharness.lab.operate.retention:remove_left_over",
        "each.is_dir() and (not each.is_symlink())",
        "True",
        "test_what_only_has_the_name_of_a_rest_blocks_no_removal",
    ),
)
