"""Planted bugs in what finds a change of a journal, and what goes on after one."""

from planted_bug import PlantedBug

__all__ = ["IN_THE_JOURNAL"]

IN_THE_JOURNAL = (
    PlantedBug(
        "damaged journal continued",
        "labharness.journal.store:SqliteJournal._must_hold",
        "not found.ok",
        "False",
        "tests/journal/test_journal_damage.py::"
        "test_records_before_the_damage_are_read_and_those_behind_it_are_counted[a_missing_record]",
        promise=59,
        detector="verdict",
        daily=True,
    ),
    PlantedBug(
        "reading beyond the damage",
        "labharness.journal.reading:sealed",
        "database.execute(SELECT_UNTIL, (last,))",
        "database.execute(SELECT_UNTIL, (sys.maxsize,))",
        "tests/journal/test_journal_damage.py::"
        "test_whichever_page_is_lost_what_is_read_is_a_beginning",
        promise=59,
        detector="verdict",
    ),
    PlantedBug(
        "damaged journal not kept",
        "labharness.journal.salvage:_kept_aside",
        "_copy(path, aside)",
        "pass",
        "tests/journal/test_journal_damage.py::"
        "test_a_salvaged_journal_goes_on_and_the_damaged_file_is_kept",
        promise=59,
        detector="verdict",
    ),
    PlantedBug(
        "house salvages without being asked",
        "labharness.work.task.house:HouseJournal.__init__",
        "salvaging and path.exists()",
        "path.exists()",
        "tests/work/task/test_task_house.py::"
        "test_a_damaged_house_opens_to_its_beginning_only_where_the_loss_is_agreed_to",
        promise=59,
        detector="verdict",
    ),
)
