"""Answers a person at the control socket (read, set, hold, stop, safe), behind a plan's gate.

One table of words; each takes and returns a JSON object, as the control socket carries them. A
value that is set by hand is judged by the kernel, journaled and read back like any other; the
person's name is journaled beside it. Admission (L3) is for tasks: by hand, a named person is
responsible for the command.
"""

import math
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol

from labharness.core.vocabulary import BadProgram, Cause, Command, Ending, Trip, read_program
from labharness.core.vocabulary.texts import CodedError, Text, several, words_of
from labharness.journal import JournalFailed
from labharness.line import Line, NoReply, NotArmed, Tripped
from labharness.line.hindrances import lost_states, stop_procedure
from labharness.line.instrument import channel_of
from labharness.safety.guard import PortBusy
from labharness.safety.kernel import Mode
from labharness.work.plan.set_reading import printable

TEXT_MAX = 500  # characters of a name or a reason
READS_MAX = 8  # that wait at once, for all persons together
VALUE_MAX = 1e300  # no channel is set to more; the kernel refuses NaN and infinity
FAILURES = (NotArmed, NoReply, PortBusy, Tripped, LookupError)  # of the line
SHOWN = ("temperature", "flow", "pressure", "concentration", "setpoint", "output")


class NotUnderstood(CodedError, ValueError, code="not_understood"):
    """A request that is not understood; the message says which ones are."""


class ActiveRun(Protocol):
    """Drives the line now: the desk of a task, or a person who attends it."""

    def abort(self, reason: str) -> None:
        """End what runs, in order; the line is made safe."""

    async def hold(self, reason: str) -> str:
        """Let no further command through until ``resume``; return when that begins."""

    async def resume(self, reason: str) -> None:
        """Go on after a hold."""

    def about(self) -> Mapping[str, Any]:
        """Return what runs."""


class Nobody:
    """Stands for a run on a line that has none."""

    def abort(self, reason: str) -> None:
        """Refuse: nothing runs, and no person may think that it was stopped."""
        raise NotArmed(Text("by_hand.nobody_stop"))

    async def hold(self, reason: str) -> str:
        """Refuse: nothing runs."""
        raise NotArmed(Text("by_hand.nobody"))

    async def resume(self, reason: str) -> None:
        """Refuse: nothing runs."""
        raise NotArmed(Text("by_hand.nobody"))

    def about(self) -> Mapping[str, Any]:
        """Return that nothing runs."""
        return {"session_id": None, "state": "UNOWNED", "step": ""}


