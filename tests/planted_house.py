"""Planted bugs in what persons answer for: agreements, names, proof tests, and their exhaust."""

from planted_bug import PlantedBug

IN_THE_HOUSE = (
    PlantedBug(
        "agreement used twice",
        "labharness.lab.wiring.approvals:ApprovalFolder._pending",
        "tuple((each for each in said if each.ticket == entry.ticket))",
        "said",
        "tests/lab/wiring/test_approval_log.py::"
        "test_what_was_said_of_an_earlier_request_does_not_count_for_a_later_one",
        promise=24,
        daily=True,
    ),
    PlantedBug(
        "use taken out of the log",
        "labharness.core.files.chained:read_chained",
        "body.get(AFTER) != digest_of(before)",
        "False",
        "tests/lab/wiring/test_approval_log.py::"
        "test_a_log_that_is_not_as_it_was_written_lets_nothing_begin[use gone]",
        promise=24,
    ),
    PlantedBug(
        "run begun before the use of its agreement is kept",
        "labharness.lab.wiring.approvals:Persons._answer",
        "self.folder.settle(name, f'used by session {request.session_id}')",
        "pass",
        "tests/lab/wiring/test_approval_log.py::"
        "test_no_run_begins_before_the_use_of_its_agreement_is_on_the_disk",
        promise=24,
    ),
    PlantedBug(
        "agreement that comes back with its state directory",
        "labharness.lab.wiring.approvals:_has",
        "first is not None and first.body.get('agreement') == ticket",
        "False",
        "tests/lab/wiring/test_approval_log.py::"
        "test_a_state_directory_that_comes_back_whole_makes_no_used_agreement_count"
        "[before it is asked for]",
        promise=24,
    ),
    PlantedBug(
        "agreement that comes back while its run waits",
        "labharness.lab.wiring.approvals:ApprovalFolder.verdict",
        "if (run := self._used_by(pending.ticket)):\n    return Text('approvals.used', run=run)",
        "",
        "tests/lab/wiring/test_approval_log.py::"
        "test_a_state_directory_that_comes_back_whole_makes_no_used_agreement_count"
        "[while it waits]",
        promise=24,
    ),
    PlantedBug(
        "run whose journal does not say what it has used",
        "labharness.work.admission.approval:Approved.to_json",
        "{'agreement': self.agreement} if self.agreement else {}",
        "{}",
        "tests/lab/wiring/test_approval_log.py::"
        "test_files_that_come_back_from_a_backup_let_no_second_run_begin[state directory]",
        promise=24,
        dear=True,
    ),
    PlantedBug(
        "digest compared by its beginning",
        "labharness.work.admission.approval:verify_personal",
        "one.digest == digest",
        "one.digest[:40] == digest[:40]",
        "tests/lab/wiring/test_approvals.py::test_a_decision_for_another_digest_is_not_counted[digest-last]",
        promise=24,
    ),
    PlantedBug(
        "digest believed as the file has it",
        "labharness.lab.wiring.approvals:ApprovalFolder.verdict",
        "request.digest()",
        "agreed[0].digest if agreed else ''",
        "tests/lab/wiring/test_approvals.py::test_a_decision_for_another_digest_is_not_counted[digest-first]",
        promise=24,
    ),
    PlantedBug(
        "own plan agreed to in letters that look alike",
        "labharness.core.vocabulary.persons:same_person",
        "_folded(one) == _folded(other) or _look(one) == _look(other)",
        "_folded(one) == _folded(other)",
        "tests/core/vocabulary/test_persons.py::"
        "test_nobody_agrees_to_the_own_plan_under_a_name_that_looks_like_the_own",
        promise=24,
    ),
    PlantedBug(
        "own plan agreed to in a compatibility form",
        "labharness.core.vocabulary.persons:same_person",
        '"""NFKC"""',
        '"""NFC"""',
        "tests/core/vocabulary/test_persons.py::test_names_that_a_reader_takes_for_one_are_one",
        promise=24,
        dear=True,
    ),
    PlantedBug(
        "letters of several scripts in one name",
        "labharness.core.vocabulary.persons:bad_name",
        "mixed or (len(used) > 1 and (not used <= _EAST_ASIAN | {'LATIN'}))",
        "False",
        "tests/core/vocabulary/test_persons.py::"
        "test_whoever_answers_for_something_does_so_under_a_name_that_cannot_mislead",
        promise=24,
        dear=True,
    ),
    PlantedBug(
        "character in a name that nobody sees",
        "labharness.core.vocabulary.persons:bad_name",
        "not _may_stand(each)",
        "False",
        "tests/core/vocabulary/test_persons.py::test_a_name_that_misleads_is_refused_in_one_sentence",
        promise=24,
        dear=True,
    ),
    PlantedBug(
        "proof test of a day to come counts",
        "labharness.lab.config.hazards:HazardRow.missing",
        "[day for day in self._days() if day > now]",
        "[]",
        "tests/envelopes/test_unattended.py::"
        "test_unattended_work_is_refused_without_hardware_that_was_tested[dated to come]",
        promise=35,
        detector="byte log",
        daily=True,
    ),
    PlantedBug(
        "real hardware taken for simulated",
        "labharness.lab.config.hazards:read_hazards",
        "table.proof and real_ports",
        "False",
        "tests/envelopes/test_unattended.py::"
        "test_simulated_hardware_is_never_overdue_and_stands_before_no_real_port",
        promise=35,
    ),
    PlantedBug(
        "line owner that leaves taken for one that is up",
        "labharness.lab.house.start:_started",
        'found["leaving"]',
        "False",
        "tests/lab/house/test_up_and_down.py::"
        "test_who_brings_a_lab_up_has_a_line_owner_that_stays_or_is_told_why_not",
        promise=75,
    ),
    PlantedBug(
        "task that waits for a line owner that leaves",
        "labharness.lab.house.orders:why_away",
        "status.leaving",
        "False",
        "tests/lab/house/test_house_queue.py::"
        "test_a_task_that_waits_while_no_line_owner_takes_it_says_so[after]",
        promise=75,
    ),
    PlantedBug(
        "two served labs with one state",
        "labharness.lab.config.served_file:served_text",
        'state_home(head["id"], None, target)',
        'state_home(head["id"], None, plan.path)',
        "tests/instruments/simulation/test_served_file.py::"
        "test_two_served_labs_of_one_lab_file_share_no_latch_and_no_door[]",
        promise=36,
    ),
    PlantedBug(
        "time passes while a person is asked",
        "labharness.core.clock.times:Clock.stand",
        "not self.stands",
        "True",
        "tests/lab/wiring/test_calendar.py::"
        "test_a_hold_at_full_speed_waits_by_the_calendar_until_a_person_ends_it[resume]",
        promise=75,
        detector="journal audit",
        dear=True,
    ),
    PlantedBug(
        "proof test of a day to come recorded",
        "labharness.lab.config.hazards:record_proof",
        "day > today",
        "False",
        "tests/envelopes/test_unattended.py::test_a_proof_test_that_cannot_be_is_one_plain_error",
        promise=35,
    ),
    PlantedBug(
        "exhaust lost over a hot tube taken for nothing",
        "envelopes/labharness_envelopes/lines/cvd_mos2.toml:a hot furnace keeps its exhaust",
        'require = [{ channel = "box.exhaust_flow", at_least = 1 }]',
        'require = [{ channel = "box.exhaust_flow", at_least = 0 }]',
        "tests/envelopes/test_exhaust_lost.py::"
        "test_a_hot_tube_that_nothing_heats_trips_calls_and_is_held_in_argon[a furnace]",
        promise=43,
        detector="referee",
        daily=True,
    ),
    PlantedBug(
        "bypass left open over a dead exhaust",
        "envelopes/labharness_envelopes/lines/cvd_mos2.toml:[procedures.hold_inert]",
        '["box.nitrogen_bypass_shut", 1],',
        '["box.nitrogen_bypass_shut", 0],',
        "tests/envelopes/test_exhaust_lost.py::"
        "test_a_hot_tube_that_nothing_heats_trips_calls_and_is_held_in_argon[sulfur]",
        promise=43,
        detector="referee",
        dear=True,
    ),
    PlantedBug(
        "idle line not told that its exhaust is lost",
        "labharness.safety.kernel.ticking:lost",
        "(row.guards and (not live)) or (not memory.energised(rule, now))",
        "not live or (not memory.energised(rule, now))",
        "tests/envelopes/test_exhaust_lost.py::"
        "test_whoever_watches_an_idle_hot_line_is_told_what_to_do_and_people_are_called",
        promise=43,
        detector="alarm audit",
    ),
    PlantedBug(
        "vapour swept into a dead exhaust by hand",
        "labharness.line.hindrances:stop_procedure",
        "next(iter(states.values()), gravest)",
        "gravest",
        "tests/envelopes/test_exhaust_lost.py::"
        "test_who_makes_such_a_line_safe_by_hand_shuts_the_bypass_and_holds_the_argon",
        promise=43,
        detector="referee",
        dear=True,
    ),
    PlantedBug(
        "hydrogen over hot sulfur beyond what the exhaust dilutes",
        "envelopes/labharness_envelopes/lines/cvd_mos2.toml:no more hydrogen over "
        "molten sulfur than its exhaust dilutes",
        'forbid = [{ channel = "sulfur.temperature", at_least = 115 }]',
        'forbid = [{ channel = "sulfur.temperature", at_least = 1150 }]',
        "tests/envelopes/test_hydrogen_sulfide.py::"
        "test_no_more_hydrogen_flows_over_hot_sulfur_than_the_exhaust_dilutes",
        promise=45,
        detector="referee",
        daily=True,
    ),
    PlantedBug(
        "sulfur heated under too much hydrogen",
        "envelopes/labharness_envelopes/lines/cvd_mos2.toml:sulfur melts under no more "
        "hydrogen than its exhaust dilutes",
        'require = [{ channel = "hydrogen.setpoint_active", at_most = 20 }]',
        'require = [{ channel = "hydrogen.setpoint_active", at_most = 200 }]',
        "tests/envelopes/test_hydrogen_sulfide.py::test_sulfur_is_not_heated_under_more_hydrogen_than_that",
        promise=45,
        dear=True,
    ),
    PlantedBug(
        "hydrogen sulfide without its hardware",
        "envelopes/labharness_envelopes/labs/cvd_mos2/hazards.toml:hydrogen sulfide",
        'categories = ["flammable_gas"]',
        "categories = []",
        "tests/envelopes/test_hydrogen_sulfide.py::"
        "test_a_growth_in_hydrogen_is_asked_for_the_hardware_against_hydrogen_sulfide",
        promise=45,
        detector="byte log",
        dear=True,
    ),
    PlantedBug(
        "task acknowledged before it is on the disk",
        "labharness.work.task.house:HouseJournal._commit",
        "self._journal.commit()",
        "pass",
        "tests/work/task/test_task_house.py::test_a_killed_process_loses_no_acknowledged_task",
        promise=20,
        detector="journal audit",
    ),
    PlantedBug(
        "request to a run in nobody's name",
        "labharness.lab.house.house:House.give",
        "self._worker(run).ask(run.run_id, do, getattr(command, 'reason', ''), actor.name)",
        "self._worker(run).ask(run.run_id, do, getattr(command, 'reason', ''))",
        "tests/lab/house/test_house_queue.py::"
        "test_a_run_is_asked_in_the_name_of_the_person_who_asks",
        promise=75,
        daily=True,
    ),
    PlantedBug(
        "manual step that nobody hears of",
        "labharness.work.task.following:_request",
        "'waiting_input'",
        "'running'",
        "tests/work/task/test_task_following.py::"
        "test_a_task_waits_for_a_manual_step_until_a_person_has_confirmed_it",
        promise=75,
    ),
    PlantedBug(
        "name of a person that the line owner leaves out",
        "labharness.lab.house.line_owner:LineOwnerProcess._by_hand",
        "('do', 'by', 'reason')",
        "('do', 'reason')",
        "tests/lab/house/test_manual_steps.py::"
        "test_a_manual_step_waits_for_a_person_who_confirms_it_from_any_terminal",
        promise=75,
        dear=True,
    ),
    PlantedBug(
        "word for one step that confirms the next",
        "labharness.work.desk.by_hand:ByHand._confirm",
        "step != waits",
        "not waits",
        "tests/lab/wiring/test_remote_operator.py::test_a_word_for_one_step_confirms_no_later_one",
        promise=75,
    ),
    PlantedBug(
        "step confirmed on a line that has tripped",
        "labharness.work.desk.by_hand:ByHand._confirm",
        "self._line.check()",
        "",
        "tests/lab/wiring/test_remote_operator.py::"
        "test_nothing_is_confirmed_on_a_line_that_is_held_or_has_tripped",
        promise=75,
    ),
    PlantedBug(
        "step that is done although the line tripped",
        "labharness.line.line:Line.by_hand",
        "done = await self.unless_tripped(ask())\nself.check()",
        "done = await self.unless_tripped(ask())",
        "tests/lab/wiring/test_remote_operator.py::"
        "test_a_step_that_is_confirmed_as_the_line_trips_is_not_done",
        promise=75,
    ),
    PlantedBug(
        "request that a hold ends",
        "labharness.work.task.facts:TaskMoved._request",
        "None if over or answered else task.request",
        "None",
        "tests/work/task/test_task_following.py::"
        "test_a_task_waits_for_a_manual_step_until_a_person_has_confirmed_it",
        promise=75,
    ),
    PlantedBug(
        "second step that nobody is called for",
        "labharness.lab.house.house:House._call_persons",
        "key not in self._called",
        "not self._called",
        "tests/lab/house/test_house_queue.py::"
        "test_persons_are_called_for_each_manual_step_and_again_by_a_new_house",
        promise=75,
    ),
    PlantedBug(
        "step that a second person confirms again",
        "labharness.lab.wiring.operators:RemoteOperator.done",
        "self._asked is None or self._asked.done()",
        "self._asked is None",
        "tests/lab/wiring/test_remote_operator.py::"
        "test_a_step_waits_for_a_person_and_is_confirmed_once",
        promise=75,
    ),
)
