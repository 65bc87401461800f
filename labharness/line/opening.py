"""A person opens the line by hand: judged and recorded before anybody is asked, as a command is."""

from collections.abc import Callable

from labharness.core.vocabulary import OPERATOR, Command, Refused
from labharness.journal import Journal
from labharness.line.command import Writer
from labharness.line.gate import Gate

__all__ = ["NotOpened", "Openings"]


class NotOpened(PermissionError):
    """The envelope does not let a person open the line by hand; nobody was asked."""


class Openings:
    """Judges what a person is about to open, in the turn of a line's one writer.

    Args:
        gate: Judges, and remembers what counts as open.
        writer: Whose turn it takes.
        journal: Where each opening goes, also one that is refused.
        now_s: Lab time.
    """

    def __init__(
        self, gate: Gate, writer: Writer, journal: Journal, now_s: Callable[[], float]
    ) -> None:
        self._gate = gate
        self._writer = writer
        self._journal = journal
        self._now_s = now_s

    async def begin(self, action: str) -> Command:
        """Allow one opening; its contact counts as open until the command given is concluded.

        Raises:
            NotOpened: The kernel refuses it.
            JournalFailed: It could not be recorded.
        """
        command = Command(f"{OPERATOR}.{action}", 0.0, "")
        async with self._writer.turn:
            verdict = self._gate.judge(command)
            refused = verdict.reason if isinstance(verdict, Refused) else ""
            asked = {"action": action, "refused": refused}
            await self._journal.durable(self._journal.append("opening", asked, self._now_s()))
            verdict = self._gate.judge(command)  # the disk took its time
            if isinstance(verdict, Refused):
                raise NotOpened(verdict.reason)
            self._gate.begin(command)
            return command
