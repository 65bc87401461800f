"""Planted bugs in what persons answer for: agreements, names, proof tests, and their exhaust."""

from planted_bug import PlantedBug

__all__ = ["IN_THE_HOUSE"]

IN_THE_HOUSE = (
    PlantedBug(
        "agreement used twice",
        "labharness/lab/approvals.py",
        "tuple(each for each in said if each.ticket == entry.ticket)",
        "said",
        "tests/test_approval_log.py::"
        "test_what_was_said_of_an_earlier_request_does_not_count_for_a_later_one",
    ),
    PlantedBug(
        "use taken out of the log",
        "labharness/lab/approval_log.py",
        'if body.get("after") != digest_of(before):',
        "if False:",
        "tests/test_approval_log.py::"
        "test_a_log_that_is_not_as_it_was_written_lets_nothing_begin[use gone]",
    ),
    PlantedBug(
        "run begun before the use of its agreement is kept",
        "labharness/lab/approvals.py",
        'self._folder.settle(name, f"used by session {request.session_id}")',
        "pass",
        "tests/test_approval_log.py::"
        "test_no_run_begins_before_the_use_of_its_agreement_is_on_the_disk",
    ),
    PlantedBug(
        "digest compared by its beginning",
        "labharness/admission/approval.py",
        "fits = one.digest == digest and",
        "fits = one.digest[:40] == digest[:40] and",
        "tests/test_approvals.py::test_a_decision_for_another_digest_is_not_counted[digest-last]",
    ),
    PlantedBug(
        "digest believed as the file has it",
        "labharness/lab/approvals.py",
        "            digest=request.digest(),\n            requester",
        '            digest=agreed[0].digest if agreed else "",\n            requester',
        "tests/test_approvals.py::test_a_decision_for_another_digest_is_not_counted[digest-first]",
    ),
    PlantedBug(
        "own plan agreed to in letters that look alike",
        "labharness/vocabulary/persons.py",
        "return _said(one) == _said(other) or _seen(one) == _seen(other)",
        "return _said(one) == _said(other)",
        "tests/test_persons.py::"
        "test_nobody_agrees_to_the_own_plan_under_a_name_that_looks_like_the_own",
    ),
    PlantedBug(
        "own plan agreed to in a compatibility form",
        "labharness/vocabulary/persons.py",
        'one, other = (unicodedata.normalize("NFKC", each) for each in (one, other))',
        "one, other = (unicodedata.normalize('NFC', each) for each in (one, other))",
        "tests/test_persons.py::test_names_that_a_reader_takes_for_one_are_one",
        dear=True,
    ),
    PlantedBug(
        "letters of several scripts in one name",
        "labharness/vocabulary/persons.py",
        '    if mixed or (len(used) > 1 and not used <= _EAST_ASIAN | {"LATIN"}):\n',
        "    if False:\n",
        "tests/test_persons.py::"
        "test_whoever_answers_for_something_does_so_under_a_name_that_cannot_mislead",
        dear=True,
    ),
    PlantedBug(
        "character in a name that nobody sees",
        "labharness/vocabulary/persons.py",
        "        if not _may_stand(each):\n",
        "        if False:\n",
        "tests/test_persons.py::test_a_name_that_misleads_is_refused_in_one_sentence",
        dear=True,
    ),
    PlantedBug(
        "proof test of a day to come counts",
        "labharness/lab/hazards.py",
        "if days := [day for day in self._days() if day > now]:",
        "if days := []:",
        "tests/test_unattended.py::"
        "test_unattended_work_is_refused_without_hardware_that_was_tested[dated to come]",
    ),
    PlantedBug(
        "proof test of a day to come recorded",
        "labharness/lab/hazards.py",
        "    if day > today:\n",
        "    if False:\n",
        "tests/test_unattended.py::test_a_proof_test_of_tomorrow_is_not_recorded",
    ),
    PlantedBug(
        "exhaust lost over a hot tube taken for nothing",
        "envelopes/labharness_envelopes/lines/cvd_mos2.toml",
        'require = [{ channel = "box.exhaust_flow", at_least = 1 }]\n'
        'on_loss = "hold_inert"\nsource = "whoever heated it',
        'require = [{ channel = "box.exhaust_flow", at_least = 0 }]\n'
        'on_loss = "hold_inert"\nsource = "whoever heated it',
        "tests/test_exhaust_lost.py::"
        "test_a_hot_tube_that_nothing_heats_trips_calls_and_is_held_in_argon[a furnace]",
    ),
    PlantedBug(
        "bypass left open over a dead exhaust",
        "envelopes/labharness_envelopes/lines/cvd_mos2.toml",
        '    ["argon.setpoint", 100],\n    ["box.nitrogen_bypass_shut", 1],\n',
        '    ["argon.setpoint", 100],\n    ["box.nitrogen_bypass_shut", 0],\n',
        "tests/test_exhaust_lost.py::"
        "test_a_hot_tube_that_nothing_heats_trips_calls_and_is_held_in_argon[sulfur]",
        dear=True,
    ),
    PlantedBug(
        "idle line not told that its exhaust is lost",
        "labharness/kernel/rules.py",
        "or (row.guards and not does) or",
        "or not does or",
        "tests/test_exhaust_lost.py::"
        "test_whoever_watches_an_idle_hot_line_is_told_what_to_do_and_people_are_called",
    ),
    PlantedBug(
        "vapour swept into a dead exhaust by hand",
        "labharness/line/standing.py",
        "return next(iter(states.values()), gravest)",
        "return gravest",
        "tests/test_exhaust_lost.py::"
        "test_who_makes_such_a_line_safe_by_hand_shuts_the_bypass_and_holds_the_argon",
        dear=True,
    ),
    PlantedBug(
        "hydrogen over hot sulfur beyond what the exhaust dilutes",
        "envelopes/labharness_envelopes/lines/cvd_mos2.toml",
        'forbid = [{ channel = "sulfur.temperature", at_least = 115 }]',
        'forbid = [{ channel = "sulfur.temperature", at_least = 1150 }]',
        "tests/test_hydrogen_sulfide.py::"
        "test_no_more_hydrogen_flows_over_hot_sulfur_than_the_exhaust_dilutes",
    ),
    PlantedBug(
        "sulfur heated under too much hydrogen",
        "envelopes/labharness_envelopes/lines/cvd_mos2.toml",
        'require = [{ channel = "hydrogen.setpoint_active", at_most = 20 }]',
        'require = [{ channel = "hydrogen.setpoint_active", at_most = 200 }]',
        "tests/test_hydrogen_sulfide.py::test_sulfur_is_not_heated_under_more_hydrogen_than_that",
        dear=True,
    ),
    PlantedBug(
        "hydrogen sulfide without its hardware",
        "envelopes/labharness_envelopes/labs/cvd_mos2/hazards.toml",
        'proof_days = 180\ncategories = ["flammable_gas"]\n\n[[hazard]]\nname = "laser"',
        'proof_days = 180\ncategories = []\n\n[[hazard]]\nname = "laser"',
        "tests/test_hydrogen_sulfide.py::"
        "test_a_growth_in_hydrogen_is_asked_for_the_hardware_against_hydrogen_sulfide",
        dear=True,
    ),
)
