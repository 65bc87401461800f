"""Faults that hide other things from the line, and when each ends."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from labharness.chaos.rules import POLL_S, PURGED_O2, RELIEVED, REPEATS_S, TRIP_S, Truth
from labharness.chaos.scenario import Fault

__all__ = [
    "AFTER_S",
    "ARGON_S",
    "FILLING_S",
    "FOR_EVER",
    "FULL_POWER_S",
    "GARBAGE_S",
    "LIES",
    "SHUTS_INERT",
    "STUCK_HEAT_S",
    "Masking",
]

READS_HIGH = "gauge reads high"
# a gauge that lies can also trigger the relief of the tube
SHUTS_INERT = frozenset({RELIEVED, READS_HIGH})
FOR_EVER = math.inf

# Longest time of the plausibility row against each lie: its found_s in the envelope, and one poll.
# A thermocouple that is stuck while cold is found after two windows of the row at full power; the
# ramps take up to 6 min to reach full power.
FULL_POWER_S = 360.0
STUCK_HEAT_S = FULL_POWER_S + 240.0 + POLL_S
GARBAGE_S = 10.0 + POLL_S
FILLING_S = 20.0 + POLL_S
ARGON_S = 20.0 + POLL_S

# By sensor and lie: the word, and how long it blinds. Missing pairs do not blind: a lost signal is
# seen at once, and a lying flow meter does no harm while its valve is sound.
LIES: Mapping[tuple[str, str], tuple[tuple[str, float], ...]] = {
    **{
        (heater, f"sensor_{how}"): ((heater, for_s),)
        for heater in ("furnace", "sulfur")
        for how, for_s in (
            ("stuck", STUCK_HEAT_S),
            ("garbage", GARBAGE_S),
            ("wrong", FOR_EVER),  # one thermocouple per heater: no other sensor contradicts it
            ("slow", FOR_EVER),
            ("delayed", FOR_EVER),
        )
    },
    **{
        ("gauge", f"sensor_{how}"): (("gauge", FOR_EVER), ("pressure unseen", for_s))
        for how, for_s in (
            ("off", FILLING_S),
            ("stuck", FILLING_S),
            ("intermittent", FILLING_S),
            ("slow", FOR_EVER),
            ("delayed", FOR_EVER),
        )
    },
    # a gauge that reads too high shuts off every gas, also the inert one, and no sensor contradicts
    # it
    **{
        ("gauge", f"sensor_{how}"): (
            ("gauge", FOR_EVER),
            ("pressure unseen", FOR_EVER),
            (READS_HIGH, FOR_EVER),
        )
        for how in ("wrong", "garbage")
    },
    ("h2_detector", "sensor_garbage"): (("h2_detector", GARBAGE_S),),
    **{
        ("h2_detector", f"sensor_{how}"): (("h2_detector", FOR_EVER),)
        for how in ("off", "stuck", "wrong", "slow", "delayed", "intermittent")
    },
}

# Times by which a word outlasts its fault; then the clocks of its rules begin. Actions that were
# decided on a lie are finished, and repeated, within ACTED_S. A person shuts a tube that was opened
# on a lie within OPENED_S. Argon that returns, or its meter, has the row's own time.
ACTED_S = TRIP_S + REPEATS_S
OPENED_S = 180.0 + TRIP_S
SWEPT_S = 3600.0  # 80 sccm of argon thin 5 % of oxygen in 2 L to 1 % within 40 min
AFTER_S: Mapping[str, float] = {
    "furnace": OPENED_S,
    "sulfur": OPENED_S,
    "gauge": ACTED_S,
    "pressure unseen": ACTED_S,
    READS_HIGH: ACTED_S,  # the relieved gases stay off: ``RELIEVED`` follows it
    "vacuum": ACTED_S,
    "vent stuck": ACTED_S,
    "no power": ACTED_S,
    "argon": ARGON_S,
    "h2_detector": 0.0,  # it reads the room's air again at once, and no lasting decision was made
    "exhaust_lost": 0.0,  # not a lie: the line sees it
    "leak": SWEPT_S,
    "leak to be checked": SWEPT_S,
    "laser cut": FOR_EVER,  # a frame that was not answered is not repeated for ever
}
# Conditions that end a word earlier, once its fault is over.
HEALED: Mapping[str, Callable[[Truth], bool]] = {
    **dict.fromkeys(
        ("leak", "leak to be checked"), lambda truth: bool(truth["o2_fraction"] <= PURGED_O2)
    ),
    "laser cut": lambda truth: not truth["laser_on"],
}


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two faults, of which one hides the other.

    Attributes:
        word: Their mask of the line, as a word.
        both: The two faults.
        mended_by: Faults whose end also ends the word.
        stage: Stage in which it applies; ``""`` for any.
    """

    word: str
    both: frozenset[str]
    mended_by: frozenset[str]
    stage: str = ""


