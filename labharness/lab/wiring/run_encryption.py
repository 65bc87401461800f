"""Encrypts the files beside a run's journal where its task is confidential."""

from dataclasses import dataclass
from pathlib import Path

from labharness.journal.chain import ENCRYPTED
from labharness.journal.encryption import KEY_NAME, RunKey, make_run_key
from labharness.lab.config.lab_plan import LabPlan
from labharness.protocols.hcp.codec import HcpMessage, encode
from labharness.protocols.hcp.messages import TaskSubmit
from labharness.protocols.hcp.terms import CONFIDENTIAL
from labharness.work.admission.confidential import declared_class, is_confidential, withheld


def storable(plan: LabPlan, payload: TaskSubmit) -> TaskSubmit:
    """Return what a lab may keep of a submission, encrypted where its class asks for that.

    Of a confidential task that it will refuse (it has no key, or does not know the class) nothing
    is kept.
    """
    if is_confidential(payload) and _master(plan, payload) is None:
        return withheld(payload)
    return payload


def _master(plan: LabPlan, payload: TaskSubmit) -> Path | None:
    return plan.data_key if declared_class(payload) in CONFIDENTIAL else None


@dataclass(frozen=True, slots=True)
class RunEncryption:
    """The key of one run, if it has one, and what is made with it.

    Attributes:
        key: ``None`` where all is written in clear.
    """

    key: RunKey | None = None

    @classmethod
    def made(cls, folder: Path, plan: LabPlan, payload: TaskSubmit) -> "RunEncryption":
        """Make the key of a confidential run in its folder.

        Raises:
            BadKey: The lab's key cannot be used.
            OSError: The folder cannot be written.
        """
        master = _master(plan, payload)
        if master is None:
            return cls()
        return cls(make_run_key(folder / KEY_NAME, master, declared_class(payload)))

    def header(self) -> dict[str, str]:
        """Return what the header of the journal says of it."""
        return {} if self.key is None else {ENCRYPTED: self.key.data_class}

    def file(self, name: str, data: bytes) -> bytes:
        """Return the bytes of a file of the run, as they are written."""
        return data if self.key is None else self.key.file(name, data)

    def message(self, name: str, message: HcpMessage) -> bytes:
        """Return the bytes of a file with one message."""
        return self.file(name, encode(message) + b"\n")
