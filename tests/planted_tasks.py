"""Planted bugs in the house: tasks that are lost, and runs that begin twice."""

from planted_bug import PlantedBug

QUEUE = "tests/lab/house/test_house_queue.py"
SILENT = "tests/lab/house/test_silent_or_latched.py"
KILLED = (
    "tests/lab/house/test_house_killed.py::"
    "test_a_house_that_dies_at_any_instant_loses_no_task_and_begins_no_run_twice"
)
EVENTS = (
    "tests/lab/house/test_house_queue.py::"
    "test_each_task_has_its_events_in_order_and_none_is_lost_or_doubled"
)

MAP_WAITS = (
    "tests/lab/house/test_desk_work.py::"
    "test_a_map_waits_for_the_line_and_stored_spectra_are_judged_beside_it"
)
LEASES = (
    "tests/work/task/test_task_leases.py::"
    "test_no_instrument_has_two_runs_and_no_capability_more_than_its_limit"
)

HEARD = (
    "tests/faces/service/test_post_killed.py::"
    "test_a_caller_hears_all_of_its_task_in_order_and_one_end_whatever_dies"
)

NEWS = (
    "tests/faces/caller/test_task_state.py::"
    "test_each_message_is_news_once_and_what_was_not_heard_is_in_the_gaps"
)
READ = (
    "tests/faces/caller/test_task_state.py::"
    "test_a_reader_that_is_killed_and_started_again_reads_each_message_in_its_order_once"
)