_ARGON = frozenset({"argon", "argon valve"})
_OUTLET = frozenset({"gauge", "outlet"})
PAIRS = (
    _Pair("argon", _ARGON, _ARGON),
    _Pair("pressure unseen", _OUTLET, _OUTLET),
    # a leak check passed on a lie stays passed: the line cannot see the leak while it is open
    _Pair("leak", frozenset({"gauge", "air leak"}), frozenset({"air leak"}), "leak_check"),
)

_BY_KIND: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("contact_stuck", "vent"): ("vent stuck",),
    ("bus_cut", "vacuum"): ("vacuum",),
    ("bus_cut", "laser"): ("laser cut",),
    ("writes_refused", "laser"): ("laser cut",),
    ("exhaust_lost", ""): ("exhaust_lost",),
    ("power_dip", ""): ("no power", "vent stuck", "vacuum"),
}


class Masking:
    """The words in force, and their ends.

    Args:
        words: The words in force; updated here and read by the rules.
    """

    def __init__(self, words: set[str]) -> None:
        self.words = words
        self._until_s: dict[str, float] = {}
        self._over: set[str] = set()
        self._broken: list[tuple[Fault, tuple[tuple[str, float], ...]]] = []
        self._stage = ""
        self._leak_checked = False

    def growth_begins(self) -> None:
        """Forget the stages of the previous growth."""
        self._stage, self._leak_checked = "", False

    def stage_begins(self, stage: str, now_s: float) -> None:
        """Follow the growth: from the purge on, no measurement shows whether the tube is tight."""
        self._stage = stage
        self._leak_checked = self._leak_checked or stage == "purge"
        self._pair(now_s)

    def begins(self, fault: Fault, now_s: float) -> None:
        """Add the words of a fault."""
        words = _words_of(fault, leak_checked=self._leak_checked)
        self._broken.append((fault, words))
        for word, for_s in words:
            self._blind(word, now_s + for_s)
        self._pair(now_s)

    def ends(self, fault: Fault, now_s: float) -> None:
        """Set the end of a fault's words: they outlast it by ``AFTER_S``."""
        gone = next((each for each in self._broken if each[0] == fault), None)
        if gone is None:
            return  # all was mended before
        self._broken.remove(gone)
        ended = {word for word, _ in gone[1]}
        ended |= {each.word for each in PAIRS if _failed(fault) in each.mended_by}
        for word in sorted(ended & self.words):
            rest = [for_s for _, words in self._broken for each, for_s in words if each == word]
            until_s = now_s + max(AFTER_S[word], *rest) if rest else now_s + AFTER_S[word]
            self._until_s[word] = min(until_s, self._until_s.get(word, until_s))
            if not rest:
                self._over.add(word)

    def seeing(self, truth: Truth, now_s: float) -> list[str]:
        """Return the words whose time is over."""
        healed = {word for word in self._over if word in HEALED and HEALED[word](truth)}
        return [
            word for word, until_s in self._until_s.items() if until_s <= now_s or word in healed
        ]

    def sees(self, word: str) -> None:
        """Remove a word: the line can see again."""
        self.words.discard(word)
        self._until_s.pop(word, None)
        self._over.discard(word)
        if word == READS_HIGH:
            self.words.add(RELIEVED)  # until inert gas flows

    def mended(self) -> None:
        """Remove all words: every fault was mended, and a person has checked it."""
        shut = self.words & SHUTS_INERT
        self.words.clear()
        self._until_s.clear()
        self._over.clear()
        self._broken.clear()
        if shut:
            self.words.add(RELIEVED)  # a reset does not let inert gas in; the next arming does

    def _pair(self, now_s: float) -> None:
        failed = {_failed(fault) for fault, _ in self._broken}
        for pair in PAIRS:
            if pair.both <= failed and pair.stage in ("", self._stage):
                self._blind(pair.word, now_s + FOR_EVER)

    def _blind(self, word: str, until_s: float) -> None:
        self.words.add(word)
        self._over.discard(word)
        self._until_s[word] = max(until_s, self._until_s.get(word, until_s))


def _words_of(fault: Fault, *, leak_checked: bool) -> tuple[tuple[str, float], ...]:
    if fault.kind.startswith("sensor_"):
        return LIES.get((fault.target, fault.kind), ())
    if fault.kind == "air_leak":  # no instrument of this line measures oxygen
        return (("leak" if leak_checked else "leak to be checked", FOR_EVER),)
    if (fault.kind, fault.target) == ("contact_stuck", "argon_valve"):
        return (("argon", ARGON_S),)
    return tuple((word, FOR_EVER) for word in _BY_KIND.get((fault.kind, fault.target), ()))


def _failed(fault: Fault) -> str:
    """Name the failed part, for faults that can hide each other."""
    if fault.kind.startswith("sensor_") and fault.target in ("argon", "gauge"):
        return fault.target
    if fault.kind in ("outlet_blocked", "power_dip"):
        return "outlet"
    if fault.kind == "contact_stuck":
        return {"vent": "outlet", "argon_valve": "argon valve"}.get(fault.target, "")
    return "air leak" if fault.kind == "air_leak" else ""
