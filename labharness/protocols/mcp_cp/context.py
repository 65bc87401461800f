"""The context of a dialogue (chapter 8): a value, and the value after each update."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, Literal

import msgspec

from labharness.core.vocabulary.digests import digest_of
from labharness.core.vocabulary.texts import Text
from labharness.protocols.mcp_cp.codec import DEPTH_MAX, converted, decode, must, written
from labharness.protocols.mcp_cp.errors import NotMcpCp
from labharness.protocols.mcp_cp.messages import AddMessage, ClearHistory, McpMessage, UpdateState
from labharness.protocols.mcp_cp.parts import Part, Word
from labharness.protocols.mcp_cp.tools import without
from labharness.protocols.strict_json import NotJson, check_bounds
from labharness.protocols.timestamps import moment_of

MESSAGES_MAX: Final = 10_000
"""Most messages of a history."""

HISTORY_BYTES_MAX: Final = 16_777_216
"""Size (bytes) of the largest history."""

STATE_BYTES_MAX: Final = 262_144
"""Size (bytes) of the largest state."""

PATH_NAMES_MAX: Final = 32
"""Most names of a path below `state`."""

STATE_DEPTH_MAX: Final = DEPTH_MAX - 8
"""Deepest nesting of the whole state: a result of a tool that has the context can carry it."""

CHANGES_MAX: Final = 1_000
"""Most changes that are remembered, to merge what was written on an old version."""

VERSION: Final = "contextVersion"
"""The place in `metadata` of the version that a client wrote on, and of ours in a context."""

ADDRESS: Final = "ipAddress"
"""The field of a client that is kept only where the lab says so (ruling 38)."""

Operation = Literal["ADD_MESSAGE", "UPDATE_STATE", "CLEAR_HISTORY"]

Forgotten = tuple[tuple[str, str], ...]
"""Id and digest of each message that a context has forgotten."""


class UserPreferences(Part, frozen=True):
    """Language and time zone; more names are taken as they are."""

    language: str | None = None
    timezone: str | None = None


class DialogueState(Part, frozen=True, forbid_unknown_fields=True):
    """The state of a context; what the text does not name belongs below `customState`."""

    current_topic: str | None = None
    user_preferences: UserPreferences = UserPreferences()
    active_tools: tuple[Word, ...] = ()
    custom_state: dict[str, Any] = msgspec.field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Change:
    """An update that was taken; it holds no value, so that what is forgotten is in no log.

    Attributes:
        version: Of the context after it.
        timestamp: Of the update.
        operation: As the text names it.
        message_id: Of the update.
        sender_id: Of the update.
        digest: Of the update.
        path: Of the state, for UPDATE_STATE.
        cleared: Id and digest of each message that is forgotten, for CLEAR_HISTORY (ruling 39).
    """

    version: int
    timestamp: str
    operation: Operation
    message_id: str
    sender_id: str
    digest: str
    path: str = ""
    cleared: Forgotten = ()

    @property
    def order(self) -> tuple[datetime, str]:
        """The order of two changes that did not know of each other."""
        return _moment(self.timestamp), self.message_id

    def said(self, code: str) -> Text:
        """Return a sentence about it."""
        return Text(code, path=self.path, version=self.version, sender=self.sender_id)


@dataclass(frozen=True, slots=True)
class Applied:
    """The context after an update, and what became of the update.

    Attributes:
        context: The context; the same as before unless the update was taken.
        outcome: ``applied``; ``merged`` (taken, though written on an old version);
            ``superseded`` (a later change of the same place stands); ``behind`` (written on a
            version so old that its conflicts are no longer known); ``already`` (taken before).
        told: A sentence for the client that wrote on an old version, else empty.
        against: The newest change of the same place that the client had not seen.
    """

    context: "Context"
    outcome: Literal["applied", "merged", "superseded", "behind", "already"] = "applied"
    told: str = ""
    against: Change | None = None


@dataclass(frozen=True, slots=True)
class Context:
    """A context: history, state, metadata, and the changes that led to its version.

    An update that was written on the newest version is taken, whatever its sender's clock says.
    Of two updates of the same place of the state that did not know of each other the later one
    stands, and of two of one moment that with the greater `messageId` (8.3). An update that states
    no version is held against all remembered changes. The digests of messages that were cleared are
    kept by their ids apart from those changes, the newest `MESSAGES_MAX` of them.
    """

    context_id: str
    creation_time: str
    last_update_time: str
    version: int = 0
    messages: tuple[McpMessage, ...] = ()
    state: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    log: tuple[Change, ...] = ()
    cleared: Mapping[str, str] = field(default_factory=dict)
    history_bytes: int = 0
    keeps_ip_address: bool = False

    def apply(self, update: McpMessage) -> Applied:
        """Return the context after a ``CONTEXT_UPDATE``.

        Raises:
            NotMcpCp: It is not an update of this context, or does not fit into its bounds.
        """
        self._check_own(update)
        base = self._base(update)
        taken = next((each for each in self.log if each.message_id == update.message_id), None)
        if taken is not None:
            if taken.digest != digest_of(written(update)):
                raise must("$.messageId", update.message_id, Text("mcp_cp.new_id"))
            return Applied(self, "already")
        if not isinstance(update.content, AddMessage) and (told := self._behind(update, base)):
            return Applied(self, "behind", told)
        match update.content:
            case AddMessage(message):
                return self._added(message, update)
            case UpdateState(path, value):
                return self._updated(path, value, update, base)
            case ClearHistory():
                return Applied(self._cleared(update, update.content))
            case _:
                raise must("$.type", update.type, "CONTEXT_UPDATE")

    def append(self, message: McpMessage) -> Applied:
        """Return the context after a message of its dialogue.

        Raises:
            NotMcpCp: It belongs to another context, has the id of another message, or is too much.
        """
        self._check_own(message)
        return self._added(message, message)

    def shown(self) -> dict[str, Any]:
        """Return it as JSON, by the names of the text (8.1)."""
        return {
            "contextId": self.context_id,
            "creationTime": self.creation_time,
            "lastUpdateTime": self.last_update_time,
            "messages": [msgspec.to_builtins(each) for each in self.messages],
            "state": dict(self.state),
            "metadata": {**self.metadata, VERSION: self.version},
        }

    def _check_own(self, message: McpMessage) -> None:
        if message.context_id != self.context_id:
            raise must("$.contextId", message.context_id, self.context_id)

    def _base(self, update: McpMessage) -> int | None:
        """Return the version that an update was written on, if it says."""
        base = update.metadata.get(VERSION)
        if base is None:
            return None
        if type(base) is not int or not 0 <= base <= self.version:
            allowed = Text("mcp_cp.whole", least=0, most=self.version)
            raise must(f"$.metadata.{VERSION}", base, allowed)
        return base

    def _added(self, message: McpMessage, update: McpMessage) -> Applied:
        if not self.keeps_ip_address:
            message = without_address(message)
        known = next((m for m in self.messages if m.message_id == message.message_id), None)
        cleared = self.cleared.get(message.message_id)
        if known == message or cleared == digest_of(written(message)):
            return Applied(self, "already")
        if known is not None or cleared is not None:
            raise must("$.messageId", message.message_id, Text("mcp_cp.new_id"))
        size = self.history_bytes + len(written(message))
        if len(self.messages) >= MESSAGES_MAX or size > HISTORY_BYTES_MAX:
            full = Text("mcp_cp.history_full", messages=MESSAGES_MAX, bytes=HISTORY_BYTES_MAX)
            raise NotMcpCp(full)
        grown = replace(self, messages=(*self.messages, message), history_bytes=size)
        return Applied(grown._changed(update, "ADD_MESSAGE"))

    def _behind(self, update: McpMessage, base: int | None) -> str:
        """Return a sentence where changes that an update may not know are no longer remembered."""
        if not self.log or self.log[0].version == 1:
            return ""
        if base is None:
            old = (_moment(update.timestamp), update.message_id) < self.log[0].order
            return Text("mcp_cp.older", version=self.version) if old else ""
        told = Text("mcp_cp.behind", base=base, version=self.version)
        return told if self.log[0].version > base + 1 else ""

    def _updated(self, path: str, value: object, update: McpMessage, base: int | None) -> Applied:
        unseen = [
            each
            for each in self.log
            if each.operation == "UPDATE_STATE"
            and each.version > (base or 0)
            and (f"{each.path}.".startswith(f"{path}.") or f"{path}.".startswith(f"{each.path}."))
        ]
        newest = max(unseen, key=lambda each: each.order, default=None)
        if newest and (_moment(update.timestamp), update.message_id) < newest.order:
            return Applied(self, "superseded", newest.said("mcp_cp.superseded"), newest)
        after = replace(self, state=self._state(path, value))._changed(update, "UPDATE_STATE", path)
        if base in (None, self.version):
            return Applied(after)
        told = Text("mcp_cp.merged", path=path, base=base, version=after.version)
        told = newest.said("mcp_cp.replaced") if newest else told
        return Applied(after, "merged", told, newest)

    def _state(self, path: str, value: object) -> dict[str, Any]:
        names = path.split(".")
        if len(names) > PATH_NAMES_MAX:
            raise must("$.content.path", path, Text("mcp_cp.path_depth", most=PATH_NAMES_MAX))
        if names[0] not in DialogueState.__struct_encode_fields__:
            known = Text("mcp_cp.one_of", names=DialogueState.__struct_encode_fields__)
            raise must("$.content.path", path, known)
        state: dict[str, Any] = dict(self.state)
        place = state
        for name in names[:-1]:
            inner = place.get(name, {})
            if not isinstance(inner, dict):
                raise must("$.content.path", path, Text("mcp_cp.no_object", name=name))
            place[name] = place = dict(inner)
        place[names[-1]] = value
        if not self.keeps_ip_address:
            state = without(state, ADDRESS)
        converted(state, DialogueState, "$.state")
        data = written(state)
        if len(data) > STATE_BYTES_MAX:
            raise NotMcpCp(Text("mcp_cp.state_full", bytes=len(data), most=STATE_BYTES_MAX))
        try:
            check_bounds(data, STATE_BYTES_MAX, STATE_DEPTH_MAX)
        except NotJson:
            raise NotMcpCp(Text("mcp_cp.state_deep", most=STATE_DEPTH_MAX)) from None
        return state

    def _cleared(self, update: McpMessage, asked: ClearHistory) -> "Context":
        before = None if asked.filter is None else _moment(asked.filter.before_timestamp)
        gone = [before is None or _moment(each.timestamp) < before for each in self.messages]
        kept = tuple(each for each, old in zip(self.messages, gone, strict=True) if not old)
        cleared = [each for each, old in zip(self.messages, gone, strict=True) if old]
        smaller = self.history_bytes - sum(len(written(each)) for each in cleared)
        digests = tuple((each.message_id, digest_of(written(each))) for each in cleared)
        known = dict([*self.cleared.items(), *digests][-MESSAGES_MAX:])
        left = replace(self, messages=kept, history_bytes=smaller, cleared=known)
        return left._changed(update, "CLEAR_HISTORY", cleared=digests)

    def _changed(
        self, update: McpMessage, operation: Operation, path: str = "", cleared: Forgotten = ()
    ) -> "Context":
        made = Change(
            self.version + 1,
            update.timestamp,
            operation,
            update.message_id,
            update.sender.id,
            digest_of(written(update)),
            path,
            cleared,
        )
        last = max(self.last_update_time, update.timestamp, key=_moment)
        log = (*self.log, made)[-CHANGES_MAX:]
        return replace(self, version=made.version, last_update_time=last, log=log)


def opened(
    context_id: str, timestamp: str, metadata: Mapping[str, Any], *, keeps_ip_address: bool = False
) -> Context:
    """Return a new context; the address of a client is kept where the lab says so (ruling 38)."""
    kept = dict(metadata) if keeps_ip_address else without(dict(metadata), ADDRESS)
    return Context(
        context_id, timestamp, timestamp, metadata=kept, keeps_ip_address=keeps_ip_address
    )


def without_address(message: McpMessage) -> McpMessage:
    """Return a message without the address of its client."""
    if ADDRESS.encode() not in (data := written(message)):
        return message
    return decode(written(without(msgspec.json.decode(data), ADDRESS)))


def kept(context: Context) -> bytes:
    """Return a whole context as one line."""
    return written(context)


def restored(line: bytes) -> Context:
    """Return the context that a line holds.

    Raises:
        ValueError: It holds none.
    """
    body = msgspec.json.decode(line, type=dict[str, Any])
    messages = tuple(decode(written(each)) for each in body.pop("messages", ()))
    return replace(msgspec.convert(body, Context), messages=messages)


def _moment(timestamp: str) -> datetime:
    found = moment_of(timestamp)
    if found is None:
        raise must("$.timestamp", timestamp, Text("mcp_cp.moment"))
    return found
