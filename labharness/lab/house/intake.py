"""Takes submissions: each is a task on the disk, in its queue, before its sender hears of it.

A task that only waits for its turn is accepted here. One that can never run is rejected here.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final

from labharness.core.clock import utc_text
from labharness.core.vocabulary.texts import Text
from labharness.lab.house.house_commands import (
    Submitted,
    TaskRefused,
    create_command,
    reject_commands,
    session_created,
)
from labharness.lab.house.message_store import MESSAGES_MAX, MessageStore, Receipt
from labharness.lab.house.submissions import Submissions, redacted_rejection, redacted_submission
from labharness.protocols.hcp import answers
from labharness.protocols.hcp.codec import HcpMessage
from labharness.protocols.hcp.messages import TaskSubmit
from labharness.protocols.hcp.terms import Rejected
from labharness.work.admission.confidential import Way
from labharness.work.task.commands import LinkTasks, TaskActor
from labharness.work.task.facts import CommandRefused, TaskFact
from labharness.work.task.house import Draft, HouseJournal
from labharness.work.task.queue import QUEUED_MAX, is_full, reviewed_task
from labharness.work.task.record import WITHOUT_LINE, RetryPolicy, Task

NOTED: Final = (WITHOUT_LINE, "traceparent")
"""Keys of a task's profile that follow from no part of its submission."""

RUNTIME: Final = TaskActor("house", "runtime")

Receive = Callable[[str, TaskSubmit, str, Way], Rejected | HcpMessage | None]
"""Returns the answer to a submission that can have one at once, from the id of its message, its
payload, the id of its session and the way it came: the rejection of a task that can never run, or
the acceptance of one that only waits for its turn."""


def must(facts: Iterable[TaskFact]) -> None:
    """Raise `TaskRefused` where one of the facts is the refusal of a command."""
    for fact in facts:
        if isinstance(fact, CommandRefused):
            why = Text(f"task.{fact.reason}")
            raise TaskRefused(Text("house.refused", command=fact.command, why=why))


@dataclass(frozen=True, slots=True)
class ReceivedSubmission:
    """A submission as it came.

    Attributes:
        data: The message.
        message: The same, decoded.
        seed: Of a simulated run.
        before: Tasks that must be completed before it.
        owned: Further fields of the task, of a job that owns it.
        via: The service that tells its caller; ``""`` where none does.
        way: How it came.
        noted: More of its profile, which a repetition does not change.
    """

    data: bytes
    message: HcpMessage
    seed: int | None = None
    before: tuple[str, ...] = ()
    owned: Mapping[str, Any] = field(default_factory=dict)
    via: str = ""
    way: Way = "local"
    noted: Mapping[str, str] = field(default_factory=dict)


