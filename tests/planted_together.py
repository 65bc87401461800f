"""Planted bugs in submissions that are kept together: one that is decided or lost with another."""

from planted_bug import PlantedBug

BUGS = (
    PlantedBug(
        "submission decided without those that came with it",
        "labharness.lab.house.intake:Intake.submit_all",
        "Draft(draft.tasks, draft.now_s)",
        "Draft(self.journal.tasks, draft.now_s)",
        "test_submissions_that_come_together_are_one_record_and_each_is_what_it_is_alone",
    ),
    PlantedBug(
        "record that stands beside the submissions alone, and is forgotten there",
        "labharness.lab.house.intake:Intake.__post_init__",
        "self.journal.catch_up(self.kept.pending_records())",
        "pass",
        "test_a_house_that_dies_behind_the_answer_has_every_task_that_was_told_of",
    ),
    PlantedBug(
        "record kept ahead that takes the place of one not yet written",
        "labharness.lab.house.intake:Intake.submit_all",
        "self.journal.pending_count >= MESSAGES_MAX",
        "self.journal.pending_count > MESSAGES_MAX",
        "test_a_house_that_dies_behind_the_answer_has_every_task_that_was_told_of",
    ),
    PlantedBug(
        "records kept ahead of which half have a place",
        "labharness.lab.house.message_store:MessageStore.receive",
        "pending.seq % MESSAGES_MAX",
        "pending.seq % (MESSAGES_MAX - 1)",
        "test_a_house_that_dies_behind_the_answer_has_every_task_that_was_told_of[16]",
    ),
    PlantedBug(
        "record of another past taken for what comes next",
        "labharness.work.task.house:HouseJournal.catch_up",
        "(each.seq, each.before) == (head.seq + 1, head.hash)",
        "each.seq == head.seq + 1",
        "test_a_record_of_another_past_is_not_caught_up_with",
    ),
    PlantedBug(
        "receipts of which a part is kept",
        "labharness.lab.house.message_store:MessageStore._write",
        "self._database.execute(insert, [each for row in rows for each in row])",
        "for row in rows:\n    self._database.execute('INSERT OR REPLACE INTO messages VALUES (?, ?, ?, ?)', row)",
        "test_a_receipt_is_kept_whole_or_not_at_all",
    ),
    PlantedBug(
        "receipt that a power cut takes back",
        "labharness.lab.house.message_store:MessageStore.__init__",
        "'PRAGMA synchronous=FULL'",
        "'PRAGMA synchronous=NORMAL'",
        "test_a_receipt_waits_for_the_disk_itself",
    ),
    PlantedBug(
        "caller that hangs up takes those beside it with it",
        "labharness.lab.house.access:Submitting._work",
        "kept.done()",
        "False",
        "test_a_caller_that_hangs_up_takes_none_of_the_others_with_it",
    ),
)
