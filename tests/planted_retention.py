"""Planted bugs in the removal of runs: one that goes too soon, or that leaves something behind."""

from planted_bug import PlantedBug

RETENTION = "tests/lab/operate/test_retention.py::"

OF_RETENTION = (
    PlantedBug(
        "run that never ended, removed",
        "labharness.lab.operate.retention:_kept",
        "'' if ended else Text('retention.open')",
        "''",
        RETENTION + "test_each_class_has_its_own_days",
        promise=73,
        daily=True,
    ),
    PlantedBug(
        "days of retention counted as hours",
        "labharness.lab.operate.retention:_kept",
        "timedelta(days=days)",
        "timedelta(hours=days)",
        RETENTION + "test_each_class_has_its_own_days",
        promise=73,
    ),
    PlantedBug(
        "run removed before its log says so",
        "labharness.lab.operate.retention:remove_run",
        "append_chained(run.folder.parent / REMOVED_NAME, said)\nleaving = run.folder.with_name(f'{LEAVING}{run.folder.name}')\nrun.folder.rename(leaving)",
        "leaving = run.folder.with_name(f'{LEAVING}{run.folder.name}')\nrun.folder.rename(leaving)\nappend_chained(run.folder.parent / REMOVED_NAME, said)",
        RETENTION + "test_a_removal_that_fails_leaves_a_whole_run_or_none[log]",
        promise=73,
        detector="journal audit",
    ),
    PlantedBug(
        "folder emptied under the name of a run",
        "labharness.lab.operate.retention:remove_run",
        "run.folder.rename(leaving)\nsync_folder(leaving.parent)\nshutil.rmtree(leaving)",
        "shutil.rmtree(run.folder)",
        RETENTION + "test_a_removal_that_fails_leaves_a_whole_run_or_none[remove]",
        promise=73,
    ),
    PlantedBug(
        "half a run that a power cut brings back",
        "labharness.lab.operate.retention:remove_run",
        "sync_folder(leaving.parent)",
        "pass",
        RETENTION + "test_a_folder_is_emptied_when_its_other_name_is_on_the_disk",
        promise=73,
    ),
    PlantedBug(
        "rest of a removal that nobody removes",
        "labharness.faces.cli.records:retention",
        "remove_left_over(runs)",
        "pass",
        RETENTION + "test_the_command_removes_what_is_over_and_says_so",
        promise=73,
    ),
    PlantedBug(
        "key that outlives the confidential run it belongs to",
        "labharness.faces.cli.records:retention",
        "each.data_class in CONFIDENTIAL",
        "False",
        "tests/lab/house/test_confidential_tasks.py::"
        "test_the_command_that_removes_a_run_destroys_the_key_of_its_submission",
        promise=73,
    ),
    PlantedBug(
        "run removed by a clock that jumped",
        "labharness.faces.cli.records:retention",
        "if not chosen.clock_checked and (why := why_clock_is_doubted(over, found, runs, now)):\n"
        "    raise CommandFailed(why)",
        "",
        RETENTION + "test_the_command_removes_nothing_by_a_clock_that_is_days_ahead",
        promise=73,
    ),
    PlantedBug(
        "clock relied on for as long as it likes",
        "labharness.lab.operate.retention:why_clock_is_doubted",
        "after - before > most",
        "after - before > 2 * most",
        RETENTION + "test_nothing_is_removed_by_a_clock_that_jumped_further_than_the_bound",
        promise=73,
    ),
    PlantedBug(
        "link with the name of a rest that blocks every removal",
        "labharness.lab.operate.retention:remove_left_over",
        "each.is_dir() and (not each.is_symlink())",
        "True",
        RETENTION + "test_what_only_has_the_name_of_a_rest_blocks_no_removal",
        promise=73,
    ),
)
