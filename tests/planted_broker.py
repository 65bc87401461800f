"""Planted bugs at the broker: one message that ends the service, and rights that are too wide."""

from planted_bug import PlantedBug

SPANS = "test_spans_lie_within_their_parents_and_hold_no_word_of_a_caller"
BUGS = (
    PlantedBug(
        "property that cannot be read ends the connection",
        "labharness.faces.broker.lenient:_read",
        "value = None",
        "raise",
        "test_what_stands_beside_an_unreadable_property_is_read",
    ),
    PlantedBug(
        "message that is parsed however deep it nests",
        "labharness.protocols.strict_json:check_bounds",
        "depth > depth_max",
        "False",
        "test_a_hostile_message_has_a_fate",
    ),
    PlantedBug(
        "fault at one delivery that ends the service",
        "labharness.faces.service.message_service:MessageService.handle_or_dead_letter",
        'await self.dead_letter(data, message_id, Unanswerable(Text("hcp.fault")))',
        "raise",
        "test_a_message_that_makes_the_lab_fail_is_a_dead_letter",
    ),
    PlantedBug(
        "stranger without an account that is answered to the caller it names",
        "labharness.faces.service.inbox:_stranger",
        "if not account:\n    return Unanswerable(Text('hcp.no_account', caller=caller_id))",
        "account = account or caller_id",
        "test_a_submission_without_an_account_is_answered_to_nobody",
    ),
    PlantedBug(
        "right to every name that begins with an allowed one",
        "labharness.faces.service.rights:pattern",
        'f"^{found[0]}$"',
        'f"^{found[0]}"',
        "test_an_account_has_the_names_of_the_table_and_none_that_is_like_one",
    ),
    PlantedBug(
        "right to the events of callers whose ids begin alike",
        "labharness.faces.service.rights:Parties.topics",
        r'rf"^{escaped(wire.word(user))}\."',
        'rf"^{escaped(wire.word(user))}"',
        "test_a_caller_binds_its_own_topics_only",
    ),
    PlantedBug(
        "span that waits for its collector",
        "labharness.faces.service.traces:Traces.on_end",
        "self._queue.put_nowait(span)",
        "self._queue.put(span, timeout=0.01)",
        "test_a_collector_that_hangs_holds_up_nothing_and_what_does_not_fit_is_counted",
        detector="deadline",
    ),
    PlantedBug(
        "word of a caller in a span",
        "labharness.faces.service.session_times:code_in",
        "CODE.fullmatch((text := str(value)))",
        "(text := str(value))",
        SPANS,
    ),
    PlantedBug(
        "capability of a task that was never accepted in a span",
        "labharness.faces.service.traces:trace_session",
        "code_in(task.task_family) if seen.risk_level else ''",
        "task.task_family",
        SPANS,
    ),
)
