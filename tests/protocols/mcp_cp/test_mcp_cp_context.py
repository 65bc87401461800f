"""The context of a dialogue: what an update makes of it, and what its sender is told."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labharness.core.vocabulary.digests import digest_of
from labharness.core.vocabulary.texts import in_language
from labharness.protocols.mcp_cp import context as contexts
from labharness.protocols.mcp_cp.codec import decode, encode
from labharness.protocols.mcp_cp.context import Applied, Context, kept, opened, restored
from labharness.protocols.mcp_cp.errors import NotMcpCp
from labharness.protocols.mcp_cp.messages import McpMessage
from mcp_cp_samples import AT, CONTENTS, RESULT, message, written

NEW = opened("ctx_1", "2025-12-01T10:00:00Z", {"userId": "u"})


def at(second: int) -> str:
    return f"2025-12-01T12:{second // 60:02}:{second % 60:02}Z"


def update(name: str, content: dict[str, Any], second: int = 0, **more: Any) -> McpMessage:
    sender = {"id": more.pop("sender", "client_1"), "type": "USER"}
    body = {"messageId": name, "timestamp": at(second), "sender": sender}
    return decode(written({**message("CONTEXT_UPDATE", content), **body, "metadata": more}))


def state(name: str, path: str, value: object, second: int = 0, **more: Any) -> McpMessage:
    content = {"operation": "UPDATE_STATE", "path": path, "value": value}
    return update(name, content, second, **more)


def said(name: str, second: int = 0, text: str = "t", **more: Any) -> dict[str, Any]:
    own = {"messageId": name, "timestamp": at(second)}
    return message("USER_INPUT", {"text": text}, **own, **more)


def add(name: str, inner: dict[str, Any], second: int = 0, **more: Any) -> McpMessage:
    return update(name, {"operation": "ADD_MESSAGE", "message": inner}, second, **more)


def clear(name: str, before: str | None = None, second: int = 0) -> McpMessage:
    own = {} if before is None else {"filter": {"beforeTimestamp": before}}
    return update(name, {"operation": "CLEAR_HISTORY", **own}, second)


def after(*updates: McpMessage, start: Context = NEW) -> Context:
    for each in updates:
        start = start.apply(each).context
    return start


# ---- the three operations


def test_a_new_context_has_the_fields_of_the_text() -> None:
    assert NEW.shown() == {
        "contextId": "ctx_1",
        "creationTime": "2025-12-01T10:00:00Z",
        "lastUpdateTime": "2025-12-01T10:00:00Z",
        "messages": [],
        "state": {},
        "metadata": {"userId": "u", "contextVersion": 0},
    }


def test_a_message_is_appended_whole_and_the_version_grows() -> None:
    found = after(add("u1", said("m1"), 5), add("u2", said("m2"), 3))
    assert [each.message_id for each in found.messages] == ["m1", "m2"]
    assert found.version == 2
    assert found.last_update_time == at(5), "of the newest update, not of the last to arrive"
    assert found.shown()["messages"][0]["content"] == {"text": "t"}
    assert [(each.version, each.operation, each.message_id) for each in found.log] == [
        (1, "ADD_MESSAGE", "u1"),
        (2, "ADD_MESSAGE", "u2"),
    ]
    own = NEW.append(decode(written(said("m3")))).context
    assert [each.message_id for each in own.messages] == ["m3"]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("currentTopic", "weather"),
        ("userPreferences.language", "英文"),
        ("userPreferences.units", "Torr"),
        ("activeTools", ["calculator"]),
        ("customState.a.b.c", None),
        ("customState", {"n": 1}),
    ],
)
def test_a_value_of_the_state_is_set_by_its_path(path: str, value: object) -> None:
    before = after(state("u0", "customState.kept", 1))
    found = after(state("u1", path, value), start=before)
    place: Any = found.state
    for name in path.split("."):
        place = place[name]
    assert place == value
    assert before.state == {"customState": {"kept": 1}}, "the value before is not changed"
    assert path == "customState" or found.state["customState"]["kept"] == 1
    assert found.log[-1].path == path


@pytest.mark.parametrize(
    ("path", "value", "where"),
    [
        ("mood", 1, "$.content.path"),
        ("currentTopic", 5, "$.state.currentTopic"),
        ("currentTopic.deep", 5, "$.content.path"),
        ("activeTools", ["a", 5], "$.state.activeTools[1]"),
        ("userPreferences", "en", "$.state.userPreferences"),
        ("userPreferences.language", 5, "$.state.userPreferences.language"),
        (".".join(["customState", *"abcdefghijklmnopqrstuvwxyzabcdef"]), 1, "$.content.path"),
    ],
)
def test_a_state_that_the_text_does_not_have_is_refused(
    path: str, value: object, where: str
) -> None:
    with pytest.raises(NotMcpCp) as caught:
        after(state("u1", "currentTopic", "t"), state("u2", path, value))
    assert caught.value.where == where


def test_cleared_history_leaves_digests_alone_and_is_not_brought_back() -> None:
    inner = [said(f"m{n}", n, text=f"secret {n}") for n in range(4)]
    full = after(state("s", "currentTopic", "t"))
    full = after(*(add(f"u{n}", each) for n, each in enumerate(inner)), start=full)
    found = after(clear("c1", at(2)), start=full)
    assert [each.message_id for each in found.messages] == ["m2", "m3"]
    digests = [digest_of(encode(decode(written(each)))) for each in inner]
    assert found.log[-1].cleared == (("m0", digests[0]), ("m1", digests[1]))
    found = after(clear("c2"), start=found)
    assert found.messages == ()
    assert found.history_bytes == 0
    assert found.state == {"currentTopic": "t"}
    assert "secret" not in repr(found)
    again = found.apply(add("u9", inner[1]))
    assert (again.outcome, again.context) == ("already", found)


# ---- several clients


def test_what_is_written_on_the_newest_version_is_taken_whatever_the_clock_says() -> None:
    first = after(state("u1", "currentTopic", "a", 59))
    found = first.apply(state("u2", "currentTopic", "b", 1, contextVersion=1))
    assert (found.outcome, found.told) == ("applied", "")
    assert found.context.state == {"currentTopic": "b"}


def test_what_touches_another_place_is_merged_and_its_sender_is_told() -> None:
    first = after(state("u1", "userPreferences.language", "en", 9, sender="ann"))
    found = first.apply(state("u2", "userPreferences.timezone", "UTC", 1, contextVersion=0))
    assert found.outcome == "merged"
    assert found.context.version == 2
    assert found.context.state == {"userPreferences": {"language": "en", "timezone": "UTC"}}
    assert "version 0" in found.told
    assert "version 2" in found.told
    assert in_language(found.told, "zh") != found.told


@pytest.mark.parametrize(
    ("theirs", "mine"),
    [
        ("customState.a", "customState.a"),
        ("customState.a", "customState.a.b"),
        ("customState.a.b", "customState.a"),
    ],
)
def test_of_two_changes_of_one_place_the_later_stands_and_the_other_is_told(
    theirs: str, mine: str
) -> None:
    first = after(state("u1", theirs, {}, 10, sender="ann"))
    old = first.apply(state("u2", mine, {"n": 1}, 9, contextVersion=0))
    assert (old.outcome, old.context) == ("superseded", first)
    assert old.against == first.log[0]
    assert "ann" in old.told
    assert "version 1" in old.told
    new = first.apply(state("u3", mine, {"n": 1}, 11, contextVersion=0))
    assert (new.outcome, new.against) == ("merged", first.log[0])
    assert "ann" in new.told
    assert new.context.version == 2


def test_a_name_that_only_begins_alike_is_another_place() -> None:
    first = after(state("u1", "customState.ab", 1, 10))
    assert first.apply(state("u2", "customState.a", 1, 9)).outcome == "applied"


values = st.lists(
    st.tuples(st.integers(0, 50), st.integers(0, 9)), min_size=1, max_size=6, unique=True
)


@settings(max_examples=40)
@given(values, st.randoms(use_true_random=False))
def test_clients_that_do_not_know_of_each_other_end_alike_in_any_order(
    drawn: list[tuple[int, int]], chance: Any
) -> None:
    updates = [state(f"u{n}", "currentTopic", f"t{n}", s) for n, (s, _) in enumerate(drawn)]
    mixed = updates[:]
    chance.shuffle(mixed)
    newest = max(updates, key=lambda each: (each.timestamp, each.message_id))
    assert after(*updates).state == after(*mixed).state == {"currentTopic": newest.content.value}


def test_a_client_that_is_too_far_behind_is_told_to_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(contexts, "CHANGES_MAX", 3)
    found = after(*(state(f"u{n}", "currentTopic", str(n), n) for n in range(5)))
    assert [each.version for each in found.log] == [3, 4, 5]
    late = found.apply(state("u9", "activeTools", [], 59, contextVersion=1))
    assert (late.outcome, late.context) == ("behind", found)
    assert "version 5" in late.told
    assert found.apply(state("u9", "activeTools", [], 59, contextVersion=2)).outcome == "merged"


def test_what_was_forgotten_does_not_return_when_the_log_is_cut(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(contexts, "CHANGES_MAX", 3)
    start = after(state("a", "currentTopic", "new", 9), add("u1", said("m1")), clear("c", None, 9))
    found = after(*(state(f"s{n}", "activeTools", [], 10 + n) for n in range(5)), start=start)
    again = found.apply(add("u9", said("m1"), 59))
    assert (again.outcome, again.context) == ("already", found)
    with pytest.raises(NotMcpCp):
        found.apply(add("u9", said("m1", text="other"), 59))
    for old in (state("b", "currentTopic", "old", 1), clear("c", None, 9)):
        late = found.apply(old)
        assert (late.outcome, late.context) == ("behind", found)
        assert "version 8" in late.told
    assert found.apply(state("b", "currentTopic", "newer", 50)).outcome == "applied"


def test_the_id_of_an_update_is_not_taken_by_another() -> None:
    first = after(state("u1", "currentTopic", "a"), add("u2", said("m1")))
    for other in (state("u1", "currentTopic", "b"), state("u2", "currentTopic", "a")):
        with pytest.raises(NotMcpCp, match="no other message"):
            first.apply(other)


def test_a_state_is_no_deeper_than_a_message_can_carry() -> None:
    def deep(levels: int) -> object:
        return [deep(levels - 1)] if levels else 1

    path = ".".join(["customState", *"abcdefghij"])
    most = contexts.STATE_DEPTH_MAX - 11
    found = after(state("u1", path, deep(most))).shown()
    result = {**RESULT, "result": found}
    decode(written(message("TOOL_CALL_RESPONSE", {"results": [result]})))
    with pytest.raises(NotMcpCp, match="more than 56 deep"):
        after(state("u1", path, deep(most + 1)))


@pytest.mark.parametrize("version", [-1, 2, "1", True, 1.5, []])
def test_a_version_that_there_has_not_been_is_refused(version: object) -> None:
    first = after(state("u1", "currentTopic", "a"))
    with pytest.raises(NotMcpCp) as caught:
        first.apply(state("u2", "currentTopic", "b", contextVersion=version))
    assert caught.value.where == "$.metadata.contextVersion"
    assert "from 0 to 1" in str(caught.value)


def test_an_update_that_is_sent_again_changes_nothing() -> None:
    every = [state("u1", "currentTopic", "a"), add("u2", said("m1")), clear("u3", at(0))]
    found = after(*every)
    for each in every:
        assert found.apply(each) == Applied(found, "already")
    assert found.apply(add("u4", said("m1"))).outcome == "already"


# ---- what does not belong, and bounds


def test_what_is_of_another_context_or_has_anothers_id_is_refused() -> None:
    first = after(add("u1", said("m1")))
    for wrong, where in (
        (add("u2", said("m1", text="other")), "$.messageId"),
        (replace_context(state("u2", "currentTopic", "a")), "$.contextId"),
        (decode(written(said("m2"))), "$.type"),
    ):
        with pytest.raises(NotMcpCp) as caught:
            first.apply(wrong)
        assert caught.value.where == where


def replace_context(made: McpMessage) -> McpMessage:
    return decode(encode(made).replace(b'"ctx_1"', b'"ctx_2"'))


def test_history_and_state_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    first = after(add("u1", said("m1")))
    monkeypatch.setattr(contexts, "HISTORY_BYTES_MAX", first.history_bytes * 2)
    second = after(add("u2", said("m2")), start=first)
    with pytest.raises(NotMcpCp, match="history is full"):
        second.apply(add("u3", said("m3")))
    assert after(clear("c"), add("u3", said("m3")), start=second).messages
    monkeypatch.setattr(contexts, "MESSAGES_MAX", 1)
    with pytest.raises(NotMcpCp, match="at most 1 messages"):
        first.apply(add("u4", said("m4")))
    big = state("u5", "customState.x", "x" * 200_000)
    assert after(big)
    with pytest.raises(NotMcpCp, match="at most 262144"):
        after(big, state("u6", "customState.y", "y" * 70_000))


def test_an_address_is_kept_only_where_the_lab_says_so() -> None:
    client = {"device": "d", "ipAddress": "192.168.1.1"}
    own = {"clientInfo": client}
    for keeps in (False, True):
        found = opened("ctx_1", AT, own, keeps_ip_address=keeps)
        found = after(add("u1", said("m1", metadata=own)), start=found)
        assert ("192.168" in json.dumps(found.shown())) is keeps
        assert ("192.168" in repr(found)) is keeps
        assert found.metadata["clientInfo"]["device"] == "d"


def test_an_address_is_kept_nowhere_in_history_and_state() -> None:
    own = {"ipAddress": "192.168.1.1", "more": [{"ipAddress": "192.168.1.1"}]}
    result = {**RESULT, "clientInfo": {"browser": "b", **own}, "result": own}
    capable = {**CONTENTS["CLIENT_CAPABILITIES"], **own, "clientInfo": own}
    for keeps in (False, True):
        found = opened("ctx_1", AT, own, keeps_ip_address=keeps)
        found = after(
            add("u1", message("TOOL_CALL_RESPONSE", {"results": [result]}, messageId="m1")),
            add("u2", message("CLIENT_CAPABILITIES", capable, messageId="m2", metadata=own)),
            state("u3", "customState.client", own),
            start=found,
        )
        for each in (found.metadata, *found.messages, found.state):
            assert ("192.168" in repr(each)) is keeps
        assert found.messages[0].content.results[0].client_info.browser == "b"
        assert found.append(found.messages[1]).outcome == "already"


def drawn_update(
    kind: str, number: int, second: int, path: str, value: object, more: dict[str, Any]
) -> McpMessage:
    name = f"{kind}{number}"
    if kind == "add":
        return add(name, said(f"m{number}", second), second, **more)
    return state(name, path, value, second, **more) if kind == "state" else clear(name, at(second))


steps = st.lists(
    st.tuples(
        st.sampled_from(["add", "state", "clear"]),
        st.integers(0, 5),
        st.integers(0, 59),
        st.none() | st.integers(0, 6),
        st.sampled_from(["currentTopic", "customState.a", "customState.a.b", "customState", "x"]),
        st.sampled_from([1, "t", {}, {"b": {"c": 1}}, None, [1]]),
    ),
    max_size=12,
)


@settings(max_examples=60)
@given(steps)
def test_whatever_clients_send_versions_grow_by_one_and_bytes_are_counted(drawn: Any) -> None:
    found = replace(NEW)
    for kind, number, second, base, path, value in drawn:
        more = {} if base is None else {"contextVersion": base}
        made = drawn_update(kind, number, second, path, value, more)
        try:
            result = found.apply(made)
        except NotMcpCp:
            continue
        grown = result.outcome in ("applied", "merged")
        assert result.context.version == found.version + grown
        assert (result.context == found) is not grown
        assert bool(result.told) is (result.outcome in ("merged", "superseded", "behind"))
        found = result.context
        assert found.history_bytes == sum(len(encode(each)) for each in found.messages)
        assert [each.version for each in found.log] == [*range(1, found.version + 1)]
        json.dumps(found.shown())
        assert restored(kept(found)) == found
