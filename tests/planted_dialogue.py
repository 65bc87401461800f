"""Planted bugs in the messages of a dialogue: what ends a reader, and whose words are taken."""

from planted_bug import PlantedBug

_ASKING = "labharness.faces.dialogue.asking:"
_ROOMS = "labharness.faces.dialogue.rooms:"
_FORGED = "test_a_message_that_a_client_has_forged_is_refused_and_nothing_is_carried_out"
_CALLER = "test_another_caller_does_not_come_into_a_context_and_learns_nothing"
_FORWARDED = "test_a_tool_of_a_client_is_forwarded_with_a_question_and_its_result_hides_nothing"
_STOP = "self._stops.submit(self._stop, client, room, content)"

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
        "sender that a client has forged accepted",
        f"{_ROOMS}Rooms._take",
        'message.sender.id != client.caller_id or message.sender.type not in ("USER", "TOOL")',
        "False",
        f"{_FORGED}[tools of another caller-sent]",
    ),
    PlantedBug(
        "answer of a model taken from a client",
        f"{_ASKING}_check_own",
        'message.type not in (*BEGINS, "CONTEXT_UPDATE")',
        "False",
        f"{_FORGED}[an answer of the model-sent]",
    ),
    PlantedBug(
        "message of another caller added to a history",
        f"{_ASKING}Dialogue.take",
        "_check_own(message.content.message, self.agent.caller_id)",
        "pass",
        f"{_FORGED}[words of another caller-added]",
    ),
    PlantedBug(
        "result of another client taken",
        f"{_ROOMS}DialogueRoom.answered",
        "asked is client and future is not None and _ended(future, result)",
        "future is not None and _ended(future, result)",
        _FORWARDED,
    ),
    PlantedBug(
        "result of a client given to a model with what nobody sees",
        "labharness.faces.dialogue.calling:_bounded",
        "plain(msgspec.json.decode(data))",
        "msgspec.json.decode(data)",
        _FORWARDED,
    ),
    PlantedBug(
        "name of a tool of the lab taken by a client",
        f"{_ROOMS}Participant.tools",
        "each.tool_id not in known_tools()",
        "True",
        "test_a_client_cannot_take_over_the_name_of_a_tool_of_the_lab",
    ),
    PlantedBug(
        "text of a cleared history kept on the disk",
        f"{_ASKING}Dialogue._enter",
        "applied.context.cleared != self.context.cleared",
        "False",
        "test_a_history_that_is_cleared_is_forgotten_in_memory_and_on_the_disk",
    ),
    PlantedBug(
        "another caller in a context that is at work",
        f"{_ROOMS}Rooms._room",
        "room is not None and room.dialogue.agent.caller_id != client.caller_id",
        "False",
        _CALLER,
    ),
    PlantedBug(
        "another caller in a context of the disk",
        f"{_ASKING}Dialogue.__post_init__",
        "self.context.metadata[OWNER] != self.agent.caller_id",
        "False",
        _CALLER,
    ),
    PlantedBug(
        "stop request that waits for a turn",
        f"{_ROOMS}Rooms._take",
        _STOP,
        _STOP.replace("_stops", "_turns"),
        "test_a_stop_request_waits_neither_for_a_slow_model_nor_for_a_turn",
    ),
    PlantedBug(
        "call that waits for its data alone",
        "labharness.work.dialogue.calls:order_of",
        "{*each.required_after} | references(each.parameters)",
        "references(each.parameters)",
        "test_calls_wait_for_what_they_need_and_for_what_their_mode_puts_before_them",
    ),
    PlantedBug(
        "call begun though its time is over",
        "labharness.faces.dialogue.calling:Calling._begin",
        "one.due_s <= one.began_s",
        "False",
        "test_what_is_overdue_is_a_timeout_and_what_is_due_after_it_is_not_begun[all]",
    ),
    PlantedBug(
        "call begun though what it waits for is nowhere",
        "labharness.faces.dialogue.calling:Calling._begin",
        "{*call.required_after} - self.found.keys()",
        "set()",
        "test_each_call_is_carried_out_once_behind_what_it_waits_for_or_has_an_error",
    ),
    PlantedBug(
        "calls that go on after an abort",
        "labharness.faces.dialogue.calling:Calling._at_client",
        "self._aborted = why",
        "",
        "test_a_tool_that_no_client_offers_is_skipped_replaced_or_ends_what_follows[ABORT]",
    ),
    PlantedBug(
        "accepted call forgotten by a kill",
        "labharness.work.dialogue.course:_next",
        "RunCalls(later, found) if later.calls else Ended()",
        "Ended()",
        "test_an_async_call_is_accepted_first_and_has_its_result_later_and_after_a_kill",
    ),
    PlantedBug(
        "call of a client's tool told to everybody",
        "labharness.faces.dialogue.rooms:DialogueRoom.run",
        "client.send",
        "self.tell",
        "test_a_tool_of_a_client_is_forwarded_to_it_alone_and_its_result_told_to_the_model",
    ),
    PlantedBug(
        "file of a context that outgrows its reader",
        "labharness.faces.dialogue.asking:Dialogue._enter",
        "self._has_room(line)",
        "True",
        "test_a_file_that_would_outgrow_its_bound_is_written_anew_and_nothing_is_lost",
    ),
    PlantedBug(
        "address of a client kept in a change",
        "labharness.faces.dialogue.asking:Dialogue.take",
        "without_address(message)",
        "message",
        "test_the_address_of_a_client_is_in_no_file_and_is_told_to_nobody",
    ),
    PlantedBug(
        "set of a model forgotten by a kill",
        "labharness.faces.dialogue.asking:Dialogue.next_step",
        "self._actions",
        "()",
        "test_a_set_that_a_model_gave_before_a_kill_is_carried_out_when_its_client_comes_back",
    ),
    PlantedBug(
        "set asked for without its prompt",
        "labharness.faces.dialogue.asking:Dialogue._carry_out",
        "prompt_of(intent, self._actions)",
        "prompt_of('ANSWER', self._actions)",
        "test_an_input_of_steps_becomes_a_set_that_is_carried_out_and_told",
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
