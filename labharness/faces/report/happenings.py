"""Events for the reader of a report, made from the records of a journal."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from labharness.core.vocabulary import Command
from labharness.core.vocabulary.texts import Text
from labharness.faces.report.facts import Happening
from labharness.journal.chain import Record
from labharness.work.desk.cooling import Cooled

QUIET_ENDINGS: Final = {"confirmed", "unconfirmed"}  # the latter are counted: no read-back exists
UNSHOWN: Final = Text("command.unshown")
"""The line's detail of a command whose channel has no read-back."""


def happenings(records: Iterable[Record], origin_s: float) -> Iterator[Happening]:
    """Return the events in order; a setting by hand is told with its ending."""
    intents: dict[int, Mapping[str, Any]] = {}
    hand = ""
    by_hand: set[int] = set()
    for each in records:
        at_s, body = each.at_s - origin_s, each.body
        if each.kind == "intent":
            intents[each.seq] = body
            if _set_by(hand) == _asked(body):
                by_hand.add(each.seq)
                hand = ""
        elif each.kind == "outcome":
            quiet = body["ending"] in QUIET_ENDINGS and body["intent"] not in by_hand
            if not quiet:
                yield _ended(at_s, body, intents.get(body["intent"], {}))
        elif each.kind == "trip":
            said = Text("trip.event", cause=body["cause"], why=body["detail"])
            yield Happening(at_s, "trip", said, body["cause"])
        elif each.kind == "approved":
            who = ", ".join(body["by"])
            yield Happening(at_s, "approved", Text("pair", what=who, why=body["reason"]))
        elif each.kind == "by_hand":
            hand = str(body["text"])
            yield Happening(at_s, "by_hand", hand)
        elif each.kind == "make_safe":
            yield Happening(at_s, "make_safe", body["procedure"])
        elif each.kind == "cooling":
            yield Happening(at_s, "warning", str(body["warning"]))
        elif each.kind == "cooled":
            yield Happening(at_s, "cooled", Cooled.of(body).text)
        elif each.kind == "verified":
            yield Happening(at_s, "verified", _verified(body))
        elif each.kind in ("mode", "armed", "disarmed"):
            yield Happening(at_s, each.kind, str(body.get("mode", body.get("safe_table", ""))))
        elif each.kind == "event":
            told = list(_told(at_s, body["event_type"], body["data"]))
            # what is done by hand is told as a warning too, in the same words
            yield from (one for one in told if one.kind != "warning" or one.text != hand)


def unshown(outcomes: Iterable[Record], intents: Iterable[Record]) -> dict[str, int]:
    """Count by channel the commands that nothing could show."""
    channels = {each.seq: str(each.body["channel"]) for each in intents}
    found: dict[str, int] = {}
    for each in outcomes:
        if each.body["ending"] == "unconfirmed" and each.body["detail"] == UNSHOWN:
            channel = channels.get(each.body["intent"], "?")
            found[channel] = found.get(channel, 0) + 1
    return found


def _set_by(hand: str) -> object:
    """Return the setting that a text on an act by hand names; None where it names none."""
    what = hand.params.get("what") if isinstance(hand, Text) else None
    return what.params.get("asked") if isinstance(what, Text) else None


def _asked(intent: Mapping[str, Any]) -> Text:
    return Command(
        intent.get("channel", "?"), intent.get("value", "?"), intent.get("unit", "")
    ).text


def _ended(at_s: float, outcome: Mapping[str, Any], intent: Mapping[str, Any]) -> Happening:
    ending = str(outcome["ending"])
    shown = ending.upper() if ending not in QUIET_ENDINGS else ending
    read_back, detail = outcome.get("read_back"), outcome["detail"]
    said = Text(
        "command.ended",
        asked=_asked(intent),
        ending=shown,
        reads="" if read_back is None else Text("command.reads", value=read_back),
        detail=Text("after", parts=[detail]) if detail else "",
    )
    return Happening(at_s, "command" if ending in QUIET_ENDINGS else "unconfirmed", said)


def _verified(body: Mapping[str, Any]) -> Text:
    missed = [
        Text("pair", what=Command(row[0], row[1], "").text, why=row[3])
        for row in body["steps"]
        if row[3] != "verified"
    ]
    count = len(body["steps"])
    shown = Text("verified.count", good=count - len(missed), count=count)
    return Text("verified.steps", procedure=body["procedure"], parts=[shown, *missed])


def _told(at_s: float, kind: str, data: Mapping[str, Any]) -> Iterable[Happening]:
    if kind == "state_changed":
        what = Text(
            "session.became", before=data["from_state"], to=data["to_state"], why=data["reason"]
        )
        yield Happening(at_s, "state", what)
    elif kind in ("warning", "error", "log"):
        yield Happening(at_s, kind, str(data["message"]))
