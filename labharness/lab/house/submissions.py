"""Prepares a submission for storage: a confidential one is encrypted or redacted."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from labharness.core.files.signing_key import BadKey
from labharness.core.vocabulary.digests import digest_of
from labharness.journal.chain import canonical
from labharness.journal.encryption import key_of, keyed_digest, make_run_key
from labharness.lab.house.house_commands import TaskRefused, attempt_of
from labharness.lab.house.message_store import submit_file
from labharness.protocols.hcp.codec import MESSAGE_BYTES_MAX, HcpMessage, decode, encode
from labharness.protocols.hcp.messages import TaskSubmit
from labharness.protocols.hcp.terms import Rejected
from labharness.work.admission.confidential import (
    declared_class,
    in_clear,
    is_confidential,
    withheld,
)
from labharness.work.task.record import Task, Tasks
from labharness.work.task.states import TERMINAL

DIGEST = "digest"
"""In the profile of a task: what a repeated key is compared by."""


@dataclass(frozen=True, slots=True)
class Submissions:
    """The submissions of one house.

    Attributes:
        home: The lab's state directory.
        data_key: Returns the file of the lab's key for confidential data; ``None`` for none.
    """

    home: Path
    data_key: Callable[[], Path | None]

    def taken(
        self,
        task_id: str,
        data: bytes,
        message: HcpMessage,
        was: Task | None,
        rejected: Rejected | None,
    ) -> tuple[bytes, dict[str, str]]:
        """Return the bytes to keep of a submission, and the part of a task's profile about them.

        A confidential one is encrypted; where it is rejected there is nothing to carry out, and its
        inputs are not kept at all.

        Args:
            task_id: Of its task, where it is new.
            data: The message.
            message: The same, read.
            was: The task that its key has made before; ``None`` where it is new.
            rejected: Why it can never run.

        Raises:
            TaskRefused: The lab's key cannot be used.
            OSError: The disk does not take its key.
        """
        payload = message.payload
        if not isinstance(payload, TaskSubmit):
            return data, {}
        if not is_confidential(payload):
            return data, _digest(None, payload, was)
        key_file = self.data_key()
        master = key_file if rejected is None else None
        path = submit_file(self.home, task_id)
        if was is None and master is None:
            data = encode(replace(message, payload=withheld(payload)))
        elif was is None and master is not None:
            with _usable():
                key = make_run_key(_key_file(path), master, declared_class(payload))
            data = key.file(path.name, data)
        return data, {} if key_file is None else _digest(key_file, payload, was)


def _digest(master: Path | None, payload: TaskSubmit, was: Task | None) -> dict[str, str]:
    """Return what tells two submissions of one key apart; with a key it tells no input of either.

    A task of an earlier version has none, and its repetition is given none.
    """
    if was is not None and DIGEST not in was.profile:
        return {}
    said = canonical(payload.model_dump(by_alias=True, exclude_unset=True))
    with _usable():
        return {DIGEST: digest_of(said) if master is None else keyed_digest(master, said)}


def redacted_rejection(rejected: Rejected, payload: TaskSubmit) -> Rejected:
    """Return what a caller is told of a rejection, and what is kept of it."""
    return in_clear(rejected) if is_confidential(payload) else rejected


def redacted_submission(payload: TaskSubmit) -> TaskSubmit:
    """Return what the journal of a house may say of a submission."""
    return withheld(payload) if is_confidential(payload) else payload


def read_submission(path: Path) -> HcpMessage:
    """Return a kept submission.

    Raises:
        OSError: It cannot be read.
        KeyMissing: It is confidential, and its key cannot be had.
        NotHcp: It holds no message.
    """
    key = key_of(_key_file(path))
    if key is not None:
        return decode(key.read_file(path.name, path.read_bytes()))
    with path.open("rb") as file:
        return decode(file.read(MESSAGE_BYTES_MAX + 1))


@contextmanager
def _usable() -> Iterator[None]:
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
