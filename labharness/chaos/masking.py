"""Faults that hide other things from the line, and when each ends."""

from collections.abc import Mapping
from typing import Any

from labharness.chaos.fault_rows import MaskCause
from labharness.chaos.scenario import Fault
from labharness.chaos.table import FaultTable, matches

Words = tuple[tuple[str, float], ...]


class Masking:
    """The masks in force, and their ends.

    Args:
        table: The masks of the line, and their causes.
        words: The names of the masks in force; updated here and read by the rules.
    """

    def __init__(self, table: FaultTable, words: set[str]) -> None:
        self.words = words
        self._masks = {mask.name: mask for mask in table.mask}
        causes = [(mask.name, cause) for mask in table.mask for cause in mask.by]
        self._causes = [each for each in causes if not each[1].beside]
        self._pairs = [each for each in causes if each[1].beside]
        self._until_s: dict[str, float] = {}
        self._ending_since_s: dict[str, float] = {}
        self._over: set[str] = set()
        self._broken: list[tuple[Fault, Words]] = []
        self._stage = ""
        self._begun: set[str] = set()

    def growth_begins(self) -> None:
        """Forget the stages of the previous growth."""
        self._stage = ""
        self._begun.clear()

    def stage_begins(self, stage: str, now_s: float) -> None:
        """Follow the growth: some masks belong to a stage."""
        self._stage = stage
        self._begun.add(stage)
        self._pair(now_s)

    def begins(self, fault: Fault, now_s: float) -> None:
        """Add the masks of a fault."""
        words = tuple(
            (word, cause.for_s)
            for word, cause in self._causes
            if matches(cause.faults, fault.kind, fault.target) and self._counts(cause)
        )
        self._broken.append((fault, words))
        for word, for_s in words:
            self._blind(word, now_s + for_s)
        self._pair(now_s)

    def ends(self, fault: Fault, now_s: float) -> None:
        """Set the end of a fault's masks: they outlast it by their ``after_s``."""
        gone = next((each for each in self._broken if each[0] == fault), None)
        if gone is None:
            return  # all was mended before
        self._broken.remove(gone)
        ended = {word for word, _ in gone[1]}
        for word, pair in self._pairs:
            menders = pair.mended_by or (*pair.faults, *pair.beside)
            if matches(menders, fault.kind, fault.target):
                ended.add(word)
        for word in sorted(ended & self.words):
            rest = [for_s for _, words in self._broken for each, for_s in words if each == word]
            until_s = now_s + max(self._masks[word].after_s, *rest, 0.0)
            self._until_s[word] = min(until_s, self._until_s.get(word, until_s))
            if not rest:
                self._over.add(word)

    def seeing(self, values: Mapping[str, Any], now_s: float) -> list[str]:
        """Return the masks whose time is over; put on those that the plant's state begins."""
        over: list[str] = []
        for mask in self._masks.values():
            word = mask.name
            if mask.begins is not None and mask.ends is not None:
                if mask.ends(values):
                    self._ending_since_s.setdefault(word, now_s)
                else:
                    self._ending_since_s.pop(word, None)
                if mask.begins(values):
                    self.words.add(word)
                elif now_s - self._ending_since_s.get(word, now_s + 1.0) >= mask.after_s:
                    over.append(word)
            elif word in self._until_s:
                healed = word in self._over and mask.healed is not None and mask.healed(values)
                if healed or self._until_s[word] <= now_s:
                    over.append(word)
        return [word for word in over if word in self.words]

    def sees(self, word: str) -> None:
        """Remove a mask: the line can see again."""
        self.words.discard(word)
        self._until_s.pop(word, None)
        self._over.discard(word)
        follows = self._masks[word].leaves
        if follows is not None:
            self.words.add(follows)

    def mended(self) -> None:
        """Remove all masks of faults: every fault was mended, and a person has checked it.

        A reset does not change the plant: a mask that its state has put on stays.
        """
        masks = [self._masks[word] for word in self.words]
        self.words.clear()
        self._until_s.clear()
        self._over.clear()
        self._broken.clear()
        for mask in masks:
            if mask.begins is not None:
                self.words.add(mask.name)
            elif mask.leaves is not None:
                self.words.add(mask.leaves)

    def _counts(self, cause: MaskCause) -> bool:
        return (cause.since is None or cause.since in self._begun) and (
            cause.before is None or cause.before not in self._begun
        )

    def _pair(self, now_s: float) -> None:
        faults = [(fault.kind, fault.target) for fault, _ in self._broken]
        for word, pair in self._pairs:
            both = all(
                any(matches(patterns, *fault) for fault in faults)
                for patterns in (pair.faults, pair.beside)
            )
            if both and pair.stage in (None, self._stage):
                self._blind(word, now_s + pair.for_s)

    def _blind(self, word: str, until_s: float) -> None:
        self.words.add(word)
        self._over.discard(word)
        self._until_s[word] = max(until_s, self._until_s.get(word, until_s))