class Intake:
    """The submissions of one lab.

    Args:
        journal: Of the house.
        kept: Keeps the submissions, and what is told on receipt.
        submissions: Makes of each what may be kept.
        lab: Id of the lab.
        now_s: World time, in seconds since 1970, UTC.
        new_id: Mints ids of tasks, sessions and messages.
        receive: Answers what can be answered at once.
        needs_no_line: Returns whether a submission needs no line.
        retry: Policy of its tasks; the bound of inactivity is for those of the line.
    """

    def __init__(
        self,
        journal: HouseJournal,
        kept: MessageStore,
        submissions: Submissions,
        *,
        lab: str,
        now_s: Callable[[], float],
        new_id: Callable[[], str],
        receive: Receive,
        needs_no_line: Callable[[TaskSubmit], bool],
        retry: RetryPolicy,
    ) -> None:
        self._journal = journal
        self._kept = kept
        self._submissions = submissions
        self._lab = lab
        self._now_s = now_s
        self._new_id = new_id
        self._receive = receive
        self._needs_no_line = needs_no_line
        self._retry = retry

    def submit(self, submission: ReceivedSubmission) -> Submitted:
        """Keep one submission as a task; raises as `House.submit`."""
        (found,) = self.submit_all((submission,))
        self._journal.flush()  # its sender may look for it in the journal
        if isinstance(found, Exception):
            raise found
        return found

    def submit_all(self, submissions: Iterable[ReceivedSubmission]) -> list[Submitted | Exception]:
        """Keep submissions as tasks, all with one write: a disk is waited for once.

        The house's journal is written later (`HouseJournal.flush`); until then its record stands
        beside the submissions.

        Returns:
            Of each what was kept, or why it was not, as `House.submit` raises it.

        Raises:
            JournalFailed: None of them could be written.
        """
        draft, receipts = self._journal.draft(self._now_s()), []
        found: list[Submitted | Exception] = []
        for each in submissions:
            own = Draft(draft.tasks, draft.now_s)
            try:
                submitted, receipt = self._taken(each, own)
                receipts += [] if receipt is None else [receipt]
                found.append(submitted)
            except TaskRefused as why:
                found.append(why)  # and a refusal that is a fact is kept
            except Exception as why:  # noqa: BLE001 - what makes one fail is not to fail others
                found.append(why)
                continue
            draft.take(own)
        if self._journal.pending_count >= MESSAGES_MAX:
            self._journal.flush()
        # first, so that no task is without its submission, and none that can never run without why
        record = self._journal.pending_record(draft)
        self._kept.receive(*receipts, pending=record)
        self._journal.append_pending(draft, record)
        return found

    def _taken(self, asked: ReceivedSubmission, draft: Draft) -> tuple[Submitted, Receipt | None]:
        """Decide about a submission; return what is kept of it, and the messages to keep."""
        message, tasks = asked.message, draft.tasks
        payload = message.payload
        if not isinstance(payload, TaskSubmit):
            raise TaskRefused(Text("house.no_submit", type=message.type))
        actor = TaskActor(payload.caller_id, "caller")
        known = tasks.keys.get((actor.name, message.message_id))
        if known is None and is_full(tasks):
            raise TaskRefused(Text("house.full", most=QUEUED_MAX))
        if missing := [each for each in asked.before if each not in tasks.by_id]:
            raise TaskRefused(Text("house.unknown_task", task_id=missing[0]))
        was = None if known is None else tasks.by_id[known[1]]
        task_id = self._new_id()
        session_id = self._new_id() if was is None else was.session_id
        answer = None if was else self._receive(message.message_id, payload, session_id, asked.way)
        rejected = answer if isinstance(answer, Rejected) else None
        kept, described = self._submissions.taken(task_id, asked.data, message, was, rejected)
        without_line = was is None and self._needs_no_line(payload)
        retry = self._retry if was is None else was.retry  # of a repetition it may differ by now
        if without_line:
            retry = replace(retry, inactivity_timeout_s=None)
        created = create_command(
            task_id, message.message_id, redacted_submission(payload), self._lab, asked.seed, retry
        )
        profile = {**created.profile, **described}
        profile |= dict(asked.noted) if was is None else _as_noted(was)
        if without_line:
            profile[WITHOUT_LINE] = True
        if asked.via:
            profile |= {"via": asked.via, "message_id": message.message_id}
        command = replace(created, session_id=session_id, profile=profile, **asked.owned)
        made = draft.give(command, actor)
        must(made)
        if was is not None:
            was_rejected = self._kept.answer(was.task_id) is not None
            return Submitted(task_id=was.task_id, fresh=False, rejected=was_rejected), None
        if rejected is not None:
            told = redacted_rejection(rejected, payload)
            for ends in reject_commands(task_id, told):
                draft.give(ends, RUNTIME)
            why = self._rejection(message.message_id, told)
            never_runs = Submitted(task_id=task_id, fresh=True, rejected=True)
            return never_runs, Receipt(task_id, kept, answer=why)
        accepted = answer if isinstance(answer, HcpMessage) else None
        opens = self._opening(session_id, message.message_id, accepted) if asked.via else ()
        self._queue(draft.tasks.by_id[task_id], draft, asked.before)
        submitted = Submitted(
            task_id=task_id,
            fresh=True,
            caller_id=payload.caller_id,
            session_id=session_id,
            opening=opens,
        )
        return submitted, Receipt(task_id, kept, session_id=session_id, told=opens)

    def _queue(self, task: Task, draft: Draft, before: tuple[str, ...]) -> None:
        """Decide about a task's place in the queue."""
        for each in before:
            link = LinkTasks(task_id=task.task_id, kind="blocked_by", target_id=each)
            draft.give(link, RUNTIME)
        for review in reviewed_task(draft.tasks, task):
            draft.give(review, RUNTIME)

    def _rejection(self, message_id: str, rejected: Rejected) -> HcpMessage:
        return answers.task_rejected(
            message_id=self._new_id(),
            timestamp=self._timestamp(),
            in_reply_to=message_id,
            rejected=rejected,
        )

    def _opening(
        self, session_id: str, message_id: str, accepted: HcpMessage | None
    ) -> tuple[HcpMessage, ...]:
        """Return what a caller is told before there is a run (ruling 2)."""
        # an acceptance is made before this, and told behind it
        at = self._timestamp() if accepted is None else accepted.timestamp
        opened = session_created(self._new_id(), at, session_id, message_id)
        return (opened,) if accepted is None else (opened, accepted)

    def _timestamp(self) -> str:
        return utc_text(datetime.fromtimestamp(self._now_s(), UTC))


def _as_noted(was: Task) -> dict[str, Any]:
    """Return what the house noted when a task came, so that a repetition is the same command."""
    return {name: was.profile[name] for name in NOTED if name in was.profile}
