"""Takes submissions: each is a task on the disk, in its queue, before its sender hears of it.

A task that only waits for its turn is accepted here. One that can never run is rejected here. A
confidential submission is kept encrypted or redacted.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from labharness.core.clock import utc_text
from labharness.core.files.signing_key import BadKey
from labharness.core.vocabulary.digests import digest_of
from labharness.core.vocabulary.texts import Text
from labharness.journal.chain import canonical
from labharness.journal.encryption import key_of, keyed_digest, make_run_key
from labharness.lab.house.message_store import MESSAGES_MAX, MessageStore, Receipt, submit_file
from labharness.lab.house.orders import WORKER, BadOrder, TaskRefused
from labharness.protocols.hcp import answers
from labharness.protocols.hcp.codec import (
    MESSAGE_BYTES_MAX,
    HcpMessage,
    decode,
    encode,
    submission_of,
)
from labharness.protocols.hcp.messages import TaskSubmit
from labharness.protocols.hcp.terms import Rejected
from labharness.work.admission.confidential import (
    Way,
    declared_class,
    in_clear,
    is_confidential,
    withheld,
)
from labharness.work.task.commands import CreateTask, FailTask, LinkTasks, ReportStatus, TaskActor
from labharness.work.task.facts import CommandRefused, TaskFact
from labharness.work.task.house import Draft, HouseJournal
from labharness.work.task.queue import PRIORITIES, QUEUED_MAX, is_full, reviewed_task
from labharness.work.task.record import WITHOUT_LINE, Attempt, RetryPolicy, Task, Tasks
from labharness.work.task.states import TERMINAL

NOTED: Final = (WITHOUT_LINE, "traceparent")
"""Keys of a task's profile that follow from no part of its submission."""

RUNTIME: Final = TaskActor("house", "runtime")

Receive = Callable[[str, TaskSubmit, str, Way], Rejected | HcpMessage | None]
"""Returns the answer to a submission that can have one at once, from the id of its message, its
payload, the id of its session and the way it came: the rejection of a task that can never run, or
the acceptance of one that only waits for its turn."""


DIGEST: Final = "digest"
"""In the profile of a task: what a repeated key is compared by."""

TEN_ATTEMPTS: Final = RetryPolicy(attempts_max=10)

TITLE_CHARACTERS: Final = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """A submission that the house keeps.

    Attributes:
        fresh: It was not known before; a repeated key gives the task of the first time.
        rejected: It can never run, and its answer says why.
        caller_id: Of its caller.
        session_id: Of the task's first session.
        opening: The message that opens its session, and maybe its acceptance, for its caller.
    """

    task_id: str
    fresh: bool
    rejected: bool = False
    caller_id: str = ""
    session_id: str = ""
    opening: tuple[HcpMessage, ...] = ()


def must(facts: Iterable[TaskFact]) -> None:
    """Raise `TaskRefused` where one of the facts is the refusal of a command."""
    for fact in facts:
        if isinstance(fact, CommandRefused):
            why = Text(f"task.{fact.reason}")
            raise TaskRefused("house.refused", command=fact.command, why=why)


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


