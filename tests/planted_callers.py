"""Planted bugs in what callers are told: the form of an object, an order, other people."""

from planted_bug import PlantedBug

AUDIENCE = "test_no_caller_hears_who_else_there_is"

BUGS = (
    PlantedBug(
        "stranger who is told the ids of all callers",
        "labharness.faces.service.audience:_told",
        "known(own)",
        "known(own) and not own.endswith('one_of')",
        AUDIENCE,
    ),
    PlantedBug(
        "account of a person who works by hand, told to a caller",
        "labharness.faces.service.audience:_told",
        "known(own)",
        "known(own) and 'by_hand' not in own",
        AUDIENCE,
    ),
    PlantedBug(
        "text of a request that arrives as the object it travelled as",
        "labharness.core.vocabulary.texts:from_json",
        "json.loads(data, object_hook=revived)",
        "json.loads(data)",
        "test_a_text_of_a_request_arrives_as_its_code_and_parameters",
    ),
    PlantedBug(
        "same key with other inputs, answered with the old task",
        "labharness.lab.house.intake:_digest",
        "canonical(payload.stated())",
        "canonical({'intent': payload.intent})",
        "test_no_part_of_a_submission_may_differ_under_its_key[None]",
    ),
    PlantedBug(
        "session that is closed before its answer",
        "labharness.faces.service.session_messages:messages_of",
        "record.kind == 'event' and _closes(record.body)",
        "False",
        "test_a_caller_hears_all_of_its_task_in_order_and_one_end_whatever_dies[5]",
    ),
    PlantedBug(
        "answer that is sent alone, and its session never closed",
        "labharness.faces.service.session_messages:messages_of",
        "closing.seq - 1",
        "closing.seq",
        "test_a_caller_hears_all_of_its_task_in_order_and_one_end_whatever_dies[5]",
    ),
)
