"""Reads the facts of a run from its folder; no other file of the report opens files.

A confidential run is read as its key shows it: events and answer say what those of an open run say.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from labharness.core.vocabulary import Command
from labharness.core.vocabulary.channels import owner_of
from labharness.core.vocabulary.digests import digest_of
from labharness.core.vocabulary.texts import Text
from labharness.faces.report.facts import (
    QUIET,
    ArtifactState,
    Happening,
    Phase,
    Points,
    RecordedForecast,
    RecordedPrediction,
    RunFacts,
    StepRow,
    as_mapping,
    took_s,
)
from labharness.journal import JournalFailed
from labharness.journal.artifacts import ArtifactRefused, resolve
from labharness.journal.chain import Record
from labharness.journal.encryption import KeyMissing, kept, stated_class
from labharness.journal.reading import about, read, run_header, samples, verify_file
from labharness.work.desk.folder import ANSWER_NAME, ARTIFACTS_NAME, SUBMIT_NAME
from labharness.work.desk.making_safe import Cooled
from labharness.work.desk.redaction import FAILURE, REMARKS, RESULTS
from labharness.work.desk.rules_record import RecordedRules, read_rules
from labharness.work.desk.session import WHOLE

PARTS = ("outputs", "partial_outputs")


def whole_events(records: Iterable[Record]) -> list[Record]:
    """Return records whose events say all that was kept of them; of an open run as they are."""
    found = list(records)
    told = {each.body["sequence"]: each.body["data"] for each in found if each.kind == WHOLE}
    return [
        replace(each, body={**each.body, "data": told[each.body["sequence"]]})
        if each.kind == "event" and each.body.get("sequence") in told
        else each
        for each in found
        if each.kind != WHOLE
    ]


def whole_answer(
    answer: Mapping[str, Any], content: Callable[[str], bytes | None]
) -> Mapping[str, Any]:
    """Return the payload of a confidential answer with what its artifacts hold.

    Args:
        answer: The payload.
        content: Returns the content of an address; ``None`` where it cannot be read.
    """
    held = {name: _json(answer, name, content) for name in (RESULTS, REMARKS, FAILURE)}
    whole = {name: each for name, each in answer.items() if name not in PARTS}
    for name in PARTS:
        if name in answer:
            whole[name] = {**answer[name], **held[RESULTS]}
    if "execution_summary" in answer:
        whole["execution_summary"] = {**answer["execution_summary"], **held[REMARKS]}
    return {**whole, **held[FAILURE]}


def _json(
    answer: Mapping[str, Any], name: str, content: Callable[[str], bytes | None]
) -> Mapping[str, Any]:
    """Return what an artifact of an answer holds; nothing where it has none that can be read."""
    uris = [each["uri"] for each in answer.get("artifacts", ()) if each["name"] == name]
    data = content(uris[0]) if uris else None
    try:
        return as_mapping(json.loads(data or b"{}"))
    except ValueError:
        return {}


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
            quiet = body["ending"] in QUIET and body["intent"] not in by_hand
            if not quiet:
                yield _sentence_of_end(at_s, body, intents.get(body["intent"], {}))
        elif each.kind == "trip":
            said = Text("trip.event", cause=body["cause"], why=body["detail"])
            yield Happening(at_s, "trip", said, body["cause"])
        elif each.kind == "event":
            told = _told(body["event_type"], body["data"])
            # what is done by hand is told as a warning too, in the same words
            if told is not None and told != ("warning", hand):
                yield Happening(at_s, *told)
        elif each.kind in SAID:
            text = SAID[each.kind](body)
            hand = text if each.kind == "by_hand" else hand
            yield Happening(at_s, "warning" if each.kind == "cooling" else each.kind, text)


def unshown(outcomes: Iterable[Record], intents: Iterable[Record]) -> dict[str, int]:
    """Count by channel the commands that nothing could show."""
    channels = {each.seq: str(each.body["channel"]) for each in intents}
    return Counter(
        channels.get(each.body["intent"], "?")
        for each in outcomes
        if each.body["ending"] == "unconfirmed" and each.body["detail"] == UNSHOWN
    )


def _set_by(hand: str) -> object:
    """Return the setting that a text on an act by hand names; None where it names none."""
    what = hand.params.get("what") if isinstance(hand, Text) else None
    return what.params.get("asked") if isinstance(what, Text) else None


def _asked(intent: Mapping[str, Any]) -> Text:
    return Command(
        intent.get("channel", "?"), intent.get("value", "?"), intent.get("unit", "")
    ).text


def _sentence_of_end(
    at_s: float, outcome: Mapping[str, Any], intent: Mapping[str, Any]
) -> Happening:
    ending = str(outcome["ending"])
    shown = ending.upper() if ending not in QUIET else ending
    read_back, detail = outcome.get("read_back"), outcome["detail"]
    said = Text(
        "command.ended",
        asked=_asked(intent),
        ending=shown,
        reads="" if read_back is None else Text("command.reads", value=read_back),
        detail=Text("after", parts=[detail]) if detail else "",
    )
    return Happening(at_s, "command" if ending in QUIET else "unconfirmed", said)


def _verified(body: Mapping[str, Any]) -> Text:
    missed = [
        Text("pair", what=Command(row[0], row[1], "").text, why=row[3])
        for row in body["steps"]
        if row[3] != "verified"
    ]
    count = len(body["steps"])
    shown = Text("verified.count", good=count - len(missed), count=count)
    return Text("verified.steps", procedure=body["procedure"], parts=[shown, *missed])


def _told(kind: str, data: Mapping[str, Any]) -> tuple[str, str] | None:
    if kind == "state_changed":
        before, to, why = data["from_state"], data["to_state"], data["reason"]
        return "state", Text("session.became", before=before, to=to, why=why)
    return (kind, str(data["message"])) if kind in ("warning", "error", "log") else None


def _of_mode(body: Mapping[str, Any]) -> str:
    return str(body.get("mode", body.get("safe_table", "")))


SAID: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "approved": lambda body: Text("pair", what=", ".join(body["by"]), why=body["reason"]),
    "by_hand": lambda body: str(body["text"]),
    "make_safe": lambda body: body["procedure"],
    "cooling": lambda body: str(body["warning"]),
    "cooled": lambda body: Cooled.of(body).text,
    "verified": _verified,
    **dict.fromkeys(("mode", "armed", "disarmed"), _of_mode),
}
"""The text of a record that is told as it is, by the kind of the record."""

SPECTRA: Final = "raw_spectrum"
ANSWERS: Final = ("task_completed", "task_failed", "task_rejected")
ENDINGS: Final = {**dict(zip(ANSWERS, ANSWERS, strict=True)), "event": "aborted"}
ENDED: Final = {"COMPLETED", "FAILED", "TIMEOUT"}


def read_run(journal: Path) -> RunFacts:
    """Read one run; of a damaged journal the records before the first bad one.

    Args:
        journal: Its journal; ``answer.json``, ``submit.json`` and ``artifacts/`` lie beside it.

    Raises:
        JournalFailed: The journal cannot be opened or read.
    """
    folder = journal.parent
    chain = verify_file(journal)
    records = whole_events(each for each in read(journal, chain.head.seq) if each.kind != "samples")
    origin_s = records[0].at_s if records else 0.0
    kinds = _by_kind(records)
    plan = _first(kinds["planned"])
    rules = read_rules(plan.get("rules", {}))
    asked, ending, answer, chained = _asked_and_answered(folder, kinds)
    artifacts = folder / ARTIFACTS_NAME
    if stated_class(folder):
        answer = whole_answer(answer, lambda uri: _bytes(uri, artifacts))
    held = tuple(_kept(row, artifacts) for row in answer.get("artifacts", ()))
    steps = _steps(plan, kinds["step"], origin_s)
    end_s = records[-1].at_s - origin_s if records else 0.0
    plan_s = min((each.start_s for each in steps if each.start_s is not None), default=0.0)
    header = run_header(journal)
    return RunFacts(
        header=header,
        about=about(journal),
        asked=asked,
        plan=plan,
        approval=_first(kinds["approved"]),
        accepted=_first(kinds["task_accepted"]),
        by_hand=str(header.get("by_hand", "")),
        ending=ending,
        state=_state(kinds["event"]),
        answer=answer,
        answer_chained=chained,
        chain=chain,
        rules=rules,
        traces=_traces(samples(journal, chain.head.seq), kinds["stream"], rules, origin_s),
        prediction=_prediction(_first(kinds["prediction"]), plan_s),
        phases=_phases(steps, end_s),
        steps=steps,
        happenings=tuple(happenings(records, origin_s)),
        commands=dict(sorted(Counter(each.body["ending"] for each in kinds["outcome"]).items())),
        unshown=unshown(kinds["outcome"], kinds["intent"]),
        instruments=tuple(each.body for each in kinds["identified"]),
        artifacts=held,
        spectra=_spectra(held, artifacts),
        duration_s=end_s,
    )


def read_summary(journal: Path) -> dict[str, Any]:
    """Return the entry of one run in a list: header, request, ending, last state and duration.

    Of a damaged journal the records before the first bad one count, and ``damage`` says why. Only
    one that cannot be read is checked here: a check takes longer than the list.

    Raises:
        JournalFailed: The journal cannot be opened.
    """
    try:
        return {**_summary(journal, None), "damage": ""}
    except JournalFailed:
        chain = verify_file(journal)
        return {**_summary(journal, chain.head.seq), "damage": chain.reason}


def _summary(journal: Path, until_seq: int | None) -> dict[str, Any]:
    wanted = ("submitted", "terminal", "event", "by_hand", "outcome")
    times_s = [0.0, 0.0]
    found: dict[str, list[Record]] = {kind: [] for kind in wanted}
    for number, each in enumerate(read(journal, until_seq)):
        times_s = [times_s[0] if number else each.at_s, each.at_s]
        if each.kind in found:
            found[each.kind].append(each)
    asked, ending, answer, _ = _asked_and_answered(journal.parent, found)
    return {
        "header": run_header(journal),
        "asked": asked,
        "ending": ending,
        "state": _state(found["event"]),
        "by_hand": [str(each.body["text"]) for each in found["by_hand"]],
        "refused": sum(each.body["ending"] == "refused" for each in found["outcome"]),
        "answer": answer,
        "duration_s": took_s(answer, times_s[1] - times_s[0]),
    }


def _state(events: Sequence[Record]) -> str:
    """Return the last state of the session; empty where no event states it."""
    changes = [each.body["data"] for each in events if each.body["event_type"] == "state_changed"]
    return str(changes[-1]["to_state"]) if changes else ""


def _by_kind(records: Iterable[Record]) -> dict[str, list[Record]]:
    kinds: dict[str, list[Record]] = defaultdict(list)
    for each in records:
        kinds[each.kind].append(each)
    return kinds


def _first(records: Sequence[Record]) -> Mapping[str, Any]:
    return records[0].body if records else {}


def _asked_and_answered(
    folder: Path, kinds: Mapping[str, Sequence[Record]]
) -> tuple[Mapping[str, Any], str, Mapping[str, Any], bool]:
    """Return request, ending and answer, and whether the journal has the answer.

    A run that lost its journal, or never began, has both beside it.
    """
    submitted = _first(kinds["submitted"]) or _message(folder / SUBMIT_NAME)
    ending, answer = _ended(_first(kinds["terminal"][-1:]))
    chained = bool(answer)
    if not chained:
        ending, answer = _ended(_message(folder / ANSWER_NAME))
    return submitted.get("payload", {}), ending, answer, chained


def _ended(message: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    ending = ENDINGS.get(message.get("type", ""))
    return ("none", {}) if ending is None else (ending, message["payload"])


def _message(path: Path) -> Mapping[str, Any]:
    try:
        found = json.loads(kept(path))
    except (OSError, ValueError, KeyMissing):
        return {}
    return found if isinstance(found, dict) and isinstance(found.get("payload"), dict) else {}


def _kept(row: Mapping[str, Any], folder: Path) -> ArtifactState:
    data = _bytes(row["uri"], folder)
    holds = data is not None and row["checksum"] == digest_of(data)
    return ArtifactState(row["name"], row["uri"], row["size_bytes"], row["checksum"], holds)


def _bytes(uri: str, folder: Path) -> bytes | None:
    try:
        return kept(resolve(uri, [folder]))
    except (ArtifactRefused, KeyMissing, OSError):
        return None


def _spectra(held: Sequence[ArtifactState], folder: Path) -> Mapping[str, Any]:
    for each in held:
        if each.name == SPECTRA and each.holds:
            return as_mapping(json.loads(_bytes(each.uri, folder) or b"{}"))
    return {}


def _traces(
    sampled: Iterable[tuple[str, float, tuple[float, ...]]],
    streams: Iterable[Record],
    rules: RecordedRules,
    origin_s: float,
) -> dict[str, Points]:
    wanted = {channel for channel, unit in rules.units.items() if unit}
    charted = {bar.channel for bar in rules.bars if bar.unit in rules.units.values()}
    wanted |= {shows for channel, shows in rules.setpoints.items() if channel in charted}
    columns: dict[str, list[tuple[int, str]]] = {}
    for each in streams:
        instrument = owner_of(each.body["name"])
        names = [f"{instrument}.{column}" for column in each.body["columns"]]
        columns[each.body["name"]] = [(at, name) for at, name in enumerate(names) if name in wanted]
    traces: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for stream, at_s, values in sampled:
        for at, name in columns[stream]:
            traces[name].append((at_s - origin_s, values[at]))
    # Blocks lie by minute and stream; a channel that two streams read is put in order of time.
    return {name: tuple(sorted(traces[name])) for name in sorted(traces)}


def _prediction(record: Mapping[str, Any], plan_s: float) -> RecordedPrediction | None:
    """Read the optional ``prediction`` record, whose times count from the plan's first step."""
    if not record:
        return None
    channels = {}
    for name, pairs in record["trajectory"].items():
        relative, absolute = record["bands"].get(record["units"].get(name), (0.0, 0.0))
        points = tuple((plan_s + at_s, value) for at_s, value in pairs)
        wide = [(at, value, abs(value) * relative + absolute) for at, value in points]
        low = tuple((at, value - width) for at, value, width in wide)
        high = tuple((at, value + width) for at, value, width in wide)
        channels[name] = RecordedForecast(points, low, high)
    steps = record["steps"]
    return RecordedPrediction(
        channels=channels,
        duration_s=record["duration_s"],
        took_s={each["instruction"]: each["ended_s"] - each["started_s"] for each in steps},
        if_killed={each["instruction"]: tuple(each["if_killed"]) for each in steps},
        stays={each["instruction"]: each["stays"] for each in steps if "stays" in each},
        hardware=tuple(record.get("hardware", ())),
        gas_used_cm3=record["gas_used_cm3"],
    )


