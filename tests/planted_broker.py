"""Planted bugs at the broker: one message that ends the service, and rights that are too wide."""

from planted_bug import PlantedBug

INBOX = "tests/faces/service/test_inbox.py"
RIGHTS = "tests/faces/service/test_rights.py"
PROPERTIES = f"{INBOX}::test_what_stands_beside_an_unreadable_property_is_read"
FATE = f"{INBOX}::test_a_hostile_message_has_a_fate"
FAULT = f"{INBOX}::test_a_message_that_makes_the_lab_fail_is_a_dead_letter"
NOBODY = f"{INBOX}::test_a_submission_without_an_account_is_answered_to_nobody"
NAMES = f"{RIGHTS}::test_an_account_has_the_names_of_the_table_and_none_that_is_like_one"
TOPICS = f"{RIGHTS}::test_a_caller_binds_its_own_topics_only"

SPANS = (
    "tests/faces/service/test_traces.py::"
    "test_spans_lie_within_their_parents_and_hold_no_word_of_a_caller"
)
AT_THE_BROKER = (
    PlantedBug(
        "property that cannot be read ends the connection",
        "labharness.faces.broker.lenient:_read",
        "value = None",
        "raise",
        PROPERTIES,
        promise=66,
        daily=True,
    ),
    PlantedBug(
        "message that is parsed however deep it nests",
        "labharness.protocols.strict_json:check_bounds",
        "depth > depth_max",
        "False",
        FATE,
        promise=66,
    ),
    PlantedBug(
        "fault at one delivery that ends the service",
        "labharness.faces.service.message_service:MessageService.handle_or_dead_letter",
        'await self.dead_letter(data, message_id, Unanswerable(Text("hcp.fault")))',
        "raise",
        FAULT,
        promise=66,
    ),
    PlantedBug(
        "stranger without an account that is answered to the caller it names",
        "labharness.faces.service.inbox:_stranger",
        "if not account:\n    return Unanswerable(Text('hcp.no_account', caller=caller_id))",
        "account = account or caller_id",
        NOBODY,
        promise=67,
    ),
    PlantedBug(
        "right to every name that begins with an allowed one",
        "labharness.faces.service.rights:pattern",
        'f"^{found[0]}$"',
        'f"^{found[0]}"',
        NAMES,
        promise=67,
        daily=True,
    ),
    PlantedBug(
        "right to the events of callers whose ids begin alike",
        "labharness.faces.service.rights:Parties.topics",
        r'rf"^{escaped(wire.word(user))}\."',
        'rf"^{escaped(wire.word(user))}"',
        TOPICS,
        promise=67,
    ),
    PlantedBug(
        "span that waits for its collector",
        "labharness.faces.service.traces:Traces.on_end",
        "self._queue.put_nowait(span)",
        "self._queue.put(span, timeout=0.01)",
        "tests/faces/service/test_traces.py::"
        "test_a_collector_that_hangs_holds_up_nothing_and_what_does_not_fit_is_counted",
        promise=72,
        detector="deadline",
    ),
    PlantedBug(
        "word of a caller in a span",
        "labharness.faces.service.session_times:code_in",
        "CODE.fullmatch((text := str(value)))",
        "(text := str(value))",
        SPANS,
        promise=72,
        daily=True,
    ),
    PlantedBug(
        "capability of a task that was never accepted in a span",
        "labharness.faces.service.traces:trace_session",
        "code_in(task.task_family) if seen.risk_level else ''",
        "task.task_family",
        SPANS,
        promise=72,
    ),
)