IN_THE_TASKS = (
    PlantedBug(
        "event that was heard before taken for news",
        "labharness.faces.caller.task_state:_event",
        "late = missing != session.missing",
        "late = True",
        NEWS,
        promise=65,
    ),
    PlantedBug(
        "message acknowledged that the caller's file does not hold",
        "labharness.faces.caller.caller_file:CallerFile.heard",
        "self._tell(after.message_id, message, news.gap)",
        "pass",
        "tests/faces/caller/test_connection.py::"
        "test_a_message_is_acknowledged_when_the_file_has_it",
        promise=65,
    ),
    PlantedBug(
        "gap of a session that is told to no reader",
        "labharness.faces.caller.caller_file:CallerFile._tell",
        "gap is not None",
        "False",
        READ,
        promise=65,
    ),
    PlantedBug(
        "message taken for sent that no broker has confirmed",
        "labharness.faces.service.outbox:Outbox.sent",
        "count == len(batch.messages)",
        "True",
        f"{HEARD}[5]",
        promise=65,
        daily=True,
    ),
    PlantedBug(
        "week of a run that is read at once for a caller that was away",
        "labharness.lab.house.orders:next_records",
        "list(islice(runs.records(run_id, after), RECORDS_MAX))",
        "list(runs.records(run_id, after))",
        "tests/faces/service/test_a_week_away.py::"
        "test_what_a_caller_missed_is_sent_in_order_and_in_pieces",
        promise=65,
    ),
    PlantedBug(
        "session of another attempt that is told to nobody",
        "labharness.work.task.facts:AttemptStarted._apply",
        "tasks = _opened(tasks, self.run_id, self.task_id)",
        "pass",
        "tests/faces/service/test_post_killed.py::"
        "test_each_attempt_of_a_task_is_told_also_one_that_comes_after_its_end",
        promise=65,
    ),
    PlantedBug(
        "end of a lost session that is not kept",
        "labharness.faces.service.outbox:Outbox._end",
        'self.kept.keep(session_id, "after", *ends)',
        "pass",
        f"{HEARD}[5]",
        promise=65,
    ),
    PlantedBug(
        "lost session whose events are numbered anew",
        "labharness.faces.service.session_messages:state_after",
        'sequence = record.body["sequence"]',
        "sequence = begin.sequence",
        f"{HEARD}[18]",
        promise=65,
    ),
    PlantedBug(
        "acceptance on receipt taken for sent with what opens its session",
        "labharness.faces.service.session_messages:on_receipt_in_order",
        "number - last",
        "number",
        f"{HEARD}[18]",
        promise=65,
    ),
    PlantedBug(
        "locks on the messages of tasks that their next user takes away",
        "labharness.lab.house.message_store:_make",
        "os.O_RDWR | os.O_CREAT | os.O_EXCL",
        "os.O_RDWR | os.O_CREAT",
        "tests/lab/house/test_message_store.py::"
        "test_a_second_user_in_one_process_takes_no_lock_from_the_first",
        promise=65,
    ),
    PlantedBug(
        "tasks that are kept before their submissions",
        "labharness.lab.house.intake:Intake.submit_all",
        "self.kept.receive(*receipts, pending=record)",
        "self.journal.append_pending(draft, record); self.kept.receive(*receipts); return found",
        f"{QUEUE}::test_no_task_is_without_its_submission",
        promise=61,
    ),
    PlantedBug(
        "submission that takes those beside it with it",
        "labharness.lab.house.intake:Intake.submit_all",
        "found.append(why); continue",
        "raise",
        f"{QUEUE}::test_one_that_fails_takes_none_of_the_others_with_it",
        promise=61,
    ),
    PlantedBug(
        "accepted task that is rejected because its run never began",
        "labharness.faces.service.session_messages:end_of_lost",
        "accepted and state == 'PENDING'",
        "False",
        f"{HEARD}[5]",
        promise=65,
    ),
    PlantedBug(
        "house that forgets how far it has read",
        "labharness.work.task.following:read_up_to",
        "run.output_offsets.get(journal_ref(run.run_id), 0)",
        "0",
        f"{KILLED}[1]",
        promise=61,
        daily=True,
    ),
    PlantedBug(
        "run that ended without a message taken for one that goes on",
        "labharness.lab.house.house:House._over",
        "self._say([FailTask(task_id=task.task_id, error_code=code, reason=why)])",
        "pass",
        "tests/lab/house/test_house_queue.py::"
        "test_a_silent_owner_makes_doubt_and_a_dead_one_a_failure",
        promise=61,
    ),
    PlantedBug(
        "damaged run that stops the house",
        "labharness.lab.house.house:House._follow",
        "self._unreadable(task, run, status, why)",
        "raise",
        "tests/lab/house/test_house_queue.py::test_a_run_whose_journal_cannot_be_read_fails_alone",
        promise=61,
    ),
    PlantedBug(
        "silent run that nobody ends",
        "labharness.lab.house.house:House.step",
        "self._ask(task.current, 'time_out')",
        "pass",
        f"{SILENT}::test_a_run_that_is_silent_for_too_long_is_ended_by_its_worker",
        promise=61,
        detector="deadline",
    ),
    PlantedBug(
        "silent run whose line stays as it is",
        "labharness.work.desk.desk:Desk.time_out",
        "self._running.cancel()",
        "pass",
        "tests/work/capability/test_annealing.py::"
        "test_a_run_that_was_silent_for_too_long_is_made_safe_and_has_timed_out",
        promise=61,
    ),
    PlantedBug(
        "caller elsewhere left to wait for a latched line",
        "labharness.lab.house.house:_called_elsewhere",
        "each.profile.get('via')",
        "False",
        f"{SILENT}::test_a_caller_elsewhere_is_answered_where_the_line_is_latched_"
        "and_a_person_here_waits",
        promise=65,
        detector="deadline",
    ),
    PlantedBug(
        "order that a dead house leaves ungiven",
        "labharness.lab.house.house:House._not_begun",
        "self._order(task, run)",
        "pass",
        f"{KILLED}[3]",
        promise=61,
    ),
    PlantedBug(
        "next task begun on a latched line",
        "labharness.lab.house.house:House._begin_next",
        "self.owner.held()",
        "''",
        EVENTS,
        promise=61,
    ),
    PlantedBug(
        "line at work taken for one that was left armed",
        "labharness.lab.house.owner_client:_trip",
        "latch.write_error",
        "False",
        "tests/lab/house/test_line_owner.py::test_a_line_at_work_is_armed_and_not_latched",
        promise=65,
    ),
    PlantedBug(
        "submission acknowledged before it is kept",
        "labharness.work.task.house:HouseJournal._commit",
        "self._journal.commit()",
        "pass",
        "tests/work/task/test_task_house.py::test_a_killed_process_loses_no_acknowledged_task",
        promise=20,
    ),
    PlantedBug(
        "key that makes a second task",
        "labharness.work.task.commands:TaskCommand._repeated",
        "tasks.keys.get((actor.name, self.key)) if self.key else None",
        "None",
        "tests/lab/house/test_house_queue.py::"
        "test_the_same_key_is_one_task_and_another_content_of_it_is_refused",
        promise=61,
    ),
    PlantedBug(
        "retry that forgets its checkpoint",
        "labharness.lab.house.house:House._order",
        "_resumed_from(run)",
        "None",
        "tests/lab/house/test_house_queue.py::"
        "test_a_retry_may_go_on_from_the_last_checkpoint_of_the_task",
        promise=61,
    ),
    PlantedBug(
        "schedule that forgets what was due",
        "labharness.work.task.jobs:_check_due",
        "on_time and job.due_s < due_s <= now_s",
        "on_time and due_s <= now_s",
        "tests/work/task/test_task_jobs.py::test_a_due_time_is_dealt_with_once_and_no_other_time_is",
        promise=61,
    ),
    PlantedBug(
        "instrument that two runs have",
        "labharness.work.task.commands:LeaseInstruments._decided",
        "not tasks.leased.keys() & set(self.instruments)",
        "True",
        LEASES,
        promise=63,
        daily=True,
    ),
    PlantedBug(
        "limit of runs at once that lets one more begin",
        "labharness.work.task.queue:obstacle",
        "tasks.at_work(task) >= need.places",
        "tasks.at_work(task) > need.places",
        "tests/work/task/test_task_leases.py::"
        "test_a_task_without_instruments_runs_beside_and_passes_one_that_waits",
        promise=63,
    ),
    PlantedBug(
        "stored spectra that take the place of a map",
        "labharness.work.task.record:Task.form",
        "bool(self.profile.get(WITHOUT_LINE))",
        "False",
        "tests/work/task/test_task_leases.py::test_each_form_of_a_capability_has_its_own_places",
        promise=63,
    ),
    PlantedBug(
        "map that runs without the line's lease",
        "labharness.lab.house.screening:needs_of.need",
        "without_line(capability) if task.profile.get(WITHOUT_LINE) else None",
        "without_line(capability)",
        MAP_WAITS,
        promise=63,
    ),
    PlantedBug(
        "task in the queue that is passed for no reason",
        "labharness.work.task.queue:waiting",
        "(_rank(each), each.created_at_s)",
        "each.created_at_s",
        "tests/work/task/test_task_queue.py::test_tasks_begin_by_priority_and_then_by_age",
        promise=63,
    ),
    PlantedBug(
        "lease that ends while its line is still warm",
        "labharness.lab.house.house:House._release",
        "seen.run_id == lease.run_id",
        "False",
        f"{KILLED}[1]",
        promise=63,
    ),
    PlantedBug(
        "job that a repeated key makes again",
        "labharness.lab.house.jobs:HouseJobs._known",
        "self.journal.tasks.keys.get((by, key), ('', ''))[1] if key else ''",
        "''",
        "tests/lab/house/test_house_jobs.py::"
        "test_a_job_that_is_asked_for_again_with_its_key_is_made_once",
        promise=61,
    ),
    PlantedBug(
        "point of a campaign that a second lab gets",
        "labharness.lab.campaign.course:Course.next_move",
        "busy.get(lab, self._next_of(lab))",
        "self._next_of(lab)",
        "tests/lab/campaign/test_campaign_course.py::"
        "test_each_point_is_given_to_one_lab_and_has_an_end",
        promise=61,
    ),
    PlantedBug(
        "campaign that takes a new name at each start",
        "labharness.lab.campaign.durable:campaign_id",
        "not path.exists()",
        "True",
        "tests/lab/campaign/test_campaign_killed.py::"
        "test_a_campaign_that_is_killed_goes_on_and_makes_each_task_once",
        promise=61,
        dear=True,
    ),
    PlantedBug(
        "run owed in memory alone",
        "labharness.work.task.facts:JobTicked._apply",
        "(*job.owed, str(self.due_s))",
        "job.owed",
        "tests/lab/house/test_house_jobs.py::"
        "test_each_due_time_has_one_task_wherever_the_house_dies",
        promise=61,
    ),
    PlantedBug(
        "run that is told of as missed and carried out",
        "labharness.work.task.jobs:due",
        "count if late else count - 1",
        "count",
        "tests/work/task/test_task_jobs.py::"
        "test_each_due_time_ticks_or_is_missed_once_whenever_the_house_looks",
        promise=61,
    ),
    PlantedBug(
        "second run begun beside the first",
        "labharness.lab.house.line_owner:LineOwnerProcess._begin",
        "self._order is not None or self._leaving",
        "self._leaving",
        "tests/lab/house/test_line_owner.py::test_no_second_run_begins_beside_the_first",
        promise=61,
    ),
    PlantedBug(
        "cancelled task that is ordered all the same",
        "labharness.lab.house.house:House._not_begun",
        "task.cancel_requested",
        "False",
        "tests/lab/house/test_house_queue.py::"
        "test_a_task_that_is_cancelled_before_its_order_was_taken_is_never_ordered",
        promise=61,
    ),
    PlantedBug(
        "line that is leased anew before it is cold",
        "labharness.lab.house.house:House._release",
        "seen is None or seen.run_id == lease.run_id",
        "seen is None",
        "tests/lab/house/test_house_model.py::"
        "test_each_order_of_events_in_a_small_house_ends_as_the_reference_says[0]",
        promise=63,
    ),
    PlantedBug(
        "run ordered in a folder of anybody's",
        "labharness.lab.house.orders:order_from_json",
        "next(_wrong(given), None) or next(_elsewhere(given, home), None)",
        "next(_wrong(given), None)",
        "tests/lab/house/test_line_owner.py::"
        "test_a_run_is_ordered_in_the_folder_of_the_labs_own_runs_alone",
        promise=61,
    ),
    PlantedBug(
        "resume of a run that is not held",
        "labharness.work.desk.desk:Desk.resume",
        "self.session.state != 'PAUSED' or not self._executing",
        "False",
        "tests/work/desk/test_desk_model.py::"
        "test_whatever_persons_do_a_session_goes_by_its_table_and_ends_once_and_safe",
        promise=75,
    ),
)
