"""Planted bugs in what finds a change of a journal, and what goes on after one."""

from planted_bug import PlantedBug

IN_THE_JOURNAL = (
    PlantedBug(
        "damaged journal continued",
        "labharness.journal.store:SqliteJournal._must_hold",
        "not found.ok",
        "False",
        "tests/journal/test_journal_tampered.py::"
        "test_records_before_the_damage_are_read_and_those_behind_it_are_counted[a_missing_row-groups]",
        promise=59,
        daily=True,
    ),
    PlantedBug(
        "reading beyond the damage",
        "labharness.journal.reading:stored",
        "rows.after(chain.FIRST_SEQ - 1, last)",
        "rows.after(chain.FIRST_SEQ - 1)",
        "tests/journal/test_journal_tampered.py::"
        "test_whichever_page_is_lost_what_is_read_is_a_beginning[groups]",
        promise=59,
    ),
    PlantedBug(
        "damaged journal not kept",
        "labharness.journal.salvage:_kept_aside",
        "_copy(path, aside)",
        "pass",
        "tests/journal/test_journal_tampered.py::"
        "test_a_salvaged_journal_goes_on_and_the_damaged_file_is_kept[groups]",
        promise=59,
    ),
    PlantedBug(
        "house salvages without being asked",
        "labharness.work.task.house:HouseJournal.__init__",
        "salvaging and path.exists()",
        "path.exists()",
        "tests/work/task/test_task_house.py::"
        "test_a_damaged_house_opens_to_its_beginning_only_where_the_loss_is_agreed_to",
        promise=59,
    ),
    PlantedBug(
        "head that anybody may sign",
        "labharness.core.files.signing_key:signed_by",
        "return False",
        "return True",
        "tests/journal/test_journal_tampered.py::"
        "test_a_head_that_the_lab_did_not_sign_counts_for_nothing[change0]",
        promise=59,
    ),
    PlantedBug(
        "cut tail overlooked",
        "labharness.journal.heads:verify_with_heads",
        "newest[0].head if newest and own else None",
        "None",
        "tests/journal/test_journal_tampered.py::"
        "test_a_cut_tail_is_found_and_without_a_head_nobody_can_tell",
        promise=59,
    ),
    PlantedBug(
        "records added behind the end",
        "labharness.journal.store:SqliteJournal.close",
        "self._keep_head(self.head, ended=True)",
        "self._keep_head(self.head)",
        "tests/journal/test_journal_tampered.py::"
        "test_what_is_added_behind_the_end_is_found_and_a_continued_journal_has_no_end",
        promise=59,
    ),
    PlantedBug(
        "facts about the process that anybody may change",
        "labharness.journal.heads:verify_with_heads",
        "bool(kept) and not own",
        "False",
        "tests/journal/test_journal_tampered.py::"
        "test_a_change_of_the_facts_about_the_process_is_found",
        promise=59,
    ),
    PlantedBug(
        "tampered file taken for whole",
        "labharness.journal.chain:_fault",
        "not hmac.compare_digest(link_hash(previous, sealed.data), sealed.hash)",
        "False",
        "tests/journal/test_journal_tampered.py::test_tamperings_of_the_file_are_found",
        promise=59,
    ),
    PlantedBug(
        "durable before its commit",
        "labharness.journal.committing:CommitThread.durable",
        "await told",
        "pass",
        "tests/journal/test_journal_thread.py::"
        "test_a_record_is_durable_when_its_commit_has_ended_and_the_loop_goes_on",
        promise=20,
        detector="journal audit",
    ),
    PlantedBug(
        "failed commit of the thread swallowed",
        "labharness.journal.committing:CommitThread._failure_of_commit",
        "return str(why)",
        "return None",
        "tests/journal/test_journal_thread.py::"
        "test_a_failed_commit_is_told_to_all_who_wait_and_to_the_next_record",
        promise=20,
        detector="journal audit",
    ),
    PlantedBug(
        "NaN recorded as missing",
        "labharness.journal.chain:_plain_float",
        "PLAIN_FROM <= value < PLAIN_BELOW or value == 0.0 or PLAIN_FROM <= -value < PLAIN_BELOW",
        "True",
        "tests/journal/test_journal_chain.py::"
        "test_a_number_that_json_has_not_is_refused_wherever_it_stands",
        promise=59,
    ),
    PlantedBug(
        "something hidden behind the records of a row",
        "labharness.journal.rows:records_of",
        "zip_longest(data.split(BETWEEN), hashes, fillvalue=b'')",
        "zip(data.split(BETWEEN), hashes)",
        "tests/journal/test_journal_chain.py::"
        "test_what_stands_behind_the_records_of_a_row_is_found[more0]",
        promise=59,
    ),
    PlantedBug(
        "row before the first record passed over",
        "labharness.journal.rows:Rows._begin",
        "return BEFORE_ALL",
        "return seq",
        "tests/journal/test_journal_chain.py::test_a_row_before_the_first_record_is_found",
        promise=59,
    ),
    PlantedBug(
        "full disk met only when the room of the log is used up",
        "labharness.journal.store:SqliteJournal._commit_queue",
        "check_free(self.path)",
        "pass",
        "tests/journal/test_journal_full_disk.py::"
        "test_the_next_record_meets_a_full_disk_although_the_log_has_room[1.0]",
        promise=20,
        detector="journal audit",
    ),
    PlantedBug(
        "room for the log that is kept as records are",
        "labharness.journal.disk:make_room",
        "database.execute('ROLLBACK')",
        "database.execute('COMMIT')",
        "tests/journal/test_journal_full_disk.py::"
        "test_room_in_the_log_is_no_record_and_covers_none",
        promise=20,
        detector="journal audit",
    ),
)
