"""The jobs of a house: makes the tasks that they owe, and tells people what went wrong.

A due time is a fact before its task is made, and the task is made under a key of job and due time.
So a house that dies in between makes it later, and makes it once.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labharness.core.errors import LabError
from labharness.core.files.durable import write_durably
from labharness.core.files.named import open_named
from labharness.core.vocabulary.digests import digest_of
from labharness.lab.house.intake import RUNTIME, must
from labharness.protocols.hcp.codec import MESSAGE_BYTES_MAX, HcpMessage, decode
from labharness.protocols.hcp.messages import TaskSubmit
from labharness.work.admission.confidential import declared_class, is_confidential
from labharness.work.task.commands import TaskActor
from labharness.work.task.house import HouseJournal
from labharness.work.task.jobs import (
    BadJob,
    CreateJob,
    DropRun,
    JobCommand,
    TellJob,
    Vary,
    due,
    points,
    run_key,
    schedule_of,
    untold,
    varied,
)
from labharness.work.task.queue import QUEUED_MAX, waiting
from labharness.work.task.record import Job


def job_file(home: Path, job_id: str) -> Path:
    """Return the file of a job's ``task_submit`` message, in the lab's state directory."""
    return home / "tasks" / f"job-{job_id}.json"


@dataclass(frozen=True, slots=True)
class HouseJobs:
    """The jobs of one lab.

    Attributes:
        journal: Of the house.
        submit: Keeps the message of one run of a job as a task with a title; raises as
            `House.submit`.
        home: The lab's state directory, for the messages.
        now_s: World time, in seconds since 1970, UTC.
        new_id: Mints ids of jobs.
        tell: Tells people; twice of one thing if the house dies at it.
    """

    journal: HouseJournal
    submit: Callable[[bytes, Job, str, str], None]
    home: Path
    now_s: Callable[[], float]
    new_id: Callable[[], str]
    tell: Callable[[str], None]

    def create(
        self,
        data: bytes,
        by: str,
        vary: Vary,
        *,
        every: str,
        title: str,
        seed: int | None = None,
        key: str = "",
    ) -> str:
        """Keep a job of an operator and make the tasks of a batch; return its id.

        Args:
            data: The ``task_submit`` message.
            by: The operator.
            vary: Values of a batch, by their paths in the payload.
            every: When a schedule runs.
            title: ``""`` takes the capability.
            seed: Of simulated runs.
            key: Idempotency key of the operator; a known one names the job that has it.

        Raises:
            NotHcp: The bytes are not an HCP message.
            BadPayload: The payload of a task cannot be read.
            BadJob: Values, schedule or size cannot be honoured.
            TaskRefused: The control plane refuses it.
            JournalFailed: It could not be written.
        """
        message = decode(data)
        if not isinstance(message.payload, TaskSubmit):
            raise BadJob("house.no_submit", type=message.type)
        _must_be_open(message)
        if bool(vary) == bool(every):
            raise BadJob("job.one_of")
        runs = points(vary) if vary else ()
        if every:
            schedule_of(every, self.now_s())
        for run in runs:
            _must_be_open(decode(_message(data, "a run", run)))
        command = CreateJob(
            job_id=self._known(by, key) or self._placed(data, len(runs)),
            key=key,
            title=title or message.payload.capability,
            every=every,
            runs=runs,
            digest=digest_of(data),
            seed=seed,
        )
        must(self.journal.give(command, TaskActor(by, "operator"), self.now_s()))
        self.step()
        return command.job_id

    def _known(self, by: str, key: str) -> str:
        """Return what was made under a key; the control plane refuses it for another command."""
        return self.journal.tasks.keys.get((by, key), ("", ""))[1] if key else ""

    def _placed(self, data: bytes, count: int) -> str:
        """Return the id of a new job, with its message on the disk."""
        if count + len(waiting(self.journal.tasks)) > QUEUED_MAX:
            raise BadJob("job.no_room", count=count, most=QUEUED_MAX)
        job_id = self.new_id()
        write_durably(job_file(self.home, job_id), data)
        return job_id

    def step(self) -> None:
        """Note what is due or missed, make the tasks that are owed, and tell what went wrong.

        Raises:
            JournalFailed: A fact could not be written; the house must be opened again.
        """
        for job_id in list(self.journal.tasks.jobs):
            tasks = self.journal.tasks
            full = len(waiting(tasks)) >= QUEUED_MAX
            self._say(due(tasks, tasks.jobs[job_id], self.now_s(), full=full))
            for run in self.journal.tasks.jobs[job_id].owed:
                self._make(self.journal.tasks.jobs[job_id], run)
            self._tell_of(job_id)

    def _make(self, job: Job, run: str) -> None:
        if len(waiting(self.journal.tasks)) >= QUEUED_MAX:
            return  # it stays owed
        point = {} if job.every else job.runs[int(run) - 1]
        title = ", ".join(f"{path.rpartition('.')[2]}={value}" for path, value in point.items())
        try:
            data = self._kept(job)
            self.submit(_message(data, run_key(job, run), point), job, run, title)
        except (LabError, OSError, ValueError) as why:
            reason = str(getattr(why, "code", "unreadable"))
            if reason == "journal_failed":
                raise
            self._say([DropRun(job_id=job.job_id, run=run, reason=reason)])

    def _kept(self, job: Job) -> bytes:
        with open_named(job_file(self.home, job.job_id)) as file:
            data = file.read(MESSAGE_BYTES_MAX)
        if digest_of(data) != job.digest:
            raise BadJob("job.changed")
        return data

    def _tell_of(self, job_id: str) -> None:
        tasks = self.journal.tasks
        for name, text in list(untold(tasks, tasks.jobs[job_id])):
            self.tell(text)
            self._say([TellJob(job_id=job_id, name=name)])

    def _say(self, commands: Iterable[JobCommand]) -> None:
        self.journal.give_all(commands, RUNTIME, self.now_s())


def _must_be_open(message: HcpMessage) -> None:
    """Refuse a job of confidential tasks: its message is kept in clear."""
    if isinstance(message.payload, TaskSubmit) and is_confidential(message.payload):
        raise BadJob("data.job", found=declared_class(message.payload))


def _message(data: bytes, key: str, point: Mapping[str, Any]) -> bytes:
    """Return the message of one run: its own id, and its own values."""
    body = json.loads(data)
    body["message_id"] = key
    body["payload"] = varied(body["payload"], point)
    return json.dumps(body, ensure_ascii=False).encode()