class ByHand:
    """Answers requests by hand to a line.

    Args:
        line: The line.
        active: Its run, or the person who attends it.
        step_done: Takes the name of a person who has done the manual step that waits; ``None``
            where the run hears of it in another way.
    """

    def __init__(
        self, line: Line, active: ActiveRun, step_done: Callable[[str], None] | None = None
    ) -> None:
        self._line = line
        self._active = active
        self._step_done = step_done
        self._reads = 0
        self._words: dict[str, Callable[[Mapping[str, Any]], Awaitable[dict[str, Any]]]] = {
            "status": self._status,
            "read": self._read,
            "set": self._set,
            "program": self._program,
            "hold": self._hold,
            "resume": self._resume,
            "stop": self._stop,
            "safe": self._safe,
            "cooling": self._cooling,
            "confirm": self._confirm,
        }

    async def answer(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Carry out a request; return ``ok`` true and results, or false and a plain ``error``."""
        word = asked.get("do")
        work = self._words.get(word) if isinstance(word, str) else None
        try:
            if work is None:
                raise NotUnderstood("by_hand.word", word=word, words=", ".join(self._words))
            with self._line.clock.answered():
                return {"ok": True, **await work(asked)}
        except (NotUnderstood, BadProgram, *FAILURES) as why:
            return {"ok": False, "error": str(why.args[0] if why.args else why)}

    async def _status(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        trip, latched = self._line.memory.trip, self._line.guard.latch.trip
        now_s = self._line.clock.now_s()
        return {
            **self._active.about(),
            "mode": self._line.memory.mode.value,
            "trip": None if trip is None else trip.detail,
            "latched": None if latched is None else latched.detail,
            "lost": list(lost_states(self._line.memory, now_s)),
            "readings": self._readings(),
        }

    def _readings(self) -> dict[str, list[Any]]:
        """Return value, unit and age (s) of every channel that is shown; null when unknown."""
        now_s, watched = self._line.clock.now_s(), self._line.envelope.watches
        found: dict[str, list[Any]] = {}
        for name, instrument in self._line.instruments.items():
            for channel, spec in instrument.driver.channels.items():
                track = self._line.memory.tracks.get(f"{name}.{channel}")
                if track is None or not math.isfinite(track.at_s):
                    continue
                if spec.unit or channel in SHOWN or f"{name}.{channel}" in watched:
                    value = self._line.latest(f"{name}.{channel}")
                    shown = value if math.isfinite(value) else None
                    found[f"{name}.{channel}"] = [shown, spec.unit, round(now_s - track.at_s, 1)]
        return found

    async def _read(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        channel = _text(asked, "channel")
        if self._reads >= READS_MAX:
            raise PortBusy("by_hand.too_many", count=READS_MAX)
        self._reads += 1
        try:  # the line's own polls and commands come first
            value = await self._line.read(channel, patient=True)
        finally:
            self._reads -= 1
        unit = channel_of(self._line.instruments, channel)[2].unit
        return {"channel": channel, "value": value if math.isfinite(value) else None, "unit": unit}

    async def _set(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        channel, unit = _text(asked, "channel"), asked.get("unit", "")
        value = asked.get("value")
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise NotUnderstood("by_hand.no_number", value=str(value)[:40])
        if isinstance(value, int) and abs(value) > VALUE_MAX:  # of any length it passes as JSON
            raise NotUnderstood("by_hand.too_great", most=VALUE_MAX)
        if not isinstance(unit, str) or not unit.isprintable():
            raise NotUnderstood("by_hand.unit", unit=unit)
        self._line.check()
        command = Command(channel, float(value), unit)
        self._wished(asked, Text("by_hand.set", asked=command.text))
        try:
            outcome = await self._line.perform(command)
        except FAILURES as why:
            self._ended(asked, command.text, "FAILED", str(why.args[0] if why.args else why))
            raise
        self._ended(asked, command.text, _shown(outcome.ending), outcome.detail, outcome.warning)
        return {
            "channel": channel,
            "ending": outcome.ending.value,
            "read_back": outcome.read_back,
            "detail": outcome.detail,
            "warning": outcome.warning,
        }

    async def _program(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Store, start, hold or reset a program of an instrument."""
        name, act, programs = _text(asked, "instrument"), asked.get("act"), self._line.programs
        acts = {"start": programs.start, "hold": programs.hold, "reset": programs.reset}
        self._line.check()
        if act == "upload":
            program = read_program(asked.get("program"))
            count = len(program.segments)
            self._wished(asked, Text("by_hand.upload", count=count, instrument=name))
            stored = await programs.upload(name, program)
            ending, detail, more = stored.ending, stored.detail, {"written": stored.written}
        elif isinstance(act, str) and act in acts:
            self._wished(asked, Text("by_hand.program", act=act, instrument=name))
            outcome = await acts[act](name)
            ending, detail, more = outcome.ending, outcome.detail, {}
        else:
            raise NotUnderstood("by_hand.program_act", acts=", ".join(acts), act=act)
        what = Text("by_hand.of_program", instrument=name, act=str(act))
        self._ended(asked, what, _shown(ending), detail)
        return {"instrument": name, "act": act, "ending": ending.value, "detail": detail, **more}

    async def _hold(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        said = await self._active.hold(self._by_hand(asked, Text("by_hand.hold")))
        return {"said": said}

    async def _resume(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        await self._active.resume(self._by_hand(asked, Text("by_hand.resume")))
        return {"said": Text("hold.going_on")}

    async def _confirm(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Take a person's word for the one step that was named; a later one is not meant."""
        by, step = _text(asked, "by"), _text(asked, "step")
        waits = self._active.about().get("asked_step", "")
        if self._step_done is None:
            raise NotUnderstood("by_hand.confirms_there")
        self._line.check()
        if step != waits:
            raise NotUnderstood("by_hand.other_step", step=step, waits=waits or "-")
        if self._line.holding.on:
            raise NotArmed(Text("by_hand.held"))
        self._wished(asked, Text("by_hand.confirm", step=step))
        self._step_done(by)
        return {"said": step}  # not its text, which may be confidential

    async def _stop(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        text = _said(Text("by_hand.stop"), asked)
        self._active.abort(text)  # first: nothing about the words may keep a stop back
        self._line.trip_response.repeat()  # of a line that has tripped; of another nothing
        self._note(text)
        self._line.events.on_warning(text)
        trip = self._line.memory.trip
        if trip is None:
            return {"said": Text("stop.requested")}
        again = Text("stop.again", procedure=trip.procedure)
        return {"said": Text("stop.tripped", why=trip.detail, again=again)}

    async def _safe(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Run the stop procedure now: bytes first, then records and messages.

        On a line that has tripped, the procedure in force is sent and verified once more. A run
        on a line that is not armed is about to arm it: that latches too, and the run is ended.
        """
        line = self._line
        now_s = line.clock.now_s()
        procedure = stop_procedure(line.memory, line.guard.latch.trip, now_s)
        why = _said(Text("by_hand.safe"), asked)
        trip = Trip(Cause.STOP_REQUEST, procedure, "by_hand", None, now_s, why)
        line.trip_response.repeat()  # of a line that has tripped; of another nothing
        owned = not isinstance(self._active, Nobody)
        waits = owned and line.memory.mode is Mode.DISARMED
        # the persons who are called for a trip are called for this
        line.trip_response.trip(trip, disarmed=owned)
        if waits:  # no plan looks at the line yet, so none would see that it has tripped
            self._active.abort(why)
            with suppress(JournalFailed):
                line.events.on_warning(why)
        if line.memory.trip is None:  # without a run nothing trips: it is made safe alone
            verification = await line.trip_response.make_safe(procedure)
            hot = await line.trip_response.hot(procedure)
        else:
            # asked meanwhile: a run that this ends closes the line as soon as it is verified
            hot = await line.trip_response.hot(procedure)
            await line.trip_response.verified()
            verification = line.trip_response.verifications[-1]
        return {
            "hot": list(hot),
            "procedure": verification.procedure,
            "unverified": list(verification.unverified()),
            "latched": line.guard.latch.trip is not None,
            "ended": waits,
        }

    def lose_door(self, why: str) -> None:
        """Make safe a line that no person can reach any more: no other terminal can stop it.

        A line that is not armed yet latches too, and the run is ended.
        """
        line = self._line
        procedure = line.memory.envelope.procedure_of[Cause.COMMUNICATION]
        now_s = line.clock.now_s()
        waits = line.memory.mode is Mode.DISARMED
        trip = Trip(Cause.COMMUNICATION, procedure, "state_dir", None, now_s, why)
        line.trip_response.trip(trip, disarmed=True)
        if waits:
            self._active.abort(why)
        with suppress(JournalFailed):
            line.events.on_warning(why)

    async def _cooling(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Return whether it is known that nothing rises any more since the line was made safe."""
        trip_response = self._line.trip_response
        last = trip_response.verifications[-1:]
        found = [text for each in last for text in each.contradicted]
        return {"known": trip_response.cooling_known, "contradicted": found}

    def _ended(self, asked: Mapping[str, Any], what: str, ending: str, *said: str) -> None:
        """Report the ending of a request."""
        told = Text("by_hand.told", by=words_of(asked, "by"), what=what)
        detail = _after(*said)
        self._line.events.on_warning(Text("by_hand.ended", told=told, ending=ending, detail=detail))

    def _by_hand(self, asked: Mapping[str, Any], what: Text) -> Text:
        """Record and report a request with its person and reason; return it as one text."""
        text = self._wished(asked, what)
        self._line.events.on_warning(text)
        return text

    def _wished(self, asked: Mapping[str, Any], what: Text) -> Text:
        """Record a request with its person and reason, before it is done; return it as one text."""
        _text(asked, "by")
        reason = asked.get("reason") or ""
        if not isinstance(reason, str) or len(reason) > TEXT_MAX:
            raise NotUnderstood("by_hand.reason", most=TEXT_MAX)
        text = _said(what, asked)
        self._note(text)
        return text

    def _note(self, text: Text) -> None:
        with suppress(JournalFailed):  # the line trips on it; the request is still carried out
            self._line.journal.append("by_hand", {"text": text}, self._line.clock.now_s())


def _shown(ending: Ending) -> str:
    """Return the word of an ending; each that needs attention is in capitals."""
    return ending.value if ending is Ending.CONFIRMED else ending.value.upper()


def _said(what: Text, asked: Mapping[str, Any]) -> Text:
    """Return a request with its person and reason as one printable text."""
    by, reason = (printable(words_of(asked, name)[:TEXT_MAX]) for name in ("by", "reason"))
    return Text("by_hand", what=what, by=by, reason=_after(reason))


def _after(*said: str) -> str:
    """Return a text to follow after a colon; empty without one."""
    text = several(*said)
    return Text("after", parts=[text]) if text else ""


def _text(asked: Mapping[str, Any], name: str) -> str:
    value = asked.get(name)
    if not isinstance(value, str) or not value.strip() or len(value) > TEXT_MAX:
        raise NotUnderstood("by_hand.text", name=name, most=TEXT_MAX)
    if not value.isprintable():
        raise NotUnderstood("by_hand.unreadable", name=name, value=value)
    return value