def _steps(
    plan: Mapping[str, Any], happened: Iterable[Record], origin_s: float
) -> tuple[StepRow, ...]:
    began: dict[str, float] = {}
    ended: dict[str, float] = {}
    status: dict[str, str] = {}
    for each in happened:
        name = each.body["instruction"]
        status[name] = each.body["status"]
        if status[name] in ENDED:
            ended[name] = each.at_s - origin_s
        elif status[name] != "SKIPPED":  # which has neither begun nor ended
            began.setdefault(name, each.at_s - origin_s)
    return tuple(
        StepRow(
            name=(name := one["instructionId"]),
            phase=one["metadata"]["stage"],
            description=one["metadata"]["description"],
            status=status.get(name, "PENDING"),
            start_s=began.get(name),
            end_s=ended.get(name),
        )
        for one in plan.get("instructions", {}).get("instructions", ())
    )


def _phases(steps: Iterable[StepRow], end_s: float) -> tuple[Phase, ...]:
    phases: list[Phase] = []
    for step in steps:
        if step.start_s is None:
            continue
        last_s = end_s if step.end_s is None else step.end_s
        if phases and phases[-1].name == step.phase:
            phases[-1] = Phase(step.phase, phases[-1].start_s, max(phases[-1].end_s, last_s))
        else:
            phases.append(Phase(step.phase, step.start_s, last_s))
    return tuple(phases)
