"""Planted bugs in a dialogue: what ends the reader of its messages, and what its user is not asked."""

from planted_bug import PlantedBug

BUGS = (
    PlantedBug(
        "object parsed before its bounds are looked at",
        "labharness.protocols.strict_json:json_object",
        "check_bounds(data, bytes_max, depth_max)",
        "",
        "test_bytes_that_are_not_one_object_are_an_error_of_parsing",
    ),
    PlantedBug(
        "package of somebody else that ends the reader of messages",
        "labharness.protocols.mcp_cp.codec:message_types",
        'why = "mcp_cp.not_imported"',
        "raise",
        "test_a_broken_package_breaks_no_type_of_the_text",
    ),
    PlantedBug(
        "path of a user's file that travels",
        "labharness.faces.dialogue.front_tools:FrontTools.pick",
        '{"name": path.name, "size": len(data), "digest": digest}',
        '{"name": str(path), "size": len(data), "digest": digest}',
        "test_a_chain_of_front_tools_carries_no_path_and_no_data_to_the_server",
    ),
    PlantedBug(
        "user not asked for consent",
        "labharness.faces.dialogue.front_tools:FrontTools._result",
        'self._consent(call, question, due_s) if level == CONSENT else ""',
        '"yes"',
        "test_without_consent_a_tool_does_nothing_and_says_so_in_one_sentence",
    ),
    PlantedBug(
        "consent that comes too late taken",
        "labharness.faces.dialogue.front_tools:FrontTools._consent",
        "steady_s() >= due_s",
        "False",
        "test_consent_that_comes_after_the_time_of_the_call_is_none",
    ),
    PlantedBug(
        "hidden characters of a model shown to its user",
        "labharness.faces.dialogue.front_tools:shown",
        "str(plain(words))",
        "words",
        "test_hostile_words_are_shown_as_words_of_the_model_in_one_line_without_what_hides",
    ),
)