@dataclass(eq=False)
class Intake:
    """The part of a house that takes submissions.

    Attributes:
        journal: Of the house.
        home: The lab's state directory, for the submissions.
        lab: Id of the lab.
        now_s: World time, in seconds since 1970, UTC.
        new_id: Mints ids of tasks, sessions and messages.
        receive: Answers a submission that can have an answer at once.
        data_key: Returns the file of the key for confidential data; ``None`` for none.
        needs_no_line: Returns whether a submission needs no line.
        retries: Policy of its tasks; the bound of inactivity is for those of the line.
        kept: Keeps the submissions, and what is told on receipt.
    """

    journal: HouseJournal
    _: KW_ONLY
    home: Path
    lab: str
    now_s: Callable[[], float]
    new_id: Callable[[], str]
    receive: Receive = lambda message_id, payload, session_id, way: None
    data_key: Callable[[], Path | None] = lambda: None
    needs_no_line: Callable[[TaskSubmit], bool] = lambda payload: False
    retries: RetryPolicy = TEN_ATTEMPTS
    kept: MessageStore = field(init=False)

    def __post_init__(self) -> None:
        self.kept = MessageStore(self.home)
        self.journal.catch_up(self.kept.pending_records())

    def take(self, submission: ReceivedSubmission) -> Submitted:
        """Keep one submission as a task; raises as `House.submit`."""
        (found,) = self.submit_all((submission,))
        self.journal.flush()  # its sender may look for it in the journal
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
        draft, receipts = self.journal.draft(self.now_s()), []
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
        if self.journal.pending_count >= MESSAGES_MAX:
            self.journal.flush()
        # first, so that no task is without its submission, and none that can never run without why
        record = self.journal.pending_record(draft)
        self.kept.receive(*receipts, pending=record)
        self.journal.append_pending(draft, record)
        return found

    def _taken(self, asked: ReceivedSubmission, draft: Draft) -> tuple[Submitted, Receipt | None]:
        """Decide about a submission; return what is kept of it, and the messages to keep."""
        message, tasks = asked.message, draft.tasks
        payload = message.payload
        if not isinstance(payload, TaskSubmit):
            raise TaskRefused("house.no_submit", type=message.type)
        actor = TaskActor(payload.caller_id, "caller")
        known = tasks.keys.get((actor.name, message.message_id))
        if known is None and is_full(tasks):
            raise TaskRefused("house.full", most=QUEUED_MAX)
        if missing := [each for each in asked.before if each not in tasks.by_id]:
            raise TaskRefused("house.unknown_task", task_id=missing[0])
        was = None if known is None else tasks.by_id[known[1]]
        task_id = self.new_id()
        session_id = self.new_id() if was is None else was.session_id
        answer = None if was else self.receive(message.message_id, payload, session_id, asked.way)
        rejected = answer if isinstance(answer, Rejected) else None
        kept, described = self._storable(task_id, asked, was, rejected)
        without_line = was is None and self.needs_no_line(payload)
        retry = self.retries if was is None else was.retry  # of a repetition it may differ by now
        if without_line:
            retry = replace(retry, inactivity_timeout_s=None)
        told = _redacted_submission(payload)
        created = _create_command(task_id, message.message_id, told, self.lab, asked.seed, retry)
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
            was_rejected = self.kept.answer(was.task_id) is not None
            return Submitted(task_id=was.task_id, fresh=False, rejected=was_rejected), None
        if rejected is not None:
            why = in_clear(rejected) if is_confidential(payload) else rejected
            draft.give(ReportStatus(task_id=task_id, to="accepted"), RUNTIME)
            code, reason = why.reason_code, why.reason_message
            draft.give(FailTask(task_id=task_id, error_code=code, reason=reason), RUNTIME)
            answered = answers.task_rejected(
                message_id=self.new_id(),
                timestamp=self._timestamp(),
                in_reply_to=message.message_id,
                rejected=why,
            )
            never_runs = Submitted(task_id=task_id, fresh=True, rejected=True)
            return never_runs, Receipt(task_id, kept, answer=answered)
        accepted = answer if isinstance(answer, HcpMessage) else None
        opens = self._opening(session_id, message.message_id, accepted) if asked.via else ()
        for each in asked.before:
            link = LinkTasks(task_id=task_id, kind="blocked_by", target_id=each)
            draft.give(link, RUNTIME)
        for review in reviewed_task(draft.tasks, draft.tasks.by_id[task_id]):
            draft.give(review, RUNTIME)
        submitted = Submitted(
            task_id=task_id,
            fresh=True,
            caller_id=payload.caller_id,
            session_id=session_id,
            opening=opens,
        )
        return submitted, Receipt(task_id, kept, session_id=session_id, told=opens)

    def _storable(
        self, task_id: str, asked: ReceivedSubmission, was: Task | None, rejected: Rejected | None
    ) -> tuple[bytes, dict[str, str]]:
        """Return the bytes to keep of a submission, and the part of a task's profile about them.

        A confidential one is encrypted; where it is rejected there is nothing to carry out, and its
        inputs are not kept at all.

        Raises:
            TaskRefused: The lab's key cannot be used.
            OSError: The disk does not take its key.
        """
        payload, data = asked.message.payload, asked.data
        if not isinstance(payload, TaskSubmit):
            return data, {}
        if not is_confidential(payload):
            return data, _digest(None, payload, was)
        key_file = self.data_key()
        master = key_file if rejected is None else None
        path = submit_file(self.home, task_id)
        if was is None and master is None:
            data = encode(replace(asked.message, payload=withheld(payload)))
        elif was is None and master is not None:
            with _usable_key():
                key = make_run_key(_key_file(path), master, declared_class(payload))
            data = key.file(path.name, data)
        return data, {} if key_file is None else _digest(key_file, payload, was)

    def _opening(
        self, session_id: str, message_id: str, accepted: HcpMessage | None
    ) -> tuple[HcpMessage, ...]:
        """Return what a caller is told before there is a run (ruling 2)."""
        # an acceptance is made before this, and told behind it
        at = self._timestamp() if accepted is None else accepted.timestamp
        opened = session_created(self.new_id(), at, session_id, message_id)
        return (opened,) if accepted is None else (opened, accepted)

    def _timestamp(self) -> str:
        return utc_text(datetime.fromtimestamp(self.now_s(), UTC))


def _as_noted(was: Task) -> dict[str, Any]:
    """Return what the house noted when a task came, so that a repetition is the same command."""
    return {name: was.profile[name] for name in NOTED if name in was.profile}


def _create_command(
    task_id: str,
    key: str,
    payload: TaskSubmit,
    lab: str,
    seed: int | None,
    retry: RetryPolicy,
) -> CreateTask:
    """Return the command that makes a task of a submission."""
    submission = submission_of(payload)
    constraints = payload.constraints
    return CreateTask(
        task_id=task_id,
        key=key,
        objective=payload.intent,
        title=payload.capability[:TITLE_CHARACTERS],
        task_kind="hcp_task",
        task_family=payload.capability,
        priority=submission.priority if submission.priority in PRIORITIES else "normal",
        owner=lab,
        assignee=WORKER,
        scope={"lab": lab},
        constraints={} if constraints is None else constraints.model_dump(exclude_none=True),
        profile={"capability": payload.capability, "seed": seed},
        acceptance=submission.required_fields,
        retry=retry,
    )


def attempt_of(task: Task, run_id: str) -> Attempt | None:
    """Return the attempt of a task with a session; ``None`` where it has none."""
    return next((each for each in task.attempts if each.run_id == run_id), None)


def session_created(
    message_id: str, timestamp: str, session_id: str, in_reply_to: str
) -> HcpMessage:
    """Return the message that opens a session."""
    return answers.event(
        message_id=message_id,
        timestamp=timestamp,
        session_id=session_id,
        event_type="session_created",
        sequence=1,
        data={"state": "PENDING", "risk_level": None, "session_token": None},
        in_reply_to=in_reply_to,
    )


def _digest(master: Path | None, payload: TaskSubmit, was: Task | None) -> dict[str, str]:
    """Return what tells two submissions of one key apart; with a key it tells no input of either.

    A task of an earlier version has none, and its repetition is given none.
    """
    if was is not None and DIGEST not in was.profile:
        return {}
    said = canonical(payload.stated())
    with _usable_key():
        return {DIGEST: digest_of(said) if master is None else keyed_digest(master, said)}


def _redacted_submission(payload: TaskSubmit) -> TaskSubmit:
    """Return what the journal of a house may say of a submission."""
    return withheld(payload) if is_confidential(payload) else payload


def read_submission(path: Path) -> tuple[HcpMessage, TaskSubmit]:
    """Return a kept submission and its payload.

    Raises:
        OSError: It cannot be read.
        KeyMissing: It is confidential, and its key cannot be had.
        NotHcp: It holds no message.
        BadOrder: It holds another message.
    """
    key = key_of(_key_file(path))
    if key is not None:
        message = decode(key.read_file(path.name, path.read_bytes()))
    else:
        with path.open("rb") as file:
            message = decode(file.read(MESSAGE_BYTES_MAX + 1))
    if not isinstance(message.payload, TaskSubmit):
        raise BadOrder("order.wrong", name="submit")
    return message, message.payload


@contextmanager
def _usable_key() -> Iterator[None]:
    try:
        yield
    except BadKey as why:
        raise TaskRefused(str(why)) from None


def forget(home: Path, tasks: Tasks, run_id: str) -> None:
    """Destroy the key of the submission that a removed run has carried out, if it has ended.

    Raises:
        OSError: The file cannot be removed.
    """
    for task in tasks.by_id.values():
        if task.status in TERMINAL and attempt_of(task, run_id) is not None:
            _key_file(submit_file(home, task.task_id)).unlink(missing_ok=True)


def _key_file(path: Path) -> Path:
    return path.with_suffix(".key.json")
